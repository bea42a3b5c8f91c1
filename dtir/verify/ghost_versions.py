"""Ghosts of buffers that are updated in place: their version against that of the interior.

A write to a resource makes its interior newer; a halo exchange that touches it brings the ghosts up to the interior. A
task that reads beyond its block reads both.
"""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.flow import Flow
from dtir.ir.tasks import DistributedTask, LocalCompute, Reshard, ReshardKind
from dtir.ir.types import EffectKind
from dtir.ops import OpCall, OpError, find_op, op_attributes
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import finding, task_name, task_path

_TOUCHES = frozenset({EffectKind.READ, EffectKind.WRITE})


def stale_reads(flow: Flow) -> Iterator[Diagnostic]:
    """Tasks that read ghosts of a resource which an update has left behind, in task order."""
    exchanged = {
        effect.resource
        for task in flow.scope.tasks
        if _exchanges(task)
        for effect in task.effects
        if effect.kind in _TOUCHES
    }
    if not exchanged:
        return
    newer: dict[str, int] = {}
    for index, task in enumerate(flow.scope.tasks):
        touched = [effect for effect in task.effects if effect.resource in exchanged]
        if _exchanges(task):
            for effect in touched:
                newer.pop(effect.resource, None)
            continue
        for effect in touched:
            writer = newer.get(effect.resource)
            if effect.kind is EffectKind.READ and writer is not None and _reads_around(flow, task):
                yield _finding(flow, index, task, effect.resource, writer)
                break
        for effect in touched:
            if effect.kind is EffectKind.WRITE:
                newer.setdefault(effect.resource, index)


def _exchanges(task: DistributedTask) -> bool:
    return isinstance(task.body, Reshard) and task.body.kind is ReshardKind.HALO


def _reads_around(flow: Flow, task: DistributedTask) -> bool:
    """True when the task's operator reads beyond its block."""
    operator = find_op(task.operation) if isinstance(task.body, LocalCompute) else None
    if operator is None or not task.inputs or not task.outputs:
        return False
    shapes = [flow.scope.values[flow.position[item]].type.shape for item in (*task.operand_values, *task.outputs)]
    count = len(task.operand_values)
    try:
        return operator.reach(OpCall(tuple(shapes[:count]), tuple(shapes[count:]), op_attributes(task))) is not None
    except OpError:
        return False


def _finding(flow: Flow, index: int, task: DistributedTask, resource: str, writer: int) -> Diagnostic:
    update = flow.scope.tasks[writer]
    return finding(
        "halo.stale",
        f"{task_name(task)} reads ghosts of {resource}, which {task_name(update)} has updated since the last exchange",
        task_path(flow, index),
        hint=f"exchange the ghosts of {resource} after {task_name(update)}",
        subject=(str(task.id), str(update.id), resource),
        related=(Related(f"updated by {task_name(update)}", task_path(flow, writer)),),
    )
