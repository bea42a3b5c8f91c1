"""Calibration with a timer whose truth is known: sweeps are right programs, curves predict what was held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from dtir.cost.calibrate import SIZES, Machine, Plan, calibrated, local_rates, measure_curves, noise_of
from dtir.cost.profile import SENDRECV, Standing
from dtir.cost.profile_json import profile_json, read_profile
from dtir.cost.schedule import make_schedule
from dtir.cost.sweep import OPERATIONS, sweep_program
from dtir.ir.program import DistributedTaskIR
from dtir.schema.result import Ok
from dtir.verify import verify

HELD_OUT = (96, 1536, 24576, 393216, 6291456)


def truth(op: str, ranks: int, size: int) -> float:
    """A protocol change at 8 KiB; dearer for more ranks."""
    alpha, beta = (2e-6, 1e-9) if size < 8192 else (8e-6, 1e-10)
    return (alpha + beta * size) * ranks * (2 if op == "all_reduce" else 1)


class Clock:
    """Gives true times with noise that only ever makes them longer."""

    def __init__(self, noise: float) -> None:
        self.noise = noise
        self.rng = np.random.default_rng(7)
        self.repetitions: list[int] = []

    def measure(self, program: DistributedTaskIR, repetitions: int) -> Mapping[str, Sequence[float]]:
        self.repetitions.append(repetitions)
        found: dict[str, list[float]] = {}
        for task in program.tasks:
            op, _, size = task.name.rpartition(".")
            best = truth(op, program.mesh.size, int(size))
            found[task.name] = list(best * (1 + self.noise * self.rng.exponential(size=repetitions)))
        return found


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_sweeps_are_right_for_every_static_rule(op: str, ranks: int) -> None:
    sweep = sweep_program(op, ranks, [1, 8, 1000, 4096])
    assert [item.render() for item in verify(sweep.program) if item.severity.value == "error"] == []
    assert list(sweep.sizes) == [task.name for task in sweep.program.tasks]
    for size in sweep.sizes.values():
        assert size % (4 * ranks) == 0


@pytest.mark.parametrize(
    ("op", "ranks", "sizes"),
    [("all_sum", 2, [8]), ("all_reduce", 1, [8]), ("all_reduce", 2, []), ("all_reduce", 2, [0])],
)
def test_what_is_no_sweep_is_refused(op: str, ranks: int, sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="wanted"):
        sweep_program(op, ranks, sizes)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_held_out_sizes_are_predicted(noise: float) -> None:
    clock = Clock(noise)
    measured = measure_curves(clock.measure, Plan(group_sizes=(2, 4), held_out=HELD_OUT))
    assert {(curve.op, curve.group_size) for curve in measured.curves} == {
        *((op, ranks) for op in OPERATIONS if op != SENDRECV for ranks in (2, 4)),
        (SENDRECV, 2),
    }
    assert float(np.median(np.abs(measured.errors))) < 0.02 + noise
    assert len(measured.errors) == len(measured.curves) * len(HELD_OUT) == len(measured.spread)
    assert max(clock.repetitions) == 4 * min(clock.repetitions)
    for curve in measured.curves:
        assert [item.size_bytes for item in curve.noise] == sorted(item.size_bytes for item in curve.noise)
        assert curve.measured_bytes == (curve.noise[0].size_bytes, curve.noise[-1].size_bytes)


def test_a_calibrated_machine_is_a_profile_that_plans() -> None:
    measured = measure_curves(Clock(0.0).measure, Plan(group_sizes=(2, 4)))
    rates = local_rates(edge=64, stream_bytes=1 << 20, rounds=2)
    profile = calibrated(Machine("mine", "a test", "2026-01-01", "a clock", {"cpus": 2}), measured.curves, rates)
    assert profile.source.standing is Standing.MEASURED
    found = read_profile(profile_json(profile))
    assert isinstance(found, Ok)
    assert found.value == profile
    sweep = sweep_program("all_reduce", 4, [1 << 16])
    made = make_schedule(sweep.program, profile).or_raise()
    assert made.makespan_s == pytest.approx(truth("all_reduce", 4, 1 << 16), rel=0.01)


def test_local_rates_are_positive() -> None:
    rates = local_rates(edge=32, stream_bytes=1 << 18, rounds=1)
    assert min(*rates.matrix_flops_per_s.values(), *rates.vector_flops_per_s.values()) > 0
    assert rates.memory_bytes_per_s is not None
    assert rates.memory_bytes_per_s > 0
    assert rates.reduce_s_per_byte > 0


def test_noise_is_told_by_quantiles() -> None:
    noise = noise_of(8, [float(item) for item in range(1, 102)])
    assert (noise.samples, noise.p10_s, noise.p50_s, noise.iqr_s) == (101, 11, 51, 50)


def test_progress_counts_sweeps() -> None:
    seen: list[tuple[int, int, str]] = []
    plan = Plan(operations=("all_gather", SENDRECV), group_sizes=(2, 4), sizes=SIZES[:6])
    measure_curves(Clock(0.0).measure, plan, lambda done, of, label: seen.append((done, of, label)))
    assert seen == [(0, 3, "all_gather, 2 ranks"), (1, 3, "all_gather, 4 ranks"), (2, 3, "sendrecv, 2 ranks")]


@pytest.mark.parametrize("fields", [{"group_sizes": (1,)}, {"group_sizes": ()}, {"sizes": (8,)}, {"repetitions": 0}])
def test_plans_that_measure_nothing_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        Plan(**fields)  # type: ignore[arg-type]
