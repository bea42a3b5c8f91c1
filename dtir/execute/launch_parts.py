"""What processes that were started from outside have recorded when their run fails: nobody is left to gather it.

Every process of a host that comes to an early end puts down its own part and joins all parts that are there into one
record. The last one has them all; a process that is killed outright leaves none.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dtir.execute.binding import Binding
from dtir.execute.files import write_bytes
from dtir.execute.launch_board import Board, Doing
from dtir.execute.launch_job import unpack_result
from dtir.execute.launch_merge import join_records
from dtir.execute.record import diagnostic_fields, record_bytes
from dtir.execute.steps import ExecPlan
from dtir.execute.watchdog import is_alive
from dtir.schema.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the processes of one host put down their parts.

    Args:
        folder: for the parts; the first process has made it, the last one removes it.
        record: where the joined record goes.
        plan: the plan.
        binding: which process hosts which rank.
        board: what the processes do.
    """

    folder: Path
    record: str
    plan: ExecPlan
    binding: Binding
    board: Board

    def put(self, process: int, part: bytes, findings: Sequence[Diagnostic]) -> None:
        """Put down the part of a process and why it ends, and join what is there.

        Raises:
            OSError: the record cannot be written.
        """
        write_bytes(self.folder / f"{process}.npz", part)
        said = [diagnostic_fields(item) for item in findings]
        write_bytes(self.folder / f"{process}.json", json.dumps(said).encode())
        with self._locked():
            self._join()
        if self._is_last(process):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _join(self) -> None:
        # The reason is put down after the part: where it is, both are whole.
        processes = sorted(int(path.stem) for path in self.folder.glob("*.json"))
        findings: list[dict[str, Any]] = []
        for process in processes:
            findings += json.loads((self.folder / f"{process}.json").read_text(encoding="utf-8"))
        joined = join_records(
            [
                unpack_result(
                    (self.folder / f"{process}.npz").read_bytes(), self.plan, (), self.binding.ranks_of(process)
                ).record
                for process in processes
            ]
        )
        write_bytes(self.record, record_bytes(replace(joined, complete=False, findings=tuple(findings)), self.record))

    @contextmanager
    def _locked(self) -> Generator[None]:
        with (self.folder / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _is_last(self, process: int) -> bool:
        """Whether every other process has put down its part or will put down none."""
        rows = [(number, row) for number, row in enumerate(self.board.rows()) if number != process and row.pid]
        return all(
            (self.folder / f"{number}.json").exists()
            or row.doing in (Doing.FINISHED, Doing.FAILED)
            or not is_alive(row.pid)
            for number, row in rows
        )
