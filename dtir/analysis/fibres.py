"""Which mesh axes a list of groups stands for: the axes whose fibres the groups are, sub-axes included.

A group along a part of an axis needs that axis factored, as Shardy writes it: ``x:(k)m`` is the sub-axis of size m that
lies below a part of size k. The factoring is done once for the whole program (`factor_mesh`), so that every later rule
speaks of whole axes of a `Space`.

>>> from dtir.ir.mesh import LogicalMesh, MeshAxis
>>> mesh = LogicalMesh("m", (MeshAxis("x", 8),))
>>> spans = spans_of_groups(mesh, ((0, 1), (2, 3), (4, 5), (6, 7)))
>>> spans
(AxisSpan(axis='x', inner=1, size=2),)
>>> space, _ = factor_mesh(mesh, [spans])
>>> space.axes, space.named(spans)
(('x:(1)4', 'x:(4)2'), ('x:(4)2',))
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import RankRange


@dataclass(frozen=True, slots=True)
class AxisSpan:
    """A part of an axis.

    Args:
        axis: the axis of the mesh.
        inner: how many positions of the axis lie below one step of the part (1: the part is the minor end).
        size: positions of the part.
    """

    axis: str
    inner: int
    size: int


@dataclass(frozen=True, slots=True)
class Space:
    """A mesh whose axes are factored as far as the groups of the program need it; axes of size 1 are left out.

    Args:
        mesh: the mesh as declared.
        axes: names of the factors, most significant first.
        sizes: their sizes.
        strides: rank distance of one step along each.
        parts: for every declared axis its factors, major to minor (none for an axis of size 1).
    """

    mesh: LogicalMesh
    axes: tuple[str, ...]
    sizes: Mapping[str, int] = field(repr=False)
    strides: Mapping[str, int] = field(repr=False)
    parts: Mapping[str, tuple[str, ...]] = field(repr=False)

    def expand(self, axes: Iterable[str]) -> tuple[str, ...]:
        """Declared axes as factors, in the given order; axes that the mesh lacks are left out."""
        return tuple(part for axis in axes for part in self.parts.get(axis, ()))

    def count(self, axes: Iterable[str]) -> int:
        """Number of coordinates of some factors together."""
        return math.prod(self.sizes[axis] for axis in axes)

    def coordinate(self, rank: int, axis: str) -> int:
        return rank // self.strides[axis] % self.sizes[axis]

    def position(self, rank: int, axes: Iterable[str]) -> int:
        """Row-major position of a rank along some factors, major to minor."""
        place = 0
        for axis in axes:
            place = place * self.sizes[axis] + self.coordinate(rank, axis)
        return place

    def ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """The factors in mesh order."""
        wanted = set(axes)
        return tuple(axis for axis in self.axes if axis in wanted)

    def named(self, spans: Sequence[AxisSpan]) -> tuple[str, ...] | None:
        """The factors that some parts of axes are; None when the factoring cut them elsewhere."""
        found: list[str] = []
        for span in spans:
            stride = _axis_stride(self.mesh, span.axis) * span.inner
            members: list[str] = []
            for factor in reversed(self.parts.get(span.axis, ())):
                if stride <= self.strides[factor] < stride * span.size:
                    members.append(factor)
            if self.count(members) != span.size or (members and self.strides[members[0]] != stride):
                return None
            found.extend(reversed(members))
        return tuple(found)


def _axis_stride(mesh: LogicalMesh, name: str) -> int:
    stride = 1
    for axis in reversed(mesh.axes):
        if axis.name == name:
            return stride
        stride *= axis.size
    raise KeyError(name)


# -- from groups to parts of axes ----------------------------------------------------------------------------------


def _levels(group: Sequence[int]) -> list[tuple[int, int]] | None:
    """A group as nested runs, major to minor: (length, rank distance); None when it is no such lattice."""
    if isinstance(group, RankRange):
        return [(len(group), group.step)] if len(group) > 1 else []
    offsets = [rank - group[0] for rank in group]
    found: list[tuple[int, int]] = []
    while len(offsets) > 1:
        step = offsets[1]
        if step <= 0:
            return None
        length = 2
        while length < len(offsets) and offsets[length] == length * step:
            length += 1
        if len(offsets) % length:
            return None
        heads = offsets[::length]
        for index, head in enumerate(heads):
            run = offsets[index * length : (index + 1) * length]
            if any(value != head + place * step for place, value in enumerate(run)):
                return None
        found.append((length, step))
        offsets = heads
    found.reverse()
    return found


def _spans_of_run(mesh: LogicalMesh, length: int, stride: int) -> list[AxisSpan] | None:
    """A run of ranks as parts of axes, minor to major; None when it does not end where an axis allows a cut."""
    found: list[AxisSpan] = []
    axis_stride = 1
    for axis in reversed(mesh.axes):
        if length == 1:
            break
        if stride < axis_stride * axis.size and axis.size > 1:
            inner, rest = divmod(stride, axis_stride)
            if rest or inner == 0 or axis.size % inner:
                return None
            room = axis.size // inner
            size = min(length, room)
            if length % size or room % size:
                return None
            found.append(AxisSpan(axis.name, inner, size))
            length //= size
            stride *= size
        axis_stride *= axis.size
    return found if length == 1 else None


def spans_of_groups(mesh: LogicalMesh, groups: Sequence[Sequence[int]]) -> tuple[AxisSpan, ...] | None:
    """The parts of axes, major to minor, whose fibres the groups are, members in the order of those parts.

    Returns:
        None when the groups are no fibres; an empty tuple when every group has one member.
    """
    if not groups or any(len(group) != len(groups[0]) or not group for group in groups):
        return None
    levels = _levels(groups[0])
    if levels is None or any(max(group) >= mesh.size for group in groups if not isinstance(group, RankRange)):
        return None
    spans: list[AxisSpan] = []
    for length, stride in levels:
        run = _spans_of_run(mesh, length, stride)
        if run is None:
            return None
        spans.extend(reversed(run))
    if len({(span.axis, span.inner) for span in spans}) != len(spans):
        return None
    first = groups[0][0]
    offsets = None if isinstance(groups[0], RankRange) else [rank - first for rank in groups[0]]
    strides = {span: _axis_stride(mesh, span.axis) * span.inner for span in spans}
    for group in groups:
        if any(group[0] // strides[span] % span.size for span in spans):
            return None
        if not _same_offsets(group, groups[0], offsets):
            return None
    return tuple(spans)


def _same_offsets(group: Sequence[int], first: Sequence[int], offsets: list[int] | None) -> bool:
    if isinstance(group, RankRange) and isinstance(first, RankRange):
        return group.step == first.step
    wanted = [rank - first[0] for rank in first] if offsets is None else offsets
    return all(rank - group[0] == offset for rank, offset in zip(group, wanted, strict=True))


# -- factoring the mesh --------------------------------------------------------------------------------------------


def factor_mesh(mesh: LogicalMesh, wanted: Iterable[Sequence[AxisSpan]]) -> tuple[Space, bool]:
    """The mesh with its axes cut wherever some span begins or ends.

    Returns:
        The space, and whether all cuts fit together: an axis of 6 cannot be cut at 2 and at 3. Cuts that do not fit the
        earlier ones are left out; `Space.named` then answers None for their spans.
    """
    cuts: dict[str, set[int]] = {axis.name: {1, axis.size} for axis in mesh.axes}
    fits = True
    for spans in wanted:
        for span in spans:
            for point in (span.inner, span.inner * span.size):
                known = cuts[span.axis]
                if point not in known:
                    if all(point % other == 0 or other % point == 0 for other in known):
                        known.add(point)
                    else:
                        fits = False
    axes: list[str] = []
    sizes: dict[str, int] = {}
    strides: dict[str, int] = {}
    parts: dict[str, tuple[str, ...]] = {}
    stride = mesh.size
    for axis in mesh.axes:
        stride //= axis.size
        points = sorted(cuts[axis.name], reverse=True)
        names: list[str] = []
        for high, low in pairwise(points):
            # Named as Shardy does: the size of everything above, then the size of the part.
            name = axis.name if len(points) == 2 else f"{axis.name}:({axis.size // high}){high // low}"
            names.append(name)
            sizes[name] = high // low
            strides[name] = stride * low
        axes.extend(names)
        parts[axis.name] = tuple(names)
    return Space(mesh, tuple(axes), sizes, strides, parts), fits
