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


MOST_LISTED = 1_000_000
"""Ranks that a union lists at most; a longer one must be a run."""


def union_of(sets: Sequence[tuple[int, ...] | RankRange]) -> tuple[int, ...] | RankRange | None:
    """Every rank of the sets once, in rising order; runs stay runs. None when the union is too long to list and no run."""
    largest = max(sets, key=len)
    others = [item for item in sets if item is not largest and item != largest]
    if not others or all(_within(item, largest) for item in others):
        return largest
    runs = [item for item in sets if isinstance(item, RankRange)]
    if len(runs) == len(sets) and (joined := _joined(runs)) is not None:
        return joined
    if sum(len(item) for item in sets) > MOST_LISTED:
        return None
    return tuple(sorted(set[int]().union(*sets)))


def _within(item: Sequence[int], largest: tuple[int, ...] | RankRange) -> bool:
    if isinstance(item, RankRange) and isinstance(largest, RankRange):
        ends = not len(item) or (item[0] in largest and item[-1] in largest)
        return ends and (len(item) < 2 or item.step % largest.step == 0)
    if len(item) > MOST_LISTED:
        return False
    known = largest if isinstance(largest, RankRange) else frozenset(largest)
    return all(rank in known for rank in item)


def _joined(runs: Sequence[RankRange]) -> RankRange | None:
    """Runs of one step that follow on each other, as one."""
    first, *rest = sorted(runs, key=lambda run: run.start)
    stop = first.stop
    for run in rest:
        if run.step != first.step or (run.start - first.start) % first.step or run.start > stop + first.step - 1:
            return None
        stop = max(stop, run.stop)
    return RankRange(first.start, stop, first.step)
