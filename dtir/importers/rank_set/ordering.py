"""In which order ranks issue what they do, and one order of all tasks that fits as far as there is one.

Issued events keep their order. Events that only dependencies order (Chakra) are issued in the order of the file where all
ranks get through with it; else in an order in which the dependencies alone let them get through, first with senders that
wait for their receivers, then with senders that do not; else again in the order of the file: then nothing helps, and the
verifier says who waits for whom.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dtir.importers.rank_set.events import Order, Transfer
from dtir.importers.rank_set.matching import Alone, Matched, Meeting, Passage
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, Severity


@dataclass(frozen=True, slots=True)
class Ordered:
    """Orders of everything that a set of ranks did.

    Args:
        lists: per rank the positions of its events, in issue order.
        things: numbers of all things, every one behind those that it needs, as far as that is possible.
    """

    lists: Mapping[int, Sequence[int]] = field(repr=False)
    things: Sequence[int] = field(repr=False)


def order(matched: Matched, bag: DiagnosticBag) -> Ordered:
    """The issue order of every rank, and one of all things."""
    lists = {rank: _listed(matched, rank, bag) for rank in matched.traces}
    bound = [rank for rank, trace in matched.traces.items() if trace.order is Order.DEPENDENCIES]
    if bound and not _run(matched, _chains(lists), buffered=False).free:
        needs = {rank: [event.needs for event in trace.events] for rank, trace in matched.traces.items()}
        for buffered in (False, True):
            outcome = _run(matched, needs, buffered=buffered)
            if outcome.free:
                if any(outcome.fired[rank] != lists[rank] for rank in lists):
                    _open(bag, buffered)
                lists = {rank: outcome.fired[rank] for rank in matched.traces}
                break
    return Ordered(lists, _whole(matched, lists))


def _open(bag: DiagnosticBag, buffered: bool) -> None:
    way = "in which everybody gets through" + (" while senders need not wait for their receivers" if buffered else "")
    bag.add(
        Diagnostic(
            "trace.order_open",
            f"the dependencies do not fix the order of every rank; shown is one {way}",
            ("issue",),
            Severity.INFO,
            "order communication by dependencies where a runtime must not choose",
        )
    )


def _listed(matched: Matched, rank: int, bag: DiagnosticBag) -> list[int]:
    """The events of a rank in the order of the file, each behind those that it needs."""
    trace = matched.traces[rank]
    if trace.order is Order.ISSUED:
        return list(range(len(trace.events)))
    waiting = [len(event.needs) for event in trace.events]
    users: list[list[int]] = [[] for _ in trace.events]
    late = 0
    for position, event in enumerate(trace.events):
        for needed in event.needs:
            users[needed].append(position)
            late += needed > position
    if late:
        bag.add(
            Diagnostic(
                "trace.listed_late",
                f"{trace.label}: {late} dependencies are listed behind what needs them; they are put in order",
                ("ranks", str(rank)),
                Severity.INFO,
                "nothing need be done; the dependencies say the order",
            )
        )
    ready = [position for position, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    left = [count > 0 for count in waiting]
    start = 0
    while len(found) < len(waiting):
        if not ready:
            # A circle of dependencies within one file: it is opened at its first event.
            start = next(position for position in range(start, len(left)) if left[position])
            left[start] = False
            ready.append(start)
            if not bag.report().of_code("trace.dependency_cycle"):
                bag.add(
                    Diagnostic(
                        "trace.dependency_cycle",
                        f"{trace.label}: {trace.events[start].name} ({trace.events[start].source}) depends on itself "
                        "through others; nothing can run first",
                        ("ranks", str(rank)),
                        hint="take one of the dependencies out",
                        subject=(f"rank {rank}",),
                    )
                )
        position = heapq.heappop(ready)
        found.append(position)
        for user in users[position]:
            waiting[user] -= 1
            if not waiting[user] and left[user]:
                left[user] = False
                heapq.heappush(ready, user)
    return found


def _chains(lists: Mapping[int, Sequence[int]]) -> dict[int, list[tuple[int, ...]]]:
    """What each event needs when a rank does one thing after the other."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for rank, own in lists.items():
        needs: list[tuple[int, ...]] = [()] * len(own)
        for before, after in pairwise(own):
            needs[after] = (before,)
        found[rank] = needs
    return found


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How far the ranks get: the events of each in the order in which they were over, and whether all took place."""

    fired: Mapping[int, list[int]]
    free: bool


def _run(matched: Matched, needs: Mapping[int, Sequence[Sequence[int]]], *, buffered: bool) -> _Outcome:
    """Let every rank go as far as it can (SEMANTICS 2.5: all waits are conjunctions, so that one run decides)."""
    things = matched.things
    waiting = {rank: [len(own) for own in listed] for rank, listed in needs.items()}
    users: dict[int, list[list[int]]] = {rank: [[] for _ in listed] for rank, listed in needs.items()}
    for rank, listed in needs.items():
        for position, own in enumerate(listed):
            for needed in own:
                users[rank][needed].append(position)
    missing = [_expected(matched, thing) for thing in things]
    fired: dict[int, list[int]] = {rank: [] for rank in needs}
    queue = deque((rank, position) for rank, own in waiting.items() for position, count in enumerate(own) if not count)
    total = 0

    def over(rank: int, position: int) -> None:
        nonlocal total
        total += 1
        fired[rank].append(position)
        for user in users[rank][position]:
            waiting[rank][user] -= 1
            if not waiting[rank][user]:
                queue.append((rank, user))

    while queue:
        rank, position = queue.popleft()
        number = matched.thing_of[rank][position]
        thing = things[number]
        if isinstance(thing, Alone):
            over(rank, position)
            continue
        what = matched.traces[rank].events[position].what
        early = buffered and isinstance(what, Transfer) and what.sends
        if early:
            over(rank, position)
        missing[number] -= 1
        if not missing[number]:
            for member, event in thing.parts.items():
                if not (buffered and isinstance(thing, Passage) and member == thing.source):
                    over(member, event)
    met = not any(missing[number] for number, thing in enumerate(things) if not isinstance(thing, Alone))
    return _Outcome(fired, met and total == sum(len(own) for own in waiting.values()))


def _expected(matched: Matched, thing: Meeting | Passage | Alone) -> int:
    """How many ends must come: members whose file is here and lacks the call never do; of others nothing is known."""
    match thing:
        case Alone():
            return 1
        case Passage():
            ends = (thing.source, thing.destination)
            return sum(rank in thing.parts or rank in matched.traces for rank in ends)
        case Meeting():
            return max(thing.present, len(thing.parts))


def _whole(matched: Matched, lists: Mapping[int, Sequence[int]]) -> list[int]:
    """One order of all things: those of every list one behind the other, torn open where the lists contradict each other."""
    following: list[list[int]] = [[] for _ in matched.things]
    waiting = [0] * len(matched.things)
    first = [len(matched.things)] * len(matched.things)
    for rank, own in lists.items():
        numbers = [matched.thing_of[rank][position] for position in own]
        for place, number in enumerate(numbers):
            first[number] = min(first[number], place)
        for before, after in pairwise(numbers):
            following[before].append(after)
            waiting[after] += 1
    ready = [(first[number], number) for number, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    entered = [not count for count in waiting]
    torn = deque(sorted(range(len(waiting)), key=lambda number: (first[number], number)))
    found: list[int] = []
    while len(found) < len(waiting):
        if not ready:
            while entered[torn[0]]:
                torn.popleft()
            entered[torn[0]] = True
            ready.append((first[torn[0]], torn[0]))
        _, number = heapq.heappop(ready)
        found.append(number)
        for after in following[number]:
            waiting[after] -= 1
            if not waiting[after] and not entered[after]:
                entered[after] = True
                heapq.heappush(ready, (first[after], after))
    return found
