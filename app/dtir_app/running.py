"""Running a program from the explorer: in a process of its own, off the event loop, with progress and an end that leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtir.execute.backends import BACKENDS, load_backend
from dtir.execute.memory import memory_problem
from dtir.execute.plan import make_plan
from dtir.execute.ready import local_problems
from dtir.execute.record import RecordError, RunRecord, read_record
from dtir.ir.program import DistributedTaskIR
from dtir.schema.result import Err

MOST_REPETITIONS = 1000
MOST_PROCESSES = 64
TIMEOUT_S = 600.0
STOP_S = 8.0
"""A run that was told to stop gets so long to end its processes in order."""

LOG_LINES = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """How a program is to be run.

    Args:
        backend: name of the back end.
        processes: how many; None as the back end likes.
        repetitions, warmup: measured runs, and runs before them.
        isolated: wait for all ranks before every communication.
        skip_local: communication only.
        seed: root of generated data.
        binding: which rank lives where, as a file of it holds it; None as the back end likes.
    """

    backend: str = "numpy"
    processes: int | None = None
    repetitions: int = 5
    warmup: int = 1
    isolated: bool = False
    skip_local: bool = False
    seed: int = 0
    binding: str | None = None

    def fields(self) -> dict[str, Any]:
        """As the worker reads them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"timeout_s": TIMEOUT_S}


@dataclass(frozen=True, slots=True)
class Possible:
    """Whether a back end can run a program here.

    Args:
        name: of the back end.
        ok: it can.
        reason: why not; else what it is.
        processes: whether it spreads ranks over processes.
    """

    name: str
    ok: bool
    reason: str
    processes: bool


def possible_backends() -> tuple[Possible, ...]:
    """Every back end, with what stands against it on this machine."""
    found: list[Possible] = []
    for name in BACKENDS:
        probe = load_backend(name).probe()
        found.append(Possible(name, probe.ok, probe.reason, probe.capabilities.processes or name == "mpi"))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that stands against a run; `local`: only against local work, communication alone can run."""

    code: str
    message: str
    hint: str
    local: bool = False


def obstacles(program: DistributedTaskIR) -> tuple[Obstacle, ...]:
    """What stands against running a program."""
    if not program.diagnostics().ok:
        return tuple(Obstacle(item.code, item.message, item.hint or "") for item in program.diagnostics().errors)
    planned = make_plan(program)
    if isinstance(planned, Err):
        return tuple(Obstacle(item.code, item.message, item.hint or "") for item in planned.error)
    found = [Obstacle(item.code, item.message, item.hint or "", True) for item in local_problems(planned.value)]
    memory = memory_problem(planned.value, planned.value.ranks, None)
    if memory is not None:
        found.append(Obstacle(memory.code, memory.message, memory.hint or ""))
    return tuple(found)


class Running:
    """One run.

    Args:
        program: what is run.
        asked: how.
        told: called from another thread whenever something changed.
    """

    def __init__(self, program: DistributedTaskIR, asked: Asked, told: Callable[[], None]) -> None:
        self.asked = asked
        self.done, self.total = 0, 0
        self.doing = "starting"
        self.refused: tuple[tuple[str, str, str], ...] = ()
        self.record: RunRecord | None = None
        self.ended = False
        self.cancelled = False
        self._told = told
        self._program = program
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._follow, name="dtir-run", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """End it and everything that it started; returns at once."""
        with self._lock:
            self.cancelled = True
            process = self._process
        if process is not None:
            threading.Thread(target=_stop, args=(process,), name="dtir-run-stop", daemon=True).start()

    def close(self) -> None:
        """End it, and wait until nothing is left of it."""
        with self._lock:
            self.cancelled = True
            process = self._process
        if process is not None:
            _stop(process)
        self._thread.join(STOP_S)

    def _follow(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="dtir-explorer-"))
        try:
            self._run(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self.ended = True
            self._told()

    def _run(self, folder: Path) -> None:
        (folder / "program.json").write_text(self._program.to_json(), encoding="utf-8")
        (folder / "request.json").write_text(json.dumps(self.asked.fields()), encoding="utf-8")
        with (folder / "log").open("wb") as log:
            with self._lock:
                if self.cancelled:
                    return
                process = self._process = subprocess.Popen(
                    [sys.executable, "-m", "dtir_app.run_worker", str(folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
            timer = threading.Timer(TIMEOUT_S, self._too_long)
            timer.daemon = True
            timer.start()
            assert process.stdout is not None
            for line in process.stdout:
                self._heard(line)
            status = process.wait()
            timer.cancel()
            process.stdout.close()
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
        if self.cancelled:
            return
        path = folder / "record.json"
        if path.is_file():
            try:
                self.record = read_record(path)
            except RecordError as error:
                self.refused = (("run.record", str(error), ""),)
        elif not self.refused:
            text = (folder / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LOG_LINES:]
            self.refused = (("run.failed", f"the process ended with status {status}: " + " / ".join(text), ""),)

    def _too_long(self) -> None:
        self.refused = (
            ("run.timeout", f"the run took longer than {TIMEOUT_S:.0f} s and was ended", "fewer repetitions"),
        )
        with self._lock:
            process = self._process
        if process is not None:
            _stop(process)

    def _heard(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if "total" in message:
            self.done, self.total, self.doing = int(message["done"]), int(message["total"]), "running"
        elif "refused" in message:
            self.refused = tuple((str(a), str(b), str(c)) for a, b, c in message["refused"])
        elif "doing" in message:
            self.doing = str(message["doing"])
        self._told()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end what it started, then end it and its group."""
    for number, seconds in ((signal.SIGINT, STOP_S), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        if process.poll() is not None:
            break
        with suppress(OSError):
            if number == signal.SIGINT:
                process.send_signal(number)
            else:
                os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # what is left of its group
