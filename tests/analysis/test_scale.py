"""Factors: laws against numbers, roots, and the axes that make a factor up."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.deviations import Kind
from dtir.analysis.scale import factor_axes, scale_of
from dtir.ops import Degrees, EqualScales, Factor, ScaleFree, Unscaled

ONE = Fraction(1)
rationals = st.builds(Fraction, st.integers(1, 50), st.integers(1, 50))


@given(st.lists(st.tuples(rationals, st.integers(-3, 3)), max_size=4))
def test_whole_degrees_multiply(items: list[tuple[Fraction, int]]) -> None:
    wanted = ONE
    for scale, degree in items:
        wanted *= scale**degree
    law = Degrees(tuple(Fraction(degree) for _, degree in items))
    assert scale_of(law, [scale for scale, _ in items]) == (wanted, None)


@given(rationals, st.integers(2, 4))
def test_a_root_of_a_power_is_exact(scale: Fraction, degree: int) -> None:
    assert scale_of(Degrees((Fraction(1, degree),)), [scale**degree]) == (scale, None)


def test_a_root_that_is_no_rational_number_is_said() -> None:
    scale, found = scale_of(Degrees((Fraction(1, 2),)), [Fraction(2)])
    assert scale is None
    assert found is not None
    assert found.kind is Kind.SCALE_MIXED


def test_addends_must_agree_and_what_selects_must_be_plain() -> None:
    assert scale_of(EqualScales((0, 1)), [Fraction(3), Fraction(3)]) == (Fraction(3), None)
    assert scale_of(EqualScales((0, 1)), [Fraction(3), ONE])[1] is not None
    assert scale_of(EqualScales((1, 2)), [Fraction(3), ONE, ONE])[1] is not None


def test_what_is_not_known_stays_so_without_a_finding() -> None:
    for law in (Degrees((ONE,)), EqualScales((0,)), Unscaled(), Factor(Fraction(1, 2), ONE)):
        assert scale_of(law, [None]) == (None, None)
    assert scale_of(ScaleFree(), [None]) == (ONE, None)


def test_a_chain_of_squares_is_given_up_in_time() -> None:
    scale: Fraction | None = Fraction(3)
    for _ in range(100):
        scale, _ = scale_of(Degrees((Fraction(2),)), [scale])
    assert scale is None


@pytest.mark.parametrize(
    ("factor", "wanted"),
    [
        (Fraction(2), (("dp",), False)),
        (Fraction(1, 15), (("tp", "pp"), True)),
        (Fraction(30), (("dp", "tp", "pp"), False)),
        (Fraction(7), None),
        (Fraction(2, 3), None),
        (ONE, None),
    ],
)
def test_a_factor_names_its_axes(factor: Fraction, wanted: object) -> None:
    assert factor_axes(factor, {"dp": 2, "tp": 3, "pp": 5, "one": 1}) == wanted
