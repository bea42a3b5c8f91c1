"""Inside `mpiexec` (or `srun`) the processes are there already: each takes part, the first one speaks for all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dtir.execute import read_record
from dtir.execute.launch import find_launcher
from tests.helpers.mpi_runs import PATIENCE_S, dtir, environment, loop

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(240)]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "loop.hlo"
    path.write_text(loop(2, ranks=4))
    return str(path)


def under_mpiexec(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = find_launcher().command(processes, [sys.executable, "-m", "dtir", "run", *arguments, "--backend", "mpi"])
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment(), check=False)


def test_the_first_process_reports_for_all(program: str, tmp_path: Path) -> None:
    record, outputs = tmp_path / "run.json", tmp_path / "out.npz"
    done = under_mpiexec(3, program, "--format", "json", "-o", str(record), "--outputs", str(outputs))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # one report, not three
    assert report["backend"] == "mpi"
    assert json.loads(record.read_text())["binding"]["processes"] == 3
    wanted = tmp_path / "wanted.npz"
    assert dtir("run", program, "--outputs", str(wanted)).returncode == 0
    with np.load(outputs) as found, np.load(wanted) as expected:
        np.testing.assert_allclose(found["out0"], expected["out0"], rtol=1e-6)


def test_another_number_of_processes_than_were_started_is_refused(program: str) -> None:
    done = under_mpiexec(2, program, "-n", "4")
    assert done.returncode == 2
    assert "mpiexec has started 2 processes, -n says 4: leave -n out" in done.stderr


def test_a_failure_is_told_by_who_failed(tmp_path: Path) -> None:
    path = tmp_path / "apart.hlo"
    path.write_text(loop(1, ranks=2, by_rank=True))
    done = under_mpiexec(2, str(path))
    assert done.returncode != 0
    assert "rank 1 wait" in done.stderr.replace("ranks 1 wait", "rank 1 wait")
    assert "run.deadlock" in done.stderr


def test_processes_of_srun_that_do_not_see_each_other_are_refused(program: str) -> None:
    """What `srun --mpi=none` gives: several tasks, each alone in its MPI world."""
    alone = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}
    done = dtir("run", program, "--backend", "mpi", more=alone)
    assert done.returncode == 2
    assert "srun has started 4 processes, MPI sees 1" in done.stderr
    assert "--mpi=pmix" in done.stderr


def test_a_failure_leaves_what_was_recorded(tmp_path: Path) -> None:
    """Rank 2 leaves the loop a turn later than the others: what all of them did before is there."""
    path, record = tmp_path / "apart.hlo", tmp_path / "run.json"
    path.write_text(loop(3, ranks=2, by_rank=True))
    done = under_mpiexec(2, str(path), "-o", str(record))
    assert done.returncode != 0
    left = read_record(record)
    assert not left.complete
    assert [left.records.rank.count(rank) for rank in (0, 1)] == [3, 3]
    assert [item["code"] for item in left.findings] == ["run.deadlock"]
    assert [item for item in tmp_path.iterdir() if item not in (path, record)] == []
