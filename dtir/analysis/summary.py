"""What is in a program: counts, and one row for each of its collectives; the facts that the command line and the explorer show.

Everything here is linear in what the program names; nothing is expanded by the size of the mesh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dtir.analysis.executions import region_executions
from dtir.analysis.groups import Groups, group_size_of, groups_of, member_count
from dtir.analysis.scalars import scalar_text
from dtir.ir.collectives import (
    AllReduce,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
    collective_kind,
)
from dtir.ir.expr import Scalar
from dtir.ir.ids import RegionId, ValueId
from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, DistributedTask, Region
from dtir.ir.values import DistributedValue


@dataclass(frozen=True, slots=True)
class PlacedTask:
    """A task where it stands.

    Args:
        task: the task.
        region: the region that holds it; None for the program's own list.
        executions: how often it runs in one run of the program; None when the data decide, 0 when nothing enters it.
    """

    task: DistributedTask
    region: Region | None
    executions: int | None


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective, as a table shows it.

    Args:
        id: display id of the task, ``node:...``.
        kind: ``all_reduce``, ``all_gather``, ...
        groups: ordered member lists, computed when asked for; (source, destination) pairs of a permute; None when the
            collective names an axis that the mesh lacks.
        group_size: members of every group; None when groups differ in size.
        message_bytes: the nccl-tests size S of one group; a scalar expression when it is not a number yet.
        reduction: ``sum``, ``max``, ...; None where nothing is reduced.
        dtype: element type of what is sent; several are joined with ``, ``; None when the task names no values.
        source: where it comes from in the source program (file and line, or the name of the operation there).
        source_name: its name in the source, the name of an HLO instruction say.
        executions: how often it runs; None when the data decide.
        axes: mesh axes whose fibres are the groups; empty where groups are listed.
        region: name of the region that holds it; None for the program's own list.
    """

    id: str
    kind: str
    groups: Groups | None = field(repr=False)
    group_size: int | None
    message_bytes: Scalar
    reduction: str | None
    dtype: str | None
    source: str | None
    source_name: str | None
    executions: int | None
    axes: tuple[str, ...] = ()
    region: str | None = None

    @property
    def group_count(self) -> int | None:
        """Number of groups (of pairs for a permute)."""
        return None if self.groups is None else len(self.groups)

    @property
    def members(self) -> int:
        """Members of all groups together: how long the lists are when they are written out."""
        return 0 if self.groups is None else member_count(self.groups)

    @property
    def message_text(self) -> str:
        """`message_bytes` as text, symbolic or not."""
        return scalar_text(self.message_bytes)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a program holds.

    Args:
        name: the program's name.
        mesh: its mesh.
        task_total: tasks of the program and of all its regions, each counted once.
        tasks_by_kind: the same by body tag (``local-compute``, ``collective``, ...), most frequent first.
        value_total: values of the program and of all its regions.
        region_total: regions.
        input_total: inputs of the program.
        output_total: outputs of the program.
        collectives: one row each, the program's own first, then region by region.
    """

    name: str
    mesh: LogicalMesh
    task_total: int
    tasks_by_kind: Mapping[str, int]
    value_total: int
    region_total: int
    input_total: int
    output_total: int
    collectives: tuple[CollectiveRow, ...] = field(repr=False)


def placed_tasks(program: DistributedTaskIR) -> Iterator[PlacedTask]:
    """Every task once, the program's own first, then region by region, with how often it runs."""
    for task in program.tasks:
        yield PlacedTask(task, None, 1)
    if not program.regions:
        return
    by_id: dict[RegionId, Region] = {region.id: region for region in program.regions}
    executions = region_executions(program.tasks, by_id)
    for region in program.regions:
        for task in region.tasks:
            yield PlacedTask(task, region, executions[region.id])


def summarize(program: DistributedTaskIR) -> Summary:
    """The facts of a program, in one pass."""
    kinds: Counter[str] = Counter()
    rows: list[CollectiveRow] = []
    scope: Region | None = None
    values = _by_id(program.values)
    for placed in placed_tasks(program):
        kinds[placed.task.body_tag] += 1
        if placed.region is not scope:
            scope = placed.region
            values = _by_id(scope.values if scope else program.values)
        if isinstance(placed.task.body, Collective):
            rows.append(_row(placed, placed.task.body.spec, values, program.mesh))
    return Summary(
        name=program.name,
        mesh=program.mesh,
        task_total=kinds.total(),
        tasks_by_kind=dict(kinds.most_common()),
        value_total=len(program.values) + sum(len(region.values) for region in program.regions),
        region_total=len(program.regions),
        input_total=len(program.inputs),
        output_total=len(program.outputs),
        collectives=tuple(rows),
    )


def collective_rows(program: DistributedTaskIR) -> tuple[CollectiveRow, ...]:
    """One row for each collective of a program."""
    return summarize(program).collectives


def _by_id(values: tuple[DistributedValue, ...]) -> dict[ValueId, DistributedValue]:
    return {value.id: value for value in values}


def _row(
    placed: PlacedTask, spec: CollectiveSpecVariant, values: Mapping[ValueId, DistributedValue], mesh: LogicalMesh
) -> CollectiveRow:
    task = placed.task
    groups = groups_of(spec, mesh)
    named = [values[name] for name in (task.inputs or task.outputs) if name in values]
    dtypes = dict.fromkeys(value.type.dtype for value in named)
    return CollectiveRow(
        id=str(task.id),
        kind=collective_kind(spec).value,
        groups=groups,
        group_size=None if groups is None else group_size_of(groups),
        message_bytes=spec.message_bytes,
        reduction=spec.reduction.value if isinstance(spec, AllReduce | ReduceScatter) else None,
        dtype=", ".join(dtypes) or None,
        source=source_of(task),
        source_name=task.name or None,
        executions=placed.executions,
        axes=() if isinstance(spec, CollectivePermute) else spec.axes,
        region=placed.region.name if placed.region else None,
    )


def source_of(task: DistributedTask) -> str | None:
    """Where a task comes from, as its importer noted it: the operation's name in the source, and its file and line.

    >>> from dtir.ir import Control, Lineage, NodeId, OperationName
    >>> from dtir.schema import FrozenDict
    >>> noted = FrozenDict({"op_name": "jit(f)/psum", "source": "model.py:64"})
    >>> task = DistributedTask(NodeId.new(), Control(), OperationName("core", "x"), (0,), (), (), (), Lineage.root(), attributes=noted)
    >>> source_of(task)
    'jit(f)/psum (model.py:64)'
    """
    name, place = (_text(task.attributes.get(key)) for key in ("op_name", "source"))
    return f"{name} ({place})" if name and place else name or place


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
