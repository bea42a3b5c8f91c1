"""Why a communication is there, as a section of the inspector."""

from __future__ import annotations

from dtir.verify.why import End, Why, why
from dtir_app.cues.case import known_of
from dtir_app.cues.warming import BUSY
from dtir_app.frames.rows import LINKS, Row, Section, row, section, task_link
from dtir_app.kinds import COMMUNICATION, Family
from dtir_app.store import Store
from dtir_app.text import bytes_text, exact_bytes_text


def why_of(store: Store, index: int) -> Why | None:
    """The reasons of a task, kept with the store; None for one that does not communicate, or where the structure is broken."""
    if Family(int(store.tasks.family[index])) not in COMMUNICATION:
        return None

    def find() -> Why | None:
        context = known_of(store).context
        if context is None:
            return None
        scope = int(store.tasks.scope[index])
        return why(context, scope, index - store.scopes[scope].first_task)

    return store.memo.made(("why", index), find)


def why_section(store: Store, index: int) -> list[Section]:
    """The section; none for a task that does not communicate."""
    if Family(int(store.tasks.family[index])) in COMMUNICATION and not known_of(store).ready:
        return [section("Why is it here", [row("", BUSY)]) | {"why": True, "waits": True}]
    reason = why_of(store, index)
    if reason is None:
        return []
    rows: list[Row] = [row("forced by", sentence_of(reason))]
    for label, ends in (("made by", reason.producers), ("read by", reason.consumers)):
        rows += [_end(store, index, label, end) for end in ends[:LINKS]]
    for moved in reason.moved:
        rows.append(row(moved.axis, f"{moved.before} → {moved.after}", mono=True))
    if reason.sent_bytes is not None:
        note = f"a message of {bytes_text(reason.message_bytes)}" if reason.message_bytes is not None else ""
        rows.append(row("a rank sends", f"{exact_bytes_text(reason.sent_bytes)} at least", note=note))
    rows.append(row(reason.asked.value, reason.because))
    if reason.source:
        rows.append(row("source", reason.source, mono=True))
    rows.append(_cheaper(reason))
    return [section("Why is it here", rows) | {"why": True}]


def sentence_of(reason: Why) -> str:
    """The reason with a capital, except where it begins with a name."""
    text = reason.sentence
    return text[:1].upper() + text[1:] if text.startswith(("every ", "the ", "it ")) else text


def _end(store: Store, index: int, label: str, end: End) -> Row:
    if end.task is None:
        return row(label, end.name, note=end.layout)
    task = store.scopes[int(store.tasks.scope[index])].first_task + end.task
    return row(label, links=[task_link(store, task)], note=f"{end.operation}, {end.layout}")


def _cheaper(reason: Why) -> Row:
    found = reason.alternative
    if found is None:
        return row("cheaper", "no rule knows anything cheaper")
    note = ""
    if found.sent_bytes is not None and found.instead_bytes is not None:
        note = f"a rank sends {bytes_text(found.sent_bytes)} instead of {bytes_text(found.instead_bytes)} in one run"
    return row("cheaper", found.text, note=note)
