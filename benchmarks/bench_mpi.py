"""What running a collective inside a plan costs on top of calling MPI: ratios in one run, process for process.

Peer: the same collective by mpi4py itself (`Allreduce`, `Allgather`, ...), with buffers that are made once. Ours is a step
of a plan as `dtir run` executes it: operands looked up, shapes checked, the watchdog told, bytes counted on both sides,
a fresh result. Calls take turns, each after a barrier. As in a run record a call lasts from the last start to the last
end, on the clock that the processes of a host share: what one process waits for another is not the collective's time.

Inputs: float32 vectors of 1 KiB to 16 MiB a rank, one rank a process.

    python benchmarks/bench_mpi.py           # a table for 2 processes
    python benchmarks/bench_mpi.py 4         # for 4
    pytest benchmarks/bench_mpi.py           # that it runs, on small sizes

On a machine that does other work too, `BENCH_MPI_PIN=1` gives every process a processor of its own.

"step" is what a run record holds (around the exchange alone); "whole" is everything that `Session.execute` does, from the
first start on.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute import Options, Slab, Step, load_backend, make_plan, spread
from dtir.execute.backends.base import Traffic
from dtir.execute.launch import find_launcher, worker_environment
from dtir.execute.launch_board import Board
from dtir.execute.session import Session
from dtir.execute.watchdog import Watchdog
from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    Collective,
    CollectiveSpecVariant,
    ProgramBuilder,
    ReduceScatter,
    ReductionKind,
)

ROOT = Path(__file__).resolve().parents[1]
KIB, MIB = 1 << 10, 1 << 20
SIZES = (KIB, 16 * KIB, 128 * KIB, 512 * KIB, MIB, 4 * MIB, 16 * MIB)
KINDS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast")
PIN = "BENCH_MPI_PIN"
"""Environment variable: when set, every process stays on a processor of its own. On a machine that others use too, the
scheduler else puts several processes on one processor, and then what one of them does in Python is time of all."""

FROM = 128 * KIB
"""From this size on the ratio is to be at most 1.05."""


def spec_of(kind: str, ranks: int) -> CollectiveSpecVariant:
    everybody = tuple(range(ranks))
    match kind:
        case "all_reduce":
            return AllReduce(everybody, 0, ReductionKind.SUM)
        case "reduce_scatter":
            return ReduceScatter(everybody, 0, ReductionKind.SUM, dim=0)
        case "all_gather":
            return AllGather(everybody, 0, dim=0)
        case "all_to_all":
            return AllToAll(everybody, 0, split_dim=0, concat_dim=0)
        case _:
            return Broadcast(everybody, 0, 0)


def result_elements(kind: str, elements: int, ranks: int) -> int:
    return {"reduce_scatter": elements // ranks, "all_gather": elements * ranks}.get(kind, elements)


class Case:
    """One collective at one size, by us and by mpi4py."""

    def __init__(self, kind: str, size_bytes: int) -> None:
        from dtir.execute.backends.mpi import MpiBackend
        from dtir.execute.backends.mpi_world import world

        self.world = world()
        ranks, elements = self.world.size, size_bytes // 4
        build = ProgramBuilder("bench", axes={"x": ranks})
        a = build.input("a", (elements,), "f32", varying=("x",))
        b = build.value("b", (result_elements(kind, elements, ranks),), "f32", varying=("x",))
        build.task(f"hlo.{kind.replace('_', '-')}", (a,), (b,), body=Collective(spec_of(kind, ranks)), name=kind)
        build.output(b)
        plan = make_plan(build.build()).or_raise()
        board = Board.create(ranks)
        watch = Watchdog(board, self.world.process, 600.0, lambda stall: None)
        binding = spread("mpi", ranks, ranks)
        self.step_ns = (0, 0)
        self.session: Session = MpiBackend(watch).prepare(plan, binding, Options(), self._note)
        (self._step,) = plan.main.steps
        self.source = np.random.default_rng(self.world.process).standard_normal(elements).astype(np.float32)
        self.target = np.empty(result_elements(kind, elements, ranks), np.float32)
        self._input = plan.main.inputs[0]
        self.raw = self._raw(kind, elements)

    def _note(self, step: Step, ranks: Any, start: int, end: int, sent: Traffic | None = None) -> None:
        self.step_ns = (start, end)

    def load(self) -> None:
        """A step frees what nobody reads after it: the operand is given again before each turn, and the result dropped."""
        self.session.reset()
        self.session.load_slot(self._input, Slab((self.world.process,), self.source[None]))

    def ours(self) -> None:
        self.session.execute(self._step)

    def _raw(self, kind: str, elements: int) -> Callable[[], object]:
        mpi, comm, source, target = self.world.mpi, self.world.comm, self.source, self.target
        own = [source, elements, mpi.FLOAT]
        match kind:
            case "all_reduce":
                return lambda: comm.Allreduce(own, [target, elements, mpi.FLOAT], op=mpi.SUM)
            case "reduce_scatter":
                share = [target, target.size, mpi.FLOAT]
                return lambda: comm.Reduce_scatter_block([source, target.size, mpi.FLOAT], share, op=mpi.SUM)
            case "all_gather":
                return lambda: comm.Allgather(own, [target, elements, mpi.FLOAT])
            case "all_to_all":
                each = elements // comm.size
                return lambda: comm.Alltoall([source, each, mpi.FLOAT], [target, each, mpi.FLOAT])
            case _:
                buffer = source.copy()
                return lambda: comm.Bcast([buffer, elements, mpi.FLOAT], root=0)


def measure(kind: str, size_bytes: int, turns: int) -> dict[str, Any]:
    case = Case(kind, size_bytes)
    comm, mpi = case.world.comm, case.world.mpi
    spans = np.empty((turns, 3, 2), np.int64)
    for turn in range(-3, turns):
        case.load()
        comm.Barrier()
        begin = time.perf_counter_ns()
        case.raw()
        raw = (begin, time.perf_counter_ns())
        comm.Barrier()
        begin = time.perf_counter_ns()
        case.ours()
        whole = (begin, time.perf_counter_ns())
        if turn >= 0:
            spans[turn] = raw, case.step_ns, whole
    last, first = np.empty_like(spans), np.empty_like(spans)
    comm.Allreduce(spans, last, op=mpi.MAX)
    comm.Allreduce(spans, first, op=mpi.MIN)
    starts = last[:, :, 0].copy()
    starts[:, 2] = first[:, 2, 0]
    lasted_us = (last[:, :, 1] - starts) / 1e3
    medians = [statistics.median(column) for column in lasted_us.T.tolist()]
    least = [min(column) for column in lasted_us.T.tolist()]
    return {"kind": kind, "bytes": size_bytes, "median_us": medians, "least_us": least}


def worker(sizes: list[int], turns: int) -> None:
    from dtir.execute.backends.mpi_world import world

    if os.environ.get(PIN):
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpus[world().process % len(cpus)]})
    for kind in KINDS:
        for size in sizes:
            found = measure(kind, size, max(10, turns // (1 + size // MIB)))
            if world().process == 0:
                print(json.dumps(found), flush=True)


def run(processes: int, sizes: tuple[int, ...], turns: int) -> list[dict[str, Any]]:
    """Start the processes and give what they measure."""
    program = [sys.executable, "-m", "mpi4py", str(Path(__file__)), "--worker", json.dumps([list(sizes), turns])]
    done = subprocess.run(
        find_launcher().command(processes, program),
        capture_output=True,
        text=True,
        env=worker_environment(),
        cwd=ROOT,
        check=True,
        timeout=900,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def ratios(row: dict[str, Any]) -> list[float]:
    """Ours over mpi4py's: step and whole, by median, then by the least."""
    return [row[key][at] / row[key][0] for key in ("median_us", "least_us") for at in (1, 2)]


