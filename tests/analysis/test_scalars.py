from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.scalars import scalar_text
from dtir.ir import BindingAxis, ExprOp, Scalar, Symbol, ceil_div, expression, maximum, minimum

B = Symbol("b", BindingAxis.WORKLOAD)
R = Symbol("r", BindingAxis.CALIBRATION)


@pytest.mark.parametrize(
    ("scalar", "text"),
    [
        (64, "64"),
        (2.5, "2.5"),
        (B, "workload.b"),
        (B * 32 + R, "workload.b * 32 + calibration.r"),
        ((B + 1) * 32, "(workload.b + 1) * 32"),
        (B - (R - 1), "workload.b - (calibration.r - 1)"),
        (B - R - 1, "workload.b - calibration.r - 1"),
        (B / (R * 2), "workload.b / (calibration.r * 2)"),
        (B * R / 2, "workload.b * calibration.r / 2"),
        (ceil_div(B + 1, 2), "ceil((workload.b + 1) / 2)"),
        (maximum(B, R + 1), "max(workload.b, calibration.r + 1)"),
        (minimum(B, 3) * 2, "min(workload.b, 3) * 2"),
    ],
)
def test_text(scalar: Scalar, text: str) -> None:
    assert scalar_text(scalar) == text


SCALARS = st.recursive(
    st.integers(1, 9) | st.just(B) | st.just(R),
    lambda inner: st.builds(
        lambda op, left, right: expression(op, left, right),
        st.sampled_from([ExprOp.ADD, ExprOp.SUB, ExprOp.MUL]),
        inner,
        inner,
    ),
    max_leaves=12,
)


class _Bound:
    b = 7
    r = 11


@given(SCALARS)
def test_the_text_means_what_the_scalar_means(scalar: Scalar) -> None:
    bindings = {"workload.b": _Bound.b, "calibration.r": _Bound.r}
    wanted = scalar if isinstance(scalar, int | float) else scalar.evaluate(bindings)
    assert eval(scalar_text(scalar), {"workload": _Bound, "calibration": _Bound}) == wanted  # noqa: S307


def test_an_expression_deeper_than_the_interpreter() -> None:
    deep: Scalar = B
    for _ in range(3000):
        deep = deep + R
    assert scalar_text(deep) == " + ".join(["workload.b", *["calibration.r"] * 3000])
