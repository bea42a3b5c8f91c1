"""The traffic figure: a square of senders and receivers."""

from __future__ import annotations

from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Rect, Text

from dtir_app.frames.traffic import TrafficFrame
from dtir_app.theme import tokens
from dtir_app.views.base import SIZE, blank_figure, draw, empty_source, paint, set_columns, text_props

# The square keeps its form; names and sums stand beside it in pixels.
FIT = """
const w = size('inner_width'), h = size('inner_height'), n = extent.data.count[0];
if (!w || !h || !n) return;
const left = extent.data.left[0], right = 74, top = 34, bottom = 26;
const px = Math.max(2, Math.min((w - left - right) / n, (h - top - bottom) / n, 84));
const x0 = -0.5 - Math.max(left, (w - n * px) / 2 - (right - left) / 2) / px, y0 = -0.5 - top / px;
xr.setv({start: x0, end: x0 + w / px});
yr.setv({start: y0 + h / px, end: y0});
texts.visible = px > 52;
sums.visible = px > 12;
"""

TAPPED = """
const one = Math.round(cb_obj.y), other = Math.round(cb_obj.x), n = extent.data.count[0] ?? 0;
const inside = one >= 0 && other >= 0 && one < n && other < n;
document.dispatchEvent(new CustomEvent('dtir-traffic', {detail: inside ? {one, other} : {one: -1, other: -1}}));
"""


class TrafficView:
    """The figure called ``traffic``; its sources are ``traffic-cells``, -blanks, -names, -sums, -rings, -extent."""

    def __init__(self, dark: bool = False) -> None:
        self.cells = empty_source("traffic-cells", ("x", "y", "colour", "ink", "text", "title", "detail"))
        self.blanks = empty_source("traffic-blanks", ("x", "y", "size"))
        ticks = ("x", "y", "text", "align", "baseline")
        self.names, self.sums = empty_source("traffic-names", ticks), empty_source("traffic-sums", ticks)
        self.rings = empty_source("traffic-rings", ("x", "y"))
        self.frame = empty_source("traffic-frame", ("x", "y", "size"))
        self.extent = ColumnDataSource({"count": [], "left": []}, name="traffic-extent")
        hover = HoverTool(tooltips=[("", "@title"), ("", "@detail")], renderers=[])
        self.figure = made = blank_figure("traffic", hover=hover)
        self._ground = draw(made, self.frame, Rect(x="x", y="y", width="size", height="size", line_width=1))
        blank = Rect(x="x", y="y", width="size", height="size", hatch_pattern="left_diagonal_line", hatch_scale=10)
        self._blank = draw(made, self.blanks, blank)
        cell = Rect(x="x", y="y", width=1, height=1, fill_color="colour", line_width=0.5)
        self._cell = draw(made, self.cells, cell)
        shared = {"text_align": "center", "text_baseline": "middle"}
        number = Text(x="x", y="y", text="text", text_color="ink", **shared, **text_props("11px"))
        self._text = draw(made, self.cells, number)
        tick = {"x": "x", "y": "y", "text": "text", "text_align": "align", "text_baseline": "baseline"}
        self._name = draw(made, self.names, Text(**tick, **text_props("11px")))
        self._sum = draw(made, self.sums, Text(**tick, **text_props("10px")))
        self._ring = draw(made, self.rings, Rect(x="x", y="y", width=1, height=1, fill_alpha=0, line_width=3))
        hover.renderers = [self._cell]
        args = {"fig": made, "xr": made.x_range, "yr": made.y_range, "extent": self.extent}
        fit = CustomJS(args={**args, "texts": self._text, "sums": self._sum}, code=SIZE + FIT)
        self.extent.js_on_change("data", fit)
        for name in ("inner_width", "inner_height"):
            made.js_on_change(name, fit)
        made.js_on_event("tap", CustomJS(args={"extent": self.extent}, code=TAPPED))
        self.restyle(dark)

    def restyle(self, dark: bool) -> None:
        """Colours of a theme."""
        theme = tokens(dark)
        paint(self.figure, theme)
        self._ground.glyph.fill_color, self._ground.glyph.line_color = theme.raised, theme.strong_line
        self._cell.glyph.line_color = theme.paper
        self._blank.glyph.fill_color, self._blank.glyph.line_color = theme.raised, theme.line
        self._blank.glyph.hatch_color = theme.strong_line
        self._name.glyph.text_color = theme.text
        self._sum.glyph.text_color = theme.muted
        self._ring.glyph.line_color = theme.selected

    def show(self, frame: TrafficFrame) -> None:
        """Another square, mode or picked cell."""
        count = frame.square.units.count
        middle = (count - 1) / 2
        set_columns(self.frame, {"x": [middle], "y": [middle], "size": [count]})
        set_columns(self.blanks, frame.blanks)
        set_columns(self.cells, frame.cells)
        set_columns(self.rings, frame.rings)
        ticks, looks = frame.ticks, frame.ticks["look"]
        for source, look in ((self.names, "name"), (self.sums, "sum")):
            kept = [place for place, item in enumerate(looks) if item == look]
            set_columns(source, {name: [ticks[name][place] for place in kept] for name in ticks if name != "look"})
        longest = max((len(str(text)) for text in self.names.data["text"]), default=1)
        set_columns(self.extent, {"count": [count], "left": [18 + 7 * longest]})

    def blank(self) -> None:
        """No picture."""
        for source in (self.frame, self.blanks, self.cells, self.names, self.sums, self.rings):
            set_columns(source, {name: [] for name in source.data})
