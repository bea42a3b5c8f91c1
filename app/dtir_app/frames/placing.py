"""Where the items of a scene stand on screen: wrapped into rows like text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH
from dtir_app.items import Scene

LEVEL_PX, LANE_PX = 118.0, 46.0
"""Size of the grid at which labels are comfortable to read."""

ROW_GAP = 0.9

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86)
"""Numbers of rows that are tried first; then each a fifth more, as long as it pays."""
STEP = 1.2
ROOM_PX = (830.0, 430.0)
LONG_LIST = 5000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where the items of a scene stand.

    Args:
        items: the items in drawing order.
        x, y: their places in levels and lanes; y grows downwards.
        row: the row of text that each stands in.
        width, height: extent of all.
        where: of every item, its position in these columns.
        bands: of every row, its top and its bottom.
    """

    items: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    row: npt.NDArray[np.int32]
    width: float
    height: float
    where: Ints
    bands: Floats

    def position(self, item: int) -> int:
        """Where an item stands in the columns, or -1."""
        return int(self.where[item]) if 0 <= item < len(self.where) else -1


def place_items(at: Scene, size_px: tuple[float, float] = ROOM_PX) -> Placed:
    """Places for the items of a scene, in as many rows as make the picture largest in the room there is.

    Args:
        at: the scene.
        size_px: width and height of the room.
    """
    items = at.order
    where = np.full(at.count, -1, dtype=np.int32)
    where[items] = np.arange(len(items), dtype=np.int32)
    if not len(items):
        nothing = np.zeros(0)
        return Placed(items, nothing, nothing, np.zeros(0, np.int32), 1.0, 1.0, where, np.zeros((0, 2)))
    level = at.layout.level[items] - int(at.layout.level[items].min())
    lane = at.layout.lane[items]
    levels = int(level.max()) + 1
    rows = 1.0
    if levels > LONG_LIST:
        # About as many rows as make a picture of the room's shape; a quarter of it is where trying begins.
        tall = LANE_PX * (float(at.layout.lane.max()) + 1 + ROW_GAP)
        rows = max(1.0, (levels * LEVEL_PX * size_px[1] / (size_px[0] * tall)) ** 0.5 / 4)
    best = _wrapped(level, lane, max(1, -(-levels // int(rows))))
    scale = _scale(best, size_px)
    while levels >= 4 * rows and scale < 1.0:
        rows = next((more for more in ROWS if more > rows), rows * STEP)
        tried = _wrapped(level, lane, max(1, -(-levels // int(rows))))
        reached = _scale(tried, size_px)
        if reached > scale:
            best, scale = tried, reached
        elif reached < scale * 0.7:
            break
    x, y, row, bands = best
    return Placed(items, x, y, row, float(x.max()) + 1, float(y.max()) + 1, where, bands)


def _wrapped(level: Ints, lane: Floats, per_row: int) -> tuple[Floats, Floats, Ints, Floats]:
    """Places when a row holds `per_row` levels: x, y, the row of every item, and the extent of every row."""
    row = (level // per_row).astype(np.int32)
    rows = int(row.max()) + 1
    top, bottom = np.full(rows, np.inf), np.full(rows, -np.inf)
    np.minimum.at(top, row, lane)
    np.maximum.at(bottom, row, lane)
    heights = np.where(np.isfinite(top), bottom - top + 1 + ROW_GAP, 0.0)
    start = np.concatenate([[0.0], np.cumsum(heights)[:-1]])
    bands = np.stack([start - 0.5, start + np.maximum(heights - ROW_GAP, 0.0) - 0.5], axis=1)
    return (level - row * per_row).astype(float), lane - top[row] + start[row], row, bands


def _scale(wrapped: tuple[Floats, Floats, Ints, Floats], size_px: tuple[float, float]) -> float:
    x, y, _, _ = wrapped
    scale = min(size_px[0] / ((x.max() + 1.4) * LEVEL_PX), size_px[1] / ((y.max() + 1.5) * LANE_PX))
    return min(float(scale), 1.0)  # beyond that a picture is not easier to read


def pick(placed: Placed, x: float, y: float) -> int:
    """The item under a point, or -1."""
    if not len(placed.items):
        return -1
    inside = (np.abs(placed.x - x) <= HALF_WIDTH) & (np.abs(placed.y - y) <= HALF_HEIGHT)
    found = np.flatnonzero(inside)
    return int(placed.items[found[0]]) if len(found) else -1
