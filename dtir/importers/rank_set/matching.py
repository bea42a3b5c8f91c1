"""Which calls of different ranks meet: calls of one group by their number, sends and receives by their order.

A call is numbered by the file (flight recorders) or by its place among the calls of its group. Where ranks disagree about
the kind of a number, the calls from there on are matched by kind instead: that the orders differ is then visible as two
collectives that cross, and not as a row of calls that nobody else makes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dtir.importers.rank_set.events import Call, CallKind, RankTrace, Transfer
from dtir.importers.rank_set.groups import Groups
from dtir.ir.ranks import Ranks, rank_set
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, Severity


@dataclass(frozen=True, slots=True)
class Meeting:
    """One collective.

    Args:
        kind: what it does.
        group: the group's name; None when the files do not say.
        members: the group, in its own order.
        parts: per rank that calls it the position of its event.
        present: how many members have a file in the set.
        before: members that issued it before their files begin: a recorder keeps the last calls only.
    """

    kind: CallKind
    group: str | None
    members: Ranks
    parts: Mapping[int, int]
    present: int
    before: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Passage:
    """One transfer.

    Args:
        source, destination: ranks.
        tag: as the files say.
        parts: per rank that takes part the position of its event.
    """

    source: int
    destination: int
    tag: str
    parts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Alone:
    """What one rank does without others."""

    rank: int
    event: int


Thing: TypeAlias = Meeting | Passage | Alone


@dataclass(frozen=True, slots=True)
class Matched:
    """Everything that a set of ranks did.

    Args:
        traces: the files, by rank.
        world: ranks of the program.
        things: collectives, transfers and local work, in no particular order.
        thing_of: per rank the number of the thing that each of its events became.
    """

    traces: Mapping[int, RankTrace]
    world: int
    things: Sequence[Thing] = field(repr=False)
    thing_of: Mapping[int, Sequence[int]] = field(repr=False)


def match(traces: Mapping[int, RankTrace], groups: Groups, bag: DiagnosticBag) -> Matched:
    """What the events of several ranks are together.

    Args:
        traces: the files, by rank.
        groups: who belongs to which process group.
        bag: takes what is found.
    """
    things: list[Thing] = [*_meetings(traces, groups, bag), *_passages(traces, groups, bag)]
    taken: dict[int, set[int]] = defaultdict(set)
    for thing in things:
        if not isinstance(thing, Alone):
            for rank, event in thing.parts.items():
                taken[rank].add(event)
    things += [
        Alone(rank, event)
        for rank, trace in traces.items()
        for event in range(len(trace.events))
        if event not in taken[rank]
    ]
    thing_of = {rank: [-1] * len(trace.events) for rank, trace in traces.items()}
    for number, thing in enumerate(things):
        parts = {thing.rank: thing.event} if isinstance(thing, Alone) else thing.parts
        for rank, event in parts.items():
            thing_of[rank][event] = number
    return Matched(traces, groups.world, things, thing_of)


# -- collectives -----------------------------------------------------------------------------------------------------------

_Calls: TypeAlias = dict[int, list[tuple[tuple[int, int], int, CallKind]]]
"""Per rank the calls of one group: their number (and which one of this number), position and kind."""


def _meetings(traces: Mapping[int, RankTrace], groups: Groups, bag: DiagnosticBag) -> Iterator[Meeting]:
    by_group: dict[str | None, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, trace in traces.items():
        for position, event in enumerate(trace.events):
            if isinstance(event.what, Call):
                by_group[groups.name_of(trace, event.what)][rank].append(position)
    for name, by_rank in by_group.items():
        calls = _numbered(traces, by_rank)
        members = groups.members(name, sorted(by_rank), _size_hint(traces, by_rank), bag)
        known = rank_set(members)
        present = sum(rank in known for rank in traces)
        begins = {rank: own[0][0] for rank, own in calls.items() if own}
        cut = 0
        for kind, parts, number in _buckets(calls, name, bag):
            # Numbers count every call of the group: a rank whose first one is higher has made the lower ones.
            before = frozenset(rank for rank, first in begins.items() if number is not None and first > number)
            cut += bool(before)
            yield Meeting(kind, name, members, parts, present - len(before), before)
        if cut:
            bag.add(
                Diagnostic(
                    "trace.window",
                    f"{cut} calls of process group {name or 'of all ranks'!r} lie before the first call that other files have: "
                    "these ranks are taken to have issued them",
                    ("groups", name or "default"),
                    Severity.INFO,
                    "let recorders keep more calls",
                )
            )


def _numbered(traces: Mapping[int, RankTrace], by_rank: Mapping[int, Sequence[int]]) -> _Calls:
    whats = {rank: [traces[rank].events[position].what for position in own] for rank, own in by_rank.items()}
    stated = all(isinstance(what, Call) and what.sequence is not None for own in whats.values() for what in own)
    found: _Calls = {}
    for rank, positions in by_rank.items():
        seen: dict[int, int] = defaultdict(int)
        found[rank] = []
        for place, (position, what) in enumerate(zip(positions, whats[rank], strict=True)):
            assert isinstance(what, Call)
            number = what.sequence if stated and what.sequence is not None else place
            found[rank].append(((number, seen[number]), position, what.kind))
            seen[number] += 1
    return found


def _buckets(
    calls: _Calls, name: str | None, bag: DiagnosticBag
) -> Iterator[tuple[CallKind, dict[int, int], tuple[int, int] | None]]:
    """Kind, calls by rank, and number of every collective; without a number where kinds were matched instead."""
    kinds: dict[tuple[int, int], dict[CallKind, int]] = defaultdict(dict)
    for rank, own in calls.items():
        for number, _, kind in own:
            kinds[number].setdefault(kind, rank)
    torn = min((number for number, known in kinds.items() if len(known) > 1), default=None)
    if torn is not None:
        shown = ", ".join(f"rank {rank} calls {kind.value}" for kind, rank in kinds[torn].items())
        bag.add(
            Diagnostic(
                "trace.kinds_differ",
                f"call {torn[0]} of process group {name or 'of all ranks'!r} is not one collective: {shown}",
                ("groups", name or "default"),
                Severity.WARNING,
                "calls from there on are matched by kind; verify says who waits for whom",
                tuple(f"rank {rank}" for rank in kinds[torn].values()),
            )
        )
    buckets: dict[Hashable, dict[int, int]] = {}
    kind_of: dict[Hashable, CallKind] = {}
    for rank, own in calls.items():
        counted: dict[CallKind, int] = defaultdict(int)
        for number, position, kind in own:
            key: Hashable = number
            if torn is not None and number >= torn:
                key = (kind, counted[kind])
                counted[kind] += 1
            buckets.setdefault(key, {})[rank] = position
            kind_of[key] = kind
    numbers: dict[Hashable, tuple[int, int]] = {item: item for item in kinds if torn is None or item < torn}
    for key, parts in buckets.items():
        yield kind_of[key], parts, numbers.get(key)


def _size_hint(traces: Mapping[int, RankTrace], by_rank: Mapping[int, Sequence[int]]) -> int | None:
    """Members of a group as its calls tell: stated, or how many times the operand the result of a gather is."""
    for rank, positions in by_rank.items():
        for position in positions:
            what = traces[rank].events[position].what
            if isinstance(what, Call) and (size := _ratio(what)):
                return size
    return None


def _ratio(call: Call) -> int | None:
    if call.group_size:
        return call.group_size
    if call.operand is None or call.result is None or call.operand.dtype != call.result.dtype:
        return None
    small, large = _elements(call.operand.shape), _elements(call.result.shape)
    if call.kind is CallKind.REDUCE_SCATTER:
        small, large = large, small
    elif call.kind is not CallKind.ALL_GATHER:
        return None
    # A result of the operand's own size says nothing: lists of one tensor are printed like that.
    return large // small if small and large > small and large % small == 0 else None


def _elements(shape: Sequence[int]) -> int:
    found = 1
    for extent in shape:
        found *= extent
    return found


# -- transfers -------------------------------------------------------------------------------------------------------------


def _passages(traces: Mapping[int, RankTrace], groups: Groups, bag: DiagnosticBag) -> Iterator[Passage | Alone]:
    ends: dict[tuple[int, int, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    loose: list[str] = []
    for rank, trace in traces.items():
        for position, event in enumerate(trace.events):
            what = event.what
            if not isinstance(what, Transfer):
                continue
            peer = groups.rank_of(trace, what.group, what.peer)
            if peer is None or peer == rank:
                loose.append(f"{event.name} ({event.source}) of rank {rank}")
                continue
            source, destination = (rank, peer) if what.sends else (peer, rank)
            ends[source, destination, what.tag][0 if what.sends else 1].append(position)
    if loose:
        bag.add(
            Diagnostic(
                "trace.peer_unknown",
                f"{len(loose)} sends or receives name no other rank, {loose[0]} first; they are shown as local work",
                ("events",),
                Severity.WARNING,
                "record the peer of every send and receive",
            )
        )
    for (source, destination, tag), (sends, recvs) in ends.items():
        for place in range(max(len(sends), len(recvs))):
            parts: dict[int, int] = {}
            if place < len(sends):
                parts[source] = sends[place]
            if place < len(recvs):
                parts[destination] = recvs[place]
            yield Passage(source, destination, tag, parts)
