"""How much two programs communicate, in all and by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dtir.analysis.summary import placed_tasks
from dtir.diff.facts import task_kind
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, PointToPoint


def communication(program: DistributedTaskIR) -> Iterator[tuple[str, int | None]]:
    """Kind and bytes of every collective and transfer: ``message_bytes`` times executions; None where one is not a number."""
    for placed in placed_tasks(program):
        body = placed.task.body
        if not isinstance(body, Collective | PointToPoint):
            continue
        size, times = body.spec.message_bytes, placed.executions
        yield task_kind(placed.task), size * times if isinstance(size, int) and times is not None else None


def total_bytes(program: DistributedTaskIR) -> int | None:
    """The sum of `communication`; None where a number is missing."""
    total = 0
    for _, number in communication(program):
        if number is None:
            return None
        total += number
    return total


def bytes_by_kind(left: DistributedTaskIR, right: DistributedTaskIR) -> dict[str, tuple[int, int]]:
    """Bytes of both programs by kind, as far as they are numbers."""
    sums: list[Counter[str]] = []
    for program in (left, right):
        counted: Counter[str] = Counter()
        for kind, number in communication(program):
            counted[kind] += number or 0
        sums.append(counted)
    return {kind: (sums[0][kind], sums[1][kind]) for kind in sorted({*sums[0], *sums[1]})}
