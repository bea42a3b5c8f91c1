"""ragged-dot against plain loops over groups, in its three forms."""

from __future__ import annotations

import numpy as np
import pytest

from dtir.execute import ExecutionError
from tests.helpers.running import run_hlo, run_one

ROWS = """HloModule m
ENTRY e { a = %s[11,5] parameter(0)
 b = %s[3,5,4] parameter(1)
 c = s32[3] parameter(2)
 ROOT d = %s[11,4] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
   rhs_group_dims={0} }"""

GENERATOR = np.random.default_rng(5)
LEFT = GENERATOR.integers(-4, 5, (11, 5)).astype(np.float32)
MATRICES = GENERATOR.integers(-4, 5, (3, 5, 4)).astype(np.float32)


def by_rows(sizes: list[int]) -> np.ndarray:
    wanted = np.zeros((11, 4), np.float32)
    start = 0
    for size, matrix in zip(sizes, MATRICES, strict=True):
        wanted[start : start + size] = LEFT[start : start + size] @ matrix
        start += size
    return wanted


@pytest.mark.parametrize("sizes", [[4, 0, 7], [2, 3, 1], [0, 0, 0], [11, 0, 0]])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_rows_of_groups_meet_their_matrices(dtype: str, sizes: list[int]) -> None:
    (found,) = run_one(ROWS % (dtype, dtype, dtype), LEFT, MATRICES, sizes)
    assert np.array_equal(found.astype(np.float32), by_rows(sizes))


def test_every_rank_has_groups_of_its_own() -> None:
    text = (ROWS % ("f32", "f32", "f32")).replace("HloModule m", "HloModule m, num_partitions=2")
    sizes = [[4, 0, 7], [1, 9, 1]]
    found = run_hlo(text, [LEFT, LEFT], [MATRICES, MATRICES], sizes)
    assert all(np.array_equal(out, by_rows(own)) for (out,), own in zip(found, sizes, strict=True))


CONTRACTED = """HloModule m
ENTRY e { a = f32[5,11] parameter(0)
 b = f32[11,4] parameter(1)
 c = s32[3] parameter(2)
 ROOT d = f32[3,5,4] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1} }"""


def test_a_contracted_dim_gives_one_product_a_group() -> None:
    right = GENERATOR.integers(-4, 5, (11, 4)).astype(np.float32)
    (found,) = run_one(CONTRACTED, LEFT.T, right, [4, 1, 5])
    bounds = [(0, 4), (4, 5), (5, 10)]
    assert np.array_equal(found, np.stack([LEFT.T[:, a:b] @ right[a:b] for a, b in bounds]))


BATCHES = """HloModule m
ENTRY e { a = f32[6,3,5] parameter(0)
 b = f32[6,5,4] parameter(1)
 c = s32[2] parameter(2)
 ROOT d = f32[6,3,4] ragged-dot(a, b, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
   rhs_contracting_dims={1}, lhs_ragged_dims={0} }"""


def test_batches_of_no_group_are_zero() -> None:
    left = GENERATOR.integers(-4, 5, (6, 3, 5)).astype(np.float32)
    right = GENERATOR.integers(-4, 5, (6, 5, 4)).astype(np.float32)
    (found,) = run_one(BATCHES, left, right, [2, 3])
    wanted = left @ right
    wanted[5] = 0
    assert np.array_equal(found, wanted)


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="one ragged dim"):
        run_one(
            (ROWS % ("f32", "f32", "f32")).replace("lhs_ragged_dims={0}", "lhs_ragged_dims={0,1}"),
            LEFT,
            MATRICES,
            [1, 1, 1],
        )
