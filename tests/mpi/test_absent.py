"""Where MPI is missing, or only half there, the command says what to install and does not start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dtir.execute import load_backend
from dtir.execute.backends import mpi_library
from dtir.execute.launch import VARIABLE
from tests.helpers.mpi_runs import dtir, loop


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "loop.hlo"
    path.write_text(loop(2))
    return str(path)


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_library, "find_spec", lambda name: None)
    probe = load_backend("mpi").probe()
    assert not probe.ok
    assert probe.reason.startswith("the package mpi4py is not installed: pip install 'dtir[mpi]'")


def test_without_a_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mpi_library, "missing", lambda: None)
    monkeypatch.setattr("dtir.execute.backends.mpi.missing", lambda: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    probe = load_backend("mpi").probe()
    assert not probe.ok
    assert "there is no mpiexec beside this Python or on the path: pip install 'dtir[mpi]'" in probe.reason


def test_the_command_could_not_run_and_says_why(program: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from dtir.execute.backends import mpi_library\nmpi_library.find_spec = lambda name: None\n"
    )
    done = dtir("run", program, "--backend", "mpi", more={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"})
    assert done.returncode == 2
    assert "the mpi back end cannot run here: the package mpi4py is not installed" in done.stderr
    assert "pip install 'dtir[mpi]'" in done.stderr
    assert done.stdout == ""


def test_a_launcher_that_is_no_program(program: str) -> None:
    done = dtir("run", program, "--backend", "mpi", more={VARIABLE: "/nowhere/mpiexec"})
    assert done.returncode == 2
    assert "DTIR_MPIEXEC=/nowhere/mpiexec is no program" in done.stderr or "mpi4py is not installed" in done.stderr


@pytest.mark.mpi
def test_a_launcher_of_another_mpi_leaves_every_process_alone(program: str, tmp_path: Path) -> None:
    """mpiexec of one MPI with mpi4py of another: each process is a world of its own, and that is said."""
    fake = tmp_path / "mpiexec"
    fake.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "HYDRA build details: Version: 4.3.0"; exit 0; fi\n'
        'shift 2\n"$@" & "$@" & wait\n'
    )
    fake.chmod(0o755)
    done = dtir("run", program, "--backend", "mpi", "-n", "2", more={VARIABLE: str(fake)})
    assert done.returncode == 2
    assert "has started 2 processes, MPI sees 1: mpi4py uses another MPI than the launcher" in done.stderr


@pytest.mark.mpi
def test_a_launcher_that_fails_is_quoted(program: str, tmp_path: Path) -> None:
    fake = tmp_path / "mpiexec"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "no slots left on this host"\nexit 3\n')
    fake.chmod(0o755)
    done = dtir("run", program, "--backend", "mpi", "-n", "2", more={VARIABLE: str(fake)})
    assert done.returncode == 2
    assert "the processes ended with status 3 before they began: no slots left on this host" in done.stderr
