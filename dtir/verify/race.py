"""Unordered access to named resources (``race.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtir.analysis.accesses import Access, accesses, neighbours
from dtir.ir.ranks import rank_set
from dtir.ir.types import EffectKind
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, task_name, task_path

_WRITES = frozenset({EffectKind.WRITE, EffectKind.STATE, EffectKind.IO})


def ordered_writes(context: Context) -> Iterator[Diagnostic]:
    """Two writes.

    - tasks that write one resource on a common rank are ordered.
    """
    yield from _races(context, "race.write_write")


def ordered_reads(context: Context) -> Iterator[Diagnostic]:
    """A read and a write.

    - tasks of which one writes and one reads a resource on a common rank are ordered; of a collective the end on all ranks
      counts, not that on the own one.
    """
    yield from _races(context, "race.read_write")


def _races(context: Context, code: str) -> Iterator[Diagnostic]:
    flow = context.flows[0]
    pairs: list[tuple[Access, Access]] = []
    groups = list(accesses(context.program.tasks, _WRITES | {EffectKind.READ}))
    place = _places(context) if groups else None
    for group in groups:
        if place is not None:
            group.sort(key=lambda item: place[item.task])
        pairs += neighbours(group, _WRITES)
    known = _order(context, pairs)
    seen: set[tuple[int, int]] = set()
    for (early, late), ordered in zip(pairs, known, strict=True):
        both = early.writes(_WRITES) and late.writes(_WRITES)
        if ordered or (code == "race.write_write") != both or (early.task, late.task) in seen:
            continue
        seen.add((early.task, late.task))
        one, other = context.program.tasks[early.task], context.program.tasks[late.task]
        first = "writes" if early.writes(_WRITES) else "reads"
        second = "writes" if late.writes(_WRITES) else "reads"
        yield finding(
            code,
            f"{task_name(one)} {first} and {task_name(other)} {second} {late.resource} on rank "
            f"{_common(early, late)}, and nothing orders them",
            task_path(flow, late.task, "effects"),
            hint=f"make {task_name(other)} depend on {task_name(one)} (its end on all ranks), or give it a "
            "buffer of its own",
            subject=(str(one.id), str(other.id), late.resource),
            related=(Related(f"the other task {task_name(one)}", task_path(flow, early.task, "effects")),),
        )


def _places(context: Context) -> list[int] | None:
    """Positions in an order that respects the issue lists; None where the task list is such an order."""
    if not context.program.issue or context.order.topological is None:
        return None
    place = [0] * len(context.program.tasks)
    for number, task in enumerate(context.order.topological):
        place[task] = number
    return place


def _common(early: Access, late: Access) -> int:
    few, many = sorted((late.ranks, early.ranks), key=len)
    inside = rank_set(many)
    return next(rank for rank in few if rank in inside)


def _order(context: Context, pairs: Sequence[tuple[Access, Access]]) -> list[bool]:
    return context.order.comparable([(early.task, late.task) for early, late in pairs]) if pairs else []


RULES = (ordered_writes, ordered_reads)
