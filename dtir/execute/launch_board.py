"""What every process of a run does at the moment, in memory that all of them and the launcher share.

One row a process, 64 bytes, written by its owner alone. A process that is killed cannot say where it was; its row can.
The launcher writes one word: that the processes should stop.

>>> board = Board.create(2)
>>> board.write(1, Doing.COMPUTING, step=7)
>>> board.read(1).doing, board.read(1).step
(<Doing.COMPUTING: 1>, 7)
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

_ROW = struct.Struct("@qqqqqqq")  # native: a store of eight bytes is not torn
_ROW_BYTES = 64
_HEAD = struct.Struct("@8sqq")
_MAGIC = b"dtirbrd1"
_STOP_AT = 16


class BoardError(ValueError):
    """The file is no board of so many processes."""


class Doing(Enum):
    """What a process does."""

    STARTING = 0
    COMPUTING = 1
    COMMUNICATING = 2
    FINISHED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Row:
    """What one process does.

    Args:
        pid: of the process; 0: it has not come so far.
        doing: what it does.
        step: index of the step, -1 before the first.
        group: number of the group it exchanges with, -1 for none.
        done: steps of the program's own list that are done, over all repetitions.
        since_ns: when it began that, on the monotonic clock of the host.
        parent: process id of what started it.
    """

    pid: int
    doing: Doing
    step: int
    group: int
    done: int
    since_ns: int
    parent: int

    def seconds(self, now_ns: int | None = None) -> float:
        """How long it has been doing that."""
        return ((time.perf_counter_ns() if now_ns is None else now_ns) - self.since_ns) / 1e9


class Board:
    """The rows of all processes.

    Args:
        memory: the bytes.
        processes: number of rows.
    """

    def __init__(self, memory: Any, processes: int) -> None:
        self._memory = memory
        self.processes = processes

    @classmethod
    def create(cls, processes: int, path: Path | None = None) -> Board:
        """A board without entries; in a file, where other processes are to see it."""
        size = _ROW_BYTES * (processes + 1)
        if path is None:
            memory: Any = bytearray(size)
        else:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.truncate(descriptor, size)
                memory = mmap.mmap(descriptor, size)
            finally:
                os.close(descriptor)
        _HEAD.pack_into(memory, 0, _MAGIC, processes, 0)
        board = cls(memory, processes)
        for process in range(processes):
            board.write(process, Doing.STARTING, pid=0)
        return board

    @classmethod
    def open(cls, path: Path, processes: int) -> Board:
        """The board that the launcher has made.

        Raises:
            BoardError: it is for another number of processes.
            OSError: there is none.
        """
        descriptor = os.open(path, os.O_RDWR)
        try:
            size = os.fstat(descriptor).st_size
            if size != _ROW_BYTES * (processes + 1):
                raise BoardError(f"the board has {size} bytes, {_ROW_BYTES * (processes + 1)} are wanted")
            memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        magic, rows, _ = _HEAD.unpack_from(memory, 0)
        if magic != _MAGIC or rows != processes:
            raise BoardError(f"the board is for {rows} processes, {processes} run")
        return cls(memory, processes)

    def write(
        self,
        process: int,
        doing: Doing,
        *,
        step: int = -1,
        group: int = -1,
        done: int = 0,
        pid: int | None = None,
        parent: int = 0,
        since_ns: int | None = None,
    ) -> None:
        """Set the row of a process."""
        _ROW.pack_into(
            self._memory,
            _ROW_BYTES * (process + 1),
            os.getpid() if pid is None else pid,
            doing.value,
            step,
            group,
            done,
            time.perf_counter_ns() if since_ns is None else since_ns,
            parent,
        )

    def read(self, process: int) -> Row:
        """The row of a process."""
        pid, doing, step, group, done, since, parent = _ROW.unpack_from(self._memory, _ROW_BYTES * (process + 1))
        return Row(pid, Doing(doing), step, group, done, since, parent)

    def rows(self) -> list[Row]:
        """All rows, by process."""
        return [self.read(process) for process in range(self.processes)]

    def stop(self) -> None:
        """Ask all processes to write down what they have and end."""
        struct.pack_into("@q", self._memory, _STOP_AT, 1)

    @property
    def stopping(self) -> bool:
        """Whether that was asked for."""
        return struct.unpack_from("@q", self._memory, _STOP_AT)[0] != 0
