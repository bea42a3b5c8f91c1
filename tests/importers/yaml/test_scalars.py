"""Symbolic sizes as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.yaml.scalars import ScalarError, parse_scalar, write_scalar
from dtir.ir import BindingAxis, ExprOp, Multiply, Scalar, Symbol, ceil_div, expression, maximum

B, N = Symbol("B", BindingAxis.WORKLOAD), Symbol("N", BindingAxis.STRATEGY)


@st.composite
def scalars(draw: st.DrawFn) -> Scalar:
    leaf: st.SearchStrategy[Scalar] = st.sampled_from([B, N, 2, 7, 0.5])
    return draw(
        st.recursive(
            leaf, lambda inner: st.builds(_operation, st.sampled_from(list(ExprOp)), inner, inner), max_leaves=6
        )
    )


def _operation(operation: ExprOp, left: Scalar, right: Scalar) -> Scalar:
    if isinstance(right, (int, float)) and right == 0:
        right = 1
    return expression(operation, left, right)


@given(scalars())
def test_what_is_written_reads_as_the_same_scalar(scalar: Scalar) -> None:
    text = write_scalar(scalar)
    try:
        found = parse_scalar(text, {})
    except ScalarError:
        assert "-" in text  # negative constants come from folding alone; no size is one
        return
    bindings = {"workload.B": 5, "strategy.N": 3}
    assert found == scalar or _value(found, bindings) == pytest.approx(_value(scalar, bindings))


def _value(scalar: Scalar, bindings: dict[str, int]) -> float:
    return scalar if isinstance(scalar, (int, float)) else scalar.evaluate(bindings)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("B", B), ("workload.B", B), ("strategy.N", N), ("2 * B", Multiply((2, B))), ("B*2*B", Multiply((B, 2, B))),
        ("ceil(B / 4)", ceil_div(B, 4)), ("max(B, 8)", maximum(B, 8)),
        ("(B + 1) - 2", expression(ExprOp.SUB, expression(ExprOp.ADD, B, 1), 2)),
        ("12", 12), ("3 * 4", 12),
    ],
)  # fmt: skip
def test_texts_and_their_scalars(text: str, wanted: Scalar) -> None:
    assert parse_scalar(text, {}) == wanted


def test_declared_symbols_are_used() -> None:
    positive = Symbol("B", BindingAxis.WORKLOAD, positive=True)
    assert parse_scalar("B * 2", {"workload.B": positive}) == Multiply((positive, 2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B +",
        "(B",
        "B)",
        "2 ** B",
        "B / ",
        "max(B)",
        "ceil(B)",
        "nowhere.B",
        "B; import os",
        "-3",
        "B" * 3000,
        "(" * 100 + "B" + ")" * 100,
    ],
)
def test_what_is_no_scalar_is_refused(text: str) -> None:
    with pytest.raises(ScalarError):
        parse_scalar(text, {})
