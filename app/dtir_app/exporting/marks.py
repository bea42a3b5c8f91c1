"""Pictures of findings as SVG on the server: the marks of `dtir_app.cues.marks` as ``js/picture.js`` draws them in a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dtir_app.drawing.glyphs import number
from dtir_app.drawing.hatches import hatch_markup
from dtir_app.drawing.svg import escaped
from dtir_app.kinds import Family
from dtir_app.theme import (
    AXIS_FILLS,
    AXIS_TEXTS,
    FONT,
    MONO,
    SEVERITY_FILLS,
    Tokens,
    family_fills,
    family_texts,
    tokens,
)

_HATCH_SIGNS = ("/", "\\", "-", "|")


class _Palette:
    """Tones as colours of a theme."""

    def __init__(self, dark: bool) -> None:
        self.theme: Tokens = tokens(dark)
        theme = self.theme
        self._fills = {
            "plain": theme.paper,
            "raised": theme.raised,
            "good": theme.ok,
            "bad": SEVERITY_FILLS["error"],
            "warn": SEVERITY_FILLS["warning"],
            "muted": theme.edge,
            "accent": theme.accent,
            "text": theme.text,
        }
        self._fills |= {f"axis-{at}": fill for at, fill in enumerate(AXIS_FILLS)}
        self._fills |= {f"on-axis-{at}": fill for at, fill in enumerate(AXIS_TEXTS)}
        self._fills |= {f"family-{int(family)}": family_fills(dark)[int(family)] for family in Family}
        self._family_texts = family_texts(dark)
        self._inks = {
            "good": theme.ok,
            "bad": theme.error,
            "warn": theme.warning,
            "muted": theme.muted,
            "accent": theme.accent,
        }

    def fill(self, tone: object, fallback: str = "none") -> str:
        return self._fills.get(str(tone), fallback)

    def ink(self, tone: object) -> str:
        known = self._inks.get(str(tone))
        return known or (self._fills[str(tone)] if str(tone).startswith("on-axis") else self.theme.text)

    def on_family(self, family: object) -> str:
        return self._family_texts[int(str(family))]


def marks_svg(picture: Mapping[str, Any], *, dark: bool) -> tuple[str, float, float]:
    """The SVG elements of a picture's marks, with its width and height in pixels.

    Args:
        picture: what `dtir_app.cues.marks.Picture.payload` gives.
        dark: the theme.
    """
    palette = _Palette(dark)
    parts: list[str] = []
    for mark in picture["marks"]:
        draw = _MARKS.get(str(mark["t"]))
        if draw is None:
            raise TypeError(f"a mark {mark['t']!r} has no SVG form")
        said = mark.get("says") or mark.get("note") or ""
        title = f"<title>{escaped(str(said))}</title>" if said else ""
        faded = ' opacity="0.45"' if mark.get("faded") and mark["t"] != "node" else ""
        parts.append(f"<g{faded}>{title}{draw(mark, palette)}</g>")
    return "".join(parts), float(picture["width"]), float(picture["height"])


Mark = Mapping[str, Any]


def _words(
    x: float,
    y: float,
    text: str,
    fill: str,
    *,
    size: float = 12,
    anchor: str = "start",
    bold: bool = False,
    mono: bool = False,
    most: float = 0,
) -> str:
    room = int(most / ((7.25 if mono else 6.7) * size / 12)) if most else 0
    shown = text if not room or len(text) <= room else f"{text[: max(1, room - 1)]}…"
    if not shown:
        return ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    weight = ' font-weight="650"' if bold else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" dominant-baseline="central" font-size="{number(size)}"{place}{weight} '
        f'font-family="{escaped(MONO if mono else FONT)}" fill="{fill}">{escaped(shown)}</text>'
    )


def _rect(mark: Mark, palette: _Palette) -> str:
    box = {"x": number(mark["x"]), "y": number(mark["y"]), "width": number(mark["w"]), "height": number(mark["h"])}
    attributes = "".join(f' {name}="{value}"' for name, value in box.items())
    dash = ' stroke-dasharray="5 4"' if mark.get("dashed") else ""
    stroke = palette.fill(mark.get("stroke"), palette.theme.line)
    made = (
        f'<rect{attributes} rx="{number(mark.get("round", 0))}" fill="{palette.fill(mark.get("fill"))}" stroke="{stroke}" '
        f'stroke-width="{number(mark.get("thick", 1))}"{dash}/>'
    )
    if mark.get("hatch"):
        path = hatch_markup(box, _HATCH_SIGNS[int(mark.get("turn", 0)) % 4], 7.0)
        made += f'<path d="{path}" fill="none" stroke="{palette.fill(mark["hatch"])}" stroke-width="1.6"/>'
    return made


def _text(mark: Mark, palette: _Palette) -> str:
    return _words(
        mark["x"],
        mark["y"],
        str(mark["text"]),
        palette.ink(mark.get("tone", "text")),
        size=mark.get("size", 12),
        anchor=str(mark.get("anchor", "start")),
        bold=bool(mark.get("bold")),
        mono=bool(mark.get("mono")),
        most=mark.get("most", 0),
    )


def _line(mark: Mark, palette: _Palette) -> str:
    points = [(float(x), float(y)) for x, y in mark["points"]]
    ends = [f"{number(x)} {number(y)}" for x, y in points]
    curved = mark.get("curve") and len(points) == 4
    path = f"M{ends[0]}C{' '.join(ends[1:])}" if curved else f"M{'L'.join(ends)}"
    stroke = palette.fill(mark.get("tone"), palette.theme.edge)
    thick = float(mark.get("thick", 1.4))
    dash = ' stroke-dasharray="5 4"' if mark.get("dashed") else ""
    made = (
        f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{number(thick)}" stroke-linejoin="round"{dash}/>'
    )
    if mark.get("arrow") and len(points) > 1:
        (x0, y0), (x1, y1) = points[-2:]
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        ux, uy, size = (x1 - x0) / length, (y1 - y0) / length, 5 + thick
        wings = [
            (x1 - ux * size + side * uy * size * 0.55, y1 - uy * size - side * ux * size * 0.55) for side in (-1, 1)
        ]
        corners = "L".join(f"{number(x)} {number(y)}" for x, y in [(x1, y1), *wings])
        made += f'<path d="M{corners}Z" fill="{stroke}"/>'
    return made


def _badge(mark: Mark, palette: _Palette) -> str:
    tone, wide = str(mark.get("tone", "raised")), float(mark["w"])
    axis = tone.startswith(("axis-", "family-"))
    fill = palette.fill(tone) if mark.get("strong") or axis else palette.theme.paper
    stroke = palette.fill("muted" if tone == "raised" else tone)
    if tone.startswith("axis-"):
        ink = AXIS_TEXTS[int(tone[-1])]
    elif axis:
        ink = palette.on_family(tone[-1])
    else:
        ink = "#000000" if mark.get("strong") else palette.ink(tone)
    x, y = float(mark["x"]), float(mark["y"])
    place = f'x="{number(x - wide / 2)}" y="{number(y - 8.5)}" width="{number(wide)}" height="17"'
    return f'<rect {place} rx="4" fill="{fill}" stroke="{stroke}"/>' + _words(
        x, y, str(mark["text"]), ink, size=11, anchor="middle", bold=True
    )


def _shape(family: int, x: float, y: float, w: float, h: float) -> str:
    """The outline of a family in a box."""
    tip = 9.0
    corners: dict[int, list[tuple[float, float]]] = {
        1: [(0, h / 2), (tip, 0), (w - tip, 0), (w, h / 2), (w - tip, h), (tip, h)],
        2: [(0, 0), (w - tip, 0), (w, h / 2), (w - tip, h), (0, h), (tip, h / 2)],
        3: [(0, h / 2), (14, 0), (w - 14, 0), (w, h / 2), (w - 14, h), (14, h)],
        5: [(5, 0), (w - 5, 0), (w, 5), (w, h - 5), (w - 5, h), (5, h), (0, h - 5), (0, 5)],
    }
    if family == 4:
        half = number(h / 2)
        return (
            f"M{number(x + h / 2)} {number(y)}H{number(x + w - h / 2)}A{half} {half} 0 0 1 {number(x + w - h / 2)} {number(y + h)}"
            f"H{number(x + h / 2)}A{half} {half} 0 0 1 {number(x + h / 2)} {number(y)}Z"
        )
    points = corners.get(family, [(0, 0), (w, 0), (w, h), (0, h)])
    return f"M{'L'.join(f'{number(x + dx)} {number(y + dy)}' for dx, dy in points)}Z"


def _node(mark: Mark, palette: _Palette) -> str:
    x, y, w, h, family = (float(mark["x"]), float(mark["y"]), float(mark["w"]), float(mark["h"]), int(mark["family"]))
    theme, path = palette.theme, _shape(family, x, y, w, h)
    ghost, faded, tone = bool(mark.get("ghost")), bool(mark.get("faded")), str(mark.get("tone") or "")
    fill = theme.paper if ghost else palette.fill(f"family-{family}")
    stroke = palette.fill(tone) if tone else theme.accent if ghost else theme.strong_line
    ink = theme.text if ghost else theme.muted if faded else palette.on_family(family)
    width = 3 if tone else 2 if ghost else 1.2
    under = f'<path d="{path}" fill="{theme.paper}"/>' if faded else ""
    look = (' fill-opacity="0.22"' if faded else "") + (' stroke-dasharray="5 4"' if ghost else "")
    middle, text = x + w / 2, str(mark.get("text") or "")
    return (
        f'{under}<path d="{path}" fill="{fill}" stroke="{stroke}" stroke-width="{width}"{look}/>'
        + _words(
            middle,
            y + h / 2 - (7 if text else 0),
            str(mark.get("code") or ""),
            ink,
            anchor="middle",
            bold=True,
            most=w - 16,
        )
        + (_words(middle, y + h / 2 + 8, text, ink, size=11, anchor="middle", mono=True, most=w - 16) if text else "")
    )


def _dot(mark: Mark, palette: _Palette) -> str:
    return (
        f'<circle cx="{number(mark["x"])}" cy="{number(mark["y"])}" r="{number(mark["r"])}" fill="{palette.fill(mark.get("fill"))}" '
        f'stroke="{palette.fill(mark.get("stroke"))}"/>'
    )


def _crown(mark: Mark, palette: _Palette) -> str:
    x, y = float(mark["x"]), float(mark["y"])
    corners = [(-7, 5), (-8, -5), (-3, 0), (0, -7), (3, 0), (8, -5), (7, 5)]
    path = "L".join(f"{number(x + dx)} {number(y + dy)}" for dx, dy in corners)
    return f'<path d="M{path}Z" fill="{palette.fill(mark.get("tone"))}" stroke="{palette.theme.strong_line}"/>'


_MARKS: dict[str, Callable[[Mark, _Palette], str]] = {
    "rect": _rect,
    "text": _text,
    "line": _line,
    "badge": _badge,
    "node": _node,
    "dot": _dot,
    "crown": _crown,
}
