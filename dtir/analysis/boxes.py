"""Unions of boxes: is a box covered, do boxes overlap; by sweeping one dim after the other.

>>> first_gap(((0, 8),), [((0, 2),), ((4, 6),)])
((2, 4),)
>>> first_gap(((0, 4), (0, 2)), [((0, 4), (0, 1)), ((0, 4), (1, 2))]) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dtir.analysis.blocks import Box, intersect, volume


def first_gap(whole: Box, boxes: Sequence[Box]) -> Box | None:
    """A box inside `whole` that no other box touches; None when they cover it."""
    inside = [part for box in boxes if (part := intersect(box, whole)) is not None]
    return _gap(whole, inside)


def _gap(whole: Box, boxes: Sequence[Box]) -> Box | None:
    if volume(whole) == 0:
        return None
    if not boxes:
        return whole
    if not whole:
        return None
    (start, stop), rest = whole[0], whole[1:]
    points = sorted({start, stop, *(point for box in boxes for point in box[0] if start < point < stop)})
    known: dict[tuple[Box, ...], Box | None] = {}
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for number, box in enumerate(boxes):
        opening.setdefault(max(box[0][0], start), []).append(number)
        closing.setdefault(min(box[0][1], stop), []).append(number)
    active: set[int] = set()
    for low, high in pairwise(points):
        active.difference_update(closing.get(low, ()))
        active.update(opening.get(low, ()))
        slab = tuple(sorted({boxes[number][1:] for number in active}))
        if slab not in known:
            known[slab] = _gap(rest, slab) if rest else (None if active else ())
        gap = known[slab]
        if gap is not None:
            return ((low, high), *gap)
    return None


def first_overlap(boxes: Sequence[Box], differ: Sequence[object]) -> tuple[int, int] | None:
    """Two boxes that intersect although their marks differ, by number; None when there are none.

    Boxes are swept along the first dim, so that disjoint rows of boxes cost little more than sorting.
    """
    order = sorted((number for number, box in enumerate(boxes) if volume(box)), key=lambda number: boxes[number])
    active: list[int] = []
    for number in order:
        box = boxes[number]
        start = box[0][0] if box else 0
        active = [other for other in active if not boxes[other] or boxes[other][0][1] > start]
        for other in active:
            if differ[other] != differ[number] and intersect(boxes[other], box) is not None:
                return min(other, number), max(other, number)
        active.append(number)
    return None
