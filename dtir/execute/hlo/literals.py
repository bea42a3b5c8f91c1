"""Constants: numbers as HLO prints them, as arrays.

>>> array("{ { 1, 2 }, { 3, 4 } }", ArrayType("s32", (2, 2)))
array([[1, 2],
       [3, 4]], dtype=int32)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dtir.execute.dtypes import Array, numpy_dtype, wrap
from dtir.execute.hlo.call import ArrayType, HloError

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan(?:\(0x[0-9a-fA-F]+\))?)"
_VALUE = re.compile(rf"true|false|\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)|{_NUMBER}", re.ASCII)
_NAN = re.compile(r"([-+]?)nan(?:\(0x([0-9a-fA-F]+)\))?", re.ASCII)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class ElidedError(HloError):
    """The values were left out when the text was printed."""


def is_elided(value: object) -> bool:
    """True for a constant whose values are not in the text."""
    return value is None or (isinstance(value, str) and "..." in value)


def array(value: Any, kind: ArrayType) -> Array:
    """The array of a constant of a program.

    Args:
        value: text as HLO prints it, one number, or the numbers in row-major order (as numbers or as text); a single
            one stands for all elements.

    Raises:
        ElidedError: the values were left out.
        HloError: the numbers do not fit the type.
    """
    if is_elided(value):
        raise ElidedError("the values of a constant were left out when the text was printed: constant({...})")
    if isinstance(value, str):
        items: Sequence[Any] = _VALUE.findall(_COMMENT.sub("", value))
    elif isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
    else:
        items = (value,)
    count = 1
    for size in kind.shape:
        count *= size
    if len(items) != count and len(items) != 1:
        raise HloError(f"a constant of {count} elements has {len(items)} values")
    flat = _elements(items, kind)
    if len(items) != count:
        return np.broadcast_to(flat.reshape((1,) * len(kind.shape)), kind.shape)
    return flat.reshape(kind.shape)


def _elements(items: Sequence[Any], kind: ArrayType) -> Array:
    dtype = numpy_dtype(kind.dtype)
    if dtype.kind == "b":
        return np.asarray([_truth(item) for item in items], dtype=bool)
    if dtype.kind in "iu":
        return wrap(np.asarray([_integer(item, dtype) for item in items], dtype=dtype), kind.dtype)
    if dtype.kind == "c":
        return np.asarray([_complex(item) for item in items], dtype=dtype)
    exact = np.asarray([_real(item) for item in items], dtype=np.float64)
    with np.errstate(all="ignore"):
        found = exact.astype(dtype)
    for place, item in enumerate(items):
        if isinstance(item, str) and (match := _NAN.fullmatch(item)) is not None and match[2]:
            found[place] = _nan(match, dtype)
    return found


def _truth(item: Any) -> bool:
    if isinstance(item, str):
        return item == "true" or (item != "false" and float(item) != 0)
    return bool(item)


def _integer(item: Any, dtype: np.dtype[Any]) -> Any:
    number = int(item)
    bits = dtype.itemsize * 8
    number &= (1 << bits) - 1
    return number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number


def _real(item: Any) -> float:
    if isinstance(item, str):
        return float(re.sub(r"\(0x[0-9a-fA-F]+\)", "", item))
    return float(item)


def _complex(item: Any) -> complex:
    if isinstance(item, str):
        if item.startswith("("):
            real, imaginary = item[1:-1].split(",")
            return complex(_real(real.strip()), _real(imaginary.strip()))
        return complex(_real(item), 0.0)
    if isinstance(item, (list, tuple)):
        real, imaginary = cast("Sequence[Any]", item)
        return complex(_real(real), _real(imaginary))
    return complex(item)


def _nan(match: re.Match[str], dtype: np.dtype[Any]) -> Any:
    """The NaN with the payload that the text names."""
    info = np.finfo(np.float32) if dtype.kind != "f" else np.finfo(dtype)
    if dtype.kind != "f":
        return np.asarray(np.nan, np.float32).astype(dtype)
    mantissa, exponent = int(info.nmant), int(info.nexp)
    bits = ((1 << exponent) - 1) << mantissa | (int(match[2], 16) & ((1 << mantissa) - 1))
    if match[1] == "-":
        bits |= 1 << (mantissa + exponent)
    return np.asarray(bits, f"u{dtype.itemsize}").view(dtype)
