"""Search, filters, tables and the outline."""

from __future__ import annotations

from dataclasses import replace

from dtir_app.actions.context import Context, Message, whole
from dtir_app.actions.selecting import finding
from dtir_app.filters import Filters
from dtir_app.frames.export import selection_csv, selection_json, table_csv, table_json
from dtir_app.frames.inspector import inspect
from dtir_app.frames.outline import FIRST, widened
from dtir_app.frames.table_columns import TABLES
from dtir_app.frames.tables import page_of, row_of, sorted_rows
from dtir_app.selection import NOTHING


def search(context: Context, message: Message) -> None:
    """Look for a text; what is found is listed below the box."""
    context.state.query = str(message.get("text", ""))[:500]


def keep(context: Context, message: Message) -> None:
    """Keep the hits of a search as a filter."""
    apply_filters(context, replace(context.state.filters, text=str(message.get("text", ""))[:500]))


def apply_filters(context: Context, filters: Filters, **more: object) -> None:
    """Other filters; tables begin at their first page."""
    context.state.param.update(filters=filters, table_page=0, **more)


def toggle_filter(context: Context, message: Message) -> None:
    """Switch one choice of the filters."""
    group, item = str(message.get("group", "")), message.get("item")
    filters = context.state.filters
    match group:
        case "families" | "kinds" | "axes" | "severities":
            apply_filters(context, filters.toggled(group, item))
        case "bytes":
            apply_filters(context, replace(filters, min_bytes=float(item) if isinstance(item, (int, float)) else 0.0))
        case "text":
            apply_filters(context, replace(filters, text=""))
        case _:
            return


def filter_clear(context: Context, message: Message) -> None:
    """No filters."""
    apply_filters(context, Filters())


def show_kind(context: Context, message: Message) -> None:
    """The tasks of one kind, in the table that has most about them."""
    kind = str(message.get("kind", ""))
    table = "tasks" if kind in ("local_compute", "control", "call", "loop", "branch") else "collectives"
    apply_filters(context, Filters(kinds=frozenset({kind})), table=table, sort="")


def show_axes(context: Context, message: Message) -> None:
    """The communication over some axes, and their groups on the mesh."""
    axes = frozenset(str(axis) for axis in message.get("axes") or ())
    apply_filters(
        context,
        Filters(axes=axes),
        table="collectives",
        sort="",
        view="mesh" if axes else context.state.view,
        mesh_axes=axes,
        selection=NOTHING,
        finding=-1,
    )


def findings(context: Context, message: Message) -> None:
    """The first finding of a severity."""
    severity = str(message.get("severity", ""))
    first = next((row for row, item in enumerate(context.store.findings) if item.severity == severity), -1)
    context.tell("drawer")
    if first >= 0:
        finding(context, {"row": first})


def show_table(context: Context, message: Message) -> None:
    """Another table, at the page of what is selected."""
    table = str(message.get("table", ""))
    if table not in TABLES:
        return
    state, store = context.state, context.store
    row = row_of(store, table, state.selection)
    page = max(0, page_of(sorted_rows(store, table, state.filters), row)) if row >= 0 else 0
    state.param.update(table=table, sort="", descending=False, table_page=page)
    context.tell("drawer")


def sort(context: Context, message: Message) -> None:
    """Sort by a column; numbers largest first; once more turns it round."""
    state, column = context.state, str(message.get("column", ""))
    if column not in {item.key for item in TABLES[state.table]}:
        return
    if state.sort != column:
        looks = {item.key: item.look for item in TABLES[state.table]}
        state.param.update(sort=column, descending=looks[column] == "number" and column != "index", table_page=0)
    else:
        state.param.update(descending=not state.descending, table_page=0)


def page(context: Context, message: Message) -> None:
    """Another page of the table."""
    context.state.table_page = max(0, whole(message.get("page")))


def export(context: Context, message: Message) -> None:
    """The table as a file."""
    state, store = context.state, context.store
    wanted = message.get("format")
    make, mime = (table_json, "application/json") if wanted == "json" else (table_csv, "text/csv")
    text = make(store, state.table, state.filters, state.sort, state.descending)
    name = f"{file_name(store.name)}.{state.table}.{'json' if wanted == 'json' else 'csv'}"
    context.tell("download", name=name, mime=mime, text=text)


def export_selection(context: Context, message: Message) -> None:
    """What is said about the selection as a file."""
    state, store = context.state, context.store
    if not state.selection:
        return
    content = inspect(store, state.selection)
    wanted = "json" if message.get("format") == "json" else "csv"
    text = selection_json(store, content) if wanted == "json" else selection_csv(content)
    mime = "application/json" if wanted == "json" else "text/csv"
    name = f"{file_name(store.name)}.{file_name(str(content['title']))}.{wanted}"
    context.tell("download", name=name, mime=mime, text=text)


def outline_toggle(context: Context, message: Message) -> None:
    """Unfold or fold a row of the outline."""
    key = str(message.get("key", ""))
    opened = dict(context.state.outline)
    if key in opened:
        del opened[key]
    elif len(key) < 4000:
        opened[key] = FIRST
    context.state.outline = opened


def outline_more(context: Context, message: Message) -> None:
    """Show more of a long row of the outline."""
    context.state.outline = widened(context.state.outline, str(message.get("key", "")), str(message.get("way", "")))


def file_name(text: str) -> str:
    """A file name made of a program's name: letters, digits, ``-_.`` and nothing else."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "-" for letter in text)
    return plain.strip("-.")[:60] or "program"
