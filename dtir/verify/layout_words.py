"""Words that several families use: where a deviation lies, which repair a layout calls for."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.analysis.deviations import Deviation
from dtir.analysis.flow import Flow
from dtir.analysis.states import Pending, Split, State
from dtir.ir.ids import ValueId
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Related
from dtir.verify.context import task_name, value_name, value_path


def operand_value(flow: Flow, index: int, item: Deviation) -> DistributedValue | None:
    """The operand that a deviation of a task speaks of."""
    task = flow.scope.tasks[index]
    operands = task.operand_values
    if item.operand is None or item.operand >= len(operands):
        return None
    return _value(flow, operands[item.operand])


def result_value(flow: Flow, index: int, item: Deviation) -> DistributedValue | None:
    """The result that a deviation of a task speaks of; the only one when it does not say."""
    outputs = flow.scope.tasks[index].outputs
    place = item.result if item.result is not None else 0 if len(outputs) == 1 else None
    return None if place is None or place >= len(outputs) else _value(flow, outputs[place])


def _value(flow: Flow, identifier: ValueId) -> DistributedValue | None:
    place = flow.position.get(identifier)
    return None if place is None else flow.scope.values[place]


def subjects(
    task: DistributedTask | None, values: Sequence[DistributedValue | None], names: Sequence[str]
) -> tuple[str, ...]:
    """Ids of what a finding is about, then the axes it names."""
    found = [str(task.id)] if task is not None else []
    found += [str(value.id) for value in values if value is not None]
    return (*found, *names)


def related_values(flow: Flow, *values: tuple[str, DistributedValue | None]) -> tuple[Related, ...]:
    """Places of values with labels."""
    return tuple(
        Related(f"{label} {value_name(value)}", value_path(flow, flow.position[value.id]))
        for label, value in values
        if value is not None
    )


def reduction_call(op: str, axes: Sequence[str]) -> str:
    """A reduction as a hint writes it: ``all_reduce(sum) over tp``."""
    return f"all_reduce({op}) over {', '.join(axes)}"


def after(task: DistributedTask) -> str:
    """A place in the task list."""
    return f"after {task_name(task)}"


def conversion(found: State | None, wanted: State | None, axes: Sequence[str], task: DistributedTask) -> str:
    """The collective that brings a layout into another along some axes."""
    names = ", ".join(axes)
    if found is None or wanted is None or not axes:
        return f"declare the layout that follows, or reshard {after(task)}"
    have, want = found.letter(axes[0]), wanted.letter(axes[0])
    match have, want:
        case Split(dim=dim), Split(dim=other) if dim != other:
            call = f"all_to_all over {names} (concat dim {dim}, split dim {other})"
        case Split(dim=dim), _ if not isinstance(want, Split):
            call = f"all_gather over {names} on dim {dim}"
        case Pending(op=op), Split(dim=dim):
            call = f"reduce_scatter({op.value}) over {names} on dim {dim}"
        case Pending(op=op), _:
            call = reduction_call(op.value, axes)
        case _, Split(dim=dim):
            return f"keep only the own block {after(task)} (shard dim {dim} over {names}), or declare it replicated"
        case _:
            return f"declare the layout that follows, or reshard {after(task)}"
    return f"insert {call} {after(task)}, or declare the layout that follows"


SUM = ReductionKind.SUM
