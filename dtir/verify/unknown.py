"""What was not judged: operators without a rule, calls that do not fit their operator (``verify.*``)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.deviations import Kind
from dtir.analysis.flow import Flow
from dtir.ops import similar_ops
from dtir.schema.diagnostics import Diagnostic, Severity
from dtir.verify.context import Context, finding, task_name, task_path


def unknown_operators(context: Context) -> Iterator[Diagnostic]:
    """Operators without a rule.

    - each is said once, with the number of tasks; nothing is concluded from their results.
    """
    found: dict[str, list[tuple[Flow, int]]] = {}
    for flow, index, _ in context.deviations(Kind.UNKNOWN_OP):
        found.setdefault(str(flow.scope.tasks[index].operation), []).append((flow, index))
    for name, places in found.items():
        flow, index = places[0]
        operation = flow.scope.tasks[index].operation
        close = similar_ops(operation.name, operation.dialect)
        count = f"{len(places)} tasks" if len(places) > 1 else "1 task"
        yield finding(
            "verify.unknown_op",
            f"operator {name} has no rule ({count}): the layout of its results is not judged, nor what depends on it",
            task_path(flow, index, "operation"),
            hint=f"did you mean {close[0]}?" if close else "give it one with dtir.ops.register_op",
            subject=(str(flow.scope.tasks[index].id), name),
            severity=Severity.INFO,
        )


def fitting_calls(context: Context) -> Iterator[Diagnostic]:
    """Calls.

    - operands, results and parameters of a task fit its operator. In infer mode this is a note: an operator of the same
      name in a foreign document may mean something else.
    """
    for flow, index, item in context.deviations(Kind.BAD_CALL):
        task = flow.scope.tasks[index]
        yield finding(
            "verify.op_call",
            f"{task_name(task)} ({task.operation.name}): {item.found}",
            task_path(flow, index),
            hint="correct the shapes or parameters of the task; its layout was not judged",
            subject=(str(task.id),),
            severity=Severity.INFO if context.mode == "infer" else None,
        )


RULES = (unknown_operators, fitting_calls)
