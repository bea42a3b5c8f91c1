"""Where the items of a scene stand on screen: wrapped into rows like text, and which part of a large scene is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH
from dtir_app.scenes import Scene

ITEM_LIMIT = 3000
"""Items on screen at once."""

LEVEL_PX, LANE_PX = 118.0, 46.0
"""Size of the grid at which labels are comfortable to read."""

ROW_GAP = 0.9

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86)
"""Numbers of rows that are tried."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the shown items of a scene stand.

    Args:
        items: shown items, in drawing order.
        x, y: their places in levels and lanes; y grows downwards.
        row: the row of text that each stands in.
        width, height: extent of all.
        page, pages: which part of the items is shown.
    """

    items: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    row: npt.NDArray[np.int32]
    width: float
    height: float
    page: int
    pages: int

    def position(self, item: int) -> int:
        """Where an item stands in the columns, or -1."""
        found = np.flatnonzero(self.items == item)
        return int(found[0]) if len(found) else -1


def page_of_item(at: Scene, item: int) -> int:
    """The page on which an item is shown."""
    found = np.flatnonzero(at.order == item)
    return int(found[0]) // ITEM_LIMIT if len(found) else 0


def place_items(at: Scene, page: int, size_px: tuple[float, float] = (830.0, 430.0)) -> Placed:
    """Wrap the items of one page into as many rows as give the largest picture in the room there is.

    Args:
        at: the scene.
        page: which part of a large scene.
        size_px: width and height of the room.
    """
    pages = max(1, -(-at.count // ITEM_LIMIT))
    page = min(max(0, page), pages - 1)
    items = at.order[page * ITEM_LIMIT : (page + 1) * ITEM_LIMIT]
    if not len(items):
        nothing = np.zeros(0)
        return Placed(items, nothing, nothing, np.zeros(0, np.int32), 1.0, 1.0, page, pages)
    level = at.layout.level[items] - int(at.layout.level[items].min())
    lane = at.layout.lane[items]
    levels = int(level.max()) + 1
    tried = [_wrapped(level, lane, max(1, -(-levels // rows))) for rows in ROWS if rows == 1 or levels >= 4 * rows]
    x, y, row = max(tried, key=lambda wrapped: _scale(wrapped, size_px))
    return Placed(items, x, y, row, float(x.max()) + 1, float(y.max()) + 1, page, pages)


def _wrapped(level: Ints, lane: Floats, per_row: int) -> tuple[Floats, Floats, Ints]:
    """Places when a row holds `per_row` levels: x, y and the row of every item."""
    row = (level // per_row).astype(np.int32)
    rows = int(row.max()) + 1
    top, bottom = np.full(rows, np.inf), np.full(rows, -np.inf)
    np.minimum.at(top, row, lane)
    np.maximum.at(bottom, row, lane)
    heights = np.where(np.isfinite(top), bottom - top + 1 + ROW_GAP, 0.0)
    start = np.concatenate([[0.0], np.cumsum(heights)[:-1]])
    return (level - row * per_row).astype(float), lane - top[row] + start[row], row


def _scale(wrapped: tuple[Floats, Floats, Ints], size_px: tuple[float, float]) -> float:
    x, y, _ = wrapped
    scale = min(size_px[0] / ((x.max() + 1.4) * LEVEL_PX), size_px[1] / ((y.max() + 1.5) * LANE_PX))
    return min(float(scale), 1.0)  # beyond that a picture is not easier to read


def pick(placed: Placed, x: float, y: float) -> int:
    """The item under a point, or -1."""
    if not len(placed.items):
        return -1
    inside = (np.abs(placed.x - x) <= HALF_WIDTH) & (np.abs(placed.y - y) <= HALF_HEIGHT)
    found = np.flatnonzero(inside)
    return int(placed.items[found[0]]) if len(found) else -1
