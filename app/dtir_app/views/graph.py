"""The graph figure: polygons, curves, signs, rings, and labels as long as the zoom allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from bokeh.events import DoubleTap, Tap
from bokeh.models import (
    Bezier,
    BoxZoomTool,
    ColumnDataSource,
    CustomJS,
    HoverTool,
    Patches,
    Quad,
    Scatter,
    Segment,
    Text,
)
from bokeh.transform import factor_cmap, factor_mark

from dtir_app.frames.borders import BORDER_COLUMNS
from dtir_app.frames.graph import NODE_COLUMNS, PIECE_COLUMNS, GraphFrame
from dtir_app.frames.placing import LANE_PX, LEVEL_PX
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH
from dtir_app.frames.windows import Window
from dtir_app.kinds import Family
from dtir_app.theme import SEVERITY_FILLS, SEVERITY_MARKERS, family_fills, family_texts, tokens
from dtir_app.views.base import SIZE, Columns, blank_figure, draw, empty_source, paint, set_columns, text_props
from dtir_app.views.graph_js import CAMERA, LABELS, PEEK, VIEWPORT

TEXT_COLUMNS = ("left", "y", "family", "alpha", "code", "label", "offset", "detail", "lift", "pad")
NODE_NUMBERS = {"x": np.float64, "y": np.float64, "alpha": np.float32, "item": np.int32, "task": np.int32}
CURVE_COLUMNS = ("x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1")

_FAMILIES = [str(int(family)) for family in Family]


class GraphView:
    """The figure called ``graph``; its sources are ``graph-nodes``, -pieces, -edges, -stubs, -marks, -rings, -lines, -stacks, -borders,
    -near, -near-lines, -camera (what the server wants to be seen), -viewport (what is seen), -peek (what Alt is held over) and -texts
    (which the browser makes out of the nodes)."""

    def __init__(self, dark: bool = False) -> None:
        self.nodes = empty_source("graph-nodes", NODE_COLUMNS)
        self.pieces = empty_source("graph-pieces", PIECE_COLUMNS)
        self.texts = empty_source("graph-texts", TEXT_COLUMNS)
        self.edges = empty_source("graph-edges", CURVE_COLUMNS)
        self.stubs = empty_source("graph-stubs", ("x0", "x1", "y"))
        self.marks = empty_source("graph-marks", ("x", "y", "severity"))
        self.rings = empty_source("graph-rings", ("xs", "ys", "which", "width"))
        self.lines = empty_source("graph-lines", CURVE_COLUMNS)
        self.stacks = empty_source("graph-stacks", ("xs", "ys"))
        self.borders = empty_source("graph-borders", BORDER_COLUMNS)
        self.viewport = ColumnDataSource({"left": [], "right": [], "top": [], "bottom": []}, name="graph-viewport")
        self.near = empty_source("graph-near", ("xs", "ys"))
        self.near_lines = empty_source("graph-near-lines", CURVE_COLUMNS)
        self.peek = ColumnDataSource({"item": []}, name="graph-peek")
        self.camera = ColumnDataSource(_command("", 0, 1, 1, None), name="graph-camera")
        hover = HoverTool(tooltips=[("", "@title"), ("", "@kind"), ("", "@message")], renderers=[])
        self.figure = blank_figure("graph", hover=hover)
        # Its own switch is in the bar above the figure; a drag without it moves the picture.
        self.figure.toolbar.tools = [*self.figure.toolbar.tools, BoxZoomTool(name="graph-box-zoom")]
        self._draw()
        hover.renderers = [self._node, self._piece]
        self._wire()
        self.restyle(dark)

    def _draw(self) -> None:
        made = self.figure
        ends = {name: name for name in CURVE_COLUMNS}
        sides = {"left": "left", "right": "right", "top": "top", "bottom": "bottom"}
        self._border = draw(made, self.borders, Quad(**sides, line_width=1.5, line_dash=[5, 3]))
        self._edge = draw(made, self.edges, Bezier(**ends, line_width=1, line_alpha=0.7))
        self._stub = draw(made, self.stubs, Segment(x0="x0", x1="x1", y0="y", y1="y", line_width=3, line_alpha=0.8))
        self._line = draw(made, self.lines, Bezier(**ends, line_width=2))
        self._stack = draw(made, self.stacks, Patches(xs="xs", ys="ys"))
        alphas = {"fill_alpha": "alpha", "line_alpha": "alpha"}
        self._piece = draw(made, self.pieces, Quad(**sides, **alphas))
        self._node = draw(made, self.nodes, Patches(xs="xs", ys="ys", **alphas))
        shared = {"x": "left", "y": "y", "text_alpha": "alpha", "text_baseline": "middle"}
        code = Text(text="code", x_offset="pad", y_offset="lift", **shared, **text_props("11px", "bold"))
        label = Text(text="label", x_offset="offset", y_offset="lift", **shared, **text_props("11px"))
        detail = Text(text="detail", x_offset="pad", y_offset=8, **shared, **text_props("10px"))
        self._code, self._label, self._detail = (
            draw(made, self.texts, glyph, visible=False) for glyph in (code, label, detail)
        )
        name = Text(x="left", y="top", text="label", x_offset=3, y_offset=-3, **text_props("11px", "bold"))
        self._border_name = draw(made, self.borders, name)
        ring = Patches(xs="xs", ys="ys", fill_color=None, line_width="width", line_join="round")
        self._ring = draw(made, self.rings, ring)
        near = {"line_width": 2.5, "line_dash": [3, 3]}
        self._near_line = draw(made, self.near_lines, Bezier(**ends, **near))
        self._near = draw(made, self.near, Patches(xs="xs", ys="ys", fill_color=None, **near))
        marks = {"marker": factor_mark("severity", list(SEVERITY_MARKERS.values()), list(SEVERITY_MARKERS))}
        marks["fill_color"] = factor_cmap("severity", list(SEVERITY_FILLS.values()), list(SEVERITY_FILLS))
        self._mark = draw(made, self.marks, Scatter(x="x", y="y", size=13, line_width=1.5, **marks))

    def _wire(self) -> None:
        made = self.figure
        ranges = {"fig": made, "xr": made.x_range, "yr": made.y_range}
        texts = {
            "nodes": self.nodes,
            "texts": self.texts,
            "code": self._code,
            "label": self._label,
            "detail": self._detail,
            "mark": self._mark,
        }
        half = {"half_width": HALF_WIDTH, "half_height": HALF_HEIGHT}
        labels = CustomJS(args={**ranges, **texts, **half}, code=SIZE + LABELS)
        made.x_range.js_on_change("start", labels)
        made.y_range.js_on_change("start", labels)
        self.nodes.js_on_change("data", labels)
        peek = CustomJS(args={"fig": made, "nodes": self.nodes, "peek": self.peek, **half}, code=PEEK)
        for event in ("mousemove", "mouseleave"):
            made.js_on_event(event, peek)
        scale = {"level_px": LEVEL_PX, "lane_px": LANE_PX}
        camera = CustomJS(args={**ranges, "camera": self.camera, **scale}, code=SIZE + CAMERA)
        self.camera.js_on_change("data", camera)
        viewport = CustomJS(
            args={**ranges, "seen": self.viewport, "nodes": self.nodes, "camera": self.camera}, code=SIZE + VIEWPORT
        )
        for one in (made.x_range, made.y_range):
            one.js_on_change("start", viewport)
            one.js_on_change("end", viewport)
        self.nodes.js_on_change("data", viewport)
        for name in ("inner_width", "inner_height"):
            made.js_on_change(name, camera)
            made.js_on_change(name, labels)

    def on_tap(self, tapped: Callable[[float, float, bool], None], opened: Callable[[float, float], None]) -> None:
        """Call with data coordinates on a click (and whether shift was held) and on a double click."""

        def click(event: Tap) -> None:
            if event.x is not None and event.y is not None:
                modifiers = getattr(event, "modifiers", None)
                tapped(event.x, event.y, bool(modifiers and modifiers.get("shift")))

        def double(event: DoubleTap) -> None:
            if event.x is not None and event.y is not None:
                opened(event.x, event.y)

        self.figure.on_event(Tap, click)
        self.figure.on_event(DoubleTap, double)

    def on_move(self, moved: Callable[[Window], None]) -> None:
        """Call with what is in sight, when that needs other data or stays for a while."""

        def changed(attribute: str, old: object, new: Mapping[str, list[float]]) -> None:
            numbers = [new[name][0] for name in ("left", "right", "top", "bottom") if len(new.get(name, ())) == 1]
            if len(numbers) == 4 and all(isinstance(number, (int, float)) for number in numbers):
                moved(Window(*map(float, numbers)))

        self.viewport.on_change("data", changed)

    def on_peek(self, peeked: Callable[[int], None]) -> None:
        """Call with the item that Alt is held over, -1 for none."""

        def changed(attribute: str, old: object, new: Mapping[str, list[int]]) -> None:
            items = new.get("item", ())
            peeked(items[0] if len(items) == 1 and isinstance(items[0], int) else -1)

        self.peek.on_change("data", changed)

    def restyle(self, dark: bool) -> None:
        """Colours of the other theme; shapes and data stay."""
        theme = tokens(dark)
        paint(self.figure, theme)
        self._edge.glyph.line_color = theme.edge
        self._border.glyph.line_color = theme.strong_line
        self._border.glyph.fill_color = theme.raised
        self._border_name.glyph.text_color = theme.muted
        self._stack.glyph.line_color = theme.strong_line
        self._stack.glyph.fill_color = theme.raised
        self._stub.glyph.line_color = theme.edge
        self._line.glyph.line_color = theme.selected
        self._ring.glyph.line_color = theme.selected
        self._near.glyph.line_color = theme.text
        self._near_line.glyph.line_color = theme.text
        self._mark.glyph.line_color = theme.paper
        for renderer in (self._piece, self._node):
            renderer.glyph.line_color = theme.strong_line
            renderer.glyph.fill_color = factor_cmap("family", family_fills(dark), _FAMILIES)
        for renderer in (self._code, self._label, self._detail):
            renderer.glyph.text_color = factor_cmap("family", family_texts(dark), _FAMILIES)

    def show(self, frame: GraphFrame) -> None:
        """Another scene, another part of it, or the same with other filters."""
        drawn = frame.window
        # Which filling this is, and for which part of the picture; nothing where the data are all of it. Told before the data, so that
        # texts are fitted and the window is compared once, when the data come.
        part = [drawn.left, drawn.right, drawn.top, drawn.bottom] if drawn is not None else []
        self.nodes.tags = [self.nodes.tags[0] + 1, frame.dense, *part]
        if len(self.near.data["xs"]):
            self.point_out({"xs": [], "ys": []}, {name: [] for name in CURVE_COLUMNS})  # it stood in the picture before
        set_columns(self.borders, frame.borders)
        set_columns(self.edges, frame.edges)
        set_columns(self.stubs, frame.stubs)
        set_columns(self.stacks, frame.stacks)
        set_columns(self.marks, frame.marks)
        set_columns(self.pieces, frame.pieces)
        # As arrays, which take a tenth of the time that lists take to be sent.
        numbers = {name: np.asarray(frame.nodes[name], type_) for name, type_ in NODE_NUMBERS.items()}
        set_columns(self.nodes, {**frame.nodes, **numbers})

    def highlight(self, rings: Columns, lines: Columns) -> None:
        """Another selection."""
        set_columns(self.rings, {**rings, "width": [3.0 if which == "selected" else 1.5 for which in rings["which"]]})
        set_columns(self.lines, lines)

    def point_out(self, near: Columns, lines: Columns) -> None:
        """Mark an item and its neighbours, besides the selection."""
        set_columns(self.near, {name: near[name] for name in ("xs", "ys")})
        set_columns(self.near_lines, lines)

    def look(self, how: str, width: float, height: float, point: tuple[float, float] | None) -> None:
        """Move the camera.

        Args:
            how: ``fit`` shows everything; ``go`` everything if it can be read then, else the surroundings of the point;
                ``reveal`` moves only when the point is out of sight or cannot be read; ``centre`` puts it in the middle;
                ``box`` shows a part: its extent is `width` and `height`, its middle the point.
            width, height: extent of the picture.
            point: what to show; None for everything.
        """
        self.camera.data = _command(
            how if point is not None else "fit", width, height, self.camera.data["n"][0] + 1, point
        )


def _command(
    how: str, width: float, height: float, number: int, point: tuple[float, float] | None
) -> Mapping[str, list[object]]:
    x, y = point or (0.0, 0.0)
    return {"kind": [how], "width": [width], "height": [height], "x": [x], "y": [y], "n": [number]}
