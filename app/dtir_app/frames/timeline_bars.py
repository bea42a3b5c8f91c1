"""Lanes of the timeline as columns in the making: where they lie, bars, waits, labels, columns of short ones, rows of the table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dtir_app.frames.clock import seconds_text
from dtir_app.frames.lanes import Floats, Ints, Lane, Shown, shown, window
from dtir_app.frames.timeline_rows import COMMUNICATION, COMPUTE, STREAMS, Row
from dtir_app.store import Store
from dtir_app.text import count_text, plural, shorten

Columns = dict[str, list[object] | np.ndarray]

LANES = ((0.07, 0.47), (0.53, 0.93))
"""Top and bottom of compute and communication within a row."""

GAP = 0.02
LABEL_PX = 44
LABEL_HEIGHT_PX = 10
ROW_PX = 116
"""A row is no taller than this."""
BAND_PX, LINE_PX = 24, 16
"""The band of the time axis, and what a second axis adds."""

CHARACTER_PX = 6.2


@dataclass(slots=True)
class Maker:
    """Columns in the making."""

    store: Store
    family: Ints
    first_s: float
    last_s: float
    px_s: float
    row_px: float
    twin: bool
    bars: dict[str, list[np.ndarray]] = field(default_factory=dict[str, list[np.ndarray]])
    texts: dict[str, list[str]] = field(default_factory=lambda: {"title": [], "detail": [], "look": []})
    waits: list[tuple[float, float, float, float]] = field(default_factory=list[tuple[float, float, float, float]])
    labels: list[tuple[float, float, str, str]] = field(default_factory=list[tuple[float, float, str, str]])
    rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    hidden: int = 0
    drawn: int = 0


def lane_place(number: int, stream: int, side: str, paired: bool) -> tuple[float, float]:
    """Top and bottom of a lane."""
    top, bottom = (number + edge for edge in LANES[stream])
    if not paired:
        return top, bottom
    middle = (top + bottom) / 2
    return (top, middle - GAP / 2) if side == "planned" else (middle + GAP / 2, bottom)


def place_of(y: float, paired: bool) -> tuple[int, int, str]:
    """Row, stream and side at a height; the row is -1 above the rows."""
    number = int(np.floor(y))
    stream = COMPUTE if y - number < 0.5 else COMMUNICATION
    top, bottom = LANES[stream]
    side = "measured" if paired and y - number > (top + bottom) / 2 else "planned"
    return number, stream, side


def draw_lane(
    make: Maker, row: Row, stream: int, side: str, lane: Lane, scale: float, top: float, bottom: float, budget: int
) -> None:
    """Add what of a lane is in the window, `budget` bars and columns at most."""
    store = make.store
    first, last = make.first_s / scale, make.last_s / scale
    width_px = (last - first) * scale / make.px_s
    found = shown(lane, first, last, width_px, budget, make.family)
    make.hidden += found.hidden
    make.drawn += len(found.bars)
    bars = found.bars
    start, end, tasks = lane.start_s[bars] * scale, lane.end_s[bars] * scale, lane.task[bars]
    families = np.where(tasks >= 0, make.family[tasks], 0)
    _add(make, start, end, np.full(len(bars), top), np.full(len(bars), bottom), families, tasks)
    said = f"{side}, {row.label}"
    rounds, times = lane.rounds[bars].tolist(), lane.times[bars].tolist()
    own = ((end - start) / scale).tolist()
    waits = (lane.start_s[bars] - lane.arrived_s[bars]).tolist()
    for place, (task, seconds, wait, again, many) in enumerate(
        zip(tasks.tolist(), own, waits, rounds, times, strict=True)
    ):
        name = store.tasks.name[task] if task >= 0 else ""
        make.texts["look"].append("rounds" if again else "bar")
        make.texts["title"].append(f"further rounds of {name}" if again else name)
        detail = f"{seconds_text(seconds)} {said}"
        if many > 1:
            detail += f", stands for {count_text(many)} executions"
        if wait > 0:
            detail += f", waited {seconds_text(wait)}"
            left = float(lane.arrived_s[bars[place]]) * scale
            if float(start[place]) - left > make.px_s:
                make.waits.append((left, float(start[place]), top, bottom))
        make.texts["detail"].append(detail)
        begin, finish = max(float(start[place]), make.first_s), min(float(end[place]), make.last_s)
        room = (finish - begin) / make.px_s
        if room > LABEL_PX and (bottom - top) * make.row_px >= LABEL_HEIGHT_PX:
            text = f"{name} …" if again else name
            chars = int((room - 8) / CHARACTER_PX)
            make.labels.append(
                (
                    begin + 4 * make.px_s,
                    (top + bottom) / 2,
                    shorten(text, chars),
                    "5" if again else str(int(families[place])),
                )
            )
        if make.twin:
            make.rows.append(
                _twin_row(store, row, stream, side, task, float(start[place]) / scale, seconds, wait, again)
            )
    _add_columns(make, found, row, side, stream, scale, top, bottom)


def _add(make: Maker, left: Floats, right: Floats, top: Floats, bottom: Floats, family: Ints, task: Ints) -> None:
    for name, column in (
        ("left", left),
        ("right", right),
        ("top", top),
        ("bottom", bottom),
        ("family", family),
        ("task", task),
    ):
        make.bars.setdefault(name, []).append(np.asarray(column))


def _add_columns(
    make: Maker, found: Shown, row: Row, side: str, stream: int, scale: float, top: float, bottom: float
) -> None:
    count = len(found.fill)
    if not count:
        return
    tops = bottom - found.fill * (bottom - top)
    _add(
        make,
        found.left_s * scale,
        found.right_s * scale,
        tops,
        np.full(count, bottom),
        found.family,
        np.full(count, -1),
    )
    for number, fill, left, right in zip(
        found.count.tolist(), found.fill.tolist(), found.left_s.tolist(), found.right_s.tolist(), strict=True
    ):
        make.texts["look"].append("column")
        make.texts["title"].append(f"{plural(number, 'task')}, too short to tell apart here")
        make.texts["detail"].append(
            f"up to {fill:.0%} of {seconds_text(right - left)} {STREAMS[stream]} {side}, {row.label}"
        )


def _twin_row(
    store: Store, row: Row, stream: int, side: str, task: int, start: float, seconds: float, wait: float, again: bool
) -> dict[str, object]:
    return {
        "order": (start, row.rank, side),
        "rank": row.label if row.size == 1 else f"{row.label} (rank {row.rank})",
        "side": side,
        "stream": STREAMS[stream],
        "name": f"further rounds of {store.tasks.name[task]}" if again else store.tasks.name[task],
        "key": f"node:{store.tasks.id[task]}",
        "task": task,
        "start": seconds_text(start),
        "seconds": seconds_text(seconds),
        "wait": seconds_text(wait) if wait > 0 else "",
    }


def bar_columns(make: Maker) -> Columns:
    """The bars and columns as the figure has them."""
    names = ("left", "right", "top", "bottom", "family", "task")
    made: Columns = {name: np.concatenate(make.bars[name]) if name in make.bars else np.zeros(0) for name in names}
    made["family"] = [str(int(item)) for item in np.asarray(made["family"]).tolist()]
    look = make.texts["look"]
    made["alpha"] = [0.45 if item == "rounds" else 0.8 if item == "column" else 1.0 for item in look]
    made["edge"] = [0.0 if item == "column" else 0.7 for item in look]
    made["title"], made["detail"] = [*make.texts["title"]], [*make.texts["detail"]]
    return made


def rounds_of(make: Maker) -> Columns:
    """The bars that stand for further rounds: hatched, by a glyph of their own, since a hatch of every bar is slow to draw."""
    places = [place for place, look in enumerate(make.texts["look"]) if look == "rounds"]
    return {
        name: np.concatenate(make.bars[name])[places] if places else [] for name in ("left", "right", "top", "bottom")
    }


def quads(items: list[tuple[float, float, float, float]]) -> Columns:
    """Boxes (left, right, top, bottom) as columns."""
    return {name: [item[at] for item in items] for at, name in enumerate(("left", "right", "top", "bottom"))}


def joined_in(start: Floats, end: Floats, make: Maker, room: int) -> list[tuple[float, float]]:
    """Stretches in the window, near ones joined until there are `room` at most."""
    gap = make.px_s
    while True:
        first, last = window(start, end, make.first_s, make.last_s, gap)
        if len(first) <= room:
            return list(zip(first.tolist(), last.tolist(), strict=True))
        gap *= 2


def segments(items: list[tuple[float, float, float, float]]) -> Columns:
    """Lines (x0, x1, y0, y1) as columns."""
    return {name: [item[at] for item in items] for at, name in enumerate(("x0", "x1", "y0", "y1"))}
