"""Work on one rank and its roofline, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost.hlo_work import HloUse, hlo_flops, hlo_work, read_bytes, traffic, written_bytes
from dtir.cost.profile import Rates
from dtir.cost.work import FREE, Typed, Work, timed, typed, unknown

RATES = Rates({"f32": 1e12, "bf16": 4e12}, {"any": 1e11}, 1e9, None, 2e-6)


def f32(*extents: int) -> Typed:
    return typed(extents, "f32")


def use(opcode: str, operands: tuple[Typed, ...], results: tuple[Typed, ...], **attributes: Any) -> HloUse:
    named = {f"hlo.{name}": value for name, value in attributes.items()}
    return HloUse(opcode, operands, results, named, {"add": 1, "two": 2}.get)


# -- the roofline ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "seconds", "bound"),
    [
        (Work(matrix_flops=10**9, dtype="f32"), 2e-6 + 1e-3, "matrix flops"),
        (Work(matrix_flops=10**9, dtype="bf16"), 2e-6 + 2.5e-4, "matrix flops"),
        (Work(vector_flops=10**8, dtype="f32"), 2e-6 + 1e-3, "vector flops"),
        (Work(matrix_flops=10**9, moved_bytes=2 * 10**6, dtype="f32"), 2e-6 + 2e-3, "memory"),
        # Flops and traffic go on at once: the slower counts, not the sum.
        (Work(matrix_flops=10**9, vector_flops=10**7, moved_bytes=10**5, dtype="f32"), 2e-6 + 1e-3, "matrix flops"),
        (Work(vector_flops=10, dtype="f32"), 2e-6 + 1e-10, "start"),
        (Work(), 2e-6, "start"),
        (FREE, 0.0, "nothing"),
    ],
)
def test_the_slowest_of_flops_and_traffic_counts(work: Work, seconds: float, bound: str) -> None:
    found = timed(work, RATES)
    assert found.seconds == pytest.approx(seconds)
    assert found.bound == bound


@pytest.mark.parametrize(
    ("work", "rates", "reason"),
    [
        (unknown("operation x"), RATES, "operation x"),
        (Work(matrix_flops=1, dtype="f64"), RATES, "no rate of matrix flops for f64"),
        (Work(moved_bytes=1), Rates({"any": 1.0}, {"any": 1.0}), "no memory bandwidth"),
    ],
)
def test_what_is_not_known_is_never_zero(work: Work, rates: Rates, reason: str) -> None:
    found = timed(work, rates)
    assert found.seconds is None
    assert reason in found.reason


def test_traffic_that_is_left_out_is_said() -> None:
    found = timed(Work(vector_flops=100, moved_bytes=8), Rates({}, {"any": 1.0}))
    assert found.seconds == 100
    assert found.notes == ("memory traffic is left out: the profile has no memory bandwidth",)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_more_work_never_takes_less(matrix: int, vector: int, moved: int) -> None:
    less = timed(Work(matrix, vector, moved, "f32"), RATES).seconds
    more = timed(Work(2 * matrix, vector, moved + 8, "f32"), RATES).seconds
    assert less is not None
    assert more is not None
    assert more >= less


def test_narrow_types_are_packed_and_tokens_have_no_size() -> None:
    assert typed((3,), "s4").size_bytes == 1.5
    assert typed((4, 2), "bf16").size_bytes == 16
    assert typed((), "token").size_bytes == 0


# -- HLO operations -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "matrix", "vector", "moved"),
    [
        # [8, 16] x [16, 4]: 2 * 8 * 4 * 16 flops; all three arrays cross memory.
        (use("dot", (f32(8, 16), f32(16, 4)), (f32(8, 4),), lhs_contracting_dims=(1,)), 1024, 0, 4 * (128 + 64 + 32)),
        (use("add", (f32(8), f32(8)), (f32(8),)), 0, 8, 96),
        # 8 elements become 2: 6 additions.
        (use("reduce", (f32(2, 4), f32()), (f32(2),), to_apply="add"), 0, 6, 4 * (8 + 1 + 2)),
        (use("map", (f32(5),), (f32(5),), to_apply="two"), 0, 10, 40),
        # Windows of 3 on 8 results: 2 additions each.
        (use("reduce-window", (f32(10), f32()), (f32(8),), to_apply="add", window={"size": (3,)}), 0, 16, 4 * 19),
        (use("transpose", (f32(4, 2),), (f32(2, 4),)), 0, 0, 64),
        (use("broadcast", (f32(),), (f32(10),)), 0, 0, 44),
        # Only what is taken is read and written; a gather reads its indices, too.
        (use("slice", (f32(1000),), (f32(10),)), 0, 0, 80),
        (use("gather", (f32(1000), typed((10,), "s32")), (f32(10),)), 0, 0, 80 + 40),
        (use("dynamic-update-slice", (f32(1000), f32(10), typed((), "s32")), (f32(1000),)), 0, 0, 80),
        # 10 updates are read, the places they go to are read and written, and the indices are read.
        (use("scatter", (f32(1000), typed((10,), "s32"), f32(10)), (f32(1000),), to_apply="add"), 0, 10, 120 + 40),
        # 8 log2 8 comparisons.
        (use("sort", (f32(8),), (f32(8),), to_apply="add", dimensions=(0,)), 0, 24, 64),
        # 32 outputs of 3 x 3 x 2 taps, kernel [h, w, i, o].
        (
            use("convolution", (f32(1, 6, 6, 2), f32(3, 3, 2, 2)), (f32(1, 4, 4, 2),), dim_labels="b01f_01io->b01f"),
            2 * 32 * 18, 0, 4 * (72 + 36 + 32),
        ),
        (use("fft", (f32(8),), (f32(8),), fft_length=(8,)), 0, 5 * 8 * 3, 64),
    ],
    ids=lambda item: item.opcode if isinstance(item, HloUse) else "",
)  # fmt: skip
def test_operations_by_hand(found: HloUse, matrix: int, vector: int, moved: int) -> None:
    work = hlo_work(found)
    assert not work.unknown
    assert (work.matrix_flops, work.vector_flops, work.moved_bytes) == (matrix, vector, moved)


@pytest.mark.parametrize("opcode", ["parameter", "tuple", "bitcast", "reshape", "constant", "all-reduce-done"])
def test_views_and_marks_are_free(opcode: str) -> None:
    assert hlo_work(use(opcode, (f32(8),), (f32(8),))) is FREE


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (use("infeed", (), (f32(8),)), "operation hlo.infeed"),
        (use("custom-call", (f32(8),), (f32(8),), custom_call_target="my_kernel"), "custom call my_kernel"),
        (use("custom-call", (f32(8),), (f32(8),)), "custom call (no target)"),
        (use("reduce", (f32(8), f32()), (f32(),), to_apply="nobody"), "the computation that hlo.reduce applies"),
        (use("convolution", (f32(8), f32(8)), (f32(8),), dim_labels="?"), "convolution with dim_labels '?'"),
    ],
)
def test_what_nobody_can_count_says_why(found: HloUse, reason: str) -> None:
    assert hlo_work(found).unknown == reason


def test_annotations_are_free() -> None:
    assert hlo_work(use("custom-call", (f32(8),), (f32(8),), custom_call_target="Sharding")) is FREE


def test_a_fusion_reads_what_it_takes_and_writes_what_it_changes() -> None:
    big, small, index = f32(1000), f32(10), typed((), "s32")
    assert read_bytes("slice", 0, big, (small,), (big,)) == 40
    assert read_bytes("add", 0, big, (big,), (big, big)) == 4000
    assert read_bytes("dynamic-update-slice", 0, big, (big,), (big, small, index)) == 0
    assert read_bytes("dynamic-update-slice", 1, small, (big,), (big, small, index)) == 40
    assert written_bytes("dynamic-update-slice", big, (big, small, index)) == 40
    assert written_bytes("add", big, (big, big)) == 4000


@given(st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_elementwise_work_follows_the_number_of_elements(extents: list[int]) -> None:
    one = use("add", (f32(*extents), f32(*extents)), (f32(*extents),))
    assert hlo_flops(one) == (0, f32(*extents).elements)
    assert traffic(one) == 3 * f32(*extents).size_bytes
