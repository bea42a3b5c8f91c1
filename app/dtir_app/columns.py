"""From a program to the columns of a `Store`: one pass over tasks and values, linear in what the program names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dtir.analysis.executions import entered, region_executions
from dtir.analysis.scalars import scalar_text
from dtir.analysis.summary import source_of
from dtir.importers.base import Imported
from dtir.ir.ids import RegionId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint
from dtir.ir.types import dtype_bits
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic
from dtir_app.dataflow import Dataflow, dataflow
from dtir_app.findings import resolve
from dtir_app.groups import GroupAxes, group_axes, strides_of
from dtir_app.kinds import FAMILY_OF_KIND, KIND_INDEX, kind_name
from dtir_app.layouts import layout_text
from dtir_app.numbering import Numbering
from dtir_app.numbers import message_of, number_of
from dtir_app.paths import task_name, task_path
from dtir_app.store import Finding, Opened, Scope, Store, TaskColumns, ValueColumns, frozen_array
from dtir_app.text import shape_text


def structure_only(program: DistributedTaskIR) -> tuple[Diagnostic, ...]:
    """The findings of the structural verifier."""
    return tuple(program.diagnostics())


def open_imported(
    imported: Imported, judge: Callable[[DistributedTaskIR], Iterable[Diagnostic]] = structure_only
) -> Opened:
    """The columns of an import; findings of the reader come first, then those of the judge."""
    if imported.program is None:
        found = tuple(resolve(item, None) for item in imported.diagnostics)
        return Opened(imported.label, imported.digest, imported.format, None, found)
    known = set(imported.diagnostics)
    judged = [item for item in judge(imported.program) if item not in known]
    store = build_store(
        imported.program,
        digest=imported.digest,
        label=imported.label,
        format=imported.format,
        diagnostics=(*imported.diagnostics, *judged),
    )
    return Opened(imported.label, imported.digest, imported.format, store, store.findings)


def build_store(
    program: DistributedTaskIR, *, digest: str, label: str, format: str, diagnostics: Sequence[Diagnostic] = ()
) -> Store:
    """The columns of one program.

    Args:
        program: any program, valid or not: broken references are findings of the verifier and simply lead nowhere here.
        digest: what links to the program name.
        label: file name.
        format: short name of the source format.
        diagnostics: what was found about it.
    """
    numbering = Numbering.of(program)
    findings = tuple(resolve(item, numbering.places) for item in diagnostics)
    regions = {region.id: position + 1 for position, region in enumerate(program.regions)}
    scopes, enters = _scopes(program, numbering, regions)
    flow = dataflow(numbering, len(scopes))
    return Store(
        digest=digest,
        label=label,
        format=format,
        program=program,
        scopes=scopes,
        tasks=_task_columns(program, numbering, scopes, enters, findings),
        values=_value_columns(program, numbering, flow, findings),
        edges=flow.edges,
        findings=findings,
        task_records=tuple(numbering.tasks),
        value_records=tuple(numbering.values),
        task_index=numbering.task_index,
        value_index=numbering.value_index,
        scoped_values=numbering.scoped_values,
    )


def _scopes(
    program: DistributedTaskIR, numbering: Numbering, regions: Mapping[RegionId, int]
) -> tuple[tuple[Scope, ...], dict[int, tuple[int, ...]]]:
    enters: dict[int, tuple[int, ...]] = {}
    callers: dict[int, list[int]] = {}
    if regions:
        for index, task in enumerate(numbering.tasks):
            targets = tuple(dict.fromkeys(regions[name] for name, _ in entered(task.body) if name in regions))
            if targets:
                enters[index] = targets
                for target in targets:
                    callers.setdefault(target, []).append(index)
    by_id = {region.id: region for region in program.regions}
    runs = region_executions(program.tasks, by_id) if regions else {}
    made: list[Scope] = []
    for number, (scope, first_task, first_value) in enumerate(numbering.scopes):
        made.append(
            Scope(
                number,
                scope.name or ("program" if number == 0 else f"region {number}"),
                first_task,
                first_task + len(scope.tasks),
                first_value,
                first_value + len(scope.values),
                tuple(callers.get(number, ())),
                1 if number == 0 else runs[program.regions[number - 1].id],
            )
        )
    return tuple(made), enters


def _axes_of(program: DistributedTaskIR, tasks: Sequence[DistributedTask]) -> tuple[list[int], dict[int, GroupAxes]]:
    bit = {axis.name: 1 << position for position, axis in enumerate(program.mesh.axes[:62])}
    masks = [0] * len(tasks)
    how: dict[int, GroupAxes] = {}
    seen: dict[object, GroupAxes] = {}
    strides = strides_of(program.mesh)
    for index, task in enumerate(tasks):
        if isinstance(task.body, Collective):
            spec = task.body.spec
            key = (type(spec), getattr(spec, "axes", ()), getattr(spec, "groups", ()) or getattr(spec, "pairs", ()))
            if not key[1] and not key[2]:
                key = (type(spec), "participants", spec.participants)
            if key not in seen:
                seen[key] = group_axes(spec, program.mesh)
            how[index] = seen[key]
        elif isinstance(task.body, PointToPoint):
            source, destination = task.body.spec.source_rank, task.body.spec.destination_rank
            if max(source, destination) < program.mesh.size:
                moved = tuple(
                    axis.name
                    for axis in program.mesh.axes
                    if source // strides[axis.name] % axis.size != destination // strides[axis.name] % axis.size
                )
                how[index] = GroupAxes(moved, inferred=True)
        if index in how:
            masks[index] = sum(bit.get(name, 0) for name in how[index].axes)
    return masks, how


def _worst(count: int, findings: Sequence[Finding], which: str) -> np.ndarray:
    worst = np.full(count, 3, dtype=np.int8)
    order = {"error": 0, "warning": 1, "info": 2}
    for finding in findings:
        for index in getattr(finding, which):
            worst[index] = min(worst[index], order[finding.severity])
    worst.setflags(write=False)
    return worst


def _task_columns(
    program: DistributedTaskIR,
    numbering: Numbering,
    scopes: Sequence[Scope],
    enters: Mapping[int, tuple[int, ...]],
    findings: Sequence[Finding],
) -> TaskColumns:
    tasks = numbering.tasks
    kinds = [KIND_INDEX[kind_name(task.body)] for task in tasks]
    runs = [scopes[number].executions for number in numbering.task_scope]
    masks, how = _axes_of(program, tasks)
    bindings = program.bindings
    return TaskColumns(
        id=tuple(task.id.value for task in tasks),
        name=tuple(task_name(task) for task in tasks),
        operation=tuple(str(task.operation) for task in tasks),
        source=tuple(source_of(task) or "" for task in tasks),
        path=tuple(task_path(task) for task in tasks),
        kind=frozen_array(kinds, np.int8),
        family=frozen_array((int(FAMILY_OF_KIND[kind]) for kind in kinds), np.int8),
        scope=frozen_array(numbering.task_scope, np.int32),
        rank_count=frozen_array((len(task.ranks) for task in tasks), np.int64),
        message_bytes=frozen_array((number_of(message_of(task), bindings) for task in tasks), np.float64),
        executions=frozen_array((math.nan if count is None else min(count, 1e300) for count in runs), np.float64),
        axes=frozen_array(masks, np.int64),
        worst=_worst(len(tasks), findings, "tasks"),
        group_axes=how,
        entered=enters,
    )


def _value_columns(
    program: DistributedTaskIR,
    numbering: Numbering,
    flow: Dataflow,
    findings: Sequence[Finding],
) -> ValueColumns:
    values = numbering.values
    sizes = {axis.name: axis.size for axis in program.mesh.axes}
    return ValueColumns(
        id=tuple(value.id.value for value in values),
        name=tuple(
            value.name
            or (
                task_name(numbering.tasks[made]) if (made := int(flow.producer[position])) >= 0 else f"value {position}"
            )
            for position, value in enumerate(values)
        ),
        dtype=tuple(value.type.dtype for value in values),
        shape=tuple(
            shape_text(
                value.type.dtype,
                [dim if isinstance(dim, (int, float)) else scalar_text(dim) for dim in value.type.shape],
            )
            for value in values
        ),
        layout=tuple(layout_text(value, program.mesh) for value in values),
        role=tuple(value.role.value for value in values),
        scope=frozen_array(numbering.value_scope, np.int32),
        producer=flow.producer,
        reader_start=flow.reader_start,
        readers=flow.readers,
        local_bytes=frozen_array((_local_bytes(value, sizes, program.bindings) for value in values), np.float64),
        worst=_worst(len(values), findings, "values"),
    )


def _local_bytes(value: DistributedValue, sizes: Mapping[str, int], bindings: Mapping[str, int | float]) -> float:
    """Bytes of the largest shard; an uneven split counts its largest block."""
    bits = dtype_bits(value.type.dtype)
    if bits is None:
        return math.nan
    elements = 1.0
    spec = value.sharding
    explicit = {item.dim: max(item.sizes) for item in spec.sizes}
    for dim, extent in enumerate(value.type.shape):
        number = number_of(extent, bindings)
        parts = (
            math.prod(sizes.get(axis, 1) for axis in spec.dimension_axes[dim]) if dim < len(spec.dimension_axes) else 1
        )
        elements *= explicit.get(dim, math.ceil(number / parts) if math.isfinite(number) else math.nan)
    return math.ceil(elements * bits / 8) if math.isfinite(elements) else elements
