"""The timeline of a window as columns: bars, waits, marks, ticks, and the same as rows of a table.

Row `r` of the picture lies between y = r and y = r + 1; above it stand compute and below it communication, each with the planned
bar in the upper and the measured one in the lower half where there is a run. Times of figures are seconds of the plan; where
both sides have an axis of their own, measured times are stretched to the plan's length.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dtir_app.frames.clock import ticks
from dtir_app.frames.lanes import Lane
from dtir_app.frames.meeting import tied_rows
from dtir_app.frames.timeline_bars import (
    BAND_PX,
    ROW_PX,
    Columns,
    Maker,
    bar_columns,
    draw_lane,
    joined_in,
    lane_place,
    place_of,
    quads,
    rounds_of,
    segments,
)
from dtir_app.frames.timeline_rows import COMMUNICATION, COMPUTE, Row, Rows, timeline_rows
from dtir_app.kinds import Family
from dtir_app.measuring import Measured
from dtir_app.planning import Planned
from dtir_app.store import Store

GLYPHS = 3000
"""Bars and columns of one picture, about."""

MARKS = 600
TWIN_ROWS = 200
TIES = 300
MARGIN = 0.25
"""A window is drawn with so much of its width on either side, so that moving it shows no gap at once."""

DIFFERENT = 2.0
"""Sides whose lengths differ by more than this factor get an axis each, unless a person asks for one."""


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at.

    Args:
        first_s, last_s: the window, in seconds of the figure; None: everything.
        width_px, height_px: of the figure.
        opened: keys of rows whose ranks are shown one by one.
        page: of the rows.
        one_clock: one axis for both sides; None: as their lengths suggest.
        task: the selected task, or -1.
        twin: whether the table is wanted.
    """

    first_s: float | None = None
    last_s: float | None = None
    width_px: float = 900.0
    height_px: float = 420.0
    opened: frozenset[str] = frozenset()
    page: int = 0
    one_clock: bool | None = None
    task: int = -1
    twin: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture.

    Args:
        rows: the rows.
        end_s: the last end, in seconds of the figure.
        stretch: seconds of the figure for one measured second.
        one_clock: whether both sides have one axis.
        window: the window.
        bars: what is drawn, see `dtir_app.views.timeline`.
        hidden: bars of the window that only columns stand for.
        drawn: bars that are drawn as themselves.
        twin: the bars as rows of a table, the first `TWIN_ROWS`.
        first_of: when the selected task begins for the first time; None where it is not on the picture.
    """

    rows: Rows
    end_s: float
    stretch: float
    one_clock: bool
    window: tuple[float, float]
    bars: Columns = field(repr=False)
    waits: Columns = field(repr=False)
    rounds: Columns = field(repr=False)
    strips: Columns = field(repr=False)
    blanks: Columns = field(repr=False)
    labels: Columns = field(repr=False)
    ticks: Columns = field(repr=False)
    ties: Columns = field(repr=False)
    rings: Columns = field(repr=False)
    hidden: int = 0
    drawn: int = 0
    twin: tuple[dict[str, object], ...] = field(default=(), repr=False)
    first_of: tuple[float, float] | None = None


def timeline_frame(store: Store, plan: Planned | None, run: Measured | None, view: View) -> Frame:
    """The picture of a window.

    Args:
        plan: the planned side; None where there is none.
        run: the measured side; None where there is none.
    """
    rows = timeline_rows(store.mesh, plan, view.opened, view.page)
    planned_s = plan.makespan_s if plan is not None else 0.0
    one_clock, stretch, end_s = _clock(planned_s, run, view.one_clock)
    first_s, last_s = _window(view, end_s)
    margin = (last_s - first_s) * MARGIN
    lanes = [
        (number, row, stream, side, row.lane(side, stream, run))
        for number, row in enumerate(rows.shown)
        for stream in (COMPUTE, COMMUNICATION)
        for side in ("planned", "measured")
        if side == "planned" or run is not None
    ]
    known = [lane for *_, lane in lanes if lane is not None and len(lane)]
    budget = GLYPHS // max(1, len(known))
    px_s = (last_s - first_s) / max(1.0, view.width_px)
    family = store.tasks.family.astype(np.int64)
    row_px = min((view.height_px - BAND_PX) / max(1, len(rows.shown)), ROW_PX)
    make = Maker(store, family, first_s - margin, last_s + margin, px_s, row_px, view.twin)
    blanks: list[tuple[float, float, float, float]] = []
    for number, row, stream, side, lane in lanes:
        top, bottom = lane_place(number, stream, side, run is not None)
        scale = stretch if side == "measured" else 1.0
        if lane is None:
            blanks.append((0.0, end_s, top, bottom))
        elif len(lane):
            draw_lane(make, row, stream, side, lane, scale, top, bottom, budget)
    strips = _strips(rows, make, run is not None)
    class_of = plan.ranks.of if plan is not None else lambda _: 0
    tied = tied_rows(store, view.task, rows.shown, class_of) if view.task >= 0 else []
    rings, ties, first_of = _selected(store, lanes, view.task, stretch, run is not None, make, tied)
    return Frame(
        rows=rows,
        end_s=end_s,
        stretch=stretch,
        one_clock=one_clock,
        window=(first_s, last_s),
        bars=bar_columns(make),
        waits=quads(make.waits),
        rounds=rounds_of(make),
        strips=strips,
        blanks=quads(blanks),
        labels={name: [item[at] for item in make.labels] for at, name in enumerate(("x", "y", "text", "family"))},
        ticks=_ticks(
            first_s, last_s, view.width_px, stretch if run is not None and not one_clock else None, len(rows.shown)
        ),
        ties=ties,
        rings=rings,
        hidden=make.hidden,
        drawn=make.drawn,
        twin=tuple(sorted(make.rows, key=lambda item: item["order"])[:TWIN_ROWS]),  # type: ignore[arg-type,return-value]
        first_of=first_of,
    )


def _clock(planned_s: float, run: Measured | None, wanted: bool | None) -> tuple[bool, float, float]:
    """Whether there is one axis, how measured seconds are stretched, and the last end."""
    if run is None or run.elapsed_s <= 0:
        return True, 1.0, planned_s or 1.0
    if planned_s <= 0:
        return True, 1.0, run.elapsed_s
    ratio = run.elapsed_s / planned_s
    one = wanted if wanted is not None else 1 / DIFFERENT <= ratio <= DIFFERENT
    return (True, 1.0, max(planned_s, run.elapsed_s)) if one else (False, 1 / ratio, planned_s)


def _window(view: View, end_s: float) -> tuple[float, float]:
    if view.first_s is None or view.last_s is None or not view.last_s > view.first_s:
        return 0.0, end_s
    return view.first_s, view.last_s


def _strips(rows: Rows, make: Maker, paired: bool) -> Columns:
    """The critical path on top of the bars, exposed communication below them."""
    found: list[tuple[float, float, float, float, str]] = []
    room = max(8, MARKS // max(1, len(rows.shown)))
    for number, row in enumerate(rows.shown):
        if row.planned is None:
            continue
        for stream, (start, end) in enumerate(row.planned.critical):
            top, _ = lane_place(number, stream, "planned", paired)
            found += [(a, b, top - 0.05, top - 0.01, "critical") for a, b in joined_in(start, end, make, room)]
        top, bottom = lane_place(number, COMMUNICATION, "planned", paired)
        depth = 0.05 if not paired else 0.035
        found += [
            (a, b, bottom + 0.005, bottom + depth, "exposed") for a, b in joined_in(*row.planned.exposed, make, room)
        ]
    names = ("left", "right", "top", "bottom", "which")
    return {name: [item[at] for item in found] for at, name in enumerate(names)}


def _ticks(first_s: float, last_s: float, width_px: float, stretch: float | None, rows: int) -> Columns:
    """Moments of the axes: one band for a clock of both, two where each side has its own."""
    made: list[tuple[float, str, int, str]] = []
    count = max(2, int(width_px / 110))
    made += [(moment, text, 0, "planned") for moment, text in ticks(first_s, last_s, count)]
    if stretch is not None:
        made += [
            (moment * stretch, text, 1, "measured")
            for moment, text in ticks(first_s / stretch, last_s / stretch, count)
        ]
    return {
        "x": [item[0] for item in made],
        "text": [item[1] for item in made],
        "lift": [-22 if stretch is not None and item[2] == 0 else -6 for item in made],
        "y": [0.0] * len(made),
        "foot": [float(rows) if item[2] == 0 else 0.0 for item in made],
        "side": [item[3] for item in made],
    }


def _selected(
    store: Store,
    lanes: list[tuple[int, Row, int, str, Lane | None]],
    task: int,
    stretch: float,
    paired: bool,
    make: Maker,
    tied: list[tuple[int, int]],
) -> tuple[Columns, Columns, tuple[float, float] | None]:
    """Rings around the bars of the selected task, and ties between those of one execution."""
    rings: list[tuple[float, float, float, float]] = []
    spots: dict[tuple[str, int, int], tuple[float, float, float]] = {}
    firsts: list[tuple[float, float]] = []
    if task < 0:
        return quads(rings), segments([]), None
    least = 3 * make.px_s
    for number, _, stream, side, lane in lanes:
        if lane is None:
            continue
        scale = stretch if side == "measured" else 1.0
        mine = np.flatnonzero(lane.task == task)
        if not len(mine):
            continue
        top, bottom = lane_place(number, stream, side, paired)
        firsts.append((float(lane.start_s[mine[0]]) * scale, float(lane.end_s[mine[0]]) * scale))
        for turn, bar in enumerate(mine.tolist()[:TIES]):
            left, right = float(lane.start_s[bar]) * scale, float(lane.end_s[bar]) * scale
            if right < make.first_s or left > make.last_s:
                continue
            middle, half = (left + right) / 2, max((right - left) / 2, least)
            if len(rings) < TIES:
                rings.append((middle - half, middle + half, top - 0.01, bottom + 0.01))
            if stream == COMMUNICATION:
                spots[side, turn, number] = (middle, top, bottom)
    return quads(rings), segments(_ties(spots, tied)), min(firsts, default=None)


def _ties(
    spots: dict[tuple[str, int, int], tuple[float, float, float]], tied: list[tuple[int, int]]
) -> list[tuple[float, float, float, float]]:
    """Lines between the bars of one execution, side by side where several run through the same rows."""
    found: list[tuple[float, float, float, float]] = []
    for side, turn in dict.fromkeys((side, turn) for side, turn, _ in spots):
        for one, other in tied:
            a, b = spots.get((side, turn, one)), spots.get((side, turn, other))
            if a is None or b is None or len(found) >= TIES:
                continue
            down = a[1] < b[1]
            found.append((a[0], b[0], a[2] if down else a[1], b[1] if down else b[2]))
    return found


def pick(frame: Frame, run: Measured | None, x: float, y: float, px_s: float) -> int:
    """The task at a point of the picture, or -1."""
    paired = run is not None
    number, stream, side = place_of(y, paired)
    if not 0 <= number < len(frame.rows.shown):
        return -1
    lane = frame.rows.shown[number].lane(side, stream, run)
    if lane is None:
        return -1
    scale = frame.stretch if side == "measured" else 1.0
    bar = lane.at(x / scale, 3 * px_s / scale)
    return int(lane.task[bar]) if bar >= 0 else -1


__all__ = ["Family", "Frame", "View", "pick", "timeline_frame"]
