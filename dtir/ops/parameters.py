"""Reading the parameters of a call: dims, rational constants, lists of ints; anything unusable is an `OpError` that names it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

from dtir.ops.opdef import OpCall, OpError

MOST_DIGITS = 40
MOST_EXPONENT = 300
_NUMBER = re.compile(r"[+-]?(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?(?:/(\d+))?")


def rational(value: object, what: str = "constant") -> Fraction:
    """A rational constant, written as a number or as text (``"1/8"``, ``"0.5"``, ``"1e-3"``).

    Numbers with more than 40 digits or an exponent beyond 300 are refused: their exact value would need memory that
    grows with the exponent.

    Raises:
        OpError: not a number of that form.

    >>> rational("1/8"), rational(0.25)
    (Fraction(1, 8), Fraction(1, 4))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = repr(value) if isinstance(value, float) or value.bit_length() < 128 else "too long"
    elif isinstance(value, str):
        text = value.replace(" ", "")
    else:
        text = ""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise OpError(f"{what} {value!r} is not a rational number such as 2, 0.5 or '1/8'")
    digits = sum(len(part) for part in (match[1], match[2], match[4]) if part)
    if digits > MOST_DIGITS or len(match[3] or "") > 4 or abs(int(match[3] or 0)) > MOST_EXPONENT:
        raise OpError(f"{what} {text[:24]}... has more digits than are handled exactly ({MOST_DIGITS})")
    whole, _, denominator = text.partition("/")
    if denominator and int(denominator) == 0:
        raise OpError(f"{what} {text} divides by zero")
    return Fraction(whole) / (Fraction(denominator) if denominator else 1)


def constant(call: OpCall, name: str, default: Fraction | None = None) -> Fraction:
    """A rational parameter.

    Raises:
        OpError: it is missing and has no default, or is not a rational number.
    """
    value = call.attributes.get(name)
    if value is None:
        if default is None:
            raise OpError(f"parameter {name} is missing")
        return default
    return rational(value, name)


def integers(value: object, what: str) -> tuple[int, ...]:
    """A list of ints, or one int.

    Raises:
        OpError: anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = tuple(cast("Sequence[Any]", value))
        if all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            return cast("tuple[int, ...]", items)
    raise OpError(f"{what} {value!r} is not a list of ints")


def checked_dim(dim: int, rank: int, what: str = "dim") -> int:
    """A dim counted from 0; negative ones count from the end.

    Raises:
        OpError: there is no such dim.
    """
    if not -rank <= dim < rank:
        raise OpError(f"{what} {dim} is outside a tensor of {rank} dims")
    return dim % rank


def dims_of(call: OpCall, rank: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """The parameter ``dims`` (or ``dim``) of an operator, in order.

    Args:
        default: what a missing parameter means; None: all dims.

    Raises:
        OpError: a dim does not exist or is named twice.
    """
    given = call.attributes.get("dims", call.attributes.get("dim"))
    if given is None:
        return tuple(range(rank)) if default is None else tuple(checked_dim(dim, rank) for dim in default)
    dims = tuple(checked_dim(dim, rank) for dim in integers(given, "dims"))
    if len(set(dims)) != len(dims):
        raise OpError(f"dims {list(dims)} names a dim twice")
    return dims


def dim_of(call: OpCall, rank: int, default: int | None = None) -> int:
    """The one dim that an operator works on.

    Raises:
        OpError: none or several are given, or it does not exist.
    """
    dims = dims_of(call, rank, () if default is None else (default,))
    if len(dims) != 1:
        raise OpError(f"one dim is wanted, got {list(dims)}")
    return dims[0]


def flag(call: OpCall, name: str) -> bool:
    """A parameter that is set or not; missing means not."""
    return call.attributes.get(name) is True


def names(value: object, what: str) -> tuple[str, ...]:
    """A list of names, or one name.

    Raises:
        OpError: anything else.
    """
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence) and all(isinstance(item, str) for item in cast("Sequence[Any]", value)):
        return tuple(cast("Sequence[str]", value))
    raise OpError(f"{what} {value!r} is not a list of names")
