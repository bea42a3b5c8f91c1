"""Happens-before among the tasks of a program: dependencies, data flow, waits and declared issue order (SEMANTICS 2.5).

The order of the task list alone orders nothing. An asynchronous task (one that another completes) is followed, in issue
order, only by what follows its completion.

Queries come in batches: one pass over the graph carries, as bits, which sources of open queries lie behind a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dtir.ir.ids import NodeId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask

MAX_STEPS_IN_CYCLES = 20_000_000
"""Steps spent on queries in a graph with circles, which has no topological order to carry bits along."""


@dataclass(frozen=True, slots=True)
class Order:
    """The graph of happens-before.

    Args:
        before: for every task (by position) the tasks directly before it.
        topological: positions in an order that respects the graph; None when the graph has a circle.
    """

    before: tuple[tuple[int, ...], ...] = field(repr=False)
    topological: tuple[int, ...] | None = field(repr=False)

    def ordered(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """For every (early, late) pair of positions whether early happens before late."""
        if not pairs:
            return []
        return self._by_bits(pairs) if self.topological is not None else self._by_walks(pairs)

    def comparable(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """For every pair whether one of the two happens before the other."""
        forward = self.ordered(pairs)
        open_pairs = [(late, early) for (early, late), known in zip(pairs, forward, strict=True) if not known]
        backward = iter(self.ordered(open_pairs))
        return [known or next(backward) for known in forward]

    def _by_bits(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        assert self.topological is not None
        place = [0] * len(self.before)
        for number, task in enumerate(self.topological):
            place[task] = number
        queries: dict[int, list[int]] = {}
        last: dict[int, int] = {}
        for index, (early, late) in enumerate(pairs):
            if place[early] < place[late]:
                queries.setdefault(late, []).append(index)
                last[early] = max(last.get(early, -1), place[late])
        answers = [False] * len(pairs)
        if not queries:
            return answers
        carried = _Carried(self.before)
        for number, task in enumerate(self.topological):
            bits = carried.behind(task)
            for index in queries.get(task, ()):
                answers[index] = carried.holds(bits, pairs[index][0])
            carried.leave(task, bits, opens=task in last)
            for index in queries.get(task, ()):
                if last[pairs[index][0]] == number:
                    carried.close(pairs[index][0])
        return answers

    def _by_walks(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        budget = MAX_STEPS_IN_CYCLES
        reach: dict[int, set[int]] = {}
        answers: list[bool] = []
        for early, late in pairs:
            if late not in reach:
                seen: set[int] = set()
                stack = list(self.before[late])
                while stack and budget > 0:
                    task = stack.pop()
                    if task not in seen:
                        budget -= 1
                        seen.add(task)
                        stack.extend(self.before[task])
                reach[late] = seen
            # Out of budget, an answer of yes keeps silent instead of guessing a fault.
            answers.append(early in reach[late] or budget <= 0)
        return answers


class _Carried:
    """Which open sources lie behind a task, as bits; sources that nobody asks about any more are dropped."""

    def __init__(self, before: Sequence[Sequence[int]]) -> None:
        self._before = before
        self._uses = [0] * len(before)
        for earlier in before:
            for task in earlier:
                self._uses[task] += 1
        self._bit: dict[int, int] = {}
        self._behind: dict[int, int] = {}
        self._width = 0

    def behind(self, task: int) -> int:
        """The bits of everything before a task, to be asked for once, in topological order."""
        bits = 0
        for earlier in self._before[task]:
            bits |= self._behind.get(earlier, 0)
            self._uses[earlier] -= 1
            if not self._uses[earlier]:
                self._behind.pop(earlier, None)
        return bits

    def holds(self, bits: int, source: int) -> bool:
        slot = self._bit.get(source)
        return slot is not None and bool(bits >> slot & 1)

    def close(self, source: int) -> None:
        self._bit.pop(source, None)
        if self._width > 2 * len(self._bit) + 64:
            self._squeeze()

    def leave(self, task: int, bits: int, *, opens: bool) -> None:
        """Hand the bits on to what follows the task."""
        if opens:
            self._bit[task] = self._width
            bits |= 1 << self._width
            self._width += 1
        if bits and self._uses[task]:
            self._behind[task] = bits

    def _squeeze(self) -> None:
        """Give the open sources new, narrow bits."""
        slots = list(self._bit.items())
        self._bit = {source: new for new, (source, _) in enumerate(slots)}
        self._width = len(slots)
        self._behind = {
            task: squeezed
            for task, bits in self._behind.items()
            if (squeezed := sum(1 << new for new, (_, old) in enumerate(slots) if bits >> old & 1))
        }


def happens_before(program: DistributedTaskIR) -> Order:
    """The order of the tasks of a program's own list."""
    tasks = program.tasks
    position = {task.id: index for index, task in enumerate(tasks)}
    producer: dict[ValueId, int] = {}
    before: list[tuple[int, ...]] = []
    completed_by: dict[int, list[int]] = {}
    for index, task in enumerate(tasks):
        before.append(_direct(task, index, position, producer))
        for output in task.outputs:
            producer[output] = index
        for awaited in task.completes:
            if awaited in position:
                completed_by.setdefault(position[awaited], []).append(index)
    if not program.issue:
        return Order(tuple(before), tuple(range(len(tasks))))
    more = [set(items) for items in before]
    for late, early in _issue_edges(program, position, completed_by):
        if late != early:
            more[late].add(early)
    merged = tuple(tuple(sorted(items)) for items in more)
    return Order(merged, topological_order(merged))


def _direct(
    task: DistributedTask, index: int, position: dict[NodeId, int], producer: dict[ValueId, int]
) -> tuple[int, ...]:
    found = {position[item] for item in task.dependencies if position.get(item, index) < index}
    for item in task.inputs:
        if item in producer:
            found.add(producer[item])
    for item in task.completes:
        if position.get(item, index) < index:
            found.add(position[item])
    return tuple(found)


def _issue_edges(
    program: DistributedTaskIR, position: dict[NodeId, int], completed_by: dict[int, list[int]]
) -> Iterable[tuple[int, int]]:
    """(late, early) pairs from the issue lists; tasks of one grouped step are not ordered among each other."""
    for issue in program.issue:
        earlier: list[int] = []
        for step in issue.steps:
            members = [position[item] for item in step if item in position]
            if not members:
                continue
            for late in members:
                for early in earlier:
                    yield late, early
            # An asynchronous task orders nothing by having been issued; what came before it still does.
            finished = [item for item in members if item not in completed_by]
            earlier = finished or earlier


def topological_order(before: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Positions such that everything stands behind what is before it; None when there is a circle."""
    after: list[list[int]] = [[] for _ in before]
    waiting = [len(items) for items in before]
    for late, items in enumerate(before):
        for early in items:
            after[early].append(late)
    ready = [index for index, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        task = ready.pop()
        order.append(task)
        for late in after[task]:
            waiting[late] -= 1
            if not waiting[late]:
                ready.append(late)
    return tuple(order) if len(order) == len(before) else None
