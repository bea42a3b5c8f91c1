"""Which part of a large picture is asked for: a window in levels and lanes, and how much lies in it.

A picture of at most `ITEM_LIMIT` items is drawn once and as a whole. A larger one is drawn anew for what is in sight: item by item where
at most `DETAIL_LIMIT` are, else as densities (`dtir_app.frames.density`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dtir_app.frames.placing import Ints, Placed

ITEM_LIMIT = 3000
"""Items, or parts of densities, on screen at once."""
DETAIL_LIMIT = 1500
"""Items drawn one by one in a picture that has more than `ITEM_LIMIT`."""
MARGIN = 0.25
"""Share of the window that is drawn beyond each of its sides, so that a small step needs nothing new."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a picture, in its coordinates: left, right, top, bottom."""

    left: float
    right: float
    top: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def widened(self, margin: float = MARGIN) -> Window:
        """The window with a margin."""
        dx, dy = self.width * margin, self.height * margin
        return Window(self.left - dx, self.right + dx, self.top - dy, self.bottom + dy)

    def covers(self, x: float, y: float) -> bool:
        """Whether a point lies in it."""
        return self.left <= x <= self.right and self.top <= y <= self.bottom

    @property
    def text(self) -> str:
        """As links write it: ``0,12.5,3,8``."""
        return ",".join(
            f"{number:.2f}".rstrip("0").rstrip(".") for number in (self.left, self.right, self.top, self.bottom)
        )


def parse_window(text: str) -> Window | None:
    """The window that a text names; None when it names none."""
    try:
        left, right, top, bottom = (float(part) for part in text.split(","))
    except ValueError:
        return None
    numbers = (left, right, top, bottom)
    if not all(abs(number) < 1e7 for number in numbers) or right - left < 1e-3 or bottom - top < 1e-3:
        return None
    return Window(*numbers)


def whole(placed: Placed) -> Window:
    """The window that shows everything."""
    return Window(-0.7, placed.width - 0.3, -0.75, placed.height - 0.25)


def is_large(placed: Placed) -> bool:
    """Whether a picture is drawn by windows."""
    return len(placed.items) > ITEM_LIMIT


def drawn_part(placed: Placed, window: Window) -> tuple[Window, Ints, bool]:
    """The part to draw for a window, the items in it, and whether they are too many to be drawn one by one."""
    dense = len(inside(placed, window)) > DETAIL_LIMIT
    for margin in (MARGIN, MARGIN / 4, 0.0):
        part = window.widened(margin)
        positions = inside(placed, part)
        if dense or len(positions) <= ITEM_LIMIT:
            break
    return part, positions, dense


def inside(placed: Placed, window: Window) -> Ints:
    """Positions of the items in a window."""
    return np.flatnonzero(
        (placed.x > window.left - 0.5)
        & (placed.x < window.right + 0.5)
        & (placed.y > window.top - 0.5)
        & (placed.y < window.bottom + 0.5)
    ).astype(np.int32)
