"""A picture seen from so far that items are no longer told apart: what each piece of it holds, as stacked shares of the families.

Pieces are cut out of a fixed grid (as many levels and rows as are a power of two), so that moving does not make them jump, and zooming
halves them. The height of a piece's bar is how many tasks it holds, against the fullest piece in sight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir_app.frames.placing import Floats, Ints, Placed
from dtir_app.frames.windows import ITEM_LIMIT, Window
from dtir_app.kinds import Family

COLUMNS = 72
"""Pieces side by side at most, twice as many at least half of the time."""
ROWS = 40
LEAST_HEIGHT = 0.3
"""Share of a piece's height that a single task takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """Pieces of a window.

    Args:
        left, right, top, bottom: the part of a piece's bar that a family has.
        family: that family.
        count: its tasks.
        total: all tasks of the piece.
        worst: the worst finding in the piece, 3 for none.
        kept: share of the piece's tasks that the filters keep.
        cell: number of the piece.
    """

    left: Floats
    right: Floats
    top: Floats
    bottom: Floats
    family: Ints
    count: Ints
    total: Ints
    worst: Ints
    kept: Floats
    cell: Ints


def density(
    placed: Placed,
    window: Window,
    positions: Ints,
    family: Ints,
    weight: Ints,
    worst: Ints,
    kept: npt.NDArray[np.bool_] | None,
) -> Density:
    """The pieces of a window.

    Args:
        placed: where items stand.
        window: what is in sight.
        positions: the items in it.
        family, weight, worst, kept: of every item of the picture: its family, tasks, worst finding, whether filters keep it.
    """
    rows = placed.row[positions].astype(np.int64)
    shown_rows = int(rows.max() - rows.min()) + 1 if len(rows) else 1
    per_row = _power(shown_rows / ROWS)
    across = _power(window.width / COLUMNS)
    band, column = rows // per_row, np.floor((placed.x[positions] + 0.5) / across).astype(np.int64)
    columns = int(column.max()) + 1 if len(column) else 1
    cell = band * columns + column
    cells, cell = np.unique(cell, return_inverse=True)
    items = placed.items[positions]
    families = len(Family)
    table = np.bincount(cell * families + family[items], weights=weight[items], minlength=len(cells) * families)
    table = table.reshape(len(cells), families)
    total = table.sum(axis=1)
    bad = np.full(len(cells), 3, np.int32)
    np.minimum.at(bad, cell, worst[items].astype(np.int32))
    fair = np.ones(len(cells))
    if kept is not None:
        fair = np.bincount(cell, weights=weight[items] * kept[items], minlength=len(cells)) / np.maximum(total, 1)
    band, column = np.divmod(cells, columns)
    top = placed.bands[band * per_row, 0]
    bottom = placed.bands[np.minimum((band + 1) * per_row, len(placed.bands)) - 1, 1]
    room = bottom - top
    filled = room * (LEAST_HEIGHT + (1 - LEAST_HEIGHT) * np.sqrt(total / max(float(total.max(initial=1)), 1.0)))
    share = table / np.maximum(total, 1)[:, None]
    upper = bottom[:, None] - filled[:, None] * np.cumsum(share, axis=1)
    lower = upper + filled[:, None] * share
    which, what = np.nonzero(table)
    which, what = which[:ITEM_LIMIT], what[:ITEM_LIMIT]
    gap = 0.08 * across
    return Density(
        left=column[which] * across - 0.5 + gap,
        right=(column[which] + 1) * across - 0.5 - gap,
        top=upper[which, what],
        bottom=lower[which, what],
        family=what.astype(np.int32),
        count=table[which, what].astype(np.int32),
        total=total[which].astype(np.int32),
        worst=bad[which],
        kept=fair[which],
        cell=which.astype(np.int32),
    )


def _power(least: float) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << max(0, math.ceil(math.log2(max(least, 1.0))))
