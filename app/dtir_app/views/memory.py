"""The memory figure: a stack of layers over the task list, the peak, and budgets as lines."""

from __future__ import annotations

from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Patches, Scatter, Segment, Text
from bokeh.transform import factor_cmap

from dtir_app.frames.memory import MemoryFrame
from dtir_app.text import bytes_text
from dtir_app.theme import AXIS_FILLS, SEVERITY_FILLS, tokens
from dtir_app.views.base import SIZE, blank_figure, draw, empty_source, paint, set_columns, text_props

PALETTE = (*AXIS_FILLS, "#BBBBBB", "#7B8694", SEVERITY_FILLS["error"])
_FACTORS = [str(number) for number in range(len(PALETTE))]

FIT = """
const w = size('inner_width'), h = size('inner_height'), e = extent.data;
if (!w || !h || !e.length.length) return;
const left = 74, right = 16, top = 26, bottom = 30, x = e.length[0], y = e.top[0] || 1;
const px = Math.max(1, w - left - right) / x, py = Math.max(1, h - top - bottom) / y;
xr.setv({start: -left / px, end: x + right / px});
yr.setv({start: -bottom / py, end: y + top / py});
"""

TAPPED = "document.dispatchEvent(new CustomEvent('dtir-memory', {detail: {x: cb_obj.x, y: cb_obj.y}}));"


class MemoryView:
    """The figure called ``memory``; its sources are ``memory-areas``, -edges, -marks, -lines, -ticks, -rings, -extent."""

    def __init__(self, dark: bool = False) -> None:
        self.areas = empty_source("memory-areas", ("xs", "ys", "colour", "name", "detail", "value"))
        self.edges = empty_source("memory-edges", ("x", "y0", "y1"))
        self.marks = empty_source("memory-marks", ("x", "y", "text"))
        self.lines = empty_source("memory-lines", ("y", "text", "end"))
        self.ticks = empty_source("memory-ticks", ("x", "y", "x1", "text", "align", "baseline"))
        self.rings = empty_source("memory-rings", ("xs", "ys"))
        self.extent = ColumnDataSource({"length": [], "top": []}, name="memory-extent")
        hover = HoverTool(tooltips=[("", "@name"), ("", "@detail")], renderers=[])
        self.figure = made = blank_figure("memory", hover=hover)
        made.y_range.start, made.y_range.end = -1, 1
        self._grid = draw(made, self.ticks, Segment(x0="x", x1="x1", y0="y", y1="y", line_width=1))
        self._area = draw(made, self.areas, Patches(xs="xs", ys="ys", fill_alpha=0.9, line_width=0.5))
        self._edge = draw(made, self.edges, Segment(x0="x", x1="x", y0="y0", y1="y1", line_width=1.5))
        self._line = draw(made, self.lines, Segment(x0=0, x1="end", y0="y", y1="y", line_width=2, line_dash=[6, 4]))
        budget = Text(x="end", y="y", text="text", text_align="right", y_offset=-4, **text_props("11px", "bold"))
        self._budget = draw(made, self.lines, budget)
        self._ring = draw(made, self.rings, Patches(xs="xs", ys="ys", fill_alpha=0, line_width=2.5))
        mark = Scatter(x="x", y="y", marker="inverted_triangle", size=11, line_width=1)
        self._mark = draw(made, self.marks, mark)
        peak = Text(x="x", y="y", text="text", x_offset=9, y_offset=-3, **text_props("12px", "bold"))
        self._peak = draw(made, self.marks, peak)
        tick = Text(
            x="x", y="y", text="text", text_align="align", text_baseline="baseline", x_offset=-6, **text_props("11px")
        )
        self._tick = draw(made, self.ticks, tick)
        hover.renderers = [self._area]
        fit = CustomJS(
            args={"fig": made, "xr": made.x_range, "yr": made.y_range, "extent": self.extent}, code=SIZE + FIT
        )
        self.extent.js_on_change("data", fit)
        for name in ("inner_width", "inner_height"):
            made.js_on_change(name, fit)
        made.js_on_event("tap", CustomJS(code=TAPPED))
        self.restyle(dark)

    def restyle(self, dark: bool) -> None:
        """Colours of a theme."""
        theme = tokens(dark)
        paint(self.figure, theme)
        self._area.glyph.fill_color = factor_cmap("colour", list(PALETTE), _FACTORS)
        self._area.glyph.line_color = theme.paper
        self._edge.glyph.line_color = theme.text
        self._line.glyph.line_color = theme.error
        self._budget.glyph.text_color = theme.error
        self._ring.glyph.line_color = theme.selected
        self._mark.glyph.fill_color = self._mark.glyph.line_color = theme.text
        self._peak.glyph.text_color = theme.text
        self._grid.glyph.line_color = theme.line
        self._tick.glyph.text_color = theme.muted

    def show(self, frame: MemoryFrame) -> None:
        """Another class of ranks, program or selection."""
        top = max([frame.peak_bytes, *(size for _, size in frame.budgets if size <= 4 * frame.peak_bytes)])
        set_columns(self.areas, frame.areas)
        set_columns(self.edges, frame.edges)
        set_columns(self.marks, frame.marks)
        near = [place for place, size in enumerate(frame.lines["y"]) if float(str(size)) <= 4 * frame.peak_bytes]
        set_columns(self.lines, {name: [column[place] for place in near] for name, column in frame.lines.items()})
        set_columns(self.rings, frame.rings)
        steps = [top * part / 4 for part in range(5)] if top > 0 else []
        count = len(steps)
        set_columns(
            self.ticks,
            {
                "x": [0.0] * count,
                "y": steps,
                "x1": [float(frame.length)] * count,
                "text": [bytes_text(step) for step in steps],
                "align": ["right"] * count,
                "baseline": ["middle"] * count,
            },
        )
        set_columns(self.extent, {"length": [frame.length], "top": [top]})

    def blank(self) -> None:
        """No picture."""
        for source in (self.areas, self.edges, self.marks, self.lines, self.ticks, self.rings):
            set_columns(source, {name: [] for name in source.data})
