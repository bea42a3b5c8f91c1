"""Runs of the event graph, once for each program, and the findings that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dtir.analysis.membership import TooLarge
from dtir.analysis.projection import Projection, in_one_order, is_delayed, project
from dtir.analysis.rendezvous import Outcome, Wait, Waits, run
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, task_name


@dataclass(frozen=True)
class Circle:
    """A circle of waits, and whether senders that buffer would break it."""

    links: tuple[Wait, ...]
    buffered_breaks: bool


class Runs:
    """What runs of the event graph show; each run is made when it is first asked for."""

    def __init__(self, program: DistributedTaskIR, strictness: str) -> None:
        self.program = program
        self.strictness = strictness
        self.too_large = 0

    @cached_property
    def projection(self) -> Projection | None:
        """Steps and operations; None when no issue lists are given (then there is one order), or they are too many."""
        if not self.program.issue and not any(task.completes for task in self.program.tasks):
            return None
        try:
            return project(self.program)
        except TooLarge as error:
            self.too_large = error.slots
            return None

    @cached_property
    def free_at_once(self) -> bool:
        """The shortcut: everybody issues everything in the order of the task list."""
        return self.projection is None or in_one_order(self.projection)

    # -- who never comes -----------------------------------------------------------------------------------------------

    @cached_property
    def absent(self) -> dict[int, dict[str, list[int]]]:
        """Per task the ranks that never issue it, as ``absent``, and some that do, as ``present``.

        Tasks that nobody issues are left out.
        """
        projection = self.projection
        if projection is None or not len(projection.missing):
            return {}
        members = projection.members
        gone: dict[int, list[int]] = {}
        for place in projection.missing.tolist():
            gone.setdefault(int(members.task[place]), []).append(int(members.rank[place]))
        starts = np.searchsorted(members.task, np.arange(len(self.program.tasks) + 1))
        missing = np.zeros(len(members.task), dtype=np.bool_)
        missing[projection.missing] = True
        found: dict[int, dict[str, list[int]]] = {}
        for task, ranks in gone.items():
            own = slice(int(starts[task]), int(starts[task + 1]))
            present = members.rank[own][~missing[own]]
            if len(present):
                found[task] = {"absent": sorted(set(ranks)), "present": sorted(set(present[:64].tolist()))}
        return found

    @cached_property
    def unissued(self) -> list[int]:
        """Communication tasks that nobody issues although there are issue lists."""
        projection = self.projection
        if projection is None or not len(projection.missing):
            return []
        tasks = np.unique(projection.members.task[projection.missing])
        return [int(task) for task in tasks if int(task) not in self.absent]

    @cached_property
    def meeting(self) -> tuple[Wait, ...] | None:
        """A circle of ranks that each wait in a collective which the next one never issues: different collectives meet."""
        projection = self.projection
        if projection is None or not self.absent:
            return None
        blocked = np.unique(projection.members.op[projection.missing])
        outcome = run(projection, blocked=blocked)
        circle = Waits(projection, outcome).circle(kinds="never")
        if circle is None or any(projection.members.op_transfer[link.op] for link in circle):
            return None
        return circle

    # -- circles -------------------------------------------------------------------------------------------------------

    @cached_property
    def rendezvous(self) -> Outcome | None:
        """The run in which senders wait for receivers; None when nothing needs to be run."""
        return None if self.projection is None or self.free_at_once else run(self.projection)

    @cached_property
    def circle(self) -> Circle | None:
        """A circle of waits among ranks that all come sooner or later."""
        outcome, projection = self.rendezvous, self.projection
        if outcome is None or projection is None or outcome.free:
            return None
        buffering = self.strictness != "gpu-p2p"
        if buffering:
            buffered = run(projection, buffered=True)
            if not buffered.free:
                links = Waits(projection, buffered, buffered=True).circle(kinds="later")
                if links is not None:
                    return Circle(links, buffered_breaks=False)
        links = Waits(projection, outcome).circle(kinds="later")
        return None if links is None else Circle(links, buffered_breaks=buffering)

    @cached_property
    def crossing(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Two ranks that enter two collectives in opposite orders: ((rank, rank), (operation, operation))."""
        projection = self.projection
        if projection is None or self.free_at_once or self.rendezvous is None:
            return None
        if self.rendezvous.free and not is_delayed(projection):
            return None  # every collective is waited for where it is entered, and everybody got through
        # Collectives alone, each waited for where it is entered: a circle is a contradiction of orders.
        keep = ~projection.members.op_transfer[projection.post_op]
        posts = projection.post_step[keep], projection.post_op[keep]
        at_once = self.strictness == "mpi"
        if at_once:
            keep_need = ~projection.members.op_transfer[projection.need_op]
            needs = projection.need_step[keep_need], projection.need_op[keep_need]
        else:
            needs = posts
        alone = replace(
            projection,
            post_step=posts[0],
            post_op=posts[1],
            need_step=needs[0],
            need_op=needs[1],
            need_buffered=np.zeros(len(needs[0]), dtype=np.bool_),
        )
        outcome = run(alone)
        if outcome.free:
            return None
        circle = Waits(alone, outcome).circle(kinds="later")
        if circle is None or len(circle) != 2:
            return None
        return (circle[0].rank, circle[1].rank), (circle[0].op, circle[1].op)


def runs_of(context: Context) -> Runs:
    """The runs of a context's program, made once."""
    return context.remember("runs", lambda: Runs(context.program, context.strictness))


def _task(context: Context, runs: Runs, op: int) -> tuple[int, DistributedTask]:
    assert runs.projection is not None
    index = int(runs.projection.members.op_task[op])
    return index, context.program.tasks[index]


def crossing_findings(context: Context) -> Iterator[Diagnostic]:
    """Two ranks that order two collectives differently."""
    runs = runs_of(context)
    if runs.crossing is None:
        return
    (one, other), ops = runs.crossing
    first, second = (_task(context, runs, op) for op in ops)
    yield finding(
        "order.mismatch",
        f"rank {one} issues {task_name(first[1])} before {task_name(second[1])}, rank {other} the other way round",
        ("tasks", str(first[0])),
        hint="sort the issue list of every rank by one global key",
        subject=(str(first[1].id), str(second[1].id), f"rank {one}", f"rank {other}"),
        related=(Related(f"crosses {task_name(second[1])}", ("tasks", str(second[0]))),),
    )


def circle_text(context: Context, runs: Runs, links: Sequence[Wait], most: int = 8) -> str:
    """A circle as one sentence: who waits in what for whom."""
    parts: list[str] = []
    for link in links[:most]:
        _, task = _task(context, runs, link.op)
        never = ", which never issues it" if link.never else ""
        parts.append(f"rank {link.rank} waits in {task_name(task)} for rank {link.waits_for}{never}")
    more = f"; ... {len(links)} ranks in all" if len(links) > most else ""
    return "; ".join(parts) + more


def circle_finding(context: Context, runs: Runs, code: str, links: Sequence[Wait], hint: str) -> Diagnostic:
    """A finding about a circle of waits."""
    tasks = list(dict.fromkeys(_task(context, runs, link.op)[0] for link in links))
    named = [context.program.tasks[index] for index in tasks]
    return finding(
        code,
        circle_text(context, runs, links),
        ("tasks", str(tasks[0])),
        hint=hint,
        subject=(*(str(task.id) for task in named[:32]), *(f"rank {link.rank}" for link in links[:32])),
        related=[
            Related(f"also in the circle: {task_name(task)}", ("tasks", str(index)))
            for index, task in zip(tasks[1:32], named[1:32], strict=True)
        ],
    )
