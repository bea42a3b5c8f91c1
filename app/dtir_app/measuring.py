"""The measured side of a program: a run record, as lanes that pictures are made of and as times by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from dtir.execute.record import Columns, RunRecord
from dtir_app.frames.lanes import EMPTY, Floats, Lane, make_lane
from dtir_app.store import Store
from dtir_app.text import plural

ALL_RANKS = -1
"""The rank of records that stand for all ranks of one process together."""

APART = 10
"""Ranks whose first steps lie this many times the length of a run apart have no common clock."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A run.

    Args:
        key: what the explorer knows it by.
        label: back end, machine and when, for people.
        record: the record.
        repetition: the one that lanes show, the median by elapsed time.
        elapsed_s: how long that one took.
        whole: one process held all ranks: its times are not those of single ranks.
        compute, communication: lanes by rank.
        local_known: whether local work was recorded, too.
        p50_s, p95_s, least_s, wait_s, noise_s: of communication, by task, of one execution; NaN where nothing was recorded.
        samples: how many executions they come from.
        tasks_of_steps: task by index of a step.
        processes: how many processes it ran in.
        process_of: the process of every rank.
        notes: what the pictures leave open.
    """

    key: str
    label: str
    record: RunRecord = field(repr=False)
    repetition: int
    elapsed_s: float
    whole: bool
    compute: Mapping[int, Lane] = field(repr=False)
    communication: Mapping[int, Lane] = field(repr=False)
    local_known: bool
    p50_s: Floats = field(repr=False)
    p95_s: Floats = field(repr=False)
    least_s: Floats = field(repr=False)
    wait_s: Floats = field(repr=False)
    noise_s: Floats = field(repr=False)
    samples: Mapping[int, int] = field(repr=False)
    tasks_of_steps: Mapping[int, int] = field(repr=False)
    processes: int
    process_of: tuple[int, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    def lane(self, stream: int, rank: int) -> Lane | None:
        """The lane of a rank, 0 compute or 1 communication; None where it was not recorded."""
        lanes = self.communication if stream else self.compute
        found = lanes.get(ALL_RANKS if self.whole else rank)
        if found is None and ((stream and self.communication) or (not stream and self.local_known)):
            return EMPTY
        return found


def digest_of(record: RunRecord) -> str:
    """The digest of the program that was run."""
    return str(record.program.get("digest", ""))


def run_label(record: RunRecord, when: str) -> str:
    """``mpi in 4 processes, Linux 6.1, 2 CPUs, today 12:30``."""
    environment, binding = record.environment, record.binding
    name = str(record.backend.get("name", "?"))
    processes = binding.get("processes", 1)
    where = f"{name} in {plural(processes, 'process', 'processes')}" if isinstance(processes, int) else name
    system = str(environment.get("system", "")).split("-")[0]
    cpus = environment.get("cpus")
    parts = [where, system, plural(cpus, "CPU") if isinstance(cpus, int) else "", when]
    return ", ".join(part for part in parts if part)


def make_measured(store: Store, record: RunRecord, *, key: str, when: str = "") -> Measured:
    """The measured side that a record gives; its digest was compared before.

    Args:
        when: of the run or of its file, for people.
    """
    task_of = _tasks(store, record)
    elapsed = [int(item) for item in record.totals.get("elapsed_ns", [])]
    repetition = _median_place(elapsed)
    kinds = {entry.index: entry.kind for entry in record.steps}
    groups = _group_of(record)
    whole = all(rank is None for rank in record.records.rank)
    begun_ns, aligned = _begun(record, repetition)
    communication = _lanes(record.records, task_of, repetition, begun_ns, kinds, groups)
    compute = _lanes(record.local_records, task_of, repetition, begun_ns, kinds, {})
    last_s = max(
        (float(lane.latest_s[-1]) for lane in (*communication.values(), *compute.values()) if len(lane)), default=0.0
    )
    processes = record.binding.get("processes", 1)
    processes = processes if isinstance(processes, int) else 1
    seats = sorted(
        (item for item in record.binding.get("ranks", ()) if isinstance(item, Mapping)), key=lambda item: item["rank"]
    )
    times = _times(store, record, task_of, groups)
    return Measured(
        key=key,
        label=run_label(record, when),
        record=record,
        repetition=repetition,
        elapsed_s=last_s,
        whole=whole and processes == 1,
        compute=compute,
        communication=communication,
        local_known=bool(len(record.local_records)),
        **times,
        tasks_of_steps=task_of,
        processes=processes,
        process_of=tuple(int(item["process"]) for item in seats),
        notes=tuple(_notes(record, len(elapsed), repetition, whole, aligned)),
    )


def _begun(record: RunRecord, repetition: int) -> tuple[Callable[[int | None], int], bool]:
    """When a repetition began for a rank, and whether all ranks share that moment.

    Clocks of different machines begin anywhere: where the first starts of ranks lie much further apart than the whole
    repetition lasted, there is no common clock, and none is made up.
    """
    first: dict[int | None, int] = {}
    last: dict[int | None, int] = {}
    for columns in (record.records, record.local_records):
        for rank, turn, start, end in zip(
            columns.rank, columns.repetition, columns.start_ns, columns.end_ns, strict=True
        ):
            if turn == repetition:
                first[rank] = min(first.get(rank, start), start)
                last[rank] = max(last.get(rank, end), end)
    if not first:
        return (lambda _: 0), True
    longest = max(last[rank] - first[rank] for rank in first)
    begin = min(first.values())
    if max(first.values()) - begin > APART * max(longest, 1):
        return (lambda rank: first.get(rank, 0)), False
    return (lambda _: begin), True


def _tasks(store: Store, record: RunRecord) -> dict[int, int]:
    """Task by index of a step."""
    found: dict[int, int] = {}
    for entry in record.steps:
        task = store.task_index.get(entry.task.partition(":")[2] or entry.task, -1)
        if task >= 0:
            found[entry.index] = task
    return found


def _median_place(elapsed_ns: Sequence[int]) -> int:
    if not elapsed_ns:
        return 0
    middle = median(elapsed_ns)
    return min(range(len(elapsed_ns)), key=lambda place: abs(elapsed_ns[place] - middle))


def _group_of(record: RunRecord) -> dict[int, dict[int, int]]:
    """By index of a step, the number of each rank's group; steps whose groups are not stated are left out."""
    sets: dict[int, dict[int, int]] = {}
    found: dict[int, dict[int, int]] = {}
    for entry in record.steps:
        if 0 <= entry.groups < len(record.group_sets):
            if entry.groups not in sets:
                groups = record.group_sets[entry.groups]
                sets[entry.groups] = {rank: number for number, group in enumerate(groups) for rank in group}
            found[entry.index] = sets[entry.groups]
    return found


