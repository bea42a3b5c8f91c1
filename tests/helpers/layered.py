"""Large programs of known shape: layers that repeat, with microbatches, with a layer that is not like the others.

A layer gathers, multiplies, attends, multiplies and scatters, then does the same for its MLP: ten tasks, four of them collectives.
"""

from __future__ import annotations

from collections.abc import Callable

from dtir.ir import (
    AllGather,
    Collective,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Lineage,
    LocalCompute,
    LogicalMesh,
    NodeId,
    OperationName,
    ReduceScatter,
    ReductionKind,
    ShardingSpec,
    TaskBodyVariant,
    TensorType,
    ValueId,
    ValueRole,
    all_ranks,
    make_header,
)
from tests.helpers.programs import SOURCE_DIGEST, mesh_of

STEPS = (
    ("gather_in", "all_gather"),
    ("qkv", "dot"),
    ("attend", "softmax"),
    ("out", "dot"),
    ("scatter_in", "reduce_scatter"),
    ("gather_mlp", "all_gather"),
    ("up", "dot"),
    ("act", "gelu"),
    ("down", "dot"),
    ("scatter_mlp", "reduce_scatter"),
)
"""Name and operation of the tasks of a layer, in order."""


def dotted(microbatch: int, layer: int, step: str) -> str:
    """``mb.0.layers.3.qkv``"""
    return f"mb.{microbatch}.layers.{layer}.{step}"


def nameless(microbatch: int, layer: int, step: str) -> str:
    """The step alone: which layer it is of can only be seen from the structure."""
    return step


def layered(
    layers: int,
    microbatches: int = 1,
    *,
    name: Callable[[int, int, str], str] = dotted,
    odd: dict[int, frozenset[str]] | None = None,
    mesh: LogicalMesh | None = None,
) -> DistributedTaskIR:
    """A program of ``10 × layers × microbatches + 2`` tasks.

    Args:
        layers: number of layers.
        microbatches: independent runs through all layers.
        name: name of a task from microbatch, layer and step.
        odd: layers that lack some steps.
        mesh: dp 2 × tp 4 unless given.
    """
    mesh = mesh or mesh_of(dp=2, tp=4)
    ranks = all_ranks(mesh.size)
    kind = TensorType((64, 128), "bf16")
    layout = ShardingSpec(((), ()), mesh.axis_names)
    root = Lineage.root()
    bodies: dict[str, TaskBodyVariant] = {
        "all_gather": Collective(AllGather(participants=ranks, message_bytes=16384, axes=("tp",), dim=0)),
        "reduce_scatter": Collective(
            ReduceScatter(participants=ranks, message_bytes=16384, axes=("tp",), dim=0, reduction=ReductionKind.SUM)
        ),
    }
    local = LocalCompute()
    values: list[DistributedValue] = []
    tasks: list[DistributedTask] = []
    maker: dict[ValueId, NodeId] = {}

    def made(title: str, *key: object, role: ValueRole = ValueRole.ACTIVATION) -> ValueId:
        known = ValueId.derive("layered", *map(str, key))
        values.append(DistributedValue(known, kind, role, layout, ranks, root, name=title))
        return known

    def add(title: str, operation: str, inputs: tuple[ValueId, ...], *key: object) -> ValueId:
        out = made(f"{title}.out", *key)
        node = maker[out] = NodeId.derive("layered", *map(str, key))
        tasks.append(
            DistributedTask(
                id=node,
                operation=OperationName("core", operation),
                body=bodies.get(operation, local),
                ranks=ranks,
                dependencies=tuple(maker[value] for value in inputs if value in maker),
                inputs=inputs,
                outputs=(out,),
                lineage=root,
                name=title,
            )
        )
        return out

    start = made("x", "x", role=ValueRole.INPUT)
    embedded = add("embed", "lookup", (start,), "embed")
    ends: list[ValueId] = []
    for microbatch in range(microbatches):
        now = embedded
        for layer in range(layers):
            for step, operation in STEPS:
                if odd and step in odd.get(layer, ()):
                    continue
                now = add(name(microbatch, layer, step), operation, (now,), microbatch, layer, step)
        ends.append(now)
    result = add("loss", "sum", tuple(ends), "loss")
    return DistributedTaskIR(
        header=make_header("dtir.distributed-task", DistributedTaskIR.SCHEMA_VERSION, parent_digests=(SOURCE_DIGEST,)),
        name=f"layered-{layers}x{microbatches}",
        source_model_digest=SOURCE_DIGEST,
        mesh=mesh,
        values=tuple(values),
        tasks=tuple(tasks),
        inputs=(start,),
        outputs=(result,),
    )
