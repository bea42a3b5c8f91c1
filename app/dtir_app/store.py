"""A program as read-only columns: what every session of the explorer shares.

Tasks and values of the program and of all its regions are numbered through, the program's own first; a column holds one entry
for each. The records of the program stay at hand for the inspector; pictures, tables and search read columns only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir_app.groups import GroupAxes
from dtir_app.memo import Memo

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

SEVERITIES = ("error", "warning", "info")


def frozen_array(items: Iterable[float], dtype: type) -> np.ndarray:
    """A column that nobody can write to."""
    made = np.fromiter(items, dtype=dtype)
    made.setflags(write=False)
    return made


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic, with what it is about resolved to numbers.

    Args:
        severity: ``error``, ``warning`` or ``info``.
        code: stable dotted code.
        message: one sentence.
        hint: how to mend it; empty when there is none.
        path: dotted path from the program's root.
        tasks: the tasks it is about, most specific first.
        values: the values it is about.
        related: further places, each a label and a dotted path.
        names: what else it names: axes, ``rank 3``.
    """

    severity: str
    code: str
    message: str
    hint: str = ""
    path: str = ""
    tasks: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """The program's own task list (scope 0) or one region.

    Args:
        index: its number.
        name: for people.
        first_task, last_task: its tasks are ``range(first_task, last_task)``.
        first_value, last_value: its values likewise.
        callers: tasks that enter it.
        executions: how often it runs in one run of the program; None when the data decide.
    """

    index: int
    name: str
    first_task: int
    last_task: int
    first_value: int
    last_value: int
    callers: tuple[int, ...] = ()
    executions: int | None = 1

    @property
    def task_count(self) -> int:
        return self.last_task - self.first_task


@dataclass(frozen=True, slots=True)
class TaskColumns:
    """One entry a task. Text columns are tuples, numbers numpy arrays.

    ``message_bytes`` and ``executions`` are NaN where there is no number; ``axes`` is a bit mask over the mesh's axes;
    ``region_axes`` says how those axes are known; ``worst`` is 0 error, 1 warning, 2 info, 3 nothing found.
    """

    id: tuple[str, ...]
    name: tuple[str, ...]
    operation: tuple[str, ...]
    source: tuple[str, ...]
    path: tuple[tuple[str, ...], ...]
    kind: npt.NDArray[np.int8]
    family: npt.NDArray[np.int8]
    scope: Ints
    rank_count: npt.NDArray[np.int64]
    message_bytes: Floats
    executions: Floats
    axes: npt.NDArray[np.int64]
    worst: npt.NDArray[np.int8]
    group_axes: Mapping[int, GroupAxes] = field(repr=False)
    entered: Mapping[int, tuple[int, ...]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """One entry a value; `producer` is the task that makes it or -1, `local_bytes` NaN where it is not a number.

    The tasks that read a value are ``readers[reader_start[v]:reader_start[v + 1]]``.
    """

    id: tuple[str, ...]
    name: tuple[str, ...]
    dtype: tuple[str, ...]
    shape: tuple[str, ...]
    layout: tuple[str, ...]
    role: tuple[str, ...]
    scope: Ints
    producer: Ints
    reader_start: Ints
    readers: Ints
    local_bytes: Floats
    worst: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.id)

    def readers_of(self, value: int) -> list[int]:
        """Tasks that read a value, in program order."""
        return self.readers[self.reader_start[value] : self.reader_start[value + 1]].tolist()


@dataclass(frozen=True, slots=True)
class Edges:
    """Who waits for whom, within scopes: one entry a pair of tasks, sorted by scope, destination and source.

    ``order_only`` marks a dependency that carries no value.
    """

    source: Ints
    destination: Ints
    order_only: npt.NDArray[np.bool_]
    scope_start: Ints

    def of_scope(self, scope: int) -> slice:
        return slice(int(self.scope_start[scope]), int(self.scope_start[scope + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """One program, ready to be looked at. Equal only to itself: it is shared, never copied."""

    digest: str
    label: str
    format: str
    program: DistributedTaskIR = field(repr=False)
    scopes: tuple[Scope, ...]
    tasks: TaskColumns = field(repr=False)
    values: ValueColumns = field(repr=False)
    edges: Edges = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    task_records: tuple[DistributedTask, ...] = field(repr=False)
    value_records: tuple[DistributedValue, ...] = field(repr=False)
    task_index: Mapping[str, int] = field(repr=False)
    value_index: Mapping[str, int] = field(repr=False)
    scoped_values: Mapping[tuple[int, str], int] = field(repr=False)
    memo: Memo = field(default_factory=Memo, repr=False)

    @property
    def mesh(self) -> LogicalMesh:
        return self.program.mesh

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def mesh_text(self) -> str:
        """The mesh in one line: ``dp2 × tp4``; with an equals sign where a name ends with a digit."""
        gap = "=" if any(axis.name[-1:].isdigit() for axis in self.mesh.axes) else ""
        return " × ".join(f"{axis.name}{gap}{axis.size}" for axis in self.mesh.axes)

    def value_at(self, scope: int, value_id: str) -> int:
        """The number of a value by its hex id, seen from a scope; -1 when there is none."""
        return self.scoped_values.get((scope, value_id), -1)

    def counts(self) -> dict[str, int]:
        """Findings by severity, every severity present."""

        def make() -> dict[str, int]:
            made = dict.fromkeys(SEVERITIES, 0)
            for finding in self.findings:
                made[finding.severity] += 1
            return made

        return dict(self.memo.made("counts", make))

    def findings_of(self, kind: str, index: int) -> list[int]:
        """Rows of the findings that speak of a ``task`` or a ``value``."""

        def make() -> dict[tuple[str, int], list[int]]:
            found: dict[tuple[str, int], list[int]] = {}
            for row, finding in enumerate(self.findings):
                for name, numbers in (("task", finding.tasks), ("value", finding.values)):
                    for number in dict.fromkeys(numbers):
                        found.setdefault((name, number), []).append(row)
            return found

        return self.memo.made("findings-of", make).get((kind, index), [])

    def axis_names(self, mask: int) -> tuple[str, ...]:
        """The axes of a bit mask, in mesh order."""
        return tuple(axis.name for bit, axis in enumerate(self.mesh.axes) if mask >> bit & 1)


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What came of opening one input: a store when there is something to show, and in any case the findings.

    Args:
        label: file name without folders.
        digest: of the source; empty when nothing could be read.
        format: the recognised format.
        store: the program's columns, or None.
        findings: everything found while reading and judging, in that order.
    """

    label: str
    digest: str
    format: str
    store: Store | None
    findings: tuple[Finding, ...] = ()
