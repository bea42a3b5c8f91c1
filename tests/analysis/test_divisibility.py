"""Facts about symbols: what is read, what follows, and what stays unknown."""

from __future__ import annotations

import pytest

from dtir.analysis.divisibility import bound, divided, read_facts, whole_number
from dtir.ir.expr import BindingAxis, ExprOp, Symbol, ceil_div, expression

B = Symbol("B", BindingAxis.WORKLOAD)
S = Symbol("S", BindingAxis.WORKLOAD)
SIZES = {"dp": 2, "tp": 3}


@pytest.mark.parametrize(
    ("fact", "extent", "divisor", "wanted"),
    [
        ("B % 4 == 0", B, 4, True),
        ("B % 4 == 0", B, 8, False),
        ("B % 4 == 0", B * 2, 8, True),
        ("B % (dp * tp) == 0", B, 6, True),
        ("B%tp==0", B, 3, True),
        ("B == 12", B, 6, True),
        ("B == 12", B, 5, False),
        ("B * S % 8 == 0", B * S, 8, True),
        ("B * S % 8 == 0", B, 8, False),
        ("B % 4 == 0", B + 4, 4, True),
        ("B % 4 == 0", B + 2, 4, False),
        ("B % 4 == 0", B / 2, 2, True),
        ("B % 4 == 0", ceil_div(B, 2), 2, False),
    ],
)
def test_what_follows(fact: str, extent: object, divisor: int, wanted: bool) -> None:
    facts = read_facts((fact,), SIZES)
    assert facts.unread == ()
    assert facts.divides(divisor, extent) is wanted  # type: ignore[arg-type]


def test_two_facts_hold_together() -> None:
    assert read_facts(("B % 4 == 0", "B % 6 == 0"), {}).divides(12, B)


@pytest.mark.parametrize("text", ["B is even", "", "B % x == 0", "B > 4", "B % 4 == 1", "B % " + "9" * 40 + " == 0"])
def test_what_is_not_understood_is_kept_as_such(text: str) -> None:
    assert read_facts((text,), SIZES).unread == (text,)


def test_numbers_need_no_facts() -> None:
    facts = read_facts((), {})
    assert facts.divides(4, 8)
    assert not facts.divides(3, 8)
    assert facts.divides(7, 0)


def test_bindings_are_put_in_where_they_fit() -> None:
    assert whole_number(B * 2, {"B": 3}) == 6
    assert whole_number(B, {}) is None
    assert whole_number(B, {"B": 2.5}) is None
    assert bound(expression(ExprOp.DIV, B, S), {"B": 1, "S": 0}) is not None


def test_a_part_of_an_extent() -> None:
    assert divided(8, 4) == 2
    assert divided(B, 1) is B
    assert whole_number(divided(B, 4), {"B": 8}) == 2
