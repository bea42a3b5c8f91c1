"""Unions of boxes against a mask of elements."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.blocks import Box, intersect, volume
from dtir.analysis.boxes import first_gap, first_overlap


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Box]]:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    bounds = st.tuples(
        *(st.tuples(st.integers(0, extent), st.integers(0, extent + 1)).map(sorted).map(tuple) for extent in shape)
    )
    return shape, draw(st.lists(bounds, max_size=6))


def mask(shape: tuple[int, ...], box: Box) -> np.ndarray:
    found = np.zeros(shape, dtype=bool)
    found[tuple(slice(start, stop) for start, stop in box)] = True
    return found


@given(layouts())
def test_a_gap_is_found_exactly_when_an_element_is_left_out(drawn: tuple[tuple[int, ...], list[Box]]) -> None:
    shape, boxes = drawn
    covered = np.zeros(shape, dtype=bool)
    for box in boxes:
        covered |= mask(shape, box)
    gap = first_gap(tuple((0, extent) for extent in shape), boxes)
    assert (gap is None) == bool(covered.all())
    if gap is not None:
        assert volume(gap) > 0
        assert not covered[tuple(slice(start, stop) for start, stop in gap)].any()


@given(layouts(), st.data())
def test_an_overlap_is_found_exactly_when_two_boxes_with_other_marks_meet(
    drawn: tuple[tuple[int, ...], list[Box]], data: st.DataObject
) -> None:
    _, boxes = drawn
    marks = [data.draw(st.integers(0, 1)) for _ in boxes]
    meets = {
        (one, other)
        for other in range(len(boxes))
        for one in range(other)
        if marks[one] != marks[other] and intersect(boxes[one], boxes[other]) is not None
    }
    found = first_overlap(boxes, marks)
    assert (found is None) == (not meets)
    assert found is None or found in meets


def test_an_empty_whole_has_no_gap() -> None:
    assert first_gap(((0, 0), (0, 3)), []) is None
    assert first_gap((), []) == ()
