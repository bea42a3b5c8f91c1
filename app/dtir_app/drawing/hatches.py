"""Hatches as lines over a box. Lines and not patterns: a pattern needs an id, and ids of several drawings in one page clash."""

from __future__ import annotations

from collections.abc import Mapping

from dtir_app.drawing.glyphs import number

_NAMES = {
    "right_diagonal_line": "/",
    "left_diagonal_line": "\\",
    "diagonal_cross": "x",
    "horizontal_line": "-",
    "vertical_line": "|",
    "cross": "+",
    "dot": ".",
}
MOST_LINES = 400


def hatch_markup(box: Mapping[str, str], pattern: str, scale_px: float) -> str:
    """The path of a hatch; empty where the box is too small for one.

    Args:
        box: attributes of the box's element.
        pattern: Bokeh's sign or name of a pattern; one that is not known is drawn as rising lines, never left out.
        scale_px: distance between lines.
    """
    x, y, width, height = (float(box[name]) for name in ("x", "y", "width", "height"))
    if width < 3 or height < 3:
        return ""
    step = max(scale_px, (width + height) / MOST_LINES)
    sign = _NAMES.get(pattern, pattern)
    match sign:
        case "." | "o":
            return _dots(x, y, width, height, max(step, (width * height / MOST_LINES) ** 0.5))
        case "-":
            return "".join(
                f"M{number(x)} {number(y + at)}h{number(width)}" for at in _steps(min(step, height) / 2, height, step)
            )
        case "|":
            return "".join(
                f"M{number(x + at)} {number(y)}v{number(height)}" for at in _steps(min(step, width) / 2, width, step)
            )
        case "+":
            return hatch_markup(box, "-", scale_px) + hatch_markup(box, "|", scale_px)
        case "x":
            return hatch_markup(box, "/", scale_px) + hatch_markup(box, "\\", scale_px)
        case "\\":
            return _slanted(x, y, width, height, step, falling=True)
        case _:
            return _slanted(x, y, width, height, step, falling=False)


def _steps(start: float, stop: float, step: float) -> list[float]:
    return [start + step * at for at in range(max(0, int((stop - start) / step) + 1)) if start + step * at < stop]


def _slanted(x: float, y: float, width: float, height: float, step: float, *, falling: bool) -> str:
    parts: list[str] = []
    for at in _steps(step / 2, width + height, step):
        x0, x1 = max(0.0, at - height), min(width, at)
        y0, y1 = at - x0, at - x1
        if falling:
            x0, x1 = width - x0, width - x1
        parts.append(f"M{number(x + x0)} {number(y + y0)}L{number(x + x1)} {number(y + y1)}")
    return "".join(parts)


def _dots(x: float, y: float, width: float, height: float, step: float) -> str:
    return "".join(
        f"M{number(x + across)} {number(y + down)}h0"
        for down in _steps(min(step, height) / 2, height, step)
        for across in _steps(min(step, width) / 2, width, step)
    )
