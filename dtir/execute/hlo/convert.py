"""Conversions between element types, by value and by bits.

>>> import numpy as np
>>> by_value(np, np.asarray([2.7, -1.0, np.nan, 1e20]), "u8")
array([  2,   0,   0, 255], dtype=uint8)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtir.execute.dtypes import Array, contiguous, float_info, is_extended, is_floating, narrow_bits, numpy_dtype, wrap


def by_value(xp: Any, array: Array, name: str) -> Array:
    """Elements converted: to pred by ``!= 0``, floats to integers cut and clamped (NaN gives 0), integers wrapped.

    A complex number loses its imaginary part.
    """
    target = numpy_dtype(name)
    source: np.dtype[Any] = array.dtype
    if source.kind == "c" and target.kind != "c":
        array, source = array.real, array.real.dtype
    if target.kind == "b":
        return array != 0
    if target.kind in "iu" and not is_extended(target):
        if is_floating(source):
            return _to_integer(xp, array, target, name)
        return wrap(array.astype(target), name)
    if is_extended(target) and source.kind not in "fV":
        array = array.astype(xp.float32)
    return array.astype(target)


def _bounds(target: np.dtype[Any], name: str) -> tuple[int, int]:
    bits = narrow_bits(name) or target.itemsize * 8
    return (0, (1 << bits) - 1) if target.kind == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _to_integer(xp: Any, array: Array, target: np.dtype[Any], name: str) -> Array:
    low, high = _bounds(target, name)
    wide = xp.trunc(array.astype(xp.float64))
    # The bounds of 64-bit types are no float64 numbers: what reaches them is set by hand.
    over, under = wide >= float(high), wide <= float(low)
    inside = xp.where(over | under | xp.isnan(wide), 0.0, wide).astype(target)
    return xp.where(over, xp.asarray(high, target), xp.where(under, xp.asarray(low, target), inside))


def element_bits(name: str) -> int:
    """Bits of one element when it is packed."""
    return narrow_bits(name) or (4 if name == "f4e2m1fn" else numpy_dtype(name).itemsize * 8)


def by_bits(array: Array, source: str, target: str, shape: tuple[int, ...]) -> Array:
    """The same bits as elements of another type; `shape` is that of the result, instances included.

    Where the sizes differ, the last dim of the wider type's array is its missing one.
    """
    old, new = element_bits(source), element_bits(target)
    whole = np.dtype(numpy_dtype(target))
    if old == new == numpy_dtype(source).itemsize * 8 == whole.itemsize * 8:
        return contiguous(array).view(whole).reshape(shape)
    bits = _spread(contiguous(array), old)
    return _gathered(bits.reshape(*shape, new), new, whole, target)


def _spread(array: Array, bits: int) -> Array:
    """Bits of every element in a dim of their own, lowest first."""
    flat = np.unpackbits(array.reshape(-1, 1).view(np.uint8), axis=-1, bitorder="little")
    return flat.reshape(*array.shape, array.dtype.itemsize * 8)[..., :bits]


def _gathered(bits: Array, width: int, dtype: np.dtype[Any], name: str) -> Array:
    missing = dtype.itemsize * 8 - width
    if missing:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], missing), np.uint8)], axis=-1)
    packed = contiguous(np.packbits(bits, axis=-1, bitorder="little"))
    found = packed.view(dtype)[..., 0]
    return wrap(found, name)


def reduce_precision(array: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round to fewer bits: mantissa to nearest even, exponent overflow to infinity, underflow to zero; NaN stays.

    Source: the public XLA documentation of ReducePrecision.
    """
    dtype: np.dtype[Any] = array.dtype
    own_mantissa, own_exponent = _float_form(dtype)
    kind = np.dtype(f"u{dtype.itemsize}")
    bits: Any = contiguous(array).view(kind)
    choose: Any = np.where  # of the array's own module
    sign = bits & kind.type(1 << (own_mantissa + own_exponent))
    if mantissa_bits < own_mantissa:
        dropped = own_mantissa - mantissa_bits
        last = (bits >> kind.type(dropped)) & kind.type(1)
        bits = bits + last + kind.type((1 << (dropped - 1)) - 1)
        bits = bits & ~kind.type((1 << dropped) - 1)
    if exponent_bits < own_exponent:
        bias = (1 << (own_exponent - 1)) - 1
        reduced = (1 << (exponent_bits - 1)) - 1
        mask = kind.type(((1 << own_exponent) - 1) << own_mantissa)
        exponent = bits & mask
        over = exponent > kind.type((bias + reduced) << own_mantissa)
        under = exponent <= kind.type((bias - reduced) << own_mantissa)
        bits = choose(over, sign | mask, choose(under, sign, bits))
    return choose(np.isnan(array), array, bits.astype(kind).view(dtype))


def _float_form(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = float_info(dtype)
    return int(info.nmant), int(info.nexp)
