"""Who holds what (``ownership.*``; that owners exist and stand once is checked with the structure)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dtir.analysis.deviations import Kind
from dtir.analysis.flow import Flow
from dtir.analysis.holders import Uncovered, uncovered, without
from dtir.analysis.states import declared_state
from dtir.ir.collectives import Broadcast
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import Collective, Control, DistributedTask, LocalCompute
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic
from dtir.verify.context import Context, finding, listed, task_name, task_path, value_name, value_path
from dtir.verify.layout_words import operand_value, related_values, result_value, subjects


def all_shards_held(context: Context) -> Iterator[Diagnostic]:
    """Owners of a value.

    - every combination of its shards and pending shares has an owner (an empty shard too);
    - owners lie on the slice where the value is declared to live.
    """
    space = context.around.space
    known: dict[tuple[int, int], Uncovered | None] = {}
    for flow in context.flows:
        for index, value in enumerate(flow.scope.values):
            key = id(value.sharding), id(value.owners)
            if key not in known:
                known[key] = uncovered(value.owners, declared_state(value.sharding, space), space)
            gap = known[key]
            if gap is None:
                continue
            where = ", ".join(f"{axis}={coordinate}" for axis, coordinate in gap.first)
            if gap.stray is not None:
                message = f"{value_name(value)} lives at {where}, but rank {gap.stray} is among its owners"
                hint = "list the ranks of that slice only, or confine the value elsewhere"
            else:
                message = f"{gap.missing} of the shards of {value_name(value)} have no owner, the first at {where}"
                hint = f"add a rank at {where} to the owners (an empty shard has one too), or change the layout"
            yield finding(
                "ownership.sharding", message, value_path(flow, index, "owners"), hint=hint,
                subject=subjects(None, [value], [axis for axis, _ in gap.first]),
            )  # fmt: skip


def readers_own(context: Context) -> Iterator[Diagnostic]:
    """Readers and writers of values.

    - every rank of a local task or collective owns what the task reads (of a broadcast only the roots do);
    - every owner of a result runs the task that makes it (in check mode: dumps name ranks loosely).
    """
    size = context.program.mesh.size
    for flow in context.flows:
        known: dict[tuple[int, int], tuple[int, ...]] = {}
        for index, task in enumerate(flow.scope.tasks):
            match task.body:
                case LocalCompute():
                    pass
                case Collective(spec=spec) if not isinstance(spec, Broadcast) and not _permutes(task):
                    pass
                case _:
                    continue
            for identifier in task.inputs:
                value = flow.scope.values[flow.position[identifier]]
                absent = _without(known, task, value, size, reads=True)
                if absent:
                    yield _absent(flow, index, task, value, absent)
                    break
            else:
                if context.mode == "infer":
                    continue
                yield from _unwritten(flow, index, task, known, size)


def _permutes(task: DistributedTask) -> bool:
    return isinstance(task.body, Collective) and hasattr(task.body.spec, "pairs")


def _without(
    known: dict[tuple[int, int], tuple[int, ...]],
    task: DistributedTask,
    value: DistributedValue,
    size: int,
    *,
    reads: bool,
) -> tuple[int, ...]:
    """Ranks of the task that do not own the value (or owners that do not run the task); by the objects, which are shared."""
    left, right = (task.ranks, value.owners) if reads else (value.owners, task.ranks)
    key = id(left), id(right)
    found = known.get(key)
    if found is None:
        found = known[key] = without(left, right, size)
    return found


def _absent(
    flow: Flow, index: int, task: DistributedTask, value: DistributedValue, absent: tuple[int, ...]
) -> Diagnostic:
    name = value_name(value)
    return finding(
        "ownership.absent",
        f"{task_name(task)} runs on ranks {listed(absent)}, which do not hold {name}: its owners are "
        f"{listed(tuple(islice(value.owners, 9)))}",
        task_path(flow, index, "inputs"),
        hint=f"insert a transfer or reshard of {name} to these ranks before {task_name(task)}, or run the task "
        "on the owners",
        subject=subjects(task, [value], []),
        related=related_values(flow, ("owners of", value)),
    )


def _unwritten(
    flow: Flow, index: int, task: DistributedTask, known: dict[tuple[int, int], tuple[int, ...]], size: int
) -> Iterator[Diagnostic]:
    for identifier in task.outputs:
        value = flow.scope.values[flow.position[identifier]]
        idle = _without(known, task, value, size, reads=False)
        if idle:
            name = value_name(value)
            yield finding(
                "ownership.sharding",
                f"ranks {listed(idle)} own {name} but do not run {task_name(task)}, which makes it",
                task_path(flow, index, "ranks"),
                hint=f"run {task_name(task)} on all owners of {name}, or take these ranks from its owners",
                subject=subjects(task, [value], []),
                related=related_values(flow, ("owners of", value)),
            )


def replicas_equal(context: Context) -> Iterator[Diagnostic]:
    """Copies of a value.

    - what is declared replicated is made alike on every rank: no per-rank operand, no key of its own;
    - a task does not read a copy that is not current (``valid_on``), except to broadcast or send it.
    """
    for flow, index, item in context.deviations(Kind.REPLICA_DIVERGENCE):
        task, result = flow.scope.tasks[index], result_value(flow, index, item)
        name, axes = value_name(result) if result is not None else "the result", context.axes_text(item.axes)
        if item.note == "key":
            message = (
                f"{task_name(task)} draws {name} with a key that differs along {axes}, where it is declared replicated"
            )
            hint = f"take {', '.join(item.axes)} out of the key, or declare {name} varying over it"
        else:
            message = f"{task_name(task)} makes {name} per rank along {axes}, declared replicated"
            hint = f"broadcast {name} over {', '.join(item.axes)} after {task_name(task)}, or declare it varying there"
        yield finding(
            "ownership.replica_divergence", message, task_path(flow, index, "outputs"), hint=hint,
            subject=subjects(task, [operand_value(flow, index, item), result], item.axes),
            related=related_values(flow, ("declared layout of", result)),
        )  # fmt: skip
    for flow in context.flows:
        yield from _stale_reads(context, flow)


def _stale_reads(context: Context, flow: Flow) -> Iterator[Diagnostic]:
    stale = {value.id for value in flow.scope.values if value.valid_on is not None}
    if not stale:
        return
    size = context.program.mesh.size
    for index, task in enumerate(flow.scope.tasks):
        if isinstance(task.body, Control):
            continue
        for identifier in task.inputs:
            if identifier not in stale:
                continue
            value = flow.scope.values[flow.position[identifier]]
            assert value.valid_on is not None
            owners = rank_set(value.owners)
            old = tuple(rank for rank in without(_readers(task), value.valid_on, size) if rank in owners)
            if old:
                name = value_name(value)
                yield finding(
                    "ownership.replica_divergence",
                    f"{task_name(task)} reads {name} on ranks {listed(old)}, whose copies are not "
                    f"current: only {listed(value.valid_on)} have it",
                    task_path(flow, index, "inputs"),
                    hint=f"broadcast {name} from rank {value.valid_on[0] if value.valid_on else '?'} before "
                    f"{task_name(task)}",
                    subject=subjects(task, [value], []),
                    related=related_values(flow, ("current copies of", value)),
                )


def _readers(task: DistributedTask) -> tuple[int, ...]:
    """Ranks whose copy a task uses."""
    match task.body:
        case Collective(spec=spec):
            if isinstance(spec, Broadcast):
                return ()  # the roots are judged by themselves
            pairs: tuple[tuple[int, int], ...] = getattr(spec, "pairs", ())
            return tuple(source for source, _ in pairs) if pairs else tuple(task.ranks)
        case LocalCompute():
            return tuple(task.ranks)
        case _:
            spec = getattr(task.body, "spec", None)
            return (spec.source_rank,) if spec is not None else ()


RULES = (all_shards_held, readers_own, replicas_equal)
