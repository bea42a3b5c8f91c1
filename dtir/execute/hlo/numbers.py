"""Arithmetic on elements: XLA's rules where numpy has others (integer division, shifts, conversions), and the error function.

All functions take arrays of one type and work element by element. Wrapping of narrow integers and rounding of short
floats is left to the caller.
"""

from __future__ import annotations

from typing import Any

from dtir.execute.dtypes import Array


def divide(xp: Any, a: Array, b: Array) -> Array:
    """Quotient; of integers it is cut towards zero, by zero it is -1 (all ones), and the least number by -1 is itself."""
    if a.dtype.kind not in "iu":
        return xp.divide(a, b)
    zero = b == 0
    divisor = xp.where(zero, xp.ones((), b.dtype), b)
    quotient = a // divisor
    if a.dtype.kind == "i":
        # numpy rounds down; one more where that differs from cutting.
        rest = a - quotient * divisor
        quotient = quotient + ((rest != 0) & ((a < 0) != (divisor < 0))).astype(a.dtype)
    ones = xp.asarray(-1).astype(a.dtype)
    return xp.where(zero, ones, quotient)


def remainder(xp: Any, a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend; of integers by zero it is the dividend."""
    if a.dtype.kind not in "iu":
        return xp.fmod(a, b)
    zero = b == 0
    return xp.where(zero, a, xp.fmod(a, xp.where(zero, xp.ones((), b.dtype), b)))


_EXPONENT_BITS = 6
"""XLA's back ends look at so many bits of an integer exponent: beyond them every base but 0 and ±1 has overflowed."""


def power(xp: Any, a: Array, b: Array) -> Array:
    """``a ** b``; integers wrap.

    Of an integer exponent the lowest 6 bits count; with its highest bit set it is negative (whatever the type says) and
    gives 1 for 1, ±1 for -1, else 0.
    """
    if a.dtype.kind not in "iu":
        return xp.power(a, b)
    one = xp.ones((), a.dtype)
    result = xp.ones(xp.broadcast_shapes(a.shape, b.shape), a.dtype)
    base, left = a, b
    for _ in range(_EXPONENT_BITS):
        result = xp.where((left & one) == one, result * base, result)
        base = base * base
        left = left >> one
    signed = b.view(f"i{b.dtype.itemsize}")
    minus = xp.asarray(-1).astype(a.dtype)
    turned = xp.where((b & one) == one, minus, one)
    inverse = xp.where(a == one, one, xp.where(a == minus, turned, xp.zeros((), a.dtype)))
    return xp.where(signed < 0, inverse, result)


def unsigned(array: Array) -> Array:
    """The same bits as unsigned integers."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "i" else array


def _shift_amount(xp: Any, array: Array, bits: int) -> tuple[Array, Array]:
    """The amount, 0 where it is too large, and where it is too large."""
    amount = unsigned(array)
    large = amount >= bits
    return xp.where(large, xp.zeros((), amount.dtype), amount), large


def shift_left(xp: Any, a: Array, b: Array, bits: int) -> Array:
    """Shift; 0 when the amount is not below `bits`."""
    amount, large = _shift_amount(xp, b, bits)
    return xp.where(large, xp.zeros((), a.dtype), a << amount.astype(a.dtype))


def shift_right_logical(xp: Any, a: Array, b: Array, bits: int) -> Array:
    """Shift that fills with zeros; 0 when the amount is not below `bits`."""
    amount, large = _shift_amount(xp, b, bits)
    plain = unsigned(a) & ((1 << bits) - 1) if bits < a.dtype.itemsize * 8 else unsigned(a)
    shifted = (plain >> amount).astype(plain.dtype).view(a.dtype)
    return xp.where(large, xp.zeros((), a.dtype), shifted)


def shift_right_arithmetic(xp: Any, a: Array, b: Array, bits: int) -> Array:
    """Shift that repeats the sign; an amount not below `bits` leaves the sign alone."""
    amount, large = _shift_amount(xp, b, bits)
    if a.dtype.kind == "u":
        # The highest bit is the sign, whatever the type says.
        signed = a.view(f"i{a.dtype.itemsize}")
        return shift_right_arithmetic(xp, signed, b, bits).view(a.dtype)
    sign = xp.where(a < 0, -xp.ones((), a.dtype), xp.zeros((), a.dtype))
    return xp.where(large, sign, a >> amount.astype(a.dtype))


def sign(xp: Any, a: Array) -> Array:
    """-1, 0 or 1; zeros keep their sign, NaN stays, a complex number is divided by its modulus."""
    if a.dtype.kind == "c":
        size = xp.abs(a)
        return xp.where(size == 0, a, a / xp.where(size == 0, xp.ones((), size.dtype), size))
    if a.dtype.kind == "f":
        return xp.where(a == 0, a, xp.sign(a))
    return xp.sign(a)


def round_away(xp: Any, a: Array) -> Array:
    """Nearest integer, halves away from zero."""
    whole = xp.trunc(a)
    return whole + xp.copysign((xp.abs(a - whole) >= 0.5).astype(a.dtype), a)


def leading_zeros(xp: Any, a: Array, bits: int) -> Array:
    """Zero bits above the highest one."""
    plain = unsigned(a)
    plain = plain & ((1 << bits) - 1) if bits < a.dtype.itemsize * 8 else plain
    count = xp.zeros(a.shape, a.dtype)
    for bit in range(bits):
        count = count + ((plain >> bit) == 0).astype(a.dtype)
    return count


def ones_count(xp: Any, a: Array, bits: int) -> Array:
    """Number of one bits."""
    plain = unsigned(a)
    count = xp.zeros(a.shape, a.dtype)
    for bit in range(bits):
        count = count + ((plain >> bit) & 1).astype(a.dtype)
    return count


# Rational approximations of erf and erfc: W. J. Cody, Math. Comp. 23 (1969) 631-637; relative error below 2**-52.
_SMALL = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2,
        8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip


def erf(xp: Any, a: Array) -> Array:
    """The error function, in float64 inside."""
    x = a.astype(xp.float64)
    size = xp.abs(x)
    square = xp.minimum(size, 0.5) ** 2
    small = x * _ratio(square, _SMALL)
    # Beyond 6 the complement is below the last bit of 1.
    middle = xp.clip(size, 0.46875, 6.0)
    complement = xp.exp(-middle * middle) * _ratio(middle, _MIDDLE)
    large = xp.copysign(1.0 - xp.where(size > 6.0, 0.0, complement), x)
    found = xp.where(size <= 0.46875, small, large)
    return xp.where(xp.isnan(x), x, found).astype(a.dtype)


def _ratio(x: Array, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    parts: list[Array] = []
    for row in coefficients:
        value: Array = row[0]
        for item in row[1:]:
            value = value * x + item
        parts.append(value)
    return parts[0] / parts[1]


def erf_inv(xp: Any, a: Array) -> Array:
    """The inverse of the error function; ±inf at ±1, NaN beyond.

    Newton's method in float64, from the closed approximation of S. Winitzki (2008), which is right to 2e-3.
    """
    x = a.astype(xp.float64)
    inside = xp.abs(x) < 1
    safe = xp.where(inside, x, 0.0)
    factor = 0.147
    log = xp.log1p(-safe * safe)
    middle = 2 / (xp.pi * factor) + log / 2
    found = xp.copysign(xp.sqrt(xp.sqrt(middle * middle - log / factor) - middle), safe)
    for _ in range(4):
        slope = 2 / xp.sqrt(xp.pi) * xp.exp(-found * found)
        found = found - (erf(xp, found) - safe) / slope
    edge = xp.where(xp.abs(x) == 1, xp.copysign(xp.inf, x), xp.nan)
    return xp.where(inside, found, edge)


def erfc(xp: Any, a: Array) -> Array:
    """One minus the error function."""
    return 1 - erf(xp, a)


def square(xp: Any, a: Array) -> Array:
    """The product of a number with itself."""
    del xp
    return a * a
