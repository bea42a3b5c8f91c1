"""Views that are made of elements, as pictures: their words set as text. And the caption that every picture has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dtir_app.drawing.svg import escaped
from dtir_app.exporting.marks import marks_svg
from dtir_app.exporting.stage import Stage
from dtir_app.rows import labels_of_views
from dtir_app.text import shorten
from dtir_app.theme import FONT, MONO, Tokens, tokens

WIDTH_PX = 960.0
_LINE_PX = 20.0


def caption_of(stage: Stage, view: str) -> str:
    """Program, view and selection in one line."""
    selection = stage.state.selection
    store = stage.store
    name = ""
    if selection.task >= 0:
        name = store.tasks.name[selection.index]
    elif selection.value >= 0:
        name = store.values.name[selection.index]
    parts = (store.name, store.mesh_text, labels_of_views()[view], name)
    return " · ".join(shorten(part, 80) for part in parts if part)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text.

    Args:
        left: how far it is set in.
        text: what it says.
        size: of the letters in pixels.
        look: ``strong``, ``muted``, ``mono`` or empty.
    """

    left: float
    text: str
    size: float = 13.0
    look: str = ""


def words_svg(stage: Stage, view: str, *, dark: bool, size_px: tuple[int, int] | None, title: str) -> str:
    """The SVG of a view without a figure."""
    theme = tokens(dark)
    body, height = "", 44.0
    picture = _picture(stage, view)
    for line in _lines(stage, view):
        body += _text(line, height, theme)
        height += _LINE_PX * max(1.0, line.size / 13)
    width = WIDTH_PX
    if picture is not None:
        drawn, wide, tall = marks_svg(picture, dark=dark)
        body += f'<g transform="translate(22 {height:.0f})">{drawn}</g>'
        width, height = max(width, wide + 44), height + tall + 16
    shown = size_px or (round(width), round(height + 16))
    head = _text(Line(20, title, 13, "strong"), 26, theme)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{shown[0]}" height="{shown[1]}" '
        f'viewBox="0 0 {width:.0f} {height + 16:.0f}" role="img">\n<title>{escaped(title)}</title>\n'
        f'<rect width="100%" height="100%" fill="{theme.paper}"/>\n{head}{body}\n</svg>\n'
    )


def _text(line: Line, y: float, theme: Tokens) -> str:
    fill = theme.muted if line.look == "muted" else theme.text
    weight = ' font-weight="650"' if line.look == "strong" else ""
    font = MONO if line.look == "mono" else FONT
    return (
        f'<text x="{line.left:.0f}" y="{y:.0f}" font-size="{line.size:.0f}" font-family="{escaped(font)}" fill="{fill}"{weight}>'
        f"{escaped(line.text)}</text>"
    )


def _picture(stage: Stage, view: str) -> dict[str, object] | None:
    """The picture that an element of the view draws by itself, if it does."""
    for name in stage.elements_of(view):
        picture = stage.payload(name).get("picture")
        if isinstance(picture, dict) and picture.get("marks"):
            return picture
    return None


def _lines(stage: Stage, view: str) -> Iterator[Line]:
    """The words of a view, top to bottom."""
    if view == "overview":
        yield from _overview(stage.payload("overview"))
        return
    for name in stage.elements_of(view):
        content = stage.payload(name)
        head, picture = content.get("head"), content.get("picture")
        if isinstance(head, dict):
            yield Line(
                20, f"{head.get('severity') or '✓'} {head.get('code', '')} {head.get('name', '')}".strip(), 14, "strong"
            )
            yield from _wrapped(str(head.get("message", "")))
        if isinstance(picture, dict):
            yield from _wrapped(str(picture.get("says", "")), look="muted")
            yield from _wrapped(f"Fix: {picture['fix']}" if picture.get("fix") else "")
        if isinstance(content.get("message"), str):
            yield from _wrapped(str(content["message"]))


def _overview(content: dict[str, object]) -> Iterator[Line]:
    """Facts, the worst finding, what communicates most and by which kind."""
    for fact in _dicts(content.get("facts")):
        yield Line(
            20,
            f"{fact['label']}: {fact['value']} ({fact['note']})"
            if fact.get("note")
            else f"{fact['label']}: {fact['value']}",
        )
    worst = content.get("worst")
    if isinstance(worst, dict):
        yield Line(20, "Findings", 13, "strong")
        if worst.get("code"):
            yield Line(36, f"{worst.get('severity', '')} {worst['code']} {worst.get('place', '')}", 13, "mono")
            yield from _wrapped(str(worst.get("message", "")), left=36)
        yield Line(36, str(worst.get("summary", "")), 13, "muted")
    for title, name in (
        ("Heaviest communication", "heaviest"),
        ("Communication by kind", "communication"),
        ("Bytes by mesh axis", "axes"),
        ("Tasks by kind", "kinds"),
    ):
        entries = _dicts(content.get(name))
        if entries:
            yield Line(20, title, 13, "strong")
        for entry in entries:
            yield Line(
                36,
                "  ".join(
                    str(item)
                    for item in entry.values()
                    if isinstance(item, str) and item and not item.startswith(("node:", "value:"))
                ),
                12,
                "mono",
            )


def _dicts(items: object) -> list[dict[str, object]]:
    found = items.get("rows", items.get("items", [])) if isinstance(items, dict) else items
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _wrapped(text: str, *, left: float = 20, look: str = "", chars: int = 128) -> Iterator[Line]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > chars:
            yield Line(left, line, 13, look)
            line = ""
        line = f"{line} {word}".strip()
    if line:
        yield Line(left, line, 13, look)
