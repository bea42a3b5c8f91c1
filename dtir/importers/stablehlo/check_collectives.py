"""What Shardy's verifier demands of its collectives: the result's sharding is computed from operand and axes, and compared.

| operation | the result's dims |
|---|---|
| ``all_gather``, ``sharded_to_unreduced`` | the operand's without the axes, which are the last ones of their dim |
| ``all_slice``, ``reduce_scatter`` | the operand's with the axes behind them |
| ``all_to_all`` | the axes go from the end of one dim to the end of another |
| ``all_reduce``, ``replicated_to_unreduced`` | the operand's |
| ``collective_permute`` | as many shards per dim as the operand has |

Source: Shardy's documentation and public verification tests (openxla/shardy, dialect/sdy/ir/test/collective_verification.mlir).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import AxisRef
from dtir.importers.stablehlo.axis_lists import (
    canonical,
    first_overlap,
    joined,
    ref_text,
    shards,
    text,
    without_suffix,
)
from dtir.importers.stablehlo.check_sharding import Fault, check_axes, check_order
from dtir.importers.stablehlo.lists import closing
from dtir.importers.stablehlo.sdy import DimSharding, SdyMesh, SdySharding, parse_dims, parse_refs

Dims = Sequence[tuple[AxisRef, ...]]
_MOVE = re.compile(r"\{([^{}]*)\}\s*:\s*(-?\d{1,9})\s*->\s*(-?\d{1,9})")
_REDUCTION = re.compile(r"\s*(?:#sdy<reduction_op\s*)?([a-z]\w*)")
COLLECTIVES = frozenset(
    {
        "sdy.all_gather",
        "sdy.all_slice",
        "sdy.all_to_all",
        "sdy.all_reduce",
        "sdy.collective_permute",
        "sdy.reduce_scatter",
        "sdy.sharded_to_unreduced",
        "sdy.replicated_to_unreduced",
    }
)

_FROM_WHOLE = frozenset({"sdy.all_slice", "sdy.all_reduce", "sdy.reduce_scatter"})
"""What may take a value without a sharding: one that is whole everywhere."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A collective with what it is checked against."""

    name: str
    axes: str
    source: SdySharding
    result: SdySharding
    mesh: SdyMesh

    @property
    def before(self) -> list[tuple[AxisRef, ...]]:
        """Axes of the operand's dims."""
        return [dim.axes for dim in self.source.dims]

    @property
    def after(self) -> list[tuple[AxisRef, ...]]:
        """Axes of the result's dims."""
        return [dim.axes for dim in self.result.dims]


def check_collective(
    name: str, axes: str, source: SdySharding | None, result: SdySharding, meshes: Mapping[str, SdyMesh]
) -> Fault | None:
    """What is wrong with a collective whose shardings are right by themselves.

    Args:
        name: of the operation.
        axes: text between its name and its operand.
        source: sharding of the operand, None without one.
        result: sharding of the result.
        meshes: the meshes of the module.
    """
    if source is None:
        if name not in _FROM_WHOLE:
            return Fault("shardy.no_sharding", "its operand has no sharding")
        source = SdySharding(result.mesh, result.inline, tuple(DimSharding(()) for _ in result.dims))
    before, after = _mesh(source, meshes), _mesh(result, meshes)
    if before is None or after is None:
        return None
    fault = _check_meshes(name, source, result, before, after)
    if fault is not None:
        return fault
    checked = Checked(name, axes, source, result, after)
    try:
        match name:
            case "sdy.all_gather" | "sdy.sharded_to_unreduced" | "sdy.all_slice" | "sdy.reduce_scatter":
                return _along_dims(checked)
            case "sdy.all_to_all":
                return _all_to_all(checked)
            case "sdy.collective_permute":
                return _permute(checked)
            case "sdy.all_reduce":
                return _all_reduce(checked)
            case "sdy.replicated_to_unreduced":
                return _to_unreduced(checked)
            case _:
                return None
    except HloSyntaxError as error:
        return Fault("mlir.sharding", error.message)


