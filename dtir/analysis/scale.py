"""The factor by which a value exceeds its specification: a rational number, or not known (SEMANTICS 2.4).

>>> from dtir.ops import Degrees
>>> scale_of(Degrees((Fraction(1), Fraction(1))), [Fraction(2), Fraction(3)])
(Fraction(6, 1), None)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import assert_never

from dtir.analysis.deviations import Deviation, Kind
from dtir.ops import Degrees, EqualScales, Factor, ScaleFree, ScaleLaw, Unscaled

ONE = Fraction(1)
MAX_DIGITS_BITS = 4096
"""Factors with more bits are given up: a chain of squares doubles them at every step."""


def scale_of(law: ScaleLaw, scales: Sequence[Fraction | None]) -> tuple[Fraction | None, Deviation | None]:
    """The scale of a result, and how factors meet that must not; None when the scale is not known any more."""
    match law:
        case Degrees(degrees=degrees):
            return _product(degrees, scales)
        case EqualScales(operands=operands):
            return _equal(operands, scales)
        case Unscaled():
            return _unscaled(scales)
        case ScaleFree():
            return ONE, None
        case Factor(factor=factor, reference=reference):
            known = scales[0] if scales else ONE
            if known is None or not reference:
                return None, None
            return _small(known * factor / reference), None
        case _:
            assert_never(law)


def _small(scale: Fraction) -> Fraction | None:
    wide = max(scale.numerator.bit_length(), scale.denominator.bit_length()) > MAX_DIGITS_BITS
    return None if wide else scale


def _product(
    degrees: Sequence[Fraction], scales: Sequence[Fraction | None]
) -> tuple[Fraction | None, Deviation | None]:
    result = ONE
    for index, (degree, scale) in enumerate(zip(degrees, scales, strict=False)):
        if scale is None:
            return None, None
        if scale == 1 or not degree:
            continue
        powered = _power(scale, degree)
        if powered is None:
            return None, Deviation(Kind.SCALE_MIXED, operand=index, found=str(scale), wanted="1", note="root")
        result *= powered
    return _small(result), None


def _power(scale: Fraction, degree: Fraction) -> Fraction | None:
    """`scale ** degree`; None when that is no rational number."""
    if abs(degree.numerator) > 64 or degree.denominator > 64 or not scale:
        return None
    root = degree.denominator
    if root != 1:
        numerator, denominator = _root(scale.numerator, root), _root(scale.denominator, root)
        if numerator is None or denominator is None:
            return None
        scale = Fraction(numerator, denominator)
    return scale**degree.numerator


def _root(number: int, degree: int) -> int | None:
    """The exact root of a positive number; None when it has none."""
    if number < 0:
        return None
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < number:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == number else None


def _equal(operands: Sequence[int], scales: Sequence[Fraction | None]) -> tuple[Fraction | None, Deviation | None]:
    chosen = [(index, scales[index]) for index in operands if index < len(scales)]
    others = [(i, scale) for i, scale in enumerate(scales) if i not in operands and scale is not None and scale != 1]
    if others:
        index, scale = others[0]
        return None, Deviation(Kind.SCALE_MIXED, operand=index, found=str(scale), wanted="1", note="selects")
    if any(scale is None for _, scale in chosen):
        return None, None
    if not chosen:
        return ONE, None
    _, wanted = chosen[0]
    for index, scale in chosen[1:]:
        if scale != wanted:
            return None, Deviation(Kind.SCALE_MIXED, operand=index, found=str(scale), wanted=str(wanted), note="add")
    return wanted, None


def _unscaled(scales: Sequence[Fraction | None]) -> tuple[Fraction | None, Deviation | None]:
    for index, scale in enumerate(scales):
        if scale is not None and scale != 1:
            return None, Deviation(Kind.SCALE_MIXED, operand=index, found=str(scale), wanted="1", note="nonlinear")
    return (None, None) if any(scale is None for scale in scales) else (ONE, None)


def factor_axes(factor: Fraction, sizes: Mapping[str, int]) -> tuple[tuple[str, ...], bool] | None:
    """Mesh axes whose sizes multiply to a factor, fewest first; whether they divide instead; None when no set does.

    >>> factor_axes(Fraction(1, 6), {"dp": 2, "tp": 3, "pp": 5})
    (('dp', 'tp'), True)
    """
    divides = factor < 1
    wanted = 1 / factor if divides else factor
    if wanted.denominator != 1 or wanted == 1:
        return None
    names = [name for name, size in sizes.items() if size > 1]
    for count in range(1, min(len(names), 6) + 1):
        for chosen in combinations(names, count):
            if math.prod(sizes[name] for name in chosen) == wanted:
                return chosen, divides
    return None
