"""Refinements: a type and what its values must satisfy, as `Annotated` aliases.

`Annotated[int, ValueConstraint.POSITIVE]` is matched when a record is built (see `dtir.schema.matching`). There is no
coercion: a `bool` is never an `int`, and the `float` refinements do not take an `int`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, TypeAlias


class ValueConstraint(Enum):
    """A named condition on one value; `holds` never raises."""

    NON_EMPTY = "non_empty"
    NON_BLANK = "non_blank"
    AT_LEAST_TWO_ITEMS = "at_least_two_items"
    UNIQUE_ITEMS = "unique_items"
    NON_EMPTY_ITEMS = "non_empty_items"
    NON_NEGATIVE = "non_negative"
    NON_NEGATIVE_ITEMS = "non_negative_items"
    POSITIVE = "positive"
    AT_LEAST_TWO = "at_least_two"
    AT_MOST_ONE = "at_most_one"
    FINITE = "finite"
    CANONICAL_LOWER_TEXT = "canonical_lower_text"
    STABLE_NAME = "stable_name"
    CONTENT_DIGEST = "content_digest"
    SYMBOL_NAME = "symbol_name"

    def holds(self, value: Any) -> bool:
        """True when `value` satisfies the constraint; a value of the wrong kind does not."""
        try:
            return bool(_CHECKS[self](value))
        except (TypeError, ValueError, AttributeError, OverflowError):
            return False


_STABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_CONTENT_DIGEST = re.compile(r"[0-9a-f]{40}")


def _is_symbol_name(value: str) -> bool:
    return bool(value) and all(character == "_" or character.isalnum() for character in value)


def _is_canonical_lower(value: str) -> bool:
    return bool(value) and value == value.strip().lower()


_CHECKS: dict[ValueConstraint, Callable[[Any], object]] = {
    ValueConstraint.NON_EMPTY: lambda value: len(value) > 0,
    ValueConstraint.NON_BLANK: lambda value: value.strip(),
    ValueConstraint.AT_LEAST_TWO_ITEMS: lambda value: len(value) >= 2,
    ValueConstraint.UNIQUE_ITEMS: lambda value: len(set(value)) == len(value),
    ValueConstraint.NON_EMPTY_ITEMS: lambda value: all(len(item) > 0 for item in value),
    ValueConstraint.NON_NEGATIVE: lambda value: value >= 0,
    ValueConstraint.NON_NEGATIVE_ITEMS: lambda value: all(item >= 0 for item in value),
    ValueConstraint.POSITIVE: lambda value: value > 0,
    ValueConstraint.AT_LEAST_TWO: lambda value: value >= 2,
    ValueConstraint.AT_MOST_ONE: lambda value: value <= 1,
    ValueConstraint.FINITE: math.isfinite,
    ValueConstraint.CANONICAL_LOWER_TEXT: _is_canonical_lower,
    ValueConstraint.STABLE_NAME: _STABLE_NAME.fullmatch,
    ValueConstraint.CONTENT_DIGEST: _CONTENT_DIGEST.fullmatch,
    ValueConstraint.SYMBOL_NAME: _is_symbol_name,
}

NonEmptyText: TypeAlias = Annotated[str, ValueConstraint.NON_EMPTY]
NonBlankText: TypeAlias = Annotated[str, ValueConstraint.NON_BLANK]
StableName: TypeAlias = Annotated[str, ValueConstraint.STABLE_NAME]
ContentDigest: TypeAlias = Annotated[str, ValueConstraint.CONTENT_DIGEST]
SymbolName: TypeAlias = Annotated[str, ValueConstraint.SYMBOL_NAME]
CanonicalLowerText: TypeAlias = Annotated[str, ValueConstraint.CANONICAL_LOWER_TEXT]
NonNegativeInt: TypeAlias = Annotated[int, ValueConstraint.NON_NEGATIVE]
PositiveInt: TypeAlias = Annotated[int, ValueConstraint.POSITIVE]
AtLeastTwoInt: TypeAlias = Annotated[int, ValueConstraint.AT_LEAST_TWO]
FiniteFloat: TypeAlias = Annotated[float, ValueConstraint.FINITE]
NonNegativeFiniteFloat: TypeAlias = Annotated[float, ValueConstraint.FINITE, ValueConstraint.NON_NEGATIVE]
PositiveFiniteFloat: TypeAlias = Annotated[float, ValueConstraint.FINITE, ValueConstraint.POSITIVE]
NonNegativeFiniteNumber: TypeAlias = NonNegativeInt | NonNegativeFiniteFloat
PositiveFiniteNumber: TypeAlias = PositiveInt | PositiveFiniteFloat
UnitIntervalNumber: TypeAlias = (
    Annotated[int, ValueConstraint.NON_NEGATIVE, ValueConstraint.AT_MOST_ONE]
    | Annotated[float, ValueConstraint.FINITE, ValueConstraint.NON_NEGATIVE, ValueConstraint.AT_MOST_ONE]
)
PositiveUnitIntervalNumber: TypeAlias = (
    Annotated[int, ValueConstraint.POSITIVE, ValueConstraint.AT_MOST_ONE]
    | Annotated[float, ValueConstraint.FINITE, ValueConstraint.POSITIVE, ValueConstraint.AT_MOST_ONE]
)
