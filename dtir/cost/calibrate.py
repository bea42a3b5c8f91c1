"""Calibration: from measured times of collectives and of local work to a machine profile.

Who measures is not known here. A *sweep* is an ordinary program: one collective a message size, one after the other. A
`Measure` runs it and gives the times of every task, so that any back end can be calibrated, and tests can hand in times
that they know. The number kept for a size is the 10th percentile (a disturbance only ever makes a time longer); median and
quartiles are written beside the curve as its noise. Some sizes are held out of the fit and say how well it predicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dtir.cost.fit import LEAST_POINTS, fit_segments
from dtir.cost.profile import ANY, SENDRECV, Curve, Level, MachineProfile, Noise, Rates, Source, Standing
from dtir.cost.sweep import OPERATIONS, sweep_program
from dtir.ir.collectives import CollectiveKind
from dtir.ir.program import DistributedTaskIR

SIZES = tuple(1 << power for power in range(3, 25))
"""8 B to 16 MiB by factors of 2."""

_REDUCING = (CollectiveKind.ALL_REDUCE.value, CollectiveKind.REDUCE_SCATTER.value)

SMALL_BYTES = 256 << 10
"""Messages up to this size are repeated more often: they cost little and vary much."""

Measure: TypeAlias = Callable[[DistributedTaskIR, int], Mapping[str, Sequence[float]]]
"""Runs a program so many times and gives, by task name, the seconds of every repetition: all members begun together, the
slowest counting."""

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many sweeps are done, how many there are, and which comes next."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Args:
        operations: names of operations.
        group_sizes: ranks of the groups, each at least 2.
        sizes: message sizes in bytes that curves are fitted to.
        held_out: message sizes that only say how well the curves predict.
        repetitions: of every large message; small ones are repeated four times as often.
    """

    operations: Sequence[str] = OPERATIONS
    group_sizes: Sequence[int] = (2, 4)
    sizes: Sequence[int] = SIZES
    held_out: Sequence[int] = ()
    repetitions: int = 12

    def __post_init__(self) -> None:
        if any(size < 2 for size in self.group_sizes) or not self.group_sizes:
            raise ValueError(f"group_sizes={tuple(self.group_sizes)}: each group has at least 2 ranks")
        if len(self.sizes) < LEAST_POINTS:
            raise ValueError(f"sizes has {len(self.sizes)} entries: a fit needs at least {LEAST_POINTS}")
        if self.repetitions < 1:
            raise ValueError(f"repetitions={self.repetitions}: at least 1")

    @property
    def sweeps(self) -> list[tuple[str, int]]:
        """Operation and group size of every curve; a transfer has two ends whatever the group."""
        return [
            (op, group_size)
            for op in self.operations
            for group_size in ((2,) if op == SENDRECV else tuple(dict.fromkeys(self.group_sizes)))
        ]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured.

    Args:
        curves: one for every operation and group size.
        errors: of the curves on the sizes that were held out: predicted over measured, minus 1.
        spread: IQR over median at those sizes: what no model can be below.
    """

    curves: tuple[Curve, ...]
    errors: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()


def noise_of(size_bytes: int, times: Sequence[float]) -> Noise:
    """How the times of one size are spread."""
    p10, p25, p50, p75 = (float(np.quantile(times, part)) for part in (0.1, 0.25, 0.5, 0.75))
    return Noise(size_bytes, len(times), p10, p50, p75 - p25)


def measure_curves(measure: Measure, plan: Plan, progress: Progress | None = None) -> Measured:
    """One curve for every operation and group size."""
    curves: list[Curve] = []
    errors: list[float] = []
    spread: list[float] = []
    sweeps = plan.sweeps
    for number, (op, group_size) in enumerate(sweeps):
        if progress is not None:
            progress(number, len(sweeps), f"{op}, {group_size} ranks")
        fitted = _noise(measure, op, group_size, plan.sizes, plan.repetitions)
        curve = fit_curve(op, group_size, fitted, "float32" if op in _REDUCING else ANY)
        curves.append(curve)
        for noise in _noise(measure, op, group_size, plan.held_out, plan.repetitions):
            errors.append(curve.seconds(noise.size_bytes) / max(noise.p10_s, 1e-9) - 1)
            spread.append(noise.relative)
    return Measured(tuple(curves), tuple(errors), tuple(spread))


def _noise(measure: Measure, op: str, group_size: int, sizes: Sequence[int], repetitions: int) -> list[Noise]:
    """The spread of every size; small messages in a sweep of their own, which is run more often."""
    found: dict[int, Noise] = {}
    for small in (True, False):
        mine = [size for size in sizes if (size <= SMALL_BYTES) is small]
        if not mine:
            continue
        sweep = sweep_program(op, group_size, mine)
        times = measure(sweep.program, repetitions * 4 if small else repetitions)
        found.update({size: noise_of(size, times[name]) for name, size in sweep.sizes.items()})
    return [found[size] for size in sorted(found)]


def fit_curve(op: str, group_size: int, noise: Sequence[Noise], dtype: str = ANY, algorithm: str = "native") -> Curve:
    """A curve through measured sizes."""
    sizes = [item.size_bytes for item in noise]
    # A clock may not tell the shortest times from nothing.
    found = fit_segments(sizes, [max(item.p10_s, 1e-9) for item in noise])
    span = (min(sizes), max(sizes))
    error = found.median_error or None
    return Curve(op, group_size, algorithm, dtype, "", found.segments, span, error, tuple(noise))


# -- local work -----------------------------------------------------------------------------------------------------------


def local_rates(*, edge: int = 768, stream_bytes: int = 64 << 20, rounds: int = 7) -> Rates:
    """What numpy reaches on this machine: matrix products, elementwise work, memory, and folding of two arrays.

    Args:
        edge: of the square matrices.
        stream_bytes: footprint of the memory test, beyond the caches.
        rounds: how often each is measured; the best counts.
    """
    rng = np.random.default_rng(0)
    matrix: dict[str, float] = {}
    for name, kind in (("f32", np.float32), ("f64", np.float64)):
        left = rng.random((edge, edge)).astype(kind)
        matrix[name] = 2 * edge**3 / _best_s(lambda left=left: left @ left, rounds)
    source = rng.random(stream_bytes // 8).astype(np.float32)
    target = np.empty_like(source)
    copy_s = _best_s(lambda: np.copyto(target, source), rounds)
    fold_s = _best_s(lambda: np.add(target, source, out=target), rounds)
    small = rng.random(4096).astype(np.float32)
    exp_s = _best_s(lambda: np.exp(small), 50 * rounds)
    start_s = _best_s(lambda: np.negative(small[:1]), 50 * rounds)
    return Rates(
        matrix,
        {"any": small.size / max(exp_s - start_s, 1e-9)},
        2 * source.nbytes / copy_s,
        None,
        start_s,
        fold_s / source.nbytes,
    )


def _best_s(work: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return max(best, 1e-9)


@dataclass(frozen=True, slots=True)
class Machine:
    """What is calibrated.

    Args:
        id: what reports call it.
        summary: one line.
        host: facts of the machine and library.
        date: ISO date.
        source: how it was measured.
    """

    id: str
    summary: str
    date: str
    source: str
    host: Mapping[str, str | int | float] = field(default_factory=dict[str, str | int | float])


def calibrated(machine: Machine, curves: Sequence[Curve], rates: Rates) -> MachineProfile:
    """The profile of a measured machine.

    Operations without a curve are planned by formulas on the link that the last segment of the sendrecv curve shows.
    """
    levels: tuple[Level, ...] = ()
    link = next((curve for curve in curves if curve.op == SENDRECV), None)
    if link is not None:
        levels = (Level("measured", None, link.segments[0].alpha_s, link.segments[-1].beta_s_per_byte),)
    return MachineProfile(
        machine.id,
        machine.summary,
        Source(Standing.MEASURED, machine.source, machine.date),
        machine.host,
        levels,
        tuple(curves),
        rates,
    )
