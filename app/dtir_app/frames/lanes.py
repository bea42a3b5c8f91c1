"""Bars of one stream of one rank in the order of time, and what of them a window of so many pixels can show.

A bar that would be narrower than `LEGIBLE_PX` is not drawn as itself: such bars are counted, and how much of every stretch they
fill is drawn as the height of a column, so that a picture from afar is a profile of the work and not a grey band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEGIBLE_PX = 2.0
COLUMN_PX = 4.0
STEPS = 8
"""Heights of columns are rounded to so many steps: neighbours of one height are drawn as one."""


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """Bars in order of their start, columns of equal length.

    Args:
        start_s, end_s: seconds from the first start of all lanes.
        task: numbers of tasks; -1 where none is meant.
        arrived_s: when the rank was there; the bar begins later where it waited for others.
        times: for how many executions a bar stands.
        rounds: bars that stand for the further rounds of a loop, whose inside is not drawn again.
        latest_s: the latest end of the bars up to each, for finding those that reach into a window.
    """

    start_s: Floats
    end_s: Floats
    task: Ints
    arrived_s: Floats
    times: Floats
    rounds: npt.NDArray[np.bool_]
    latest_s: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.start_s)

    def between(self, first_s: float, last_s: float) -> slice:
        """The bars that reach into a window, waits included; some more where long bars stand before short ones."""
        low = int(np.searchsorted(self.latest_s, first_s, side="right"))
        high = int(np.searchsorted(np.minimum(self.start_s, self.arrived_s), last_s, side="left"))
        return slice(low, max(low, high))

    def at(self, time_s: float, slack_s: float = 0.0) -> int:
        """The bar at a moment, the shortest of several; the nearest within a slack; -1 for none."""
        part = self.between(time_s - slack_s, time_s + slack_s + 1e-18)
        if part.stop <= part.start:
            return -1
        start, end = np.minimum(self.start_s[part], self.arrived_s[part]), self.end_s[part]
        away = np.maximum(np.maximum(start - time_s, time_s - end), 0.0)
        near = np.flatnonzero(away <= slack_s)
        if not len(near):
            return -1
        best = near[np.lexsort((end[near] - start[near], away[near]))[0]]
        return part.start + int(best)


def make_lane(
    start_s: Sequence[float],
    end_s: Sequence[float],
    task: Sequence[int],
    arrived_s: Sequence[float] | None = None,
    times: Sequence[float] | None = None,
    rounds: Sequence[bool] | None = None,
) -> Lane:
    """A lane of bars in any order."""
    start = np.asarray(start_s, dtype=np.float64)
    order = np.argsort(start, kind="stable")
    start = start[order]
    end = np.asarray(end_s, dtype=np.float64)[order]
    count = len(start)
    arrived = start if arrived_s is None else np.minimum(np.asarray(arrived_s, dtype=np.float64)[order], start)
    many = np.ones(count) if times is None else np.asarray(times, dtype=np.float64)[order]
    again = np.zeros(count, dtype=bool) if rounds is None else np.asarray(rounds, dtype=bool)[order]
    latest = np.maximum.accumulate(end) if count else end
    return Lane(start, end, np.asarray(task, dtype=np.int64)[order], arrived, many, again, latest)


EMPTY = make_lane((), (), ())


@dataclass(frozen=True, slots=True)
class Shown:
    """What a window shows of a lane.

    Args:
        bars: positions of the bars that are drawn as themselves.
        left_s, right_s: columns that stand for the others.
        fill: part of the column's stretch that they fill, in eighths, rounded up.
        family: the family that fills most of it.
        count: how many bars it stands for.
        hidden: bars in the window that only columns stand for.
    """

    bars: Ints
    left_s: Floats
    right_s: Floats
    fill: Floats
    family: Ints
    count: Ints
    hidden: int


def shown(lane: Lane, first_s: float, last_s: float, width_px: float, budget: int, family: Ints) -> Shown:
    """The bars and columns of a window, at most about `budget` of both.

    Args:
        first_s, last_s: the window.
        width_px: its width.
        budget: glyphs that may be drawn.
        family: family of every task.
    """
    part = lane.between(first_s, last_s)
    count = part.stop - part.start
    span_s = max(last_s - first_s, 1e-18)
    seconds = lane.end_s[part] - np.minimum(lane.start_s[part], lane.arrived_s[part])
    legible = seconds >= LEGIBLE_PX * span_s / max(width_px, 1.0)
    places = np.arange(part.start, part.stop)
    if count <= min(budget, width_px / COLUMN_PX) // 4 or legible.all():
        legible = np.ones(count, dtype=bool)
    few = max(1, budget // 2)
    if int(legible.sum()) > (budget if legible.all() else few):
        kept = np.argpartition(-seconds, few)[:few]
        legible = np.zeros(count, dtype=bool)
        legible[kept] = True
    bars, small = places[legible], places[~legible]
    if not len(small):
        return Shown(bars, *_no_columns(), 0)
    room = max(8, budget - len(bars))
    columns = int(min(room, max(1.0, width_px / COLUMN_PX)))
    return Shown(bars, *_columns(lane, small, first_s, last_s, columns, family), len(small))


def _no_columns() -> tuple[Floats, Floats, Floats, Ints, Ints]:
    none = np.zeros(0)
    return none, none, none, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _columns(
    lane: Lane, small: Ints, first_s: float, last_s: float, columns: int, family: Ints
) -> tuple[Floats, Floats, Floats, Ints, Ints]:
    """How much of each of so many stretches the small bars fill."""
    edges = np.linspace(first_s, last_s, columns + 1)
    width_s = edges[1] - edges[0]
    start, end = lane.start_s[small], lane.end_s[small]
    kinds = np.where(lane.task[small] >= 0, family[lane.task[small]], 0)
    filled: list[Floats] = []
    present = np.unique(kinds)
    for kind in present.tolist():
        mine = kinds == kind
        filled.append(np.diff(_busy_until(start[mine], end[mine], edges)))
    parts = np.stack(filled)
    total = np.clip(parts.sum(axis=0) / width_s, 0.0, 1.0)
    counts = np.diff(np.searchsorted(start, edges, side="left"))
    counts[-1] += int((start == last_s).sum())
    fill = np.ceil(total * STEPS - 1e-9) / STEPS
    best = present[parts.argmax(axis=0)].astype(np.int64)
    # Neighbours of one height and family are one column.
    fresh = np.ones(columns, dtype=bool)
    fresh[1:] = (fill[1:] != fill[:-1]) | (best[1:] != best[:-1])
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], columns)
    sums = np.add.reduceat(counts, begins)
    kept = fill[begins] > 0
    return edges[begins][kept], edges[ends][kept], fill[begins][kept], best[begins][kept], sums[kept]


def _busy_until(start: Floats, end: Floats, times: Floats) -> Floats:
    """Seconds of bars that lie before each of some moments; bars of one stream hardly overlap, and where they do both count."""
    seconds = end - start
    before = np.concatenate([[0.0], np.cumsum(seconds)])
    begun = np.searchsorted(start, times, side="right")
    done = before[begun]
    # What is not over yet: for streams that run one bar at a time only the last one begun.
    last = np.maximum(begun - 1, 0)
    open_s = (
        np.where(begun > 0, np.clip(end[last] - times, 0.0, seconds[last]), 0.0) if len(start) else np.zeros(len(times))
    )
    return np.maximum.accumulate(done - open_s)


def exposed(communication: Lane, compute: Lane) -> tuple[Floats, Floats]:
    """The stretches in which a rank communicates while it computes nothing, ascending.

    Returns:
        Starts and ends in seconds.
    """
    if not len(communication):
        return np.zeros(0), np.zeros(0)
    start, end = joined(communication.start_s, communication.end_s)
    if not len(compute):
        return start, end
    busy_start, busy_end = joined(compute.start_s, compute.end_s)
    gap_start = np.concatenate([[-np.inf], busy_end])
    gap_end = np.concatenate([busy_start, [np.inf]])
    low = np.searchsorted(gap_end, start, side="right")
    high = np.searchsorted(gap_start, end, side="left")
    counts = np.maximum(high - low, 0)
    which = np.repeat(np.arange(len(start)), counts)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    gaps = np.repeat(low, counts) + within
    first, last = np.maximum(start[which], gap_start[gaps]), np.minimum(end[which], gap_end[gaps])
    kept = last > first
    return first[kept], last[kept]


def joined(start: Floats, end: Floats, gap: float = 0.0) -> tuple[Floats, Floats]:
    """Stretches in order of their start as a union; those that are no further than `gap` from each other are one."""
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    fresh = np.ones(len(start), dtype=bool)
    fresh[1:] = start[1:] > reach[:-1] + gap
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], len(start)) - 1
    return start[begins], reach[ends]


def window(start: Floats, end: Floats, first_s: float, last_s: float, gap_s: float) -> tuple[Floats, Floats]:
    """The part of ascending stretches that lies in a window, those nearer than `gap_s` joined."""
    low = int(np.searchsorted(end, first_s, side="right"))
    high = int(np.searchsorted(start, last_s, side="left"))
    return joined(start[low:high], end[low:high], gap_s)
