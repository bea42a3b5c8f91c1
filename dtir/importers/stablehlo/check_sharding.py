"""What Shardy's verifier demands of meshes and shardings.

A mesh: sizes from 1 up, names once, device ids that are 0..n-1 in some order.

A sharding, in this order, one finding each:

- its mesh exists;
- on a maximal mesh it has no dims and no axes; on a value that is no tensor likewise;
- it has as many dims as its tensor, which has a rank;
- an empty, closed dim has no priority;
- every axis is one of the mesh; a part of one begins at 1 or later, has a size above 1, is not the whole axis, and divides it;
- neighbours that could be written as one part are written as one;
- no axis, nor part of one, is named twice; an axis is not named both as a whole and in parts;
- replicated and unreduced axes come in the order of the mesh;
- no axis is bound by a manual computation around it.

Source: Shardy's documentation and public verification tests (openxla/shardy, dialect/sdy/ir/test).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dtir.importers.hlo.meshes import AxisRef
from dtir.importers.hlo.shapes import ArrayShape, Shape
from dtir.importers.stablehlo.axis_lists import overlap, ref_text, span
from dtir.importers.stablehlo.sdy import SdyMesh, SdySharding


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding: a code and what is wrong."""

    code: str
    message: str


def check_mesh(mesh: SdyMesh) -> Fault | None:
    """What is wrong with a mesh."""
    names: set[str] = set()
    for name, size in mesh.axes:
        if size < 1:
            return Fault("shardy.mesh", f'axis "{name}" has size {size}, wanted 1 or more')
        if name in names:
            return Fault("shardy.mesh", f'axis "{name}" is there twice')
        names.add(name)
    ids, count = mesh.device_ids, 1
    for _, size in mesh.axes:
        count *= size
    if any(number < 0 for number in ids):
        return Fault("shardy.mesh", f"device id {min(ids)} is negative")
    if ids and not mesh.axes and len(ids) > 1:
        return Fault("shardy.mesh", f"no axes, but {len(ids)} device ids; wanted one")
    if ids and mesh.axes and len(ids) != count:
        return Fault("shardy.mesh", f"the axes make {count} devices, device_ids lists {len(ids)}")
    if ids and mesh.axes and sorted(ids) != list(range(count)):
        return Fault("shardy.mesh", f"device_ids are not 0..{count - 1} in some order")
    return None


def check_sharding(
    sharding: SdySharding,
    shape: Shape | None,
    kind: str,
    meshes: Mapping[str, SdyMesh],
    manual: Sequence[str] = (),
) -> Fault | None:
    """What is wrong with a sharding.

    Args:
        sharding: the sharding.
        shape: of the value that has it; None for an operation without results.
        kind: the type as text.
        meshes: the meshes of the module.
        manual: axes that manual computations around it bind.
    """
    mesh = sharding.inline if sharding.mesh is None else meshes.get(sharding.mesh)
    if mesh is None:
        return Fault("shardy.unknown_mesh", f"unknown mesh @{sharding.mesh}")
    plain = not sharding.dims and not sharding.replicated and not sharding.unreduced
    if mesh.is_maximal:
        if plain:
            return None
        return Fault("shardy.maximal", f"mesh {sharding.mesh_text()} is one device: no dims and no axes are wanted")
    if shape is not None:
        if "tensor<*" in kind:
            return Fault("sharding.rank", f"{kind} has no rank; only ranked tensors have shardings")
        if not isinstance(shape, ArrayShape) or shape.dtype in ("token", "opaque"):
            if plain:
                return None
            return Fault("sharding.rank", f"{kind} has no dims: no dims and no axes are wanted")
        if len(sharding.dims) != len(shape.dims):
            return Fault("sharding.rank", f"the sharding has {len(sharding.dims)} dims, the tensor {len(shape.dims)}")
    for number, dim in enumerate(sharding.dims):
        if dim.priority is not None and not dim.axes and not dim.is_open:
            return Fault("shardy.priority", f"dim {number} is empty and closed, but has priority {dim.priority}")
    lists = (*(dim.axes for dim in sharding.dims), sharding.replicated, sharding.unreduced)
    fault = check_axes(lists, mesh)
    if fault is not None:
        return fault
    for name, refs in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        fault = check_order(refs, mesh, name)
        if fault is not None:
            return fault
    bound = next((ref.name for ref in sharding.used() if ref.name in manual), None)
    if bound is not None:
        return Fault("shardy.manual", f'axis "{bound}" is bound by a manual computation around it')
    return None


def check_axes(lists: Sequence[Sequence[AxisRef]], mesh: SdyMesh) -> Fault | None:
    """What is wrong with lists of axes of which none may be named twice."""
    sizes = dict(mesh.axes)
    for refs in lists:
        for ref in refs:
            if ref.name not in sizes:
                known = ", ".join(f'"{name}"' for name in sizes) or "none"
                return Fault("sharding.unknown_axis", f'unknown axis "{ref.name}" (the mesh has {known})')
            fault = _check_part(ref, sizes[ref.name])
            if fault is not None:
                return fault
        for left, right in pairwise(refs):
            if left.size is not None and right.size is not None and left.name == right.name \
                    and span(left, mesh)[1] == span(right, mesh)[0]:  # fmt: skip
                message = f"{ref_text(left)} and {ref_text(right)} follow each other and are one part"
                return Fault("shardy.sub_axis", message)
    seen: list[AxisRef] = []
    for ref in (ref for refs in lists for ref in refs):
        for other in seen:
            if ref.name != other.name:
                continue
            if ref == other:
                return Fault("sharding.axis_reuse", f"axis {ref_text(ref)} is named twice")
            if (ref.size is None) != (other.size is None):
                return Fault("sharding.axis_reuse", f'axis "{ref.name}" is named as a whole and in parts')
            if overlap(ref, other, mesh):
                return Fault("sharding.axis_reuse", f"{ref_text(other)} and {ref_text(ref)} overlap")
        seen.append(ref)
    return None


def _check_part(ref: AxisRef, whole: int) -> Fault | None:
    if ref.size is None:
        return None
    shown = ref_text(ref)
    if ref.pre < 1:
        return Fault("shardy.sub_axis", f"{shown} begins at {ref.pre}, wanted 1 or more")
    if ref.size <= 1:
        return Fault("shardy.sub_axis", f"{shown} has size {ref.size}, wanted more than 1")
    if ref.size == whole:
        return Fault("shardy.sub_axis", f"{shown} is the whole axis of size {whole}")
    if whole % (ref.pre * ref.size):
        return Fault(
            "shardy.sub_axis", f"{shown} ends at {ref.pre * ref.size}, which does not divide the axis of size {whole}"
        )
    return None


def check_order(refs: Sequence[AxisRef], mesh: SdyMesh, what: str) -> Fault | None:
    """Axes of a set come in the order of the mesh."""
    order = {name: place for place, (name, _) in enumerate(mesh.axes)}
    keys = [(order.get(ref.name, -1), span(ref, mesh)[0]) for ref in refs]
    if keys == sorted(keys):
        return None
    return Fault("shardy.axis_order", f"{what} axes are not in the order of the mesh")
