"""Rank sets: tuples of ranks, or an arithmetic run of them that costs no memory.

A program over a million ranks names "all ranks" on most tasks; `RankRange` says so in three numbers. It behaves as the tuple it stands for and equals it.

>>> RankRange(0, 8, 2) == (0, 2, 4, 6)
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

from dtir.schema.authoring import record
from dtir.schema.refinements import NonNegativeInt, PositiveInt

EXPANDED_RANKS_LIMIT = 65_536
"""`ranks` gives a plain tuple up to this length, so that `hash` and equality of short sets stay the tuple's own."""


@record("dtir.ir.rank-range")
class RankRange(Sequence[int]):
    """The ranks ``start, start + step, ...`` below `stop`."""

    start: NonNegativeInt
    stop: NonNegativeInt
    step: PositiveInt = 1

    @property
    def _range(self) -> range:
        return range(self.start, self.stop, self.step)

    def __len__(self) -> int:
        return len(self._range)

    def __iter__(self) -> Iterator[int]:
        return iter(self._range)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and value in self._range

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        found = self._range[index]
        return found if isinstance(found, int) else tuple(found)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RankRange):
            return self._range == other._range
        if isinstance(other, tuple):
            return len(other) == len(self) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return NotImplemented

    def __hash__(self) -> int:
        # Equal to the tuple's hash where both forms are in use; longer sets exist only as ranges.
        return hash(tuple(self._range)) if len(self) <= EXPANDED_RANKS_LIMIT else hash(self._range)


Ranks: TypeAlias = tuple[NonNegativeInt, ...] | RankRange
Group: TypeAlias = tuple[NonNegativeInt, ...] | RankRange


def all_ranks(count: int) -> tuple[int, ...] | RankRange:
    """The ranks ``0 .. count - 1``, as a tuple up to `EXPANDED_RANKS_LIMIT`."""
    return tuple(range(count)) if count <= EXPANDED_RANKS_LIMIT else RankRange(0, count)


def rank_set(ranks: Sequence[int]) -> frozenset[int] | RankRange:
    """Something to test membership in and to compare as a set, without expanding a range."""
    return ranks if isinstance(ranks, RankRange) else frozenset(ranks)


def same_ranks(left: Sequence[int], right: Sequence[int]) -> bool:
    """True when both hold the same ranks, in whatever order."""
    if left is right or (type(left) is type(right) and left == right):
        return True
    if isinstance(left, RankRange) and isinstance(right, RankRange):
        return set_of_range(left) == set_of_range(right)
    if (len(left) > EXPANDED_RANKS_LIMIT and isinstance(left, RankRange)) or isinstance(right, RankRange):
        return len(set(left)) == len(set(right)) and all(rank in left for rank in right)
    return set(left) == set(right)


def set_of_range(ranks: RankRange) -> range:
    return range(ranks.start, ranks.stop, ranks.step)


def highest_rank(ranks: Sequence[int]) -> int:
    """The largest rank of a non-empty set, without walking a range."""
    return ranks[-1] if isinstance(ranks, RankRange) else max(ranks)


def has_repeats(ranks: Sequence[Any]) -> bool:
    return not isinstance(ranks, RankRange) and len(set(ranks)) != len(ranks)
