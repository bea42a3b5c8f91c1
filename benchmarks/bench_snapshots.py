"""How fast snapshots are read, digested, verified and written, as ratios in one run.

Peer: `json.loads` of the same upstream text, what any reader of it pays at least. Inputs: the shared chain of 10,000
tasks with one value a task (28 MB) where it is, a chain of that shape made here, or the file named on the command line.

    python benchmarks/bench_snapshots.py [FILE.json[.gz] | TASKS...]    # a table: best of three, ratios to the peer
    pytest benchmarks/bench_snapshots.py                                # the same stages with pytest-benchmark

Rounds are taken in turn, so that a busy machine slows all stages alike.
"""

from __future__ import annotations

import gc
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dtir.ir import (
    AllReduce,
    Collective,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Lineage,
    LocalCompute,
    NodeId,
    ProgramBuilder,
    ReductionKind,
    ShardingSpec,
    TensorType,
    ValueId,
    ValueRole,
)
from dtir.ir.snapshot import decode_snapshot

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream" / "21-chain-10k-dense.json.gz"


def chain(tasks: int) -> DistributedTaskIR:
    """A chain of blocks as real programs have them: one value a task, every seventh task a collective."""
    build = ProgramBuilder("chain", axes={"tp": 8})
    everyone = tuple(range(8))
    reduce = Collective(AllReduce(everyone, 134_217_728, ReductionKind.SUM))
    lineage = Lineage.lowered("decompose", (NodeId.derive("model"),))
    previous = build.input("", (1, 8192, 8192), "bf16", lineage=lineage, id=ValueId.derive("chain", -1))
    for index in range(tasks):
        made = DistributedValue(
            ValueId.derive("chain", index),
            build.values[0].type,
            ValueRole.ACTIVATION,
            build.values[0].sharding,
            everyone,
            lineage,
        )
        build.values.append(made)
        body = reduce if index % 7 == 6 else LocalCompute()
        build.task(f"transformer.step_{index % 28}", (previous,), (made.id,), body=body, lineage=lineage)
        previous = made.id
    build.output(previous)
    return build.build(require_valid=True)


class Input:
    """One program in every form that the stages need."""

    def __init__(self, label: str, text: str) -> None:
        self.label = label
        self.text = text
        self.program = DistributedTaskIR.require_from_json(text)
        self.native = self.program.to_json()
        self.pretty = json.dumps(json.loads(text), indent=1)


STAGES: dict[str, Callable[[Input], object]] = {
    "json.loads of the upstream text (peer)": lambda given: json.loads(given.text),
    "load + digest + verify": lambda given: DistributedTaskIR.require_from_json(given.text).upstream_digest,
    "  load + digest": lambda given: decode_snapshot(given.text),
    "load + digest + verify, white space": lambda given: DistributedTaskIR.require_from_json(given.pretty),
    "write upstream": lambda given: given.program.to_upstream_json(),
    "load + digest + verify, native": lambda given: DistributedTaskIR.require_from_json(given.native).digest,
    "write native": lambda given: given.program.to_json(),
}


def best_seconds(given: Input, rounds: int = 3) -> dict[str, float]:
    """The shortest time of each stage; all of them once a round."""
    found = dict.fromkeys(STAGES, float("inf"))
    for _ in range(rounds):
        for name, work in STAGES.items():
            gc.collect()
            begin = time.perf_counter()
            work(given)
            found[name] = min(found[name], time.perf_counter() - begin)
    return found


def per_object_us(work: Callable[[], object], count: int = 5000) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - begin) / count * 1e6


def construction() -> dict[str, Callable[[], object]]:
    program = chain(2)
    task, value = program.tasks[1], program.values[1]
    parts = (task.id, task.body, task.operation, task.ranks, task.inputs, task.outputs, task.dependencies, task.lineage)
    fields = (value.id, value.type, value.role, value.sharding, value.owners, value.lineage)
    return {
        "ValueId": lambda: ValueId(value.id.value),
        "TensorType": lambda: TensorType((4, 8), "f32"),
        "ShardingSpec": lambda: ShardingSpec(((), ("tp",)), ("dp",)),
        "DistributedValue": lambda: DistributedValue(*fields),
        "DistributedTask": lambda: DistributedTask(*parts),
    }


def import_seconds() -> float:
    """`import dtir` in a fresh interpreter, without the start of the interpreter; the best of five."""
    script = "import time; begin = time.perf_counter(); import dtir; print(time.perf_counter() - begin)"
    return min(float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(5))


def inputs(arguments: list[str]) -> list[Input]:
    if not arguments:
        arguments = [str(SHARED)] if SHARED.exists() else ["10000"]
    found: list[Input] = []
    for argument in arguments:
        if argument.isdigit():
            found.append(Input(f"made here, {argument} tasks", chain(int(argument)).to_upstream_json()))
        else:
            data = Path(argument).read_bytes()
            text = (gzip.decompress(data) if argument.endswith(".gz") else data).decode("utf-8")
            found.append(Input(Path(argument).name, text))
    return found


def main(arguments: list[str]) -> None:
    for given in inputs(arguments):
        tasks = len(given.program.tasks)
        print(f"{given.label}: {tasks} tasks, {len(given.text):,} characters, native {len(given.native):,}")
        seconds = best_seconds(given)
        base = next(iter(seconds.values()))
        for name, taken in seconds.items():
            print(f"  {name:40} {taken * 1e3:8.1f} ms {taken / base:6.2f}x {taken / tasks * 1e6:7.1f} us a task")
    print("building one object, its checks included:")
    for name, work in construction().items():
        print(f"  {name:40} {per_object_us(work):8.2f} us")
    print(f"import dtir: {import_seconds():.3f} s")


@pytest.fixture(scope="module", params=[1_000, 10_000])
def given(request: pytest.FixtureRequest) -> Input:
    return Input(f"{request.param} tasks", chain(request.param).to_upstream_json())


@pytest.mark.parametrize("stage", STAGES)
def test_stage(benchmark: Callable[..., object], given: Input, stage: str) -> None:
    benchmark(STAGES[stage], given)


if __name__ == "__main__":
    main(sys.argv[1:])
