"""What a selection adds to the graph picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dtir_app.frames.curves import curve
from dtir_app.frames.placing import Floats, Placed
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH
from dtir_app.scenes import Scene


@dataclass(frozen=True, slots=True)
class Highlight:
    """What a selection adds to the picture: rings around items and all edges of the selected one."""

    rings: dict[str, list[object]]
    edges: dict[str, Floats]
    centre: tuple[float, float] | None = None
    inside_block: bool = False
    outside: int = 0


def highlight(at: Scene, placed: Placed, task: int) -> Highlight:
    """The selected task's item, its neighbours and the edges between, in full length."""
    nothing = np.zeros(0)
    rings: dict[str, list[object]] = {"xs": [], "ys": [], "which": []}
    item = at.item_of(task) if task >= 0 else -1
    position = placed.position(item) if item >= 0 else -1
    if position < 0:
        return Highlight(rings, curve(nothing, nothing, nothing, nothing))
    x, y = float(placed.x[position]), float(placed.y[position])
    _ring(rings, x, y, "selected")
    before = at.folded.source[at.folded.destination == item]
    after = at.folded.destination[at.folded.source == item]
    shown = {int(other): number for number, other in enumerate(placed.items.tolist())}
    ends: list[tuple[float, float, float, float]] = []
    outside = 0
    for other, incoming in [*((int(o), True) for o in before), *((int(o), False) for o in after)]:
        if other not in shown:
            outside += 1
            continue
        other_x, other_y = float(placed.x[shown[other]]), float(placed.y[shown[other]])
        _ring(rings, other_x, other_y, "before" if incoming else "after")
        ends.append(
            (other_x + HALF_WIDTH, other_y, x - HALF_WIDTH, y)
            if incoming
            else (x + HALF_WIDTH, y, other_x - HALF_WIDTH, other_y)
        )
    columns = np.array(ends, dtype=float).reshape(-1, 4).T
    return Highlight(
        rings, curve(columns[0], columns[1], columns[2], columns[3]), (x, y), int(at.folded.size[item]) > 1, outside
    )


def _ring(rings: dict[str, list[object]], x: float, y: float, which: str) -> None:
    width, height = HALF_WIDTH + 0.035, HALF_HEIGHT + 0.06
    rings["xs"].append([x - width, x + width, x + width, x - width])
    rings["ys"].append([y - height, y - height, y + height, y + height])
    rings["which"].append(which)
