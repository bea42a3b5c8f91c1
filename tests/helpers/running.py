"""Programs that run, and running them: HLO text, single collectives, and what they should give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtir.execute import ExecPlan, Options, Session, Slab, load_backend, make_plan
from dtir.execute.data import output_leaves
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.fabric import LocalFabric
from dtir.execute.values import Held, rows
from dtir.importers.hlo.importer import import_hlo
from dtir.ir import (
    Collective,
    CollectiveSpecVariant,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Lineage,
    LogicalMesh,
    MeshAxis,
    NodeId,
    OperationName,
    ShardingSpec,
    TensorType,
    ValueId,
    ValueRole,
    make_header,
)
from tests.helpers.devices import PLAYED, played_runtime, run_played
from tests.helpers.mpi_pool import run_in_pool

DIGEST = "0" * 40


def hlo_program(text: str) -> DistributedTaskIR:
    """The program of an HLO text; fails with what is wrong with it."""
    found = import_hlo(text)
    assert found.program is not None, [item.render() for item in found.diagnostics]
    return found.program


def plan_of(program: DistributedTaskIR) -> ExecPlan:
    """The plan of a program; fails with every reason why there is none."""
    return make_plan(program).or_raise()


def session_of(plan: ExecPlan, **options: Any) -> Session:
    """A session with all ranks in this process."""
    return Session(plan, LocalFabric(range(plan.ranks)), Options(**options))


def run_slabs(plan: ExecPlan, inputs: Sequence[Held], **options: Any) -> list[Held]:
    """Outputs of a plan on all ranks, from what the ranks hold of its inputs."""
    session = session_of(plan, **options)
    for slot, held in zip(plan.main.inputs, inputs, strict=True):
        session.load_slot(slot, held)
    for step in plan.main.steps:
        session.execute(step)
    return [session.read_slot(slot) for slot in output_leaves(plan)]


def run_hlo(text: str, *per_rank: Sequence[Any]) -> list[list[np.ndarray]]:
    """Outputs of an HLO text, one list a rank, from one list of arrays a parameter with the array of every rank."""
    plan = plan_of(hlo_program(text))
    ranks = tuple(range(plan.ranks))
    inputs = [
        Slab(
            ranks,
            np.stack([np.asarray(array, numpy_dtype(plan.main.slots[slot].value.type.dtype)) for array in arrays]),
        )
        for slot, arrays in zip(plan.main.inputs, per_rank, strict=True)
    ]
    outputs = run_slabs(plan, inputs)
    return [[rows(held)[rank] for held in outputs] for rank in ranks]


def run_one(text: str, *arrays: Any) -> list[np.ndarray]:
    """Outputs of an HLO text for one device."""
    (outputs,) = run_hlo(text, *([array] for array in arrays))
    return outputs


# -- single collectives -------------------------------------------------------------------------------------------------


def rank_mesh(ranks: int) -> LogicalMesh:
    return LogicalMesh("ranks", (MeshAxis("x", ranks),))


def per_rank_value(
    name: str,
    mesh: LogicalMesh,
    shape: Sequence[int],
    dtype: str,
    role: ValueRole = ValueRole.ACTIVATION,
    **fields: Any,
) -> DistributedValue:
    """A value of which every rank holds an array of this shape."""
    return DistributedValue(
        id=ValueId.derive("running", name),
        type=TensorType(tuple(shape), dtype),
        role=role,
        sharding=ShardingSpec(tuple(() for _ in shape), varying=mesh.axis_names),
        owners=tuple(range(mesh.size)),
        lineage=Lineage.root(),
        name=name,
        **fields,
    )


def collective_task(
    name: str, spec: CollectiveSpecVariant, source: str, target: str, after: Sequence[str] = ()
) -> DistributedTask:
    return DistributedTask(
        id=NodeId.derive("running", name),
        body=Collective(spec),
        operation=OperationName("hlo", name.split(".")[0]),
        ranks=tuple(spec.participants),
        inputs=(ValueId.derive("running", source),),
        outputs=(ValueId.derive("running", target),),
        dependencies=tuple(NodeId.derive("running", item) for item in after),
        lineage=Lineage.root(),
        name=name,
    )


def chain(
    mesh: LogicalMesh, values: Sequence[DistributedValue], tasks: Sequence[DistributedTask], **fields: Any
) -> DistributedTaskIR:
    """A program over some values; the first is the input, the last the output."""
    return DistributedTaskIR(
        name="chain",
        source_model_digest=DIGEST,
        mesh=mesh,
        values=tuple(values),
        tasks=tuple(tasks),
        inputs=(values[0].id,),
        outputs=(values[-1].id,),
        header=make_header("dtir.distributed-task", DistributedTaskIR.SCHEMA_VERSION, parent_digests=(DIGEST,)),
        **fields,
    )


def run_backend(name: str, plan: ExecPlan, inputs: Sequence[Held]) -> list[Held]:
    """Outputs of a plan on a back end, with its default binding.

    In several processes: a rank in each, from five ranks on three processes that host unequally many; collectives in
    rank order, so that every back end gives the same bits. On devices that are played on the host: ranks spread over them.
    """
    if name in PLAYED:
        return run_played(plan, inputs, played_runtime(PLAYED[name]))
    backend = load_backend(name)
    if backend.probe().capabilities.processes:
        return run_in_pool(plan, inputs, processes=plan.ranks if plan.ranks < 5 else 3)
    session = backend.prepare(plan, backend.default_binding(plan), Options())
    try:
        for slot, held in zip(plan.main.inputs, inputs, strict=True):
            session.load_slot(slot, held)
        for step in plan.main.steps:
            session.execute(step)
        session.sync()
        return [session.read_slot(slot) for slot in output_leaves(plan)]
    finally:
        session.close()
