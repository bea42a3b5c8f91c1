"""Equal copies among per-rank data, as far as they can be derived (infer mode)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.uniform import uniform_axes
from dtir.ir.collectives import AllGather, AllReduce, Broadcast
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import Collective
from dtir.schema.diagnostics import Diagnostic
from dtir.verify.context import Context, finding, task_name, task_path, value_name
from dtir.verify.layout_words import related_values, subjects


def redundant_collectives(context: Context) -> Iterator[Diagnostic]:
    """Reductions and gathers over data that are derived to be equal on all ranks of every group.

    The layouts are inferred, and the operation may be meant (a sum of copies that a division follows), so that this is a
    warning whatever the operator.
    """
    if context.mode != "infer" or not any(value.sharding.varying for value in context.program.all_values()):
        return
    uniform = uniform_axes(context.program, context.reader)
    if uniform is None:
        return
    for flow, known in zip(context.flows, uniform.scopes, strict=True):
        for index, task in enumerate(flow.scope.tasks):
            if not isinstance(task.body, Collective) or not isinstance(
                task.body.spec, (AllReduce, AllGather, Broadcast)
            ):
                continue
            spec = task.body.spec
            axes = context.reader.axes(spec)
            if not axes or not task.inputs or task.inputs[0] not in known:
                continue
            own = uniform.bits(axes)
            if any(known.get(item, 0) & own != own for item in task.inputs):
                continue
            value = flow.scope.values[flow.position[task.inputs[0]]]
            name, size = value_name(value), context.around.space.count(axes)
            if isinstance(spec, AllReduce) and spec.reduction is ReductionKind.SUM:
                what, hint = f"its sum is {size} times the value", f"multiply {name} by {size} locally, or by nothing"
            elif isinstance(spec, AllGather):
                what, hint = f"its gather repeats it {size} times", f"repeat {name} locally, or read it"
            else:
                what, hint = "the result is the value", f"delete {task_name(task)} and read {name}"
            yield finding(
                "redundant.collective",
                f"{task_name(task)}: {name} is the same on all ranks along {context.axes_text(axes)} (inferred): {what}",
                task_path(flow, index),
                hint=hint,
                subject=subjects(task, [value], axes),
                related=related_values(flow, ("operand", value)),
            )
