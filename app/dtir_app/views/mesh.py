"""The mesh figure: one cell a rank, filled by group, with arrows for transfers."""

from __future__ import annotations

from collections.abc import Callable

from bokeh.events import Tap
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Rect, Scatter, Segment, Text
from bokeh.transform import factor_cmap

from dtir_app.theme import AXIS_FILLS, AXIS_TEXTS, tokens
from dtir_app.views.base import SIZE, Columns, blank_figure, draw, empty_source, paint, set_columns, text_props

_FACTORS = [*(str(number) for number in range(len(AXIS_FILLS))), "none"]

FIT = """
const e = extent.data;
const w = size('inner_width'), h = size('inner_height');
if (!w || !h || !e.width.length) return;
const left = 1.9, top = 1.7;
const bw = e.width[0] + left + 0.8, bh = e.height[0] + top + 0.6;
const px = Math.min(w / bw, h / bh, 76);
const cx = (e.width[0] - 1 + 0.8 - left) / 2, cy = (e.height[0] - 1 + 0.6 - top) / 2;
xr.setv({start: cx - w / px / 2, end: cx + w / px / 2});
yr.setv({start: cy + h / px / 2, end: cy - h / px / 2});
"""

TEXTS = """
const px = size('inner_width') / Math.abs(xr.end - xr.start);
rank.visible = px > 17; label.visible = px > 40; tick.visible = px > 15;
"""


class MeshView:
    """The figure called ``mesh``; its sources are ``mesh-cells``, ``mesh-arrows``, ``mesh-ticks``, ``mesh-extent``."""

    def __init__(self, dark: bool = False) -> None:
        names = ("x", "y", "rank", "place", "group", "colour", "hatch", "label", "name")
        self.cells = empty_source("mesh-cells", names)
        self.arrows = empty_source("mesh-arrows", ("x0", "y0", "x1", "y1", "angle"))
        self.ticks = empty_source("mesh-ticks", ("x", "y", "text", "align", "baseline"))
        self.extent = ColumnDataSource({"width": [], "height": []}, name="mesh-extent")
        tips = [("", "rank @rank"), ("", "@place"), ("", "@name")]
        hover = HoverTool(tooltips=tips, renderers=[])
        self.figure = blank_figure("mesh", hover=hover)
        made = self.figure
        cell = Rect(width=0.9, height=0.9, border_radius=3, hatch_pattern="hatch", hatch_alpha=0.45, hatch_scale=8)
        self._cell = draw(made, self.cells, cell)
        shared = {"text_align": "center", "text_baseline": "middle"}
        self._rank = draw(made, self.cells, Text(text="rank", y_offset=-5, **shared, **text_props("12px", "bold")))
        self._label = draw(made, self.cells, Text(text="label", y_offset=10, **shared, **text_props("10px")))
        self._arrow = draw(made, self.arrows, Segment(x0="x0", y0="y0", x1="x1", y1="y1", line_width=2.5))
        head = Scatter(x="x1", y="y1", marker="triangle", size=11, angle="angle")
        self._head = draw(made, self.arrows, head)
        tick = Text(text="text", text_align="align", text_baseline="baseline", **text_props("11px"))
        self._tick = draw(made, self.ticks, tick)
        hover.renderers = [self._cell]
        args = {"fig": made, "xr": made.x_range, "yr": made.y_range}
        fit = CustomJS(args={**args, "extent": self.extent}, code=SIZE + FIT)
        texts = CustomJS(args={**args, "rank": self._rank, "label": self._label, "tick": self._tick}, code=SIZE + TEXTS)
        self.extent.js_on_change("data", fit)
        for name in ("inner_width", "inner_height"):
            made.js_on_change(name, fit)
        made.x_range.js_on_change("start", texts)
        self.restyle(dark)

    def on_tap(self, tapped: Callable[[float, float], None]) -> None:
        """Call with data coordinates on a click."""
        self.figure.on_event(Tap, lambda event: tapped(event.x, event.y))

    def restyle(self, dark: bool) -> None:
        theme = tokens(dark)
        paint(self.figure, theme)
        self._cell.glyph.fill_color = factor_cmap("colour", [*AXIS_FILLS, theme.raised], _FACTORS)
        self._cell.glyph.line_color = theme.strong_line
        self._cell.glyph.hatch_color = theme.text
        for renderer in (self._rank, self._label):
            renderer.glyph.text_color = factor_cmap("colour", [*AXIS_TEXTS, theme.muted], _FACTORS)
        self._arrow.glyph.line_color = theme.text
        self._head.glyph.fill_color = theme.text
        self._head.glyph.line_color = theme.text
        self._tick.glyph.text_color = theme.muted

    def show(self, cells: Columns, arrows: Columns, ticks: Columns, extent: tuple[float, float]) -> None:
        """Another mesh, selection or arrangement."""
        set_columns(self.cells, cells)
        set_columns(self.arrows, arrows)
        set_columns(self.ticks, ticks)
        if list(self.extent.data["width"]) != [extent[0]] or list(self.extent.data["height"]) != [extent[1]]:
            set_columns(self.extent, {"width": [extent[0]], "height": [extent[1]]})
