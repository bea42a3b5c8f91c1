"""Running the real explorer: `dtir explore` in a process of its own, read until it says its address, ended as a group."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

URL = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
START_TIMEOUT_S = 90


@dataclass(slots=True)
class Explorer:
    """A running explorer.

    Args:
        url: what it printed.
        process: its process, leader of its own group.
        lines: what it printed so far, standard error included.
    """

    url: str
    process: subprocess.Popen[str]
    lines: list[str] = field(repr=False)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """End the whole process group: a server may have children that hold its port."""
        stop_group(self.process)


def stop_group(process: subprocess.Popen[str]) -> None:
    """Ask a process group to end, then end it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
            break
    if process.stdout:
        process.stdout.close()


def start_explorer(arguments: Sequence[str] = (), *, env: dict[str, str] | None = None) -> Explorer:
    """Start `dtir explore --no-browser --port 0 ARGUMENTS` and wait for its address.

    Raises:
        RuntimeError: it ended, or said no address in time; with what it printed.
    """
    command = [sys.executable, "-m", "dtir", "explore", "--no-browser", "--port", "0", *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
        start_new_session=True,
    )
    lines: list[str] = []
    addresses: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        # Reading on for as long as it runs: a full pipe would stop the server.
        assert process.stdout
        with contextlib.suppress(ValueError):  # closed by stop_group
            for line in process.stdout:
                lines.append(line)
                if found := URL.search(line):
                    addresses.put(found[0])
        addresses.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        url = addresses.get(timeout=START_TIMEOUT_S)
    except queue.Empty:
        url = None
    if url is None:
        stop_group(process)
        raise RuntimeError(f"{' '.join(command)} gave no address:\n{''.join(lines)}")
    return Explorer(url, process, lines)
