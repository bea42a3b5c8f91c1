"""Communication that could be left out or be cheaper (``redundant.*``)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from dtir.analysis.deviations import Kind
from dtir.analysis.exchanges import is_routed
from dtir.analysis.flow import Flow
from dtir.analysis.liveness import Liveness
from dtir.analysis.volume import counted
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, CollectivePermute, ReduceScatter, collective_kind
from dtir.ir.tasks import Collective, DistributedTask, LocalCompute
from dtir.ops import Labels, OpCall, OpClass, OpDef, OpError, SliceAxes, find_op, op_attributes
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from dtir.verify.context import Context, finding, task_name, task_path, value_name
from dtir.verify.layout_words import operand_value, related_values, subjects


class _Uses:
    """Who uses what in one scope, and which tasks are in doubt."""

    def __init__(self, context: Context, number: int, flow: Flow) -> None:
        self.context, self.flow = context, flow
        self.live: Liveness = context.liveness(number)
        self.outputs = set(flow.scope.outputs)
        self.faulty = {index for scope, index in context.faulty_tasks if scope == number}
        # Rules look at collectives only, and several do: their places and axes are found once.
        self.collectives: dict[int, tuple[str, ...]] = {
            index: self._axes(task) for index, task in enumerate(flow.scope.tasks) if isinstance(task.body, Collective)
        }

    def only_user(self, index: int) -> int | None:
        """The one task that reads the one result of a task; None when there are several, or it is returned."""
        task = self.flow.scope.tasks[index]
        if len(task.outputs) != 1 or task.outputs[0] in self.outputs or index in self.faulty:
            return None
        users = self.live.users.get(task.outputs[0], ())
        return users[0] if len(users) == 1 and users[0] not in self.faulty else None

    def axes(self, index: int) -> tuple[str, ...]:
        """Factors of the axes of a collective, in group order; none for other tasks."""
        return self.collectives.get(index, ())

    def _axes(self, task: DistributedTask) -> tuple[str, ...]:
        if not isinstance(task.body, Collective) or isinstance(task.body.spec, CollectivePermute) or is_routed(task):
            return ()
        return self.context.reader.axes(task.body.spec) or ()

    def slice_of(self, task: DistributedTask) -> SliceAxes | None:
        """The slice that a local task makes, its axes as factors."""
        operator = find_op(task.operation) if isinstance(task.body, LocalCompute) else None
        if operator is None or len(task.inputs) != 1 or len(task.outputs) != 1:
            return None
        values = [self.flow.scope.values[self.flow.position[item]] for item in (task.inputs[0], task.outputs[0])]
        try:
            change = operator.transition(OpCall((values[0].type.shape,), (values[1].type.shape,), op_attributes(task)))
        except OpError:
            return None
        if not isinstance(change, SliceAxes):
            return None
        return SliceAxes(self.context.around.space.expand(change.axes), change.dim)


def _uses(context: Context) -> Sequence[_Uses]:
    return context.remember("uses", lambda: [_Uses(context, number, flow) for number, flow in enumerate(context.flows)])


def needless(context: Context) -> Iterator[Diagnostic]:
    """Collectives that change nothing.

    - a max, min or average is not taken over equal copies, nor are equal copies gathered;
    - a gather or exchange has groups of more than one member.
    """
    for flow, index, item in context.deviations(Kind.REDUNDANT):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        assert isinstance(task.body, Collective)
        kind = collective_kind(task.body.spec).value
        name = value_name(value) if value is not None else "the operand"
        if item.note == "alone":
            message, hint = "its groups have one member", f"delete {task_name(task)} and read {name}"
        elif item.note == "part":
            message = (
                f"{name} is replicated along {context.axes_text(item.axes)}: that part of the reduction changes nothing"
            )
            hint = f"drop {', '.join(item.axes)} from the axes of {task_name(task)}"
        else:
            message = f"{name} is replicated along {context.axes_text(item.axes)}: all ranks have the result"
            hint = f"delete {task_name(task)} and read {name}"
        yield finding(
            "redundant.collective", f"{task_name(task)} ({kind}): {message}", task_path(flow, index), hint=hint,
            subject=subjects(task, [value], item.axes), related=related_values(flow, ("operand", value)),
        )  # fmt: skip
    yield from uniform_operands(context)


def uniform_operands(context: Context) -> Iterator[Diagnostic]:
    """Collectives over per-rank data that are derived to be equal copies (infer mode)."""
    from dtir.verify.inferred import redundant_collectives

    yield from redundant_collectives(context)


def fusible(context: Context) -> Iterator[Diagnostic]:
    """Pairs of collectives that are one.

    - a reduction whose only use is a slice along its own axes is a reduce_scatter;
    - a reduce_scatter whose only use is the gather that undoes it is an all_reduce (a note).
    """
    for uses in _uses(context):
        flow = uses.flow
        for index, own in uses.collectives.items():
            task = flow.scope.tasks[index]
            assert isinstance(task.body, Collective)
            spec = task.body.spec
            if isinstance(spec, AllReduce):
                user = uses.only_user(index)
                cut = uses.slice_of(flow.scope.tasks[user]) if user is not None else None
                axes = set(own)
                if user is None or cut is None or not cut.axes or not set(cut.axes) <= axes:
                    continue
                count = context.around.space.count(cut.axes)
                size = counted(spec.message_bytes, context.program.bindings)
                saved = f", saving {size * (count - 1) / count:g} bytes a rank" if size is not None else ""
                yield _pair(flow, index, user, "redundant.fusible",
                            f"reduces over {context.axes_text(own)}, and its only use "
                            f"{{other}} keeps one block of dim {cut.dim}",
                            f"replace both by reduce_scatter({spec.reduction.value}) over "
                            f"{', '.join(cut.axes)} on dim {cut.dim}{saved}",
                            cut.axes)  # fmt: skip
            elif isinstance(spec, ReduceScatter):
                user = uses.only_user(index)
                other = flow.scope.tasks[user] if user is not None else None
                gather = other.body.spec if other is not None and isinstance(other.body, Collective) else None
                if user is None or other is None or not isinstance(gather, AllGather):
                    continue
                if own == uses.axes(user) and own and spec.dim == gather.dim:
                    yield _pair(flow, index, user, "redundant.fusible",
                                f"scatters over {context.axes_text(own)}, and its only use "
                                f"{{other}} gathers the same again",
                                f"replace both by all_reduce({spec.reduction.value}) over "
                                f"{', '.join(own)}, unless the blocks are wanted for overlap",
                                own, Severity.INFO)  # fmt: skip


def _pair(
    flow: Flow, index: int, other: int, code: str, message: str, hint: str, axes: Sequence[str], severity: Severity | None = None
) -> Diagnostic:  # fmt: skip
    task, user = flow.scope.tasks[index], flow.scope.tasks[other]
    return finding(
        code,
        f"{task_name(task)} {message.format(other=task_name(user))}",
        task_path(flow, index),
        hint=hint,
        subject=(str(task.id), str(user.id), *axes),
        related=(Related(f"the other task {task_name(user)}", task_path(flow, other)),),
        severity=severity,
    )


def roundtrip(context: Context) -> Iterator[Diagnostic]:
    """Pairs that undo each other.

    - a gather is not only sliced again along the same axes and dim;
    - an exchange is not only followed by its inverse.
    """
    for uses in _uses(context):
        flow = uses.flow
        for index, axes in uses.collectives.items():
            task = flow.scope.tasks[index]
            assert isinstance(task.body, Collective)
            spec = task.body.spec
            user = uses.only_user(index)
            if user is None or not axes:
                continue
            other = flow.scope.tasks[user]
            if isinstance(spec, AllGather):
                last = _sliced_back(uses, user, axes, spec.dim)
                if last is not None:
                    yield _pair(flow, index, last, "redundant.roundtrip",
                                f"gathers over {context.axes_text(axes)}, and its only use {{other}} "
                                "keeps the own block again",
                                "delete both, and read the operand of the gather", axes)  # fmt: skip
            elif (
                isinstance(spec, AllToAll)
                and isinstance(other.body, Collective)
                and isinstance(other.body.spec, AllToAll)
            ):
                back = other.body.spec
                if uses.axes(user) == axes and (spec.split_dim, spec.concat_dim) == (back.concat_dim, back.split_dim):
                    yield _pair(flow, index, user, "redundant.roundtrip",
                                f"exchanges over {context.axes_text(axes)}, and its only use {{other}} "
                                "exchanges back",
                                "delete both, and read the operand of the first", axes)  # fmt: skip


def _sliced_back(uses: _Uses, user: int, axes: tuple[str, ...], dim: int | None) -> int | None:
    """The last of the slices that take a gather back, one after the other, each the only use of the one before."""
    left = list(axes)
    current = user
    while True:
        cut = uses.slice_of(uses.flow.scope.tasks[current])
        if (
            cut is None
            or not cut.axes
            or (dim is not None and cut.dim != dim)
            or left[: len(cut.axes)] != list(cut.axes)
        ):
            return None
        left = left[len(cut.axes) :]
        if not left:
            return current
        following = uses.only_user(current)
        if following is None:
            return None
        current = following


def hoistable(context: Context) -> Iterator[Diagnostic]:
    """Sums of reduced values.

    - several values that are each reduced alike and then only added are added first and reduced once.
    """
    for uses in _uses(context):
        flow = uses.flow
        for index, task in enumerate(flow.scope.tasks):
            if len(task.inputs) < 2 or not isinstance(task.body, LocalCompute):
                continue
            operator = find_op(task.operation)
            if operator is None or not _sums(uses, operator, task):
                continue
            makers = [uses.live.producer.get(item) for item in task.inputs]
            kinds = {_reduction(uses, maker, index) for maker in makers}
            if len(kinds) != 1 or None in kinds or index in uses.faulty:
                continue
            first = next(maker for maker in makers if maker is not None)
            count = len(makers)
            axes = uses.axes(first)
            yield finding(
                "redundant.hoistable",
                f"{task_name(task)} adds {count} values that were each reduced over {context.axes_text(axes)}",
                task_path(flow, index),
                hint=f"add first, reduce once: {count} times fewer bytes (unless the parts are kept split, "
                "which trades traffic for memory)",
                subject=(
                    str(task.id),
                    *(str(flow.scope.tasks[maker].id) for maker in makers if maker is not None),
                    *axes,
                ),
                related=tuple(
                    Related(f"reduced by {task_name(flow.scope.tasks[maker])}", task_path(flow, maker))
                    for maker in makers[:16]
                    if maker is not None
                ),
            )


def _sums(uses: _Uses, operator: OpDef, task: DistributedTask) -> bool:
    """True when the operator adds its operands (and does not pick or join them)."""
    if operator.op_class is not OpClass.ADDITIVE or operator.nonlinear_operands:
        return False
    shapes = [
        uses.flow.scope.values[uses.flow.position[item]].type.shape for item in (*task.operand_values, *task.outputs)
    ]
    count = len(task.operand_values)
    try:
        rule = operator.labels(OpCall(tuple(shapes[:count]), tuple(shapes[count:]), op_attributes(task)))
    except OpError:
        return False
    return isinstance(rule, Labels) and not rule.whole


def _reduction(uses: _Uses, maker: int | None, adder: int) -> Hashable | None:
    """What a reduction does, when its only use is the sum; None when it is none, or does not pass through a sum."""
    if maker is None or uses.only_user(maker) != adder:
        return None
    body = uses.flow.scope.tasks[maker].body
    if not isinstance(body, Collective) or not isinstance(body.spec, (AllReduce, ReduceScatter)):
        return None
    if body.spec.reduction.value not in ("sum", "avg") or not uses.axes(maker):
        return None
    dim = body.spec.dim if isinstance(body.spec, ReduceScatter) else None
    return (type(body.spec), body.spec.reduction, uses.axes(maker), dim)


def repeated(context: Context) -> Iterator[Diagnostic]:
    """Repetitions.

    - no collective of the same kind, axes, operand, dims and operator runs twice.
    """
    for uses in _uses(context):
        flow = uses.flow
        seen: dict[Hashable, int] = {}
        for index, axes in uses.collectives.items():
            task = flow.scope.tasks[index]
            assert isinstance(task.body, Collective)
            spec = task.body.spec
            if len(task.inputs) != 1 or index in uses.faulty or not axes:
                continue
            more = tuple(
                getattr(spec, name, None) for name in ("reduction", "dim", "split_dim", "concat_dim", "root", "roots")
            )
            key = (type(spec), task.inputs[0], axes, more)
            first = seen.setdefault(key, index)
            if first != index:
                yield _pair(flow, index, first, "redundant.repeated",
                            "repeats {other}: the same operand, axes and kind",
                            "read the first result again (or say that it is gathered anew to save memory)", axes)  # fmt: skip


RULES = (needless, fusible, roundtrip, hoistable, repeated)
