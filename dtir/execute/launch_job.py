"""What a launcher hands to the processes of a run, and what they hand back: files in one folder that nobody else reads.

| file | from | what |
|---|---|---|
| `job.json` | launcher | options, timing, binding, limits |
| `program.json` | launcher | the program in native form; its digest is checked |
| `inputs.npz` | launcher | ``s4`` for what all ranks share, ``s4@2`` for what rank 2 holds of slot 4 |
| `board` | both | what every process does (`launch_board`) |
| `result.2.npz` | process 2 | its run record, and ``o0``, ``o0@2`` for its parts of the outputs |
| `failure.2.json` | process 2 | why it ended before its time |
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from dtir.execute.archive import Archive, pack, write_archive
from dtir.execute.binding import Binding
from dtir.execute.data import Inputs
from dtir.execute.dtypes import Array, numpy_dtype
from dtir.execute.files import write_bytes
from dtir.execute.record import RunRecord
from dtir.execute.runner import Spent, Timing
from dtir.execute.session import Options
from dtir.execute.steps import ExecPlan, Slot
from dtir.execute.values import Held, Slab, is_shared, rows, shared, stack

RECORD, SPENT = "record", "spent"
"""Names, in a result, of the run record and of the times of steps; both JSON, as bytes."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run, as its processes are told of it.

    Args:
        folder: where its files are.
        binding: which process hosts which rank.
        algorithm: of collectives.
        seed: what the data came from; None: a file.
        options: how sessions run.
        timing: repetitions.
        limit_s: how long a communication step may wait.
        launcher: process id of the launcher.
        host: the launcher's host, where that process id means something.
        op_modules: modules with operators of the user's, which every process loads.
    """

    folder: Path
    binding: Binding
    algorithm: str
    seed: int | None
    options: Options
    timing: Timing
    limit_s: float
    launcher: int
    host: str
    op_modules: tuple[str, ...] = ()

    @property
    def processes(self) -> int:
        """Number of processes."""
        return self.binding.processes

    @property
    def program(self) -> Path:
        """The program in native form."""
        return self.folder / "program.json"

    @property
    def inputs(self) -> Path:
        """What the ranks hold of the inputs."""
        return self.folder / "inputs.npz"

    @property
    def board(self) -> Path:
        """What every process does."""
        return self.folder / "board"

    def result(self, process: int) -> Path:
        """What a process hands back."""
        return self.folder / f"result.{process}.npz"

    def failure(self, process: int) -> Path:
        """Why a process ended before its time."""
        return self.folder / f"failure.{process}.json"

    def write(self) -> None:
        """Write `job.json`."""
        fields = {
            "binding": self.binding.to_json(),
            "algorithm": self.algorithm,
            "seed": self.seed,
            "options": {
                "seed": self.options.seed,
                "skip_local": self.options.skip_local,
                "check": self.options.check,
            },
            "timing": {
                "repetitions": self.timing.repetitions,
                "warmup": self.timing.warmup,
                "isolated": self.timing.isolated,
            },
            "limit_s": self.limit_s,
            "launcher": self.launcher,
            "host": self.host,
            "op_modules": list(self.op_modules),
        }
        write_bytes(self.folder / "job.json", json.dumps(fields).encode())

    @classmethod
    def read(cls, folder: Path) -> Job:
        """Read `job.json`, which this program has written."""
        fields: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        return cls(
            folder,
            Binding.from_json(fields["binding"]),
            fields["algorithm"],
            fields["seed"],
            Options(**fields["options"]),
            Timing(**fields["timing"]),
            fields["limit_s"],
            fields["launcher"],
            fields["host"],
            tuple(fields["op_modules"]),
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a process ended before its time.

    Args:
        process: its number.
        ranks: the ranks it hosts.
        code: of the finding that it becomes.
        message: what happened.
        step: index of the step, -1 for none.
        group: number of the group among those of the plan, -1 for none.
        when_ns: on the clock that the processes of a host share.
    """

    process: int
    ranks: tuple[int, ...]
    code: str
    message: str
    step: int = -1
    group: int = -1
    when_ns: int = 0

    def to_json(self) -> str:
        """The failure as a file holds it."""
        return json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def from_json(cls, text: str) -> Failure:
        """Read a failure that this program has written."""
        fields: dict[str, Any] = json.loads(text)
        fields["ranks"] = tuple(fields["ranks"])
        return cls(**fields)


