"""Programs, reports and runs as HTML that needs no kernel and no script: what a saved notebook, a viewer or a mail shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dtir.execute.record import RunRecord
from dtir.schema.diagnostics import DiagnosticSet
from dtir_app.drawing import Styles
from dtir_app.drawing.svg import escaped
from dtir_app.exporting.stage import Stage
from dtir_app.frames.overview import communication_tasks
from dtir_app.frames.table_columns import TABLES
from dtir_app.frames.tables import table_page
from dtir_app.selection import of_task
from dtir_app.store import Opened, Store
from dtir_app.text import count_text, plural
from dtir_app.theme import FONT, MONO

ROWS = 12
WIDEST_PX = 900.0


def static_html(opened: Opened, run: RunRecord | None = None) -> str:
    """A program: what it is, its graph, what was found, what communicates; and the run that it is compared with."""
    assert opened.store is not None
    store = opened.store
    counts = store.counts()
    found = ", ".join(plural(number, name) for name, number in counts.items() if number) or "no findings"
    head = (
        f"<b>{escaped(store.name)}</b> · {escaped(store.mesh_text)} ({plural(store.mesh.size, 'rank')}) · "
        f"{plural(len(store.tasks), 'task')} · {plural(len(store.values), 'tensor')} · "
        f"{plural(len(communication_tasks(store)), 'communication')} · {found}"
    )
    tables = (_table_of(store, table) for table in ("diagnostics", "collectives"))
    return _boxed(head, _graph(opened), *tables, run_html(run) if run is not None else "")


def report_html(report: DiagnosticSet) -> str:
    """A report: every finding with its code, what it says and how to mend it."""
    counts = ((len(report.errors), "error"), (len(report.warnings), "warning"), (len(report.infos), "remark"))
    said = ", ".join(plural(number, name) for number, name in counts if number) or "nothing was found"
    rows = [
        (item.severity.value, item.code, item.message, ".".join(item.path), item.hint or "")
        for item in report.diagnostics
    ]
    table = _table("findings", ("severity", "code", "message", "where", "how to mend it"), rows, len(rows), most=200)
    return _boxed(f"<b>{escaped(type(report).__name__)}</b> · {said}", table)


def run_html(run: RunRecord) -> str:
    """A run: what ran where, how long, and whether the values agreed."""
    name = escaped(str(run.program.get("name", "program")))
    backend = escaped(str(run.backend.get("name", "?")))
    state = "complete" if run.complete else "incomplete"
    facts = [
        (str(key), str(value))
        for source in (run.backend, run.options, run.totals)
        for key, value in source.items()
        if isinstance(value, (str, int, float, bool))
    ]
    findings = [
        (str(item.get("severity", "")), str(item.get("code", "")), str(item.get("message", "")))
        for item in run.findings
    ]
    return _boxed(
        f"<b>run of {name}</b> · {backend} · {count_text(len(run.steps))} steps · {state}",
        _table("run", ("what", "value"), facts, len(facts), most=40),
        _table("findings", ("severity", "code", "message"), findings, len(findings)) if findings else "",
    )


def _graph(opened: Opened) -> str:
    """The graph as a picture, with the first communication marked."""
    stage = Stage(opened)
    tasks = communication_tasks(stage.store)
    if len(tasks):
        stage.session.select(of_task(int(tasks[0])))
    stage.show("graph")
    drawing = stage.drawings_of("graph", dark=False).get("graph")
    if drawing is None:
        return ""
    # Looks as attributes of each element: a style sheet would be one of the whole notebook.
    css = _inlined(drawing.body, stage.styles)
    width = min(drawing.width, WIDEST_PX)
    return (
        f'<div style="overflow:auto;max-height:420px;background:#fff"><svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{width:.0f}" height="{drawing.height * width / drawing.width:.0f}" viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" '
        f'role="img" aria-label="The program as a graph">{css}</svg></div>'
    )


def _inlined(body: str, styles: Styles) -> str:
    for name, declared in styles.rules().items():
        body = body.replace(f'class="{name}"', f'style="{escaped(declared)}"')
    return body


def _table_of(store: Store, table: str) -> str:
    page = table_page(store, table, page_size=ROWS)
    columns, rows, total = page["columns"], page["rows"], page["total"]
    assert isinstance(columns, list)
    assert isinstance(rows, list)
    assert isinstance(total, int)
    if not rows or table not in TABLES:
        return ""
    return _table(table, [column["label"] for column in columns], [row["cells"] for row in rows], total)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], total: int, most: int = ROWS) -> str:
    shown = list(rows)[:most]
    cell = "padding:2px 8px;text-align:left;white-space:normal;vertical-align:top"
    head = "".join(f'<th style="{cell}">{escaped(str(text))}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{cell}">{escaped(str(text))}</td>' for text in row) + "</tr>" for row in shown
    )
    more = f"<div>… {count_text(total - len(shown))} more {escaped(title)}</div>" if total > len(shown) else ""
    look = f"font:12px {escaped(MONO)};border-collapse:collapse;margin:6px 0"
    return f'<table style="{look}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'


def _boxed(*parts: str) -> str:
    inner = "".join(f'<div style="margin:4px 0">{part}</div>' for part in parts if part)
    look = f"font:13px/1.45 {escaped(FONT)};border:1px solid #999;border-radius:6px;padding:8px 12px"
    return f'<div class="dtir" style="{look}">{inner}</div>'
