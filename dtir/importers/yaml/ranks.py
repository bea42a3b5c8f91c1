"""Rank sets of a document: lists and runs, and unions that never grow beyond what the document names."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.importers.yaml.document import Entries
from dtir.importers.yaml.fields import Fields
from dtir.ir import RankRange


def read_ranks(fields: Fields, key: str) -> tuple[int, ...] | RankRange | None:
    """A rank set: a list, or ``{start, stop, step}`` for a run that is too long to list."""
    node = fields.get(key)
    if not isinstance(node, Entries):
        found = fields.integers(key)
        return tuple(found) if found is not None else None
    own = Fields(node, (*fields.path, key), fields.problems)
    own.refuse({"start", "stop", "step"})
    start, stop, step = own.integer("start"), own.integer("stop"), own.integer("step", least=1)
    if stop is None:
        if not own.has("stop"):
            own.missing("stop", "the rank behind the last")
        return None
    return RankRange(start or 0, stop, step or 1)


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
