"""Communicators among devices that are played on the host: threads that hand each other bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import numpy as np

from dtir.execute.backends.cupy_memory import read_memory, write_memory
from dtir.execute.backends.cupy_runtime import DeviceError
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.kernels import ELEMENTS
from dtir.ir.reductions import ReductionKind

if TYPE_CHECKING:
    from dtir.execute.backends.cupy_host import HostRuntime, HostStream

PATIENCE_S = 60.0
"""A peer that does not come for so long never comes."""


@dataclass(frozen=True, slots=True)
class _Letter:
    data: np.ndarray[Any, Any]
    seen: dict[int, int]


_Box = Queue["_Letter | None"]


class _Group(threading.local):
    def __init__(self) -> None:
        self.open = False
        self.sends: list[Callable[[], None]] = []
        self.receives: list[Callable[[], None]] = []


class Mail:
    """Letter boxes of all communicators."""

    def __init__(self) -> None:
        self._group = _Group()

    def communicators(self, runtime: HostRuntime, devices: tuple[int, ...]) -> list[HostCommunicator]:
        """Ends of a new communicator."""
        boxes: dict[tuple[int, int], _Box] = {
            (source, target): Queue() for source in range(len(devices)) for target in range(len(devices))
        }
        state = _State()
        return [HostCommunicator(runtime, self, boxes, place, len(devices), state) for place in range(len(devices))]

    @contextmanager
    def group(self) -> Generator[None]:
        """Sends and receives inside are done at the end, sends first."""
        group = self._group
        group.open, group.sends, group.receives = True, [], []
        try:
            yield
            for work in (*group.sends, *group.receives):
                work()
        finally:
            group.open = False

    def later(self, send: Callable[[], None] | None, receive: Callable[[], None] | None) -> None:
        """Put a send or a receive to its group.

        Raises:
            DeviceError: there is no group: alone, both ends would wait for each other.
        """
        if not self._group.open:
            raise DeviceError("a send or receive between devices stands in no group")
        self._group.sends += [send] if send is not None else []
        self._group.receives += [receive] if receive is not None else []


class _State:
    def __init__(self) -> None:
        self.error: str | None = None
        self.aborted = False


_FUNCTIONS = {
    ReductionKind.SUM: np.add,
    ReductionKind.PRODUCT: np.multiply,
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
}


class HostCommunicator:
    """One device's end."""

    def __init__(
        self,
        runtime: HostRuntime,
        mail: Mail,
        boxes: dict[tuple[int, int], _Box],
        place: int,
        members: int,
        state: _State,
    ) -> None:
        self._runtime = runtime
        self._mail = mail
        self._boxes = boxes
        self._place = place
        self._members = members
        self._state = state

    def fail(self, message: str) -> None:
        """Let an error come up, as a lost link would: it is seen when somebody asks."""
        self._state.error = message

    # -- letters ---------------------------------------------------------------------------------------------------------

    def _post(self, data: np.ndarray[Any, Any], peer: int, stream: HostStream) -> None:
        self._boxes[self._place, peer].put(_Letter(data, dict(stream.clock.seen)))

    def _open(self, peer: int, stream: HostStream) -> np.ndarray[Any, Any]:
        try:
            letter = self._boxes[peer, self._place].get(timeout=PATIENCE_S)
        except Empty:
            raise DeviceError(f"device {peer} of a communicator never arrives") from None
        if letter is None:
            self._boxes[peer, self._place].put(None)
            raise DeviceError("the communicator was aborted")
        stream.clock.learn(letter.seen)
        return letter.data

    def _all(self, send: int, size_bytes: int, stream: HostStream) -> list[np.ndarray[Any, Any]]:
        own = read_memory(send, size_bytes)
        others = [peer for peer in range(self._members) if peer != self._place]
        for peer in others:
            self._post(own, peer, stream)
        found = {peer: self._open(peer, stream) for peer in others}
        return [own if peer == self._place else found[peer] for peer in range(self._members)]

    # -- the protocol ----------------------------------------------------------------------------------------------------

    def all_reduce(
        self, send: int, receive: int, count: int, element: str, kind: ReductionKind, stream: HostStream
    ) -> None:
        """As a ring does it: every chunk is folded from another member on, so that the order is not that of the members."""
        size = count * ELEMENTS[element]
        self._runtime.touch(f"all_reduce {kind.value}", stream, [(send, size)], [])
        names = {"i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64"}
        dtype = numpy_dtype(names.get(element, element))
        parts = [data.view(dtype) for data in self._all(send, size, stream)]
        chunks: list[np.ndarray[Any, Any]] = []
        with np.errstate(all="ignore"):
            for number, chunk in enumerate(zip(*(np.array_split(part, self._members) for part in parts), strict=True)):
                total = chunk[(number + 1) % self._members]
                for step in range(1, self._members):
                    total = _FUNCTIONS[kind](total, chunk[(number + 1 + step) % self._members])
                chunks.append(np.asarray(total, dtype))
        self._runtime.touch("all_reduce result", stream, [], [(receive, size)])
        write_memory(receive, np.concatenate(chunks).view(np.uint8))

    def send(self, source: int, size_bytes: int, peer: int, stream: HostStream) -> None:
        """To a peer, at the end of the group."""

        def work() -> None:
            self._runtime.touch(f"send to {peer}", stream, [(source, size_bytes)], [])
            self._post(read_memory(source, size_bytes), peer, stream)

        self._mail.later(work, None)

    def receive(self, target: int, size_bytes: int, peer: int, stream: HostStream) -> None:
        """From a peer, at the end of the group."""

        def work() -> None:
            data = self._open(peer, stream)
            if data.size != size_bytes:
                raise DeviceError(f"a message of {data.size} bytes is received as {size_bytes}")
            self._runtime.touch(f"receive from {peer}", stream, [], [(target, size_bytes)])
            write_memory(target, data)

        self._mail.later(None, work)

    def check(self) -> None:
        """Errors that came up."""
        if self._state.error is not None:
            raise DeviceError(self._state.error)

    def close(self, *, abort: bool = False) -> None:
        """Nobody waits for this end any more."""
        if abort and not self._state.aborted:
            self._state.aborted = True
            for box in self._boxes.values():
                box.put(None)
