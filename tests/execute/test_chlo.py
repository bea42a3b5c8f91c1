"""The functions that StableHLO's clients have beyond HLO's."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute.hlo import numbers


@given(st.floats(-0.999999, 0.999999))
def test_the_inverse_is_one(x: float) -> None:
    (found,) = numbers.erf_inv(np, np.array([x]))
    assert math.isclose(math.erf(found), x, rel_tol=1e-12, abs_tol=1e-15)


def test_at_the_ends_and_beyond() -> None:
    with np.errstate(all="ignore"):
        found = numbers.erf_inv(np, np.array([1.0, -1.0, 0.0, 2.0, np.nan]))
    np.testing.assert_array_equal(found, [np.inf, -np.inf, 0.0, np.nan, np.nan])


def test_the_complement_and_squares() -> None:
    x = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(numbers.erfc(np, x), [math.erfc(one) for one in x], atol=1e-15)
    np.testing.assert_array_equal(numbers.square(np, x), x * x)
