"""Operations that no other program was asked about: those of the ranks, layouts, randomness, constants and bad forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import ExecutionError
from dtir.execute.hlo import numbers
from dtir.execute.hlo.call import ArrayType, HloError
from dtir.execute.hlo.convert import by_bits, by_value
from dtir.execute.hlo.literals import ElidedError, array
from dtir.execute.hlo.random import philox_bits, threefry_bits
from tests.helpers.running import run_hlo, run_one


def test_ranks_know_their_replica_and_partition() -> None:
    text = """HloModule m, replica_count=2, num_partitions=3
ENTRY e { r = u32[] replica-id()
 p = u32[] partition-id()
 ROOT t = (u32[], u32[]) tuple(r, p) }"""
    assert [(int(r), int(p)) for r, p in run_hlo(text)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_bitcast_follows_both_layouts() -> None:
    text = """HloModule m
ENTRY e { a = f32[2,3]{0,1} parameter(0)
 ROOT b = f32[3,2]{1,0} bitcast(a) }"""
    # Memory is column-major before and row-major after: the transpose.
    (found,) = run_one(text, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert found.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_tokens_and_barriers_hand_on() -> None:
    text = """HloModule m
ENTRY e { a = f32[2] parameter(0)
 t = token[] after-all()
 d = f32[2] add-dependency(a, t)
 b = f32[2] opt-barrier(d)
 ROOT r = f32[2] domain(b), domain={kind="sharding", entry={}, exit={}} }"""
    (found,) = run_one(text, np.asarray([1, 2], np.float32))
    assert found.tolist() == [1, 2]


def test_sizes_of_dims() -> None:
    text = """HloModule m
ENTRY e { a = f32[2,5] parameter(0)
 n = s32[] get-dimension-size(a), dimensions={1}
 b = f32[2,5] set-dimension-size(a, n), dimensions={1}
 ROOT t = (s32[], f32[2,5]) tuple(n, b) }"""
    size, same = run_one(text, np.ones((2, 5), np.float32))
    assert int(size) == 5
    assert same.shape == (2, 5)


def test_a_size_that_varies_is_not_executed() -> None:
    text = """HloModule m
ENTRY e { a = f32[5] parameter(0)
 n = s32[] constant(3)
 ROOT b = f32[<=5] set-dimension-size(a, n), dimensions={0} }"""
    with pytest.raises(ExecutionError, match="dim 0 becomes 3 of 5: dynamic sizes are not executed"):
        run_one(text, np.ones(5, np.float32))


def test_stochastic_convert_goes_to_a_neighbour() -> None:
    text = """HloModule m
ENTRY e { a = f32[4] parameter(0)
 r = u32[4] parameter(1)
 ROOT b = s32[4] stochastic-convert(a, r) }"""
    random = np.asarray([0, 2**32 - 1, 0, 2**32 - 1], np.uint32)
    (found,) = run_one(text, np.asarray([1.5, 1.5, -2.25, -2.25], np.float32), random)
    assert found.tolist() == [2, 1, -3, -2]


def test_rng_depends_on_seed_rank_and_name_only() -> None:
    text = """HloModule m, num_partitions=2
