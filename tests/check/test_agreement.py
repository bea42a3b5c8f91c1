"""Arrays compared, and parts as blocks of a whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.check.agreement import bound_of, compare, parts_alike, parts_of_whole, possible_blocks, together
from dtir.execute.values import stack


def test_exact_types_must_be_equal() -> None:
    found = compare(np.array([1, 2, 3]), np.array([1, 2, 4]))
    assert (found.equal, found.wrong, found.size, found.max_error, found.bound) == (False, 1, 3, 1.0, 0.0)
    assert compare(np.array([True]), np.array([True])).equal


def test_floats_may_differ_by_rounding_of_the_greatest_element() -> None:
    wanted = np.array([1000.0, 1.0], np.float32)
    assert compare(wanted + np.float32(0.01), wanted).equal
    assert not compare(wanted + np.float32(0.1), wanted).equal
    assert bound_of(wanted.astype(np.float64)) < bound_of(wanted)


def test_nan_equals_nan_and_nothing_else() -> None:
    nan = np.array([np.nan, 1.0])
    assert compare(nan, nan).equal
    assert compare(np.array([0.0, 1.0]), nan).max_error == np.inf
    inf = np.array([np.inf, -np.inf])
    assert compare(inf, inf).equal
    assert not compare(-inf, inf).equal


def test_comparisons_together_are_the_worst_and_the_sum() -> None:
    one, two = compare(np.array([1]), np.array([1])), compare(np.array([1, 5]), np.array([1, 2]))
    assert (together([one, two]).wrong, together([one, two]).size, together([one, two]).max_error) == (1, 3, 3.0)
    assert together([]).equal


def test_parts_of_other_shapes_are_not_compared() -> None:
    ranks = (0, 1)
    left = stack(ranks, [np.zeros(2), np.zeros(2)])
    assert parts_alike(left, stack(ranks, [np.zeros(3), np.zeros(3)])) is None
    assert parts_alike(left, stack((0,), [np.zeros(2)])) is None
    assert parts_alike(left, stack(ranks, [np.zeros(2, np.int64), np.zeros(2, np.int64)])) is None
    found = parts_alike(left, left)
    assert found is not None
    assert found.equal


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.randoms())
def test_blocks_dealt_out_are_found_again(rows: int, columns: int, height: int, width: int, random: object) -> None:
    """Some reading of the rank numbers fits, and blocks on other ranks are noticed by the readings that hold."""
    whole = np.arange(rows * height * columns * width, dtype=np.float64).reshape(rows * height, columns * width)
    parts = [
        whole[r * height : (r + 1) * height, c * width : (c + 1) * width] for r in range(rows) for c in range(columns)
    ]
    held = stack(tuple(range(len(parts))), parts)
    readings = list(possible_blocks((height, width), whole.shape, len(parts)))
    assert any((found := parts_of_whole(held, whole, blocks)) is not None and found.equal for blocks in readings)
    spoilt = stack(tuple(range(len(parts))), [parts[0] + 1, *parts[1:]])
    assert not any((found := parts_of_whole(spoilt, whole, blocks)) is not None and found.equal for blocks in readings)


def test_a_padded_tail_is_free_and_a_wrong_shape_is_none() -> None:
    whole = np.arange(5.0)
    blocks = [(slice(0, 3),), (slice(3, 5),)]
    held = stack((0, 1), [np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0, 99.0])])
    found = parts_of_whole(held, whole, blocks)
    assert found is not None
    assert found.equal
    longer = stack((0, 1), [np.arange(4.0), np.arange(4.0)])
    assert parts_of_whole(longer, whole, blocks) is None


@pytest.mark.parametrize(("local", "shape", "ranks"), [((3,), (2,), 2), ((2,), (8,), 3), ((2, 2), (4,), 2)])
def test_shapes_that_do_not_fit_have_no_reading(local: tuple[int, ...], shape: tuple[int, ...], ranks: int) -> None:
    assert list(possible_blocks(local, shape, ranks)) == []
