"""Chrome traces: the planned schedule, and beside it a measured run where there is a record of one. They open in Perfetto.

Every rank is a process of the trace with two threads, 0 for compute and 1 for communication. Planned ranks are the processes
`rank` under the name "planned rank 3", measured ones stand behind `MEASURED` under "measured rank 3", so that the two are
never taken for each other. Groups of a collective are tied by flow events.

Format: the Trace Event Format (public document of the Chromium project): ``X`` complete events, ``M`` names, ``s`` and
``f`` flows; times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.cost.schedule import Schedule
from dtir.cost.spans import Stream

MEASURED = 1_000_000_000
"""Added to a rank for the process number of its measured side."""

MOST_RANKS = 64
"""Ranks that are drawn unless more are asked for; how many were left out stands in the trace."""

COMPUTE, COMMUNICATION = 0, 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured step.

    Args:
        name: what people call it.
        rank: who ran it.
        start_s, end_s: of the record's clock.
        communicates: on which thread it is drawn.
        details: what else to show.
    """

    name: str
    rank: int
    start_s: float
    end_s: float
    communicates: bool = True
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


def chrome_trace(made: Schedule | None, measured: Sequence[Measured] = (), *, most_ranks: int = MOST_RANKS) -> str:
    """A trace as JSON text.

    Args:
        made: the planned schedule; None: there is none.
        measured: steps of a run; times are shown from the first of them on.
        most_ranks: how many ranks of each side are drawn, the lowest first.
    """
    events: list[dict[str, Any]] = []
    notes: dict[str, Any] = {}
    if made is not None:
        ranks = min(made.program.mesh.size, most_ranks)
        events += _names(range(ranks), 0, "planned", made.profile.title)
        events += _planned(made, ranks)
        notes["planned_with"] = made.profile.title
        notes["planned_ranks_left_out"] = made.program.mesh.size - ranks
    if measured:
        known = sorted({item.rank for item in measured})
        kept = set(known[:most_ranks])
        events += _names(sorted(kept), MEASURED, "measured", "a run record")
        events += _measured([item for item in measured if item.rank in kept])
        notes["measured_ranks_left_out"] = len(known) - len(kept)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": notes}, allow_nan=False) + "\n"


def _names(ranks: Iterable[int], offset: int, side: str, source: str) -> Iterator[dict[str, Any]]:
    for rank in ranks:
        process = offset + rank
        yield _meta(process, "process_name", {"name": f"{side} rank {rank}"})
        yield _meta(process, "process_labels", {"labels": source})
        yield _meta(process, "process_sort_index", {"sort_index": process})
        for thread, name in ((COMPUTE, "compute"), (COMMUNICATION, "communication")):
            yield {**_meta(process, "thread_name", {"name": name}), "tid": thread}


def _meta(process: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": 0, "name": name, "args": dict(arguments)}


def _planned(made: Schedule, ranks: int) -> Iterator[dict[str, Any]]:
    by_class: dict[int, list[int]] = {}
    for rank in range(ranks):
        by_class.setdefault(made.classes.of(rank), []).append(rank)
    tasks = {number: (task, index.name) for number, index, task in made.numbered()}
    spans = made.spans
    for place in range(len(spans)):
        stream, times = spans.stream[place], spans.times[place]
        begin_s, seconds = spans.start[place], spans.end[place] - spans.start[place]
        if stream == Stream.BOTH and seconds == 0:
            continue
        task, region = tasks[spans.task[place]]
        name = task.name or str(task.operation)
        arguments: dict[str, Any] = {"task": str(task.id), "operation": str(task.operation), "planned": True}
        if times > 1:
            arguments["stands_for_executions"] = str(times)
        if region:
            arguments["region"] = region
        if stream == Stream.BOTH:
            name = f"further rounds of {name}"
        thread = COMMUNICATION if stream == Stream.COMMUNICATION else COMPUTE
        here = [rank for one in spans.classes[place] for rank in by_class.get(one, ())]
        arrivals = spans.arrivals.get(place)
        for one, position in zip(spans.classes[place], range(len(spans.classes[place])), strict=True):
            for rank in by_class.get(one, ()):
                waited = {} if arrivals is None else {"waited_us": 1e6 * (begin_s - arrivals[position])}
                yield _event(rank, thread, name, begin_s, seconds, {**arguments, **waited})
        if thread == COMMUNICATION and len(here) > 1 and len(spans.classes[place]) > 1:
            yield from _flow(place, here, name, begin_s)


def _event(
    process: int, thread: int, name: str, begin_s: float, seconds: float, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": name,
        "ts": begin_s * 1e6,
        "dur": seconds * 1e6,
        "args": dict(arguments),
    }


def _flow(number: int, ranks: Sequence[int], name: str, begin_s: float) -> Iterator[dict[str, Any]]:
    """Arrows from the first member of a group to the others."""
    first, *others = ranks
    for rank in others:
        shared = {"cat": "group", "name": name, "id": f"{number}.{rank}", "ts": begin_s * 1e6, "tid": COMMUNICATION}
        yield {"ph": "s", "pid": first, **shared}
        yield {"ph": "f", "bp": "e", "pid": rank, **shared}


def _measured(items: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    begun = min(item.start_s for item in items)
    for item in items:
        thread = COMMUNICATION if item.communicates else COMPUTE
        yield _event(
            MEASURED + item.rank,
            thread,
            item.name,
            item.start_s - begun,
            item.end_s - item.start_s,
            {**item.details, "planned": False},
        )
