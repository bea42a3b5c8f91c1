"""Which splits survive a reshape (SEMANTICS 2.3, rule 4).

A block of rows stays a block of rows only at the major end of a group: a split dim must lead its group, up to dims that
one rank holds a single element of, and the shards must fall on whole elements of the leading new dims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtir.analysis.abstract import Surroundings
from dtir.analysis.states import State
from dtir.ir.expr import Scalar
from dtir.ops import DimGroup, Regroup


@dataclass(frozen=True, slots=True)
class Broken:
    """A split that the reshape tears apart."""

    axes: tuple[str, ...]
    dim: int
    leads: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """Axis lists and explicit sizes of the result."""

    dims: tuple[tuple[str, ...], ...]
    sizes: tuple[tuple[int, ...] | None, ...]


def reshaped(
    rule: Regroup, source: Sequence[Scalar], state: State, target: Sequence[Scalar], around: Surroundings
) -> Kept | Broken:
    """The axis lists of a reshape's result, or the split that does not survive."""
    dims: list[tuple[str, ...]] = [()] * len(target)
    sizes: list[tuple[int, ...] | None] = [None] * len(target)
    for group in rule.groups:
        if len(group.operand_dims) == 1 and len(group.result_dims) == 1:
            dims[group.result_dims[0]] = state.dims[group.operand_dims[0]]
            sizes[group.result_dims[0]] = state.size_of(group.operand_dims[0])
            continue
        found = _collect(group, source, state, around)
        if isinstance(found, Broken):
            return found
        broken = _hand_out(group, found, target, dims, around)
        if broken is not None:
            return broken
    return Kept(tuple(dims), tuple(sizes) if any(item is not None for item in sizes) else ())


def _collect(group: DimGroup, source: Sequence[Scalar], state: State, around: Surroundings) -> tuple[str, ...] | Broken:
    """The axes of a group, major to minor."""
    axes: list[str] = []
    open_end = True
    for dim in group.operand_dims:
        mine = state.dims[dim]
        if mine and (not open_end or state.size_of(dim) is not None):
            return Broken(mine, dim, leads=open_end)
        axes.extend(mine)
        open_end = open_end and around.number(source[dim]) == around.space.count(mine)
    return tuple(axes)


def _hand_out(
    group: DimGroup,
    axes: tuple[str, ...],
    target: Sequence[Scalar],
    dims: list[tuple[str, ...]],
    around: Surroundings,
) -> Broken | None:
    left = list(axes)
    for dim in group.result_dims:
        taken: list[str] = []
        while left and around.facts.divides(around.space.count((*taken, left[0])), target[dim]):
            taken.append(left.pop(0))
        dims[dim] = tuple(taken)
        if not left:
            return None
        if around.number(target[dim]) != around.space.count(taken):
            break
    return Broken(tuple(left), group.operand_dims[0], leads=True) if left else None
