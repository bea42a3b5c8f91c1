"""Run records as the measured side, and running a program in a process of its own."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from dtir_app.cues.case import known_of
from dtir_app.frames.table_columns import COLLECTIVE_COLUMNS
from dtir_app.frames.tables import shown_columns, sorted_rows, table_page
from dtir_app.frames.timeline import View, timeline_frame
from dtir_app.library import Library
from dtir_app.measuring import ALL_RANKS, Measured, make_measured
from dtir_app.panels.run import standing
from dtir_app.planning import Planned, make_planned
from dtir_app.profiles import DEFAULT_PROFILE
from dtir_app.running import Asked, Running, obstacles, possible_backends
from dtir_app.runs import KEPT, Runs, apart, looks_like_record, refusal_text
from dtir_app.timing import TwoSides, sides_of, timing_rows, with_sides

from dtir.execute import run_program
from dtir.execute.record import Columns, RunRecord
from dtir.execute.run import Request
from dtir.execute.runner import Timing
from dtir.ir.builder import ProgramBuilder
from dtir.presets.pipeline import PipelineKind, pipeline_program
from tests.app.build import store_of_example

NAME = "fsdp"


@cache
def record() -> RunRecord:
    made = run_program(store_of_example(NAME).program, Request(timing=Timing(3))).or_raise().record
    assert made is not None
    return made


def measured(**changes: object) -> Measured:
    return make_measured(store_of_example(NAME), replace(record(), **changes), key="run1", when="now")  # type: ignore[arg-type]


def per_rank() -> RunRecord:
    """The same record as eight processes would write it: rank r comes r microseconds late to everything."""
    columns = Columns()
    source = record().records
    for place, step in enumerate(source.step):
        for rank in range(8):
            late = 1000 * rank
            columns.add(
                step, rank, source.repetition[place], source.start_ns[place] + late, source.end_ns[place] + 8000
            )
    binding = {"backend": "mpi", "processes": 8, "ranks": [{"rank": r, "process": r, "device": None} for r in range(8)]}
    return replace(record(), records=columns, local_records=Columns(), binding=binding)


def test_one_process_is_one_lane_for_all_ranks_and_nobody_waits() -> None:
    run = measured()
    assert run.whole
    assert set(run.communication) == {ALL_RANKS}
    assert len(run.communication[ALL_RANKS]) == 13
    assert run.lane(1, 5) is run.communication[ALL_RANKS]
    assert np.isnan(run.wait_s).all()
    assert {run.samples[task] for task in run.samples} == {3}
    assert any("nobody waits" in note for note in run.notes)


def test_ranks_wait_for_the_last_of_their_group() -> None:
    run = make_measured(store_of_example(NAME), per_rank(), key="x")
    assert not run.whole
    assert set(run.communication) == set(range(8))
    for rank in range(8):
        lane = run.communication[rank]
        assert np.allclose(lane.start_s - lane.arrived_s, (7 - rank) * 1e-6, atol=2e-9)
    known = np.isfinite(run.wait_s)
    assert np.allclose(run.wait_s[known], 3.5e-6, atol=2e-9)
    assert run.lane(0, 0) is None  # local work was not recorded


def test_ranks_without_a_common_clock_are_not_aligned_and_that_is_said() -> None:
    columns = per_rank().records
    far = [start + rank * 10**12 for start, rank in zip(columns.start_ns, columns.rank, strict=True)]  # type: ignore[operator]
    ends = [end + rank * 10**12 for end, rank in zip(columns.end_ns, columns.rank, strict=True)]  # type: ignore[operator]
    moved = replace(per_rank(), records=replace(columns, start_ns=far, end_ns=ends))
    run = make_measured(store_of_example(NAME), moved, key="x")
    assert any("no common clock" in note for note in run.notes)
    assert run.elapsed_s < 100


def test_both_sides_are_drawn_in_halves_each_on_its_own_axis() -> None:
    store, run = store_of_example(NAME), measured()
    plan = make_planned(store, DEFAULT_PROFILE)
    assert isinstance(plan, Planned)
    frame = timeline_frame(store, plan, run, View(twin=True))
    assert not frame.one_clock
    assert frame.end_s == plan.makespan_s
    assert frame.stretch == pytest.approx(plan.makespan_s / run.elapsed_s)
    assert {row["side"] for row in frame.twin} == {"planned", "measured"}
    assert set(frame.ticks["side"]) == {"planned", "measured"}
    together = timeline_frame(store, plan, run, View(one_clock=True))
    assert (together.one_clock, together.end_s) == (True, run.elapsed_s)
    hatched = timeline_frame(store, plan, make_measured(store, per_rank(), key="x"), View())
    assert len(hatched.blanks["left"]) == 1


def test_the_table_gains_measured_columns_and_the_findings_of_the_run() -> None:
    store, run = store_of_example(NAME), measured()
    plan = make_planned(store, DEFAULT_PROFILE)
    assert isinstance(plan, Planned)
    finding = {
        "code": "run.values_differ",
        "severity": "error",
        "message": "y differs",
        "subject": [record().steps[0].task],
    }
    run = replace(run, record=replace(run.record, findings=(finding,)))
    known, found = known_of(store), store.findings_of("task", 0)
    with_both = with_sides(store, TwoSides(plan, run))
    assert with_both is not store
    assert known_of(with_both) is known, "what follows from the program is not derived again"
    assert "findings-of" not in with_both.memo, "there are more findings now"
    planned = with_sides(store, TwoSides(plan, None))
    assert planned.memo["findings-of"] is store.memo["findings-of"]
    assert planned.findings_of("task", 0) == found
    assert with_sides(with_both, TwoSides(plan, run)) is with_both
    assert with_sides(with_both, TwoSides(None, None)) is store
    keys = [column.key for column in shown_columns(with_both, "collectives")]
    assert {"planned", "p50", "p95", "ratio"} <= set(keys)
    assert not {"planned", "p50"} & {column.key for column in shown_columns(store, "collectives")}
    assert {"planned", "p50", "ratio"} <= {column.key for column in COLLECTIVE_COLUMNS}
    page = table_page(with_both, "collectives")
    row = dict(zip(keys, page["rows"][0]["cells"], strict=True))  # type: ignore[index]
    assert row["p50"].endswith("s")
    assert row["ratio"].lstrip("≈ ")[0] in "×÷"
    order = sorted_rows(with_both, "collectives", _no_filters(), "p50", True)
    times = sides_of(with_both).run.p50_s[order]  # type: ignore[union-attr]
    assert (np.diff(times) <= 0).all()
    added = with_both.findings[len(store.findings) :]
    assert [(item.code, item.severity) for item in added] == [("run.values_differ", "error")]
    (task,) = added[0].tasks
    assert with_both.tasks.worst[task] == 0
    gather = int(np.flatnonzero(np.isfinite(run.p50_s))[0])
    assert next(label for label, _, _ in timing_rows(with_both, gather)) == "planned"
    assert "ratio" in {label for label, _, _ in timing_rows(with_both, gather)}


def _no_filters() -> object:
    from dtir_app.filters import Filters

    return Filters()


def test_runs_are_kept_by_the_digest_of_their_program_and_bounded() -> None:
    runs = Runs()
    digest = store_of_example(NAME).program.digest
    kept = [runs.add(record(), f"at {number}") for number in range(KEPT + 3)]
    assert [item.key for item in runs.of(digest)] == [item.key for item in kept[3:]]
    assert runs.of("0" * 40) == ()
    assert len(runs.others("0" * 40)) == KEPT
    text = refusal_text(record(), "RUN.json", "other", "ab" * 20)
    assert digest in text
    assert "ab" * 20 in text


def test_files_that_say_they_are_records_are_told_from_programs(tmp_path: object) -> None:
    folder = tmp_path  # type: ignore[assignment]
    run, program = folder / "RUN.json", folder / "p.json"  # type: ignore[operator]
    run.write_text(record().to_json())
    program.write_text("{}")
    assert apart([program, run]) == ([program], [run])
    assert looks_like_record(run.read_bytes())
    assert not looks_like_record(b"{}")
    library = Library([program, run])
    library.runs.read()
    assert len(library.runs.of(store_of_example(NAME).program.digest)) == 1
    assert [entry.name for entry in library.entries("file")] == ["p.json"]
    library.close()


def test_a_program_that_cannot_run_says_why_beforehand() -> None:
    build = ProgramBuilder("odd", axes={"x": 2})
    a, b = build.input("a", (2,), "f32"), build.value("b", (2,), "f32")
    build.task("nobody.knows", (a,), (b,))
    build.output(b)
    found = obstacles(build.build())
    assert found
    assert "nobody.knows" in " ".join(item.message for item in found)
    assert all(item.local for item in found)
    assert standing(found, skip_local=True) == []
    assert obstacles(store_of_example(NAME).program) == ()
    assert next(item.name for item in possible_backends()) == "numpy"
    assert all(item.reason for item in possible_backends())


def test_a_run_in_its_own_process_tells_its_progress_and_leaves_a_record() -> None:
    news = threading.Event()
    running = Running(store_of_example(NAME).program, Asked(repetitions=2), news.set)
    running._thread.join(120)
    assert running.ended
    assert running.refused == ()
    assert running.record is not None
    assert running.record.program["digest"] == store_of_example(NAME).program.digest
    assert running.done == running.total > 0


def test_a_cancelled_run_leaves_no_process() -> None:
    program = pipeline_program(PipelineKind.ONE_F_ONE_B, stages=4, microbatches=40)
    begun = threading.Event()
    running = Running(program, Asked(repetitions=1000), lambda: begun.set() if running.total else None)
    assert begun.wait(120)
    process = running._process
    assert process is not None
    running.cancel()
    running._thread.join(60)
    assert running.ended
    assert running.record is None
    assert process.poll() is not None
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_record_that_is_dropped_must_be_of_the_open_program() -> None:
    from tests.app.test_session import Page

    page = Page(NAME)
    page.session._dropped(_Event({"RUN.json": record().to_json().encode()}))
    assert page.state.options["sides"]["run"] == "run1"
    assert sides_of(page.state.store).run is not None
    page.send("view", view="timeline")
    assert page.state.notice.tone == "info"
    page = Page("halo")
    page.session._dropped(_Event({"RUN.json": record().to_json().encode()}))
    assert page.state.notice.tone == "error"
    assert store_of_example(NAME).program.digest in page.state.notice.text
    assert store_of_example("halo").program.digest in page.state.notice.text
    assert json.loads(record().to_json())["program"]["digest"] == store_of_example(NAME).program.digest


class _Event:
    def __init__(self, new: object) -> None:
        self.new = new
