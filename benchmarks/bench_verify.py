"""How long the static verifier takes, as ratios in one run.

Peers: for a program, one plain pass over its tasks that looks up every value (the least that any judge must do); for the
analysis of order and deadlock, one plain pass over all issue lists that looks up every entry.
Inputs: a stack of layers (matmul, all_reduce, relu, shard) of 1k, 10k and 100k tasks on 8 ranks; issue lists of 500 steps
for 512, 2,048 and 8,192 ranks (4.1 M participant slots), in the order of the task list (the shortcut decides) and in
another order (the event graph is run); a 1F1B pipeline with sends and receives grouped.

    python benchmarks/bench_verify.py         # a table: medians of CPU time, and ratios to the peer
    pytest benchmarks/bench_verify.py         # the same stages with pytest-benchmark
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest

from dtir.ir import (
    AllReduce,
    Collective,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    IssueList,
    Lineage,
    LocalCompute,
    LogicalMesh,
    MeshAxis,
    NodeId,
    OperationName,
    Partial,
    PeerTransfer,
    PointToPoint,
    ReductionKind,
    ShardingSpec,
    TensorType,
    ValueId,
    ValueRole,
    make_header,
)
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION
from dtir.schema.frozen import EMPTY_MAP, FrozenDict
from dtir.verify import judge
from dtir.verify.waiting import Runs

DIGEST = "a" * 40
ROOT = Lineage.root("benchmark")
TASKS = (1_000, 10_000, 100_000)
RANKS = (512, 2_048, 8_192)
STEPS = 500


def layers(tasks: int) -> DistributedTaskIR:
    """Row-parallel layers on a 2 x 4 mesh, four tasks each."""
    mesh = LogicalMesh("mesh", (MeshAxis("dp", 2), MeshAxis("tp", 4)))
    everyone = tuple(range(8))
    wide, square = TensorType((16, 64), "bf16"), TensorType((64, 64), "bf16")
    split = ShardingSpec((("dp",), ("tp",)))
    whole = ShardingSpec((("dp",), ()), ("tp",))
    pending = ShardingSpec((("dp",), ()), partial=Partial(("tp",), ReductionKind.SUM))
    values: list[DistributedValue] = []

    def value(name: str, kind: TensorType, layout: ShardingSpec) -> ValueId:
        made = DistributedValue(ValueId.derive(name), kind, ValueRole.ACTIVATION, layout, everyone, ROOT)
        values.append(made)
        return made.id

    reduce = Collective(AllReduce(everyone, 1024, ReductionKind.SUM, axes=("tp",)))
    own, local = FrozenDict({"op.axis": "tp", "op.dim": 1}), LocalCompute()
    names = {name: OperationName("core", name) for name in ("matmul", "all_reduce", "relu", "shard")}
    first, weight = value("x", wide, split), value("w", square, ShardingSpec((("tp",), ()), ("dp",)))
    current, made = first, list[DistributedTask]()
    for number in range(tasks // 4):
        product = value(f"p{number}", wide, pending)
        total = value(f"r{number}", wide, whole)
        active = value(f"a{number}", wide, whole)
        block = value(f"y{number}", wide, split)
        for name, body, inputs, output in (
            ("matmul", local, (current, weight), product),
            ("all_reduce", reduce, (product,), total),
            ("relu", local, (total,), active),
            ("shard", local, (active,), block),
        ):
            attributes = own if name == "shard" else EMPTY_MAP
            identifier = NodeId.derive(name, number)
            made.append(
                DistributedTask(
                    identifier, body, names[name], everyone, inputs, (output,), (), ROOT, attributes=attributes
                )
            )
        current = block
    return _program(mesh, values, made, (first, weight), (current,))


def _program(
    mesh: LogicalMesh,
    values: list[DistributedValue],
    tasks: list[DistributedTask],
    inputs: tuple[ValueId, ...],
    outputs: tuple[ValueId, ...],
    issue: tuple[IssueList, ...] = (),
) -> DistributedTaskIR:
    header = make_header(NATIVE_SCHEMA, NATIVE_VERSION, parent_digests=(DIGEST,))
    return DistributedTaskIR(
        "benchmark", DIGEST, mesh, tuple(values), tuple(tasks), inputs, outputs, header=header, issue=issue
    )


def _token(ranks: int) -> DistributedValue:
    layout = ShardingSpec(((),), ("dp", "tp"))
    return DistributedValue(
        ValueId.derive("t"), TensorType((16,), "f32"), ValueRole.STATE, layout, tuple(range(ranks)), ROOT
    )


def fabric(ranks: int, *, swapped: bool) -> DistributedTaskIR:
    """Every rank issues 500 reductions, over tp and dp in turn; `swapped`: in another order than the task list, alike on all ranks."""
    mesh = LogicalMesh("mesh", (MeshAxis("dp", ranks // 8), MeshAxis("tp", 8)))
    everyone, token = tuple(range(ranks)), _token(ranks)
    bodies = [Collective(AllReduce(everyone, 64, ReductionKind.SUM, axes=(axis,))) for axis in ("tp", "dp")]
    name = OperationName("core", "all_reduce")
    tasks = [DistributedTask(NodeId.derive(i), bodies[i % 2], name, everyone, (), (), (), ROOT) for i in range(STEPS)]
    order = [(tasks[i ^ 1 if swapped else i].id,) for i in range(STEPS)]
    issue = tuple(IssueList(rank, tuple(order)) for rank in range(ranks))
    return _program(mesh, [token], tasks, (token.id,), (token.id,), issue)


def pipeline(stages: int, microbatches: int) -> DistributedTaskIR:
    """1F1B: the steady state sends forward and receives backward in one step."""
    mesh = LogicalMesh("mesh", (MeshAxis("dp", 1), MeshAxis("tp", stages)))
    token, name = _token(stages), OperationName("p2p", "send")
    hops: dict[tuple[str, int, int], NodeId] = {}
    tasks: list[DistributedTask] = []
    for stage in range(stages - 1):
        for microbatch in range(microbatches):
            for way, ends in (("f", (stage, stage + 1)), ("b", (stage + 1, stage))):
                identifier = hops[way, stage, microbatch] = NodeId.derive(way, stage, microbatch)
                body = PointToPoint(PeerTransfer(*ends, 64, way))
                tasks.append(DistributedTask(identifier, body, name, ends, (), (), (), ROOT))
    issue = tuple(IssueList(rank, _steps(rank, stages, microbatches, hops)) for rank in range(stages))
    return _program(mesh, [token], tasks, (token.id,), (token.id,), issue)


def _steps(
    rank: int, stages: int, microbatches: int, hops: dict[tuple[str, int, int], NodeId]
) -> tuple[tuple[NodeId, ...], ...]:
    steps: list[tuple[NodeId, ...]] = []
    first, last = rank == 0, rank == stages - 1
    warm = min(microbatches, stages - rank - 1)

    def forward(microbatch: int, *more: NodeId) -> None:
        if not first:
            steps.append((hops["f", rank - 1, microbatch],))
        if not last:
            steps.append((hops["f", rank, microbatch], *more))

    for microbatch in range(warm):
        forward(microbatch)
    for microbatch in range(microbatches):
        ahead = microbatch + warm
        back = () if last else (hops["b", rank, microbatch],)
        if ahead < microbatches:
            forward(ahead, *back)
        elif back:
            steps.append(back)
        if not first:
            steps.append((hops["b", rank - 1, microbatch],))
    return tuple(steps)


def _touch(program: DistributedTaskIR) -> int:
    known = {value.id: value for value in program.values}
    return sum(len(known[item].owners) for task in program.tasks for item in (*task.inputs, *task.outputs))


def _look_up(program: DistributedTaskIR) -> int:
    place = {task.id: index for index, task in enumerate(program.tasks)}
    return sum(place[item] for issue in program.issue for step in issue.steps for item in step)


def _static(program: DistributedTaskIR) -> None:
    assert judge(program, ("static",)).diagnostics == ()


def _waits(program: DistributedTaskIR) -> None:
    runs = Runs(program, "nccl")
    assert runs.circle is None
    assert runs.crossing is None
    assert runs.absent == {}


def median_s(work: Callable[[DistributedTaskIR], object], program: DistributedTaskIR, rounds: int = 3) -> float:
    """Median CPU time: wall time on a busy machine says how busy it is."""
    times: list[float] = []
    for _ in range(rounds):
        begin = time.process_time()
        work(program)
        times.append(time.process_time() - begin)
    return statistics.median(times)


def main() -> None:
    rows: list[
        tuple[str, DistributedTaskIR, Callable[[DistributedTaskIR], object], Callable[[DistributedTaskIR], object]]
    ] = []
    rows += [(f"static, {size:,} tasks, 8 ranks", layers(size), _static, _touch) for size in TASKS]
    for ranks in RANKS:
        name = f"order, {ranks:,} ranks, {ranks * STEPS / 1e6:.1f} M slots"
        rows.append((f"{name}, list order", fabric(ranks, swapped=False), _waits, _look_up))
        rows.append((f"{name}, other order", fabric(ranks, swapped=True), _waits, _look_up))
    rows.append(("order, 1F1B, 256 stages x 1,000", pipeline(256, 1000), _waits, _look_up))
    print(f"{'input':48} {'ours':>9} {'peer':>9} {'ratio':>7}")
    for name, program, ours, peer in rows:
        took, base = median_s(ours, program), median_s(peer, program)
        print(f"{name:48} {took:8.3f}s {base:8.3f}s {took / base:6.1f}x")


@pytest.mark.parametrize("size", TASKS[:2])
def test_static(benchmark: Callable[..., object], size: int) -> None:
    benchmark(_static, layers(size))


@pytest.mark.parametrize("swapped", [False, True])
def test_order(benchmark: Callable[..., object], swapped: bool) -> None:
    benchmark(_waits, fabric(RANKS[0], swapped=swapped))


if __name__ == "__main__":
    main()
