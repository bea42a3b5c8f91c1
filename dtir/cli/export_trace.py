"""Chrome traces for ``dtir export``: of a run record both what was measured and what was planned, of a program the plan."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtir.cli.command import Console, Failure, failure

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.cost.trace import Side, Slice
    from dtir.execute.record import RunRecord, StepEntry


def make_trace(options: argparse.Namespace, console: Console) -> bytes:
    """The trace of a run record or of a program.

    Raises:
        Failure: the input is neither, or nothing was said that planned times could come from.
    """
    from dtir.cost.trace import MOST_RANKS, chrome_trace

    most_ranks = options.ranks or MOST_RANKS
    record = _record(options.file)
    if record is not None:
        if options.profile is not None:
            raise failure(
                "cli.usage",
                "the planned times of a run record are those that it was made with",
                hint="dtir run FILE --profile P -o run.json",
            )
        sides = [_measured(record, most_ranks)]
        if record.planned is not None:
            sides.append(_planned(record, most_ranks))
        text = chrome_trace(sides, _notes(record))
    else:
        sides = [_of_program(options, console, most_ranks)]
        text = chrome_trace(sides)
    for side in sides:
        if side.left_out:
            console.err.write(
                f"dtir: {side.left_out} {side.name} ranks are left out beyond the first {most_ranks}; --ranks says otherwise\n"
            )
    data = text.encode()
    return gzip.compress(data, mtime=0) if options.output.lower().endswith(".gz") else data


def _record(name: str) -> RunRecord | None:
    """The run record of a file; None when it is something else.

    Raises:
        Failure: it says that it is a run record, and is not a whole one.
    """
    from pathlib import Path

    from dtir.execute.record import RecordError, is_record, read_record

    path = Path(name)
    try:
        if name == "-" or not path.is_file() or not is_record(path):
            return None
        return read_record(path)
    except RecordError as error:
        raise failure("run.record", f"{name}: {error}", hint="write it again with dtir run -o run.json") from None
    except OSError as error:
        raise failure("run.record", f"{name} cannot be read: {error.strerror}", hint="check the path") from None


def _of_program(options: argparse.Namespace, console: Console, most_ranks: int) -> Side:
    from dtir.cli.cost import load_profile
    from dtir.cli.inputs import load_one
    from dtir.cost.schedule import make_schedule
    from dtir.cost.trace import planned_side
    from dtir.schema.result import Err

    imported = load_one(options.file, options.program, console)
    if imported.program is None:
        raise Failure(imported.diagnostics)
    if options.profile is None:
        raise failure(
            "cli.usage",
            "a program has planned times only on a machine, and none was named",
            hint="--profile P (dtir cost --list-profiles), or export the run record of dtir run -o run.json",
        )
    made = make_schedule(imported.program, load_profile(options.profile))
    if isinstance(made, Err):
        raise Failure(made.error)
    return planned_side(made.value, most_ranks=most_ranks)


def _notes(record: RunRecord) -> dict[str, Any]:
    return {
        "program": record.program.get("name"),
        "digest": record.program.get("digest"),
        "backend": record.backend.get("name"),
        "complete": record.complete,
        "repetitions": len(record.totals.get("elapsed_ns", ())),
        "local_records_left_out": record.totals.get("local_left_out", 0),
    }


# -- measured -------------------------------------------------------------------------------------------------------------------


def _measured(record: RunRecord, most_ranks: int) -> Side:
    from dtir.cost.trace import Side

    ranks = int(record.program.get("ranks", 0))
    shown = min(ranks, most_ranks)
    slices = [*_compute(record, shown), *_communication(record, shown)]
    source = f"{record.backend.get('name')}, {record.backend.get('library')}"
    return Side("measured", source, slices, ranks - shown)


def _args(record: RunRecord, entry: StepEntry, repetition: int) -> dict[str, Any]:
    args: dict[str, Any] = {
        "task": entry.task,
        "operation": entry.operation,
        "kind": entry.kind,
        "repetition": repetition,
    }
    if entry.region:
        args["region"] = entry.region
    if entry.message_bytes:
        args["bytes"] = entry.message_bytes
    if entry.planned_us is not None:
        args["planned_us"] = entry.planned_us
    return args


def _members(record: RunRecord, entry: StepEntry, rank: int | None, shown: int) -> list[int]:
    """The ranks that a row stands for: one, or all of the step where they are in one process."""
    if rank is not None:
        return [rank] if rank < shown else []
    ranks = record.rank_sets[entry.ranks] if 0 <= entry.ranks < len(record.rank_sets) else range(shown)
    return [member for member in ranks if member < shown]


class _Groups:
    """The groups of the steps of a record; steps share them, and they may be long."""

    def __init__(self, record: RunRecord) -> None:
        self._sets = record.group_sets
        self._numbers: dict[int, dict[int, int]] = {}
        self._nothing: dict[int, int] = {}

    def of(self, entry: StepEntry) -> tuple[Sequence[tuple[int, ...]], Mapping[int, int]]:
        """The groups of a step, and the number of each rank's; a rank of several pairs is shown with the first."""
        if entry.groups < 0:
            return (), self._nothing
        groups = self._sets[entry.groups]
        if entry.groups not in self._numbers:
            numbers: dict[int, int] = {}
            for number, group in enumerate(groups):
                for rank in group:
                    numbers.setdefault(rank, number)
            self._numbers[entry.groups] = numbers
        return groups, self._numbers[entry.groups]


