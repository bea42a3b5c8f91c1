"""Times of a trace as a run record: what was measured elsewhere, beside the program that was read from it.

A program names no time; a trace does. `trace_times` takes both apart: every task of the program is a step of the record, and
what each rank spent in it stands in its columns. Clocks are those of the traces: only differences mean something, and files
of different machines need not agree about zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtir.execute.record import Columns, RunRecord, StepEntry
from dtir.importers.base import Imported
from dtir.ir.ids import NodeId
from dtir.ir.tasks import Collective, Control, DistributedTask, LocalCompute, PointToPoint
from dtir.schema.diagnostics import Diagnostic

MOST_MEMBERS = 65_536
"""Sets of ranks up to this size are written down."""


def trace_times(imported: Imported) -> RunRecord | None:
    """The run record of a trace; None when it has no program, or says no times.

    >>> from dtir.importers import load_bytes
    >>> trace_times(load_bytes(b"ENTRY e { ROOT a = f32[] parameter(0) }", name="no-trace.hlo")) is None
    True
    """
    program = imported.program
    if program is None or not imported.times:
        return None
    sets = _Sets()
    steps = [_step(index, task, sets) for index, task in enumerate(program.tasks)]
    places: dict[NodeId, int] = {task.id: index for index, task in enumerate(program.tasks)}
    records, local = Columns(), Columns()
    spent = {"communication_ns": 0, "local_ns": 0}
    for time in imported.times:
        index = places[time.task]
        communicates = steps[index].kind == "exchange"
        (records if communicates else local).add(index, time.rank, 0, time.start_ns, time.end_ns)
        spent["communication_ns" if communicates else "local_ns"] += time.end_ns - time.start_ns
    begun = min(time.start_ns for time in imported.times)
    ended = max(time.end_ns for time in imported.times)
    return RunRecord(
        program={"name": program.name, "digest": program.digest, "ranks": program.mesh.size},
        backend={
            "name": "trace",
            "library": f"{imported.format}: {imported.label}",
            "clock": "trace",
            "wire_bytes": False,
        },
        options={
            "seed": None,
            "repetitions": 1,
            "warmup": 0,
            "timing": "free",
            "algorithm": "native",
            "skip_local": False,
        },
        environment={"source_digest": imported.digest},
        binding={},
        steps=tuple(steps),
        records=records,
        totals={"elapsed_ns": [ended - begun], **spent, "local_left_out": 0},
        local_records=local,
        findings=tuple(_finding(item) for item in imported.diagnostics),
        rank_sets=tuple(sets.ranks),
        group_sets=tuple(sets.groups),
    )


class _Sets:
    """Sets of ranks and of groups, each once."""

    def __init__(self) -> None:
        self.ranks: list[tuple[int, ...]] = []
        self.groups: list[tuple[tuple[int, ...], ...]] = []
        self._ranks: dict[tuple[int, ...], int] = {}
        self._groups: dict[tuple[int, ...], int] = {}

    def of_ranks(self, ranks: Sequence[int]) -> int:
        if len(ranks) > MOST_MEMBERS:
            return -1
        # A record lists ranks as runs of consecutive ones.
        key = tuple(sorted(ranks))
        if key not in self._ranks:
            self._ranks[key] = len(self.ranks)
            self.ranks.append(key)
        return self._ranks[key]

    def of_group(self, members: Sequence[int]) -> int:
        if len(members) > MOST_MEMBERS:
            return -1
        key = tuple(members)
        if key not in self._groups:
            self._groups[key] = len(self.groups)
            self.groups.append((key,))
        return self._groups[key]


def _step(index: int, task: DistributedTask, sets: _Sets) -> StepEntry:
    kind, size, groups = "local", 0, -1
    match task.body:
        case Collective(spec=spec):
            kind, size = "exchange", _whole(spec.message_bytes)
            groups = sets.of_group(spec.participants)
        case PointToPoint(spec=transfer):
            kind, size = "exchange", _whole(transfer.message_bytes)
            groups = sets.of_group((transfer.source_rank, transfer.destination_rank))
        case Control():
            kind = "order"
        case LocalCompute():
            pass
        case _:
            kind = "order"
    return StepEntry(
        index,
        str(task.id),
        task.name,
        "",
        kind,
        str(task.operation),
        size,
        0,  # what goes over the wire is not in a trace, and no rank sends less
        ranks=sets.of_ranks(task.ranks),
        groups=groups,
    )


def _finding(item: Diagnostic) -> dict[str, Any]:
    """What was found while reading, as a record holds it: what the times mean may hang on it."""
    return {
        "code": item.code,
        "severity": item.severity.value,
        "message": item.message,
        "hint": item.hint,
        "path": list(item.path),
        "subject": list(item.subject),
    }


def _whole(number: object) -> int:
    return number if isinstance(number, int) else 0
