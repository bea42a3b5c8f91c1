"""How far collectives among ranks in one process are from what memory allows, as ratios in one run.

Peer of the all-reduce: a copy that reads and writes as many bytes as the reduction must touch. k buffers of n bytes are
read and one is written, (k + 1) n; the copy takes (k + 1) n / 2 from one array to another, a footprint of the same size.
Peer of the others: the all-reduce itself; they move references and views only, so that they should be far below it.

Inputs: k buffers of 1 KiB to 64 MiB, float32 and bfloat16 (folded in float32, rounded once); k = 2, 8, 64.

    python benchmarks/bench_execute.py       # a table: medians, and the part of the copy's speed that is reached
    pytest benchmarks/bench_execute.py       # the same exchanges with pytest-benchmark
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dtir.execute import Slab
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.exchange import Exchange
from dtir.execute.fabric import LocalFabric
from dtir.ir import ReductionKind
from dtir.ir.collectives import CollectiveKind

KIB, MIB = 1 << 10, 1 << 20
CASES = (
    (2, MIB, "f32"), (8, KIB, "f32"), (8, 64 * KIB, "f32"), (8, MIB, "f32"), (8, 16 * MIB, "f32"),
    (64, 64 * KIB, "f32"), (64, MIB, "f32"), (8, MIB, "bf16"),
)  # fmt: skip
"""Ranks, bytes on each, element type."""

KINDS: dict[str, Callable[[tuple[int, ...]], Exchange]] = {
    "all_reduce": lambda group: Exchange(CollectiveKind.ALL_REDUCE, (group,), (0,), ReductionKind.SUM),
    "reduce_scatter": lambda group: Exchange(CollectiveKind.REDUCE_SCATTER, (group,), (0,), ReductionKind.SUM, dim=0),
    "all_gather": lambda group: Exchange(CollectiveKind.ALL_GATHER, (group,), (0,), dim=0),
    "all_to_all": lambda group: Exchange(CollectiveKind.ALL_TO_ALL, (group,), (0,), split=0, concat=0),
    "broadcast": lambda group: Exchange(CollectiveKind.BROADCAST, (group,), (0,), roots=(0,)),
}


def exchange_of(kind: str, ranks: int, size_bytes: int, dtype: str) -> Callable[[], object]:
    """One call that performs a collective over all ranks."""
    group = tuple(range(ranks))
    element = numpy_dtype(dtype)
    generator = np.random.default_rng(0)
    slab = Slab(group, generator.standard_normal((ranks, size_bytes // element.itemsize), np.float32).astype(element))
    fabric, request = LocalFabric(group), KINDS[kind](group)
    return lambda: fabric.exchange(request, (slab,), group, None)


def copy_of(touched_bytes: int) -> Callable[[], object]:
    """One copy that reads and writes so many bytes in all."""
    source = np.ones(touched_bytes // 2, np.uint8)
    target = np.zeros_like(source)
    return lambda: np.copyto(target, source)


def medians_us(works: dict[str, Callable[[], object]], least_s: float = 0.4) -> dict[str, float]:
    """Medians of calls that take turns, so that whatever else the machine does hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    end = time.perf_counter() + least_s * len(works)
    while time.perf_counter() < end or min(map(len, times.values())) < 5:
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(found) * 1e6 for name, found in times.items()}


def main() -> None:
    names = list(KINDS)
    head = " ".join(f"{name + ' us':>18}" for name in names[1:])
    print(f"{'ranks x bytes':>16} {'type':>5} {'copy us':>9} {'all_reduce us':>14} {'of copy':>8} {head}")
    for ranks, size, dtype in CASES:
        works = {name: exchange_of(name, ranks, size, dtype) for name in names}
        found = medians_us({"copy": copy_of((ranks + 1) * size), **works})
        others = " ".join(f"{found[name]:18.1f}" for name in names[1:])
        print(
            f"{f'{ranks} x {size // KIB} KiB':>16} {dtype:>5} {found['copy']:9.1f} {found['all_reduce']:14.1f} "
            f"{found['copy'] / found['all_reduce']:8.0%} {others}"
        )


@pytest.mark.parametrize("kind", ["copy", *KINDS])
@pytest.mark.parametrize(("ranks", "size", "dtype"), CASES[1:4])
def test_exchange(benchmark: Callable[..., Any], ranks: int, size: int, dtype: str, kind: str) -> None:
    work = copy_of((ranks + 1) * size) if kind == "copy" else exchange_of(kind, ranks, size, dtype)
    benchmark(work)


if __name__ == "__main__":
    main()
