"""The graph picture: polygons of items, curves of edges, and how much of the place they are.

At most `ITEM_LIMIT` items and `EDGE_LIMIT` edges are drawn; what is not is counted. Larger pictures are drawn by windows: see
`dtir_app.frames.windows`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dtir_app.frames.borders import BORDER_COLUMNS, borders_of
from dtir_app.frames.curves import curve
from dtir_app.frames.density import Density, density
from dtir_app.frames.folded_text import folded_lines
from dtir_app.frames.labels import item_detail, item_label, kind_text, message_text
from dtir_app.frames.placing import Floats, Ints, Placed, place_items
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH, outline
from dtir_app.frames.windows import Window, drawn_part, is_large, whole
from dtir_app.items import Scene
from dtir_app.kinds import FAMILY_LABELS, Family
from dtir_app.scenes import Place, families_of_items, family_of_item
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import count_text, plural

EDGE_LIMIT = 6000
LONG = 8
"""Edges over more levels than this are drawn as two stubs until an end is selected."""

NODE_COLUMNS = (
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
PIECE_COLUMNS = ("left", "right", "top", "bottom", "family", "alpha", "title", "kind", "message")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GraphFrame:
    """Columns of the picture and the counts around it.

    Args:
        nodes, pieces, edges, stubs, marks, stacks, borders: columns of what is drawn; nodes or pieces are empty.
        placed: where all items stand.
        window: the part that is drawn, margin included; None where everything is.
        dense: whether densities are drawn instead of items.
        drawn: items drawn one by one.
        total_tasks, total_items, total_edges: of the place.
        shown_edges: edges drawn, in full or as stubs.
        lines: what is not drawn, and why.
    """

    nodes: dict[str, list[object]]
    edges: dict[str, Floats]
    stubs: dict[str, Floats]
    marks: dict[str, list[object]]
    placed: Placed
    total_tasks: int
    total_items: int
    total_edges: int
    shown_edges: int
    pieces: dict[str, Any] = field(default_factory=dict[str, Any])
    stacks: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    borders: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    window: Window | None = None
    dense: bool = False
    drawn: int = 0
    lines: list[str] = field(default_factory=list[str])


def placed_of(store: Store, place: Place, at: Scene) -> Placed:
    """Where the items of a place stand; the same for all instances that have the same ones."""
    folding = at.folding
    key = ("placed", place, folding.local, folding.repeats, folding.unfolded, np.packbits(at.absent).tobytes())
    made = store.memo.made(key, lambda: place_items(at))
    store.memo.forget_oldest("placed", 8)
    return made


def graph_frame(
    store: Store, at: Scene, *, mask: Mask | None = None, placed: Placed | None = None, window: Window | None = None
) -> GraphFrame:
    """The picture of a scene.

    Args:
        store: the program.
        at: the scene.
        mask: tasks that the filters keep; others are faded. None keeps all.
        placed: where its items stand, if that is known.
        window: what is in sight, where the picture is large; None is everything.
    """
    placed = place_items(at) if placed is None else placed
    if not is_large(placed):
        drawn_window, positions, dense = None, np.arange(len(placed.items), dtype=np.int32), False
    else:
        drawn_window, positions, dense = drawn_part(placed, window or whole(placed))
    kept = _kept(at, mask)
    if drawn_window is not None and dense:
        found = _density(store, at, placed, drawn_window, positions, kept)
        nodes: dict[str, list[object]] = {name: [] for name in NODE_COLUMNS}
        pieces, marks = _pieces(found), _piece_marks(found)
        nothing = np.zeros(0)
        edges, stubs, shown = curve(nothing, nothing, nothing, nothing), _stubs(placed, _NONE, _NONE), 0
        stacks: dict[str, list[object]] = {"xs": [], "ys": []}
    else:
        pieces = {name: [] for name in PIECE_COLUMNS}
        nodes, marks = _nodes(store, at, placed, positions, kept), _marks(store, at, placed, positions)
        edges, stubs, shown = _edges(at, placed, positions)
        stacks = _stacks(store, at, placed, positions)
    total = _edge_count(placed, at)
    frame = GraphFrame(
        nodes,
        edges,
        stubs,
        marks,
        placed,
        len(at.tasks),
        at.count,
        total,
        shown,
        pieces,
        stacks,
        borders_of(at, placed) if not is_large(placed) else {name: [] for name in BORDER_COLUMNS},
        drawn_window,
        dense,
        0 if dense else len(positions),
    )
    frame.lines.extend(limits(at, frame))
    return frame


_NONE = np.zeros(0, np.int32)


def limits(at: Scene, frame: GraphFrame) -> list[str]:
    """What is not on screen, and why; nothing when everything is."""
    made = folded_lines(at)
    if frame.dense:
        made.append(f"{plural(frame.total_items, 'item')} drawn as densities: zoom in to see each, with its edges")
    elif frame.window is not None:
        made.append(f"{count_text(frame.drawn)} of {count_text(frame.total_items)} items are in sight or near")
    elif frame.shown_edges < frame.total_edges:
        made.append(f"{count_text(frame.shown_edges)} of {count_text(frame.total_edges)} edges drawn")
    return made


def _nodes(store: Store, at: Scene, placed: Placed, positions: Ints, kept: Mask | None) -> dict[str, list[object]]:
    nodes: dict[str, list[object]] = {name: [] for name in NODE_COLUMNS}
    items, xs_at, ys_at = placed.items[positions], placed.x[positions], placed.y[positions]
    for item, x, y in zip(items.tolist(), xs_at.tolist(), ys_at.tolist(), strict=True):
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


def _kept(at: Scene, mask: Mask | None) -> Mask | None:
    if mask is None:
        return None
    kept = np.zeros(at.count, dtype=bool)
    kept[at.folded.item[mask[at.tasks]]] = True
    return kept


def _worst(store: Store, at: Scene) -> Ints:
    worst = np.full(at.count, len(SEVERITIES), dtype=np.int8)
    np.minimum.at(worst, at.folded.item, store.tasks.worst[at.tasks])
    return worst.astype(np.int32)


def _marks(store: Store, at: Scene, placed: Placed, positions: Ints) -> dict[str, list[object]]:
    """A sign at the corner of every item that a finding is about, in whichever instance."""
    worst = _worst(store, at)[placed.items[positions]]
    found = worst < len(SEVERITIES)
    return {
        "x": (placed.x[positions][found] + HALF_WIDTH).tolist(),
        "y": (placed.y[positions][found] - HALF_HEIGHT).tolist(),
        "severity": [SEVERITIES[item] for item in worst[found].tolist()],
    }


def _stacks(store: Store, at: Scene, placed: Placed, positions: Ints) -> dict[str, list[object]]:
    """The edge of a card behind every item that stands for several instances."""
    made: dict[str, list[object]] = {"xs": [], "ys": []}
    items = placed.items[positions]
    for item, x, y in zip(items.tolist(), placed.x[positions].tolist(), placed.y[positions].tolist(), strict=True):
        if at.copies[item] > 1:
            xs, ys = outline(family_of_item(store, at, item), x + 0.045, y - 0.1)
            made["xs"].append(xs)
            made["ys"].append(ys)
    return made


def _edges(at: Scene, placed: Placed, positions: Ints) -> tuple[dict[str, Floats], dict[str, Floats], int]:
    """Short edges as curves; long ones, those into another row and those into another instance as stubs at both ends."""
    there = np.zeros(len(placed.items) + 1, dtype=bool)  # the last entry stands for items without a place
    there[positions] = True
    tail, head = placed.where[at.folded.source], placed.where[at.folded.destination]
    near = (there[tail] | there[head]) & (tail >= 0) & (head >= 0)
    tail, head = tail[near], head[near]
    carried = placed.where[at.carried[0]], placed.where[at.carried[1]]
    back = (there[carried[0]] | there[carried[1]]) & (carried[0] >= 0) & (carried[1] >= 0)
    span = placed.x[head] - placed.x[tail] + 1000.0 * (placed.row[head] != placed.row[tail])
    order = np.argsort(span, kind="stable")[:EDGE_LIMIT]
    tail, head, span = tail[order], head[order], span[order]
    close = (span <= LONG) & (span > 0)
    edges = curve(
        placed.x[tail[close]] + HALF_WIDTH,
        placed.y[tail[close]],
        placed.x[head[close]] - HALF_WIDTH,
        placed.y[head[close]],
    )
    room = max(0, EDGE_LIMIT - len(order))
    leaving = np.concatenate([tail[~close], carried[0][back][:room]])
    arriving = np.concatenate([head[~close], carried[1][back][:room]])
    stubs = _stubs(placed, np.unique(leaving), np.unique(arriving))
    return edges, stubs, len(order) + min(room, int(back.sum()))


def _edge_count(placed: Placed, at: Scene) -> int:
    """Edges between items that have a place."""
    return sum(
        int(np.count_nonzero((placed.where[tail] >= 0) & (placed.where[head] >= 0)))
        for tail, head in ((at.folded.source, at.folded.destination), at.carried)
    )


def _stubs(placed: Placed, leaving: Ints, arriving: Ints) -> dict[str, Floats]:
    width = HALF_WIDTH
    return {
        "x0": np.concatenate([placed.x[leaving] + width, placed.x[arriving] - width - 0.09]),
        "x1": np.concatenate([placed.x[leaving] + width + 0.09, placed.x[arriving] - width]),
        "y": np.concatenate([placed.y[leaving] + 0.16, placed.y[arriving] + 0.16]),
    }


def _density(store: Store, at: Scene, placed: Placed, window: Window, positions: Ints, kept: Mask | None) -> Density:
    weight = np.bincount(at.folded.item, minlength=at.count).astype(np.int32)
    return density(placed, window, positions, families_of_items(store, at), weight, _worst(store, at), kept)


def _pieces(found: Density) -> dict[str, Any]:
    labels = {int(item): FAMILY_LABELS[item] for item in Family}
    family = found.family.tolist()
    return {
        "left": found.left,
        "right": found.right,
        "top": found.top,
        "bottom": found.bottom,
        "family": [str(number) for number in family],
        "alpha": 0.16 + 0.84 * found.kept,
        "title": [f"{plural(total, 'task')} here" for total in found.total.tolist()],
        "kind": [
            f"{count_text(number)} {labels[item]}" for number, item in zip(found.count.tolist(), family, strict=True)
        ],
        "message": ["zoom in to see them"] * len(family),
    }


def _piece_marks(pieces: Density) -> dict[str, list[object]]:
    """One sign a piece that holds a finding."""
    marks: dict[str, list[object]] = {"x": [], "y": [], "severity": []}
    _, first = np.unique(pieces.cell, return_index=True)
    for at in first.tolist():
        if pieces.worst[at] < len(SEVERITIES):
            marks["x"].append(float(pieces.right[at]))
            marks["y"].append(float(pieces.top[at]))
            marks["severity"].append(SEVERITIES[pieces.worst[at]])
    return marks
