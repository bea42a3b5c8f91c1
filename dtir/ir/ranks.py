"""Rank sets: tuples of ranks, or an arithmetic run of them that costs no memory.

A program over a million ranks names "all ranks" on most tasks; `RankRange` says so in three numbers. It behaves as the
tuple it stands for, and up to `EXPANDED_RANKS_LIMIT` ranks it equals it.

>>> RankRange(0, 8, 2) == (0, 2, 4, 6)
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast, overload

from dtir.schema.authoring import record
from dtir.schema.refinements import NonNegativeInt, PositiveInt

EXPANDED_RANKS_LIMIT = 65_536
"""Up to this length a run and the tuple of its ranks are the same thing; beyond it only one of the two is in use."""

LONGEST_RUN = 2**63 - 1


@record("dtir.ir.rank-range")
class RankRange(Sequence[int]):
    """The ranks ``start, start + step, ...`` below `stop`.

    Equality is that of the ranks. A tuple of more than `EXPANDED_RANKS_LIMIT` ranks is never equal to a run: its hash
    could only be found by walking the run.

    Raises:
        ValueError: more than 2**63 - 1 ranks.
    """

    start: NonNegativeInt
    stop: NonNegativeInt
    step: PositiveInt = 1

    def __post_init__(self) -> None:
        if (self.stop - self.start + self.step - 1) // self.step > LONGEST_RUN:
            raise ValueError(f"a run holds at most {LONGEST_RUN} ranks")

    @property
    def as_range(self) -> range:
        """The same ranks as a `range`."""
        return range(self.start, self.stop, self.step)

    def __len__(self) -> int:
        return len(self.as_range)

    def __iter__(self) -> Iterator[int]:
        return iter(self.as_range)

    def __contains__(self, value: object) -> bool:
        return type(value) is int and value in self.as_range

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        found = self.as_range[index]
        return found if isinstance(found, int) else tuple(found)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RankRange):
            return self.as_range == other.as_range
        if not isinstance(other, tuple):
            return NotImplemented
        ranks = cast("tuple[object, ...]", other)
        return (
            len(ranks) == len(self) <= EXPANDED_RANKS_LIMIT
            and tuple(self.as_range) == ranks
            and all(type(rank) is int for rank in ranks)
        )

    def __hash__(self) -> int:
        return hash(tuple(self.as_range)) if len(self) <= EXPANDED_RANKS_LIMIT else hash(self.as_range)

    def plain_form(self) -> tuple[int, ...] | RankRange:
        """The tuple that a short run stands for; a long one has no other form."""
        return tuple(self.as_range) if len(self) <= EXPANDED_RANKS_LIMIT else self


Ranks: TypeAlias = tuple[NonNegativeInt, ...] | RankRange
Group: TypeAlias = tuple[NonNegativeInt, ...] | RankRange


def all_ranks(count: int) -> tuple[int, ...] | RankRange:
    """The ranks ``0 .. count - 1``, as a tuple up to `EXPANDED_RANKS_LIMIT`."""
    return tuple(range(count)) if count <= EXPANDED_RANKS_LIMIT else RankRange(0, count)


def rank_set(ranks: Sequence[int]) -> frozenset[int] | RankRange:
    """Something to test membership in and to compare as a set, without expanding a range."""
    return ranks if isinstance(ranks, RankRange) else frozenset(ranks)


def same_ranks(left: Sequence[int], right: Sequence[int]) -> bool:
    """True when both hold the same ranks, in whatever order; a run is never walked."""
    if left is right:
        return True
    if isinstance(left, RankRange) and isinstance(right, RankRange):
        return left.as_range == right.as_range
    if isinstance(left, RankRange):
        return _is_run(left, right)
    if isinstance(right, RankRange):
        return _is_run(right, left)
    return left == right or set(left) == set(right)


def _is_run(run: RankRange, ranks: Sequence[int]) -> bool:
    distinct = set(ranks)
    return len(distinct) == len(run) and all(rank in run for rank in distinct)


def set_of_range(ranks: RankRange) -> range:
    """The ranks of a run as a `range`."""
    return ranks.as_range


def highest_rank(ranks: Sequence[int]) -> int:
    """The largest rank of a non-empty set, without walking a range."""
    return ranks[-1] if isinstance(ranks, RankRange) else max(ranks)


def rank_text(rank: int) -> str:
    """A number for a message; one of thousands of digits (which Python refuses to print) by its magnitude."""
    return str(rank) if rank.bit_length() < 4096 else f"of about 2**{rank.bit_length() - 1}"


def has_repeats(ranks: Sequence[Any]) -> bool:
    """True when something occurs twice."""
    return not isinstance(ranks, RankRange) and len(set(ranks)) != len(ranks)


# -- partitions --------------------------------------------------------------------------------------------------

_WALKED_RANKS = 1 << 20
_PRIME = 2**127 - 1
_POINTS = (3, 65_537, 2_147_483_647)


def groups_partition(groups: Sequence[Sequence[int]], members: Sequence[int]) -> bool:
    """True when every member is in exactly one group, once, and the groups hold nothing else.

    Up to about a million ranks are compared one by one. Larger groups are runs; the formal polynomials ``sum(z**rank)``
    of both sides are then compared modulo the prime 2**127 - 1 at three points, at a cost that does not depend on the
    length of a run; sets of ranks below 2**63 that differ have different values there for all practical purposes.
    """
    total = sum(len(group) for group in groups)
    if total != len(members):
        return False
    if total <= _WALKED_RANKS:
        return {rank for group in groups for rank in group} == set(members)
    return all(
        sum(_polynomial(group, point) for group in groups) % _PRIME == _polynomial(members, point) for point in _POINTS
    )


def _polynomial(ranks: Sequence[int], point: int) -> int:
    if not isinstance(ranks, RankRange):
        return sum(pow(point, rank, _PRIME) for rank in ranks) % _PRIME
    # A geometric series: z**start * (ratio**count - 1) / (ratio - 1), where ratio = z**step.
    ratio = pow(point, ranks.step, _PRIME)
    if ratio == 1:
        return pow(point, ranks.start, _PRIME) * len(ranks) % _PRIME
    series = (pow(ratio, len(ranks), _PRIME) - 1) * pow(ratio - 1, -1, _PRIME)
    return pow(point, ranks.start, _PRIME) * series % _PRIME
