"""What the cupy back end needs of devices: memory, streams, events, launches, copies, communicators, graphs.

`cupy_cuda` has it from CUDA through CuPy; `cupy_host` plays it on the host, so that everything above this protocol is
tested without a GPU: the order of work, the edges between streams, and what is captured. Streams, events and arenas of one
runtime are no use to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dtir.execute.dtypes import Array
from dtir.execute.kernels import Geometry, Launch
from dtir.ir.reductions import ReductionKind


class DeviceError(RuntimeError):
    """A device, its driver or a communicator says that something failed; the message says what."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a device is.

    Args:
        name: as its vendor calls it.
        architecture: compute capability, ``9.0``.
        multiprocessors: how many.
        free_bytes: memory that can be had.
        total_bytes: memory that it has.
    """

    name: str
    architecture: str
    multiprocessors: int
    free_bytes: int
    total_bytes: int


class Event(Protocol):
    """A point in the work of a stream."""

    def synchronize(self) -> None:
        """Wait on the host until it is reached."""
        ...

    def since_ms(self, earlier: Any) -> float:
        """Milliseconds of the device's clock since an earlier event; both were reached."""
        ...


class Stream(Protocol):
    """Work of one device that is done in order."""

    @property
    def device(self) -> int:
        """The number of its device."""
        ...

    def record(self, event: Any) -> None:
        """Set an event behind all work that was issued so far."""
        ...

    def wait(self, event: Any) -> None:
        """Let later work wait for an event, of this or another stream; the host does not wait."""
        ...

    def synchronize(self) -> None:
        """Wait on the host until all work is done."""
        ...


class Arena(Protocol):
    """Memory of one device for one session: nobody else gets what it holds, not even what is free in it."""

    @property
    def used_bytes(self) -> int:
        """Bytes of arrays that live."""
        ...

    @property
    def held_bytes(self) -> int:
        """Bytes that were taken from the device."""
        ...

    def close(self) -> None:
        """Give everything back that no array uses."""
        ...


class Graph(Protocol):
    """Work that was captured, to be issued again in one go."""

    def launch(self, stream: Any) -> None:
        """Issue it."""
        ...


class Communicator(Protocol):
    """One device's end of a communicator among several devices. Addresses are those of device memory, counts are elements.

    Element types are those of the kernels (`dtir.execute.kernels.ELEMENTS`).
    """

    def all_reduce(
        self, send: int, receive: int, count: int, element: str, kind: ReductionKind, stream: Stream
    ) -> None:
        """The reduction of all, to all."""
        ...

    def send(self, source: int, size_bytes: int, peer: int, stream: Any) -> None:
        """To the device at a place of the communicator; within a group."""
        ...

    def receive(self, target: int, size_bytes: int, peer: int, stream: Any) -> None:
        """From the device at a place of the communicator; within a group."""
        ...

    def check(self) -> None:
        """Ask for errors that came up since.

        Raises:
            DeviceError: there was one; the communicator is of no more use.
        """
        ...

    def close(self, *, abort: bool = False) -> None:
        """Give it back; with `abort` also where peers never come."""
        ...


class DeviceRuntime(Protocol):
    """The devices of this process."""

    @property
    def xp(self) -> Any:
        """The array module."""
        ...

    @property
    def count(self) -> int:
        """Number of devices."""
        ...

    def facts(self, device: int) -> DeviceFacts:
        """What a device is, and how much memory it has now."""
        ...

    def geometry(self, device: int) -> Geometry:
        """How large grids are best."""
        ...

    def arena(self, device: int, limit_bytes: int | None = None) -> Arena:
        """Memory for a session; the first use takes it from the device."""
        ...

    def stream(self, device: int) -> Stream:
        """A stream of its own, that does not wait for any other."""
        ...

    def event(self, device: int, *, timed: bool = False) -> Event:
        """An event, not reached yet."""
        ...

    def on(self, stream: Any, arena: Any) -> AbstractContextManager[None]:
        """In this thread: work of the array module goes to the stream, its memory comes from the arena."""
        ...

    def compile(self, expressions: Sequence[str], device: int) -> None:
        """Have kernels ready before they are launched; together they take little longer than one alone."""
        ...

    def launch(self, launch: Launch, stream: Any) -> None:
        """Issue a kernel; it is compiled now where it is not ready."""
        ...

    def copy(self, target: int, source: int, size_bytes: int, stream: Any) -> None:
        """Issue a copy from device memory to device memory."""
        ...

    def address(self, array: Array) -> int:
        """Where an array begins in device memory."""
        ...

    def memory(self, array: Array) -> int | None:
        """A number for the memory that an array is a view of; None for an array without elements."""
        ...

    def to_device(self, array: Array) -> Array:
        """A copy of a host array, on the current stream."""
        ...

    def to_host(self, array: Array) -> Array:
        """A copy of a device array; waits for the current stream."""
        ...

    def communicators(self, devices: Sequence[int]) -> Sequence[Communicator]:
        """Ends of a new communicator, in the order of the devices, which are distinct.

        Raises:
            DeviceError: it cannot be made, or a device stands twice.
        """
        ...

    def group(self) -> AbstractContextManager[None]:
        """In this thread: sends and receives inside belong together, and are issued at its end."""
        ...

    def capture(self, stream: Any, arena: Any) -> AbstractContextManager[Captured]:
        """In this thread: work of the stream is not done but noted, and can be issued as a graph afterwards.

        Raises:
            DeviceError: something was done that cannot be captured: memory was taken from the device, or waited for it.
        """
        ...


class Captured(Protocol):
    """What came out of a capture."""

    @property
    def graph(self) -> Graph:
        """The work; there when the capture is over."""
        ...


def require_distinct(devices: Sequence[int]) -> None:
    """Raise unless a communicator of these devices can be made.

    Raises:
        DeviceError: fewer than two devices, or one stands twice: NCCL takes no two ranks of one device.
    """
    if len(set(devices)) != len(devices) or len(devices) < 2:
        raise DeviceError(f"a communicator is among at least two distinct devices, got {list(devices)}")
