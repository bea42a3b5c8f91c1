"""However a run ends, it says who, in which task and of which group, and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from dtir.execute import read_record
from dtir.ir import AllReduce, Collective, ProgramBuilder, ReductionKind
from tests.helpers.mpi_runs import FOR_EVER, dtir, environment, loop, running

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(240)]


@pytest.fixture
def endless(tmp_path: Path) -> str:
    path = tmp_path / "endless.hlo"
    path.write_text(loop(FOR_EVER))
    return str(path)


def finding(out: str) -> dict[str, object]:
    """The one finding of a run that failed."""
    (found,) = json.loads(out)["findings"]
    return found


def test_a_killed_process_is_named_with_rank_and_task(endless: str) -> None:
    with running(endless, "--format", "json", processes=3) as run:
        os.kill(run.rows()[1].pid, signal.SIGKILL)
        code, out, _ = run.end()
    found = finding(out)
    assert code == 1
    assert found["code"] == "run.killed"
    assert str(found["message"]).startswith("rank 1 was killed by signal 9 (SIGKILL) in ")
    assert "rank 0 was" in str(found["message"])
    assert "rank 2 was" in str(found["message"])


def test_a_process_that_hangs_is_ended_by_the_watchdog_of_who_waits(endless: str) -> None:
    with running(endless, "--format", "json", "--stall-after", "0.5", processes=3) as run:
        os.kill(run.rows()[2].pid, signal.SIGSTOP)
        code, out, _ = run.end()
    found = finding(out)
    assert code == 1
    assert found["code"] == "run.stalled"
    assert "in total (hlo.all-reduce), group 0 (ranks 0, 1, 2), and was ended by the watchdog" in str(found["message"])
    assert str(found["message"]).startswith(("rank 0 waited ", "rank 1 waited "))
    assert "rank 2 was" in str(found["message"])


def test_an_interrupt_leaves_a_record_of_what_was_done(endless: str, tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    with running(endless, "-o", str(record), processes=3) as run:
        run.process.send_signal(signal.SIGINT)
        code, _, err = run.end()
    assert code == 130
    assert "holds the steps that were done" in err
    read = read_record(record)
    assert not read.complete
    assert set(read.records.rank) == {0, 1, 2}


def test_a_run_that_takes_too_long_is_ended(endless: str) -> None:
    done = dtir("run", endless, "--backend", "mpi", "-n", "2", "--format", "json", "--timeout", "2")
    assert done.returncode == 1
    assert finding(done.stdout)["code"] == "run.timeout"


def test_when_the_launcher_program_is_killed_its_processes_end(endless: str) -> None:
    with running(endless, "--format", "json", processes=2) as run:
        (launcher,) = set(run.pids()) - {row.pid for row in run.rows()}
        os.kill(launcher, signal.SIGKILL)
        code, out, _ = run.end()
    assert code == 1
    assert finding(out)["code"] == "run.killed"


def test_when_dtir_is_killed_its_processes_end(endless: str) -> None:
    with running(endless, processes=2) as run:
        run.process.kill()
        code, _, _ = run.end()
    assert code == -signal.SIGKILL


def test_ranks_that_leave_a_loop_early_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "apart.hlo"
    path.write_text(loop(2, by_rank=True))
    record = tmp_path / "run.json"
    for processes in ("3", "2"):
        done = dtir("run", str(path), "--backend", "mpi", "-n", processes, "--format", "json", "-o", str(record))
        found = finding(done.stdout)
        assert done.returncode == 1
        assert found["code"] == "run.deadlock"
        assert "ranks 1, 2 wait for ranks 0, which never arrive" in str(found["message"])
        # Two turns were done by all.
        read = read_record(record)
        assert not read.complete
        assert read.records.rank.count(0) == 2


RAISING = """
from dataclasses import replace

from dtir.ops import register_op, require_op


def fail(error):
    def run(arithmetic, operands, call, place):
        if place.rank == 1:
            raise error("no such thing here")
        return (operands[0],)

    return run


for name, error in (("refuses", ValueError), ("breaks", RuntimeError)):
    register_op(replace(require_op("neg"), name=name, run=fail(error)), dialect="test")
"""
"""Two operators that fail on one rank; as `sitecustomize` every process of the run has them."""


def failing(folder: Path, operator: str) -> tuple[str, dict[str, str]]:
    """A program with such an operator, and the environment in which it is known."""
    (folder / "sitecustomize.py").write_text(RAISING)
    build = ProgramBuilder("failing", axes={"x": 3})
    x = build.input("x", (4,), "f32", varying=("x",))
    y = build.value("y", (4,), "f32", varying=("x",))
    z = build.value("z", (4,), "f32", varying=("x",))
    build.task(f"test.{operator}", (x,), (y,), name="local")
    reduce = Collective(AllReduce((0, 1, 2), 16, ReductionKind.SUM))
    build.task("core.all_reduce", (y,), (z,), body=reduce, name="sum")
    build.output(z)
    path = folder / f"{operator}.json"
    path.write_text(build.build().to_json())
    return str(path), {"PYTHONPATH": f"{folder}{os.pathsep}{environment()['PYTHONPATH']}"}


def test_a_rank_in_which_a_step_fails_is_named(tmp_path: Path) -> None:
    path, more = failing(tmp_path, "refuses")
    done = dtir("run", path, "--backend", "mpi", "-n", "3", "--format", "json", more=more)
    found = finding(done.stdout)
    assert done.returncode == 1
    assert found["code"] == "run.failed"
    assert found["message"] == "task local (test.refuses): rank 1: no such thing here"


def test_an_error_that_nobody_expected_is_told_with_its_rank_and_its_lines(tmp_path: Path) -> None:
    path, more = failing(tmp_path, "breaks")
    done = dtir("run", path, "--backend", "mpi", "-n", "2", "--format", "json", more=more)
    found = finding(done.stdout)
    assert done.returncode == 1
    assert found["code"] == "run.crashed"
    message = "process 0 (ranks 0, 1) ended with an error in local (test.breaks): RuntimeError: no such thing here ("
    assert str(found["message"]).startswith(message)
    assert str(found["message"]).endswith(" in run)")
