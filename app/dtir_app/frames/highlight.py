"""What a selection adds to the graph picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dtir_app.frames.curves import curve
from dtir_app.frames.placing import Floats, Placed
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH
from dtir_app.frames.windows import Window
from dtir_app.items import Scene

SEEN = 0.006
"""Share of a large picture that a ring covers at least, to each side."""
NEIGHBOURS = 400


@dataclass(frozen=True, slots=True)
class Highlight:
    """What a selection adds to the picture: rings around items and all edges of the selected one."""

    rings: dict[str, list[object]]
    edges: dict[str, Floats]
    centre: tuple[float, float] | None = None


def highlight(
    at: Scene, placed: Placed, task: int, pinned: Sequence[int] = (), window: Window | None = None
) -> Highlight:
    """The selected task's item, its neighbours and the edges between, in full length; and the pinned ones.

    Args:
        at: the scene.
        placed: where its items stand.
        task: the selected task, or -1.
        pinned: tasks that stay marked.
        window: what is drawn of a large picture: rings are at least so large that they can be seen in it.
    """
    nothing = np.zeros(0)
    rings: dict[str, list[object]] = {"xs": [], "ys": [], "which": []}
    least = (window.width * SEEN, window.height * SEEN * 2) if window is not None else (0.0, 0.0)
    for other in pinned:
        place = placed.position(at.item_of(other))
        if place >= 0:
            _ring(rings, float(placed.x[place]), float(placed.y[place]), "pinned", least)
    item = at.item_of(task) if task >= 0 else -1
    position = placed.position(item)
    if position < 0:
        return Highlight(rings, curve(nothing, nothing, nothing, nothing))
    x, y = float(placed.x[position]), float(placed.y[position])
    _ring(rings, x, y, "selected", least)
    before = np.concatenate([at.folded.source[at.folded.destination == item], at.carried[0][at.carried[1] == item]])
    after = np.concatenate([at.folded.destination[at.folded.source == item], at.carried[1][at.carried[0] == item]])
    ends: list[tuple[float, float, float, float]] = []
    for other, incoming in [*((int(o), True) for o in before), *((int(o), False) for o in after)][:NEIGHBOURS]:
        place = placed.position(other)
        if place < 0:
            continue
        other_x, other_y = float(placed.x[place]), float(placed.y[place])
        if other != item:
            _ring(rings, other_x, other_y, "before" if incoming else "after", (0.0, 0.0))
        ends.append(
            (other_x + HALF_WIDTH, other_y, x - HALF_WIDTH, y)
            if incoming
            else (x + HALF_WIDTH, y, other_x - HALF_WIDTH, other_y)
        )
    columns = np.array(ends, dtype=float).reshape(-1, 4).T
    return Highlight(rings, curve(columns[0], columns[1], columns[2], columns[3]), (x, y))


def _ring(rings: dict[str, list[object]], x: float, y: float, which: str, least: tuple[float, float]) -> None:
    width, height = max(HALF_WIDTH + 0.035, least[0]), max(HALF_HEIGHT + 0.06, least[1])
    rings["xs"].append([x - width, x + width, x + width, x - width])
    rings["ys"].append([y - height, y - height, y + height, y + height])
    rings["which"].append(which)
