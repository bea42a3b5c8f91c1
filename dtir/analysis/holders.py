"""Who holds what: owners as an array, the shard combinations they cover, who among them has a current copy.

Rank sets that cover the whole mesh are never expanded; others are looked at once for each layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dtir.analysis.fibres import Space
from dtir.analysis.states import State
from dtir.ir.ranks import RankRange

Ints: TypeAlias = npt.NDArray[np.int64]

MAX_HOLDERS = 20_000_000
"""Owners beyond this number are not looked at one by one."""


def rank_array(ranks: Sequence[int]) -> Ints:
    """Ranks as an array."""
    if isinstance(ranks, RankRange):
        return np.arange(ranks.start, ranks.stop, ranks.step, dtype=np.int64)
    return np.array(ranks, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Uncovered:
    """What owners leave out.

    Args:
        missing: number of shard combinations without an owner.
        first: coordinates of the first of them, as (axis, coordinate).
        stray: a rank that owns the value outside the slice where it is declared to live; None when there is none.
    """

    missing: int
    first: tuple[tuple[str, int], ...] = ()
    stray: int | None = None


def uncovered(owners: Sequence[int], state: State, space: Space) -> Uncovered | None:
    """Which combinations of split and pending coordinates nobody holds; None when all are held (and all owners belong).

    Axes along which a value is replicated or per rank need no particular owner.
    """
    if len(owners) == space.mesh.size and not state.at:
        return None
    if len(owners) > MAX_HOLDERS:
        return None
    held = rank_array(owners)
    for axis, coordinate in state.at:
        outside = held[(held // space.strides[axis]) % space.sizes[axis] != coordinate]
        if len(outside):
            return Uncovered(0, ((axis, coordinate),), int(outside[0]))
    axes = (*state.split, *state.partial)
    wanted = space.count(axes)
    place = np.zeros(len(held), dtype=np.int64)
    for axis in axes:
        place = place * space.sizes[axis] + (held // space.strides[axis]) % space.sizes[axis]
    covered = np.unique(place)
    if len(covered) == wanted:
        return None
    first = _first_gap(covered)
    coordinates: list[tuple[str, int]] = []
    for axis in reversed(axes):
        first, coordinate = divmod(first, space.sizes[axis])
        coordinates.append((axis, coordinate))
    return Uncovered(wanted - len(covered), tuple(reversed(coordinates)))


def _first_gap(numbers: Ints) -> int:
    gaps = np.flatnonzero(numbers != np.arange(len(numbers)))
    return int(gaps[0]) if len(gaps) else len(numbers)


def without(ranks: Sequence[int], others: Sequence[int], size: int) -> tuple[int, ...]:
    """The ranks that are not among the others, ascending; nothing is expanded when either covers the mesh or both are one set."""
    if ranks is others or len(others) == size:
        return ()
    if isinstance(ranks, RankRange) and isinstance(others, RankRange) and ranks == others:
        return ()
    if isinstance(others, RankRange):
        if len(ranks) > MAX_HOLDERS:
            return ()
        return tuple(sorted(rank for rank in ranks if rank not in others))
    if len(ranks) > MAX_HOLDERS:
        return ()
    return tuple(sorted(set(ranks).difference(others)))


def meet(one: Iterable[int], other: Iterable[int]) -> bool:
    """True when two rank sets share a rank."""
    if isinstance(one, RankRange):
        one, other = other, one
    if isinstance(other, RankRange):
        return any(rank in other for rank in one)
    return not frozenset(one).isdisjoint(other)
