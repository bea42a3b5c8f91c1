"""Does everybody get through (``deadlock.*``, ``p2p.unmatched``)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.ir.collectives import CollectivePermute
from dtir.ir.tasks import Collective, PointToPoint
from dtir.schema.diagnostics import Diagnostic, Severity
from dtir.verify.context import Context, finding, listed, task_name
from dtir.verify.waiting import circle_finding, runs_of


def everybody_comes(context: Context) -> Iterator[Diagnostic]:
    """Participants that never arrive.

    - every participant of a collective issues it;
    - both ends of a transfer issue it.
    """
    runs = runs_of(context)
    meeting = (
        {int(runs.projection.members.op_task[link.op]) for link in runs.meeting}
        if runs.meeting and runs.projection
        else set[int]()
    )
    for index, ranks in sorted(runs.absent.items()):
        task = context.program.tasks[index]
        if index in meeting:
            continue
        transfer = isinstance(task.body, PointToPoint) or (
            isinstance(task.body, Collective) and isinstance(task.body.spec, CollectivePermute)
        )
        absent, present = listed(ranks["absent"]), listed(ranks["present"][:9])
        code = "p2p.unmatched" if transfer else "deadlock.missing_rank"
        yield finding(
            code,
            f"ranks {absent} never issue {task_name(task)}, in which ranks {present} wait for them",
            ("tasks", str(index)),
            hint=f"issue {task_name(task)} on ranks {absent} too, or on nobody" if transfer else
            f"let ranks {absent} join (with empty data), agree on the number of steps first, or use a "
            "group without them",
            subject=(str(task.id), *(f"rank {rank}" for rank in ranks["absent"][:32])),
        )  # fmt: skip


def no_circle(context: Context) -> Iterator[Diagnostic]:
    """Circular waits.

    - no ranks wait for each other in a circle, whether senders wait for receivers or not;
    - no ranks do so when senders wait for receivers (what works only while messages fit a buffer is an error).
    """
    runs = runs_of(context)
    if runs.meeting is not None:
        yield circle_finding(
            context, runs, "deadlock.cycle", runs.meeting,
            "let all ranks issue the same collectives in the same order",
        )  # fmt: skip
        return
    circle = runs.circle
    if circle is None:
        return
    if circle.buffered_breaks:
        yield circle_finding(
            context, runs, "deadlock.buffer_dependent", circle.links,
            "post receives first on one side, group send and receive in one step, or use a combined send-receive",
        )  # fmt: skip
    else:
        yield circle_finding(
            context, runs, "deadlock.cycle", circle.links,
            "reorder one side, group the pair in one step, or alternate even and odd ranks",
        )  # fmt: skip


def all_projected(context: Context) -> Iterator[Diagnostic]:
    """What was not looked at.

    - tasks that no rank issues although there are issue lists; programs with too many participants.
    """
    runs = runs_of(context)
    if runs.projection is not None and runs.unissued:
        names = listed([task_name(context.program.tasks[index]) for index in runs.unissued])
        yield finding(
            "verify.not_issued", f"no rank issues {names}: these tasks stand in no issue list", ("issue",),
            hint="add them to the lists of their ranks, or take them out of the program",
            subject=[str(context.program.tasks[index].id) for index in runs.unissued[:32]], severity=Severity.INFO,
        )  # fmt: skip
    if runs.too_large:
        yield finding(
            "verify.skipped", f"order and deadlock were not judged: more than {runs.too_large} participants", ("issue",),
            hint="judge a smaller mesh of the same program", subject=(), severity=Severity.INFO,
        )  # fmt: skip


RULES = (everybody_comes, no_circle, all_projected)
