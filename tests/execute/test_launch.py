"""Which launcher, with which arguments, and whether somebody has started the processes already; no MPI is needed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dtir.execute.launch import (
    VARIABLE,
    Launched,
    Launcher,
    LaunchError,
    find_launcher,
    is_follower,
    launched,
    processes_here,
    require_size,
    worker_environment,
)


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("says", "vendor", "version"),
    [
        ("mpiexec (Open MPI) 5.0.11", "Open MPI", "Open MPI 5.0.11"),
        ("mpirun (Open MPI) 4.1.4", "Open MPI", "Open MPI 4.1.4"),
        ("HYDRA build details:\n    Version:     4.3.0", "MPICH", "MPICH 4.3.0"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.11", "Intel MPI", "Intel MPI 2021.11"),
        ("something else", "unknown", "something else"),
    ],
)
def test_the_vendor_is_told_from_what_a_launcher_says(tmp_path: Path, says: str, vendor: str, version: str) -> None:
    path = program(tmp_path, "mpiexec", says)
    assert find_launcher({VARIABLE: str(path)}) == Launcher(str(path), vendor, version)


def test_the_named_launcher_comes_first_then_this_python_s_then_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = program(tmp_path / "named", "mpiexec", "mpiexec (Open MPI) 5.0.1")
    own = program(tmp_path / "bin", "mpiexec", "mpiexec (Open MPI) 5.0.2")
    common = program(tmp_path / "common", "mpiexec", "mpiexec (Open MPI) 5.0.3")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    around = {"PATH": str(common.parent)}
    assert find_launcher({**around, VARIABLE: str(named)}).path == str(named)
    assert find_launcher(around).path == str(own)
    own.unlink()
    assert find_launcher(around).path == str(common)


def test_a_launcher_that_hangs_or_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(LaunchError, match="there is no mpiexec beside this Python or on the path: pip install"):
        find_launcher({"PATH": str(tmp_path)})
    with pytest.raises(LaunchError, match="is no program"):
        find_launcher({VARIABLE: str(tmp_path / "none")})


def test_open_mpi_gets_the_arguments_without_which_it_stalls() -> None:
    command = Launcher("mpiexec", "Open MPI", "5").command(4, ["python"])
    text = " ".join(command)
    assert command[:3] == ["mpiexec", "-n", "4"]
    assert command[-1] == "python"
    for wanted in ("--oversubscribe", "--bind-to none", "--mca mpi_yield_when_idle 1", "--mca btl self,sm",
                   "--mca pml ob1,monitoring", "--mca pml_monitoring_enable 1"):  # fmt: skip
        assert wanted in text
    assert ("--allow-run-as-root" in command) == (os.geteuid() == 0)


def test_other_launchers_get_no_arguments_of_open_mpi() -> None:
    assert Launcher("mpiexec", "MPICH", "4").command(2, ["python"]) == ["mpiexec", "-n", "2", "python"]


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}, Launched("mpiexec", 4, 3)),
        ({"PMI_SIZE": "2", "PMI_RANK": "0"}, Launched("mpiexec", 2, 0)),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"}, Launched("srun", 8, 5)),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, None),
        ({"SLURM_STEP_ID": "1", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, None),
        ({"PMI_SIZE": "two", "PMI_RANK": "0"}, None),
    ],
    ids=["nothing", "open mpi", "pmi", "srun step", "batch script", "interactive step", "no number"],
)
def test_whether_processes_were_started_already(environment: dict[str, str], found: Launched | None) -> None:
    assert launched(environment) == found
    assert is_follower(environment) == (found is not None and found.process > 0)


def test_processes_that_do_not_see_each_other_are_refused_with_what_to_do() -> None:
    require_size(Launched("srun", 4, 0), 4)
    with pytest.raises(LaunchError, match=r"srun has started 4 processes, MPI sees 1: .*--mpi=pmix"):
        require_size(Launched("srun", 4, 0), 1)
    with pytest.raises(LaunchError, match="another MPI than the launcher"):
        require_size(Launched("mpiexec", 4, 0), 1)


def test_how_many_processes_share_this_host() -> None:
    outside = {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_RANK": "0"}
    assert processes_here(8, {}) == 8
    assert processes_here(8, outside) == 8
    assert processes_here(8, {**outside, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}) == 2


def test_workers_find_this_package_and_use_one_thread() -> None:
    found = worker_environment({"PYTHONPATH": "/elsewhere", "MKL_NUM_THREADS": "3"})
    assert found["PYTHONPATH"].split(os.pathsep) == [str(Path(__file__).resolve().parents[2]), "/elsewhere"]
    assert (found["OMP_NUM_THREADS"], found["MKL_NUM_THREADS"]) == ("1", "3")
