"""How fast the timeline answers, without a browser: planning, the picture of a window, its glyphs and bytes, a click.

    python benchmarks/bench_timeline.py [--microbatches 3400] [--stages 8]

The program is a 1F1B pipeline: 8 stages with 3,400 microbatches have 102,000 tasks on 8 ranks that all do something else, so that
nothing folds. Windows are the whole, and five in the middle that are each a tenth of the one before. Times are those of this
process; the budget is 150 ms and about 3,000 glyphs an answer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "app")]

from dtir_app.columns import build_store  # noqa: E402
from dtir_app.frames.timeline import View, pick, timeline_frame  # noqa: E402
from dtir_app.planning import Planned, make_planned  # noqa: E402
from dtir_app.profiles import DEFAULT_PROFILE  # noqa: E402

from dtir.presets.pipeline import PipelineKind, pipeline_program  # noqa: E402


def timed(action: Callable[[], object], rounds: int = 5) -> float:
    """Median milliseconds."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def size_bytes(columns: dict[str, object]) -> int:
    """About what the columns weigh on the way to the browser."""
    return sum(
        column.nbytes if isinstance(column, np.ndarray) else sum(len(str(item)) + 3 for item in column)  # type: ignore[attr-defined]
        for column in columns.values()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, default=8)
    parser.add_argument("--microbatches", type=int, default=3400)
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    program = pipeline_program(PipelineKind.ONE_F_ONE_B, stages=options.stages, microbatches=options.microbatches)
    store = build_store(program, digest="", label="pipeline", format="dtir")
    begun = time.perf_counter()
    plan = make_planned(store, DEFAULT_PROFILE)
    assert isinstance(plan, Planned)
    print(
        f"{len(store.tasks):,} tasks on {store.mesh.size} ranks: planned in {time.perf_counter() - begun:.1f} s, in a worker"
    )
    end = plan.makespan_s
    for part in range(6):
        width = end / 10**part
        first = (end - width) / 2
        view = View(first, first + width, 900.0, 420.0, task=len(store.tasks) // 2)
        took = timed(lambda view=view: timeline_frame(store, plan, None, view))
        frame = timeline_frame(store, plan, None, view)
        glyphs = sum(len(columns["left"]) for columns in (frame.bars, frame.waits, frame.strips, frame.blanks))
        click = timed(lambda frame=frame, view=view: pick(frame, None, view.first_s or 0.0, 3.7, 1e-6))
        print(
            f"  1/{10**part:<7,} of the time: {took:6.1f} ms, {glyphs:5,} glyphs, {size_bytes(frame.bars) / 1024:5.0f} KiB, "
            f"{frame.drawn:5,} bars drawn, {frame.hidden:7,} in columns, click {click:.2f} ms"
        )


if __name__ == "__main__":
    main()
