"""The timeline figure: bars by family, hatched waits, marks, ties. Time goes to the right and is what is zoomed; rows stay."""

from __future__ import annotations

from collections.abc import Mapping

from bokeh.models import ColumnDataSource, CustomJS, HoverTool, PanTool, Quad, Segment, Text, WheelZoomTool
from bokeh.transform import factor_cmap

from dtir_app.frames.timeline import Frame
from dtir_app.frames.timeline_bars import BAND_PX, LINE_PX, ROW_PX
from dtir_app.kinds import Family
from dtir_app.theme import family_fills, family_texts, tokens
from dtir_app.views.base import SIZE, Columns, blank_figure, draw, empty_source, paint, set_columns, text_props

_FAMILIES = [str(int(family)) for family in Family]
EXPOSED_FILL = "#CC79A7"
"""Exposed communication; apart from all families and axes, and named in the legend."""

# Rows keep their height in pixels, and time its window: only the browser knows how large the figure is.
ROWS = """
const e = extent.data, height = size('inner_height');
if (!height || !e.rows.length) return;
const band = e.band[0], px = Math.min((height - band) / Math.max(1, e.rows[0]), row_px);
yr.setv({start: (height - band) / px, end: -band / px});
"""

CAMERA = """
const c = camera.data;
if (!c.n.length || c.n[0] === camera._done) return;
camera._done = c.n[0];
xr.setv({start: c.x0[0], end: c.x1[0]});
"""

# What is looked at is told to the elements, which tell the server; the last window of a movement is never lost.
TOLD = """
const tell = () => {
  fig._told_at = performance.now(); fig._waits = false;
  const detail = {kind: 'window', x0: xr.start, x1: xr.end, width: size('inner_width'), height: size('inner_height')};
  document.dispatchEvent(new CustomEvent('dtir-timeline', {detail}));
};
if (!size('inner_width') || !extent.data.rows.length || fig._waits) return;
fig._waits = true;
setTimeout(tell, Math.max(0, 70 - (performance.now() - (fig._told_at ?? 0))));
"""

TAPPED = """
const detail = {kind, x: cb_obj.x, y: cb_obj.y, px: Math.abs(xr.end - xr.start) / size('inner_width')};
document.dispatchEvent(new CustomEvent('dtir-timeline', {detail}));
"""

BAR_COLUMNS = ("left", "right", "top", "bottom", "family", "task", "alpha", "edge", "title", "detail")


