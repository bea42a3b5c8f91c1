from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import accumulate
from dtir.execute.accumulate import BLOCK_ELEMENTS, ReductionError, error_bound, gamma, left_fold
from dtir.execute.dtypes import numpy_dtype
from dtir.ir import ReductionKind


def by_hand(parts: np.ndarray, work: type) -> np.ndarray:
    total = parts[0].astype(work)
    for part in parts[1:]:
        total = total + part.astype(work)
    return total.astype(parts.dtype)


def random(members: int, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng((seed, members))
    return (generator.standard_normal((members, *shape)) * 10.0 ** generator.integers(-3, 4, (members, *shape))).astype(
        numpy_dtype(dtype)
    )


@pytest.mark.parametrize("members", [1, 2, 3, 7, 8, 9, 16, 31, 64, 200])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (3, 4), (2, 1, 3), (0,), (129,)])
@pytest.mark.parametrize(
    ("dtype", "work"), [("f32", np.float32), ("f64", np.float64), ("bf16", np.float32), ("f16", np.float32)]
)
def test_sums_are_folded_from_the_left(members: int, shape: tuple[int, ...], dtype: str, work: type) -> None:
    parts = random(members, shape, dtype)
    assert left_fold(np, parts, ReductionKind.SUM).tobytes() == by_hand(parts, work).tobytes()


@pytest.mark.parametrize("extra", [-1, 0, 1, 7])
@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("large", [0, accumulate.LARGE_BYTES])
def test_blocks_meet_without_a_seam(
    extra: int, blocks: int, dtype: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulate, "LARGE_BYTES", large)
    parts = random(5, (blocks * BLOCK_ELEMENTS + extra,), dtype)
    assert left_fold(np, parts, ReductionKind.SUM).tobytes() == by_hand(parts, np.float32).tobytes()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_layout_in_memory_does_not_matter(dtype: str) -> None:
    parts = random(9, (6, 5), dtype)
    turned = np.asfortranarray(parts)
    strided = np.repeat(parts, 2, axis=-1)[..., ::2]
    shared = np.broadcast_to(parts[0], parts.shape)
    wanted = left_fold(np, parts, ReductionKind.SUM).tobytes()
    assert left_fold(np, turned, ReductionKind.SUM).tobytes() == wanted
    assert left_fold(np, strided, ReductionKind.SUM).tobytes() == wanted
    same = np.ascontiguousarray(shared)
    assert left_fold(np, shared, ReductionKind.SUM).tobytes() == left_fold(np, same, ReductionKind.SUM).tobytes()


def test_order_matters_and_is_seen() -> None:
    parts = np.asarray([[1e8], [1.0], [-1e8]], np.float32)
    assert left_fold(np, parts, ReductionKind.SUM).tolist() == [0]
    assert left_fold(np, parts[[0, 2, 1]], ReductionKind.SUM).tolist() == [1]


def test_sixteen_bits_round_once() -> None:
    # Rounding after every step would give 2048 in float16: 2048 + 1 is no float16.
    parts = np.asarray([[2048.0]] + [[1.0]] * 4, np.float16)
    assert left_fold(np, parts, ReductionKind.SUM).tolist() == [2052]


def test_integers_wrap_and_average_cuts() -> None:
    parts = np.asarray([[127], [1], [3]], np.int8)
    assert left_fold(np, parts, ReductionKind.SUM).tolist() == [-125]
    assert left_fold(np, parts, ReductionKind.SUM).dtype == np.int8
    assert left_fold(np, np.asarray([[3], [4]], np.int32), ReductionKind.AVERAGE).tolist() == [3]


def test_nan_wins_in_max_and_min() -> None:
    parts = np.asarray([[1.0, np.nan], [np.nan, 2.0]], np.float32)
    assert np.isnan(left_fold(np, parts, ReductionKind.MAX)).all()
    assert np.isnan(left_fold(np, parts, ReductionKind.MIN)).all()


@pytest.mark.parametrize("kind", [ReductionKind.AND, ReductionKind.OR, ReductionKind.XOR])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_bits_of_floats_are_not_combined(kind: ReductionKind, dtype: str) -> None:
    with pytest.raises(ReductionError, match=f"{kind.value} works on integers and predicates"):
        left_fold(np, random(2, (2,), dtype), kind)


def test_what_cannot_be_reduced() -> None:
    with pytest.raises(ReductionError, match="at least one rank"):
        left_fold(np, np.zeros((0, 3)), ReductionKind.SUM)
    with pytest.raises(ReductionError, match="needs its computation"):
        left_fold(np, np.zeros((2, 3)), ReductionKind.CUSTOM)


@given(st.integers(2, 40), st.integers(0, 1000), st.sampled_from(["f32", "f16", "bf16"]))
def test_any_other_order_is_within_the_bound(members: int, seed: int, dtype: str) -> None:
    parts = random(members, (8,), dtype, seed)
    order = np.random.default_rng(seed).permutation(members)
    one = left_fold(np, parts, ReductionKind.SUM).astype(np.float64)
    other = left_fold(np, parts[order], ReductionKind.SUM).astype(np.float64)
    assert (np.abs(one - other) <= error_bound(np, parts, ReductionKind.SUM)).all()


def test_the_bound_is_not_vacuous() -> None:
    parts = np.ones((4, 1), np.float32)
    assert 0 < float(error_bound(np, parts, ReductionKind.SUM)[0]) < 1e-5
    assert error_bound(np, parts, ReductionKind.MAX).tolist() == [0]
    assert error_bound(np, parts.astype(np.int32), ReductionKind.SUM).tolist() == [0]


def test_gamma() -> None:
    assert gamma(3, 0.25) == 3.0
    assert gamma(4, 0.25) == float("inf")
