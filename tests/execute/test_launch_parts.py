"""What processes that were started from outside leave when their run fails."""

from __future__ import annotations

import os
from pathlib import Path

from dtir.execute import Options, Timing, load_backend, read_record, spread
from dtir.execute.launch_board import Board, Doing
from dtir.execute.launch_job import pack_result
from dtir.execute.launch_parts import Parts
from dtir.execute.runner import Recorder, make_record
from dtir.ir.collectives import AllReduce
from dtir.ir.reductions import ReductionKind
from dtir.schema.diagnostics import Diagnostic
from tests.helpers.running import chain, collective_task, per_rank_value, plan_of, rank_mesh


def test_parts_of_processes_are_joined_by_the_last(tmp_path: Path) -> None:
    """Process 1 fails and says why, process 0 is stopped: the record has the rows of both, and nothing else is left."""
    mesh = rank_mesh(2)
    values = [per_rank_value(name, mesh, (4,), "f32") for name in "xy"]
    spec = AllReduce((0, 1), 0, ReductionKind.SUM)
    plan = plan_of(chain(mesh, values, [collective_task("all-reduce", spec, "x", "y")]))
    folder, record = tmp_path / "parts", tmp_path / "run.json"
    folder.mkdir()
    board = Board.create(2)
    for process in range(2):
        board.write(process, Doing.COMMUNICATING, step=0, group=0, done=0, pid=os.getpid(), parent=os.getppid())
    binding = spread("mpi", 2, 2)
    parts = Parts(folder, str(record), plan, binding, board)
    for process in (1, 0):
        recorder = Recorder(whole=False, process=process, repetition=0)
        recorder.observe(plan.main.steps[0], (process,), 10, 20 + process)
        made = make_record(plan, load_backend("numpy"), binding, recorder, 0, Timing(), Options(), complete=False)
        why = [Diagnostic("run.failed", "out of luck", hint="try again")] if process == 1 else []
        parts.put(process, pack_result(made, recorder.spent), why)
        assert len(read_record(record).records) == 2 - process
    left = read_record(record)
    assert (left.complete, sorted(left.records.rank)) == (False, [0, 1])
    assert [item["code"] for item in left.findings] == ["run.failed"]
    assert list(tmp_path.iterdir()) == [record]
