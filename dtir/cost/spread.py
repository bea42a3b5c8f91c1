"""How the members of groups lie on the levels of a machine: so many a node, so many nodes a rack.

Ranks lie on the levels in order: with units of 8, ranks 0 to 7 are one node.

>>> spread_of((0, 1, 8, 9), (8, None))
Spread(sizes=(2, 2), even=True, joined=True)
>>> spread_of((0, 8, 16, 24), (8, None)).sizes, spread_of((0, 1, 8), (8, None)).even
((1, 4), False)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import AxisFibres, Group, Groups
from dtir.ir.ranks import RankRange

Ints: TypeAlias = npt.NDArray[np.int64]
Units: TypeAlias = tuple[int | None, ...]

MOST_RANKS = 4_000_000
"""Ranks that are looked at one by one; larger sets are told by their formula, or not at all."""


class TooMany(ValueError):
    """More ranks than are looked at one by one, in a form that has no formula."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One group on the levels.

    Args:
        sizes: members a unit of every level, innermost first; their product is the group's size.
        even: whether every unit holds as many; else all members stand on the outermost level that joins them.
        joined: False when no level of the machine joins all members.
    """

    sizes: tuple[int, ...]
    even: bool = True
    joined: bool = True

    @property
    def members(self) -> int:
        """Ranks of the group."""
        return math.prod(self.sizes)

    @property
    def top(self) -> int:
        """The outermost level that is used; 0 for a group of one rank."""
        return max((level for level, size in enumerate(self.sizes) if size > 1), default=0)


def rank_array(ranks: Sequence[int]) -> Ints:
    """Ranks as an array.

    Raises:
        TooMany: beyond `MOST_RANKS`.
    """
    if len(ranks) > MOST_RANKS:
        raise TooMany(f"{len(ranks)} ranks")
    if isinstance(ranks, RankRange):
        return np.arange(ranks.start, ranks.stop, ranks.step, dtype=np.int64)
    return np.array(ranks, dtype=np.int64)


def spread_of(members: Sequence[int], units: Units) -> Spread:
    """A group on the levels.

    Args:
        members: ranks, in any order.
        units: ranks of a unit of every level, innermost first; None: all.

    Raises:
        TooMany: see `rank_array`.
    """
    run = _spread_of_run(members, units) if isinstance(members, RankRange) else None
    return run or _spread_of_array(rank_array(members), units)


def _spread_of_array(items: Ints, units: Units) -> Spread:
    count, sizes, before, even = len(items), list[int](), 1, True
    for level, unit in enumerate(units):
        if unit is None:
            sizes.append(len(items))
            return _joined(sizes, level, count, even, len(units))
        ids, held = np.unique(items // (unit // before), return_counts=True)
        even = even and bool(np.all(held == held[0]))
        sizes.append(int(held[0]))
        items, before = ids, unit
        if len(items) == 1:
            return _joined(sizes, level, count, even, len(units))
    return Spread((*(1,) * (len(units) - 1), count) if units else (count,), even, joined=False)


def _joined(sizes: list[int], level: int, count: int, even: bool, levels: int) -> Spread:
    rest = (1,) * (levels - level - 1)
    if even:
        return Spread((*sizes, *rest))
    return Spread((*(1,) * level, count, *rest), even=False)


def _spread_of_run(members: RankRange, units: Units) -> Spread | None:
    """A run ``start, start + step, ...`` without walking it; None where its units are not filled evenly by the formula."""
    count, start, step = len(members), members.start, members.step
    sizes: list[int] = []
    for level, unit in enumerate(units):
        if unit is None:
            sizes.append(count)
            return Spread((*sizes, *(1,) * (len(units) - level - 1)))
        if start // unit == (start + (count - 1) * step) // unit:
            sizes.append(count)
            return Spread((*sizes, *(1,) * (len(units) - level - 1)))
        if step < unit:
            each = unit // step
            if unit % step or start % unit >= step or count % each:
                return None
        elif step % unit:
            return None
        else:
            each = 1
        sizes.append(each)
        count //= each
        # What is left are units: one rank of each stands for it.
        step *= each
        if count == 1:
            return Spread((*sizes, *(1,) * (len(units) - level - 1)))
    return None


def spreads_of(groups: Groups, units: Units) -> tuple[tuple[Spread, ...], Ints | None]:
    """The different spreads of a list of groups, and which of them every group has.

    Returns:
        The spreads, and for every group the position of its spread; None when all groups have the first.

    Raises:
        TooMany: see `rank_array`.
    """
    if isinstance(groups, AxisFibres):
        return _of_fibres(groups, units)
    known: dict[Spread, int] = {}
    by_group: dict[Group, int] = {}
    place = np.empty(len(groups), dtype=np.int64)
    for number, group in enumerate(groups):
        key = group if isinstance(group, (tuple, RankRange)) else tuple(group)
        if key not in by_group:
            by_group[key] = known.setdefault(spread_of(key, units), len(known))
        place[number] = by_group[key]
    return tuple(known), place if len(known) > 1 else None


def _of_fibres(groups: AxisFibres, units: Units) -> tuple[tuple[Spread, ...], Ints | None]:
    """Fibres are one pattern of ranks, shifted: which units it fills depends on where it begins within the largest unit."""
    limits = [unit for unit in units if unit is not None]
    if not limits:
        return (spread_of(groups[0], units),), None
    firsts = _firsts(groups)
    residues, place = np.unique(firsts % limits[-1], return_inverse=True)
    known: dict[Spread, int] = {}
    of_residue = np.empty(len(residues), dtype=np.int64)
    sample = np.zeros(len(residues), dtype=np.int64)
    sample[place] = np.arange(len(firsts))
    for number, index in enumerate(sample.tolist()):
        of_residue[number] = known.setdefault(spread_of(groups[int(index)], units), len(known))
    return tuple(known), of_residue[place] if len(known) > 1 else None


def _firsts(groups: AxisFibres) -> Ints:
    """The first member of every fibre."""
    if len(groups) > MOST_RANKS:
        raise TooMany(f"{len(groups)} groups")
    firsts = np.zeros(1, dtype=np.int64)
    for size, stride in zip(groups.other_sizes, groups.other_strides, strict=True):
        firsts = (firsts[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return firsts


def users_of(ranks: Sequence[int], unit: int, mesh_size: int) -> int:
    """The most ranks of a set that share one unit.

    Raises:
        TooMany: see `rank_array`.
    """
    if len(ranks) == mesh_size:
        return min(unit, mesh_size)
    if isinstance(ranks, RankRange) and len(ranks) > MOST_RANKS:
        return min(len(ranks), -(-unit // ranks.step))
    return int(np.unique(rank_array(ranks) // unit, return_counts=True)[1].max(initial=0))
