"""The columns of the four tables. A cell is text; what a column is sorted by are the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir_app import timing
from dtir_app.frames import cells
from dtir_app.store import SEVERITIES, Store

SortKey = Sequence[object] | npt.NDArray[np.generic]

Cell = Callable[[Store, int], str]
Raw = Callable[[Store, int], object]
Sort = Callable[[Store], SortKey]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        key: stable name, also in exports.
        label: heading.
        look: how the page shows it: ``text``, ``mono``, ``number``, ``kind`` or ``severity``.
        cell: text of a row.
        sort: what rows are sorted by, for all rows at once.
        raw: what an export holds instead of the text; the text itself when None.
        help: what the column means.
    """

    key: str
    label: str
    look: str
    cell: Cell
    sort: Sort
    raw: Raw | None = None
    help: str = ""


def _of_finding(name: str) -> Cell:
    return lambda store, row: str(getattr(store.findings[row], name))


def _finding_sort(name: str) -> Sort:
    return lambda store: [getattr(item, name) for item in store.findings]


def _severity_order(store: Store) -> SortKey:
    return [SEVERITIES.index(item.severity) for item in store.findings]


def _task_text(name: str) -> Cell:
    return lambda store, row: getattr(store.tasks, name)[row]


def _value_text(name: str) -> Cell:
    return lambda store, row: getattr(store.values, name)[row]


def _tasks(name: str) -> Sort:
    return lambda store: getattr(store.tasks, name)


def _values(name: str) -> Sort:
    return lambda store: getattr(store.values, name)


def _by_cell(cell: Cell) -> Sort:
    return lambda store: [cell(store, index) for index in range(len(store.tasks))]


def _number(store: Store, row: int) -> str:
    return str(row)


def _position(store: Store, row: int) -> object:
    return row


def _rank_count(store: Store, row: int) -> object:
    return int(store.tasks.rank_count[row])


def _user_count(store: Store, row: int) -> object:
    return len(store.values.readers_of(row))


_POSITION = "position in the program"
_MESSAGE = "size S of one group's message, as nccl-tests counts it"
_AXIS = "mesh axes that the groups span; ? where the members are no fibre of axes"

_INDEX = Column("index", "#", "number", _number, lambda s: np.arange(len(s.tasks)), _position, _POSITION)
_KIND = Column("kind", "Kind", "kind", cells.kind_cell, _tasks("kind"), cells.kind_raw)
_NAME = Column("name", "Name", "mono", _task_text("name"), _tasks("name"))
_BYTES = Column(
    "message_bytes", "Message", "number", cells.message_cell, _tasks("message_bytes"), cells.message_raw, _MESSAGE
)
_RUNS = Column(
    "executions",
    "Runs",
    "number",
    cells.runs_cell,
    _tasks("executions"),
    cells.runs_raw,
    "executions in one run of the program",
)
_INSTANCE = Column(
    "instance",
    "Instance",
    "text",
    cells.instance_cell,
    cells.instance_sort,
    None,
    "which layer, microbatch or block of what repeats it is in",
)
_REGION = Column("region", "Region", "mono", cells.region_cell, _tasks("scope"))
_SOURCE = Column("source", "Source", "mono", _task_text("source"), _tasks("source"))

DIAGNOSTIC_COLUMNS = (
    Column("severity", "Severity", "severity", _of_finding("severity"), _severity_order),
    Column("code", "Code", "mono", _of_finding("code"), _finding_sort("code")),
    Column("message", "Message", "text", _of_finding("message"), _finding_sort("message")),
    Column("where", "Where", "mono", cells.finding_place, _finding_sort("path")),
    Column("hint", "How to mend it", "text", _of_finding("hint"), _finding_sort("hint")),
)
COLLECTIVE_COLUMNS = (
    _INDEX,
    _KIND,
    _NAME,
    Column("axis", "Axis", "mono", cells.axis_cell, cells.axis_sort, None, _AXIS),
    Column("groups", "Groups", "number", cells.groups_cell, cells.groups_sort, None, "groups × members of each"),
    _BYTES,
    _RUNS,
    Column(
        "total_bytes",
        "Message × runs",
        "number",
        cells.total_cell,
        cells.total_bytes,
        cells.total_raw,
        "message of one group times its runs",
    ),
    Column(
        "planned", "Planned", "number", timing.planned_cell, timing.planned_sort, None, "planned time of one execution"
    ),
    Column(
        "p50",
        "Measured",
        "number",
        timing.measured_cell,
        timing.measured_sort,
        None,
        "median over executions and repetitions",
    ),
    Column(
        "p95", "95 %", "number", timing.p95_cell, timing.p95_sort, None, "what 95 % of the executions do not exceed"
    ),
    Column(
        "wait",
        "Waited",
        "number",
        timing.wait_cell,
        timing.wait_sort,
        None,
        "median, for the last of the group to arrive",
    ),
    Column(
        "ratio",
        "Ratio",
        "number",
        timing.ratio_cell,
        timing.ratio_sort,
        None,
        "measured over planned; ≈ within the noise",
    ),
    Column("reduction", "Reduce", "text", cells.reduction_cell, _by_cell(cells.reduction_cell)),
    Column("dtype", "Type", "mono", cells.dtype_cell, _by_cell(cells.dtype_cell)),
    _INSTANCE,
    _REGION,
    _SOURCE,
)
TASK_COLUMNS = (
    _INDEX,
    _KIND,
    _NAME,
    Column("operation", "Operation", "mono", _task_text("operation"), _tasks("operation")),
    Column("ranks", "Ranks", "number", cells.ranks_cell, _tasks("rank_count"), _rank_count, "ranks that run it"),
    _BYTES,
    _RUNS,
    Column("finding", "Finding", "severity", cells.worst_cell, _tasks("worst")),
    _INSTANCE,
    _REGION,
    _SOURCE,
)
TENSOR_COLUMNS = (
    Column("index", "#", "number", _number, lambda s: np.arange(len(s.values)), _position, _POSITION),
    Column("name", "Name", "mono", _value_text("name"), _values("name")),
    Column("type", "Type", "mono", _value_text("shape"), _values("shape")),
    Column("layout", "Layout", "mono", _value_text("layout"), _values("layout"), None, cells.LAYOUT_HELP),
    Column(
        "inferred",
        "Inferred",
        "mono",
        cells.inferred_cell,
        lambda s: [cells.inferred_cell(s, row) for row in range(len(s.values))],
        None,
        "what follows for per-rank data though the program does not state it",
    ),
    Column("role", "Role", "text", cells.role_cell, _values("role")),
    Column(
        "local_bytes",
        "Bytes / rank",
        "number",
        cells.local_cell,
        _values("local_bytes"),
        cells.local_raw,
        "bytes of the largest shard on one rank",
    ),
    Column("producer", "Made by", "mono", cells.producer_cell, _values("producer")),
    Column(
        "users",
        "Users",
        "number",
        cells.users_cell,
        lambda s: np.diff(s.values.reader_start),
        _user_count,
        "tasks that read it",
    ),
    Column("region", "Region", "mono", cells.value_region_cell, _values("scope")),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "diagnostics": DIAGNOSTIC_COLUMNS,
    "collectives": COLLECTIVE_COLUMNS,
    "tasks": TASK_COLUMNS,
    "tensors": TENSOR_COLUMNS,
}
TABLE_LABELS = {"diagnostics": "Diagnostics", "collectives": "Communication", "tasks": "Tasks", "tensors": "Tensors"}
