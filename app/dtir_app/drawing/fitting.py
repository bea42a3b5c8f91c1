"""Texts that fit their place: what the graph's and the shard map's own scripts do in the browser, done here for one scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bokeh.models import Plot

from dtir_app.drawing.framing import Frame, columns_of
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH

Columns = dict[str, Any]


def cut(text: str, chars: int) -> str:
    """A text cut to a number of letters; nothing where so few say nothing."""
    if len(text) <= chars:
        return text
    return "" if chars < 5 else f"{text[: chars - 1]}…"


def fit_texts(plot: Plot, source: str, columns: Columns, frame: Frame) -> Columns:
    """The columns of a source with its texts as they are shown; unchanged where no text is made to fit."""
    if source == "graph-texts":
        return _graph(columns_of(plot, "graph-nodes"), frame)
    if str(plot.name).startswith("tensor") and source.endswith("-tiles"):
        return _tiles(columns, frame)
    return columns


def _graph(columns: Columns, frame: Frame) -> Columns:
    count = len(columns.get("x", ()))
    if not count or "detail_text" not in columns:
        return {}
    width, height = (
        2 * HALF_WIDTH * frame.width / (frame.x1 - frame.x0),
        2 * HALF_HEIGHT * frame.height / (frame.y1 - frame.y0),
    )
    show, two, full = width > 24 and height > 10, height > 26, width > 46
    made: dict[str, list[object]] = {name: [] for name in ("code", "label", "offset", "detail", "lift", "pad")}
    for family, code, name, detail in zip(
        columns["family"], columns["code"], columns["name"], columns["detail_text"], strict=True
    ):
        pad = 5.0 if family == "0" else width * 0.22 if family == "3" else min(12.0, width * 0.11)
        room, code_px = width - 2 * pad, len(code) * 7.2 + 5 if code else 0.0
        short = code.split(" ")[0][: max(1, int(room / 7.2))] if code_px - 4 > room else code
        made["pad"].append(pad)
        made["code"].append(short if show else "")
        made["offset"].append(pad + code_px)
        made["label"].append(cut(name, int((room - code_px) / 5.7)) if show and full else "")
        made["detail"].append(cut(detail, int(room / 5.4)) if show and full and two else "")
        made["lift"].append(-7 if two and full else 0)
    shared = {name: columns[name] for name in ("y", "family", "alpha")}
    return {**made, **shared, "left": [x - HALF_WIDTH for x in columns["x"]]}


def _tiles(columns: Columns, frame: Frame) -> Columns:
    shown: list[str] = []
    badges: list[str] = []
    fits: Callable[[str, float, float], str] = lambda text, px, letter: cut(text, int((px - 8) / letter))  # noqa: E731
    for left, right, top, bottom, label, badge in zip(
        *(columns[name] for name in ("left", "right", "top", "bottom", "label", "badge")), strict=True
    ):
        width, height = abs(frame.x(right) - frame.x(left)), abs(frame.y(bottom) - frame.y(top))
        shown.append(fits(label, width, 6.6) if height > 15 else "")
        badges.append(fits(badge, width, 6.2) if height > 32 else "")
    return {**columns, "shown": shown, "badges": badges}
