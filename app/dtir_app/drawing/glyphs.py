"""One function a kind of glyph: where it is drawn, as the name of an SVG element, its geometry and, for text, its content."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bokeh.models import (
    Bezier,
    Glyph,
    HBar,
    Line,
    MultiLine,
    Patch,
    Patches,
    Quad,
    Rect,
    Scatter,
    Segment,
    Text,
    VBar,
)

from dtir_app.drawing.framing import Frame
from dtir_app.drawing.reading import UnknownLook, read


@dataclass(frozen=True, slots=True)
class Mark:
    """One drawn thing.

    Args:
        row: of the source.
        tag: of the SVG element.
        geometry: attributes of place and shape.
        text: content of a text.
        box: (left, top, width, height) in pixels, where a hatch or a plate needs it.
    """

    row: int
    tag: str
    geometry: dict[str, str]
    text: str = ""


Columns = dict[str, Any]
Draw = Callable[[Any, Columns, int, Frame], Iterator[Mark]]


def number(value: float) -> str:
    """Coordinates to a tenth of a pixel, without needless digits: a drawing has many of them.

    >>> number(12.0), number(0.25), number(-0.01)
    ('12', '0.2', '0')
    """
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _finite(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)


def _polygon(xs: Any, ys: Any, frame: Frame) -> str:
    points = [f"{number(frame.x(x))} {number(frame.y(y))}" for x, y in zip(xs, ys, strict=False) if _finite(x, y)]
    return f"M{'L'.join(points)}" if points else ""


def _patches(glyph: Patches, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    for row, (xs, ys) in enumerate(
        zip(read(glyph, "xs", columns, count), read(glyph, "ys", columns, count), strict=True)
    ):
        if path := _polygon(xs or (), ys or (), frame):
            yield Mark(row, "path", {"d": f"{path}Z"})


def _multi_line(glyph: MultiLine, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    for row, (xs, ys) in enumerate(
        zip(read(glyph, "xs", columns, count), read(glyph, "ys", columns, count), strict=True)
    ):
        if path := _polygon(xs or (), ys or (), frame):
            yield Mark(row, "path", {"d": path})


def _line(glyph: Line | Patch, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    path = _polygon(read(glyph, "x", columns, count), read(glyph, "y", columns, count), frame)
    if path:
        yield Mark(0, "path", {"d": f"{path}Z" if isinstance(glyph, Patch) else path})


def _bezier(glyph: Bezier, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    names = ("x0", "y0", "cx0", "cy0", "cx1", "cy1", "x1", "y1")
    for row, ends in enumerate(zip(*(read(glyph, name, columns, count) for name in names), strict=True)):
        if _finite(*ends):
            p = [f"{number(frame.x(ends[at]))} {number(frame.y(ends[at + 1]))}" for at in range(0, 8, 2)]
            yield Mark(row, "path", {"d": f"M{p[0]}C{p[1]} {p[2]} {p[3]}"})


def _segment(glyph: Segment, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    names = ("x0", "y0", "x1", "y1")
    for row, (x0, y0, x1, y1) in enumerate(zip(*(read(glyph, name, columns, count) for name in names), strict=True)):
        if _finite(x0, y0, x1, y1):
            start, end = (f"{number(frame.x(x))} {number(frame.y(y))}" for x, y in ((x0, y0), (x1, y1)))
            yield Mark(row, "path", {"d": f"M{start}L{end}"})


def _box(row: int, left: float, right: float, top: float, bottom: float, frame: Frame, radius: float) -> Mark | None:
    if not _finite(left, right, top, bottom):
        return None
    x0, x1 = sorted((frame.x(left), frame.x(right)))
    y0, y1 = sorted((frame.y(top), frame.y(bottom)))
    made = {"x": number(x0), "y": number(y0), "width": number(x1 - x0), "height": number(y1 - y0)}
    return Mark(row, "rect", made | ({"rx": number(radius)} if radius else {}))


def _radius(glyph: Any) -> float:
    given = getattr(glyph, "border_radius", 0)
    return float(given) if isinstance(given, (int, float)) else 0.0


def _rect(glyph: Rect, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    radius = _radius(glyph)
    for row, (x, y, w, h) in enumerate(
        zip(*(read(glyph, name, columns, count) for name in ("x", "y", "width", "height")), strict=True)
    ):
        if _finite(x, y, w, h):
            made = _box(row, x - w / 2, x + w / 2, y - h / 2, y + h / 2, frame, radius)
            if made:
                yield made


def _quad(glyph: Quad, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    radius = _radius(glyph)
    for row, sides in enumerate(
        zip(*(read(glyph, name, columns, count) for name in ("left", "right", "top", "bottom")), strict=True)
    ):
        if _finite(*sides) and (made := _box(row, *sides, frame, radius)):
            yield made


def _hbar(glyph: HBar, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    radius = _radius(glyph)
    for row, (y, height, left, right) in enumerate(
        zip(*(read(glyph, name, columns, count) for name in ("y", "height", "left", "right")), strict=True)
    ):
        if _finite(y, height, left, right) and (
            made := _box(row, left, right, y - height / 2, y + height / 2, frame, radius)
        ):
            yield made


def _vbar(glyph: VBar, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    radius = _radius(glyph)
    for row, (x, width, bottom, top) in enumerate(
        zip(*(read(glyph, name, columns, count) for name in ("x", "width", "bottom", "top")), strict=True)
    ):
        if _finite(x, width, bottom, top) and (
            made := _box(row, x - width / 2, x + width / 2, top, bottom, frame, radius)
        ):
            yield made


_MARKERS: dict[str, list[tuple[float, float]]] = {
    "hex": [(math.cos(math.pi * step / 3), math.sin(math.pi * step / 3)) for step in range(6)],
    "triangle": [(0, -1), (0.87, 0.5), (-0.87, 0.5)],
    "inverted_triangle": [(0, 1), (0.87, -0.5), (-0.87, -0.5)],
    "diamond": [(0, -1), (0.7, 0), (0, 1), (-0.7, 0)],
    "square": [(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)],
}


def _scatter(glyph: Scatter, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    names = ("x", "y", "size", "angle", "marker")
    for row, (x, y, size, angle, marker) in enumerate(
        zip(*(read(glyph, name, columns, count) for name in names), strict=True)
    ):
        if not _finite(x, y, size):
            continue
        cx, cy, radius = frame.x(x), frame.y(y), size / 2
        if marker in ("circle", None):
            yield Mark(row, "circle", {"cx": number(cx), "cy": number(cy), "r": number(radius)})
            continue
        if marker not in _MARKERS:
            raise UnknownLook(f"a marker {marker!r}")
        # Bokeh turns counterclockwise; y points down on screen.
        turn = -float(angle or 0.0)
        points = [
            (
                cx + radius * (px * math.cos(turn) - py * math.sin(turn)),
                cy + radius * (px * math.sin(turn) + py * math.cos(turn)),
            )
            for px, py in _MARKERS[str(marker)]
        ]
        yield Mark(row, "path", {"d": f"M{'L'.join(f'{number(px)} {number(py)}' for px, py in points)}Z"})


_BASELINES = {"middle": "central", "top": "hanging", "hanging": "hanging"}
_ANCHORS = {"center": "middle", "right": "end", "end": "end"}


def _text(glyph: Text, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    names = ("x", "y", "text", "x_offset", "y_offset", "angle", "text_align", "text_baseline")
    for row, (x, y, text, dx, dy, angle, align, baseline) in enumerate(
        zip(*(read(glyph, name, columns, count) for name in names), strict=True)
    ):
        if not text or not _finite(x, y):
            continue
        px, py = frame.x(x) + (dx or 0), frame.y(y) + (dy or 0)
        made = {"x": number(px), "y": number(py)}
        if (anchor := _ANCHORS.get(str(align))) is not None:
            made["text-anchor"] = anchor
        if (base := _BASELINES.get(str(baseline))) is not None:
            made["dominant-baseline"] = base
        if angle:
            made["transform"] = f"rotate({number(-math.degrees(angle))} {number(px)} {number(py)})"
        yield Mark(row, "text", made, str(text))


GLYPHS: dict[type[Glyph], Draw] = {
    Patches: _patches,
    MultiLine: _multi_line,
    Line: _line,
    Patch: _line,
    Bezier: _bezier,
    Segment: _segment,
    Rect: _rect,
    Quad: _quad,
    HBar: _hbar,
    VBar: _vbar,
    Scatter: _scatter,
    Text: _text,
}


def marks(glyph: Glyph, columns: Columns, count: int, frame: Frame) -> Iterator[Mark]:
    """What a glyph draws, row by row.

    Raises:
        UnknownLook: a kind of glyph that has no form here.
    """
    draw = GLYPHS.get(type(glyph))
    if draw is None:
        raise UnknownLook(f"a glyph {type(glyph).__name__}")
    return draw(glyph, columns, count, frame)
