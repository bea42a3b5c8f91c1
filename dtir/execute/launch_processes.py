"""Starts the processes of a job, follows them to their end, and leaves none behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from dtir.execute.launch import Launcher, LaunchError, worker_environment
from dtir.execute.launch_board import Board, Doing
from dtir.execute.launch_job import Job
from dtir.execute.watchdog import is_alive

POLL_S = 0.02
"""How often the launcher looks at its processes."""

STOP_S = 3.0
"""Processes that were asked to stop get so long."""

TERMINATE_S = 2.0
"""Then SIGTERM, and so long until SIGKILL."""

LOG_LINES = 20
"""Last lines of what the processes printed, which a failure shows."""


class Cause(Enum):
    """Why the launcher stopped waiting."""

    ENDED = "ended"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Ended:
    """How the processes came to their end.

    Args:
        cause: by themselves, or because the launcher ended them.
        status: exit status of the launcher program; negative: the signal that ended it.
        first_gone: the process that was the first to be gone without having come to its end, where that was seen.
        seconds: how long they ran.
        log: last lines of what they printed.
    """

    cause: Cause
    status: int
    first_gone: int | None
    seconds: float
    log: tuple[str, ...]


class Processes:
    """The processes of a job.

    Args:
        job: the job, written.
        launcher: what starts them.
        board: what they do.
    """

    def __init__(self, job: Job, launcher: Launcher, board: Board) -> None:
        self._board = board
        self._log = job.folder / "log"
        program = [sys.executable, "-m", "mpi4py", "-m", "dtir", "_mpi-worker", str(job.folder)]
        self._started = time.monotonic()
        self._first_gone: int | None = None
        with self._log.open("wb") as log:
            try:
                # A session of its own: an interrupt from the keyboard reaches this process alone, which then stops the
                # others in order. Standard input is not theirs.
                self._process = subprocess.Popen(
                    launcher.command(job.processes, program),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=worker_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                raise LaunchError(f"{launcher.path} does not start: {error}") from None

    def follow(self, done: Callable[[int], None] | None = None, timeout_s: float | None = None) -> Ended:
        """Wait for their end.

        Args:
            done: told how many steps of the program process 0 has done.
            timeout_s: how long they may take in all.
        """
        cause = Cause.ENDED
        try:
            while self._process.poll() is None:
                self._look()
                if done is not None:
                    done(self._board.read(0).done)
                if timeout_s is not None and time.monotonic() - self._started > timeout_s:
                    cause = Cause.TIMEOUT
                    break
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            cause = Cause.INTERRUPTED
        finally:
            self._end()
        status = self._process.returncode
        return Ended(cause, status, self._first_gone, time.monotonic() - self._started, tail(self._log))

    def _look(self) -> None:
        """Note who is gone first: when it ends, the launcher program ends all the others too."""
        if self._first_gone is None:
            for process, row in enumerate(self._board.rows()):
                if row.pid and row.doing not in (Doing.FINISHED, Doing.FAILED) and not is_alive(row.pid):
                    self._first_gone = process
                    return

    def _end(self) -> None:
        """Nothing is left running when this returns, whatever happens meanwhile."""
        if self._process.poll() is None:
            self._board.stop()
            if not self._ends_within(STOP_S):
                self._signal(signal.SIGTERM)
                if not self._ends_within(TERMINATE_S):
                    self._signal(signal.SIGKILL)
                    self._process.wait()
        for row in self._board.rows():
            # The launcher program may have been killed before it could end them.
            if row.pid and row.doing not in (Doing.FINISHED, Doing.FAILED):
                with suppress(OSError):
                    os.kill(row.pid, signal.SIGKILL)

    def _ends_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)


def tail(path: Path) -> tuple[str, ...]:
    """The last lines of a log, rules and empty lines left out."""
    try:
        text = path.read_bytes()[-16_384:].decode(errors="replace")
    except OSError:
        return ()
    lines = [line.strip(" \0\r") for line in text.splitlines()]
    return tuple(line for line in lines if line.strip("-="))[-LOG_LINES:]
