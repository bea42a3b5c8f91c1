"""Memory is used again only when nobody can see it any more."""

from __future__ import annotations

import numpy as np
import pytest

from dtir.execute.buffers import LEAST_BYTES, MOST_KEPT, Buffers
from dtir.execute.values import Slab

F32 = np.dtype(np.float32)
SHAPE = (LEAST_BYTES // 4, 2)


def place(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_that_nobody_holds_is_used_again() -> None:
    buffers = Buffers()
    first = buffers.empty(SHAPE, F32)
    where = place(first)
    del first
    assert place(buffers.empty((SHAPE[0] * 2,), F32)) == where


@pytest.mark.parametrize(
    "hold",
    [
        lambda a: a,
        lambda a: a[1:3],
        lambda a: a.T,
        lambda a: Slab((0,), a[None]),
        lambda a: np.broadcast_to(a, (3, *a.shape)),
    ],
    ids=["array", "slice", "transposed", "slab", "broadcast"],
)
def test_memory_that_is_seen_in_any_way_is_left_alone(hold) -> None:
    buffers = Buffers()
    array = buffers.empty(SHAPE, F32)
    array[...] = 1
    held = hold(array)
    del array
    for _ in range(2 * MOST_KEPT):
        buffers.empty(SHAPE, F32)[...] = 2
    seen = held.array if isinstance(held, Slab) else held
    assert (seen == 1).all()


def test_what_is_needed_at_a_time_is_not_limited_by_what_is_kept() -> None:
    buffers = Buffers()
    arrays = [buffers.empty(SHAPE, F32) for _ in range(3 * MOST_KEPT)]
    assert len({place(array) for array in arrays}) == 3 * MOST_KEPT


@pytest.mark.parametrize("shape", [(), (0, 5), (3,)])
def test_small_arrays_are_plain_ones(shape: tuple[int, ...]) -> None:
    array = Buffers().empty(shape, F32)
    assert array.shape == shape
    assert array.dtype == F32
    assert array.base is None


def test_results_begin_on_a_cache_line() -> None:
    assert place(Buffers().empty(SHAPE, F32)) % 64 == 0
