"""Groups as classes meet in them: one meeting for all groups whose members are of the same classes at the same price."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dtir.cost.classes import Pattern, RankClasses
from dtir.cost.exchange import Exchange
from dtir.cost.price import NONE


@dataclass(frozen=True, slots=True)
class Meeting:
    """Groups that are alike.

    Args:
        classes: of the members, ascending.
        ranks: for every class one member, all of one group.
        seconds: what each group pays; 0 where that is not known (see `Exchange.price`).
        price: position of the price.
        count: how many groups there are.
    """

    classes: tuple[int, ...]
    ranks: tuple[int, ...]
    seconds: float
    price: int
    count: int


@dataclass(frozen=True, slots=True)
class Meetings:
    """All meetings of one communication task; groups of one rank, which do nothing, are left out."""

    exchange: Exchange
    all: tuple[Meeting, ...] = field(default=())


class MeetingMaker:
    """Meetings of one program; equal groups are looked at once."""

    def __init__(self, classes: RankClasses) -> None:
        self._classes = classes
        self._known: dict[tuple[int, bytes, bool], list[tuple[tuple[int, ...], tuple[int, ...], int, int]]] = {}

    def of(self, exchange: Exchange) -> Meetings:
        """The meetings of a communication task."""
        found: list[Meeting] = []
        for classes, ranks, price, count in self._alike(exchange):
            cost = exchange.prices[price]
            if cost.model == NONE and cost.seconds == 0.0:
                continue
            found.append(Meeting(classes, ranks, cost.seconds or 0.0, price, count))
        return Meetings(exchange, tuple(found))

    def _alike(self, exchange: Exchange) -> list[tuple[tuple[int, ...], tuple[int, ...], int, int]]:
        if not len(exchange.groups):
            return []
        if self._classes.count == 1 and exchange.place is None:
            return [((0,), (int(exchange.groups[0][0]),), 0, len(exchange.groups))]
        place = b"" if exchange.place is None else exchange.place.tobytes()
        # By identity: exchanges keep their groups alive.
        key = (id(exchange.groups), place, exchange.paired)
        if key not in self._known:
            self._known[key] = self._count(exchange)
        return self._known[key]

    def _count(self, exchange: Exchange) -> list[tuple[tuple[int, ...], tuple[int, ...], int, int]]:
        pattern = exchange.pattern()
        if isinstance(pattern, Pattern):
            members, starts, prices = pattern.members, pattern.starts, pattern.price
        else:
            members = np.stack([pattern.source, pattern.destination], axis=1).reshape(-1)
            starts, prices = np.arange(len(pattern.source), dtype=np.int64) * 2, pattern.price
        colours = self._classes.colours(members).tolist()
        ranks = members.tolist()
        bounds = [*starts.tolist(), len(ranks)]
        found: dict[tuple[tuple[int, ...], int], tuple[tuple[int, ...], int]] = {}
        for number, price in enumerate(prices.tolist()):
            first, last = bounds[number], bounds[number + 1]
            mine: dict[int, int] = {}
            for position in range(first, last):
                mine.setdefault(colours[position], ranks[position])
            classes = tuple(sorted(mine))
            known = found.get((classes, price))
            found[classes, price] = (
                (tuple(mine[one] for one in classes), 1) if known is None else (known[0], known[1] + 1)
            )
        return [(classes, ranks, price, count) for (classes, price), (ranks, count) in found.items() if classes]
