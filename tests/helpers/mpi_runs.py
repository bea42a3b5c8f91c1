"""`dtir run --backend mpi` as a user starts it, with programs that run as long as a test needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dtir.execute import load_backend
from dtir.execute.launch_board import Board, Doing, Row
from tests.helpers.mpi_pool import ROOT

PATIENCE_S = 120.0
"""Nothing that a test waits for takes so long; beyond it the test fails."""

FOR_EVER = 1_000_000_000
"""Turns of a loop that no test sees the end of."""


def why_not() -> str:
    """Why real MPI processes cannot run here; empty when they can."""
    probe = load_backend("mpi").probe()
    return "" if probe.ok else probe.reason


def loop(turns: int, ranks: int = 3, *, by_rank: bool = False, stated: bool = True) -> str:
    """HLO: an all_reduce and a multiplication in a loop, the sum of the ranks times 1/ranks in every turn.

    Args:
        by_rank: a rank runs the loop so many turns more as its number says.
        stated: the number of turns can be read from the text (else the data decide).
    """
    limit = f"%m = s32[] constant({turns})"
    if by_rank:
        limit = (
            f"%id = u32[] partition-id()\n  %own = s32[] convert(%id)\n  %c = s32[] constant({turns})\n"
            "  %m = s32[] add(%own, %c)"
        )
    elif not stated:
        limit = (
            f"%id = u32[] partition-id()\n  %own = s32[] convert(%id)\n  %nought = s32[] constant(0)\n"
            f"  %none = s32[] multiply(%own, %nought)\n  %c = s32[] constant({turns})\n  %m = s32[] add(%none, %c)"
        )
    members = ",".join(str(rank) for rank in range(ranks))
    return f"""HloModule loop, num_partitions={ranks}

%sum (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}}

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %p = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8] get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %n = s32[] add(%i, %one)
  %total = f32[8] all-reduce(%x), channel_id=1, replica_groups={{{{{members}}}}}, use_global_device_ids=true, to_apply=%sum
  %q = f32[] constant({1 / ranks})
  %qs = f32[8] broadcast(%q), dimensions={{}}
  %y = f32[8] multiply(%total, %qs)
  ROOT %t = (s32[], f32[8]) tuple(%n, %y)
}}

%cond (p: (s32[], f32[8])) -> pred[] {{
  %p = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  {limit}
  ROOT %goes = pred[] compare(%i, %m), direction=LT
}}

ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8] parameter(0), sharding={{replicated}}
  %z = s32[] constant(0)
  %t = (s32[], f32[8]) tuple(%z, %x)
  %w = (s32[], f32[8]) while(%t), condition=%cond, body=%body
  ROOT %o = f32[8] get-tuple-element(%w), index=1
}}
"""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of the tests, without what a launcher around them may have left."""
    found = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_"))
    }
    found["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [found.get("PYTHONPATH")])])
    return {**found, **(more or {})}


def dtir(*arguments: str, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    return subprocess.run(
        [sys.executable, "-m", "dtir", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment(more),
        check=False,
    )


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fail with what did not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE_S:.0f} s")
        os.sched_yield()


def exists(pid: int) -> bool:
    """Whether a process runs (one that has ended and is only not yet asked after does not)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def children(pid: int) -> list[int]:
    """The processes that a process has started and that run."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] not in ("Z", "X"):
                found.append(int(folder.name))
    return found


class Running:
    """A run that is under way.

    Args:
        process: `dtir run`.
        processes: how many processes it starts.
    """

    def __init__(self, process: subprocess.Popen[str], processes: int) -> None:
        self.process = process
        self.processes = processes
        self._board: Board | None = None

    def rows(self) -> list[Row]:
        """What the processes do; empty before they began."""
        if self._board is None:
            folder = self._folder()
            if folder is None:
                return []
            self._board = Board.open(folder / "board", self.processes)
        return self._board.rows()

    def _folder(self) -> Path | None:
        for launcher in children(self.process.pid):
            for worker in children(launcher):
                try:
                    words = Path(f"/proc/{worker}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"_mpi-worker" in words:
                    return Path(words[words.index(b"_mpi-worker") + 1].decode())
        return None

    def is_under_way(self) -> bool:
        """Whether all processes are in the middle of the program."""
        rows = self.rows()
        return bool(rows) and all(row.pid and row.step >= 0 for row in rows)

    def wait_until_under_way(self) -> None:
        def begun() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"it has ended: {self.process.communicate()}")
            return self.is_under_way()

        until(begun, "processes in the middle of the program")

    def pids(self) -> list[int]:
        """All processes of the run but `dtir run` itself."""
        return [*children(self.process.pid), *(row.pid for row in self.rows() if row.pid)]

    def end(self) -> tuple[int, str, str]:
        """Wait for its end: exit code, what it printed, what it complained about."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err


@contextmanager
def running(*arguments: str, processes: int, more: Mapping[str, str] | None = None) -> Iterator[Running]:
    """`dtir run ... --backend mpi -n N`; afterwards nothing of it is left, or the test fails."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dtir", "run", *arguments, "--backend", "mpi", "-n", str(processes)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(more),
    )
    run = Running(process, processes)
    pids: list[int] = []
    try:
        run.wait_until_under_way()
        pids = run.pids()
        yield run
        until(lambda: not any(map(exists, pids)), f"the end of the processes {pids}")
    finally:
        for pid in [process.pid, *pids]:
            if exists(pid):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def computes(row: Row) -> bool:
    """Whether a process is in a local step."""
    return row.doing is Doing.COMPUTING
