"""Chrome traces: what was measured and what was planned, side by side. They open in Perfetto and chrome://tracing.

Every rank of a side is a process of the trace with two threads, 0 for compute and 1 for communication. The first side's
processes are numbered as the ranks are, those of the second stand `SIDE` higher, and every process says in its name which
side it is of ("measured rank 3", "planned rank 3"), so that the two are never taken for each other. In a collective the
wait for the last member and the transfer are slices of their own; the members of a group are tied by flow events.

Format: the Trace Event Format (public document of the Chromium project): ``X`` complete events, ``M`` names, ``s`` and
``f`` flows; times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.cost.schedule import Schedule
from dtir.cost.spans import Stream

SIDE = 1_000_000
"""Added to a rank for its process number on the second side."""

MOST_RANKS = 64
"""Ranks of a side that are drawn unless more are asked for; how many were left out stands in the trace."""

MOST_SLICES = 1_000_000
"""Slices of a side that are drawn; how many were left out stands in the trace."""

COMPUTE, COMMUNICATION = 0, 1


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that a rank does.

    Args:
        name: what people call it.
        rank: who does it.
        begin_us, end_us: on the clock of its side; of communication without the wait.
        communicates: on which thread it is drawn.
        arrived_us: when the rank came to it, where it then waited for others; None: it did not.
        args: what else to show.
        tie: slices of one side with the same tie belong together: the members of a group in one collective.
    """

    name: str
    rank: int
    begin_us: float
    end_us: float
    communicates: bool = False
    arrived_us: float | None = None
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tie: Hashable = None


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a trace.

    Args:
        name: ``measured`` or ``planned``.
        source: where its times come from.
        slices: in any order; times are shown from the first of them on.
        left_out: ranks that have slices which are not among them.
    """

    name: str
    source: str
    slices: Sequence[Slice] = field(repr=False)
    left_out: int = 0


def chrome_trace(sides: Sequence[Side], notes: Mapping[str, Any] | None = None) -> str:
    """A trace as JSON text.

    Args:
        sides: what was measured before what was planned.
        notes: further facts of the whole trace.
    """
    events: list[dict[str, Any]] = []
    others: dict[str, Any] = dict(notes or {})
    for number, side in enumerate(sides):
        offset = SIDE * number
        shown = side.slices[:MOST_SLICES]
        events += _names(sorted({item.rank for item in shown}), offset, side)
        events += _events(shown, offset, side)
        others[f"{side.name}_with"] = side.source
        others[f"{side.name}_ranks_left_out"] = side.left_out
        others[f"{side.name}_slices_left_out"] = len(side.slices) - len(shown)
    whole = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": others}
    return json.dumps(whole, allow_nan=False, separators=(",", ":")) + "\n"


def _names(ranks: Iterable[int], offset: int, side: Side) -> Iterator[dict[str, Any]]:
    for rank in ranks:
        process = offset + rank
        yield _meta(process, "process_name", {"name": f"{side.name} rank {rank}"})
        yield _meta(process, "process_labels", {"labels": side.source})
        yield _meta(process, "process_sort_index", {"sort_index": process})
        for thread, name in ((COMPUTE, "compute"), (COMMUNICATION, "communication")):
            yield {**_meta(process, "thread_name", {"name": name}), "tid": thread}


def _meta(process: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": 0, "name": name, "args": dict(arguments)}


def _events(slices: Sequence[Slice], offset: int, side: Side) -> Iterator[dict[str, Any]]:
    begun = min((item.begin_us if item.arrived_us is None else item.arrived_us for item in slices), default=0.0)
    tied: dict[Hashable, list[Slice]] = {}
    for item in slices:
        thread = COMMUNICATION if item.communicates else COMPUTE
        arguments = {**item.args, "planned": side.name == "planned"}
        common = {"ph": "X", "pid": offset + item.rank, "tid": thread}
        start_us = item.begin_us - begun
        if item.arrived_us is not None and item.arrived_us < item.begin_us:
            came_us = item.arrived_us - begun
            waited = {"cat": "wait", "name": f"wait for {item.name}", "ts": came_us, "dur": start_us - came_us}
            yield {**common, **waited, "args": arguments}
        kind = "transfer" if item.communicates else "compute"
        done = {"cat": kind, "name": item.name, "ts": start_us, "dur": item.end_us - item.begin_us}
        yield {**common, **done, "args": arguments}
        if item.tie is not None:
            tied.setdefault(item.tie, []).append(item)
    for number, members in enumerate(tied.values()):
        yield from _flows(f"{side.name}.{number}", sorted(members, key=lambda one: one.rank), offset, begun)


def _flows(name: str, members: Sequence[Slice], offset: int, begun: float) -> Iterator[dict[str, Any]]:
    """Arrows from the first member of a group to the others."""
    first = members[0]
    for other in members[1:]:
        shared = {"cat": "group", "name": first.name, "id": f"{name}.{other.rank}", "tid": COMMUNICATION}
        yield {"ph": "s", "pid": offset + first.rank, "ts": first.begin_us - begun, **shared}
        yield {"ph": "f", "bp": "e", "pid": offset + other.rank, "ts": other.begin_us - begun, **shared}


# -- a planned schedule -------------------------------------------------------------------------------------------------------


def planned_side(made: Schedule, *, most_ranks: int = MOST_RANKS) -> Side:
    """The schedule of a program as the planned side of a trace.

    Args:
        made: the schedule.
        most_ranks: how many ranks are drawn, the lowest first.
    """
    ranks = min(made.program.mesh.size, most_ranks)
    return Side("planned", made.profile.title, list(_planned(made, ranks)), made.program.mesh.size - ranks)


def _planned(made: Schedule, ranks: int) -> Iterator[Slice]:
    by_class: dict[int, list[int]] = {}
    for rank in range(ranks):
        by_class.setdefault(made.classes.of(rank), []).append(rank)
    tasks = {number: (task, index.name) for number, index, task in made.numbered()}
    groups = _GroupFinder(ranks)
    spans = made.spans
    for place in range(len(spans)):
        stream = spans.stream[place]
        if stream == Stream.BOTH and spans.end[place] == spans.start[place]:
            continue
        number = spans.task[place]
        task, region = tasks[number]
        name = task.name or str(task.operation)
        args: dict[str, Any] = {"task": str(task.id), "operation": str(task.operation)}
        if spans.times[place] > 1:
            args["stands_for_executions"] = str(spans.times[place])
        if region:
            args["region"] = region
        exchange = made.exchanges.get(number)
        if exchange is not None:
            args.update(kind=exchange.kind, bytes=exchange.size_bytes, model=exchange.price.model)
        else:
            args["kind"] = "local" if stream == Stream.COMPUTE else "control"
        arrivals = spans.arrivals.get(place)
        for position, one in enumerate(spans.classes[place]):
            arrived = None if arrivals is None else 1e6 * arrivals[position]
            for rank in by_class.get(one, ()):
                members, tie = groups.of(number, exchange.groups, rank) if exchange is not None else (None, None)
                yield Slice(
                    f"further rounds of {name}" if stream == Stream.BOTH else name,
                    rank,
                    1e6 * spans.start[place],
                    1e6 * spans.end[place],
                    stream == Stream.COMMUNICATION,
                    arrived,
                    args if members is None else {**args, "group": members},
                    # Rounds of a task follow each other: what starts together is one of them.
                    None if tie is None else (number, tie, spans.start[place]),
                )


class _GroupFinder:
    """The group of a rank in the groups of a task."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._known: dict[int, dict[int, tuple[list[int], int]]] = {}

    def of(self, task: int, groups: Iterable[Sequence[int]], rank: int) -> tuple[list[int] | None, int | None]:
        """Members and number of the group that holds a rank; a rank of several pairs is shown with the first."""
        if task not in self._known:
            found: dict[int, tuple[list[int], int]] = {}
            for number, group in enumerate(groups):
                drawn = [member for member in group if member < self._ranks]
                if drawn:
                    shown = list(group[:LISTED])
                    for member in drawn:
                        found.setdefault(member, (shown, number))
            self._known[task] = found
        return self._known[task].get(rank, (None, None))


LISTED = 64
"""Members of a group that are written out with every slice of it."""