ENTRY e { l = f32[] constant(-1)
 h = f32[] constant(2)
 u = f32[1000] rng(l, h), distribution=rng_uniform
 v = f32[1000] rng(l, h), distribution=rng_normal
 ROOT t = (f32[1000], f32[1000]) tuple(u, v) }"""
    first, again = run_hlo(text), run_hlo(text)
    for one, two in zip(first, again, strict=True):
        assert np.array_equal(one[0], two[0])
    assert not np.array_equal(first[0][0], first[1][0])
    uniform, normal = first[0]
    assert -1 <= uniform.min() < -0.9 < 1.9 < uniform.max() < 2
    assert abs(normal.mean() + 1) < 0.3
    assert abs(normal.std() - 2) < 0.3


def test_threefry_known_answers() -> None:
    """The vectors of the Random123 distribution (kat_vectors, threefry2x32 20)."""
    state = np.asarray([[0, 0]], np.uint64)
    words, _ = threefry_bits(state, (2,), 32)
    assert [hex(word) for word in words[0].tolist()] == ["0x6b200159", "0x99ba4efe"]
    full = np.asarray([[2**64 - 1, 2**64 - 1]], np.uint64)
    words, new = threefry_bits(full, (2,), 32)
    assert [hex(word) for word in words[0].tolist()] == ["0x1cb996fc", "0xbb002be7"]
    assert new.tolist() == [[2**64 - 1, 0]]


def test_philox_known_answers() -> None:
    """The vectors of the Random123 distribution (kat_vectors, philox4x32 10)."""
    words, new = philox_bits(np.zeros((1, 3), np.uint64), (4,), 32)
    assert [hex(word) for word in words[0].tolist()] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert new.tolist() == [[0, 1, 0]]


def test_a_counter_carries() -> None:
    _, new = philox_bits(np.asarray([[5, 2**64 - 1, 7]], np.uint64), (8,), 32)
    assert new.tolist() == [[5, 1, 8]]


# -- numbers ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-7, 7), min_size=1, max_size=20))
def test_erf(values: list[float]) -> None:
    found = numbers.erf(np, np.asarray(values))
    assert np.allclose(found, [math.erf(value) for value in values], rtol=4e-16, atol=4e-16)


def test_erf_at_the_ends() -> None:
    found = numbers.erf(np, np.asarray([np.inf, -np.inf, np.nan, 0.0, -0.0, 30.0, 0.46875, -0.46875]))
    assert found[:2].tolist() == [1, -1]
    assert np.isnan(found[2])
    assert np.signbit(found[3:5]).tolist() == [False, True]
    assert found[5] == 1


@given(st.integers(-128, 127), st.integers(-128, 127))
def test_integer_division_cuts(a: int, b: int) -> None:
    with np.errstate(all="ignore"):
        quotient = int(numbers.divide(np, np.asarray([a], np.int8), np.asarray([b], np.int8))[0])
        rest = int(numbers.remainder(np, np.asarray([a], np.int8), np.asarray([b], np.int8))[0])
    if b == 0:
        assert (quotient, rest) == (-1, a)
    elif (a, b) == (-128, -1):
        assert (quotient, rest) == (-128, 0)
    else:
        assert quotient == int(a / b)
        assert quotient * b + rest == a


@given(st.integers(0, 255), st.integers(0, 255))
def test_shifts_beyond_the_width(a: int, n: int) -> None:
    value, amount = np.asarray([a], np.uint8), np.asarray([n], np.uint8)
    assert int(numbers.shift_left(np, value, amount, 8)[0]) == ((a << n) & 255 if n < 8 else 0)
    assert int(numbers.shift_right_logical(np, value, amount, 8)[0]) == (a >> n if n < 8 else 0)
    signed = np.asarray([a], np.uint8).view(np.int8)
    wanted = int(signed[0]) >> min(n, 7)
    assert int(numbers.shift_right_arithmetic(np, signed, amount.view(np.int8), 8)[0]) == wanted


@given(st.integers(-(2**40), 2**40), st.sampled_from(["s2", "u2", "s4", "u4", "s1", "u1"]))
def test_narrow_integers_wrap(value: int, name: str) -> None:
    bits, sign = int(name[1:]), name[0] == "s"
    found = int(by_value(np, np.asarray([value]), name)[0])
    assert (found - value) % 2**bits == 0
    assert (-(2 ** (bits - 1)) <= found < 2 ** (bits - 1)) if sign else (0 <= found < 2**bits)


@given(st.floats(width=32), st.sampled_from(["s8", "u8", "s32", "u32", "s64", "u64", "s4", "u4"]))
def test_floats_are_clamped(value: float, name: str) -> None:
    bits, sign = int(name[1:]), name[0] == "s"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign else (0, 2**bits - 1)
    with np.errstate(all="ignore"):
        found = int(by_value(np, np.asarray([value], np.float32), name)[0])
    if math.isnan(value):
        assert found == 0
    elif math.isinf(value):
        assert found == (high if value > 0 else low)
    else:
        assert found == min(max(int(value), low), high)


def test_bits_of_narrow_types() -> None:
    bytes_ = np.asarray([[0x21, 0xF3]], np.uint8)
    nibbles = by_bits(bytes_, "u8", "s4", (1, 2, 2))
    assert nibbles.tolist() == [[[1, 2], [3, -1]]]
    assert by_bits(nibbles, "s4", "u8", (1, 2)).tolist() == bytes_.tolist()


# -- constants -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ((1, 2, 3), ArrayType("s32", (3,)), [1, 2, 3]),
        ((True, False), ArrayType("pred", (2,)), [True, False]),
        (("-inf", "nan", 1.5), ArrayType("f32", (3,)), [-np.inf, np.nan, 1.5]),
        ((7,), ArrayType("u8", (2, 2)), [[7, 7], [7, 7]]),
        ((300,), ArrayType("u8", ()), 44),
        ((-1,), ArrayType("u64", ()), 2**64 - 1),
        ((9,), ArrayType("s4", ()), -7),
        (((1.0, -2.0),), ArrayType("c64", ()), 1 - 2j),
        ("{ { 1, 2 }, /*row 1*/{ 3, 4 } }", ArrayType("s32", (2, 2)), [[1, 2], [3, 4]]),
        ("{(1, 2), (3, -4)}", ArrayType("c64", (2,)), [1 + 2j, 3 - 4j]),
        ("1e-05", ArrayType("f64", ()), 1e-5),
        ((), ArrayType("f32", (0,)), []),
    ],
)
def test_literals(value: object, kind: ArrayType, wanted: object) -> None:
    found = array(value, kind)
    assert found.shape == kind.shape
    assert found.dtype == kind.numpy
    assert np.array_equal(found, np.asarray(wanted, kind.numpy), equal_nan=found.dtype.kind == "f")


def test_a_nan_keeps_its_payload() -> None:
    found = array("-nan(0x200001)", ArrayType("f32", ()))
    assert hex(int(found.view(np.uint32))) == "0xffa00001"


def test_literals_that_do_not_fit() -> None:
    with pytest.raises(ElidedError):
        array(None, ArrayType("f32", (4,)))
    with pytest.raises(ElidedError):
        array("{...}", ArrayType("f32", (4,)))
    with pytest.raises(HloError, match="a constant of 4 elements has 3 values"):
        array((1, 2, 3), ArrayType("f32", (4,)))


# -- what does not fit -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("f32[3] slice(a), slice={[0:2]}", "the program declares"),
        ("f32[2] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={}", "dot contracts 2 with 1"),
        ("f32[2] fft(a), fft_type=DCT, fft_length={2}", "fft has no type 'DCT'"),
        ("f32[2] reverse(a)", "reverse needs the attribute dimensions"),
    ],
)
def test_what_does_not_fit_is_named(operation: str, said: str) -> None:
    text = f"HloModule m\nENTRY e {{ a = f32[2] parameter(0)\n ROOT r = {operation} }}"
    with pytest.raises(ExecutionError, match=said) as caught:
        run_one(text, np.ones(2, np.float32))
    assert caught.value.step.name == "r"
