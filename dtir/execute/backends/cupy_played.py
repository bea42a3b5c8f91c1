"""Streams, events, arenas and graphs of devices that are played on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtir.execute.backends.cupy_clocks import Buffer, Clock, RaceError
from dtir.execute.backends.cupy_runtime import DeviceError

if TYPE_CHECKING:
    from dtir.execute.backends.cupy_host import HostRuntime

ROUND_BYTES = 512
"""Arenas hand out multiples of so many bytes, as CuPy's pool does."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was done.

    Args:
        what: ``launch``, ``work``, ``copy``, ``record``, ``wait``, ``synchronize``, ``upload``, ``send``, ``receive``, ...
        stream: on which stream; of ``wait`` the one that waits.
        detail: the kernel, the function, the event.
    """

    what: str
    stream: str
    detail: str = ""


class HostEvent:
    """A point in the work of a stream."""

    def __init__(self, runtime: HostRuntime, name: str) -> None:
        self.name = name
        self.seen: dict[int, int] | None = None
        self.time_ns = 0
        self._runtime = runtime

    def synchronize(self) -> None:
        """The host knows of the work before it.

        Raises:
            RaceError: it was never recorded.
        """
        if self.seen is None:
            raise RaceError(f"{self.name} is waited for before it is recorded")
        self._runtime.refuse_in_capture(f"waiting for {self.name}")
        self._runtime.host.clock.learn(self.seen)

    def since_ms(self, earlier: HostEvent) -> float:
        """Time of the host's clock between the two."""
        return (self.time_ns - earlier.time_ns) * 1e-6


class HostStream:
    """Work that is done in order."""

    def __init__(self, runtime: HostRuntime, device: int, name: str) -> None:
        self.device = device
        self.clock = Clock(name)
        self._runtime = runtime

    def record(self, event: HostEvent) -> None:
        """Set an event behind what was done."""
        self.clock.tick(self._runtime.host.clock)
        event.seen, event.time_ns = dict(self.clock.seen), time.perf_counter_ns()
        self._runtime.note(Entry("record", self.clock.name, event.name))

    def wait(self, event: HostEvent) -> None:
        """Later work comes after the event.

        Raises:
            RaceError: it was never recorded.
        """
        if event.seen is None:
            raise RaceError(f"{self.clock.name} waits for {event.name} before it is recorded")
        self.clock.learn(event.seen)
        self._runtime.note(Entry("wait", self.clock.name, event.name))

    def synchronize(self) -> None:
        """The host knows of all work."""
        self._runtime.refuse_in_capture("synchronizing a stream")
        self._runtime.host.clock.learn(self.clock.seen)
        self._runtime.note(Entry("synchronize", self.clock.name))


class HostArena:
    """Memory of one device for one session."""

    def __init__(self, runtime: HostRuntime, device: int, limit_bytes: int | None) -> None:
        self.used_bytes = 0
        self.held_bytes = 0
        self._device = device
        self._limit = limit_bytes
        self._runtime = runtime
        # By the stream that it was taken on and its size; each with its last uses.
        self._free: dict[tuple[int, int], list[list[tuple[int, int]]]] = {}

    def take(self, array: np.ndarray[Any, Any], stream: HostStream) -> Buffer:
        """Memory for an array.

        Raises:
            DeviceError: there is not enough, or a capture would have to take it from the device.
            RaceError: another stream may still use what the pool would hand out.
        """
        size = -(-array.nbytes // ROUND_BYTES) * ROUND_BYTES
        number = stream.clock.number
        waiting = self._free.get((number, size))
        if waiting:
            for other, work in waiting.pop():
                if not stream.clock.knows(other, work):
                    raise RaceError(f"memory handed out on {stream.clock.name} may still be in use on another stream")
        else:
            if self._runtime.capturing:
                raise DeviceError("memory would be taken from the device during a capture: run once before it")
            if self._limit is not None and self.held_bytes + size > self._limit:
                raise DeviceError(f"out of device memory: {self.held_bytes + size} of {self._limit} bytes")
            self.held_bytes += size
        self.used_bytes += size

        def returned(buffer: Buffer) -> None:
            self.used_bytes -= size
            self._free.setdefault((number, size), []).append(buffer.uses)
            self._runtime.forget(buffer)

        return Buffer(array.ctypes.data, array.nbytes, returned)

    def close(self) -> None:
        """Give back what is free."""
        self._free.clear()
        self.held_bytes = self.used_bytes


class HostGraph:
    """Work that was captured."""

    def __init__(self, runtime: HostRuntime) -> None:
        self.work: list[Callable[[], Any]] = []
        self._runtime = runtime

    def launch(self, stream: HostStream) -> None:
        """Do it again."""
        stream.clock.tick(self._runtime.host.clock)
        self._runtime.note(Entry("graph", stream.clock.name, f"{len(self.work)} pieces of work"))
        for again in self.work:
            again()


class HostCapture:
    """What comes out of a capture."""

    def __init__(self, graph: HostGraph) -> None:
        self.graph = graph
