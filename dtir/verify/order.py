"""Order of communication (``order.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtir.analysis.membership import participants_of
from dtir.ir.ranks import rank_set
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, task_name, task_path
from dtir.verify.waiting import crossing_findings

MOST_SETS = 64
"""Different rank sets that are kept apart while looking for neighbours in the task list."""


def order_fixed(context: Context) -> Iterator[Diagnostic]:
    """Order of a program that asks for a strict one and has no issue lists.

    - two communication tasks that share two ranks are ordered by dependencies, data flow or waits.
    """
    program = context.program
    if not program.strict_order or program.issue:
        return
    last: dict[object, tuple[int, Sequence[int]]] = {}
    pairs: list[tuple[int, int]] = []
    for index, task in enumerate(program.tasks):
        members = participants_of(task)
        if len(members) < 2:
            continue
        for other, ranks in list(last.values())[-MOST_SETS:]:
            if ranks is members or _share_two(members, ranks):
                pairs.append((other, index))
        key = id(members) if len(members) > 64 else tuple(sorted(members))
        last.pop(key, None)
        last[key] = (index, members)
    flow = context.flows[0]
    for (early, late), known in zip(pairs, context.order.comparable(pairs), strict=True):
        if known:
            continue
        one, other = program.tasks[early], program.tasks[late]
        shared = sorted(set(participants_of(one)) & set(participants_of(other)))[:4]
        yield finding(
            "order.ambiguous",
            f"nothing orders {task_name(one)} and {task_name(other)}, which share ranks "
            f"{', '.join(map(str, shared))}: each rank may choose its own order",
            task_path(flow, late),
            hint=f"make {task_name(other)} depend on {task_name(one)}, or attach issue lists",
            subject=(str(one.id), str(other.id)),
            related=(Related(f"the other task {task_name(one)}", task_path(flow, early)),),
        )


def _share_two(one: Sequence[int], other: Sequence[int]) -> bool:
    smaller, larger = (one, other) if len(one) <= len(other) else (other, one)
    known = rank_set(larger)
    count = 0
    for rank in smaller:
        count += rank in known
        if count == 2:
            return True
    return False


def one_order(context: Context) -> Iterator[Diagnostic]:
    """Order of collectives on different ranks.

    - ranks that share two collectives issue them in one order. Strictness ``nccl`` and above asks this of asynchronous
      ones too, since communicators of one device may starve each other.
    """
    yield from crossing_findings(context)


RULES = (order_fixed, one_order)
