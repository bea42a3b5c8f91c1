"""Rank lists as digits of a mixed-radix number: how groups and tiles become axes of a mesh.

A list of ranks such as [0, 1, 4, 5] moves in steps: 2 of stride 4, then 2 of stride 1 (major to minor). Every such
(size, stride) is a digit of the rank number, and every group list or tile assignment that is regular is a set of digits.
Cutting the rank number at the bounds of all digits gives the coarsest mesh whose axes express them all.

>>> digits_of((0, 1, 4, 5))
(Digit(size=2, stride=4), Digit(size=2, stride=1))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from dtir.importers.hlo.groups import Group
from dtir.importers.hlo.meshes import strided


@dataclass(frozen=True, slots=True)
class Digit:
    """A part of the rank number: it takes `size` values in steps of `stride` ranks."""

    size: int
    stride: int


Digits = tuple[Digit, ...]


def digits_of(ranks: Sequence[int]) -> Digits | None:
    """The digits that a list of ranks runs through, major to minor; None when it is no regular run."""
    if isinstance(ranks, range):
        return (Digit(len(ranks), ranks.step),) if len(ranks) > 1 else ()
    count = len(ranks)
    found: list[Digit] = []
    step = 1
    while step < count:
        stride = ranks[step] - ranks[0]
        if stride <= 0:
            return None
        size = 1
        while size * step < count and ranks[size * step] == ranks[0] + size * stride:
            size += 1
        if count % (size * step):
            return None
        found.append(Digit(size, stride))
        step *= size
    digits = tuple(reversed(found))
    offsets = strided(tuple(d.size for d in digits), [d.stride for d in digits])
    first = ranks[0] if ranks else 0
    return digits if all(rank == first + offset for rank, offset in zip(ranks, offsets, strict=True)) else None


class Cuts:
    """Bounds at which the rank number is cut; each divides the next, from 1 to the number of ranks."""

    def __init__(self, ranks: int) -> None:
        self.bounds: set[int] = {1, ranks}

    def add(self, digits: Digits) -> bool:
        """Cut at the bounds of some digits; False, and nothing changes, when that gives no mixed-radix number."""
        bounds = self.bounds | {digit.stride for digit in digits} | {digit.stride * digit.size for digit in digits}
        ordered = sorted(bounds)
        if ordered[-1] > max(self.bounds) or any(high % low for low, high in pairwise(ordered)):
            return False
        self.bounds = bounds
        return True

    def fits(self, digits: Digits) -> bool:
        """Whether every digit begins and ends at a cut."""
        return all(digit.stride in self.bounds and digit.stride * digit.size in self.bounds for digit in digits)

    def pieces(self) -> Digits:
        """The digits between neighbouring cuts, major to minor."""
        return tuple(Digit(high // low, low) for low, high in reversed(list(pairwise(sorted(self.bounds)))))

    def split(self, digit: Digit) -> Digits:
        """A digit as the pieces it consists of, major to minor."""
        return tuple(p for p in self.pieces() if digit.stride <= p.stride < digit.stride * digit.size)


def fibre_digits(groups: Sequence[Group], ranks: int) -> Digits | None:
    """Digits of the members when groups are all ranks, sorted by them; None otherwise.

    The groups may come in any order; `in_order` says whether it is that of the remaining digits.
    """
    digits = digits_of(groups[0]) if groups else None
    if digits is not None and len(groups) == 1 and isinstance(groups[0], range):
        return digits if groups[0] == range(ranks) else None  # whatever its length, a range is not listed
    if digits is None or prod(d.size for d in digits) * len(groups) != ranks or not Cuts(ranks).add(digits):
        return None
    offsets = strided(tuple(d.size for d in digits), [d.stride for d in digits])
    bases = set(_bases(digits, ranks))
    for group in groups:
        if group[0] not in bases or len(group) != len(offsets):
            return None
        first = group[0]
        if any(rank != first + offset for rank, offset in zip(group, offsets, strict=True)):
            return None
    return digits if len({group[0] for group in groups}) == len(groups) else None


def in_order(groups: Sequence[Group], digits: Digits, ranks: int) -> bool:
    """Whether groups with these member digits are numbered by the remaining digits, major to minor."""
    return all(group[0] == base for group, base in zip(groups, _bases(digits, ranks), strict=True))


def _bases(digits: Digits, ranks: int) -> tuple[int, ...]:
    """First members of all groups, by the digits that are not in the group."""
    cuts = Cuts(ranks)
    cuts.add(digits)
    inner = {piece for digit in digits for piece in cuts.split(digit)}
    rest = [piece for piece in cuts.pieces() if piece not in inner]
    return strided(tuple(p.size for p in rest), [p.stride for p in rest])