def _compute(record: RunRecord, shown: int) -> Iterator[Slice]:
    from dtir.cost.trace import Slice

    rows = record.local_records
    for place, index in enumerate(rows.step):
        entry = record.step(index)
        members = _members(record, entry, rows.rank[place], shown)
        args = _args(record, entry, rows.repetition[place])
        if rows.rank[place] is None and len(members) > 1:
            args["together"] = f"all {len(members)} ranks in one process"
        for rank in members:
            yield Slice(entry.name, rank, rows.start_ns[place] / 1000, rows.end_ns[place] / 1000, args=args)


def _communication(record: RunRecord, shown: int) -> Iterator[Slice]:
    """Rows of several ranks belong together in the order in which each rank has them."""
    rows = record.records
    turns: dict[tuple[int, int | None], int] = {}
    meetings: dict[tuple[int, int], list[tuple[int | None, int]]] = {}
    for place, (index, rank) in enumerate(zip(rows.step, rows.rank, strict=True)):
        turn = turns.get((index, rank), 0)
        turns[index, rank] = turn + 1
        meetings.setdefault((index, turn), []).append((rank, place))
    known = _Groups(record)
    for (index, turn), found in meetings.items():
        entry = record.step(index)
        places: dict[int, int] = {}
        for rank, place in found:
            places.update(dict.fromkeys(_members(record, entry, rank, shown), place))
        yield from _meeting(record, entry, turn, places, dict(found), known)


def _meeting(
    record: RunRecord,
    entry: StepEntry,
    turn: int,
    places: dict[int, int],
    everybody: dict[int | None, int],
    known: _Groups,
) -> Iterator[Slice]:
    from dtir.cost.trace import LISTED, Slice

    rows = record.records
    groups, number_of = known.of(entry)
    last_start: dict[int, int] = {}
    for rank, place in everybody.items():
        number = number_of.get(rank) if rank is not None else None
        if number is not None:
            last_start[number] = max(last_start.get(number, 0), rows.start_ns[place])
    for rank, place in places.items():
        start, end = rows.start_ns[place], rows.end_ns[place]
        number = number_of.get(rank)
        # Who is done before the last one has come (the root of a broadcast, say) did not wait for it.
        begin = last_start.get(number, start) if number is not None else start
        begin = begin if start < begin <= end else start
        args = _args(record, entry, rows.repetition[place])
        if number is not None:
            args["group"] = list(groups[number][:LISTED])
        if rows.sent_bytes[place] is not None:
            args["sent_bytes"] = rows.sent_bytes[place]
        tie = None if number is None else (entry.index, turn, number)
        yield Slice(entry.name, rank, begin / 1000, end / 1000, True, start / 1000, args, tie)


# -- planned --------------------------------------------------------------------------------------------------------------------


def _planned(record: RunRecord, most_ranks: int) -> Side:
    from dtir.cost.trace import Side

    ranks = int(record.program.get("ranks", 0))
    shown = min(ranks, most_ranks)
    profile = record.profile or {}
    source = f"{profile.get('id')} ({profile.get('standing')}, {profile.get('date')})"
    return Side("planned", source, list(_planned_slices(record, shown)), ranks - shown)


def _planned_slices(record: RunRecord, shown: int) -> Iterator[Slice]:
    from dtir.cost.trace import LISTED, Slice

    spans = record.planned
    assert spans is not None
    known = _Groups(record)
    classes: Sequence[Sequence[int]] = [[rank for rank in ranks if rank < shown] for ranks in spans.ranks]
    for place, index in enumerate(spans.step):
        entry = record.step(index)
        communicates = entry.kind in ("exchange", "move")
        groups, number_of = known.of(entry)
        args = {"task": entry.task, "operation": entry.operation, "kind": entry.kind, "model": entry.model}
        if entry.message_bytes:
            args["bytes"] = str(entry.message_bytes)
        if spans.executions[place] > 1:
            args["stands_for_executions"] = str(spans.executions[place])
        arrived = spans.arrived_us[place]
        control = entry.kind in ("call", "loop", "branch")
        for position, one in enumerate(spans.classes[place]):
            for rank in classes[one]:
                number = number_of.get(rank)
                shown_group = {} if number is None else {"group": list(groups[number][:LISTED])}
                yield Slice(
                    f"further rounds of {entry.name}" if control and entry.kind == "loop" else entry.name,
                    rank,
                    spans.start_us[place],
                    spans.end_us[place],
                    communicates,
                    None if arrived is None else arrived[position],
                    {**args, **shown_group},
                    None if number is None else (index, number, spans.start_us[place]),
                )
