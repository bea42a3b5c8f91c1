"""What planning costs, and how well it predicts: ratios in one run.

    python benchmarks/bench_cost.py              # time a task of `dtir cost`, by number of tasks and of ranks
    python benchmarks/bench_cost.py predict      # calibrate on one sweep, predict another: numpy, and mpi where it runs
    pytest benchmarks/bench_cost.py              # that both run, on small sizes

Scaling: a chain of element-wise work and all_reduces, 8 ranks and 1,024; the time is that of the schedule and of all that
follows from it (critical path, memory, traffic), in CPU seconds, and should grow as the number of tasks does.

Prediction: curves are fitted to one sweep of message sizes, then *another* run measures sizes between them. The error is
predicted over measured minus 1, in the median over operations and sizes; the noise beside it is the spread (IQR over
median) of the very measurements that are predicted. What the same sizes differ by from run to run no model can foresee:
it is given as the third number.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from dtir.cost.calibrate import Plan, measure_curves
from dtir.cost.presets import load_preset
from dtir.cost.profile import Curve
from dtir.cost.report import make_report
from dtir.cost.schedule import make_schedule
from dtir.cost.sweep import OPERATIONS, sweep_program
from dtir.execute import Request, Timing, load_backend, prepare_run, run_prepared
from dtir.ir import AllReduce, Collective, DistributedTaskIR, ProgramBuilder, ReductionKind
from dtir.ir.ranks import all_ranks
from dtir.ir.sharding import Partial, ShardingSpec

PROFILE = "h100-nvlink-ib"
TASKS = (1_000, 10_000, 100_000)
RANKS = (8, 1_024)
SIDE = 64


def program(tasks: int, ranks: int) -> DistributedTaskIR:
    """A chain of so many tasks, every other one an all_reduce over all ranks."""
    build = ProgramBuilder("chain", axes={"tp": ranks})
    equal = ShardingSpec(((), ()), ("tp",))
    pending = ShardingSpec(((), ()), (), partial=Partial(("tp",), ReductionKind.SUM))
    value = build.input("x", (SIDE, SIDE), "f32", sharding=equal)
    reduce = Collective(AllReduce(all_ranks(ranks), 4 * SIDE * SIDE, ReductionKind.SUM, axes=("tp",)))
    for number in range(tasks // 2):
        part = build.value(f"p{number}", (SIDE, SIDE), "f32", sharding=pending)
        build.task("core.relu", (value,), (part,), name=f"work{number}")
        value = build.value(f"y{number}", (SIDE, SIDE), "f32", sharding=equal)
        build.task("core.all_reduce", (part,), (value,), body=reduce, name=f"reduce{number}")
    build.output(value)
    return build.build()


def planning_s(made: DistributedTaskIR) -> float:
    """CPU seconds of a schedule and its report."""
    made.diagnostics()
    begun = time.process_time()
    make_report(make_schedule(made, load_preset(PROFILE)).or_raise())
    return time.process_time() - begun


def scaling(tasks: Sequence[int], ranks: Sequence[int]) -> dict[tuple[int, int], float]:
    """Microseconds of CPU a task, by number of tasks and ranks."""
    return {
        (count, width): 1e6 * planning_s(program(count, width)) / count for width in ranks for count in tasks
    }  # fmt: skip


# -- prediction -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prediction:
    """How well curves of one run predict another, in percent.

    Args:
        sizes: how many (operation, size) were predicted.
        error: median of |predicted/measured - 1|.
        p90: what 90 % of those do not exceed.
        noise: median of IQR over median of the measurements that were predicted.
        repeat: median of |second/first - 1| of the same sizes in two runs.
    """

    sizes: int
    error: float
    p90: float
    noise: float
    repeat: float


def measure(backend: str) -> Callable[[DistributedTaskIR, int], Mapping[str, Sequence[float]]]:
    """Runs sweeps on a back end: seconds of every task and repetition, the slowest rank counting."""

    def run(made: DistributedTaskIR, repetitions: int) -> Mapping[str, Sequence[float]]:
        request = Request(
            backend=backend,
            processes=made.mesh.size if backend == "mpi" else None,
            timing=Timing(repetitions, warmup=2, isolated=True),
            compare=False,
            skip_local=True,
        )
        record = run_prepared(prepare_run(made, request).or_raise()).record
        assert record is not None
        assert record.complete
        longest: dict[tuple[str, int], int] = {}
        columns = record.records
        for place, step in enumerate(columns.step):
            key = (record.step(step).name, columns.repetition[place])
            longest[key] = max(longest.get(key, 0), columns.end_ns[place] - columns.start_ns[place])
        found: dict[str, list[float]] = {}
        for (name, _), nanoseconds in longest.items():
            found.setdefault(name, []).append(nanoseconds * 1e-9)
        return found

    return run


def between(sizes: Sequence[int]) -> list[int]:
    """Sizes that the fit has not seen."""
    return [3 * size // 2 for size in sizes[:-1]]


def predict(backend: str, ranks: int, sizes: Sequence[int], repetitions: int) -> Prediction:
    """Calibrate on some sizes, then predict those between them in runs of their own."""
    run = measure(backend)
    plan = Plan(group_sizes=(ranks,), sizes=sizes, repetitions=repetitions)
    curves = {(curve.op, curve.group_size): curve for curve in measure_curves(run, plan).curves}
    errors: list[float] = []
    noises: list[float] = []
    repeats: list[float] = []
    for op in OPERATIONS:
        members = 2 if op == "sendrecv" else ranks
        sweep = sweep_program(op, members, between(sizes))
        first, second = (run(sweep.program, 2 * repetitions) for _ in range(2))
        curve: Curve = curves[op, members]
        for name, size in sweep.sizes.items():
            low, middle, high = statistics.quantiles(first[name], n=4)
            # The curve holds the 10th percentile (a disturbance only makes longer): compared with the same.
            least, again = (statistics.quantiles(times[name], n=10)[0] for times in (first, second))
            errors.append(100 * abs(curve.seconds(size) / least - 1))
            repeats.append(100 * abs(again / least - 1))
            noises.append(100 * (high - low) / middle)
    deciles = statistics.quantiles(errors, n=10)
    return Prediction(
        len(errors), statistics.median(errors), deciles[8], statistics.median(noises), statistics.median(repeats)
    )


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    if list(arguments) == ["predict"]:
        sizes = [1 << power for power in range(6, 23)]
        print(
            f"{'back end':>10} {'ranks':>6} {'sizes':>6} {'median error':>13} {'p90':>8} {'noise':>8} {'run to run':>11}"
        )
        for backend, ranks in (("numpy", 4), ("numpy", 8), ("mpi", 2)):
            if not load_backend(backend).probe().ok:
                print(f"{backend:>10} {ranks:>6}  cannot run here")
                continue
            found = predict(backend, ranks, sizes, 20)
            print(f"{backend:>10} {ranks:>6} {found.sizes:>6} {found.error:>11.1f} % {found.p90:>6.1f} % "
                  f"{found.noise:>6.1f} % {found.repeat:>9.1f} %")  # fmt: skip
        return
    for (tasks, ranks), each in scaling(TASKS, RANKS).items():
        print(f"{tasks:>8} tasks, {ranks:>5} ranks: {each:8.1f} us a task, {each * tasks / 1e6:7.2f} s in all")


def test_it_plans_and_predicts() -> None:
    assert all(each > 0 for each in scaling((100, 200), (8,)).values())
    found = predict("numpy", 2, [1 << power for power in range(6, 12)], 4)
    assert found.sizes == 5 * len(OPERATIONS)
    assert found.error >= 0


@pytest.mark.parametrize("count", [100, 1_000])
def test_planning(benchmark: Callable[..., object], count: int) -> None:
    made = program(count, 8)
    benchmark(lambda: make_report(make_schedule(made, load_preset(PROFILE)).or_raise()))


if __name__ == "__main__":
    main(sys.argv[1:])
