"""A shard map: one tile a block, drawn to scale, hatched by how the block is held."""

from __future__ import annotations

from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Quad, Text
from bokeh.transform import factor_cmap

from dtir_app.theme import AXIS_FILLS, AXIS_TEXTS, SEVERITY_FILLS, tokens
from dtir_app.views.base import SIZE, Columns, blank_figure, draw, empty_source, paint, set_columns, text_props

TILE_COLUMNS = (
    "left",
    "right",
    "top",
    "bottom",
    "x",
    "y",
    "colour",
    "hatch",
    "label",
    "badge",
    "ranks",
    "range",
    "edge",
)
_FACTORS = [str(number) for number in range(len(AXIS_FILLS))]

# The plane of a tile is the unit square: extents of the two dims may differ by factors of thousands.
FIT = """
const e = extent.data;
const w = size('inner_width'), h = size('inner_height');
if (!w || !h || !e.shown.length) return;
const left = 74, right = 18, top = 34, bottom = 14;
const px = (w - left - right), py = (h - top - bottom);
xr.setv({start: -left / px, end: 1 + right / px});
yr.setv({start: 1 + bottom / py, end: -top / py});
"""

TEXTS = """
const d = source.data, n = d.x.length;
const width = size('inner_width');
if (!width || !n) return;
const px = width / Math.abs(xr.end - xr.start), py = size('inner_height') / Math.abs(yr.end - yr.start);
const cut = (text, chars) => chars < 1 ? '' : text.length <= chars ? text : chars < 3 ? '' : text.slice(0, chars - 1) + '…';
const shown = new Array(n), badges = new Array(n);
for (let i = 0; i < n; i++) {
  const w = (d.right[i] - d.left[i]) * px, h = (d.bottom[i] - d.top[i]) * py;
  shown[i] = h > 15 ? cut(d.label[i], Math.floor((w - 8) / 6.6)) : '';
  badges[i] = h > 32 ? cut(d.badge[i], Math.floor((w - 8) / 6.2)) : '';
}
Object.assign(d, {shown: shown, badges: badges});
source.change.emit();
"""


class TensorView:
    """A figure called `name`; its sources are ``NAME-tiles``, ``NAME-ticks`` and ``NAME-extent``."""

    def __init__(self, name: str, dark: bool = False) -> None:
        self.tiles = empty_source(f"{name}-tiles", (*TILE_COLUMNS, "shown", "badges"))
        self.ticks = empty_source(f"{name}-ticks", ("x", "y", "text", "align", "baseline", "angle"))
        self.extent = ColumnDataSource({"shown": []}, name=f"{name}-extent")
        hover = HoverTool(tooltips=[("", "block @range"), ("", "ranks @ranks"), ("", "@badge")], renderers=[])
        self.figure = blank_figure(name, hover=hover)
        made = self.figure
        tile = Quad(
            left="left",
            right="right",
            top="top",
            bottom="bottom",
            hatch_pattern="hatch",
            hatch_alpha=0.4,
            hatch_scale=9,
            line_width=1.5,
        )
        self._tile = draw(made, self.tiles, tile)
        shared = {"text_align": "center", "text_baseline": "middle"}
        plate = {"padding": 2, "border_radius": 3}  # under the text, so that a hatch does not run through it
        self._label = draw(made, self.tiles, Text(text="shown", **shared, **plate, **text_props("12px", "bold")))
        self._badge = draw(made, self.tiles, Text(text="badges", y_offset=17, **shared, **plate, **text_props("11px")))
        tick = Text(text="text", angle="angle", text_align="align", text_baseline="baseline", **text_props("11px"))
        self._tick = draw(made, self.ticks, tick)
        hover.renderers = [self._tile]
        args = {"fig": made, "xr": made.x_range, "yr": made.y_range}
        fit = CustomJS(args={**args, "extent": self.extent}, code=SIZE + FIT)
        texts = CustomJS(args={**args, "source": self.tiles}, code=SIZE + TEXTS)
        self.extent.js_on_change("data", fit)
        for name_of_size in ("inner_width", "inner_height"):
            made.js_on_change(name_of_size, fit)
        made.x_range.js_on_change("start", texts)
        self.tiles.js_on_change("tags", texts)
        self.restyle(dark)

    def restyle(self, dark: bool) -> None:
        theme = tokens(dark)
        paint(self.figure, theme)
        self._tile.glyph.fill_color = factor_cmap("colour", list(AXIS_FILLS), _FACTORS)
        self._tile.glyph.hatch_color = theme.text
        self._tile.glyph.line_color = factor_cmap("edge", [theme.paper, SEVERITY_FILLS["error"]], ["even", "odd"])
        for renderer in (self._label, self._badge):
            renderer.glyph.text_color = factor_cmap("colour", list(AXIS_TEXTS), _FACTORS)
            renderer.glyph.background_fill_color = factor_cmap("colour", list(AXIS_FILLS), _FACTORS)
        self._tick.glyph.text_color = theme.muted

    def show(self, tiles: Columns, ticks: Columns) -> None:
        """Another tensor or cut. Coordinates are fractions of the extents."""
        count = len(tiles["x"])
        set_columns(self.ticks, ticks)
        set_columns(self.tiles, {**tiles, "shown": [""] * count, "badges": [""] * count})
        set_columns(self.extent, {"shown": [count]})
        self.tiles.tags = [self.tiles.tags[0] + 1]
