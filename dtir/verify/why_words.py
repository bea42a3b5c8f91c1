"""Words for reasons of communication: what somebody needs, how an axis lies before and after, which way blocks go."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.analysis.states import State
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)


def needs(who: str, what: str) -> str:
    """Who needs what, also where nobody reads it or the caller does."""
    if who == "nothing":
        return f"nothing reads the result, which would be {what}"
    return f"the caller gets {what} as an output" if who == "the output" else f"{who} needs {what}"


def on_dim(dim: int | None) -> str:
    """`` on dim 1``, or nothing."""
    return f" on dim {dim}" if dim is not None else ""


def shift_words(pairs: Sequence[tuple[int, int]]) -> str:
    """Which way the blocks of a permute go: ``+1 in rank order``, or the number of pairs."""
    steps = {destination - source for source, destination in pairs[:4096]}
    forward = {step for step in steps if step > 0}
    if len(forward) == 1 and len(steps) <= 2:
        return f"{next(iter(forward)):+d} in rank order"
    back = {step for step in steps if step < 0}
    if len(back) == 1 and len(steps) <= 2:
        return f"{next(iter(back)):+d} in rank order"
    return f"{len(pairs)} pairs"


def spec_words(spec: CollectiveSpecVariant) -> tuple[str, str] | None:
    """State of an axis before and after, from the collective alone."""
    match spec:
        case AllReduce(reduction=reduction):
            return f"share of a {reduction.value}", "replicated"
        case ReduceScatter(reduction=reduction, dim=dim):
            return f"share of a {reduction.value}", f"split{on_dim(dim)}"
        case AllGather(dim=dim):
            return f"split{on_dim(dim)}", "replicated"
        case AllToAll(split_dim=split, concat_dim=concat):
            return f"split{on_dim(concat)}", f"split{on_dim(split)}"
        case Broadcast():
            return "at the root only", "replicated"
        case CollectivePermute():
            return None


def state_words(state: State) -> str:
    """A state in a few words."""
    parts: list[str] = []
    if any(state.dims):
        parts.append("[" + ", ".join("+".join(axes) or "·" for axes in state.dims) + "]")
    if state.op is not None:
        parts.append(f"pending {state.op.value} over {', '.join(state.partial)}")
    if state.varying:
        parts.append(f"per rank over {', '.join(state.varying)}")
    if state.at:
        parts.append("at " + ", ".join(f"{axis}={place}" for axis, place in state.at))
    return " ".join(parts) or "replicated"
