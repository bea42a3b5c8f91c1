"""What ranks hold of one value: a slab of equally shaped arrays, or pieces of different shapes.

A slab is one array ``(k, *local)``; row i belongs to ``ranks[i]``. Values are never changed once they are made, so that
one array may stand for several ranks (a row stride of 0) and for several values.

>>> import numpy as np
>>> slab = stack((0, 1), [np.zeros(3), np.ones(3)])
>>> type(slab).__name__, at(slab, 1).tolist(), type(stack((0, 1), [np.zeros(3), np.zeros(2)])).__name__
('Slab', [1.0, 1.0, 1.0], 'Pieces')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np

from dtir.execute.dtypes import Array


@dataclass(frozen=True, slots=True)
class Slab:
    """Equally shaped arrays of some ranks.

    Args:
        ranks: which ranks, ascending.
        array: ``(len(ranks), *local)``.
    """

    ranks: Sequence[int]
    array: Array


@dataclass(frozen=True, slots=True)
class Pieces:
    """Arrays of some ranks that differ in shape (uneven shards).

    Args:
        ranks: which ranks, ascending.
        arrays: one a rank.
    """

    ranks: Sequence[int]
    arrays: tuple[Array, ...]


Held: TypeAlias = Slab | Pieces


class AbsentError(ValueError):
    """A rank is asked for its part of a value and holds none."""


def stack(ranks: Sequence[int], arrays: Sequence[Array], xp: Any = np) -> Held:
    """The arrays of some ranks, as a slab where their shapes are equal."""
    if len({array.shape for array in arrays}) == 1:
        if len(arrays) == 1:
            return Slab(ranks, arrays[0][None])
        return Slab(ranks, xp.stack(list(arrays)))
    return Pieces(ranks, tuple(arrays))


def shared(ranks: Sequence[int], array: Array, xp: Any = np) -> Slab:
    """One array that all ranks see; nothing is copied."""
    return Slab(ranks, xp.broadcast_to(array[None], (len(ranks), *array.shape)))


def is_shared(slab: Slab) -> bool:
    """True when all rows are one array in memory."""
    return len(slab.ranks) > 1 and slab.array.strides[0] == 0 and slab.array.size > 0


def at(held: Held, rank: int) -> Array:
    """The array of one rank.

    Raises:
        AbsentError: the rank holds nothing.
    """
    try:
        place = held.ranks.index(rank)
    except ValueError:
        raise AbsentError(f"rank {rank} holds no part of the value (held by {_some(held.ranks)})") from None
    match held:
        case Slab(array=array):
            return array[place]
        case Pieces(arrays=arrays):
            return arrays[place]
        case _:
            assert_never(held)


def rows(held: Held) -> Sequence[Array]:
    """The arrays, in the order of the ranks."""
    match held:
        case Slab(array=array):
            return array
        case Pieces(arrays=arrays):
            return arrays
        case _:
            assert_never(held)


def take(held: Held, ranks: Sequence[int]) -> Held:
    """The part of some ranks, in their order.

    Raises:
        AbsentError: a rank holds nothing.
    """
    if held.ranks is ranks or held.ranks == ranks:
        return held
    position = {rank: place for place, rank in enumerate(held.ranks)}
    missing = [rank for rank in ranks if rank not in position]
    if missing:
        raise AbsentError(f"rank {missing[0]} holds no part of the value (held by {_some(held.ranks)})")
    places = [position[rank] for rank in ranks]
    match held:
        case Slab(array=array):
            if is_shared(held):
                return Slab(ranks, array[: len(places)])
            first = places[0] if places else 0
            step = places[1] - first if len(places) > 1 else 1
            if step > 0 and places == list(range(first, first + len(places) * step, step)):
                return Slab(ranks, array[first : first + len(places) * step : step])
            return Slab(ranks, array[places])
        case Pieces(arrays=arrays):
            return stack(ranks, [arrays[place] for place in places])
        case _:
            assert_never(held)


def merge(parts: Sequence[Held], xp: Any = np) -> Held:
    """Parts of disjoint sets of ranks as one, ranks ascending."""
    if len(parts) == 1 and list(parts[0].ranks) == sorted(parts[0].ranks):
        return parts[0]
    pairs = sorted(
        ((rank, array) for part in parts for rank, array in zip(part.ranks, rows(part), strict=True)),
        key=lambda pair: pair[0],
    )
    return stack(tuple(rank for rank, _ in pairs), [array for _, array in pairs], xp)


def _some(ranks: Sequence[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return shown + (f", ... ({len(ranks)})" if len(ranks) > 8 else "") if len(ranks) else "no rank"
