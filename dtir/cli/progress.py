"""A line on a terminal that says that long work goes on; nothing anywhere else."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from dtir.cli.command import Console
from dtir.cli.terminal import printable, width

SHOWN_AFTER_S = 0.7
STEP_S = 0.2
BAR_COLUMNS = 24
CLEAR = "\r\x1b[K"


def bar(done: int, total: int, label: str, elapsed_s: float) -> str:
    """``[######......] 2/4 name 3 s``."""
    filled = BAR_COLUMNS * done // total if total else 0
    return f"[{'#' * filled}{'.' * (BAR_COLUMNS - filled)}] {done}/{total} {printable(label)} {elapsed_s:.0f} s"


class Progress:
    """Counts inputs done while a command works; appears after `SHOWN_AFTER_S` and only on a terminal.

    A thread draws it: the work in between is one call into a parser and cannot report by itself.

    Args:
        console: where it is drawn (standard error).
        total: how many steps there are.
    """

    def __init__(self, console: Console, total: int) -> None:
        self._err = console.err
        self._on = console.err.isatty() and console.environment.get("TERM") != "dumb"
        self._total = total
        self._done = 0
        self._label = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._drawn = False

    def step(self, label: str) -> None:
        """Say what is worked on now; what was named before is done."""
        self._done += bool(self._label)
        self._label = label

    def at(self, done: int, label: str) -> None:
        """Say how many steps are done by now, and what is worked on."""
        self._done = done
        self._label = label

    def __enter__(self) -> Self:
        if self._on:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on:
            self._stop.set()
            self._thread.join()
            if self._drawn:
                self._err.write(CLEAR)
                self._err.flush()

    def _draw(self) -> None:
        begun = time.monotonic()
        if self._stop.wait(SHOWN_AFTER_S):
            return
        while True:
            text = bar(self._done, self._total, self._label, time.monotonic() - begun)
            self._err.write(CLEAR + (text if width(text) < 79 else text[:78]))
            self._err.flush()
            self._drawn = True
            if self._stop.wait(STEP_S):
                return
