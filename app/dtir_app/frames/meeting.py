"""Which rows of a picture meet in a communication task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from dtir.analysis.groups import AxisFibres, Groups, groups_of
from dtir.ir.collectives import CollectivePermute
from dtir.ir.tasks import Collective, PointToPoint
from dtir_app.frames.timeline_rows import Row
from dtir_app.store import Store

MOST_MEMBERS = 4096
"""Larger groups are looked at up to so many members."""

MOST_GROUPS = 100_000


def tied_rows(store: Store, task: int, rows: Sequence[Row], class_of: Callable[[int], int]) -> list[tuple[int, int]]:
    """Pairs of rows to tie: neighbours on the picture within a group, source and destination of a transfer.

    Args:
        class_of: class of a rank; rows of classes stand for all their ranks.
    """
    body = store.task_records[task].body
    if isinstance(body, PointToPoint):
        return _transfers([(body.spec.source_rank, body.spec.destination_rank)], rows, class_of)
    if not isinstance(body, Collective):
        return []
    groups = groups_of(body.spec, store.mesh) or ()
    if isinstance(body.spec, CollectivePermute):
        return _transfers(groups[:MOST_GROUPS], rows, class_of)
    pairs: dict[tuple[int, int], None] = {}
    for row in rows:
        members = group_with(groups, row.rank)[:MOST_MEMBERS]
        meeting = _rows_with(members, rows, class_of)
        pairs.update(dict.fromkeys(pairwise(meeting)))
    return list(pairs)


def group_with(groups: Groups, rank: int) -> Sequence[int]:
    """The group that a rank is in; empty when it is in none."""
    if isinstance(groups, AxisFibres):
        first = rank - sum(
            rank // stride % size * stride for size, stride in zip(groups.sizes, groups.strides, strict=True)
        )
        places = [0]
        for size, stride in zip(groups.sizes, groups.strides, strict=True):
            kept = max(1, MOST_MEMBERS // max(1, len(places)))
            places = [place + step * stride for place in places for step in range(min(size, kept))]
        return [first + place for place in places] if math.prod(groups.sizes) > 1 else [rank]
    return next((group for group in groups[:MOST_GROUPS] if rank in group), ())


def _rows_with(members: Sequence[int], rows: Sequence[Row], class_of: Callable[[int], int]) -> list[int]:
    ranks = set(members)
    classes = {class_of(rank) for rank in members}
    return [
        number
        for number, row in enumerate(rows)
        if (row.rank in ranks if row.size == 1 else int(row.key[1:]) in classes)
    ]


def _transfers(
    pairs: Sequence[Sequence[int]], rows: Sequence[Row], class_of: Callable[[int], int]
) -> list[tuple[int, int]]:
    by_rank = {row.rank: number for number, row in enumerate(rows) if row.size == 1}
    by_class = {int(row.key[1:]): number for number, row in enumerate(rows) if row.size > 1}
    found: dict[tuple[int, int], None] = {}
    for source, destination in pairs:
        ends = [by_rank.get(rank, by_class.get(class_of(rank), -1)) for rank in (source, destination)]
        if min(ends) >= 0 and ends[0] != ends[1]:
            found[ends[0], ends[1]] = None
    return list(found)