class TimelineView:
    """The figure called ``timeline``; its sources are ``timeline-bars``, -waits, -strips, -blanks, -labels, -ticks, -ties, -rings,
    -extent and -camera."""

    def __init__(self, dark: bool = False) -> None:
        quad = ("left", "right", "top", "bottom")
        self.bars = empty_source("timeline-bars", BAR_COLUMNS)
        self.waits = empty_source("timeline-waits", quad)
        self.rounds = empty_source("timeline-rounds", quad)
        self.strips = empty_source("timeline-strips", (*quad, "which"))
        self.blanks = empty_source("timeline-blanks", quad)
        self.labels = empty_source("timeline-labels", ("x", "y", "text", "family"))
        self.ticks = empty_source("timeline-ticks", ("x", "y", "text", "lift", "foot", "side"))
        self.ties = empty_source("timeline-ties", ("x0", "x1", "y0", "y1"))
        self.rings = empty_source("timeline-rings", quad)
        self.extent = ColumnDataSource({"rows": [], "band": []}, name="timeline-extent")
        self.camera = ColumnDataSource({"x0": [], "x1": [], "n": []}, name="timeline-camera")
        hover = HoverTool(tooltips=[("", "@title"), ("", "@detail")], renderers=[])
        self.figure = made = blank_figure("timeline", hover=hover)
        pan, zoom = PanTool(dimensions="width"), WheelZoomTool(dimensions="width", zoom_on_axis=False)
        made.toolbar.tools = [pan, zoom, hover]
        made.toolbar.active_scroll, made.toolbar.active_drag = zoom, pan
        self._draw()
        hover.renderers = [self._bar]
        self._wire()
        self.restyle(dark)

    def _draw(self) -> None:
        made = self.figure
        sides = {"left": "left", "right": "right", "top": "top", "bottom": "bottom"}
        self._grid = draw(made, self.ticks, Segment(x0="x", x1="x", y0="y", y1="foot", line_width=1))
        self._blank = draw(
            made,
            self.blanks,
            Quad(
                **sides,
                hatch_pattern="left_diagonal_line",
                hatch_scale=10,
                hatch_alpha=0.35,
                fill_alpha=0,
                line_alpha=0,
            ),
        )
        bar = Quad(**sides, fill_alpha="alpha", line_width="edge", line_alpha=0.8)
        self._bar = draw(made, self.bars, bar)
        self._rounds = draw(
            made,
            self.rounds,
            Quad(
                **sides, hatch_pattern="right_diagonal_line", hatch_scale=8, hatch_alpha=0.6, fill_alpha=0, line_alpha=0
            ),
        )
        self._wait = draw(
            made,
            self.waits,
            Quad(
                **sides, hatch_pattern="right_diagonal_line", hatch_scale=6, hatch_alpha=0.9, fill_alpha=0, line_width=1
            ),
        )
        self._strip = draw(made, self.strips, Quad(**sides, line_width=0, line_alpha=0))
        label = Text(x="x", y="y", text="text", text_baseline="middle", **text_props("11px"))
        self._label = draw(made, self.labels, label)
        self._tie = draw(made, self.ties, Segment(x0="x0", x1="x1", y0="y0", y1="y1", line_width=2, line_dash=[4, 3]))
        self._ring = draw(made, self.rings, Quad(**sides, fill_alpha=0, line_width=2.5))
        tick = Text(x="x", y="y", text="text", y_offset="lift", x_offset=3, **text_props("11px"))
        self._tick = draw(made, self.ticks, tick)

    def _wire(self) -> None:
        made = self.figure
        ranges = {"fig": made, "xr": made.x_range, "yr": made.y_range, "extent": self.extent}
        rows = CustomJS(args={**ranges, "row_px": ROW_PX}, code=SIZE + ROWS)
        told = CustomJS(args=ranges, code=SIZE + TOLD)
        camera = CustomJS(args={**ranges, "camera": self.camera}, code=CAMERA)
        self.extent.js_on_change("data", rows)
        self.camera.js_on_change("data", camera)
        for name in ("inner_width", "inner_height"):
            made.js_on_change(name, camera)
            made.js_on_change(name, rows)
            made.js_on_change(name, told)
        for name in ("start", "end"):
            made.x_range.js_on_change(name, told)
        made.js_on_event("tap", CustomJS(args={**ranges, "kind": "tap"}, code=SIZE + TAPPED))
        made.js_on_event("doubletap", CustomJS(args={**ranges, "kind": "zoom"}, code=SIZE + TAPPED))

    def restyle(self, dark: bool) -> None:
        """Colours of a theme."""
        theme = tokens(dark)
        paint(self.figure, theme)
        self._bar.glyph.fill_color = factor_cmap("family", family_fills(dark), _FAMILIES)
        self._bar.glyph.line_color = theme.paper
        self._rounds.glyph.hatch_color = theme.text
        self._wait.glyph.hatch_color = theme.text
        self._wait.glyph.line_color = theme.strong_line
        self._blank.glyph.hatch_color = theme.strong_line
        self._strip.glyph.fill_color = factor_cmap("which", [theme.text, EXPOSED_FILL], ["critical", "exposed"])
        self._label.glyph.text_color = factor_cmap("family", family_texts(dark), _FAMILIES)
        self._tie.glyph.line_color = theme.selected
        self._ring.glyph.line_color = theme.selected
        self._grid.glyph.line_color = theme.line
        self._tick.glyph.text_color = theme.muted

    def show(self, frame: Frame) -> None:
        """Another picture."""
        pairs: tuple[tuple[ColumnDataSource, Mapping[str, object]], ...] = (
            (self.blanks, frame.blanks),
            (self.bars, frame.bars),
            (self.waits, frame.waits),
            (self.rounds, frame.rounds),
            (self.strips, frame.strips),
            (self.labels, frame.labels),
            (self.ticks, frame.ticks),
            (self.ties, frame.ties),
            (self.rings, frame.rings),
        )
        for source, columns in pairs:
            set_columns(source, columns)  # type: ignore[arg-type]
        band = BAND_PX if frame.one_clock else BAND_PX + LINE_PX
        wanted = {"rows": [len(frame.rows.shown)], "band": [band]}
        if dict(self.extent.data) != wanted:
            self.extent.data = wanted
        self.bars.tags = [self.bars.tags[0] + 1]

    def look(self, first_s: float, last_s: float) -> None:
        """Move the window."""
        number = (self.camera.data["n"] or [0])[0] + 1
        self.camera.data = {"x0": [first_s], "x1": [last_s], "n": [number]}

    def blank(self) -> None:
        """No picture."""
        for source in (
            self.bars,
            self.waits,
            self.rounds,
            self.strips,
            self.blanks,
            self.labels,
            self.ticks,
            self.ties,
            self.rings,
        ):
            set_columns(source, {name: [] for name in source.data})


__all__ = ["Columns", "TimelineView"]
