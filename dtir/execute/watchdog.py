"""Ends a process that waits for ever: a collective that some rank never enters does not return by itself.

The main thread says what it does, one store into shared memory a step; a daemon thread looks at it. MPI releases the
interpreter while it waits, so that the thread runs. It ends the process when

- it has been in one communication step for longer than the limit, and no other process is still computing (then that
  one is only late),
- the launcher or a process that failed asks for it, or another process is gone without having come to its end,
- SIGTERM or SIGINT comes: launchers end their processes with the first and, half a second later, SIGKILL. The main
  thread may be inside MPI, where no handler of Python runs; the interpreter's own note of a signal wakes the thread, or
- whoever started the process is gone.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from dtir.execute.launch_board import Board, Doing
from dtir.execute.steps import Step

STALLED = 75
"""Exit status of a process that waited in vain (`EX_TEMPFAIL` of sysexits.h)."""

INTERRUPTED = 130
"""Exit status of a process that was asked to stop."""

ABANDONED = 76
"""Exit status of a process whose launcher is gone."""

LEAST_LIMIT_S = 30.0
"""A step may wait so long before it counts as a hang."""

PREDICTED_FACTOR = 20.0
"""Or so many times as long as the slowest step is predicted to take."""

PATIENCE = 10.0
"""While another process computes, it is waited for so many limits long."""

GLANCE_S = 0.1
"""How often the thread looks."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stall_limit_s(predicted_us: float = 0.0) -> float:
    """How long a step may wait, in seconds: 30 s, or 20 times what is predicted."""
    return max(LEAST_LIMIT_S, PREDICTED_FACTOR * predicted_us / 1e6)


class Why(Enum):
    """Why a process is ended by its watchdog."""

    STALLED = "stalled"
    STOPPED = "stopped"
    ABANDONED = "abandoned"


EXIT_STATUS = {Why.STALLED: STALLED, Why.STOPPED: INTERRUPTED, Why.ABANDONED: ABANDONED}


class Watch(Protocol):
    """Is told what a process does."""

    def enter(self, step: Step, communicates: bool) -> None:
        """A step begins."""
        ...

    def meet(self, group: int) -> None:
        """The exchange with a group, by its global number, begins."""
        ...

    def leave(self) -> None:
        """A communication step is over."""
        ...

    def done(self, count: int) -> None:
        """So many steps of the program's own list are done."""
        ...


class Unwatched:
    """Looks away: for runs that cannot hang, and for tests."""

    def enter(self, step: Step, communicates: bool) -> None:
        """Nothing is noted."""

    def meet(self, group: int) -> None:
        """Nothing is noted."""

    def leave(self) -> None:
        """Nothing is noted."""

    def done(self, count: int) -> None:
        """Nothing is noted."""


@dataclass(frozen=True, slots=True)
class Stall:
    """What the watchdog found.

    Args:
        why: why the process ends.
        step: index of the step that it is in, -1 before the first.
        group: number of the group, -1 when it is in none.
        seconds: how long it has been there.
    """

    why: Why
    step: int
    group: int
    seconds: float


class Watchdog:
    """Watches one process.

    Args:
        board: the rows of all processes.
        process: this one.
        limit_s: how long a communication step may wait.
        report: told what was found, in the watchdog's thread, before the process ends.
        launcher: process id of what started the run, where it is on this host; 0: nobody to look after.
    """

    def __init__(
        self, board: Board, process: int, limit_s: float, report: Callable[[Stall], None], launcher: int = 0
    ) -> None:
        self._board = board
        self._process = process
        self._limit_s = limit_s
        self._report = report
        self._launcher = launcher
        self._parent = os.getppid()
        self._pid = os.getpid()
        self._step = -1
        self._done = 0
        self._ended = threading.Event()
        self._handlers: dict[int, Any] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._write(Doing.COMPUTING, -1)
        bell, rung = socket.socketpair()
        self._take_signals(bell)
        self._thread = threading.Thread(target=self._watch, args=(bell, rung), name="dtir-watchdog", daemon=True)
        self._thread.start()

    def stand_down(self) -> None:
        """Stop looking; the row still says what the process did last."""
        self._ended.set()
        self._give_signals_back()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()  # it looks often, and closes what it listens to

    def finish(self, failed: bool = False) -> None:
        """The process has come to its end, and what it has to say is written down: nobody need wait for it."""
        self.stand_down()
        self._write(Doing.FAILED if failed else Doing.FINISHED, -1)

    # -- what the main thread says --------------------------------------------------------------------------------------

    def enter(self, step: Step, communicates: bool) -> None:
        """A step begins."""
        self._step = step.index
        self._write(Doing.COMMUNICATING if communicates else Doing.COMPUTING, -1)

    def meet(self, group: int) -> None:
        """The exchange with a group begins."""
        self._write(Doing.COMMUNICATING, group)

    def leave(self) -> None:
        """A communication step is over."""
        self._write(Doing.COMPUTING, -1)

    def done(self, count: int) -> None:
        """So many steps of the program's own list are done."""
        self._done = count

    def _write(self, doing: Doing, group: int) -> None:
        self._board.write(
            self._process, doing, step=self._step, group=group, done=self._done, pid=self._pid, parent=self._parent
        )

    # -- the thread -----------------------------------------------------------------------------------------------------

    def _watch(self, bell: socket.socket, rung: socket.socket) -> None:
        glance = min(GLANCE_S, self._limit_s / 4)
        with bell, rung:
            while not self._ended.is_set():
                why = Why.STOPPED if _is_signalled(rung, glance) else self.look(time.perf_counter_ns())
                if why is not None and not self._ended.is_set():
                    self._end(why)

    def _end(self, why: Why) -> None:
        row = self._board.read(self._process)
        try:
            self._report(Stall(why, row.step, row.group, row.seconds()))
        finally:
            os._exit(EXIT_STATUS[why])

    def _take_signals(self, bell: socket.socket) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may; then signals do what they did before
        bell.setblocking(False)
        signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, _nothing) for number in _SIGNALS}

    def _give_signals_back(self) -> None:
        if self._handlers and threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            self._handlers = {}

    def look(self, now_ns: int) -> Why | None:
        """Whether there is a reason to end the process at a time."""
        if self._board.stopping or self._has_lost_one():
            return Why.STOPPED
        if self._is_abandoned():
            return Why.ABANDONED
        own = self._board.read(self._process)
        waits = own.seconds(now_ns) if own.doing is Doing.COMMUNICATING else 0.0
        if waits < self._limit_s:
            return None
        busy = any(row.pid and row.doing in (Doing.STARTING, Doing.COMPUTING) for row in self._board.rows())
        return None if busy and waits < PATIENCE * self._limit_s else Why.STALLED

    def _has_lost_one(self) -> bool:
        """Whether a process of this host is gone that was not done (rows of other hosts' processes stay empty)."""
        return any(
            row.pid and row.doing not in (Doing.FINISHED, Doing.FAILED) and not is_alive(row.pid)
            for row in self._board.rows()
        )

    def _is_abandoned(self) -> bool:
        return os.getppid() != self._parent or (self._launcher != 0 and not is_alive(self._launcher))


def _is_signalled(rung: socket.socket, seconds: float) -> bool:
    """Wait a little for a signal."""
    readable, _, _ = select.select([rung], [], [], seconds)
    return bool(readable) and any(number in _SIGNALS for number in rung.recv(64))


def _nothing(number: int, frame: object) -> None:
    """The handler of signals that are the watchdog's: the interpreter notes them, and nothing else happens."""


def is_alive(pid: int) -> bool:
    """Whether a process of this host runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
