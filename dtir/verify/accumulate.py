"""Accumulation over microbatches (``accumulate.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from dtir.analysis.flow import Flow
from dtir.analysis.schedules import Slot, slots_of
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, listed, task_name, task_path, value_name, value_path

GRADIENT = frozenset({"grad", "gradient"})


def is_gradient(value: DistributedValue) -> bool:
    """True for a contribution to a gradient: by its role, or because it names what it is the gradient of."""
    return value.grad_of is not None or value.attributes.get("role") in GRADIENT


def contributions_live(context: Context) -> Iterator[Diagnostic]:
    """Contributions.

    - every gradient reaches an output (of a program that has outputs). One that a reduction comes too early for is reported
      there.
    """
    early = {task for fault in _early(context) for task in fault.left}
    for number, flow in enumerate(context.flows):
        if not flow.scope.outputs:
            continue
        gradients = [(index, value) for index, value in enumerate(flow.scope.values) if is_gradient(value)]
        if not gradients:
            continue
        live = context.liveness(number)
        for index, value in gradients:
            if value.id in live.live_values or (not flow.path and live.producer.get(value.id) in early):
                continue
            yield finding(
                "accumulate.lost",
                f"{value_name(value)} is a gradient and reaches no output",
                value_path(flow, index),
                hint=f"add it to the accumulator (acc = acc + {value_name(value)}), or take its role away",
                subject=(str(value.id),),
            )


@dataclass(frozen=True, slots=True)
class _Early:
    """A reduction that comes before some backwards of its stage."""

    task: int
    stage: int
    left: tuple[int, ...]


def _early(context: Context) -> tuple[_Early, ...]:
    return context.remember("early", lambda: tuple(_find_early(context)))


def _find_early(context: Context) -> Iterator[_Early]:
    tasks = context.program.tasks
    backward: dict[int, list[Slot]] = {}
    for slot in slots_of(tasks):
        if not slot.forward:
            backward.setdefault(slot.stage, []).append(slot)
    if not backward:
        return
    wanted: list[tuple[int, int, int]] = []
    for index, task in enumerate(tasks):
        for stage in _stages(task, backward, tasks):
            wanted += [(slot.task, index, stage) for slot in backward[stage] if slot.task != index]
    known = context.order.ordered([(early, late) for early, late, _ in wanted]) if wanted else []
    left: dict[tuple[int, int], list[int]] = {}
    for (early, late, stage), ordered in zip(wanted, known, strict=True):
        if not ordered:
            left.setdefault((late, stage), []).append(early)
    for (task, stage), missing in left.items():
        yield _Early(task, stage, tuple(missing))


def _stages(
    task: DistributedTask, backward: dict[int, list[Slot]], tasks: tuple[DistributedTask, ...]
) -> tuple[int, ...]:
    """The stages whose gradients a synchronising task reduces: as it says, as its slot says, or those of its ranks."""
    sync: object = task.attributes.get("op.sync") if task.attributes else None
    if sync is None or sync is False:
        return ()
    if isinstance(sync, Mapping):
        sync = cast("Mapping[str, object]", sync).get("stage")
    if isinstance(sync, int) and not isinstance(sync, bool):
        return (sync,) if sync in backward else ()
    if isinstance(sync, tuple):
        items = cast("tuple[object, ...]", sync)
        return tuple(item for item in items if isinstance(item, int) and item in backward)
    if task.pipeline is not None:
        return (task.pipeline.stage,) if task.pipeline.stage in backward else ()
    ranks = set(task.ranks)
    return tuple(
        stage for stage, slots in backward.items() if any(ranks & set(tasks[slot.task].ranks) for slot in slots)
    )


def reduced_last(context: Context) -> Iterator[Diagnostic]:
    """Reductions of accumulated gradients.

    - a task marked ``sync`` comes after every backward of its stage.
    """
    flow: Flow = context.flows[0]
    for fault in _early(context):
        task = context.program.tasks[fault.task]
        names = listed([task_name(context.program.tasks[index]) for index in fault.left], 6)
        yield finding(
            "accumulate.early_reduce",
            f"{task_name(task)} reduces the gradients of stage {fault.stage} and is not after {names}",
            task_path(flow, fault.task, "dependencies"),
            hint=f"make {task_name(task)} depend on all backwards of the stage: add {names}",
            subject=(str(task.id), *(str(context.program.tasks[index].id) for index in fault.left[:32])),
            related=tuple(
                Related(f"not before it: {task_name(context.program.tasks[index])}", task_path(flow, index))
                for index in fault.left[:16]
            ),
        )


RULES = (contributions_live, reduced_last)
