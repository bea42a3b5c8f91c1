"""Blocks that repeat one after the other in a row of tokens: ``a b c a b c a b c``; found without names, in linear time a period.

A block that came out a little different (the last layer lacks one gather) still counts as one, when what is left of it is most of it.

>>> import numpy as np
>>> [(run.period, run.starts) for run in tandem_runs(np.array([9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 7]), least_saved=4)]
[(4, (1, 5, 9))]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]

LEAST_PERIOD = 4
"""Tasks of the smallest block that is worth folding."""
CANDIDATES = 24
"""Periods that are tried, the most frequent distances between equal tokens."""
RUNS = 8
"""Runs that are looked for in one list."""
ALIKE = 0.6
"""Share of a block that a block with differences has in common with it."""
ALIGNED_LIMIT = 2000
"""Longest block whose copies with differences are looked for: aligning takes the square of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A block and its copies.

    Args:
        period: tokens of the block.
        starts: where each copy starts.
        stops: where each ends; a copy with differences is longer or shorter.
    """

    period: int
    starts: tuple[int, ...]
    stops: tuple[int, ...]

    @property
    def saved(self) -> int:
        """Tokens that are not shown when one copy stands for all."""
        return self.stops[-1] - self.starts[0] - self.period


def tandem_runs(tokens: Tokens, *, least_saved: int = 12, weight: npt.NDArray[np.int64] | None = None) -> list[Run]:
    """The runs of a row, those that save most first; they do not overlap.

    Args:
        tokens: equal numbers for equal tasks.
        least_saved: a run that saves fewer tokens is none.
        weight: what each token counts; 1 when None.
    """
    rest = tokens.astype(np.int64).copy()
    counts = np.ones(len(rest), np.int64) if weight is None else weight
    before = np.concatenate([[0], np.cumsum(counts)])
    found: list[Run] = []
    unique = -1
    while len(found) < RUNS:
        best = _best(rest, before)
        if best is None:
            break
        # Where a block begins is not told by the row itself: of the two ends of the slack, the one that takes in more around it.
        period, start, copies, slack = best
        run, other = (_with_differences(rest, (period, start + more, copies)) for more in (0, slack))
        run = other if other.saved > run.saved else run
        saved = int(before[run.stops[-1]] - before[run.starts[0]]) - int(before[run.stops[0]] - before[run.starts[0]])
        if saved < least_saved:
            break
        found.append(run)
        span = run.stops[-1] - run.starts[0]
        rest[run.starts[0] : run.stops[-1]] = np.arange(unique, unique - span, -1)
        unique -= span
    return found


def _periods(tokens: Tokens) -> list[int]:
    """The most frequent distances from a token to the next equal one."""
    if len(tokens) < 2 * LEAST_PERIOD:
        return []
    order = np.argsort(tokens, kind="stable")
    same = tokens[order][1:] == tokens[order][:-1]
    distance = np.diff(order)[same]
    distance = distance[distance >= LEAST_PERIOD]
    if not len(distance):
        return []
    counts = np.bincount(distance)
    likely = np.argsort(-counts, kind="stable")[:CANDIDATES]
    return [int(period) for period in likely if counts[period]]


def _best(tokens: Tokens, before: Tokens) -> tuple[int, int, int, int] | None:
    """Period, start, whole copies and what is left over of the run that saves most; the shorter block where two save alike."""
    best: tuple[int, int, int, int, int] | None = None
    for period in _periods(tokens):
        same = np.concatenate([[False], tokens[:-period] == tokens[period:], [False]])
        turns = np.flatnonzero(same[1:] != same[:-1])
        for start, stop in zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True):
            copies = (stop - start) // period + 1
            if copies < 2:
                continue
            saved = int(before[start + copies * period] - before[start + period])
            if best is None or (saved, -period) > (best[0], -best[1]):
                best = (saved, period, start, copies, stop - start + period - copies * period)
    return None if best is None else best[1:]


def _with_differences(tokens: Tokens, run: tuple[int, int, int]) -> Run:
    """The run with copies before, between and after it that are not quite the block."""
    period, start, copies = run
    block = tokens[start : start + period]
    starts = [start + number * period for number in range(copies)]
    stops = [first + period for first in starts]
    if period > ALIGNED_LIMIT:
        return Run(period, tuple(starts), tuple(stops))
    at = stops[-1]
    while at < len(tokens):
        if len(tokens) >= at + period and (tokens[at : at + period] == block).all():
            stop = at + period
        else:
            stop = _next_whole(tokens, at, block)
            stop = stop if stop > at and alike(block, tokens[at:stop]) else _tail(tokens, at, block)
        if stop <= at:
            break
        starts.append(at)
        stops.append(stop)
        at = stop
    at = starts[0]
    while at > 0:
        first = _tail(tokens[:at][::-1], 0, block[::-1])
        if first <= 0:
            break
        starts.insert(0, at - first)
        stops.insert(0, at)
        at -= first
    return Run(period, tuple(starts), tuple(stops))


def _next_whole(tokens: Tokens, at: int, block: Tokens) -> int:
    """Where the next whole copy starts within two blocks, or -1."""
    for first in np.flatnonzero(tokens[at + 1 : at + 2 * len(block) + 1] == block[0]).tolist():
        start = at + 1 + first
        if len(tokens) >= start + len(block) and (tokens[start : start + len(block)] == block).all():
            return start
    return -1


def _tail(tokens: Tokens, at: int, block: Tokens) -> int:
    """Where a copy that starts here and has differences ends, or -1 when nothing like the block starts here."""
    ahead = tokens[at : at + len(block) + len(block) // 4 + 1]
    pairs = aligned(block, ahead)
    if not pairs:
        return -1
    stop = at + pairs[-1][1] + 1
    return stop if alike(block, tokens[at:stop]) else -1


def aligned(block: npt.NDArray[np.integer], other: npt.NDArray[np.integer]) -> list[tuple[int, int]]:
    """Positions of the block and of another row that hold the same, in order."""
    matcher = SequenceMatcher(None, block.tolist(), other.tolist(), autojunk=False)
    return [
        (left + step, right + step) for left, right, length in matcher.get_matching_blocks() for step in range(length)
    ]


def alike(block: Tokens, other: Tokens) -> bool:
    """Whether most of both is the same, whatever its order."""
    common = sum((Counter(block.tolist()) & Counter(other.tolist())).values())
    return common >= ALIKE * max(len(block), len(other), 1)