def main(processes: int) -> None:
    rows = run(processes, SIZES, 200)
    print(f"{processes} processes, float32, times in us; ratios: ours over mpi4py")
    print(f"{'collective':>15} {'bytes':>9} {'mpi4py':>10} {'step':>10} {'whole':>10}"
          f" {'step/raw':>9} {'whole/raw':>9} {'least: step':>11} {'whole':>7}")  # fmt: skip
    for row in rows:
        raw, step, whole = row["median_us"]
        a, b, c, d = ratios(row)
        print(f"{row['kind']:>15} {row['bytes']:>9} {raw:>10.1f} {step:>10.1f} {whole:>10.1f}"
              f" {a:>9.3f} {b:>9.3f} {c:>11.3f} {d:>7.3f}")  # fmt: skip
    large = [ratios(row) for row in rows if row["bytes"] >= FROM]
    middle = [statistics.median(column) for column in zip(*large, strict=True)]
    print(f"from {FROM // KIB} KiB, median over collectives and sizes: step {middle[0]:.3f}, whole {middle[1]:.3f};"
          f" by the least times: step {middle[2]:.3f}, whole {middle[3]:.3f}")  # fmt: skip


@pytest.mark.mpi
@pytest.mark.timeout(240)
def test_it_measures_every_collective() -> None:
    probe = load_backend("mpi").probe()
    if not probe.ok:
        pytest.skip(f"mpi: {probe.reason}")
    rows = run(2, (KIB, 16 * KIB), 10)
    assert [row["kind"] for row in rows] == [kind for kind in KINDS for _ in range(2)]
    assert all(min(row["least_us"]) > 0 for row in rows)


if __name__ == "__main__":
    if "--worker" in sys.argv:
        worker(*json.loads(sys.argv[-1]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
