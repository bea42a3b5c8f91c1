"""Element types by the names that programs use, as numpy types.

bf16 and the 8- and 4-bit floats come from the package ml_dtypes, loaded when the first of them is met. Integers of less
than 8 bits live in one byte an element and are brought back into their range by `wrap` after every operation.

>>> numpy_dtype("f32"), numpy_dtype("s4")
(dtype('float32'), dtype('int8'))
>>> accumulator("f16")
dtype('float32')
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of the module in use (numpy, cupy)."""


class DtypeError(ValueError):
    """An element type that cannot be executed; the message says why and what to do."""


_PLAIN: dict[str, str] = {
    "pred": "bool", "bool": "bool", "i1": "bool",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "int": "int64", "long": "int64",
    "f16": "float16", "f32": "float32", "f64": "float64",
    "fp16": "float16", "fp32": "float32", "fp64": "float64",
    "half": "float16", "float": "float32", "double": "float64",
    "c64": "complex64", "c128": "complex128",
    **{name: name for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )},
}  # fmt: skip

_NARROW: dict[str, int] = {
    **{f"{sign}{bits}": bits for sign in ("s", "i", "int", "u", "uint") for bits in (1, 2, 4)},
}
del _NARROW["i1"]  # MLIR's name of a predicate

_EXTENDED: dict[str, str] = {
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "f8e5m2": "float8_e5m2",
    "f8e4m3": "float8_e4m3",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e3m4": "float8_e3m4",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
    "f4e2m1fn": "float4_e2m1fn",
}
"""Names of ml_dtypes' types."""

_NO_DATA = frozenset({"token", "opaque"})


def _is_unsigned(name: str) -> bool:
    return name.startswith("u")


def _extensions() -> Any:
    """The package ml_dtypes."""
    return import_module("ml_dtypes")


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type that holds elements of a program's type.

    Raises:
        DtypeError: the name is not known, it is no array type, or ml_dtypes is missing.
    """
    lowered = name.lower()
    if lowered in _PLAIN:
        return np.dtype(_PLAIN[lowered])
    if lowered in _NARROW:
        return np.dtype("uint8" if _is_unsigned(lowered) else "int8")
    if lowered in _NO_DATA:
        return np.dtype("bool")  # a token is an empty array: it orders, and holds nothing
    wanted = _EXTENDED.get(lowered) or _EXTENDED.get(lowered.replace("_", "").replace("float8", "f8"))
    if wanted is None:
        raise DtypeError(f"element type {name!r} is not known to the executors")
    try:
        extensions = _extensions()
    except ImportError:
        raise DtypeError(f"element type {name} needs the package ml_dtypes: pip install ml_dtypes") from None
    found = getattr(extensions, wanted, None)
    if found is None:
        raise DtypeError(f"element type {name} needs a newer ml_dtypes (with {wanted}): pip install -U ml_dtypes")
    return np.dtype(found)


def narrow_bits(name: str) -> int | None:
    """Bits of an integer type of less than 8 bits, None for every other type."""
    return _NARROW.get(name.lower())


def is_token(name: str) -> bool:
    """True for types that hold no array data."""
    return name.lower() in _NO_DATA


def wrap(array: Array, name: str) -> Array:
    """Bring the elements of a narrow integer type back into its range; every other array as it is."""
    bits = narrow_bits(name)
    if bits is None:
        return array
    mask = (1 << bits) - 1
    if _is_unsigned(name.lower()):
        return array & np.uint8(mask)
    half = 1 << (bits - 1)
    return ((array + np.int8(half)) & np.int8(mask)) - np.int8(half)


def contiguous(array: Array) -> Array:
    """The array, or a copy of it, with its elements in one piece in row-major order; of whatever module it is."""
    return array if array.flags.c_contiguous else array.copy()


def is_floating(dtype: np.dtype[Any]) -> bool:
    """True for real floating point types, ml_dtypes' included (numpy does not count those as floating)."""
    return dtype.kind == "f" or is_extended(dtype)


_EXTENDED_NAMES = frozenset(_EXTENDED.values())


def is_extended(dtype: np.dtype[Any]) -> bool:
    """True for ml_dtypes' floats: their arithmetic rounds after every step, so it is done in float32."""
    return dtype.name in _EXTENDED_NAMES


def needs_float32(dtype: np.dtype[Any]) -> bool:
    """True for floats of 16 bits and less: computed in float32, rounded once."""
    return dtype == np.float16 or is_extended(dtype)


@cache
def accumulator(name: str) -> np.dtype[Any]:
    """The type in which sums of a program's type are accumulated.

    float32 for 16-bit floats and less, for float32 itself; float64 for float64; integers and predicates in their own type.
    """
    dtype = numpy_dtype(name)
    return np.dtype(np.float32) if needs_float32(dtype) else dtype


def float_info(dtype: np.dtype[Any]) -> Any:
    """``finfo`` of a floating point type, ml_dtypes' included."""
    return _extensions().finfo(dtype) if is_extended(dtype) else np.finfo(dtype)


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Half the distance from 1 to the next larger number; 0 for exact types."""
    return float(float_info(dtype).eps) / 2 if is_floating(dtype) or dtype.kind == "c" else 0.0