def _mesh(sharding: SdySharding, meshes: Mapping[str, SdyMesh]) -> SdyMesh | None:
    return sharding.inline if sharding.mesh is None else meshes.get(sharding.mesh)


def _check_meshes(name: str, source: SdySharding, result: SdySharding, before: SdyMesh, after: SdyMesh) -> Fault | None:
    pair = f"operand {source.mesh_text()}, result {result.mesh_text()}"
    if name == "sdy.collective_permute":
        if before.axes != after.axes:
            return Fault("shardy.mesh_mismatch", f"the meshes have different axes: {pair}")
        if source.mesh != result.mesh and before.device_ids == after.device_ids:
            return Fault("shardy.mesh_mismatch", f"two meshes of the same devices in the same order: {pair}")
        return None
    if before != after:
        return Fault("shardy.mesh_mismatch", f"the meshes differ: {pair}")
    return None


def _along_dims(checked: Checked) -> Fault | None:
    mesh = checked.mesh
    start = checked.axes.find("[")
    if start < 0:
        return Fault("mlir.missing_attribute", "no axes are stated")
    stated = [dim.axes for dim in parse_dims(checked.axes[start + 1 : closing(checked.axes, start) - 1])]
    if len(stated) != len(checked.after):
        return Fault("sharding.rank", f"axes for {len(stated)} dims, the result has {len(checked.after)}")
    fault = check_axes(stated, mesh)
    if fault is not None:
        return fault
    expected: list[tuple[AxisRef, ...]] = []
    gathers = checked.name in ("sdy.all_gather", "sdy.sharded_to_unreduced")
    for number, (refs, axes) in enumerate(zip(checked.before, stated, strict=False)):
        if gathers:
            rest = without_suffix(refs, axes, mesh)
            if isinstance(rest, AxisRef):
                message = f"axis {ref_text(rest)} is not at the end of dim {number} of the operand, {text(refs)}"
                return Fault("collective.gather_dim", message)
            expected.append(rest)
        else:
            expected.append(joined((*refs, *axes), mesh))
    fault = _compare(checked, expected)
    if fault is not None:
        return fault
    moved = [ref for axes in stated for ref in axes]
    if checked.name == "sdy.reduce_scatter":
        return _check_reduction(checked, moved)
    if checked.name == "sdy.sharded_to_unreduced":
        return _check_unreduced(checked, moved)
    return None


def _compare(checked: Checked, expected: Dims) -> Fault | None:
    mesh = checked.mesh
    for number, (wanted, found) in enumerate(zip(expected, checked.after, strict=False)):
        if joined(wanted, mesh) != joined(found, mesh):
            message = f"dim {number} of the result is sharded by {text(found)}, {text(wanted)} follows from the operand"
            return Fault("sharding.mismatch", message)
    return None


def _all_to_all(checked: Checked) -> Fault | None:
    mesh = checked.mesh
    moves = [(parse_refs(refs)[0], int(source), int(target)) for refs, source, target in _MOVE.findall(checked.axes)]
    if not moves:
        return Fault("collective.all_to_all_dims", "nothing is moved: the list of moves is empty")
    rank = len(checked.after)
    seen: set[int] = set()
    fault = check_axes([refs for refs, _, _ in moves], mesh)
    if fault is not None:
        return fault
    for refs, source, target in moves:
        if not refs:
            return Fault("collective.all_to_all_dims", f"a move from dim {source} to {target} names no axes")
        for what, dim in (("source", source), ("target", target)):
            if not 0 <= dim < rank:
                return Fault("collective.all_to_all_dims", f"{what} dim {dim} is outside of 0..{rank - 1}")
            if dim in seen:
                return Fault("collective.all_to_all_dims", f"dim {dim} is source or target twice")
            seen.add(dim)
    sources = [source for _, source, _ in moves]
    if sources != sorted(sources):
        return Fault("collective.all_to_all_dims", f"source dims {sources} are not ascending")
    expected = list(checked.before)
    for refs, source, target in moves:
        rest = without_suffix(expected[source], refs, mesh) if source < len(expected) else refs[0]
        if isinstance(rest, AxisRef):
            message = f"axis {ref_text(rest)} is not at the end of dim {source} of the operand"
            return Fault("collective.all_to_all_dims", message)
        expected[source] = rest
        expected[target] = joined((*expected[target], *refs), mesh)
    return _compare(checked, expected)


