"""Starting the processes of a run: which launcher, with which arguments and environment, and whether somebody else has
started them already.

Arguments for Open MPI, each against something that was measured on one host:

| argument | without it |
|---|---|
| `--oversubscribe` | more processes than processors are refused |
| `--bind-to none` | two ranks share one processor: stalls of 4 to 28 ms |
| `--allow-run-as-root` (for root only) | root is refused |
| `mpi_yield_when_idle=1` | a waiting rank keeps its processor: 12 ms for 4 bytes instead of microseconds |
| `btl=self,sm` (all processes on this host) | the start looks for networks: 1.3 s instead of 0.3 s |
| `pml=ob1,monitoring`, `pml_monitoring_enable=1` | bytes on the wire cannot be measured |
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dtir.execute.backends.mpi_library import INSTALL, short_name, vendor_of

VARIABLE = "DTIR_MPIEXEC"
"""Environment variable that names the launcher."""

_NAMES = ("mpiexec", "mpirun")

_VERSION_S = 20.0
"""A launcher that says its version takes milliseconds; one on a loaded network file system may take longer."""


class LaunchError(RuntimeError):
    """Processes cannot be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """What starts processes.

    Args:
        path: the program.
        vendor: of the MPI it belongs to, ``unknown`` for others.
        version: what it says of itself, in a few words.
    """

    path: str
    vendor: str
    version: str

    def command(self, processes: int, program: Sequence[str]) -> list[str]:
        """The command line that starts a program in so many processes on this host."""
        match self.vendor:
            case "Open MPI":
                options = [
                    *(["--allow-run-as-root"] if _is_root() else []),
                    *("--oversubscribe", "--bind-to", "none"),
                    *("--mca", "mpi_yield_when_idle", "1"),
                    *("--mca", "btl", "self,sm"),
                    *("--mca", "pml", "ob1,monitoring"),
                    *("--mca", "pml_monitoring_enable", "1"),
                ]
            case _:
                options = []
        return [self.path, "-n", str(processes), *options, *program]


@dataclass(frozen=True, slots=True)
class Launched:
    """Processes that were started from outside, this one among them.

    Args:
        launcher: what started them.
        size: how many.
        process: the number of this one.
    """

    launcher: str
    size: int
    process: int


_SIGNS: tuple[tuple[str, str, str], ...] = (
    ("mpiexec", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("mpiexec", "PMI_SIZE", "PMI_RANK"),
    ("mpiexec", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
)
"""What launchers leave in the environment: size and number."""


def launched(environment: Mapping[str, str] | None = None) -> Launched | None:
    """Whether this process is one of several that a launcher has started; told from the environment alone.

    A job step of Slurm counts when it has several tasks, also where MPI was not told: then `require_size` says so.

    >>> launched({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"})
    Launched(launcher='mpiexec', size=4, process=2)
    >>> launched({}) is None
    True
    """
    found = os.environ if environment is None else environment
    for launcher, size, rank in _SIGNS:
        count, number = _number(found, size), _number(found, rank)
        if count is not None and number is not None:
            return Launched(launcher, count, number)
    tasks, number = (
        _number(found, "SLURM_STEP_NUM_TASKS") or _number(found, "SLURM_NTASKS"),
        _number(found, "SLURM_PROCID"),
    )
    if "SLURM_STEP_ID" in found and tasks is not None and tasks > 1 and number is not None:
        return Launched("srun", tasks, number)
    return None


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() else None


def require_size(started: Launched, size: int) -> None:
    """Raise unless MPI sees as many processes as were started.

    Raises:
        LaunchError: with both numbers and what to do.
    """
    if size == started.size:
        return
    hint = (
        "start them with srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH, Intel MPI); srun --mpi=list shows what there is"
        if started.launcher == "srun"
        else "mpi4py uses another MPI than the launcher: use the launcher of that MPI (python -m mpi4py --mpi-library)"
    )
    raise LaunchError(f"{started.launcher} has started {started.size} processes, MPI sees {size}: {hint}")


def find_launcher(environment: Mapping[str, str] | None = None) -> Launcher:
    """The launcher: that of `DTIR_MPIEXEC`, of this Python's installation, or the first on the path.

    Raises:
        LaunchError: there is none, or it does not start.
    """
    found = os.environ if environment is None else environment
    named = found.get(VARIABLE)
    if named:
        path = shutil.which(named, path=found.get("PATH"))
        if path is None:
            raise LaunchError(f"{VARIABLE}={named} is no program: name the mpiexec to use, or unset it")
        return _asked(path)
    folder = str(Path(sys.prefix) / "bin")
    for name in _NAMES:
        path = shutil.which(name, path=folder) or shutil.which(name, path=found.get("PATH", os.defpath))
        if path is not None:
            return _asked(path)
    raise LaunchError(f"there is no mpiexec beside this Python or on the path: {INSTALL}; or name one in {VARIABLE}")


def _asked(path: str) -> Launcher:
    """What a launcher says of itself."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=_VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"{path} does not start ({error}): name another in {VARIABLE}") from None
    text = done.stdout + done.stderr
    return Launcher(path, vendor_of(text), short_name(text))


def processes_here(processes: int, environment: Mapping[str, str] | None = None) -> int:
    """How many of so many processes are on this host: all, unless a launcher from outside says otherwise."""
    found = os.environ if environment is None else environment
    if launched(found) is None:
        return processes
    counts = (
        _number(found, name) for name in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_TASKS_PER_NODE")
    )
    return min(processes, next((count for count in counts if count), processes))


def is_follower(environment: Mapping[str, str] | None = None) -> bool:
    """Whether this process was started from outside and is not the first: what there is to say, the first one says."""
    started = launched(environment)
    return started is not None and started.process != 0


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def worker_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of processes that are started: this one's, so that they find the same packages.

    Numeric libraries get one thread each: so many processes with a thread for every processor would stand in each
    other's way.
    """
    found = dict(os.environ if environment is None else environment)
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, found.get("PYTHONPATH", "").split(os.pathsep))]
    found["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    found["PYTHONUNBUFFERED"] = "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        found.setdefault(name, "1")
    return found
