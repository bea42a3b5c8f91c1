"""Collectives: groups, operands, dims, roots, types and sizes (``collective.*``)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.flow import Flow
from dtir.analysis.volume import counted
from dtir.ir.collectives import collective_kind
from dtir.ir.tasks import Collective, DistributedTask
from dtir.schema.diagnostics import Diagnostic, Severity
from dtir.verify.context import Context, finding, task_name, task_path, value_name
from dtir.verify.layout_words import operand_value, related_values, result_value, subjects
from dtir.verify.roots import root_faults
from dtir.verify.sizes import Size, message_sizes


def _kind(task: DistributedTask) -> str:
    return collective_kind(task.body.spec).value if isinstance(task.body, Collective) else task.operation.name


def _of(flow: Flow, index: int, item: Deviation) -> str:
    value = operand_value(flow, index, item) or result_value(flow, index, item)
    return value_name(value) if value is not None else "the operand"


def _report(
    context: Context, kind: Kind, flow: Flow, index: int, item: Deviation, message: str, hint: str, *where: str
) -> Diagnostic:
    task = flow.scope.tasks[index]
    value = operand_value(flow, index, item)
    return finding(
        kind.value,
        f"{task_name(task)} ({_kind(task)}): {message}",
        task_path(flow, index, *where),
        hint=hint,
        subject=subjects(task, [value, result_value(flow, index, item)], item.axes),
        related=related_values(flow, ("operand", value)),
    )


def single_participant(context: Context) -> Iterator[Diagnostic]:
    """Participants (that they are the task's ranks is checked with the structure).

    - a collective has at least two of them.
    """
    for flow in context.flows:
        for index, task in enumerate(flow.scope.tasks):
            if (
                isinstance(task.body, Collective)
                and len(task.body.spec.participants) < 2
                and context.program.mesh.size > 1
            ):
                yield finding(
                    "collective.participants",
                    f"{task_name(task)} ({_kind(task)}) has {len(task.body.spec.participants)} "
                    "participant: nothing is exchanged",
                    task_path(flow, index, "body", "participants"),
                    hint="list the union of the groups, or delete the task",
                    subject=subjects(task, [], []),
                    severity=Severity.WARNING,
                )


def groups_are_fibres(context: Context) -> Iterator[Diagnostic]:
    """Groups.

    - listed groups are the fibres of some mesh axes (or of parts of them);
    - they are those of the named axes, where both are given;
    - a group that reduces or broadcasts has more than one member.
    """
    for flow, index, item in context.deviations(Kind.GROUP_SPLIT):
        pending = operand_value(flow, index, item)
        wanted = pending.sharding.partial_axes if pending is not None else ()
        if item.note == "alone":
            message = "every group has 1 member, so that nothing is combined"
        elif item.wanted:
            message = f"groups {item.found} are not the fibres of {item.wanted}"
        else:
            message = f"groups {item.found} are not the fibres of any mesh axes"
        named = ", ".join(wanted or context.program.mesh.axis_names)
        yield _report(
            context, Kind.GROUP_SPLIT, flow, index, item, message,
            f"derive the groups from mesh axes: write axes: [{named}] instead of groups" if wanted else
            f"derive the groups from mesh axes ({named}) and write the axes", "body", "groups",
        )  # fmt: skip


def reduces_all_axes(context: Context) -> Iterator[Diagnostic]:
    """Axes of a reduction.

    - all axes that are pending are reduced, or the result is declared pending along the others.
    """
    for flow, index, item in context.deviations(Kind.INCOMPLETE_AXES):
        task = flow.scope.tasks[index]
        axes = ", ".join(getattr(getattr(task.body, "spec", None), "axes", ()) or ("its groups",))
        yield _report(
            context, Kind.INCOMPLETE_AXES, flow, index, item,
            f"reduces over {axes}, but {_of(flow, index, item)} is also pending over "
            f"{context.axes_text(item.axes)}, and the result is declared finished",
            f"add {', '.join(item.axes)} to the axes of {task_name(task)}, or declare its result pending there", "body", "axes",
        )  # fmt: skip


def reduces_pending(context: Context) -> Iterator[Diagnostic]:
    """Operands of a reduction.

    - along every reduced axis the operand is pending: not equal copies (a sum would multiply them), not blocks, not
      unrelated data.
    """
    for flow, index, item in context.deviations(Kind.REDUCE_REPLICATED, Kind.REDUCE_SHARDED, Kind.REDUCE_VARYING):
        task, name = flow.scope.tasks[index], _of(flow, index, item)
        axes, names = context.axes_text(item.axes), ", ".join(item.axes)
        match item.kind:
            case Kind.REDUCE_REPLICATED:
                message = f"{name} is replicated along {axes}, so that its reduction is {item.found} times the value"
                hint = (
                    f"drop {names} from the axes of {task_name(task)}, delete the task, or multiply {name} by "
                    f"1/{item.found} before"
                )
            case Kind.REDUCE_SHARDED:
                dim = item.dims[0] if item.dims else 0
                message = f"{axes} split {name} on dim {dim}: the task combines different blocks"
                hint = f"use all_gather over {names} on dim {dim}, or sum dim {dim} of {name} locally first"
            case _:
                message = f"{name} is per rank along {axes}: the data of different ranks are not one value"
                hint = (
                    f"reduce over an axis along which {name} is one value, or declare it pending there if it "
                    "is a share of a sum"
                )
        yield _report(context, item.kind, flow, index, item, message, hint, "body")


def reduction_operator(context: Context) -> Iterator[Diagnostic]:
    """Operator of a reduction.

    - it is the one that is pending (an average counts as a sum).
    """
    for flow, index, item in context.deviations(Kind.WRONG_REDUCTION):
        yield _report(
            context, Kind.WRONG_REDUCTION, flow, index, item,
            f"reduces with {item.found}, but {_of(flow, index, item)} is pending {item.wanted} over "
            f"{context.axes_text(item.axes)}",
            f"use reduction: {item.wanted}", "body", "reduction",
        )  # fmt: skip


def gathered_dim(context: Context) -> Iterator[Diagnostic]:
    """Operands of a gather or exchange.

    - nothing is pending along its axes;
    - a gather works on the dim that its axes split.
    """
    for flow, index, item in context.deviations(Kind.GATHER_PARTIAL, Kind.GATHER_DIM):
        name, names = _of(flow, index, item), ", ".join(item.axes)
        task = flow.scope.tasks[index]
        if item.kind is Kind.GATHER_PARTIAL:
            message = (
                f"{name} is pending {item.found} over {context.axes_text(item.axes)}: shares are put side by "
                "side instead of reduced"
            )
            hint = (
                f"use all_reduce({item.found}) over {names}, or reduce_scatter({item.found}) where the result is split"
            )
        elif item.note == "missing":
            message = (
                f"no dim is named, and {name} {item.found} does not tell which one {context.axes_text(item.axes)} split"
            )
            hint = f"name the dim of {task_name(task)}"
        else:
            message = f"gathers on dim {item.dims[0]}, but along {context.axes_text(item.axes)} {name} is {item.found}"
            hint = f"gather on the dim that {names} split" + (
                f": dim {item.found.rsplit(' ', 1)[1]}" if "dim" in item.found else ""
            )
        yield _report(context, item.kind, flow, index, item, message, hint, "body")


def scattered_dim(context: Context) -> Iterator[Diagnostic]:
    """Results of a reduce_scatter.

    - the declared result has the axes as minor axes of the dim that is scattered.
    """
    for flow, index, item in context.deviations(Kind.SCATTER_DIM):
        dims = f" on dim {item.dims[0]}" if item.dims and item.note != "outside" else ""
        if item.note == "outside":
            message = f"scatters dim {item.dims[0]}, which the value does not have"
        elif item.note == "missing":
            message = f"no dim is named, and the declared result {item.found} does not tell it"
        else:
            message = f"makes the result {item.found} along {context.axes_text(item.axes)}, declared {item.wanted}"
        yield _report(
            context, Kind.SCATTER_DIM, flow, index, item, message,
            f"make the dim of the task and the declared layout agree: {', '.join(item.axes)} as the minor axes{dims}", "body", "dim",
        )  # fmt: skip


def exchanged_dims(context: Context) -> Iterator[Diagnostic]:
    """Dims of an all_to_all.

    - the concat dim is split by its axes (at the minor end), the split dim is another one;
    - the declared result has the axes moved from one to the other.
    """
    for flow, index, item in context.deviations(Kind.ALL_TO_ALL_DIMS):
        name, axes, names = _of(flow, index, item), context.axes_text(item.axes), ", ".join(item.axes)
        task = flow.scope.tasks[index]
        hint = "concat on the dim that is split now, split the other one"
        match item.note:
            case "same":
                message = f"splits and concatenates the same dim {item.dims[0]}"
            case "outside":
                message = f"names dims {item.dims[0]} and {item.dims[1]}, of which {name} lacks one"
            case "not_split":
                message = f"concatenates dim {item.dims[1]}, but along {axes} {name} is {item.found}"
                if item.found == "replicated":
                    hint = (
                        f"split dim {item.dims[1]} of {name} over {names} before {task_name(task)}, or keep "
                        f"the own block of dim {item.dims[0]} only"
                    )
            case "missing":
                message = f"no dims are named, and {name} {item.found} does not tell which one {axes} split"
                hint = f"name split and concat of {task_name(task)}"
            case _:
                message = f"makes the result {item.found} along {axes}, declared {item.wanted}"
        yield _report(context, Kind.ALL_TO_ALL_DIMS, flow, index, item, message, hint, "body")


def broadcast_split(context: Context) -> Iterator[Diagnostic]:
    """Operands of a broadcast.

    - no axis of the broadcast splits the value: every rank would get the root's block.
    """
    for flow, index, item in context.deviations(Kind.BROADCAST_SHARDED):
        dim, name = item.dims[0] if item.dims else 0, _of(flow, index, item)
        yield _report(
            context, Kind.BROADCAST_SHARDED, flow, index, item,
            f"{context.axes_text(item.axes)} split dim {dim} of {name}: every rank would get the root's block",
            f"use all_gather over {', '.join(item.axes)} on dim {dim}, or broadcast over axes that replicate {name}", "body", "axes",
        )  # fmt: skip


def local_shapes(context: Context) -> Iterator[Diagnostic]:
    """Shapes of the participants.

    - all ranks of a group bring the same local shape, unless the task is marked as one for parts of different sizes;
    - operand and result are one tensor.
    """
    for flow, index, item in context.deviations(Kind.SHAPE_MISMATCH):
        name = _of(flow, index, item)
        match item.note:
            case "sizes":
                message = f"shards of {item.found} elements on dim {item.dims[0]} of {name} meet in one group"
                hint = "pad to the largest and trim, or use the variant for parts of different sizes (vector: true)"
            case "local":
                shapes = _declared_shapes(flow, index)
                message = f"ranks bring different local shapes of {name}{shapes}"
                hint = (
                    "bring the same shape on every rank, pad and trim, or use the variant for parts of "
                    "different sizes (vector: true)"
                )
            case "stacked":
                message = f"the result has {item.found} elements, the group brings {item.wanted}"
                hint = "declare the dim along which the parts stand side by side with its full extent"
            case _:
                message = f"the operand has shape {item.wanted}, the result {item.found}"
                hint = "a collective does not change the tensor: declare one shape, and the difference in the layout"
        yield _report(context, Kind.SHAPE_MISMATCH, flow, index, item, message, hint)


def _declared_shapes(flow: Flow, index: int) -> str:
    task = flow.scope.tasks[index]
    for identifier in (*task.inputs, *task.outputs):
        value = flow.scope.values[flow.position[identifier]]
        if len({item.shape for item in value.local_shapes}) > 1:
            shown = ", ".join(f"rank {item.rank} {list(item.shape)}" for item in value.local_shapes[:4])
            return f" ({shown}{', ...' if len(value.local_shapes) > 4 else ''})"
    return ""


def element_types(context: Context) -> Iterator[Diagnostic]:
    """Element types.

    - operand and result have the same;
    - the type in which a reduction adds up is not narrower than the operand's, or than the program's policy.
    """
    for flow, index, item in context.deviations(Kind.DTYPE):
        task = flow.scope.tasks[index]
        yield _report(
            context, Kind.DTYPE, flow, index, item,
            f"takes {item.wanted} and gives {item.found}",
            f"cast in a local task before or after {task_name(task)}",
        )  # fmt: skip
    yield from _accumulation(context)


def _accumulation(context: Context) -> Iterator[Diagnostic]:
    from dtir.ir.types import dtype_bits

    policy = context.program.attributes.get("accumulate_dtype")
    for flow in context.flows:
        for index, task in enumerate(flow.scope.tasks):
            own = task.attributes.get("op.accumulate_dtype") if task.attributes else None
            if not isinstance(task.body, Collective) or not isinstance(own, str) or not task.inputs:
                continue
            value = flow.scope.values[flow.position[task.inputs[0]]]
            wanted = policy if isinstance(policy, str) else value.type.dtype
            have, need = dtype_bits(own), dtype_bits(wanted)
            if have is not None and need is not None and have < need:
                yield finding(
                    "collective.dtype",
                    f"{task_name(task)} ({_kind(task)}) adds up in {own} ({have} bits), wanted at least "
                    f"{wanted} ({need} bits)",
                    task_path(flow, index, "attributes"),
                    hint=f"add up in {wanted}",
                    subject=subjects(task, [value], []),
                )


def message_bytes(context: Context) -> Iterator[Diagnostic]:
    """Message sizes.

    - message_bytes is the size S that follows from type, layout and kind: the local value; the full output of a gather,
      the full input of a scatter.
    """
    wrong = list(_wrong_sizes(context))
    if context.mode == "infer":
        # Values of such documents stand for more than their type says: one note for all.
        if wrong:
            flow, size, declared = wrong[0]
            task = flow.scope.tasks[size.index]
            yield finding(
                "collective.message_bytes",
                f"{len(wrong)} collectives declare another size than their layouts give, {task_name(task)} first: {declared} "
                f"bytes, {size.what} has {size.derived}",
                task_path(flow, size.index, "body", "message_bytes"),
                hint="count the full buffer: of a gather the output, of a scatter the input",
                subject=subjects(task, [size.value], []),
                severity=Severity.INFO,
            )
        return
    for flow, size, declared in wrong:
        task = flow.scope.tasks[size.index]
        yield finding(
            "collective.message_bytes",
            f"{task_name(task)} ({_kind(task)}) declares {declared} bytes, {size.what} has {size.derived}: {size.formula}",
            task_path(flow, size.index, "body", "message_bytes"),
            hint=f"write bytes: {size.derived}",
            subject=subjects(task, [size.value], []),
            related=related_values(flow, ("counted from", size.value)),
        )


def _wrong_sizes(context: Context) -> Iterator[tuple[Flow, Size, int | float]]:
    faulty = context.faulty_tasks
    for number, flow in enumerate(context.flows):
        for size in message_sizes(context, flow):
            declared = counted(size.declared, context.program.bindings)
            if declared is not None and declared != size.derived and (number, size.index) not in faulty:
                yield flow, size, declared


def broadcast_roots(context: Context) -> Iterator[Diagnostic]:
    """Roots of a broadcast.

    - every group has a root, which is one of its members (as a position in the group, or as a rank, whichever is meant);
    - the root holds the value, in its current version.
    """
    for flow in context.flows:
        for fault in root_faults(context, flow):
            task = flow.scope.tasks[fault.index]
            value = flow.scope.values[flow.position[task.inputs[0]]] if task.inputs else None
            yield finding(
                fault.code,
                f"{task_name(task)} (broadcast): {fault.message}",
                task_path(flow, fault.index, "body", "root"),
                hint=fault.hint,
                subject=subjects(task, [value], []),
                related=related_values(flow, ("holders of", value)),
            )


RULES = (
    single_participant,
    groups_are_fibres,
    reduces_all_axes,
    reduces_pending,
    reduction_operator,
    gathered_dim,
    scattered_dim,
    exchanged_dims,
    broadcast_roots,
    broadcast_split,
    local_shapes,
    element_types,
    message_bytes,
)