def _lanes(
    columns: Columns,
    task_of: Mapping[int, int],
    repetition: int,
    begun_ns: Callable[[int | None], int],
    kinds: Mapping[int, str],
    groups: Mapping[int, Mapping[int, int]],
) -> dict[int, Lane]:
    """Lanes by rank of one repetition. A rank waits from its own start to that of the last of its group."""
    made: dict[int, list[tuple[float, float, int, float]]] = {}
    latest = _last_starts(columns, repetition, groups)
    turns: dict[tuple[int, int], int] = {}
    for step, rank, turn, start, end in zip(
        columns.step, columns.rank, columns.repetition, columns.start_ns, columns.end_ns, strict=True
    ):
        if turn != repetition or step not in task_of or kinds[step] not in ("local", "exchange", "move"):
            continue
        who = ALL_RANKS if rank is None else rank
        begins = start
        if rank is not None and step in groups:
            count = turns.get((step, rank), 0)
            turns[step, rank] = count + 1
            begins = min(latest.get((step, groups[step].get(rank, -1), count), start), end)
        zero = begun_ns(rank)
        bar = (begins - zero) / 1e9, (end - zero) / 1e9, task_of[step], (start - zero) / 1e9
        made.setdefault(who, []).append(bar)
    return {
        who: make_lane([b[0] for b in bars], [b[1] for b in bars], [b[2] for b in bars], [b[3] for b in bars])
        for who, bars in made.items()
    }


def _last_starts(
    columns: Columns, repetition: int, groups: Mapping[int, Mapping[int, int]]
) -> dict[tuple[int, int, int], int]:
    """By step, group and execution, when its last rank came."""
    turns: dict[tuple[int, int], int] = {}
    latest: dict[tuple[int, int, int], int] = {}
    for step, rank, turn, start in zip(columns.step, columns.rank, columns.repetition, columns.start_ns, strict=True):
        if rank is None or turn != repetition or step not in groups:
            continue
        count = turns.get((step, rank), 0)
        turns[step, rank] = count + 1
        key = (step, groups[step].get(rank, -1), count)
        latest[key] = max(latest.get(key, start), start)
    return latest


def _times(
    store: Store, record: RunRecord, task_of: Mapping[int, int], groups: Mapping[int, Mapping[int, int]]
) -> dict[str, object]:
    """Times of communication by task over all repetitions: from the last start of a group to its last end."""
    columns = record.records
    turns: dict[tuple[int, int | None], int] = {}
    meetings: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for step, rank, start, end in zip(columns.step, columns.rank, columns.start_ns, columns.end_ns, strict=True):
        count = turns.get((step, rank), 0)
        turns[step, rank] = count + 1
        group = groups.get(step, {}).get(rank, -1) if rank is not None else -1
        meetings.setdefault((step, group, count), []).append((start, end))
    durations: dict[int, list[float]] = {}
    waits: dict[int, list[float]] = {}
    for (step, _, _), members in meetings.items():
        if step not in task_of:
            continue
        last = max(start for start, _ in members)
        durations.setdefault(task_of[step], []).append(max(0, max(end for _, end in members) - last) / 1e9)
        if len(members) > 1:
            waits.setdefault(task_of[step], []).append(median((last - start) / 1e9 for start, _ in members))
    found = {name: np.full(len(store.tasks), np.nan) for name in ("p50_s", "p95_s", "least_s", "wait_s", "noise_s")}
    samples: dict[int, int] = {}
    for task, times in durations.items():
        samples[task] = len(times)
        low, middle, high, top = np.percentile(times, [25, 50, 75, 95])
        found["p50_s"][task], found["p95_s"][task], found["least_s"][task] = middle, top, min(times)
        if len(times) > 1:
            found["noise_s"][task] = high - low
        if task in waits:
            found["wait_s"][task] = median(waits[task])
    return {**found, "samples": samples}


def _notes(record: RunRecord, repetitions: int, shown: int, whole: bool, aligned: bool) -> list[str]:
    notes: list[str] = []
    if not aligned:
        notes.append(
            "the ranks have no common clock: each begins at a 0 of its own, and bars of different ranks cannot be compared"
        )
    if not record.complete:
        notes.append("the run did not come to its end: what was done until then is shown")
    if repetitions > 1:
        notes.append(f"repetition {shown + 1} of {repetitions}, the median, is drawn; times are of all")
    if whole:
        notes.append("one process held all ranks: a bar stands for all of them, and nobody waits")
    left_out = record.totals.get("local_left_out", 0)
    if isinstance(left_out, int) and left_out:
        notes.append(f"{left_out:,} local steps had no room in the record")
    if record.options.get("skip_local"):
        notes.append("communication only: local work was skipped")
    return notes
