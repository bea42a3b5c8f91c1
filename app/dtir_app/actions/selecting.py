"""Selecting: from links, rows and keys; going through findings and communication."""

from __future__ import annotations

import numpy as np

from dtir_app.actions.context import Context, Message, whole
from dtir_app.frames.hits import found_mask
from dtir_app.frames.tables import page_of, sorted_rows
from dtir_app.kinds import COMMUNICATION
from dtir_app.selection import NOTHING, find_selection, of_task, of_value, task_of
from dtir_app.state import QUIET, VIEWS, Notice
from dtir_app.store import SEVERITIES


def select_key(context: Context, message: Message) -> None:
    """Select what a link names."""
    found = find_selection(context.store, str(message.get("key", "")))
    view = message.get("view")
    if found:
        context.select(found, **({"view": view} if view in VIEWS else {}))


def clear(context: Context, message: Message) -> None:
    """Step back: notice, gallery, selection, place, one at a time."""
    state = context.state
    if state.notice.tone:
        state.notice = QUIET
    elif state.gallery and state.store is not None:
        state.gallery = False
    elif state.selection:
        state.param.update(selection=NOTHING, finding=-1)
    elif state.place:
        context.go(state.place[:-1])


def row(context: Context, message: Message) -> None:
    """A click on a row of the table."""
    state, store, row = context.state, context.store, whole(message.get("row"))
    match state.table:
        case "diagnostics":
            finding(context, message)
        case "tensors":
            if 0 <= row < len(store.values):
                context.select(of_value(row))
        case _:
            if 0 <= row < len(store.tasks):
                context.select(of_task(row))


def finding(context: Context, message: Message) -> None:
    """Go to a finding: to the first task or value that it is about."""
    state, store, row = context.state, context.store, whole(message.get("row"))
    if not 0 <= row < len(store.findings):
        return
    found = store.findings[row]
    view = {"view": message["view"]} if message.get("view") in VIEWS else {}
    selection = of_task(found.tasks[0]) if found.tasks else of_value(found.values[0]) if found.values else NOTHING
    order = (state.sort, state.descending) if state.table == "diagnostics" else ("", False)
    at = page_of(sorted_rows(store, "diagnostics", state.filters, *order), row)
    page = {"table_page": max(0, at), "sort": order[0], "descending": order[1]}
    if selection:
        context.select(selection, camera="centre", finding=row, table="diagnostics", **page, **view)
    else:
        state.param.update(selection=NOTHING, finding=row, table="diagnostics", **page)


def next_finding(context: Context, step: int) -> None:
    """The next or previous finding, worst first."""
    store, state = context.store, context.state
    if not store.findings:
        state.notice = Notice("info", "There is no finding to go to.")
        return
    order = sorted(range(len(store.findings)), key=lambda row: (SEVERITIES.index(store.findings[row].severity), row))
    at = order.index(state.finding) + step if state.finding in order else 0 if step > 0 else -1
    finding(context, {"row": order[at % len(order)]})


def next_hit(context: Context, step: int) -> None:
    """The next or previous hit of the search; of the search that is kept as a filter where the box is empty."""
    state, store = context.state, context.store
    text = state.query.strip() or state.filters.text
    if not text:
        state.notice = Notice("info", "Nothing was searched for: press / to search.")
        return
    hits = np.flatnonzero(found_mask(store, text))
    if not len(hits):
        state.notice = Notice("info", f"Nothing matches {text}.")
        return
    now = task_of(store, state.selection)
    place = int(np.searchsorted(hits, now, side="right" if step > 0 else "left")) + (0 if step > 0 else -1)
    context.select(of_task(int(hits[place % len(hits)])))


def hit_step(context: Context, message: Message) -> None:
    """The next or previous hit."""
    next_hit(context, 1 if whole(message.get("step")) >= 0 else -1)


def next_communication(context: Context, step: int) -> None:
    """The next or previous communication that the filters keep."""
    store, state = context.store, context.state
    mask = context.painter.mask(store)
    wanted = {int(family) for family in COMMUNICATION}
    tasks = [task for task, family in enumerate(store.tasks.family.tolist()) if family in wanted and mask[task]]
    if not tasks:
        state.notice = Notice(
            "info", "No communication here" + (" matches the filters." if state.filters.active else ".")
        )
        return
    now = task_of(store, state.selection)
    later = [task for task in tasks if task > now] if step > 0 else [task for task in reversed(tasks) if task < now]
    context.select(of_task(later[0] if later else tasks[0 if step > 0 else -1]))
