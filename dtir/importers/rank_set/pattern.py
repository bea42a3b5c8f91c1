"""Ranks that run one program in another order than their like.

Ranks of data and tensor parallel jobs issue the same calls, each in groups of its own. A rank that has the same calls as all
others and issues two of them the other way round need not hang by itself (the groups may leave a way through); but
communicators of one device must be used in one order everywhere, or their kernels may starve each other (NCCL's user guide,
"Using multiple NCCL communicators concurrently").
"""

from __future__ import annotations

from collections import Counter, defaultdict

from dtir.importers.rank_set.events import Call
from dtir.importers.rank_set.matching import Matched, Meeting
from dtir.importers.rank_set.ordering import Ordered
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, Severity

FEWEST_RANKS = 3
"""With fewer ranks nobody can be told to be the one that differs."""


def note_pattern(matched: Matched, ordered: Ordered, bag: DiagnosticBag) -> None:
    """Say which rank departs first from the order that most ranks have."""
    orders = {rank: _order(matched, ordered, rank) for rank in matched.traces}
    if len(orders) < FEWEST_RANKS or len({frozenset(Counter(own).items()) for own in orders.values()}) > 1:
        return
    by_order: dict[tuple[tuple[str, int, int], ...], list[int]] = defaultdict(list)
    for rank, own in orders.items():
        by_order[own].append(rank)
    usual, many = max(by_order.items(), key=lambda item: len(item[1]))
    if len(by_order) == 1 or 2 * len(many) <= len(orders):
        return
    for own, ranks in by_order.items():
        if own == usual:
            continue
        place = next(place for place, (one, other) in enumerate(zip(own, usual, strict=True)) if one != other)
        bag.add(
            Diagnostic(
                "order.mismatch",
                f"rank {ranks[0]} issues {own[place][0]} before {usual[place][0]}, {len(many)} ranks with the same calls "
                f"(rank {many[0]} first) issue theirs the other way round",
                ("issue",),
                Severity.WARNING,
                "sort the issue list of every rank by one global key",
                tuple(f"rank {rank}" for rank in ranks[:32]),
            )
        )


def _order(matched: Matched, ordered: Ordered, rank: int) -> tuple[tuple[str, int, int], ...]:
    """The calls of a rank in issue order, whatever group each is of: kind, size of the group, stated bytes."""
    found: list[tuple[str, int, int]] = []
    for position in ordered.lists[rank]:
        thing = matched.things[matched.thing_of[rank][position]]
        what = matched.traces[rank].events[position].what
        if isinstance(thing, Meeting) and isinstance(what, Call):
            found.append((thing.kind.value, len(thing.members), what.size_bytes or 0))
    return tuple(found)
