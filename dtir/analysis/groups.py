"""Which ranks a collective joins: the ordered member lists of its groups.

Groups that are fibres of mesh axes are never stored: a list of them is a formula, so that a collective over a million
ranks costs as much as one over two.

>>> from dtir.ir.collectives import AllReduce
>>> from dtir.ir.mesh import LogicalMesh, MeshAxis
>>> from dtir.ir.reductions import ReductionKind
>>> mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4)))
>>> spec = AllReduce(tuple(range(8)), 64, ReductionKind.SUM, axes=("tp",))
>>> [tuple(group) for group in groups_of(spec, mesh)]
[(0, 1, 2, 3), (4, 5, 6, 7)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)
from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import RankRange, rank_set

Group: TypeAlias = Sequence[int]
Groups: TypeAlias = Sequence[Group]


@dataclass(frozen=True, slots=True)
class AxisFibres(Sequence[Group]):
    """The groups of a mesh along some axes, each computed when asked for.

    Args:
        sizes: sizes of the axes that vary inside a group, in listed order: the last varies fastest.
        strides: rank distance of one step along each of them.
        other_sizes: sizes of the remaining axes, in mesh order; they number the groups, the last fastest.
        other_strides: rank distance of one step along each of those.

    Raises:
        IndexError: a group index outside the range.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    other_sizes: tuple[int, ...]
    other_strides: tuple[int, ...]

    @property
    def group_size(self) -> int:
        return math.prod(self.sizes)

    def __len__(self) -> int:
        return math.prod(self.other_sizes)

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> Groups: ...
    def __getitem__(self, index: int | slice) -> Group | Groups:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        first = _offset(index % len(self), self.other_sizes, self.other_strides)
        return _members(first, self.sizes, self.strides)


def _offset(number: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Rank distance of the position that `number` has when the last axis varies fastest."""
    offset = 0
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        number, coordinate = divmod(number, size)
        offset += coordinate * stride
    return offset


def _members(first: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Group:
    moving = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
    if not moving:
        return (first,)
    if len(moving) == 1:
        size, stride = moving[0]
        return RankRange(first, first + size * stride, stride)
    return tuple(first + _offset(position, sizes, strides) for position in range(math.prod(sizes)))


def axis_fibres(mesh: LogicalMesh, axes: Sequence[str]) -> AxisFibres:
    """The groups of ranks that differ only along `axes`, members in row-major order of the axes as listed.

    Raises:
        KeyError: the mesh has no such axis.
    """
    strides: dict[str, int] = {}
    stride = 1
    for axis in reversed(mesh.axes):
        strides[axis.name] = stride
        stride *= axis.size
    others = [axis for axis in mesh.axes if axis.name not in axes]
    return AxisFibres(
        tuple(mesh.axis_size(name) for name in axes),
        tuple(strides[name] for name in axes),
        tuple(axis.size for axis in others),
        tuple(strides[axis.name] for axis in others),
    )


def _fibres_within(fibres: AxisFibres, participants: Group, size: int) -> Groups:
    """The fibres that `participants` fill; all of them when everybody takes part."""
    if len(participants) == size:
        return fibres
    inside = rank_set(participants)
    # Found from the participants, not from the fibres: the cost is that of what the program names.
    firsts: dict[int, None] = {}
    for rank in participants:
        firsts[rank - _place(rank, fibres)] = None
    groups = [_members(first, fibres.sizes, fibres.strides) for first in sorted(firsts)]
    return tuple(group for group in groups if all(rank in inside for rank in group))


def _place(rank: int, fibres: AxisFibres) -> int:
    """Rank distance from the first member of its fibre."""
    return sum(rank // stride % size * stride for size, stride in zip(fibres.sizes, fibres.strides, strict=True))


def groups_of(spec: CollectiveSpecVariant, mesh: LogicalMesh) -> Groups | None:
    """The groups of a collective, each an ordered member list; of a permute its (source, destination) pairs.

    Returns:
        None when the collective names an axis that the mesh does not have (the verifier says so).
    """
    match spec:
        case CollectivePermute(pairs=pairs):
            return pairs
        case AllReduce() | ReduceScatter() | AllGather() | AllToAll() | Broadcast():
            if spec.groups:
                return spec.groups
            if not spec.axes:
                return (spec.participants,)
            if set(spec.axes) - set(mesh.axis_names):
                return None
            return _fibres_within(axis_fibres(mesh, spec.axes), spec.participants, mesh.size)


def group_size_of(groups: Groups) -> int | None:
    """Members of every group; None when the groups differ in size or there is none."""
    if isinstance(groups, AxisFibres):
        return groups.group_size
    sizes = {len(group) for group in groups}
    return sizes.pop() if len(sizes) == 1 else None


def member_count(groups: Groups) -> int:
    """Members of all groups together."""
    return len(groups) * groups.group_size if isinstance(groups, AxisFibres) else sum(len(group) for group in groups)
