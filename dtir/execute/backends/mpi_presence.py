"""Which ranks go together where the data decide: another turn of a loop, or one branch of several.

Processes tell each other what their ranks chose, but only where communication depends on it. With that every process
knows who takes part in what comes next, and a collective that lacks a member is an error on all who would wait for it,
at once and by name. Without it the library would match that collective with whatever the missing rank does next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dtir.analysis.executions import entered
from dtir.execute.backends.mpi_world import World
from dtir.execute.semantics import ExchangeError
from dtir.execute.steps import ExecPlan, Step, StepKind
from dtir.ir.ids import RegionId
from dtir.ir.tasks import Loop

Ranks = Sequence[int]

COMMUNICATION = frozenset({StepKind.EXCHANGE, StepKind.MOVE})


class Presence:
    """Who is there, seen by one process.

    Args:
        world: the processes.
        plan: the plan.
        process_of: the process of every rank.
    """

    def __init__(self, world: World, plan: ExecPlan, process_of: Sequence[int]) -> None:
        self._world = world
        self._process_of = process_of
        self._matters = communicating_steps(plan)
        self._frames: list[_Frame] = []
        self._teams: dict[frozenset[int] | None, tuple[int, ...]] = {}
        self.ranks: frozenset[int] | None = None
        """The ranks that go together at the moment; None: all."""

    def matters(self, step: Step) -> bool:
        """True for control flow on which communication depends."""
        return step.index in self._matters

    def enter(self, step: Step) -> None:
        """Control flow begins."""
        self._frames.append(_Frame(self.ranks))

    def part(self, step: Step, ranks: Ranks, choices: Sequence[int]) -> None:
        """The ranks of this process chose so; hear what the others chose.

        A loop whose number of turns the program states is not asked about: it is only checked.

        Raises:
            ExchangeError: the data contradict the stated number of turns.
        """
        frame = self._frames[-1]
        body = step.task.body
        if isinstance(body, Loop) and body.trip_count is not None:
            expected = int(frame.turns < body.trip_count)
            frame.turns += 1
            other = next((rank for rank, choice in zip(ranks, choices, strict=True) if choice != expected), None)
            if other is not None:
                what = "goes on" if expected == 0 else "leaves"
                raise ExchangeError(
                    f"the loop is stated to run {body.trip_count} times, rank {other} {what} after {frame.turns - 1}"
                )
            return
        taking_part = self.of(step)
        processes = self.processes(taking_part)
        members: dict[int, list[int]] = {process: [] for process in processes}
        for rank in sorted(taking_part):
            members[self._process_of[rank]].append(rank)
        own = dict(zip(ranks, choices, strict=True))
        told = self._world.tell(
            processes,
            [int(own[rank]) for rank in members[self._world.process]],
            {process: len(found) for process, found in members.items()},
        )
        frame.chosen = {
            rank: choice
            for process, found in members.items()
            for rank, choice in zip(found, told[process], strict=True)
        }

    def follow(self, choice: int) -> None:
        """What comes next is done by the ranks that chose so."""
        frame = self._frames[-1]
        if frame.chosen is not None:
            self.ranks = frozenset(rank for rank, found in frame.chosen.items() if found == choice)

    def leave(self) -> None:
        """Control flow is over: all who entered it go together again."""
        self.ranks = self._frames.pop().before

    # -- who is there ---------------------------------------------------------------------------------------------------

    def has(self, rank: int) -> bool:
        """Whether a rank is there."""
        return self.ranks is None or rank in self.ranks

    def of(self, step: Step) -> frozenset[int]:
        """The ranks of a step that are there."""
        members = frozenset(step.ranks)
        return members if self.ranks is None else members & self.ranks

    def processes(self, ranks: Iterable[int]) -> tuple[int, ...]:
        """The processes of some ranks, ascending."""
        return tuple(sorted({self._process_of[rank] for rank in ranks}))

    def require(self, waiting: Iterable[int], missing: Iterable[int]) -> None:
        """Raise when somebody is missing.

        Raises:
            ExchangeError: who waits for whom.
        """
        absent = sorted(missing)
        if absent:
            raise ExchangeError(
                f"ranks {_few(sorted(waiting))} wait for ranks {_few(absent)}, which never arrive: "
                "they took another branch or left the loop"
            )


class _Frame:
    """One piece of control flow that is entered."""

    def __init__(self, before: frozenset[int] | None) -> None:
        self.before = before
        self.chosen: dict[int, int] | None = None
        self.turns = 0


def _few(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks[:8]) + (", ..." if len(ranks) > 8 else "")


def communicating_steps(plan: ExecPlan) -> frozenset[int]:
    """Indices of the control flow steps in whose regions, at any depth, something is communicated."""
    regions = {region: scope.steps for region, scope in plan.regions.items()}
    enters: dict[RegionId, set[RegionId]] = {}
    found: set[RegionId] = set()
    for region, steps in regions.items():
        for step in steps:
            if step.kind in COMMUNICATION:
                found.add(region)
            for inner, _ in entered(step.task.body):
                enters.setdefault(inner, set()).add(region)
    waiting = list(found)
    while waiting:
        for outer in enters.get(waiting.pop(), ()):
            if outer not in found:
                found.add(outer)
                waiting.append(outer)
    return frozenset(
        step.index
        for scope in plan.scopes
        for step in scope.steps
        if any(inner in found for inner, _ in entered(step.task.body))
    )
