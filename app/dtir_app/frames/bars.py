"""What stands in the bars around the views: names, counts, choices, limits; as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dtir_app.filters import Filters, kind_counts
from dtir_app.frames import inspector
from dtir_app.frames.mesh import MeshFrame
from dtir_app.frames.rows import task_link
from dtir_app.frames.table_columns import TABLE_LABELS, TABLES
from dtir_app.frames.tables import base_rows
from dtir_app.kinds import KIND_INDEX, KINDS
from dtir_app.selection import Selection, task_of
from dtir_app.store import SEVERITIES, Opened, Store
from dtir_app.text import bytes_text, count_text, plural

VIEW_TABS = (
    {"name": "overview", "label": "Overview", "help": "what is in the program, what is wrong, what costs most"},
    {"name": "graph", "label": "Graph", "help": "tasks and what they wait for"},
    {"name": "mesh", "label": "Mesh", "help": "ranks and groups"},
    {"name": "tensor", "label": "Tensor", "help": "which rank holds which block"},
)


def topbar(opened: Opened | None, dark: bool, hits: Mapping[str, object] | None) -> dict[str, object]:
    """The bar at the top; without a program its name says so."""
    if opened is None or opened.store is None:
        return {"name": opened.label if opened else "", "digest": opened.digest if opened else "", "dark": dark}
    store = opened.store
    counts = store.counts()
    found = [{"severity": name, "count": count_text(number)} for name, number in counts.items() if number]
    return {
        "name": store.name,
        "file": store.label,
        "digest": store.digest,
        "mesh": store.mesh_text,
        "mesh_note": f"{plural(store.mesh.size, 'rank')}",
        "counts": f"{plural(len(store.tasks), 'task')} · {plural(len(store.values), 'tensor')}",
        "findings": found,
        "clean": not found,
        "dark": dark,
        "hits": hits,
    }


def filter_bar(store: Store, filters: Filters, mask: npt.NDArray[np.bool_]) -> dict[str, object]:
    """The choices of the filters that the program has, and what is kept."""
    kinds = [
        {
            "name": name,
            "label": KINDS[KIND_INDEX[name]].label,
            "code": KINDS[KIND_INDEX[name]].code,
            "family": int(KINDS[KIND_INDEX[name]].family),
            "count": count_text(count),
            "on": name in filters.kinds,
        }
        for name, count in kind_counts(store)
    ]
    used = 0
    for bits in np.unique(store.tasks.axes).tolist():
        used |= int(bits)
    axes = [
        {"name": axis.name, "label": axis.name, "on": axis.name in filters.axes}
        for bit, axis in enumerate(store.mesh.axes[:62])
        if used >> bit & 1
    ]
    counts = store.counts()
    severities = [
        {
            "name": name,
            "label": name,
            "severity": name,
            "count": count_text(counts[name]),
            "on": name in filters.severities,
        }
        for name in SEVERITIES
        if counts[name]
    ]
    return {
        "kinds": kinds,
        "axes": axes,
        "severities": severities,
        "bytes": byte_choices(store, filters.min_bytes),
        "text": filters.text,
        "active": filters.active_count,
        "kept": f"{count_text(int(mask.sum()))} of {plural(len(mask), 'task')}" if filters.active else "",
    }


def byte_choices(store: Store, chosen: float) -> list[dict[str, object]]:
    """Powers of four between the smallest and the largest message; none where all are alike."""
    sizes = store.tasks.message_bytes[np.isfinite(store.tasks.message_bytes) & (store.tasks.message_bytes > 0)]
    if not len(sizes) or sizes.min() == sizes.max():
        return []
    low, high = math.floor(math.log(sizes.min(), 4)), math.floor(math.log(sizes.max(), 4))
    steps = [4.0**power for power in range(low + 1, high + 1)][-10:]
    return [
        {"value": 0, "label": "any size", "on": chosen == 0},
        *({"value": step, "label": f"at least {bytes_text(step)}", "on": step == chosen} for step in steps),
    ]


def table_tabs(store: Store) -> list[dict[str, str]]:
    """The four tables with their number of rows."""
    return [
        {"name": name, "label": TABLE_LABELS[name], "count": count_text(len(base_rows(store, name)))} for name in TABLES
    ]


def table_note(page: Mapping[str, object]) -> str:
    """What is left out of a table, in a few words."""
    total, everything = int(str(page["total"])), int(str(page["all"]))
    if total == everything:
        return ""
    return f"{count_text(total)} of {count_text(everything)} rows match the filters"


def table_empty(store: Store, table: str, filters: Filters) -> str:
    """What stands where a table has no rows."""
    if filters.active and len(base_rows(store, table)):
        return "No row matches the filters."
    return {
        "diagnostics": "Nothing was found: reading and judging reported no error, no warning and no remark.",
        "collectives": "This program communicates nothing: every task is local.",
        "tasks": "The program has no tasks.",
        "tensors": "The program names no tensors.",
    }[table]


def graph_foot(store: Store, selection: Selection, pinned: Sequence[int] = ()) -> dict[str, object]:
    """The selected task between its neighbours, and the pinned tasks."""
    task = task_of(store, selection)
    pins = few([task_link(store, other) for other in pinned])
    if task < 0:
        message = "Click a task to select it. Double click opens a block. Arrow keys walk along the edges."
        return {"message": message, "pinned": pins}
    before, after = inspector.neighbours(store, task)
    kind = KINDS[store.tasks.kind[task]]
    return {
        "title": store.tasks.name[task],
        "code": kind.code,
        "family": int(kind.family),
        "before": few([task_link(store, other) for other in before]),
        "after": few([task_link(store, other) for other in after]),
        "pinned": pins,
    }


def few(links: list[dict[str, str]], limit: int = 12) -> list[dict[str, str]]:
    """The first links, and the number of the others."""
    if len(links) <= limit:
        return links
    return [*links[:limit], {"text": f"… {count_text(len(links) - limit)} more", "key": "", "badge": "", "family": ""}]


def mesh_bar(store: Store, frame: MeshFrame, selection: Selection, grouped: frozenset[str]) -> dict[str, object]:
    """Title, arrangement of the axes, and which ranks are not shown."""
    chosen = grouped or frozenset({store.mesh.axes[-1].name})
    axes = [
        {
            "name": axis.name,
            "size": f"× {count_text(axis.size)}",
            "grouped": axis.name in chosen,
            "across": axis.name in frame.columns,
            "fixed": frame.fixed.get(axis.name),
            "last": axis.size - 1,
        }
        for axis in store.mesh.axes
    ]
    limit = ""
    if frame.shown < frame.total:
        limit = f"Showing {count_text(frame.shown)} of {plural(frame.total, 'rank')}: move the sliders to see others."
        if not frame.fixed:
            limit = f"Showing the first {count_text(frame.shown)} of {plural(frame.total, 'rank')}."
    return {"title": frame.title, "note": frame.note, "axes": axes, "selected": bool(selection), "limit": limit}


def mesh_side(frame: MeshFrame, text: str) -> dict[str, object]:
    """The groups as a list."""
    noun = "pair" if frame.groups and "→" in frame.groups[0]["members"] else "group"
    hidden = frame.group_total - len(frame.groups)
    return {
        "heading": plural(frame.group_total, noun),
        "groups": frame.groups,
        "text": text,
        "more": f"… {plural(hidden, f'more {noun}', f'more {noun}s')}" if hidden else "",
    }
