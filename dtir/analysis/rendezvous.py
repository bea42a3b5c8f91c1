"""Does everybody get through: Kahn's algorithm on the event graph, in whole rounds of array operations (SEMANTICS 2.5).

A step is entered when the step before it is left; an operation is done when all its members have entered it; a step is
left when all operations it needs are done. All waits are conjunctions, so that one run decides for every interleaving.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dtir.analysis.membership import Bools, Ints
from dtir.analysis.projection import Projection

NARROW = 48
"""Rounds with fewer entered steps than this are run step by step: an array call costs as much as some fifty of them."""

WIDE = 512
"""Back to whole rounds at so many steps; well above `NARROW`, so that a run does not change to and fro."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a run comes to rest.

    Args:
        stuck: steps that are entered and never left, one for each rank that does not get through.
        done: per operation whether it took place.
        entered: per step whether it was entered.
    """

    stuck: Ints
    done: Bools = field(repr=False)
    entered: Bools = field(repr=False)

    @property
    def free(self) -> bool:
        """True when everybody gets through."""
        return not len(self.stuck)


@dataclass(frozen=True, slots=True)
class Wait:
    """One link of a circle: `rank` waits in task `task` (step `step`) for rank `waits_for`, which has not come to it."""

    rank: int
    step: int
    op: int
    waits_for: int
    never: bool


_Allowed: TypeAlias = Callable[[Wait], bool]

MOST_LINKS = 1_000_000
"""Links looked at for one shortest circle; beyond that the circle found first is reported."""


class _Csr:
    """Lists of numbers by number, as two arrays."""

    def __init__(self, keys: Ints, items: Ints, count: int) -> None:
        order = np.argsort(keys, kind="stable") if not bool(np.all(keys[1:] >= keys[:-1])) else None
        self.items: Ints = items if order is None else items[order]
        counts = np.bincount(keys, minlength=count)
        self.starts: Ints = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])

    def of(self, keys: Ints) -> Ints:
        """The items of several keys, one list behind the other."""
        starts = self.starts[keys]
        lengths = self.starts[keys + 1] - starts
        total = int(lengths.sum())
        if not total:
            return np.zeros(0, dtype=np.int64)
        offsets = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return self.items[offsets + np.arange(total, dtype=np.int64)]

    def one(self, key: int) -> list[int]:
        return self.items[self.starts[key] : self.starts[key + 1]].tolist()


def run(projection: Projection, *, buffered: bool = False, blocked: Ints | None = None) -> Outcome:
    """Let every rank go as far as it can.

    Args:
        projection: steps and operations.
        buffered: senders do not wait for their receivers.
        blocked: operations that never take place, since a member never comes.
    """
    steps, operations = len(projection.step_rank), len(projection.members.op_task)
    keep = ~projection.need_buffered if buffered else np.ones(len(projection.need_step), dtype=np.bool_)
    need_step, need_op = projection.need_step[keep], projection.need_op[keep]
    posts = _Csr(projection.post_step, projection.post_op, steps)
    needed_by = _Csr(need_op, need_step, operations)
    expected = np.bincount(projection.post_op, minlength=operations)
    if blocked is not None:
        expected[blocked] += 1
    waiting = np.bincount(need_step, minlength=steps)
    last = np.ones(steps, dtype=np.bool_)
    last[:-1] = projection.step_rank[1:] != projection.step_rank[:-1]
    entered = np.zeros(steps, dtype=np.bool_)
    done = np.zeros(operations, dtype=np.bool_)
    left = np.zeros(steps, dtype=np.bool_)
    first = np.ones(steps, dtype=np.bool_)
    first[1:] = last[:-1]
    front = np.flatnonzero(first)
    scratch = np.zeros(max(steps, operations, 1), dtype=np.int64)
    while len(front):
        if len(front) < NARROW:
            front = _step_by_step(front.tolist(), posts, needed_by, expected, waiting, last, entered, left, done)
            if not len(front):
                break
        entered[front] = True
        met = posts.of(front)
        np.subtract.at(expected, met, 1)
        fired = _once(met[expected[met] == 0], scratch)
        done[fired] = True
        freed = needed_by.of(fired)
        np.subtract.at(waiting, freed, 1)
        ready = np.concatenate([front, freed])
        ready = _once(ready[entered[ready] & ~left[ready] & (waiting[ready] == 0)], scratch)
        left[ready] = True
        front = ready[~last[ready]] + 1
    return Outcome(np.flatnonzero(entered & ~left), done, entered)


def _once(numbers: Ints, scratch: Ints) -> Ints:
    """Each number once, in no particular order: where the last one to write its place stands (sorting costs ten times that)."""
    place = np.arange(len(numbers), dtype=np.int64)
    scratch[numbers] = place
    return numbers[scratch[numbers] == place]


def _step_by_step(
    front: list[int],
    posts: _Csr,
    needed_by: _Csr,
    expected: Ints,
    waiting: Ints,
    last: Bools,
    entered: Bools,
    left: Bools,
    done: Bools,
) -> Ints:
    """The run while its front is narrow; what is to be entered next when it has become wide."""
    queue = deque(front)
    while queue and len(queue) < WIDE:
        step = queue.popleft()
        entered[step] = True
        ready = [step]
        for op in posts.one(step):
            expected[op] -= 1
            if expected[op] == 0:
                done[op] = True
                for other in needed_by.one(op):
                    waiting[other] -= 1
                    ready.append(other)
        for other in ready:
            if entered[other] and not left[other] and waiting[other] == 0:
                left[other] = True
                if not last[other]:
                    queue.append(other + 1)
    return np.array(queue, dtype=np.int64)


# -- circles ---------------------------------------------------------------------------------------------------------------


class Waits:
    """Who waits for whom when a run has come to rest."""

    def __init__(self, projection: Projection, outcome: Outcome, *, buffered: bool = False) -> None:
        self.projection = projection
        steps, operations = len(projection.step_rank), len(projection.members.op_task)
        keep = ~projection.need_buffered if buffered else np.ones(len(projection.need_step), dtype=np.bool_)
        self._needs = _Csr(projection.need_step[keep], projection.need_op[keep], steps)
        self._posts = _Csr(projection.post_op, projection.post_step, operations)
        self._outcome = outcome
        self.step_of: dict[int, int] = {int(projection.step_rank[step]): int(step) for step in outcome.stuck}
        members = projection.members
        self._absent: dict[int, list[int]] = {}
        for place in projection.missing.tolist():
            self._absent.setdefault(int(members.op[place]), []).append(int(members.rank[place]))

    def links(self, rank: int) -> Iterator[Wait]:
        """What a stuck rank waits for."""
        step = self.step_of.get(rank)
        if step is None:
            return
        for op in self._needs.one(step):
            if self._outcome.done[op]:
                continue
            for other in self._absent.get(op, ()):
                yield Wait(rank, step, op, other, True)
            for posting in self._posts.one(op):
                if not self._outcome.entered[posting]:
                    yield Wait(rank, step, op, int(self.projection.step_rank[posting]), False)

    def circle(self, *, kinds: str = "any") -> tuple[Wait, ...] | None:
        """A shortest circle through some stuck rank.

        Args:
            kinds: ``later`` follows only members that come later, ``never`` only members that never come, ``any`` both.
        """

        def allowed(link: Wait) -> bool:
            return kinds == "any" or link.never == (kinds == "never")

        best = self._some(allowed)
        if best is None:
            return None
        for link in best[:64]:
            other = self._shortest(link.rank, allowed, len(best))
            if other is not None and len(other) < len(best):
                best = other
        return self._turned(best)

    def _some(self, allowed: _Allowed) -> tuple[Wait, ...] | None:
        """Some circle: depth first with its own stack."""
        done: set[int] = set()
        for origin in sorted(self.step_of):
            if origin in done:
                continue
            path: list[Wait] = []
            place = {origin: 0}
            stack: list[tuple[int, Iterator[Wait]]] = [(origin, self.links(origin))]
            while stack:
                rank, links = stack[-1]
                link = next((item for item in links if allowed(item)), None)
                if link is None:
                    stack.pop()
                    done.add(rank)
                    del place[rank]
                    if path:
                        path.pop()
                elif link.waits_for in place:
                    return (*path[place[link.waits_for] :], link)
                elif link.waits_for in self.step_of and link.waits_for not in done:
                    path.append(link)
                    place[link.waits_for] = len(path)
                    stack.append((link.waits_for, self.links(link.waits_for)))
        return None

    def _shortest(self, start: int, allowed: _Allowed, below: int) -> tuple[Wait, ...] | None:
        """A shortest circle through a rank; None when it has none or looking for it costs too much."""
        parent: dict[int, Wait] = {}
        queue = deque([start])
        looked = 0
        while queue and below > 2:
            rank = queue.popleft()
            for link in self.links(rank):
                looked += 1
                if looked > MOST_LINKS:
                    return None
                if not allowed(link):
                    continue
                if link.waits_for == start:
                    found = [link]
                    while found[-1].rank != start:
                        found.append(parent[found[-1].rank])
                    return tuple(reversed(found))
                if link.waits_for not in parent and link.waits_for in self.step_of:
                    parent[link.waits_for] = link
                    queue.append(link.waits_for)
        return None

    def _turned(self, circle: tuple[Wait, ...]) -> tuple[Wait, ...]:
        """The circle from its lowest rank on, so that equal programs give equal messages."""
        lowest = min(range(len(circle)), key=lambda index: circle[index].rank)
        return (*circle[lowest:], *circle[:lowest])


def crossings(projection: Projection, circle: Sequence[Wait]) -> Mapping[tuple[int, int], tuple[int, int]]:
    """Pairs of operations on a circle that two ranks enter in opposite orders: (rank, rank) to (operation, operation)."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for link in circle:
        for other in circle:
            if link.rank < other.rank and link.waits_for == other.rank and other.waits_for == link.rank:
                found[link.rank, other.rank] = (link.op, other.op)
    return found
