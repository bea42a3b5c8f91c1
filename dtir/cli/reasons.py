"""Reasons of communication for ``dtir show --why``: which tasks are asked for, and their reasons as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dtir.cli.command import failure
from dtir.cli.terminal import Style, printable

if TYPE_CHECKING:
    from dtir.cli.render_json import JSON
    from dtir.ir.program import DistributedTaskIR
    from dtir.ir.tasks import DistributedTask
    from dtir.verify.why import End, Why

EVERY = "all"


def reasons(program: DistributedTaskIR, asked: str) -> list[tuple[DistributedTask, Why]]:
    """The reasons of the communication tasks that a name or display id means; of all for ``all``.

    Raises:
        Failure: the program has no such task, or it does not communicate.
    """
    from dtir.ir.tasks import Collective, PointToPoint, Reshard
    from dtir.verify import Context, mode_of
    from dtir.verify.why import why

    context = Context(program, mode_of(program), "nccl")
    found: list[tuple[DistributedTask, Why]] = []
    local = False
    for number, (_, scope) in enumerate(program.scopes()):
        for index, task in enumerate(scope.tasks):
            if asked not in (EVERY, task.name, str(task.id), task.id.value):
                continue
            if not isinstance(task.body, (Collective, PointToPoint, Reshard)):
                local = True
                continue
            reason = why(context, number, index)
            if reason is not None:
                found.append((task, reason))
    if found or asked == EVERY:
        return found
    what = "does not communicate" if local else "is not in the program"
    raise failure(
        "cli.usage", f"--why {asked}: this task {what}", hint="give the name or id of a communication task, or all"
    )


def reason_lines(task: DistributedTask, reason: Why, style: Style) -> Iterator[str]:
    """One reason as lines of text."""
    name = printable(task.name or str(task.id))
    yield f"{style.bold(name)} ({task.operation.name}) is {reason.asked.value}: {printable(reason.because)}"
    yield f"  {printable(reason.sentence)}"
    for label, ends in (("made by", reason.producers), ("read by", reason.consumers)):
        for end in ends:
            operation = f" ({end.operation})" if end.operation else ""
            yield f"  {label:<8} {printable(end.name)}{operation}: {printable(end.layout)}"
    for item in reason.moved:
        yield f"  {printable(item.axis):<8} {item.before} -> {item.after}"
    if reason.sent_bytes is not None:
        yield f"  a rank sends at least {reason.sent_bytes:g} bytes of a message of {reason.message_bytes:g}"
    if reason.source:
        yield f"  source   {printable(reason.source)}"
    cheaper = reason.alternative
    if cheaper is None:
        yield "  cheaper  no rule knows anything"
        return
    known = cheaper.sent_bytes is not None and cheaper.instead_bytes is not None
    cost = f" ({cheaper.sent_bytes:g} bytes instead of {cheaper.instead_bytes:g} in one run)" if known else ""
    yield f"  cheaper  {printable(cheaper.text)}{cost}"


def reason_json(task: DistributedTask, reason: Why) -> JSON:
    """One reason as JSON."""
    cheaper = reason.alternative
    return {
        "id": str(task.id),
        "name": task.name,
        "operation": str(task.operation),
        "sentence": reason.sentence,
        "producers": [_end(item) for item in reason.producers],
        "consumers": [_end(item) for item in reason.consumers],
        "moved": [{"axis": item.axis, "before": item.before, "after": item.after} for item in reason.moved],
        "message_bytes": reason.message_bytes,
        "sent_bytes": reason.sent_bytes,
        "asked": reason.asked.value,
        "because": reason.because,
        "source": reason.source,
        "alternative": None
        if cheaper is None
        else {
            "text": cheaper.text,
            "rule": cheaper.rule,
            "sent_bytes": cheaper.sent_bytes,
            "instead_bytes": cheaper.instead_bytes,
        },
    }


def _end(end: End) -> JSON:
    return {"name": end.name, "operation": end.operation, "layout": end.layout}
