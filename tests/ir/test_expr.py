"""Scalars: operators, light folding, binding."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dtir.ir import (
    Add,
    BindingAxis,
    BindingError,
    CeilDivide,
    Divide,
    ExprOp,
    Maximum,
    Minimum,
    Multiply,
    ScalarExpr,
    Subtract,
    Symbol,
    ceil_div,
    expression,
    free_symbols,
    maximum,
    minimum,
    operands,
    substitute,
)
from dtir.ir.expr import operation_of
from dtir.schema import canonical_json, from_canonical_json
from dtir.schema.frozen import exact_equal
from tests.helpers.strategies import scalars

X = Symbol("x", BindingAxis.WORKLOAD)
Y = Symbol("y", BindingAxis.STRATEGY)
RATIO = Symbol("ratio", BindingAxis.CALIBRATION, integer=False)
POSITIVE = Symbol("n", BindingAxis.TARGET, positive=True)


# -- building ----------------------------------------------------------------------------------------------------


def test_operators_build_operations() -> None:
    assert Add((X, Y)) == X + Y
    assert Subtract(X, Y) == X - Y
    assert Multiply((X, Y)) == X * Y
    assert Divide(X, Y) == X / Y
    assert Add((2, X)) == 2 + X
    assert Subtract(2, X) == 2 - X
    assert Multiply((2, X)) == 2 * X
    assert Divide(2, X) == 2 / X
    assert ceil_div(X, 4) == CeilDivide(X, 4)
    assert maximum(X, 4, Y) == Maximum((X, 4, Y))
    assert minimum(X, 4) == Minimum((X, 4))


def test_nothing_is_flattened_or_reordered() -> None:
    assert Add((Add((X, Y)), 1)) == X + Y + 1
    assert 1 + X != X + 1
    assert Y * X != X * Y
    assert Divide(X, 1) == X / 1
    assert Subtract(0, X) == 0 - X


@pytest.mark.parametrize(
    ("made", "folded"),
    [
        (expression(ExprOp.ADD, 1, 2, 3), 6),
        (expression(ExprOp.ADD, 1, 0.5), 1.5),
        (expression(ExprOp.SUB, 1, 3), -2),
        (expression(ExprOp.MUL, 2, 3, 4), 24),
        (expression(ExprOp.DIV, 1, 2), 0.5),
        (expression(ExprOp.DIV, 4, 2), 2.0),
        (ceil_div(7, 2), 4),
        (ceil_div(-7, 2), -3),
        (ceil_div(7.5, 2), 4),
        (maximum(1, 2.5), 2.5),
        (minimum(1, 2.5), 1),
        (X + 0, X),
        (0.0 + X, X),
        (X - 0, X),
        (X * 1, X),
        (1.0 * X, X),
        (X * 0, 0),
        (0.0 * X, 0),
        (expression(ExprOp.ADD, 0, X, 0, Y), Add((X, Y))),
        (expression(ExprOp.MUL, 1, X, Y), Multiply((X, Y))),
        (expression(ExprOp.ADD, X), X),
        (maximum(X), X),
        (maximum(3), 3),
    ],
    ids=str,
)
def test_folding(made: Any, folded: Any) -> None:
    assert exact_equal(made, folded)


def test_division_by_zero_stays_until_it_is_evaluated() -> None:
    for made in (X / 0, ceil_div(X, 0), expression(ExprOp.DIV, 1, 0), expression(ExprOp.CEIL_DIV, 1, 0)):
        assert isinstance(made, ScalarExpr)
        with pytest.raises(ZeroDivisionError):
            made.evaluate({"x": 1})
    with pytest.raises(ZeroDivisionError):
        (X / Y).evaluate({"x": 1, "y": 0})


def test_results_beyond_floats_stay_until_they_are_evaluated() -> None:
    for made in (expression(ExprOp.MUL, 1e200, 1e200), expression(ExprOp.DIV, 10**400, 3)):
        assert isinstance(made, ScalarExpr)
        with pytest.raises(OverflowError, match="beyond the range of floats"):
            made.evaluate()
    assert expression(ExprOp.MUL, 10**200, 10**200) == 10**400


@given(st.integers(), st.integers().filter(bool))
def test_ceil_div_is_exact(numerator: int, denominator: int) -> None:
    assert ceil_div(numerator, denominator) == math.ceil(Fraction(numerator, denominator))


def test_ceil_div_where_floats_round() -> None:
    assert ceil_div(10**18 + 1, 2) == 500_000_000_000_000_001


@pytest.mark.parametrize("bad", [True, None, "x", 1j, (1,)])
def test_only_scalars_are_operands(bad: Any) -> None:
    with pytest.raises(TypeError, match="unsupported scalar operand"):
        _ = X + bad
    with pytest.raises(TypeError, match="unsupported scalar operand"):
        maximum(X, bad)


def test_the_number_of_operands_fits() -> None:
    for op in (ExprOp.SUB, ExprOp.DIV, ExprOp.CEIL_DIV):
        with pytest.raises(TypeError, match="takes 2 operands, got 3"):
            expression(op, X, X, X)
    with pytest.raises(TypeError, match="takes at least 1 operands, got 0"):
        expression(ExprOp.ADD)


def test_other_operators_do_not_exist() -> None:
    anything: Any = X
    for use in (
        lambda: anything // 2,
        lambda: -anything,
        lambda: anything**2,
        lambda: anything < 2,
        lambda: anything % 2,
    ):
        with pytest.raises(TypeError):
            use()


@pytest.mark.parametrize(
    "build", [lambda: Add((1,)), lambda: Add([1, 2]), lambda: Add((1, True)), lambda: Divide(1, "x")]
)
def test_constructors_match_their_operands(build: Any) -> None:
    with pytest.raises(TypeError, match="must match"):
        build()


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a-b"])
def test_symbol_names(name: str) -> None:
    with pytest.raises(TypeError, match=r"Symbol\.name must match"):
        Symbol(name, BindingAxis.WORKLOAD)


def test_operands_and_operations() -> None:
    for made, op in (
        (Add((X, 1)), ExprOp.ADD),
        (Subtract(X, 1), ExprOp.SUB),
        (Multiply((X, 1)), ExprOp.MUL),
        (Divide(X, 1), ExprOp.DIV),
        (CeilDivide(X, 1), ExprOp.CEIL_DIV),
        (Maximum((X, 1)), ExprOp.MAX),
        (Minimum((X, 1)), ExprOp.MIN),
    ):
        assert operands(made) == (X, 1)
        assert operation_of(made) is op


# -- symbols and binding -----------------------------------------------------------------------------------------


def test_free_symbols_are_sorted_by_axis_and_name() -> None:
    b, a = Symbol("b", BindingAxis.WORKLOAD), Symbol("a", BindingAxis.WORKLOAD)
    made = (b + Y) * (a + b)
    assert isinstance(made, ScalarExpr)
    assert made.free_symbols == (Y, a, b)
    assert free_symbols(3) == ()
    assert X.free_symbols == (X,)


def test_binding_keys_in_order() -> None:
    assert X.evaluate({X: 1, "workload.x": 2, "x": 3}) == 1
    assert X.evaluate({"workload.x": 2, "x": 3}) == 2
    assert X.evaluate({"x": 3}) == 3
    assert X.evaluate({"strategy.x": 2, "x": 3}) == 3


def test_substitution_folds_what_it_can() -> None:
    made = (X * 32 + Y) * 2
    assert made.subs({"x": 4}) == Multiply((Add((128, Y)), 2))
    assert made.subs({"x": 4, "y": 2}) == 260
    assert made.subs({}) == made
    assert substitute(7, {"x": 1}) == 7


@pytest.mark.parametrize(
    ("symbol", "value", "message"),
    [
        (X, 1.5, "symbol workload.x must be an integer, got 1.5"),
        (X, True, "symbol workload.x must be bound to a number, got True"),
        (X, "1", "symbol workload.x must be bound to a number, got '1'"),
        (X, float("nan"), "symbol workload.x must be bound to a finite number, got nan"),
        (RATIO, float("inf"), "symbol calibration.ratio must be bound to a finite number, got inf"),
        (POSITIVE, 0, "symbol target.n must be positive, got 0"),
        (POSITIVE, -2.0, "symbol target.n must be positive, got -2"),
    ],
    ids=str,
)
def test_what_a_symbol_cannot_take(symbol: Symbol, value: Any, message: str) -> None:
    with pytest.raises(BindingError) as caught:
        (symbol + 1).subs({symbol.name: value})  # type: ignore[union-attr]
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


def test_what_a_symbol_can_take() -> None:
    assert exact_equal(X.evaluate({"x": 4.0}), 4)
    assert exact_equal(RATIO.evaluate({"ratio": 0.5}), 0.5)
    assert exact_equal(RATIO.evaluate({"ratio": 2}), 2)


def test_evaluation_names_what_is_unbound() -> None:
    with pytest.raises(BindingError, match=r"still has unbound symbols: strategy\.y, workload\.x"):
        (X + Y).evaluate({})  # type: ignore[union-attr]
    assert Add((1, 2)).evaluate() == 3


# -- algebra -----------------------------------------------------------------------------------------------------


def by_recursion(value: Any, bindings: dict[Symbol, Fraction]) -> Fraction:
    """What an expression is worth, with exact rationals."""
    match value:
        case Symbol():
            return bindings[value]
        case Add(terms=items):
            return sum((by_recursion(item, bindings) for item in items), Fraction(0))
        case Multiply(factors=items):
            return math.prod((by_recursion(item, bindings) for item in items), start=Fraction(1))
        case Maximum(values=items):
            return max(by_recursion(item, bindings) for item in items)
        case Minimum(values=items):
            return min(by_recursion(item, bindings) for item in items)
        case Subtract(left=first, right=second):
            return by_recursion(first, bindings) - by_recursion(second, bindings)
        case Divide(numerator=first, denominator=second):
            return by_recursion(first, bindings) / by_recursion(second, bindings)
        case CeilDivide(numerator=first, denominator=second):
            return Fraction(math.ceil(by_recursion(first, bindings) / by_recursion(second, bindings)))
        case _:
            return Fraction(value)


def integers_only(value: Any) -> bool:
    if isinstance(value, ScalarExpr):
        return not isinstance(value, Divide) and all(map(integers_only, operands(value)))
    return not isinstance(value, float)


@given(scalars(), st.data())
def test_evaluation_agrees_with_exact_arithmetic(value: Any, data: st.DataObject) -> None:
    assume(integers_only(value))
    bindings = {symbol: data.draw(st.integers(1, 50)) for symbol in free_symbols(value)}
    try:
        expected = by_recursion(value, {symbol: Fraction(number) for symbol, number in bindings.items()})
    except ZeroDivisionError:
        if isinstance(value, ScalarExpr):
            with pytest.raises(ZeroDivisionError):
                value.evaluate(bindings)
        return
    found = substitute(value, bindings)
    assert not isinstance(found, (Symbol, ScalarExpr))
    assert found == expected


@given(scalars())
def test_scalars_are_written_and_read(value: Any) -> None:
    assert exact_equal(from_canonical_json(canonical_json(value)), value)


def test_depth_is_no_obstacle() -> None:
    deep: Any = X
    for _ in range(20_000):
        deep = Add((deep, 1))
    assert deep.free_symbols == (X,)
    assert deep.evaluate({"x": 5}) == 20_005
    assert free_symbols(deep.subs({"workload.x": 1})) == ()
