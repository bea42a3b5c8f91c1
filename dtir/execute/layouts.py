"""Layouts of outputs from the same module before it was partitioned: there the text still states them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from dtir.execute.data import output_leaves
from dtir.execute.placement import Placement, PlacementError
from dtir.execute.steps import ExecPlan
from dtir.ir.ids import ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Checked, Err, Ok


def layouts_from(whole: DistributedTaskIR, plan: ExecPlan) -> Checked[dict[int, Placement]]:
    """Layouts of a plan's outputs, by number, as the program before partitioning states them.

    Args:
        whole: the program before partitioning.
        plan: the plan of the partitioned program.

    Returns:
        `Err` when the two do not belong together.
    """
    reason = _mismatch(whole, plan)
    if reason is not None:
        return Err(
            DiagnosticSet.of(
                Diagnostic(
                    "run.layouts",
                    f"program {whole.name} is not what {plan.program.name} was made from: {reason}",
                    ("outputs",),
                    hint="name the dump of the same module made just before partitioning",
                )
            )
        )
    values = {value.id: value for value in whole.values}
    found: dict[int, Placement] = {}
    for number, value in enumerate(_outputs(whole, values)):
        if not value.sharding.varying:
            try:
                found[number] = Placement.of(value, whole.mesh, whole.bindings)
            except PlacementError:
                continue
    return Ok(found)


def _outputs(program: DistributedTaskIR, values: Mapping[ValueId, DistributedValue]) -> list[DistributedValue]:
    """The outputs in the order of the source: a value that is returned twice stands twice."""
    listed = program.attributes.get("hlo.outputs")
    if isinstance(listed, tuple):
        return [values[program.outputs[number]] for number in cast("tuple[int, ...]", listed)]
    return [values[name] for name in program.outputs]


def _mismatch(whole: DistributedTaskIR, plan: ExecPlan) -> str | None:
    if whole.attributes.get("hlo.form") != "global":
        return "it is not a module before partitioning"
    if whole.mesh.size != plan.ranks:
        return f"it is for {whole.mesh.size} ranks, the program has {plan.ranks}"
    values = {value.id: value for value in whole.values}
    if len(whole.inputs) != len(plan.main.inputs):
        return f"it has {len(whole.inputs)} inputs, the program {len(plan.main.inputs)}"
    for number, (name, slot) in enumerate(zip(whole.inputs, plan.main.inputs, strict=True)):
        mine, theirs = plan.main.slots[slot], values[name]
        if not _same_input(mine.placement, theirs) or mine.value.type.dtype != theirs.type.dtype:
            return f"input {number} is {theirs.type.dtype}{list(theirs.type.shape)}, the program's {list(mine.placement.shape)}"
    leaves, outputs = output_leaves(plan), _outputs(whole, values)
    if len(leaves) != len(outputs):
        return f"it has {len(outputs)} outputs, the program {len(leaves)}"
    for number, (slot, value) in enumerate(zip(leaves, outputs, strict=True)):
        mine = plan.main.slots[slot]
        if mine.value.type.dtype != value.type.dtype or len(mine.placement.shape) != len(value.type.shape):
            return f"output {number} is {value.type.dtype} of {len(value.type.shape)} dims there"
    return None


def _same_input(placement: Placement, value: DistributedValue) -> bool:
    """Equal shapes, or the shape whose shards are padded to those that the partitioned program has."""
    if len(placement.shape) != len(value.type.shape):
        return False
    return all(
        isinstance(extent, int)
        and (extent == padded or -(-extent // placement.shards(dim)) * placement.shards(dim) == padded)
        for dim, (padded, extent) in enumerate(zip(placement.shape, value.type.shape, strict=True))
    )
