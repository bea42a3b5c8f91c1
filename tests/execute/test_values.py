from __future__ import annotations

import numpy as np
import pytest

from dtir.execute import Pieces, Slab
from dtir.execute.values import AbsentError, at, is_shared, merge, rows, shared, stack, take


def test_equal_shapes_make_a_slab_others_pieces() -> None:
    slab = stack((0, 2), [np.zeros(2), np.ones(2)])
    assert isinstance(slab, Slab)
    assert slab.array.shape == (2, 2)
    pieces = stack((0, 2), [np.zeros(2), np.ones(3)])
    assert isinstance(pieces, Pieces)
    assert at(pieces, 2).tolist() == [1, 1, 1]


def test_shared_arrays_are_not_copied() -> None:
    array = np.arange(4.0)
    held = shared((0, 1, 2), array)
    assert is_shared(held)
    assert all(np.shares_memory(row, array) for row in rows(held))
    assert np.shares_memory(take(held, (1, 2)).array, array)
    assert not is_shared(Slab((0, 1), np.zeros((2, 2))))
    assert not is_shared(shared((0, 1), np.zeros((0,))))


def test_taking_neighbours_is_a_view() -> None:
    slab = Slab((0, 1, 2, 3), np.arange(8).reshape(4, 2))
    part = take(slab, (1, 2))
    assert isinstance(part, Slab)
    assert np.shares_memory(part.array, slab.array)
    assert take(slab, (3, 1)).array.tolist() == [[6, 7], [2, 3]]
    assert take(slab, (0, 1, 2, 3)) is slab


def test_pieces_may_become_a_slab() -> None:
    pieces = Pieces((0, 1, 2), (np.zeros(2), np.ones(3), np.full(2, 2.0)))
    assert isinstance(take(pieces, (0, 2)), Slab)


def test_merging_sorts_by_rank() -> None:
    merged = merge([Slab((3, 5), np.asarray([[3], [5]])), Slab((1,), np.asarray([[1]]))])
    assert list(merged.ranks) == [1, 3, 5]
    assert [int(row[0]) for row in rows(merged)] == [1, 3, 5]


def test_who_holds_nothing_is_named() -> None:
    slab = Slab((0, 1), np.zeros((2, 1)))
    for call in (lambda: at(slab, 7), lambda: take(slab, (0, 7))):
        with pytest.raises(AbsentError, match=r"rank 7 holds no part of the value \(held by 0, 1\)"):
            call()
