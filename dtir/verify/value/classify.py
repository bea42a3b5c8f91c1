"""What a wrong value looks like: a factor, a missing share, moved blocks, one rank alone; in words for a message."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dtir.ops.arithmetic import Arithmetic, Array
from dtir.verify.value.case import CaseValue
from dtir.verify.value.compare import Meaning, same
from dtir.verify.value.grid import Grid
from dtir.verify.value.held import Held, assemble

_MOST_AXES = 4
_MOST_DENOMINATOR = 4096


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a wrong value is.

    Args:
        kind: factor, shares, moved, ranks or other.
        text: the words for the message.
        factor: for a factor, how many times the specification the value is.
    """

    kind: str
    text: str
    factor: Fraction | None = None


def classify(value: CaseValue, held: Held, meanings: Sequence[Meaning], grid: Grid, arithmetic: Arithmetic) -> Likeness:
    """What a wrong value is, from a run in floats."""
    wrong = [item for item in meanings if not item.right]
    if not wrong:
        return Likeness("other", "it differs from the specification in other runs")
    factors = {_factor(item) for item in wrong}
    factor = factors.pop() if len(factors) == 1 else None
    some = _some_ranks(value, meanings)
    if factor is not None and factor != 1:
        return Likeness("factor", f"the value is {factor} times the specification{_named(factor, grid)}{some}", factor)
    axes = _missing_sum(value, held, wrong[0].wanted, grid, arithmetic)
    if axes:
        text = f"the copies are shares that nobody has summed over {', '.join(axes)}: their sum is the specification"
        return Likeness("shares", text)
    if some:
        return Likeness("ranks", f"the value is wrong{some} only{_difference(wrong[0])}")
    if _moved(wrong[0]):
        return Likeness("moved", "the value has the right elements in the wrong places" + _where_moved(wrong[0]))
    return Likeness("other", f"the value is not the specification{_difference(wrong[0])}")


def _factor(item: Meaning) -> Fraction | None:
    """The rational number by which all elements differ, or None."""
    if item.found.shape != item.wanted.shape or not item.found.size:
        return None
    with np.errstate(all="ignore"):
        usable = np.isfinite(item.wanted) & np.isfinite(item.found) & (np.abs(item.wanted) > 1e-12)
        if not usable.any():
            return None
        ratio = float(np.median(item.found[usable] / item.wanted[usable]))
    if not math.isfinite(ratio) or ratio == 0:
        return None
    factor = Fraction(ratio).limit_denominator(_MOST_DENOMINATOR)
    if factor == 0 or abs(float(factor) - ratio) > 1e-9 * abs(ratio):
        return None
    largest = float(np.max(np.abs(item.wanted[usable])))
    close = np.abs(item.found - float(factor) * item.wanted) <= 1e-8 * np.abs(item.wanted) + 1e-10 * largest
    return factor if bool(np.all(close | ~usable)) else None


def axes_of_factor(factor: Fraction, grid: Grid) -> list[tuple[tuple[str, ...], bool]]:
    """Sets of axes whose sizes multiply to a factor (True) or to its inverse (False), smallest first."""
    axes = [axis for axis in grid.axes if grid.size[axis] > 1]
    found: list[tuple[tuple[str, ...], bool]] = []
    for count in range(1, min(len(axes), _MOST_AXES) + 1):
        for chosen in itertools.combinations(axes, count):
            product = grid.members(chosen)
            if factor == product or factor == Fraction(1, product):
                found.append((chosen, factor == product))
    return found


def _named(factor: Fraction, grid: Grid) -> str:
    sets = axes_of_factor(factor, grid)
    if not sets:
        return ""
    size = "·".join
    words = [("" if times else "1/") + size(f"|{axis}|" for axis in axes) for axes, times in sets[:4]]
    return f" ({factor} = {' or '.join(words)})"


def _some_ranks(value: CaseValue, meanings: Sequence[Meaning]) -> str:
    """Which ranks hold the wrong copies, when others hold right ones."""
    wrong = sorted(rank for item in meanings if not item.right for rank in item.ranks)
    if len(meanings) < 2 or all(not item.right for item in meanings):
        return ""
    shown = ", ".join(str(rank) for rank in wrong[:8]) + (" ..." if len(wrong) > 8 else "")
    return f" on rank{'s' if len(wrong) > 1 else ''} {shown}"


def _missing_sum(
    value: CaseValue, held: Held, wanted: Array, grid: Grid, arithmetic: Arithmetic
) -> tuple[str, ...] | None:
    """The axes of equal copies over which the copies sum to the specification."""
    axes = [axis for axis in value.copied(grid) if grid.size[axis] > 1]
    for count in range(1, min(len(axes), _MOST_AXES) + 1):
        for chosen in itertools.combinations(axes, count):
            if _sums_to(value, held, wanted, grid, arithmetic, chosen):
                return chosen
    return None


def _sums_to(
    value: CaseValue, held: Held, wanted: Array, grid: Grid, arithmetic: Arithmetic, axes: tuple[str, ...]
) -> bool:
    total: dict[int, Array] = {}
    for rank in value.owners:
        if rank not in held.arrays:
            return False
        group = grid.fibre(rank, axes)
        if any(other not in held.arrays or held.arrays[other].shape != held.arrays[rank].shape for other in group):
            return False
        total[rank] = sum(held.arrays[other] for other in group)
    meaning = assemble(value, grid, arithmetic, total, value.owners)
    return meaning is not None and meaning.shape == wanted.shape and bool(np.all(same(arithmetic, meaning, wanted)))


def _moved(item: Meaning) -> bool:
    if item.found.shape != item.wanted.shape:
        return False
    found, wanted = np.sort(item.found, axis=None), np.sort(item.wanted, axis=None)
    return bool(np.allclose(found, wanted, rtol=1e-9, atol=0.0))


def _where_moved(item: Meaning) -> str:
    """The dim along which whole slices have changed places."""
    for dim in range(item.found.ndim):
        found = np.moveaxis(item.found, dim, 0).reshape(item.found.shape[dim], -1)
        wanted = np.moveaxis(item.wanted, dim, 0).reshape(item.wanted.shape[dim], -1)
        if np.allclose(found[np.lexsort(found.T)], wanted[np.lexsort(wanted.T)], rtol=1e-9, atol=0.0):
            return f": slices along dim {dim} have changed places"
    return ""


def _difference(item: Meaning) -> str:
    if item.found.shape != item.wanted.shape or not item.found.size:
        return ""
    with np.errstate(all="ignore"):
        apart = np.where(np.isfinite(item.wanted), np.abs(item.found - item.wanted), 0.0)
        apart = np.where(np.isnan(apart), np.inf, apart)
        limit = 1e-8 * np.where(np.isfinite(item.wanted), np.abs(item.wanted), 0.0)
        count = int(np.sum(apart > limit))
    place = tuple(int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))
    at = f" at {list(place)}" if place else ""
    return (
        f": {count} of {item.found.size} elements differ, most{at} "
        f"({float(item.found[place]):.4g} found, {float(item.wanted[place]):.4g} wanted)"
    )
