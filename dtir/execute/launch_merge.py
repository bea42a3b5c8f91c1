"""What the processes of a run hand back, joined to the result of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array, numpy_dtype
from dtir.execute.launch_job import Returned
from dtir.execute.record import Columns, RunRecord
from dtir.execute.runner import RunResult, Spent
from dtir.execute.steps import ExecPlan
from dtir.execute.values import Held, Slab, shared, stack


def join_results(plan: ExecPlan, slots: Sequence[int], returned: Sequence[Returned]) -> RunResult:
    """The results of all processes as those of one run."""
    record = join_records([found.record for found in returned])
    return RunResult(join_outputs(plan, slots, returned), tuple(slots), record, join_spent(returned))


def join_outputs(plan: ExecPlan, slots: Sequence[int], returned: Sequence[Returned]) -> tuple[Held, ...]:
    """What all ranks hold of every output; an array that is equal on all of them is held once."""
    joined: list[Held] = []
    for number, slot_number in enumerate(slots):
        parts = {rank: array for found in returned for rank, array in found.outputs.get(number, {}).items()}
        ranks = tuple(sorted(parts))
        distinct = list({id(parts[rank]): parts[rank] for rank in ranks}.values())
        if not ranks:
            slot = plan.main.slots[slot_number]
            joined.append(Slab((), np.empty((0, *(slot.shape or ())), numpy_dtype(slot.value.type.dtype))))
        elif _have_same_bits(distinct):
            joined.append(shared(ranks, distinct[0]))
        else:
            joined.append(stack(ranks, [parts[rank] for rank in ranks]))
    return tuple(joined)


def _have_same_bits(arrays: Sequence[Array]) -> bool:
    first = arrays[0]
    return all(array.shape == first.shape and np.array_equal(_bits(array), _bits(first)) for array in arrays[1:])


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def join_spent(returned: Sequence[Returned]) -> dict[int, Spent]:
    """Time of every step: the mean over the processes that ran it."""
    found: dict[int, list[Spent]] = {}
    for item in returned:
        for index, spent in item.spent.items():
            found.setdefault(index, []).append(spent)
    return {
        index: Spent(max(item.executions for item in items), sum(item.total_ns for item in items) // len(items))
        for index, items in found.items()
    }


def join_records(records: Sequence[RunRecord]) -> RunRecord:
    """The records of all processes as one: rows one after the other, a repetition as long as on the slowest process.

    Time in local steps and in communication is the mean over the processes.
    """
    first = records[0]
    return replace(
        first,
        records=_joined([record.records for record in records]),
        local_records=_joined([record.local_records for record in records]),
        totals=_totals([record.totals for record in records]),
        wire=tuple(entry for record in records for entry in record.wire),
        complete=all(record.complete for record in records),
    )


def _joined(parts: Sequence[Columns]) -> Columns:
    columns = Columns()
    for part in parts:
        for name in Columns.__dataclass_fields__:
            getattr(columns, name).extend(getattr(part, name))
    return columns


def _totals(totals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    elapsed: list[list[int]] = [list(item["elapsed_ns"]) for item in totals]
    # A process that was stopped early has fewer repetitions: only those count that all have.
    repetitions = min(len(item) for item in elapsed)
    return {
        **totals[0],
        "elapsed_ns": [max(item[number] for item in elapsed) for number in range(repetitions)],
        "local_ns": sum(item["local_ns"] for item in totals) // len(totals),
        "communication_ns": sum(item["communication_ns"] for item in totals) // len(totals),
        "local_left_out": sum(item["local_left_out"] for item in totals),
    }
