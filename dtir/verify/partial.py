"""Pending reductions: who still waits for a sum, and what must not happen before it (``partial.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.flow import Flow, output_deviations
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic
from dtir.verify.context import Context, finding, task_name, task_path, value_name
from dtir.verify.layout_words import operand_value, reduction_call, related_values, result_value, subjects


def _name(value: DistributedValue | None, other: str) -> str:
    return value_name(value) if value is not None else other


def _op(words: str) -> str:
    """The operator in the words of a letter: ``pending sum`` is sum."""
    return words.removeprefix("pending ") if words.startswith("pending ") else "sum"


def dropped_reduction(context: Context) -> Iterator[Diagnostic]:
    """Reductions that are forgotten.

    - a result that follows as pending over an axis is declared pending there, or reduced by its task;
    - a slice, broadcast or transfer does not take a value that is pending over its axes.
    """
    for flow, index, item in context.deviations(Kind.DROPPED):
        task, value, result = flow.scope.tasks[index], operand_value(flow, index, item), result_value(flow, index, item)
        axes, names = context.axes_text(item.axes), ", ".join(item.axes)
        op = _op(item.found)
        if item.note in ("slice", "broadcast"):
            message = (
                f"{task_name(task)}: a {item.note} over {axes} takes {_name(value, 'the operand')}, which is "
                "pending there"
            )
            hint = f"insert {reduction_call(op, item.axes)} before {task_name(task)}" + (
                f", or reduce_scatter over {names} in place of both" if item.note == "slice" else ""
            )
        else:
            message = (
                f"{task_name(task)} leaves {_name(result, 'its result')} {item.found or 'pending'} over "
                f"{axes}, declared {item.wanted or 'replicated'}"
            )
            what = "reduce_scatter" if item.wanted.startswith("split") else "all_reduce"
            hint = (
                f"insert {what}({op}) over {names} after {task_name(task)}, or declare {_name(result, 'it')} "
                "pending there"
            )
        yield finding(
            "partial.dropped",
            message,
            task_path(flow, index, "outputs"),
            hint=hint,
            subject=subjects(task, [value, result], item.axes),
            related=related_values(flow, ("declared layout of", result)),
        )


def fabricated_reduction(context: Context) -> Iterator[Diagnostic]:
    """Reductions that are invented.

    - a result that follows as equal copies (or per rank) is not declared pending: a later reduction would multiply it.
    """
    for flow, index, item in context.deviations(Kind.FABRICATED):
        task, result = flow.scope.tasks[index], result_value(flow, index, item)
        yield finding(
            "partial.fabricated",
            f"{task_name(task)} makes {_name(result, 'its result')} {item.found or 'replicated'} along "
            f"{context.axes_text(item.axes)}, declared {item.wanted or 'pending'}",
            task_path(flow, index, "outputs"),
            hint=f"declare {_name(result, 'it')} replicated over {', '.join(item.axes)}, or keep it on "
            "coordinate 0 only (mask)",
            subject=subjects(task, [result], item.axes),
            related=related_values(flow, ("declared layout of", result)),
        )


def nonlinear_use(context: Context) -> Iterator[Diagnostic]:
    """Operators on pending values.

    - an operator that does not commute with the pending reduction gets the finished value;
    - so does one without a rule.
    """
    for flow, index, item in context.deviations(Kind.NONLINEAR):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name, axes = _name(value, "an operand"), context.axes_text(item.axes)
        why = "is not known to commute" if item.note == "unknown operator" else "does not commute"
        yield finding(
            "partial.nonlinear",
            f"{task_name(task)} ({task.operation.name}) {why} with the reduction of {name}, {item.found} over {axes}",
            task_path(flow, index, "inputs"),
            hint=f"insert {reduction_call(_op(item.found), item.axes)} on {name} before {task_name(task)}",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("pending:", value)),
        )


def product_of_pending(context: Context) -> Iterator[Diagnostic]:
    """Products.

    - at most one factor is pending over an axis.
    """
    for flow, index, item in context.deviations(Kind.PRODUCT):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        other = _other(flow, index, item)
        name = _name(value, "an operand")
        yield finding(
            "partial.product",
            f"{task_name(task)} multiplies {_name(other, 'an operand')} and {name}, both {item.found} "
            f"over {context.axes_text(item.axes)}",
            task_path(flow, index, "inputs"),
            hint=f"insert {reduction_call(_op(item.found), item.axes)} on {name} before {task_name(task)}",
            subject=subjects(task, [other, value], item.axes),
            related=related_values(flow, ("pending:", other), ("pending:", value)),
        )


def _other(flow: Flow, index: int, item: Deviation) -> DistributedValue | None:
    """The second operand that the note of a deviation names by position."""
    return operand_value(flow, index, Deviation(item.kind, operand=int(item.note))) if item.note.isdecimal() else None


def replicated_addend(context: Context) -> Iterator[Diagnostic]:
    """Sums.

    - where one addend is pending over an axis, all are: an equal copy would be added once for every rank.
    """
    for flow, index, item in context.deviations(Kind.ADD_REPLICATED):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        pending = _other(flow, index, item)
        name, count = _name(value, "an operand"), context.around.space.count(item.axes)
        pending_name = _name(pending, "the other operand")
        yield finding(
            "partial.add_replicated",
            f"{task_name(task)} adds {name}, replicated along {context.axes_text(item.axes)}, to "
            f"{pending_name}, which is pending there: it counts {count} times",
            task_path(flow, index, "inputs"),
            hint=f"insert {reduction_call('sum', item.axes)} on {pending_name} before {task_name(task)} and "
            f"add then, or keep {name} on coordinate 0 only (mask)",
            subject=subjects(task, [value, pending], item.axes),
            related=related_values(flow, ("replicated:", value), ("pending:", pending)),
        )


def reductions_commute(context: Context) -> Iterator[Diagnostic]:
    """Reductions of pending reductions.

    - a sum or mean is not taken of a pending max or min, nor a max or min of a pending sum.
    """
    for flow, index, item in context.deviations(Kind.REDUCTION_COMMUTE):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = _name(value, "an operand")
        yield finding(
            "partial.reduction_commute",
            f"{task_name(task)} ({task.operation.name}) reduces {name}, which is {item.found} over "
            f"{context.axes_text(item.axes)}: the two do not commute",
            task_path(flow, index, "inputs"),
            hint=f"insert {reduction_call(_op(item.found), item.axes)} on {name} before {task_name(task)}",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("pending:", value)),
        )


def mixed_reductions(context: Context) -> Iterator[Diagnostic]:
    """Kinds of pending reductions.

    - one value waits for one kind of reduction;
    - a declared kind is the one that follows.
    """
    for flow, index, item in context.deviations(Kind.MIXED_OPS):
        task, value, result = flow.scope.tasks[index], operand_value(flow, index, item), result_value(flow, index, item)
        wanted = f", declared {item.wanted}" if item.wanted else ""
        yield finding(
            "partial.mixed_ops",
            f"{task_name(task)}: two kinds of reductions meet in {_name(result, 'the result')} over "
            f"{context.axes_text(item.axes)}: {item.found}{wanted}",
            task_path(flow, index),
            hint=f"finish one reduction before {task_name(task)}, or declare the one that follows",
            subject=subjects(task, [value, result], item.axes),
        )
    for flow in context.flows:
        for index, value in enumerate(flow.scope.values):
            kinds = _declared_kinds(value)
            if len(set(kinds.values())) > 1:
                words = " and ".join(sorted(set(kinds.values())))
                yield finding(
                    "partial.mixed_ops",
                    f"{value_name(value)} is declared pending {words} at once: reductions of two kinds do not commute",
                    (*flow.path, "values", str(index), "sharding"),
                    hint="finish one before starting the other: give each its own value",
                    subject=subjects(None, [value], sorted(kinds)),
                )


def _declared_kinds(value: DistributedValue) -> dict[str, str]:
    """Kinds of reductions by axis, of a document that declares several (the layout itself holds one)."""
    kinds = value.attributes.get("partial") if value.attributes else None
    if not isinstance(kinds, Mapping):
        return {}
    return {str(axis): str(kind) for axis, kind in cast("Mapping[str, object]", kinds).items()}


def pending_outputs(context: Context) -> Iterator[Diagnostic]:
    """Outputs of the program.

    - no output is pending; a program before the partitioner only asks for layouts, and what brings its results into those
      that it asks for is the compiler's to put in.
    """
    flow = context.flows[0]
    if flow.scope.attributes.get("hlo.form") == "global":
        return
    for index, item in output_deviations(flow, context.around):
        value = flow.scope.values[flow.position[flow.scope.outputs[index]]]
        yield finding(
            "partial.output",
            f"output {value_name(value)} is returned pending {item.found} over {context.axes_text(item.axes)}",
            ("outputs", str(index)),
            hint=f"insert {reduction_call(item.found, item.axes)} on {value_name(value)} before it is returned",
            subject=subjects(None, [value], item.axes),
            related=related_values(flow, ("layout of", value)),
        )


def uneven_mean(context: Context) -> Iterator[Diagnostic]:
    """Means over a split dim.

    - the shards are of equal size: the mean of means is not the mean otherwise.
    """
    for flow, index, item in context.deviations(Kind.UNEVEN_MEAN):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        yield finding(
            "partial.uneven_mean",
            f"{task_name(task)} takes the mean of shards of {item.found} elements of "
            f"{_name(value, 'the operand')} over {context.axes_text(item.axes)}: their average is not the "
            "mean",
            task_path(flow, index),
            hint=f"sum and count separately, {reduction_call('sum', item.axes)} on both, divide once",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("shard sizes of", value)),
        )


RULES = (
    dropped_reduction,
    fabricated_reduction,
    nonlinear_use,
    product_of_pending,
    replicated_addend,
    reductions_commute,
    mixed_reductions,
    pending_outputs,
    uneven_mean,
)
