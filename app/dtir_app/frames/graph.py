"""The graph picture: polygons of items, curves of edges, and how much of the place they are.

At most `ITEM_LIMIT` items and `EDGE_LIMIT` edges are drawn; what is not is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dtir_app.frames.curves import curve
from dtir_app.frames.labels import item_detail, item_label, kind_text, message_text
from dtir_app.frames.placing import Floats, Placed, place_items
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH, outline
from dtir_app.scenes import Scene, family_of_item
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import count_text, plural

EDGE_LIMIT = 6000
LONG = 8
"""Edges over more levels than this are drawn as two stubs until an end is selected."""


@dataclass(frozen=True, slots=True)
class GraphFrame:
    """Columns of the picture and the counts around it."""

    nodes: dict[str, list[object]]
    edges: dict[str, Floats]
    stubs: dict[str, Floats]
    marks: dict[str, list[object]]
    placed: Placed
    total_tasks: int
    total_items: int
    total_edges: int
    shown_edges: int
    lines: list[str] = field(default_factory=list[str])


def graph_frame(store: Store, at: Scene, *, mask: npt.NDArray[np.bool_] | None = None, page: int = 0) -> GraphFrame:
    """The picture of a scene.

    Args:
        store: the program.
        at: the scene.
        mask: tasks that the filters keep; others are faded. None keeps all.
        page: which part, where there are more items than are drawn at once.
    """
    placed = place_items(at, page)
    nodes = _nodes(store, at, placed, mask)
    edges, stubs, shown, total = _edges(at, placed)
    frame = GraphFrame(nodes, edges, stubs, _marks(store, at, placed), placed, len(at.tasks), at.count, total, shown)
    frame.lines.extend(limits(at, frame))
    return frame


def limits(at: Scene, frame: GraphFrame) -> list[str]:
    """What is not on screen, and why; nothing when everything is."""
    made: list[str] = []
    placed = frame.placed
    if at.is_folded:
        blocks = int(np.count_nonzero(at.folded.size > 1))
        inside = int(at.folded.size[at.folded.size > 1].sum())
        if blocks:
            made.append(f"{plural(inside, 'local task')} folded into {plural(blocks, 'block')}")
    if placed.pages > 1:
        made.append(
            f"part {placed.page + 1} of {placed.pages}: {count_text(len(placed.items))} of {count_text(at.count)} items at once"
        )
    if frame.shown_edges < frame.total_edges:
        made.append(f"{count_text(frame.shown_edges)} of {count_text(frame.total_edges)} edges drawn")
    return made


def _nodes(store: Store, at: Scene, placed: Placed, mask: npt.NDArray[np.bool_] | None) -> dict[str, list[object]]:
    names = (
        "xs",
        "ys",
        "x",
        "y",
        "item",
        "family",
        "code",
        "name",
        "detail_text",
        "title",
        "kind",
        "message",
        "alpha",
        "task",
    )
    nodes: dict[str, list[object]] = {name: [] for name in names}
    kept = _kept(at, mask)
    for item, x, y in zip(placed.items.tolist(), placed.x.tolist(), placed.y.tolist(), strict=True):
        family = family_of_item(store, at, item)
        task = at.first_task(item)
        xs, ys = outline(family, x, y)
        code, name = item_label(store, at, item)
        nodes["xs"].append(xs)
        nodes["ys"].append(ys)
        nodes["x"].append(x)
        nodes["y"].append(y)
        nodes["item"].append(item)
        nodes["family"].append(str(int(family)))
        nodes["code"].append(code)
        nodes["name"].append(name)
        nodes["title"].append(name if int(at.folded.size[item]) > 1 else store.tasks.name[task])
        nodes["detail_text"].append(item_detail(store, at, item))
        nodes["kind"].append(kind_text(store, at, item))
        nodes["message"].append(message_text(store, at, item))
        nodes["alpha"].append(1.0 if kept is None or kept[item] else 0.16)
        nodes["task"].append(task)
    return nodes


def _kept(at: Scene, mask: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_] | None:
    if mask is None:
        return None
    kept = np.zeros(at.count, dtype=bool)
    kept[at.folded.item[mask[at.tasks]]] = True
    return kept


def _marks(store: Store, at: Scene, placed: Placed) -> dict[str, list[object]]:
    """A sign at the corner of every item that a finding is about."""
    marks: dict[str, list[object]] = {"x": [], "y": [], "severity": []}
    worst = np.full(at.count, 3, dtype=np.int8)
    np.minimum.at(worst, at.folded.item, store.tasks.worst[at.tasks])
    for item, x, y in zip(placed.items.tolist(), placed.x.tolist(), placed.y.tolist(), strict=True):
        if worst[item] < len(SEVERITIES):
            marks["x"].append(x + HALF_WIDTH)
            marks["y"].append(y - HALF_HEIGHT)
            marks["severity"].append(SEVERITIES[worst[item]])
    return marks


def _edges(at: Scene, placed: Placed) -> tuple[dict[str, Floats], dict[str, Floats], int, int]:
    """Short edges as curves, long ones and those into another row as stubs at both ends."""
    position = np.full(at.count, -1, dtype=np.int64)
    position[placed.items] = np.arange(len(placed.items))
    tail, head = position[at.folded.source], position[at.folded.destination]
    inside = (tail >= 0) & (head >= 0)
    tail, head = tail[inside], head[inside]
    total = len(tail)
    span = placed.x[head] - placed.x[tail] + 1000.0 * (placed.row[head] != placed.row[tail])
    order = np.argsort(span, kind="stable")[:EDGE_LIMIT]
    tail, head, span = tail[order], head[order], span[order]
    near = (span <= LONG) & (span > 0)
    width = HALF_WIDTH
    edges = curve(
        placed.x[tail[near]] + width, placed.y[tail[near]], placed.x[head[near]] - width, placed.y[head[near]]
    )
    far_tail, far_head = np.unique(tail[~near]), np.unique(head[~near])
    stubs = {
        "x0": np.concatenate([placed.x[far_tail] + width, placed.x[far_head] - width - 0.09]),
        "x1": np.concatenate([placed.x[far_tail] + width + 0.09, placed.x[far_head] - width]),
        "y": np.concatenate([placed.y[far_tail] + 0.16, placed.y[far_head] + 0.16]),
    }
    return edges, stubs, len(order), total
