"""Layout: how values are split, and whether operands and results of tasks fit (``sharding.*``)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.flow import Flow
from dtir.schema.diagnostics import Diagnostic, Severity
from dtir.verify.context import Context, finding, task_name, task_path, value_name, value_path
from dtir.verify.layout_words import conversion, operand_value, related_values, result_value, subjects


def uneven_shards(context: Context) -> Iterator[Diagnostic]:
    """Sizes of shards.

    - every dim that axes split is divisible by their number, or the value states the size of every shard;
    - stated sizes are as many as there are shards, and together cover the dim.
    """
    for flow, index, item in context.deviations(Kind.UNEVEN):
        value = flow.scope.values[index]
        dim, axes = item.dims[0], context.axes_text(item.axes)
        path = value_path(flow, index, "sharding", "dimension_axes", str(dim))
        match item.note:
            case "number of sizes":
                message = (
                    f"{value_name(value)} states {item.found} shard sizes on dim {dim}, {axes} make "
                    f"{item.wanted} shards"
                )
            case "sum of sizes":
                message = f"the shards of {value_name(value)} cover {item.found} of {item.wanted} elements on dim {dim}"
            case _:
                message = (
                    f"dim {dim} of {value_name(value)} has {item.found} elements, which {item.wanted} shards "
                    f"over {axes} do not divide"
                )
        yield finding(
            "sharding.uneven",
            message,
            path,
            hint=f"state the size of every shard (sizes: {{{dim}: [...]}}), pad to a multiple of "
            f"{context.around.space.count(item.axes)}, or choose a divisor",
            subject=subjects(None, [value], item.axes),
        )


def incomplete_layout(context: Context) -> Iterator[Diagnostic]:
    """Every axis of the mesh has a meaning in every layout.

    - each axis with more than one coordinate is named as splitting, replicated, pending, per rank or confined.

    In infer mode this is a note: the axis is taken as replicated.
    """
    for flow, index, item in context.deviations(Kind.INCOMPLETE):
        value = flow.scope.values[index]
        inferred = context.mode == "infer"
        yield finding(
            "sharding.incomplete",
            f"the layout of {value_name(value)} does not say what {context.axes_text_declared(item.axes)} means"
            + (": taken as replicated (inferred)" if inferred else ""),
            value_path(flow, index, "sharding"),
            hint=f"name {', '.join(item.axes)} in dimension_axes, replicated_axes, partial, varying or at",
            subject=subjects(None, [value], item.axes),
            severity=Severity.INFO if inferred else None,
        )


def order_of_axes(context: Context) -> Iterator[Diagnostic]:
    """Major to minor order of the axes that split one dim.

    - operands that share a dim list its axes in one order, results as the task makes them;
    - a gather or exchange undoes the minor end of the list.
    """
    for flow, index, item in context.deviations(Kind.ORDER):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        result = result_value(flow, index, item)
        named = value or result
        where = f" on dim {item.dims[0]} of {value_name(named)}" if item.dims and named is not None else ""
        yield finding(
            "sharding.order",
            f"{task_name(task)}: axes stand as {item.found}{where}, wanted {item.wanted} (major to minor)",
            task_path(flow, index),
            hint=f"list {', '.join(item.axes)} in the same order on both sides, or permute the blocks "
            f"{_before(flow, index)}",
            subject=subjects(task, [value, result if value is None else None], item.axes),
            related=related_values(flow, ("the layout of", named)),
        )


def _before(flow: Flow, index: int) -> str:
    return f"before {task_name(flow.scope.tasks[index])}"


def declared_result(context: Context) -> Iterator[Diagnostic]:
    """Declared layouts of results.

    - along every axis a result is split or replicated as follows from the task's operands;
    - explicit shard sizes are kept.
    """
    for flow, index, item in context.deviations(Kind.MISMATCH):
        task, value = flow.scope.tasks[index], result_value(flow, index, item)
        name = value_name(value) if value is not None else "the result"
        axes = f" along {context.axes_text(item.axes)}" if item.axes else ""
        yield finding(
            "sharding.mismatch",
            f"{task_name(task)} makes {name} {item.found}{axes}, declared {item.wanted}",
            task_path(flow, index, "outputs"),
            hint=_convert(flow, index, item),
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("declared layout of", value)),
        )


def _convert(flow: Flow, index: int, item: Deviation) -> str:
    """The collective that turns what follows into what is declared; from the words of the deviation."""
    task, axes = flow.scope.tasks[index], ", ".join(item.axes)
    value = result_value(flow, index, item)
    name = value_name(value) if value is not None else "the result"
    if item.found.startswith("split on dim") and item.wanted == "replicated":
        dim = item.found.rsplit(" ", 1)[1]
        return (
            f"insert all_gather over {axes} on dim {dim} after {task_name(task)}, or declare {name} split on dim {dim}"
        )
    if item.found == "replicated" and item.wanted.startswith("split on dim"):
        dim = item.wanted.rsplit(" ", 1)[1]
        return (
            f"keep only the own block (shard dim {dim} over {axes}) after {task_name(task)}, or declare "
            f"{name} replicated"
        )
    if item.found.startswith("split on dim") and item.wanted.startswith("split on dim"):
        have, want = item.found.rsplit(" ", 1)[1], item.wanted.rsplit(" ", 1)[1]
        return (
            f"insert all_to_all over {axes} (split dim {want}, concat dim {have}) after {task_name(task)}, or "
            f"declare {name} split on dim {have}"
        )
    return conversion(None, None, (), task)


def aligned_operands(context: Context) -> Iterator[Diagnostic]:
    """Operands of a local task.

    - a dim that several operands share is split by the same axes, in the same sizes, in all of them;
    - no axis splits two dims of one task; an operand without the split dim is replicated there, not pending;
    - a dim that the operator needs whole is not split; a shard or mask starts from equal copies.
    """
    for flow, index, item in context.deviations(Kind.OPERANDS):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        other = None
        name = value_name(value) if value is not None else "an operand"
        axes = context.axes_text(item.axes)
        match item.note.partition(":"):
            case ("operand", _, number):
                other = operand_value(flow, index, Deviation(item.kind, operand=int(number)))
                first = value_name(other) if other is not None else "another operand"
                message = (
                    f"{task_name(task)}: {name} lies {item.found}, {first} lies {item.wanted}: along {axes} "
                    "they do not meet"
                )
                hint = (
                    f"reshard {name} or {first} before {task_name(task)}, so that both split the shared dim "
                    "by the same axes"
                )
            case ("sizes", _, _):
                message = (
                    f"{task_name(task)}: {name} has other shard sizes on dim {item.dims[0]} than the operand before it"
                )
                hint = "state the same sizes for the shared dim of all operands"
            case ("pending", _, _):
                message = f"{task_name(task)}: {name} is pending over {axes}, which split another operand"
                hint = (
                    f"reduce {name} over {', '.join(item.axes)} before {task_name(task)} (reduce_scatter "
                    "where the dim is split)"
                )
            case ("two_labels", _, _):
                message = (
                    f"{task_name(task)}: {axes} split two different dims, so that ranks hold blocks of "
                    "different positions"
                )
                hint = f"gather one of the two operands over {', '.join(item.axes)} before {task_name(task)}"
            case ("whole", _, _):
                message = f"{task_name(task)} needs dim {item.dims[0]} of {name} whole, {axes} split it"
                hint = f"all_gather {name} over {', '.join(item.axes)} on dim {item.dims[0]} before {task_name(task)}"
            case (what, _, _):
                message = f"{task_name(task)}: {name} is {item.found} along {axes}, a {what} starts from equal copies"
                hint = (
                    f"gather or reduce {name} over {', '.join(item.axes)} before {task_name(task)}, or drop the {what}"
                )
        yield finding(
            "sharding.operands",
            message,
            task_path(flow, index, "inputs"),
            hint=hint,
            subject=subjects(task, [value, other], item.axes),
            related=related_values(flow, ("layout of", value), ("layout of", other)),
        )


def reshaped_blocks(context: Context) -> Iterator[Diagnostic]:
    """Reshapes of split values.

    - a split dim leads its group of dims (units aside), so that a block of rows stays one;
    - its number of shards divides the leading new dim.
    """
    for flow, index, item in context.deviations(Kind.RESHAPE):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "the operand"
        axes = context.axes_text(item.axes)
        if item.note == "inner":
            message = (
                f"{task_name(task)}: {axes} split dim {item.dims[0]} of {name}, which is not the leading dim "
                "of what is merged: blocks interleave"
            )
        else:
            message = (
                f"{task_name(task)}: {context.around.space.count(item.axes)} shards over {axes} do not fall "
                f"on whole elements of the leading new dim of {name}"
            )
        yield finding(
            "sharding.reshape",
            message,
            task_path(flow, index),
            hint=f"all_gather {name} over {', '.join(item.axes)} on dim {item.dims[0]} before "
            f"{task_name(task)}, or move the split dim to the front of its group",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("layout of", value)),
        )


def local_positions(context: Context) -> Iterator[Diagnostic]:
    """Positions and indices.

    - a task that numbers the elements of a split dim adds the offset of the block.
    """
    for flow, index, item in context.deviations(Kind.LOCAL_INDEX):
        task, value = flow.scope.tasks[index], result_value(flow, index, item)
        name = value_name(value) if value is not None else "the result"
        yield finding(
            "sharding.local_index",
            f"{task_name(task)} numbers {name} from 0 on every rank, but {context.axes_text(item.axes)} "
            f"split dim {item.dims[0]}",
            task_path(flow, index),
            hint="add the block's offset: shard index times shard size (offset: global)",
            subject=subjects(task, [value], item.axes),
        )


def correlated_random(context: Context) -> Iterator[Diagnostic]:
    """Random numbers of different shards.

    - the key of a random task contains every axis that splits its result.
    """
    for flow, index, item in context.deviations(Kind.CORRELATED_RANDOM):
        task, value = flow.scope.tasks[index], result_value(flow, index, item)
        name = value_name(value) if value is not None else "the result"
        yield finding(
            "sharding.correlated_random",
            f"{task_name(task)} draws the same numbers for every shard of {name} over "
            f"{context.axes_text(item.axes)}: the key does not contain the axis",
            task_path(flow, index),
            hint=f"fold the coordinate on {', '.join(item.axes)} into the key (key_axes)",
            subject=subjects(task, [value], item.axes),
        )


def read_padding(context: Context) -> Iterator[Diagnostic]:
    """Padding.

    - a reduction over a padded dim does not read padding that changes it (a sum may read zeros);
    - softmax, sort and the like do not read a padded dim; a gather trims it.
    """
    for flow, index, item in context.deviations(Kind.PADDING):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "the operand"
        yield finding(
            "sharding.padding",
            f"{task_name(task)} ({item.wanted}) reads the padding of {name} on dim {item.dims[0]}, which "
            f"holds {item.found}",
            task_path(flow, index),
            hint="trim after the gather (trim: true)" if item.wanted == "gather"
            else f"mask the padding with the identity of {item.wanted} first, or state the shards without padding",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("shard sizes of", value)),
        )  # fmt: skip


RULES = (
    uneven_shards,
    incomplete_layout,
    order_of_axes,
    declared_result,
    aligned_operands,
    reshaped_blocks,
    local_positions,
    correlated_random,
    read_padding,
)
