"""Where the items of a graph stand: x by dependency level, y by a few barycentre sweeps. Linear in items and edges.

Nothing is optimised for crossings: equal programs give equal pictures, and a change moves only what it touches. An edge that
runs against the order of the list (an invalid program may have one) does not count for levels, so there is no cycle to break.

>>> import numpy as np
>>> levels(3, np.array([0, 1]), np.array([1, 2])).tolist()
[0, 1, 2]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

SWEEPS = 4
MAX_LANES = 20
"""Items of one level that stand above each other; a level with more becomes several columns."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of items: `level` (whole numbers from 0) and `lane` (any number, distinct by 1 within a level)."""

    level: Ints
    lane: Floats

    @property
    def level_count(self) -> int:
        return int(self.level.max()) + 1 if len(self.level) else 0


def levels(count: int, source: npt.NDArray[np.integer], destination: npt.NDArray[np.integer]) -> Ints:
    """The level of every item: after all it waits for, and as late as its users allow.

    Sinks keep their earliest level; everything else moves right to just before its first user, so that a constant stands
    beside the task that uses it and not at the far left.

    Args:
        count: number of items; they are listed in an order in which they may run.
        source, destination: the edges; those with source >= destination are left out.
    """
    keep = source < destination
    source, destination = source[keep], destination[keep]
    earliest = [0] * count
    order = np.argsort(destination, kind="stable")
    for before, after in zip(source[order].tolist(), destination[order].tolist(), strict=True):
        if earliest[before] >= earliest[after]:
            earliest[after] = earliest[before] + 1
    has_user = np.zeros(count, dtype=bool)
    has_user[source] = True
    far = count + 1
    latest = [far if used else level for used, level in zip(has_user.tolist(), earliest, strict=True)]
    order = np.argsort(-source, kind="stable")
    for before, after in zip(source[order].tolist(), destination[order].tolist(), strict=True):
        if latest[after] - 1 < latest[before]:
            latest[before] = latest[after] - 1
    return np.array(latest, dtype=np.int32)


def arrange(count: int, source: npt.NDArray[np.integer], destination: npt.NDArray[np.integer]) -> Layout:
    """Levels and lanes of a graph; a level with very many items takes several columns.

    Each sweep takes as a wish the mean lane of an item's neighbours (predecessors on the way right, then successors), sorts
    every level by it, and spreads what would overlap around the wishes.
    """
    level = columns_of(levels(count, source, destination))
    lane = _first_lanes(level)
    weight = _edge_weights(level, source, destination)
    for sweep in range(SWEEPS * 2):
        tail, head = (source, destination) if sweep % 2 == 0 else (destination, source)
        lane = _spread(level, _wish(count, tail, head, lane, weight))
    return Layout(level, lane - (lane.min() if count else 0.0))


def columns_of(level: Ints, limit: int = MAX_LANES) -> Ints:
    """Levels with at most `limit` items each: a fuller one is cut into neighbouring columns, in list order.

    Items of one level do not wait for each other, so edges still lead to the right.

    >>> columns_of(np.array([0, 1, 1, 1, 2]), 2).tolist()
    [0, 1, 1, 2, 3]
    """
    if not len(level):
        return level
    order = np.argsort(level, kind="stable")
    part = np.empty(len(level), dtype=np.int32)
    part[order] = (_rank_in_level(level[order]) // limit).astype(np.int32)
    columns = -(-np.bincount(level) // limit)
    start = np.concatenate([[0], np.cumsum(columns)[:-1]])
    return (start[level] + part).astype(np.int32)


def _first_lanes(level: Ints) -> Floats:
    """List order within each level, centred on zero."""
    order = np.argsort(level, kind="stable")
    lane = np.empty(len(level))
    lane[order] = _rank_in_level(level[order])
    counts = np.bincount(level) if len(level) else np.zeros(0)
    return lane - (counts[level] - 1) / 2 if len(level) else lane


def _rank_in_level(sorted_level: Ints) -> Floats:
    position = np.arange(len(sorted_level))
    first = np.ones(len(sorted_level), dtype=bool)
    first[1:] = sorted_level[1:] != sorted_level[:-1]
    return (position - np.maximum.accumulate(np.where(first, position, 0))).astype(float)


def _edge_weights(level: Ints, source: npt.NDArray[np.integer], destination: npt.NDArray[np.integer]) -> Floats:
    """Short edges pull harder: a value kept for long should not bend the main line."""
    span = np.maximum(1, level[destination] - level[source])
    return 1.0 / (span.astype(float) ** 1.5)


def _wish(
    count: int, tail: npt.NDArray[np.integer], head: npt.NDArray[np.integer], lane: Floats, weight: Floats
) -> Floats:
    total = np.bincount(head, weights=weight, minlength=count)
    wished = np.bincount(head, weights=lane[tail] * weight, minlength=count)
    return np.where(total > 0, wished / np.maximum(total, 1e-12), lane)


def _spread(level: Ints, wish: Floats) -> Floats:
    """Lanes at least 1 apart within each level, as near to the wishes as pushing from both sides gets."""
    order = np.lexsort((np.arange(len(level)), wish, level))
    sorted_level, wanted = level[order], wish[order]
    rank = _rank_in_level(sorted_level)
    # A level's wishes live in a band of their own, so that one running maximum serves all levels.
    band = sorted_level.astype(float) * (_width(wanted) + len(level) + 2.0)
    down = np.maximum.accumulate(wanted - rank + band) - band + rank
    counts = np.bincount(level, minlength=int(level.max()) + 1 if len(level) else 0)
    left = counts[sorted_level] - 1 - rank if len(level) else rank
    up = np.minimum.accumulate((wanted + left + band)[::-1])[::-1] - band - left
    lane = np.empty(len(level))
    lane[order] = (down + up) / 2
    return lane


def _width(values: Floats) -> float:
    return float(values.max() - values.min()) if len(values) else 0.0
