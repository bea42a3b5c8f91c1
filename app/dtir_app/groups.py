"""Groups of ranks in terms of mesh axes: which axes a listed group spans, and what each group is called.

HLO lists groups as rank numbers; a person thinks "the tp groups". The axes are inferred only where every group is a whole
fibre of them, and the result says that it was inferred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dtir.analysis.groups import AxisFibres, Groups, groups_of
from dtir.ir.collectives import CollectivePermute, CollectiveSpecVariant
from dtir.ir.mesh import LogicalMesh

INFER_LIMIT = 65_536
"""Members of listed groups that are looked at; beyond it no axes are inferred."""


@dataclass(frozen=True, slots=True)
class GroupAxes:
    """Which mesh axes the groups of a collective span.

    Args:
        axes: axis names in mesh order; empty when no set of axes describes the groups.
        inferred: False when the program names the axes itself.
        whole: every group is a whole fibre of the axes (always true for named axes of full participation).
    """

    axes: tuple[str, ...] = ()
    inferred: bool = False
    whole: bool = False


def strides_of(mesh: LogicalMesh) -> dict[str, int]:
    """Rank distance of one step along each axis."""
    found: dict[str, int] = {}
    stride = 1
    for axis in reversed(mesh.axes):
        found[axis.name] = stride
        stride *= axis.size
    return found


def _varying(mesh: LogicalMesh, group: Sequence[int]) -> tuple[str, ...]:
    """Axes along which the members of a group differ; empty when a rank is outside the mesh."""
    size, strides = mesh.size, strides_of(mesh)
    if any(not 0 <= rank < size for rank in group):
        return ()
    return tuple(axis.name for axis in mesh.axes if len({rank // strides[axis.name] % axis.size for rank in group}) > 1)


def group_axes(spec: CollectiveSpecVariant, mesh: LogicalMesh) -> GroupAxes:
    """The axes of a collective's groups: as the program names them, else inferred from the members.

    For a permute: the axes along which a source differs from its destination.
    """
    if isinstance(spec, CollectivePermute):
        return GroupAxes(_permute_axes(spec, mesh), inferred=True)
    if spec.axes:
        named = tuple(axis.name for axis in mesh.axes if axis.name in spec.axes)
        return GroupAxes(named, whole=len(named) == len(spec.axes))
    groups = groups_of(spec, mesh)
    return infer_axes(groups, mesh) if groups else GroupAxes()


def _permute_axes(spec: CollectivePermute, mesh: LogicalMesh) -> tuple[str, ...]:
    if len(spec.pairs) > INFER_LIMIT:
        return ()
    moved = {name for pair in spec.pairs for name in _varying(mesh, pair)}
    return tuple(axis.name for axis in mesh.axes if axis.name in moved)


def infer_axes(groups: Groups, mesh: LogicalMesh) -> GroupAxes:
    """The axes whose fibres the groups are, whatever the order of members and groups.

    >>> from dtir.ir.mesh import MeshAxis
    >>> mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 2)))
    >>> infer_axes(((0, 2), (1, 3)), mesh)
    GroupAxes(axes=('dp',), inferred=True, whole=True)
    >>> infer_axes(((0, 3), (1, 2)), mesh).axes
    ()
    """
    if isinstance(groups, AxisFibres) or not groups:
        return GroupAxes()
    size = len(groups[0])
    if size * len(groups) > INFER_LIMIT or any(len(group) != size for group in groups):
        return GroupAxes()
    axes = _varying(mesh, groups[0])
    if not axes and size > 1:
        return GroupAxes()
    if math.prod(mesh.axis_size(name) for name in axes) != size:
        return GroupAxes()
    if any(len(set(group)) != size or not set(_varying(mesh, group)) <= set(axes) for group in groups):
        return GroupAxes()
    if any(not 0 <= rank < mesh.size for group in groups for rank in group):
        return GroupAxes()
    return GroupAxes(axes, inferred=True, whole=True)


def group_label(group: Sequence[int], axes: Sequence[str], mesh: LogicalMesh) -> str:
    """What a group is called: its axes and its fixed coordinates, ``tp group @ dp=0``.

    Without axes, or for a group that is no fibre of them, the label is empty.
    """
    if not axes or not group or not 0 <= group[0] < mesh.size:
        return ""
    place = mesh.coordinates(group[0])
    fixed = [
        f"{axis.name}={coordinate}"
        for axis, coordinate in zip(mesh.axes, place, strict=True)
        if axis.name not in axes and axis.size > 1
    ]
    name = "×".join(axes)
    return f"{name} group @ {', '.join(fixed)}" if fixed else f"{name} group"
