"""Small programs built by hand, for tests that need one and not a file."""

from __future__ import annotations

from typing import Any

from dtir.ir import (
    AllReduce,
    Call,
    Collective,
    CollectivePermute,
    CollectiveSpecVariant,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Lineage,
    LocalCompute,
    LogicalMesh,
    Loop,
    MeshAxis,
    NodeId,
    OperationName,
    ReductionKind,
    Region,
    RegionId,
    ShardingSpec,
    TaskBodyVariant,
    TensorType,
    ValueId,
    ValueRole,
    all_ranks,
    make_header,
)
from dtir.schema import FrozenDict

SOURCE_DIGEST = "0" * 40


def value_id(name: str) -> ValueId:
    return ValueId.derive("test", name)


def node_id(name: str) -> NodeId:
    return NodeId.derive("test", name)


def region_id(name: str) -> RegionId:
    return RegionId.derive("test", name)


def value(
    name: str, mesh: LogicalMesh, *, dtype: str = "f32", role: ValueRole = ValueRole.ACTIVATION
) -> DistributedValue:
    return DistributedValue(
        id=value_id(name),
        type=TensorType((4, 8), dtype),
        role=role,
        sharding=ShardingSpec(((), ()), mesh.axis_names),
        owners=all_ranks(mesh.size),
        lineage=Lineage.root(),
        name=name,
    )


def task(
    name: str,
    mesh: LogicalMesh,
    body: TaskBodyVariant,
    inputs: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    **fields: Any,
) -> DistributedTask:
    given: dict[str, Any] = {
        "operation": OperationName("core", "op"),
        "ranks": all_ranks(mesh.size),
        "dependencies": (),
        "lineage": Lineage.root(),
        "name": name,
    }
    return DistributedTask(
        id=node_id(name),
        body=body,
        inputs=tuple(map(value_id, inputs)),
        outputs=tuple(map(value_id, outputs)),
        **{**given, **fields},
    )


def mesh_of(**axes: int) -> LogicalMesh:
    """A mesh: ``mesh_of(dp=2, tp=4)``."""
    return LogicalMesh("mesh", tuple(MeshAxis(name, size) for name, size in axes.items()))


def all_reduce(mesh: LogicalMesh, *, size_bytes: int = 128, **fields: Any) -> AllReduce:
    given: dict[str, Any] = {
        "participants": all_ranks(mesh.size),
        "message_bytes": size_bytes,
        "reduction": ReductionKind.SUM,
    }
    return AllReduce(**{**given, **fields})


def program(
    mesh: LogicalMesh | None = None,
    *,
    name: str = "demo",
    spec: CollectiveSpecVariant | None = None,
    task_name: str = "sum.1",
    **fields: Any,
) -> DistributedTaskIR:
    """x -> local compute -> h -> collective -> y, on dp 2 × tp 4 unless said otherwise."""
    mesh = mesh or mesh_of(dp=2, tp=4)
    given: dict[str, Any] = {
        "source_model_digest": SOURCE_DIGEST,
        "values": (
            value("x", mesh, role=ValueRole.INPUT),
            value("h", mesh),
            value("y", mesh, role=ValueRole.OUTPUT),
        ),
        "tasks": (
            task("mul.0", mesh, LocalCompute(), ("x",), ("h",)),
            task(
                task_name,
                mesh,
                Collective(spec or all_reduce(mesh, axes=("tp",))),
                ("h",),
                ("y",),
                dependencies=(node_id("mul.0"),),
                attributes=FrozenDict({"op_name": "jit(f)/psum"}),
            ),
        ),
        "inputs": (value_id("x"),),
        "outputs": (value_id("y"),),
        "header": make_header(
            "dtir.distributed-task", DistributedTaskIR.SCHEMA_VERSION, parent_digests=(SOURCE_DIGEST,)
        ),
    }
    return DistributedTaskIR(name=name, mesh=mesh, **{**given, **fields})


def permute(mesh: LogicalMesh, pairs: tuple[tuple[int, int], ...]) -> CollectivePermute:
    return CollectivePermute(all_ranks(mesh.size), 64, pairs)


def region(name: str, mesh: LogicalMesh, tasks: tuple[DistributedTask, ...]) -> Region:
    """A region that takes nothing and gives nothing: enough for counting how often things run."""
    return Region(region_id(name), name, (), tasks, (), ())


def call(name: str, mesh: LogicalMesh, target: str) -> DistributedTask:
    return task(name, mesh, Call(region_id(target)))


def loop(name: str, mesh: LogicalMesh, body: str, trips: int | None, condition: str | None = None) -> DistributedTask:
    return task(name, mesh, Loop(region_id(body), region_id(condition) if condition else None, trips))
