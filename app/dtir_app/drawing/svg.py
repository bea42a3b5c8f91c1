"""A figure as SVG text: its glyphs in drawing order, with classes for looks, titles for what hovering says, and ids of tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bokeh.models import GlyphRenderer, HoverTool, Plot, Text

from dtir_app.drawing.fitting import fit_texts
from dtir_app.drawing.framing import Frame, frame_figure
from dtir_app.drawing.glyphs import Mark, marks, number
from dtir_app.drawing.hatches import hatch_markup
from dtir_app.drawing.reading import has, read, rows_of
from dtir_app.drawing.styles import Look, Styles, look_of
from dtir_app.panels.base import Figure
from dtir_app.theme import FONT, tokens

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_COLUMN = re.compile(r"@(?:\{([^}]*)\}|(\w+))(?:\{[^}]*\})?")


def escaped(text: str) -> str:
    """A text as XML content or attribute: nothing in it is markup; characters that XML does not have are replaced."""
    clean = _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
    return "".join(_ESCAPES.get(letter, letter) for letter in clean)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn figure.

    Args:
        name: of the figure.
        body: SVG elements.
        width, height: natural size in pixels.
        paper: colour of the ground in the drawn theme.
    """

    name: str
    body: str = field(repr=False)
    width: float
    height: float
    paper: str = "#FFFFFF"


