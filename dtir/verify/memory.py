"""Buffers: allocated, used, freed (``memory.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtir.analysis.accesses import Access, accesses, by_ranks
from dtir.analysis.flow import Flow
from dtir.analysis.peak import peak_bytes
from dtir.analysis.schedules import rank_orders
from dtir.ir.types import EffectKind
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from dtir.verify.context import Context, finding, listed, task_name, task_path
from dtir.verify.sizes import LocalBytes

_ALL = frozenset({EffectKind.ALLOC, EffectKind.FREE, EffectKind.READ, EffectKind.WRITE, EffectKind.STATE})
_USES = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.STATE})
COUNTS = ("inflight", "buffers", "live_buffers", "inflight_buffers", "sends", "inflight_sends")
"""Limits on the number of buffers alive at once; ``inflight`` means microbatches where the program has a pipeline without buffers."""
BYTES = ("peak_bytes", "memory_bytes", "budget_bytes")
OTHER = ("warmup",)


def freed_at_the_end(context: Context) -> Iterator[Diagnostic]:
    """Allocations.

    - what a rank allocates it frees.
    """
    flow = context.flows[0]
    allocated: dict[str, list[int]] = {}
    freed: dict[str, list[int]] = {}
    for index, task in enumerate(flow.scope.tasks):
        for effect in task.effects:
            if effect.kind is EffectKind.ALLOC:
                allocated.setdefault(effect.resource, []).append(index)
            elif effect.kind is EffectKind.FREE:
                freed.setdefault(effect.resource, []).append(index)
    for resource, makers in allocated.items():
        ranks = _ranks(flow, makers) - _ranks(flow, freed.get(resource, []))
        extra = len(makers) - len(freed.get(resource, []))
        if not ranks and (extra <= 0 or len({tuple(flow.scope.tasks[i].ranks) for i in makers + freed[resource]}) > 1):
            continue
        last = makers[-1]
        task = flow.scope.tasks[last]
        where = listed(sorted(ranks or _ranks(flow, makers)))
        times = f" ({len(makers)} times, freed {len(freed.get(resource, []))} times)" if not ranks else ""
        yield finding(
            "memory.leak",
            f"{task_name(task)} allocates {resource}, which ranks {where} never free{times}",
            task_path(flow, last, "effects"),
            hint=f"free {resource} after its last use",
            subject=(str(task.id), resource),
        )


def _ranks(flow: Flow, tasks: Sequence[int]) -> set[int]:
    return {rank for index in tasks for rank in flow.scope.tasks[index].ranks}


def _lives(context: Context) -> Iterator[list[Access]]:
    """The accesses of every resource that is freed, as single ranks see them."""
    for group in accesses(context.program.tasks, _ALL):
        if any(EffectKind.FREE in item.kinds for item in group):
            yield from by_ranks(group)


def freed_once(context: Context) -> Iterator[Diagnostic]:
    """Frees.

    - between two frees of one resource on one rank stands an allocation.
    """
    flow = context.flows[0]
    reported: set[tuple[int, int]] = set()
    for chain in _lives(context):
        frees = [item for item in chain if EffectKind.FREE in item.kinds]
        allocs = [item for item in chain if EffectKind.ALLOC in item.kinds]
        pairs = [(one, other) for place, one in enumerate(frees) for other in frees[place + 1 : place + 2]]
        for one, other in pairs:
            if _between(context, one, other, allocs) or (one.task, other.task) in reported:
                continue
            reported.add((one.task, other.task))
            first, second = flow.scope.tasks[one.task], flow.scope.tasks[other.task]
            yield finding(
                "memory.double_free",
                f"{task_name(first)} and {task_name(second)} both free {one.resource}, and no allocation "
                "stands between",
                task_path(flow, other.task, "effects"),
                hint=f"free {one.resource} once, where its users join",
                subject=(str(first.id), str(second.id), one.resource),
                related=(Related(f"freed first by {task_name(first)}", task_path(flow, one.task, "effects")),),
            )


def _between(context: Context, one: Access, other: Access, allocs: Sequence[Access]) -> bool:
    """True when some allocation is after one and before the other."""
    middle = [item.task for item in allocs if item.task not in (one.task, other.task)]
    if not middle:
        return False
    after = context.order.ordered([(one.task, task) for task in middle])
    before = context.order.ordered([(task, other.task) for task in middle])
    return any(left and right for left, right in zip(after, before, strict=True))


def used_before_free(context: Context) -> Iterator[Diagnostic]:
    """Uses.

    - every use of a resource is before its free, or after a later allocation; an order must say so.
    """
    flow = context.flows[0]
    reported: set[tuple[int, int]] = set()
    for chain in _lives(context):
        frees = [item for item in chain if EffectKind.FREE in item.kinds]
        allocs = [item for item in chain if EffectKind.ALLOC in item.kinds]
        uses = [item for item in chain if item.kinds & _USES]
        pairs = [(use, free) for use in uses for free in frees if use.task != free.task]
        known = context.order.ordered([(use.task, free.task) for use, free in pairs]) if pairs else []
        for (use, free), ordered in zip(pairs, known, strict=True):
            if ordered or (use.task, free.task) in reported or _between(context, free, use, allocs):
                continue
            if any(item.task == use.task for item in allocs) and _after(context, free, use):
                continue
            reported.add((use.task, free.task))
            first, second = flow.scope.tasks[free.task], flow.scope.tasks[use.task]
            late = _after(context, free, use)
            yield finding(
                "memory.use_after_free",
                f"{task_name(second)} uses {use.resource}, which {task_name(first)} frees "
                f"{'before' if late else 'at no fixed time before or after'}",
                task_path(flow, use.task, "effects"),
                hint=f"free {use.resource} after {task_name(second)}: make {task_name(first)} depend on it",
                subject=(str(second.id), str(first.id), use.resource),
                related=(Related(f"freed by {task_name(first)}", task_path(flow, free.task, "effects")),),
            )


def _after(context: Context, free: Access, use: Access) -> bool:
    return context.order.ordered([(free.task, use.task)])[0]


def few_alive(context: Context) -> Iterator[Diagnostic]:
    """Buffers alive at once.

    - no rank has more allocated resources than a limit of the program allows, in the order in which it runs its tasks.
    """
    program = context.program
    touching = [
        index
        for index, task in enumerate(program.tasks)
        if any(item.kind in (EffectKind.ALLOC, EffectKind.FREE) for item in task.effects)
    ]
    limits = [limit for limit in program.limits if limit.name in COUNTS]
    if not touching or not limits:
        return
    flow = context.flows[0]
    for rank, order in rank_orders(program, touching):
        bound = min((limit.value for limit in limits if limit.rank in (None, rank)), default=None)
        if bound is None:
            continue
        live: set[str] = set()
        most, at = 0, order[0]
        for index in order:
            for effect in program.tasks[index].effects:
                if effect.kind is EffectKind.ALLOC:
                    live.add(effect.resource)
            if len(live) > most:
                most, at = len(live), index
            for effect in program.tasks[index].effects:
                if effect.kind is EffectKind.FREE:
                    live.discard(effect.resource)
        if most > bound:
            task = program.tasks[at]
            yield finding(
                "memory.inflight",
                f"rank {rank} has {most} buffers allocated at {task_name(task)}, the limit is {bound}",
                task_path(flow, at, "effects"),
                hint="wait for and free each buffer as its transfer completes",
                subject=(str(task.id), f"rank {rank}"),
            )


def within_budget(context: Context) -> Iterator[Diagnostic]:
    """Bytes alive at once.

    - the live values of no rank exceed the budget of the program (``peak_bytes``).
    """
    limits = [limit for limit in context.program.limits if limit.name in BYTES]
    if not limits:
        return
    local = LocalBytes(context)
    flow = context.flows[0]
    for rank, peak, at in peak_bytes(context.program, lambda value: local.of(value)[0]):
        bound = min((limit.value for limit in limits if limit.rank in (None, rank)), default=None)
        if bound is not None and peak > bound:
            task = context.program.tasks[at]
            yield finding(
                "memory.peak",
                f"rank {rank} holds {peak} bytes of live values at {task_name(task)}, the budget is {bound}",
                task_path(flow, at),
                hint="reorder, recompute, or split the largest values over more ranks",
                subject=(str(task.id), f"rank {rank}"),
            )


def known_limits(context: Context) -> Iterator[Diagnostic]:
    """Limits of the program.

    - each has a name that is known, and something to limit; others are said to be left out.
    """
    program = context.program
    names = sorted({limit.name for limit in program.limits} - {*COUNTS, *BYTES, *OTHER})
    if names:
        yield finding(
            "verify.limit", f"limits {listed(names)} are not known and not judged", ("limits",),
            hint=f"use {', '.join((*COUNTS[:1], *BYTES[:1], *OTHER))}", subject=names, severity=Severity.INFO,
        )  # fmt: skip


RULES = (freed_at_the_end, freed_once, used_before_free, few_alive, within_budget, known_limits)
