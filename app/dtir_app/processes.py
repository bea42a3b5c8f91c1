"""Several server processes on one port, that end together.

Tornado forks them; its parent then only waits, and would leave them behind when it is told to end. So every process holds the
reading end of a pipe whose writing end is the parent's: when the parent closes it, or dies in whatever way, all of them see the
end of the pipe and stop.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

from tornado.ioloop import IOLoop
from tornado.process import task_id


class Leash:
    """The pipe between a parent and its processes; made before they are forked."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._previous = {
            number: signal.signal(number, self._let_go_by_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }

    def _let_go_by_signal(self, number: int, frame: FrameType | None) -> None:
        self.let_go()

    def let_go(self) -> None:
        """In the parent: let the processes end."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def hold(self, loop: IOLoop, stop: Callable[[], None]) -> None:
        """In a process: call `stop` when the parent lets go."""
        if self._write >= 0:
            os.close(self._write)  # this process's copy, which would keep the pipe open
            self._write = -1

        def ended(descriptor: int, events: int) -> None:
            loop.remove_handler(descriptor)
            stop()

        loop.add_handler(self._read, ended, loop.READ | loop.ERROR)


def is_first() -> bool:
    """Whether this process speaks for all of them."""
    return not task_id()