def draw_figure(
    view: Figure, styles: Styles, *, dark: bool | None = None, size_px: tuple[float, float] | None = None
) -> Drawing:
    """Draw a view's figure.

    Args:
        view: the view; its theme is left as it is found last.
        styles: where looks get their classes.
        dark: one theme, or None for both at once.
        size_px: for figures without a natural size.

    Raises:
        UnknownLook: it has a kind of glyph that has no SVG form.
    """
    plot = view.figure
    frame = frame_figure(plot, size_px)
    themes = (False, True) if dark is None else (dark,)
    layers: list[list[Drawn]] = []
    for theme in themes:
        view.restyle(theme)
        layers.append(list(_drawn(plot, frame)))
    # Both themes have the same marks and differ in looks alone.
    lines = [_markup(light, night, styles) for light, night in zip(layers[0], layers[-1], strict=True)]
    return Drawing(str(plot.name), "".join(lines), frame.width, frame.height, tokens(themes[0]).paper)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mark with its look.

    Args:
        mark: where and what.
        look: of the mark.
        hatch: path and look of the hatch over it.
        tip: what hovering says.
        task: number of the task that it stands for.
    """

    mark: Mark
    look: Look
    hatch: tuple[str, Look] | None = None
    tip: str = ""
    task: int | None = None


def _markup(light: Drawn, night: Drawn, styles: Styles) -> str:
    mark = light.mark
    attributes = "".join(f' {key}="{value}"' for key, value in mark.geometry.items())
    if light.task is not None:
        attributes += f' data-task="{light.task}"'
    inner = escaped(mark.text) + (f"<title>{escaped(light.tip)}</title>" if light.tip else "")
    head = f'<{mark.tag} class="{styles.name(light.look, night.look)}"{attributes}'
    made = f"{head}>{inner}</{mark.tag}>" if inner else f"{head}/>"
    if light.hatch and night.hatch:
        name = styles.name(light.hatch[1], night.hatch[1])
        made += f'<path class="{name}" pointer-events="none" d="{light.hatch[0]}"/>'
    return made


def _drawn(plot: Plot, frame: Frame) -> Iterator[Drawn]:
    """All marks of a figure in drawing order."""
    tips = _tips(plot)
    for renderer in plot.renderers:
        if not isinstance(renderer, GlyphRenderer) or renderer.glyph is None:
            continue
        # Texts are hidden until the browser knows that they fit; whether they fit is settled here.
        if not renderer.visible and not isinstance(renderer.glyph, Text):
            continue
        columns = fit_texts(plot, str(renderer.data_source.name), dict(renderer.data_source.data), frame)
        count = rows_of(columns)
        if not count:
            continue
        looks = _looks(renderer.glyph, columns, count)
        tip = tips.get(renderer.id)
        task = None if isinstance(renderer.glyph, Text) else columns.get("task")
        for mark in marks(renderer.glyph, columns, count, frame):
            look, hatch = looks(mark.row)
            over: tuple[str, Look] | None = None
            if hatch and mark.tag == "rect" and (path := hatch_markup(mark.geometry, hatch[0], hatch[1])):
                over = (path, hatch[2])
            number_of = int(task[mark.row]) if task is not None and task[mark.row] is not None else None
            yield Drawn(mark, look, over, tip(columns, mark.row) if tip else "", number_of)


def _tips(plot: Plot) -> dict[str, Callable[[Mapping[str, Any], int], str]]:
    made: dict[str, Callable[[Mapping[str, Any], int], str]] = {}
    for tool in plot.toolbar.tools:
        if not isinstance(tool, HoverTool) or not isinstance(tool.tooltips, list):
            continue
        pairs = [(str(label), str(text)) for label, text in tool.tooltips]
        targets = tool.renderers if isinstance(tool.renderers, list) else []

        def tip(columns: Mapping[str, Any], row: int, pairs: list[tuple[str, str]] = pairs) -> str:
            lines: list[str] = []
            for label, text in pairs:
                filled = _COLUMN.sub(lambda found: str(columns.get(found[1] or found[2], [""] * (row + 1))[row]), text)
                if filled:
                    lines.append(f"{label}: {filled}" if label else filled)
            return "\n".join(lines)

        made |= {target.id: tip for target in targets}
    return made


def _looks(
    glyph: Any, columns: dict[str, Any], count: int
) -> Callable[[int], tuple[Look, tuple[str, float, Look] | None]]:
    """What a row looks like, and its hatch: pattern, distance in pixels, look."""
    names = [name for name in _PROPERTIES if has(glyph, name)]
    read_in = {name: read(glyph, name, columns, count) for name in names}
    text = isinstance(glyph, Text)
    line_only = not has(glyph, "fill_color")

    def of(row: int) -> tuple[Look, tuple[str, float, Look] | None]:
        given = {name: column[row] for name, column in read_in.items()}
        if text:
            return _text_look(given), None
        look: dict[str, str] = {"fill": "none"} if line_only else _paint("fill", given)
        look |= _paint("stroke", given)
        return look_of(look), _hatch(given)

    return of


_PROPERTIES = (
    "fill_color",
    "fill_alpha",
    "line_color",
    "line_alpha",
    "line_width",
    "line_dash",
    "hatch_pattern",
    "hatch_color",
    "hatch_alpha",
    "hatch_scale",
    "text_color",
    "text_alpha",
    "text_font",
    "text_font_size",
    "text_font_style",
    "background_fill_color",
)
_PLATE_PX = 5


def _paint(kind: str, given: Mapping[str, Any]) -> dict[str, str]:
    source = "fill" if kind == "fill" else "line"
    colour = given.get(f"{source}_color")
    alpha = given.get(f"{source}_alpha", 1.0)
    if colour is None or (isinstance(alpha, (int, float)) and alpha <= 0):
        return {kind: "none"}
    made = {kind: str(colour)}
    if isinstance(alpha, (int, float)) and alpha < 1:
        made[f"{kind}-opacity"] = f"{alpha:.3g}"
    if kind == "stroke":
        width = given.get("line_width", 1)
        if not width:
            return {kind: "none"}
        if width != 1:
            made["stroke-width"] = f"{number(float(width))}px"
        dash = given.get("line_dash")
        if isinstance(dash, (list, tuple)) and dash:
            made["stroke-dasharray"] = " ".join(str(part) for part in dash)
        elif dash == "dashed":
            made["stroke-dasharray"] = "6"
    return made


def _hatch(given: Mapping[str, Any]) -> tuple[str, float, Look] | None:
    pattern = str(given.get("hatch_pattern") or "").strip()
    if not pattern or pattern == "blank":
        return None
    look = {"fill": "none", "stroke": str(given.get("hatch_color") or "#000000"), "stroke-linecap": "round"}
    alpha = given.get("hatch_alpha", 1.0)
    if isinstance(alpha, (int, float)) and alpha < 1:
        look["stroke-opacity"] = f"{alpha:.3g}"
    look["stroke-width"] = "2.5px" if pattern in (".", "dot") else "1px"
    return pattern, float(given.get("hatch_scale") or 12.0), look_of(look)


def _text_look(given: Mapping[str, Any]) -> Look:
    style = str(given.get("text_font_style") or "normal")
    look = {
        "fill": str(given.get("text_color") or "#000000"),
        "font-family": str(given.get("text_font") or "sans-serif"),
        "font-size": str(given.get("text_font_size") or "12px"),
        "pointer-events": "none",
    }
    if "bold" in style:
        look["font-weight"] = "700"
    alpha = given.get("text_alpha", 1.0)
    if isinstance(alpha, (int, float)) and alpha < 1:
        look["fill-opacity"] = f"{alpha:.3g}"
    if plate := given.get("background_fill_color"):  # under the text, so that a hatch does not run through it
        look |= {
            "paint-order": "stroke",
            "stroke": str(plate),
            "stroke-width": f"{_PLATE_PX}px",
            "stroke-linejoin": "round",
        }
    return look_of(look)


def standalone(
    drawings: list[Drawing],
    styles: Styles,
    *,
    title: str,
    captions: Sequence[str] = (),
    dark: bool = False,
    size_px: tuple[float, float] | None = None,
) -> str:
    """One or several drawings side by side as an SVG file.

    Args:
        drawings: what is drawn, in a row.
        styles: their looks.
        title: above the picture, and for screen readers.
        captions: above each drawing.
        dark: the theme of title and captions.
        size_px: size at which it is shown; its natural size when None.
    """
    gap, band = 24.0, 34.0 + (22.0 if captions else 0.0)
    width = max(360.0, sum(one.width for one in drawings) + gap * (len(drawings) - 1))
    height = band + max(one.height for one in drawings)
    shown = size_px or (width, height)
    parts: list[str] = []
    left = 0.0
    theme = tokens(dark)
    words = f'font-family="{escaped(FONT)}" fill="{theme.text}"'
    parts.append(f'<text x="14" y="22" font-size="13" font-weight="650" {words}>{escaped(title)}</text>')
    for at, one in enumerate(drawings):
        if at < len(captions):
            caption = escaped(captions[at])
            parts.append(f'<text x="{number(left + 14)}" y="46" font-size="12" {words}>{caption}</text>')
        parts.append(f'<g transform="translate({number(left)} {number(band)})">{one.body}</g>')
        left += one.width + gap
    ground = f'<rect width="100%" height="100%" fill="{drawings[0].paper}"/>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(shown[0])}" height="{number(shown[1])}" '
        f'viewBox="0 0 {number(width)} {number(height)}" role="img">\n'
        f"<title>{escaped(title)}</title>\n<style>{styles.css()}</style>\n{ground}\n{''.join(parts)}\n</svg>\n"
    )
