"""What operators make from nothing: positions, random numbers, constants (SEMANTICS 2.3, rule 5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dtir.analysis.abstract import Declared, Surroundings
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.states import State
from dtir.ops import OpCall, OpDef, OpError, SourceKind
from dtir.ops.parameters import names


def source_step(
    operator: OpDef, call: OpCall, declared: Declared, around: Surroundings, result: int
) -> tuple[State, list[Deviation]]:
    """The state of what a source makes, and where it deviates: every rank makes its own block, so that splits are as declared."""
    state, found = declared.state, list[Deviation]()
    if state.partial:
        found.append(Deviation(Kind.FABRICATED, state.partial, None, result, (), "replicated", "pending"))
        state = replace(state, partial=(), op=None) if around.infer else state
    match operator.source:
        case SourceKind.POSITION:
            if call.attributes.get("offset") == "local" and (split := state.split):
                dims = tuple(dim for dim, axes in enumerate(state.dims) if axes)
                found.append(Deviation(Kind.LOCAL_INDEX, split, None, result, dims))
        case SourceKind.RANDOM:
            found += random_deviations(call, state, around, result)
        case SourceKind.CONSTANT | None:
            pass
    return state, found


def known_axes(axes: Iterable[str], around: Surroundings) -> tuple[str, ...]:
    """Names of mesh axes.

    Raises:
        OpError: the mesh lacks one.
    """
    found = tuple(axes)
    for name in found:
        if name not in around.space.parts:
            raise OpError(f"the mesh has no axis {name!r}: it has {', '.join(around.space.parts)}")
    return found


def random_deviations(call: OpCall, state: State, around: Surroundings, result: int) -> list[Deviation]:
    """Axes that the key of a random draw has too many or too few of."""
    given = names(call.attributes.get("key_axes", ()), "key_axes")
    key = set(around.space.expand(known_axes(given, around)))
    found: list[Deviation] = []
    split, loose = set(state.split), set(state.varying) | {axis for axis, _ in state.at}
    if extra := around.space.ordered(key - split - loose):
        found.append(Deviation(Kind.REPLICA_DIVERGENCE, extra, None, result, note="key"))
    if missing := around.space.ordered(split - key):
        found.append(Deviation(Kind.CORRELATED_RANDOM, missing, None, result))
    return found
