"""Compare what follows from a task with what its result declares, axis by axis.

Along an axis at which a value is confined nothing is compared: who holds what is told from owners and ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dtir.analysis.abstract import Surroundings
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.states import (
    Confined,
    Equal,
    Letter,
    Pending,
    PerRank,
    Split,
    State,
    letter_text,
    state_text,
)


@dataclass(frozen=True, slots=True)
class Settled:
    """Which state a result has from here on, and how declaration and inference part.

    Args:
        state: the inferred state where they agree (in infer mode also where a pending reduction is not declared), else
            the declared one.
        deviations: one for each kind.
    """

    state: State
    deviations: tuple[Deviation, ...] = ()


def settle(
    inferred: State,
    declared: State,
    around: Surroundings,
    result: int = 0,
    *,
    dropped: Kind = Kind.DROPPED,
    weighted: Iterable[str] = (),
) -> Settled:
    """Compare two states of one result.

    Args:
        inferred: what follows from the task.
        declared: what the program says.
        around: space and mode.
        result: position of the result, for the deviations.
        dropped: the kind of a pending reduction that the declaration leaves out.
        weighted: per-rank axes along which a declared pending sum is taken as meant (see `Abstract.weighted`).
    """
    if inferred == declared:
        return Settled(inferred)
    found: dict[Kind, list[str]] = {}
    deferred: list[str] = []
    for axis in around.space.axes:
        kind = _compare(inferred.letter(axis), declared.letter(axis), axis, inferred, declared)
        if kind is None:
            continue
        if kind is Kind.DROPPED:
            if around.infer and isinstance(declared.letter(axis), Equal):
                deferred.append(axis)
                continue
            kind = dropped
        if kind is Kind.FABRICATED and axis in weighted:
            continue
        found.setdefault(kind, []).append(axis)
    if Kind.ORDER in found and Kind.MISMATCH in found:
        found[Kind.MISMATCH] = sorted({*found[Kind.MISMATCH], *found.pop(Kind.ORDER)}, key=around.space.axes.index)
    if not found and (dim := _sizes_differ(inferred, declared)) is not None:
        wrong = (_deviation(Kind.MISMATCH, list(declared.dims[dim]), result, inferred, declared, (dim,)),)
        return Settled(declared, wrong)
    if not found and deferred:
        # The document cannot say "pending": the value carries it until a task reduces it.
        pending = around.space.ordered({*declared.partial, *deferred})
        return Settled(replace(declared, partial=pending, op=inferred.op))
    deviations = tuple(_deviation(kind, axes, result, inferred, declared) for kind, axes in found.items())
    return Settled(declared, deviations)


def _deviation(
    kind: Kind, axes: list[str], result: int, inferred: State, declared: State, dims: tuple[int, ...] = ()
) -> Deviation:
    if dims:
        dim = dims[0]
        found = f"shards of {_size_text(inferred.size_of(dim))} on dim {dim}"
        wanted = f"shards of {_size_text(declared.size_of(dim))}"
    elif kind is not Kind.ORDER and _alike(axes, inferred) and _alike(axes, declared):
        found, wanted = letter_text(inferred.letter(axes[0])), letter_text(declared.letter(axes[0]))
    else:
        found, wanted = state_text(inferred), state_text(declared)
    if not dims:
        dims = tuple(
            sorted(
                {
                    letter.dim
                    for axis in axes
                    for letter in (inferred.letter(axis), declared.letter(axis))
                    if isinstance(letter, Split)
                }
            )
        )
    return Deviation(kind, tuple(axes), None, result, dims, found, wanted)


def _alike(axes: list[str], state: State) -> bool:
    """True when one phrase tells the state along all of the axes."""
    return len({letter_text(state.letter(axis)) for axis in axes}) == 1


def _size_text(sizes: tuple[int, ...] | None) -> str:
    return "equal size" if sizes is None else ", ".join(map(str, sizes[:16])) + (" ..." if len(sizes) > 16 else "")


def _sizes_differ(inferred: State, declared: State) -> int | None:
    """The first dim whose explicit shard sizes disagree."""
    if inferred.sizes == declared.sizes:
        return None
    for dim in range(min(len(inferred.dims), len(declared.dims))):
        if inferred.dims[dim] and inferred.size_of(dim) != declared.size_of(dim):
            return dim
    return None


def _compare(inferred: Letter, declared: Letter, axis: str, left: State, right: State) -> Kind | None:
    """How two letters part; None when they agree, or when the declared one says less."""
    if isinstance(inferred, Confined) or isinstance(declared, (Confined, PerRank)):
        return None
    match inferred, declared:
        case Equal(), Equal():
            return None
        case Split(dim=one), Split(dim=other):
            if one != other:
                return Kind.MISMATCH
            mine, theirs = left.dims[one], right.dims[one]
            if mine == theirs:
                return None
            return Kind.ORDER if set(mine) == set(theirs) else _contested(axis, mine, theirs)
        case Pending(op=one), Pending(op=other):
            return None if one is other else Kind.MIXED_OPS
        case Pending(), Equal() | Split():
            return Kind.DROPPED
        case Equal(), Pending():
            return Kind.FABRICATED
        case PerRank(), Equal():
            return Kind.REPLICA_DIVERGENCE
        case PerRank(), Pending():
            return Kind.FABRICATED
        case _:
            return Kind.MISMATCH


def _contested(axis: str, mine: tuple[str, ...], theirs: tuple[str, ...]) -> Kind | None:
    """Both lists hold the axis, and one holds others too: those are reported, this one only if it also changed place."""
    common = [item for item in mine if item in theirs]
    other = [item for item in theirs if item in mine]
    return Kind.ORDER if common.index(axis) != other.index(axis) else None
