"""Refinement aliases: each takes what it says and nothing else."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic_core import SchemaValidator, ValidationError

from dtir.schema import refinements
from dtir.schema.matching import schema_for
from dtir.schema.refinements import ValueConstraint

INF, NAN = float("inf"), float("nan")

CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "NonEmptyText": (["a", " ", "\ud800"], ["", 1, None, b"a"]),
    "NonBlankText": (["a", " a "], ["", " \t"]),
    "StableName": (["a", "A1", "a_b.c-d"], ["", "1a", "_a", "a b", "é", "a\n"]),
    "ContentDigest": (["0" * 40, "abcdef0123" * 4], ["0" * 39, "0" * 41, "A" * 40, "g" * 40, ""]),
    "SymbolName": (["a", "_", "1", "B_2", "é"], ["", "a.b", "a b", "a-b"]),
    "CanonicalLowerText": (["a", "a b"], ["", "A", " a", "a "]),
    "NonNegativeInt": ([0, 10**30], [-1, True, 0.0, "0"]),
    "PositiveInt": ([1, 10**30], [0, -1, True, 1.0]),
    "AtLeastTwoInt": ([2, 3], [1, True, 2.0]),
    "FiniteFloat": ([0.0, -1e300], [0, True, INF, NAN, "0"]),
    "NonNegativeFiniteFloat": ([0.0, -0.0, 1e300], [-1e-300, 1, INF, NAN]),
    "PositiveFiniteFloat": ([1e-300], [0.0, 1, INF]),
    "NonNegativeFiniteNumber": ([0, 0.0, 3, 3.5], [-1, -1.0, True, INF]),
    "PositiveFiniteNumber": ([1, 0.5], [0, 0.0, True, NAN]),
    "UnitIntervalNumber": ([0, 1, 0.0, 1.0, 0.5], [2, -1, 1.5, -0.1, True, NAN]),
    "PositiveUnitIntervalNumber": ([1, 1.0, 0.5], [0, 0.0, 2, 1.01, True]),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (good, _) in CASES.items() for value in good], ids=repr
)
def test_takes(name: str, value: Any) -> None:
    assert SchemaValidator(schema_for(getattr(refinements, name))).validate_python(value) is value


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (_, bad) in CASES.items() for value in bad], ids=repr
)
def test_refuses(name: str, value: Any) -> None:
    validator = SchemaValidator(schema_for(getattr(refinements, name)))
    with pytest.raises(ValidationError):
        validator.validate_python(value)


def test_every_alias_has_cases() -> None:
    aliases = {name for name in vars(refinements) if not name.startswith("_") and get_args(getattr(refinements, name))}
    assert aliases == set(CASES)


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (ValueConstraint.AT_LEAST_TWO_ITEMS, (1, 2), (1,)),
        (ValueConstraint.UNIQUE_ITEMS, (1, 2), (1, 1)),
        (ValueConstraint.UNIQUE_ITEMS, (), ([],)),
        (ValueConstraint.NON_EMPTY_ITEMS, ("a",), ("a", "")),
        (ValueConstraint.NON_NEGATIVE_ITEMS, (0, 1), (0, -1)),
        (ValueConstraint.NON_EMPTY, (1,), ()),
        (ValueConstraint.FINITE, 1.0, INF),
        (ValueConstraint.AT_MOST_ONE, 1, 2),
    ],
    ids=str,
)
def test_constraints(constraint: ValueConstraint, good: Any, bad: Any) -> None:
    assert constraint.holds(good)
    assert not constraint.holds(bad)


@pytest.mark.parametrize("constraint", ValueConstraint)
def test_a_constraint_never_raises(constraint: ValueConstraint) -> None:
    assert constraint.value == constraint.name.lower()
    for value in (None, object(), "x", 3, (object(),)):
        assert constraint.holds(value) in (True, False)
