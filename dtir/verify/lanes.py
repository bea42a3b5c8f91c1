"""Communication as lanes: what every rank issues, how far each gets, and the circle of waits, for pictures and reports.

Columns are moments: operations that take place stand in the column in which their last member arrives; behind the step in
which a rank is stuck its steps stand one behind the other, since nobody knows when they would have run.

>>> lanes_of(program, buffered=False).circle  # doctest: +SKIP
(Wait(rank=0, step=1, op=1, waits_for=1, never=False), Wait(rank=1, ...))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from dtir.analysis.membership import TooLarge
from dtir.analysis.projection import Projection, project
from dtir.analysis.rendezvous import Outcome, Wait, Waits, run
from dtir.ir.program import DistributedTaskIR
from dtir.verify.context import Strictness
from dtir.verify.waiting import Runs

MOST_RANKS = 12
MOST_STEPS = 24


class Reach(Enum):
    """How far a step gets."""

    DONE = "done"
    STUCK = "stuck"
    NEVER = "never reached"


@dataclass(frozen=True, slots=True)
class LaneStep:
    """One step of a rank: a call, or calls grouped into one.

    Args:
        rank: who issues it.
        ops: numbers of the operations that it enters.
        reach: whether it is left, entered and never left, or never entered.
        column: its moment, from 0.
    """

    rank: int
    ops: tuple[int, ...]
    reach: Reach
    column: int


@dataclass(frozen=True, slots=True)
class LaneOp:
    """One operation: a group of a collective, a pair of a permute, a transfer.

    Args:
        op: its number.
        task: its task, as an index of the program's own list.
        transfer: whether it has a sender and a receiver.
        done: whether it takes place.
        members: the shown ranks that issue it, in rank order.
        absent: ranks that belong to it and never issue it.
    """

    op: int
    task: int
    transfer: bool
    done: bool
    members: tuple[int, ...]
    absent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """One rank: its steps in the order in which it issues them, and how many of them are left out at both ends."""

    rank: int
    steps: tuple[LaneStep, ...]
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """What happens when a program communicates.

    Args:
        lanes: some of the ranks.
        ops: the operations of the shown steps, by number.
        circle: ranks that wait for each other; empty when nobody does.
        buffered: whether senders go on without their receivers.
        stuck: how many ranks do not get through, of all.
        rank_count: how many ranks communicate, of all.
    """

    lanes: tuple[Lane, ...]
    ops: dict[int, LaneOp]
    circle: tuple[Wait, ...]
    buffered: bool
    stuck: int
    rank_count: int


class LaneRuns:
    """Runs of one program for its lanes, each made when it is first asked for."""

    def __init__(self, program: DistributedTaskIR, strictness: Strictness = "nccl") -> None:
        self.runs = Runs(program, strictness)
        self._outcomes: dict[bool, Outcome] = {}

    @cached_property
    def projection(self) -> Projection | None:
        """Steps and operations of every rank; None when there are too many participants."""
        try:
            return self.runs.projection or project(self.runs.program)
        except TooLarge:
            return None

    def outcome(self, buffered: bool) -> Outcome:
        """How far every rank gets."""
        projection = self.projection
        assert projection is not None
        if buffered not in self._outcomes:
            gone = projection.missing
            blocked = np.unique(projection.members.op[gone]) if len(gone) else None
            self._outcomes[buffered] = run(projection, buffered=buffered, blocked=blocked)
        return self._outcomes[buffered]


def lanes_of(
    program: DistributedTaskIR,
    *,
    known: LaneRuns | None = None,
    ranks: Iterable[int] = (),
    tasks: Iterable[int] = (),
    buffered: bool = False,
    strictness: Strictness = "nccl",
) -> Lanes | None:
    """The lanes of some ranks of a structurally valid program; None when it has too many participants.

    Args:
        known: runs of the same program to use again.
        ranks: who is shown first; ranks of the circle and of `tasks` follow, at most `MOST_RANKS` in all.
        tasks: indices of tasks around which the steps of ranks that get through are shown.
        buffered: senders go on without their receivers.
        strictness: as for `dtir.verify.verify`.
    """
    known = known if known is not None else LaneRuns(program, strictness)
    projection = known.projection
    if projection is None:
        return None
    outcome = known.outcome(buffered)
    circle = _circle(known.runs, projection, outcome, buffered)
    wanted = set(tasks)
    shown = _chosen(projection, outcome, circle, list(ranks), wanted)
    lanes = _Drawer(projection, outcome).lanes(shown, wanted)
    return Lanes(
        lanes,
        _operations(projection, outcome, lanes),
        circle,
        buffered,
        len(outcome.stuck),
        len(np.unique(projection.step_rank)),
    )


def _circle(runs: Runs, projection: Projection, outcome: Outcome, buffered: bool) -> tuple[Wait, ...]:
    if outcome.free:
        return ()
    if runs.meeting is not None:
        return runs.meeting
    return Waits(projection, outcome, buffered=buffered).circle(kinds="later") or ()


def _chosen(
    projection: Projection, outcome: Outcome, circle: Sequence[Wait], ranks: list[int], tasks: set[int]
) -> list[int]:
    """The ranks to show, in rank order."""
    found: dict[int, None] = {}
    for rank in ranks:
        found.setdefault(rank)
    for link in circle:
        found.setdefault(link.rank)
    members = projection.members
    if tasks:
        inside = np.isin(members.task, list(tasks))
        for rank in members.rank[inside][: 4 * MOST_RANKS].tolist():
            found.setdefault(int(rank))
    for step in outcome.stuck[: 2 * MOST_RANKS].tolist():
        found.setdefault(int(projection.step_rank[step]))
    for rank in np.unique(projection.step_rank)[:MOST_RANKS].tolist():
        if len(found) >= 4 or len(circle):
            break
        found.setdefault(int(rank))
    return sorted(list(found)[:MOST_RANKS])


class _Drawer:
    """Puts the steps of some ranks into columns."""

    def __init__(self, projection: Projection, outcome: Outcome) -> None:
        self.projection, self.outcome = projection, outcome
        self.stuck = set(outcome.stuck.tolist())

    def lanes(self, ranks: Sequence[int], tasks: set[int]) -> tuple[Lane, ...]:
        windows = {rank: self._window(rank, tasks) for rank in ranks}
        ops_of = self._ops_of([step for first, last, _, _ in windows.values() for step in range(first, last)])
        columns = self._columns({rank: (first, last) for rank, (first, last, _, _) in windows.items()}, ops_of)
        found: list[Lane] = []
        for rank, (first, last, before, after) in windows.items():
            steps = tuple(
                LaneStep(rank, ops_of.get(step, ()), self._reach(step), columns[step]) for step in range(first, last)
            )
            found.append(Lane(rank, steps, before, after))
        return tuple(found)

    def _reach(self, step: int) -> Reach:
        if step in self.stuck:
            return Reach.STUCK
        return Reach.DONE if self.outcome.entered[step] else Reach.NEVER

    def _window(self, rank: int, tasks: set[int]) -> tuple[int, int, int, int]:
        """First and last step to show, and how many are left out before and after."""
        start, end = np.searchsorted(self.projection.step_rank, [rank, rank + 1]).tolist()
        if end - start <= MOST_STEPS:
            return start, end, 0, 0
        stuck = [step for step in self.outcome.stuck.tolist() if start <= step < end]
        centre = stuck[0] if stuck else self._first_of(start, end, tasks)
        first = max(start, min(centre - MOST_STEPS // 2, end - MOST_STEPS))
        return first, first + MOST_STEPS, first - start, end - first - MOST_STEPS

    def _first_of(self, start: int, end: int, tasks: set[int]) -> int:
        projection = self.projection
        inside = (projection.post_step >= start) & (projection.post_step < end)
        posts = np.flatnonzero(inside)
        for place in posts.tolist():
            if int(projection.members.op_task[projection.post_op[place]]) in tasks:
                return int(projection.post_step[place])
        return start

    def _ops_of(self, steps: list[int]) -> dict[int, tuple[int, ...]]:
        projection = self.projection
        found: dict[int, list[int]] = {}
        inside = np.flatnonzero(np.isin(projection.post_step, steps))
        for place in inside.tolist():
            found.setdefault(int(projection.post_step[place]), []).append(int(projection.post_op[place]))
        return {step: tuple(dict.fromkeys(ops)) for step, ops in found.items()}

    def _columns(self, windows: dict[int, tuple[int, int]], ops_of: dict[int, tuple[int, ...]]) -> dict[int, int]:
        """Columns of steps: members of an operation that takes place stand below each other."""
        members: dict[int, set[int]] = {}
        for ops in ops_of.values():
            for op in ops:
                if self.outcome.done[op]:
                    members.setdefault(op, set())
        for step, ops in ops_of.items():
            for op in ops:
                if op in members:
                    members[op].add(step)
        place = {rank: first for rank, (first, _) in windows.items()}
        edge = dict.fromkeys(windows, 0)
        columns: dict[int, int] = {}
        moved = True
        while moved:
            moved = False
            for rank, (_, last) in windows.items():
                step = place[rank]
                if step >= last or not self.outcome.entered[step] or step in self.stuck:
                    continue
                # Steps that meet here directly or through each other stand in one column.
                meeting = self._meeting(step, ops_of, members)
                heads = {int(self.projection.step_rank[item]): item for item in meeting}
                if any(place[other] != item for other, item in heads.items()):
                    continue
                column = max(edge[other] for other in heads)
                for other, item in heads.items():
                    columns[item] = column
                    edge[other] = column + 1
                    place[other] = item + 1
                moved = True
        front = max(edge.values(), default=0)
        for rank, (_, last) in windows.items():
            # Whoever is stuck stands behind everything that took place; whoever arrived differently goes on in order.
            column = front if any(step in self.stuck for step in range(place[rank], last)) else edge[rank]
            for step in range(place[rank], last):
                columns[step] = column
                column += 1
        return columns

    def _meeting(self, step: int, ops_of: dict[int, tuple[int, ...]], members: dict[int, set[int]]) -> set[int]:
        """Steps joined to a step by operations that take place."""
        found, queue = {step}, [step]
        while queue:
            for op in ops_of.get(queue.pop(), ()):
                for other in members.get(op, ()):
                    if other not in found:
                        found.add(other)
                        queue.append(other)
        return found


def _operations(projection: Projection, outcome: Outcome, lanes: Sequence[Lane]) -> dict[int, LaneOp]:
    issuing: dict[int, set[int]] = {}
    for lane in lanes:
        for step in lane.steps:
            for op in step.ops:
                issuing.setdefault(op, set()).add(lane.rank)
    members = projection.members
    absent: dict[int, list[int]] = {}
    for place in projection.missing.tolist():
        absent.setdefault(int(members.op[place]), []).append(int(members.rank[place]))
    return {
        op: LaneOp(
            op,
            int(members.op_task[op]),
            bool(members.op_transfer[op]),
            bool(outcome.done[op]),
            tuple(sorted(ranks)),
            tuple(sorted(set(absent.get(op, ())))),
        )
        for op, ranks in sorted(issuing.items())
    }
