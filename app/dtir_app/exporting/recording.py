"""Everything of a program that a page without a server can show: made by the explorer's own code, one state after another.

What is the same is kept once: pictures by their content, elements by their JSON. What is left out for size is counted, and the
page says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dtir_app.exporting.stage import Stage
from dtir_app.frames.bars import VIEW_TABS
from dtir_app.frames.overview import communication_tasks
from dtir_app.frames.table_columns import TABLE_LABELS, TABLES
from dtir_app.frames.tables import NO_FILTERS, base_rows, sorted_rows, table_page
from dtir_app.kinds import KINDS
from dtir_app.panels import PANELS
from dtir_app.rows import SELECTED, labels_of_views, rows_of_views
from dtir_app.scenes import first_place, home_of
from dtir_app.selection import NOTHING, Selection, of_task, of_value, selection_text
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import count_text, plural

FOLLOWING = frozenset({"selection", "finding"})


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of a program is put into a page.

    Args:
        detailed: tasks and tensors with their full description.
        pictured: selections with pictures of their own (mesh, shard maps and the like).
        places: lists of tasks (the program's own, regions) with a graph.
        rows: rows of each table.
        searched: tasks that search, filters and clicks in the graph know, from the first on.
    """

    detailed: int = 5000
    pictured: int = 400
    places: int = 12
    rows: int = 5000
    searched: int = 30_000

    def less(self) -> Amount:
        """A third of it."""
        return Amount(
            self.detailed // 3,
            self.pictured // 3,
            max(1, self.places // 3),
            max(100, self.rows // 3),
            self.searched // 3,
        )


@dataclass(slots=True)
class Once:
    """Things kept once, by content."""

    items: list[object] = field(default_factory=list[object])
    _places: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, item: object) -> int:
        """The number of a thing."""
        key = json.dumps(item, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.items)
            self.items.append(item)
        return self._places[key]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording.

    Args:
        content: what the page's script reads.
        css: rules of the pictures' classes.
        modules: scripts of the elements, by element.
    """

    content: dict[str, object] = field(repr=False)
    css: str = field(repr=False)
    modules: dict[str, str] = field(repr=False)


def record(stage: Stage, amount: Amount) -> Recorded:
    """Record a program.

    Args:
        stage: the program on a page that nobody sees.
        amount: how much of it.
    """
    store = stage.store
    pictures, states = Once(), Once()
    order = selections(store)
    graphs, home = _graphs(stage, pictures, amount)
    details = {key: _detail(stage, selection) for key, selection in order[: amount.detailed]}
    shown = _pictured(stage, pictures, states, order[: amount.pictured])
    fixed = {view: states.add(_snapshot(stage, pictures, view)) for view in rows_of_views() if view != "graph"}
    content: dict[str, object] = {
        "name": store.name,
        "file": store.label,
        "digest": store.digest,
        "top": stage.payload("topbar"),
        "tabs": [*VIEW_TABS, *({"name": kind.name, "label": kind.label, "help": kind.help} for kind in PANELS)],
        "labels": labels_of_views(),
        "rows": {
            view: [
                {"grows": row.grows, "cells": [[c.name, c.grows, c.label, c.width_px] for c in row.cells]}
                for row in rows
            ]
            for view, rows in rows_of_views().items()
        },
        "elements": sorted(stage.elements),
        "figures": sorted(stage.figures),
        "program": _program(stage),
        "details": details,
        "pictures": pictures.items,
        "states": states.items,
        "fixed": fixed,
        "shown": shown,
        "graphs": graphs,
        "home": home,
        "tables": {table: _table(store, table, amount.rows) for table in TABLES},
        "table": stage.state.table,
        "tasks": _tasks(store, amount.searched),
        "findings": [_keys_of(store, row) for row in range(len(store.findings))],
        "note": _note(store, len(details), min(len(order), amount.pictured), len(graphs), amount.searched),
    }
    modules = {name: str(type(made)._esm) for name, made in stage.elements.items()}
    return Recorded(content, stage.styles.css(), modules)


def selections(store: Store) -> list[tuple[str, Selection]]:
    """Everything that can be selected, most telling first: what findings are about, communication, then all in order."""

    def ordered() -> Iterator[Selection]:
        for finding in store.findings:
            yield from map(of_task, finding.tasks)
            yield from map(of_value, finding.values)
        yield from map(of_task, communication_tasks(store).tolist())
        yield from map(of_task, range(len(store.tasks)))
        yield from map(of_value, range(len(store.values)))

    return [(selection_text(store, one), one) for one in dict.fromkeys(ordered())]


def _keys_of(store: Store, row: int) -> str:
    finding = store.findings[row]
    if finding.tasks:
        return selection_text(store, of_task(finding.tasks[0]))
    return selection_text(store, of_value(finding.values[0])) if finding.values else ""


def _snapshot(stage: Stage, pictures: Once, view: str) -> dict[str, object]:
    """A view as it is now: JSON of its elements, numbers of its pictures."""
    stage.show(view)
    drawn = stage.drawings_of(view, dark=None)
    return {
        "elements": {name: json.loads(text) if text else {} for name, text in stage.elements_of(view).items()},
        "figures": {
            name: pictures.add({"width": round(one.width, 1), "height": round(one.height, 1), "body": one.body})
            for name, one in drawn.items()
        },
    }


def _graphs(stage: Stage, pictures: Once, amount: Amount) -> tuple[list[dict[str, object]], list[int]]:
    """The graph at the places that lists of tasks have, the one that opens first; and of every scope the place that shows it."""
    store, state = stage.store, stage.state
    places = {first_place(store): 0}
    home = [-1] * len(store.scopes)
    for scope in store.scopes:
        if scope.task_count and len(places) < amount.places:
            places.setdefault(home_of(store, scope.first_task), len(places))
    made: list[dict[str, object]] = []
    for place in places:
        state.param.update(place=place, selection=NOTHING)
        snapshot = _snapshot(stage, pictures, "graph")
        scene = stage.session.painter.graph.scene
        if scene is None:
            continue
        first = [scene.first_task(item) for item in range(scene.count)]
        folded = {
            int(task): first[item]
            for task in scene.tasks[scene.tasks < amount.searched].tolist()
            if (item := scene.item_of(task)) >= 0 and first[item] != task
        }
        scope = int(store.tasks.scope[int(scene.tasks[0])]) if len(scene.tasks) else 0
        if home[scope] < 0:
            home[scope] = len(made)
        made.append({**snapshot, "scope": scope, "folded": folded})
    state.param.update(place=first_place(store))
    return made, home


def _detail(stage: Stage, selection: Selection) -> list[object]:
    """What the inspector and the line of neighbours say of a selection."""
    painter = stage.session.painter
    with stage.selected(selection):
        painter.draw_inspector()
        inspector = stage.payload("inspector")
        foot: dict[str, object] = {}
        if selection.task >= 0:
            painter.draw_graph_selection()
            foot = stage.payload("graphfoot")
    return [inspector, foot]


def _program(stage: Stage) -> dict[str, object]:
    stage.session.painter.draw_inspector()
    return stage.payload("inspector")


def _pictured(
    stage: Stage, pictures: Once, states: Once, order: list[tuple[str, Selection]]
) -> dict[str, dict[str, int]]:
    """States of the views that follow the selection, by selection, then by view."""
    views = [
        *SELECTED,
        *(kind.name for kind in PANELS if kind.fields & FOLLOWING and not _has_figures(stage, kind.name)),
    ]
    made: dict[str, dict[str, int]] = {}
    for key, selection in order:
        found = _finding_of(stage.store, selection)
        with stage.selected(selection, found):
            made[key] = {view: states.add(_snapshot(stage, pictures, view)) for view in views}
    return made


def _has_figures(stage: Stage, view: str) -> bool:
    """Whether a view has a figure: it is recorded once, and the page marks what is selected in it."""
    return any(cell.name in stage.figures for row in rows_of_views()[view] for cell in row.cells)


def _finding_of(store: Store, selection: Selection) -> int:
    for row, finding in enumerate(store.findings):
        if selection.index in (finding.tasks if selection.task >= 0 else finding.values):
            return row
    return -1


def _table(store: Store, table: str, most: int) -> dict[str, object]:
    """A table's rows as text, and the order of the rows by each column."""
    total = len(base_rows(store, table))
    page = table_page(store, table, page_size=most)
    rows = page["rows"]
    assert isinstance(rows, list)
    positions = {entry["row"]: at for at, entry in enumerate(rows)}
    columns = page["columns"]
    assert isinstance(columns, list)
    orders = {
        column["key"]: [
            positions[row] for row in sorted_rows(store, table, NO_FILTERS, column["key"]).tolist() if row in positions
        ]
        for column in columns
    }
    return {
        "label": TABLE_LABELS[table],
        "count": count_text(total),
        "total": total,
        "columns": columns,
        "rows": [[entry["key"], entry["row"], entry["cells"]] for entry in rows],
        "orders": orders,
    }


def _tasks(store: Store, most: int) -> dict[str, object]:
    """What search and filters need of every task."""
    tasks = store.tasks
    sizes = [int(size) if np.isfinite(size) else None for size in tasks.message_bytes[:most].tolist()]
    return {
        "id": list(tasks.id[:most]),
        "name": list(tasks.name[:most]),
        "operation": list(tasks.operation[:most]),
        "path": ["/".join(path) for path in tasks.path[:most]],
        "kind": tasks.kind[:most].tolist(),
        "scope": tasks.scope[:most].tolist(),
        "axes": [" ".join(store.axis_names(mask)) for mask in tasks.axes[:most].tolist()],
        "bytes": sizes,
        "worst": tasks.worst[:most].tolist(),
        "kinds": [[kind.name, kind.code, int(kind.family), kind.label] for kind in KINDS],
        "severities": list(SEVERITIES),
    }


def _note(store: Store, detailed: int, pictured: int, places: int, searched: int) -> list[str]:
    """What of the program is not in the page; nothing when all of it is."""
    total = len(store.tasks) + len(store.values)
    made: list[str] = []
    if detailed < total:
        made.append(
            f"descriptions of {count_text(detailed)} of {plural(total, 'task and tensor', 'tasks and tensors')}"
        )
    if pictured < total:
        made.append(f"meshes and shard maps of {count_text(pictured)} of them, findings and communication first")
    if searched < len(store.tasks):
        made.append(f"search in the first {count_text(searched)} of {plural(len(store.tasks), 'task')}")
    lists = sum(1 for scope in store.scopes if scope.task_count)
    if places < lists:
        made.append(f"graphs of {places} of {plural(lists, 'list')} of tasks")
    return made
