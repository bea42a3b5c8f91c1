"""What part of a figure is drawn, and how large: what the figure's own scripts do in the browser, done here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bokeh.models import GlyphRenderer, Plot

from dtir_app.frames.placing import LANE_PX, LEVEL_PX

DEFAULT_PX = (960.0, 540.0)
CELL_PX = 76.0
TILE_PX = (560.0, 400.0)


@dataclass(frozen=True, slots=True)
class Frame:
    """A window in data coordinates and its size in pixels; y grows downwards on screen from `y0` to `y1`."""

    x0: float
    x1: float
    y0: float
    y1: float
    width: float
    height: float

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return (value - self.x0) / (self.x1 - self.x0) * self.width

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return (value - self.y0) / (self.y1 - self.y0) * self.height


def frame_figure(plot: Plot, size_px: tuple[float, float] | None = None) -> Frame:
    """The frame in which a figure can be read: its natural size, or the given one where it has none.

    Args:
        plot: a figure of `dtir_app.views`.
        size_px: width and height for figures that fill what room there is.
    """
    rule = _RULES.get(str(plot.name).split("-")[0], _general)
    return rule(plot, size_px or DEFAULT_PX)


def columns_of(plot: Plot, name: str) -> dict[str, Any]:
    """The columns of a figure's source by the source's name; none when there is no such source."""
    for source in plot.references():
        if getattr(source, "name", None) == name and hasattr(source, "data"):
            return dict(source.data)
    return {}


def _general(plot: Plot, size_px: tuple[float, float]) -> Frame:
    """Everything that is drawn, with some room around it; a range that somebody set is kept."""
    span = [_set_range(one) for one in (plot.x_range, plot.y_range)]
    found = _extent(plot)
    (x0, x1), (y0, y1) = (
        known if known is not None else _padded(*seen) for known, seen in zip(span, (found[:2], found[2:]), strict=True)
    )
    if span[1] is None and plot.y_range.start > plot.y_range.end:
        pass  # y points down, as on screen
    elif span[1] is None:
        y0, y1 = y1, y0
    else:
        y0, y1 = y1, y0
    return Frame(x0, x1, y0, y1, *size_px)


def _set_range(one: Any) -> tuple[float, float] | None:
    """A range as it was set; None for the one that figures begin with."""
    start, end = getattr(one, "start", None), getattr(one, "end", None)
    if not all(isinstance(item, (int, float)) and math.isfinite(item) for item in (start, end)):
        return None
    if {abs(float(start)), abs(float(end))} == {1.0} or start == end:
        return None
    return float(start), float(end)


def _padded(low: float, high: float) -> tuple[float, float]:
    if not low < high:
        return (low - 0.5, high + 0.5) if math.isfinite(low) else (0.0, 1.0)
    return low - (high - low) * 0.03, high + (high - low) * 0.03


_ACROSS = ("x", "x0", "x1", "left", "right", "xs", "cx0")
_DOWN = ("y", "y0", "y1", "top", "bottom", "ys", "cy0")


def _extent(plot: Plot) -> tuple[float, float, float, float]:
    """Least and greatest coordinate, across and down, of all that is drawn."""
    from dtir_app.drawing.reading import has, read, rows_of

    bounds = [math.inf, -math.inf, math.inf, -math.inf]
    for renderer in plot.renderers:
        if not isinstance(renderer, GlyphRenderer):
            continue
        columns = dict(renderer.data_source.data)
        count = rows_of(columns)
        for names, at in ((_ACROSS, 0), (_DOWN, 2)):
            for name in names:
                if count and has(renderer.glyph, name):
                    for value in _flat(read(renderer.glyph, name, columns, count)):
                        bounds[at] = min(bounds[at], value)
                        bounds[at + 1] = max(bounds[at + 1], value)
    return (bounds[0], bounds[1], bounds[2], bounds[3])


def _flat(values: Iterable[Any]) -> Iterable[float]:
    for value in values:
        if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
            yield from _flat(value)
        elif isinstance(value, (int, float)) and math.isfinite(value):
            yield float(value)


def _graph(plot: Plot, size_px: tuple[float, float]) -> Frame:
    """The size at which labels are comfortable to read, whatever that comes to: an SVG can be zoomed."""
    found = _extent(plot)
    if not math.isfinite(found[0]):
        return Frame(-1, 1, -1, 1, *size_px)
    x0, x1, y0, y1 = found[0] - 0.2, found[1] + 0.2, found[2] - 0.35, found[3] + 0.35
    return Frame(x0, x1, y0, y1, (x1 - x0) * LEVEL_PX, (y1 - y0) * LANE_PX)


def _mesh(plot: Plot, size_px: tuple[float, float]) -> Frame:
    extent = columns_of(plot, f"{plot.name}-extent")
    if not extent.get("width"):
        return _general(plot, size_px)
    left, top, right, bottom = 1.9, 1.7, 0.8, 0.6
    width, height = float(extent["width"][0]) + left + right, float(extent["height"][0]) + top + bottom
    x0, y0 = -0.5 - left + 0.5, -0.5 - top + 0.5
    return Frame(x0, x0 + width, y0, y0 + height, width * CELL_PX, height * CELL_PX)


def _tensor(plot: Plot, size_px: tuple[float, float]) -> Frame:
    # Names beside the rows stand to the left of the tiles, however long they are.
    ticks = columns_of(plot, f"{plot.name}-ticks")
    beside = [
        len(str(text))
        for text, align in zip(ticks.get("text", ()), ticks.get("align", ()), strict=False)
        if align == "right"
    ]
    right, top, bottom = 18.0, 34.0, 14.0
    left = max(74.0, 6.4 * max(beside, default=0) + 14.0)
    width, height = TILE_PX[0] + left - 74.0, TILE_PX[1]
    px, py = width - left - right, height - top - bottom
    return Frame(-left / px, 1 + right / px, -top / py, 1 + bottom / py, width, height)


def _timeline(plot: Plot, size_px: tuple[float, float]) -> Frame:
    """Rows of one height below the band of the axis; all of time."""
    extent = columns_of(plot, f"{plot.name}-extent")
    found = _extent(plot)
    if not extent.get("rows") or not math.isfinite(found[0]):
        return _general(plot, size_px)
    camera = columns_of(plot, f"{plot.name}-camera")
    x0, x1 = (camera["x0"][0], camera["x1"][0]) if camera.get("x0") else _padded(found[0], found[1])
    rows, band = max(1.0, float(extent["rows"][0])), float(extent["band"][0])
    row_px = max(24.0, min(64.0, (size_px[1] - band) / rows))
    return Frame(float(x0), float(x1), -band / row_px, rows, size_px[0], band + rows * row_px)


_RULES: dict[str, Callable[[Plot, tuple[float, float]], Frame]] = {
    "graph": _graph,
    "mesh": _mesh,
    "tensor": _tensor,
    "timeline": _timeline,
}
