"""Devices that are played on the host: the array module is numpy's, kernels are compiled for the host.

Work is done at once and in the order of the program, so that results are right or wrong as the arithmetic is. What a GPU
would do at its own pace is judged by clocks (`cupy_clocks`): use of memory without an edge between streams raises, memory
comes from an arena as CuPy's pool hands it out, and a capture refuses what CUDA refuses. What was done stands in `log`.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from weakref import ReferenceType, ref

import numpy as np

from dtir.execute.backends.cupy_arrays import HostArray, HostModule
from dtir.execute.backends.cupy_clocks import Buffer, HostClock, RaceError
from dtir.execute.backends.cupy_mail import HostCommunicator, Mail
from dtir.execute.backends.cupy_memory import read_memory, write_memory
from dtir.execute.backends.cupy_played import Entry, HostArena, HostCapture, HostEvent, HostGraph, HostStream
from dtir.execute.backends.cupy_runtime import DeviceError, DeviceFacts, require_distinct
from dtir.execute.dtypes import Array
from dtir.execute.kernels import Geometry, Launch
from dtir.execute.kernels.host import HostKernels

GEOMETRY = Geometry(blocks=2, threads=32)
"""Small grids: every thread has several elements even of small arrays."""


class _Current(threading.local):
    def __init__(self) -> None:
        self.stream: HostStream | None = None
        self.arena: HostArena | None = None
        self.graph: HostGraph | None = None


class HostRuntime:
    """Devices played on the host.

    Args:
        devices: how many.
        memory_bytes: of each.
        kernels: instances of the kernels that are there already; None: compiled when they are launched.

    Raises:
        CompileError: there is no C++ compiler.
    """

    def __init__(self, devices: int = 1, memory_bytes: int = 1 << 34, kernels: HostKernels | None = None) -> None:
        self.count = devices
        self.host = HostClock()
        self.log: list[Entry] = []
        self.xp: Any = HostModule(self)
        self.mail = Mail()
        self._memory_bytes = memory_bytes
        self._kernels = kernels or HostKernels()
        self._current = _Current()
        self._addresses: list[int] = []
        self._buffers: dict[int, ReferenceType[Buffer]] = {}
        self._lock = threading.RLock()
        self._all: list[HostStream] = []
        self._events = 0

    # -- what devices are ------------------------------------------------------------------------------------------------

    def facts(self, device: int) -> DeviceFacts:
        """A device without a name."""
        return DeviceFacts(f"host device {device}", "0.0", 1, self._memory_bytes, self._memory_bytes)

    def geometry(self, device: int) -> Geometry:
        """Small grids."""
        del device
        return GEOMETRY

    def arena(self, device: int, limit_bytes: int | None = None) -> HostArena:
        """Memory for a session."""
        return HostArena(self, device, min(limit_bytes or self._memory_bytes, self._memory_bytes))

    def stream(self, device: int) -> HostStream:
        """A stream."""
        made = HostStream(self, device, f"stream {len(self._all) + 1} of device {device}")
        self._all.append(made)
        return made

    def event(self, device: int, *, timed: bool = False) -> HostEvent:
        """An event."""
        del device, timed
        self._events += 1
        return HostEvent(self, f"event {self._events}")

    @contextmanager
    def on(self, stream: HostStream, arena: HostArena) -> Generator[None]:
        """Work of the array module in this thread goes to the stream."""
        before = self._current.stream, self._current.arena
        self._current.stream, self._current.arena = stream, arena
        try:
            yield
        finally:
            self._current.stream, self._current.arena = before

    # -- the books -------------------------------------------------------------------------------------------------------

    def note(self, entry: Entry) -> None:
        """Something was done."""
        self.log.append(entry)

    @property
    def capturing(self) -> bool:
        """Whether this thread captures."""
        return self._current.graph is not None

    def refuse_in_capture(self, what: str) -> None:
        """Raise in a capture.

        Raises:
            DeviceError: this thread captures.
        """
        if self.capturing:
            raise DeviceError(f"{what} is not possible during a capture")

    def here(self, what: str) -> HostStream:
        """The stream of this thread.

        Raises:
            DeviceError: it has none.
        """
        if self._current.stream is None:
            raise DeviceError(f"{what} outside of a session's stream")
        return self._current.stream

    def forget(self, buffer: Buffer) -> None:
        """Memory is nobody's any more."""
        with self._lock:
            kept = self._buffers.get(buffer.address)
            if kept is not None and kept() in (None, buffer):  # else the address is already that of another array
                del self._buffers[buffer.address]
                del self._addresses[bisect_right(self._addresses, buffer.address) - 1]

    def _register(self, array: np.ndarray[Any, Any]) -> Buffer | None:
        if not array.nbytes:
            return None
        assert self._current.arena is not None
        buffer = self._current.arena.take(array, self.here("work"))
        with self._lock:
            if buffer.address not in self._buffers:
                insort(self._addresses, buffer.address)
            self._buffers[buffer.address] = ref(buffer)
        return buffer

    def _find(self, address: int, size_bytes: int, what: str) -> Buffer:
        with self._lock:
            place = bisect_right(self._addresses, address) - 1
            found = self._buffers[self._addresses[place]]() if place >= 0 else None
        if found is None or address + size_bytes > found.address + found.size_bytes:
            raise RaceError(f"{what} uses {size_bytes} bytes of memory that no array holds")
        return found

    def done(
        self,
        what: str,
        reads: list[Buffer],
        results: list[np.ndarray[Any, Any]],
        written: list[Buffer],
        again: Callable[[], Any],
    ) -> list[Buffer | None]:
        """Work of the array module (`cupy_arrays.Work`)."""
        stream = self.here(what)
        homes = [_home(array, (*reads, *written)) for array in results]
        if (
            results
            and not written
            and all(home or not array.nbytes for home, array in zip(homes, results, strict=True))
        ):
            return list(homes)  # views, and arrays without elements: nothing is read
        stream.clock.tick(self.host.clock)
        for buffer in reads:
            buffer.note_read(stream.clock, what)
        for buffer in written:
            buffer.note_write(stream.clock, what)
        found: list[Buffer | None] = []
        fresh: list[np.ndarray[Any, Any] | None] = []
        for array, home in zip(results, homes, strict=True):
            own = None if home is not None or not array.nbytes else array
            made = self._register(array) if own is not None else home
            if own is not None and made is not None:
                made.note_write(stream.clock, what)
            found.append(made)
            fresh.append(own)
        self.note(Entry("work", stream.clock.name, what))
        if self._current.graph is not None and (written or any(array is not None for array in fresh)):
            self._current.graph.work.append(lambda: _redo(again, fresh))
            for array in fresh:
                if array is not None:
                    _spoil(array)  # nothing is computed while it is captured
        return found

    def uploaded(self, what: str) -> None:
        """Data come from the host."""
        self.refuse_in_capture("bringing data to a device")
        self.note(Entry("upload", self.here(what).clock.name, what))

    def waited(self, what: str, buffer: Buffer | None) -> None:
        """The host waits for data."""
        self.refuse_in_capture("waiting for data of a device")
        stream = self.here(what)
        stream.clock.tick(self.host.clock)
        if buffer is not None:
            buffer.note_read(stream.clock, what)
        stream.synchronize()

    # -- work ------------------------------------------------------------------------------------------------------------

    def _issue(
        self,
        entry: str,
        what: str,
        stream: HostStream,
        reads: Sequence[tuple[int, int]],
        writes: Sequence[tuple[int, int]],
        work: Callable[[], Any],
    ) -> None:
        stream.clock.tick(self.host.clock)
        for address, size in reads:
            if size:
                self._find(address, size, what).note_read(stream.clock, what)
        for address, size in dict.fromkeys(writes):
            if size:
                self._find(address, size, what).note_write(stream.clock, what)
        self.note(Entry(entry, stream.clock.name, what))
        if self._current.graph is not None:
            self._current.graph.work.append(work)
        else:
            work()

    def compile(self, expressions: Sequence[str], device: int) -> None:
        """Have kernels ready."""
        del device
        self._kernels.add(expressions)

    def launch(self, launch: Launch, stream: HostStream) -> None:
        """Run a kernel."""
        self._issue("launch", launch.expression, stream, launch.reads, launch.writes, lambda: self._kernels.run(launch))

    def copy(self, target: int, source: int, size_bytes: int, stream: HostStream) -> None:
        """Copy memory."""
        self._issue(
            "copy", f"{size_bytes} bytes", stream, [(source, size_bytes)], [(target, size_bytes)],
            lambda: write_memory(target, read_memory(source, size_bytes)),
        )  # fmt: skip

    def touch(
        self, what: str, stream: HostStream, reads: Sequence[tuple[int, int]], writes: Sequence[tuple[int, int]]
    ) -> None:
        """A communicator reads and writes memory."""
        self.refuse_in_capture("communication between devices played on the host")
        self._issue(what.split(" ")[0], what, stream, reads, writes, lambda: None)

    def address(self, array: HostArray) -> int:
        """Where an array begins."""
        return array.array.ctypes.data

    def memory(self, array: HostArray) -> int | None:
        """A number for the memory that an array is a view of."""
        return array.buffer.address if array.buffer is not None else None

    def to_device(self, array: Array) -> Any:
        """A copy of a host array."""
        return self.xp.array(array)

    def to_host(self, array: HostArray) -> Array:
        """A copy for the host."""
        return array.get()

    # -- several devices -------------------------------------------------------------------------------------------------

    def communicators(self, devices: Sequence[int]) -> list[HostCommunicator]:
        """Ends of a new communicator."""
        require_distinct(devices)
        self.note(Entry("communicator", "", str(tuple(devices))))
        return self.mail.communicators(self, tuple(devices))

    @contextmanager
    def group(self) -> Generator[None]:
        """Sends and receives of this thread belong together."""
        with self.mail.group():
            yield

    @contextmanager
    def capture(self, stream: HostStream, arena: HostArena) -> Generator[HostCapture]:
        """Note work instead of doing it."""
        self.refuse_in_capture("a capture")
        found = HostCapture(HostGraph(self))
        before = len(self.log)
        with self.on(stream, arena):
            self._current.graph = found.graph
            try:
                yield found
            finally:
                self._current.graph = None
        for other in self._ends(before):
            if not stream.clock.knows(*other):
                raise DeviceError("the capture ends while another stream that takes part in it has not been joined")

    def _ends(self, first: int) -> list[tuple[int, int]]:
        """How far every stream came since an entry of the log."""
        names = {entry.stream for entry in self.log[first:]}
        return [(one.clock.number, one.clock.seen[one.clock.number]) for one in self._all if one.clock.name in names]


def _home(array: np.ndarray[Any, Any], buffers: Sequence[Buffer]) -> Buffer | None:
    """The memory that an array is a view of, None where it has its own, or no elements."""
    if not array.nbytes:
        return None
    start = array.ctypes.data
    return next((one for one in buffers if one.address <= start < one.address + one.size_bytes), None)


def _redo(again: Callable[[], Any], fresh: list[np.ndarray[Any, Any] | None]) -> None:
    found = again()
    made: list[Any] = list(cast("list[Any]", found)) if isinstance(found, (list, tuple)) else [found]
    for array, new in zip(fresh, made, strict=False):
        if array is not None:
            array[...] = new


def _spoil(array: np.ndarray[Any, Any]) -> None:
    if array.flags.writeable and array.flags.c_contiguous:
        array.reshape(-1).view(np.uint8)[...] = 1 if array.dtype.kind == "b" else 0xA5
