"""Unions of rank sets that never grow beyond what the document names."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.ir import RankRange


def union_of(sets: Sequence[tuple[int, ...] | RankRange]) -> tuple[int, ...] | RankRange:
    """Every rank of the sets once, in rising order; a range that holds the others stays a range."""
    largest = max(sets, key=len)
    if all(item is largest or item == largest for item in sets):
        return largest
    if isinstance(largest, RankRange) and all(rank in largest for item in sets if item is not largest for rank in item):
        return largest
    if not isinstance(largest, RankRange) and set(largest).issuperset(rank for item in sets for rank in item):
        return largest
    return tuple(sorted(set[int]().union(*sets)))