def _permute(checked: Checked) -> Fault | None:
    for number, (before, after) in enumerate(zip(checked.before, checked.after, strict=False)):
        wanted, found = shards(before, checked.mesh), shards(after, checked.mesh)
        if wanted != found:
            message = f"dim {number} has {found} shards in the result, {wanted} in the operand"
            return Fault("sharding.mismatch", message)
    return None


def _set(checked: Checked) -> tuple[AxisRef, ...]:
    start = checked.axes.find("{")
    if start < 0:
        return ()
    return parse_refs(checked.axes[start + 1 : closing(checked.axes, start) - 1])[0]


def _all_reduce(checked: Checked) -> Fault | None:
    mesh, axes = checked.mesh, _set(checked)
    fault = check_axes([axes], mesh) or check_order(axes, mesh, "reduction")
    if fault is not None:
        return fault
    held = [*(ref for refs in checked.before for ref in refs), *checked.source.replicated]
    shared = first_overlap(axes, held, mesh)
    if shared is not None:
        message = f"axis {ref_text(shared)} is reduced, but the operand is sharded or replicated along it"
        return Fault("collective.reduce_sharded", message)
    shared = first_overlap(axes, checked.result.unreduced, mesh)
    if shared is not None:
        message = f"axis {ref_text(shared)} is reduced, but the result is still unreduced along it"
        return Fault("collective.incomplete_axes", message)
    fault = _compare(checked, checked.before) or _check_reduction(checked, axes)
    if fault is not None:
        return fault
    added = [ref for ref in checked.result.unreduced if first_overlap((ref,), checked.source.unreduced, mesh) is None]
    if added:
        message = f"the result is unreduced along {ref_text(added[0])}, the operand is not"
        return Fault("partial.fabricated", message)
    return None


def _reduction(checked: Checked) -> str:
    match = _REDUCTION.match(checked.axes)
    return match.group(1) if match is not None else "sum"


def _check_reduction(checked: Checked, axes: Sequence[AxisRef]) -> Fault | None:
    """The operation that an operand is unreduced by is the one that reduces it."""
    pending = checked.source.reduction or "sum"
    if not axes or not checked.source.unreduced or pending == _reduction(checked):
        return None
    return Fault("collective.wrong_reduction", f"reduces by {_reduction(checked)} what is unreduced by {pending}")


def _check_unreduced(checked: Checked, axes: Sequence[AxisRef]) -> Fault | None:
    """The result is unreduced along the operand's axes and those of the operation, by sum."""
    mesh = checked.mesh
    if checked.result.unreduced and (checked.result.reduction or "sum") != "sum":
        message = f"makes a value that is unreduced by {checked.result.reduction}; zeros keep only a sum"
        return Fault("collective.wrong_reduction", message)
    wanted = canonical((*checked.source.unreduced, *axes), mesh)
    if canonical(checked.result.unreduced, mesh) != wanted:
        message = f"the result is unreduced along {text(checked.result.unreduced)}, wanted {text(wanted)}"
        return Fault("sharding.mismatch", message)
    return None


def _to_unreduced(checked: Checked) -> Fault | None:
    mesh, axes = checked.mesh, _set(checked)
    if not axes:
        return Fault("mlir.missing_attribute", "no axes are stated")
    fault = check_axes([axes], mesh) or check_order(axes, mesh, "its")
    if fault is not None:
        return fault
    for what, held in (
        ("sharded", [ref for refs in checked.before for ref in refs]),
        ("unreduced", list(checked.source.unreduced)),
    ):
        shared = first_overlap(axes, held, mesh)
        if shared is not None:
            message = f"axis {ref_text(shared)} is to become unreduced, but the operand is {what} along it"
            return Fault("collective.reduce_sharded", message)
    return _compare(checked, checked.before) or _check_unreduced(checked, axes)