# -- inputs -------------------------------------------------------------------------------------------------------------


def write_inputs(path: Path, inputs: Inputs) -> None:
    """Write what the ranks hold; what all share is written once."""
    arrays: dict[str, Array] = {}
    for slot, held in inputs.held.items():
        if isinstance(held, Slab) and is_shared(held):
            arrays[f"s{slot}"] = held.array[0]
        else:
            arrays.update({f"s{slot}@{rank}": array for rank, array in zip(held.ranks, rows(held), strict=True)})
    write_archive(path, arrays)


def read_inputs(path: Path, plan: ExecPlan, ranks: Sequence[int], seed: int | None) -> Inputs:
    """Read what some ranks hold; the rest of the file is left alone."""
    archive = Archive.open(path)
    held: dict[int, Held] = {}
    for number in plan.main.inputs:
        slot = plan.main.slots[number]
        if f"s{number}" in archive.headers:
            held[number] = shared(ranks, _typed(archive.read(f"s{number}"), slot))
            continue
        owners = [rank for rank in ranks if f"s{number}@{rank}" in archive.headers]
        if owners:
            held[number] = stack(tuple(owners), [_typed(archive.read(f"s{number}@{rank}"), slot) for rank in owners])
    return Inputs(held, {}, {}, seed=seed)


def own_inputs(inputs: Inputs, ranks: Sequence[int]) -> Inputs:
    """The part of some ranks."""
    held: dict[int, Held] = {}
    for number, whole in inputs.held.items():
        owners = tuple(rank for rank in ranks if rank in whole.ranks)
        if not owners:
            continue
        if isinstance(whole, Slab) and is_shared(whole):
            held[number] = shared(owners, whole.array[0])
        else:
            parts = dict(zip(whole.ranks, rows(whole), strict=True))
            held[number] = stack(owners, [np.array(parts[rank]) for rank in owners])
    return Inputs(held, {}, {}, seed=inputs.seed)


def _typed(array: Array, slot: Slot) -> Array:
    """ml_dtypes' types are stored as raw bytes."""
    dtype = numpy_dtype(slot.value.type.dtype)
    return array if array.dtype == dtype else array.view(dtype)


# -- results ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Returned:
    """What one process hands back.

    Args:
        record: its run record.
        spent: time of every step.
        outputs: its parts of the outputs, by number and rank; empty when the run did not come to its end.
    """

    record: RunRecord
    spent: Mapping[int, Spent]
    outputs: Mapping[int, Mapping[int, Array]] = field(default_factory=dict[int, Mapping[int, Array]])


def pack_result(record: RunRecord, spent: Mapping[int, Spent], outputs: Sequence[Held] = ()) -> bytes:
    """What a process hands back, as bytes."""
    arrays: dict[str, Array] = {
        RECORD: np.frombuffer(record.to_json().encode(), np.uint8),
        SPENT: np.asarray([(index, item.executions, item.total_ns) for index, item in spent.items()], np.int64),
    }
    for number, held in enumerate(outputs):
        if isinstance(held, Slab) and is_shared(held):
            arrays[f"o{number}"] = held.array[0]
        else:
            arrays.update({f"o{number}@{rank}": array for rank, array in zip(held.ranks, rows(held), strict=True)})
    return pack(arrays)


def unpack_result(data: bytes, plan: ExecPlan, slots: Sequence[int], ranks: Sequence[int]) -> Returned:
    """Read what a process handed back.

    Args:
        slots: the slot of every output.
        ranks: the ranks of that process.
    """
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        arrays = cast("Mapping[str, Array]", found)
        names = frozenset(found.files)
        record = RunRecord.from_json(arrays[RECORD].tobytes().decode())
        spent = {int(index): Spent(int(count), int(total)) for index, count, total in arrays[SPENT].reshape(-1, 3)}
        outputs: dict[int, dict[int, Array]] = {}
        for number, slot_number in enumerate(slots):
            slot = plan.main.slots[slot_number]
            if f"o{number}" in names:
                outputs[number] = dict.fromkeys(ranks, _typed(arrays[f"o{number}"], slot))
                continue
            parts = {rank: _typed(arrays[f"o{number}@{rank}"], slot) for rank in ranks if f"o{number}@{rank}" in names}
            outputs[number] = parts
    return Returned(record, spent, outputs)
