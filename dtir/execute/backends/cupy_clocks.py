"""Order of work on streams, and what goes wrong without it: the judge behind the host's device runtime.

Every stream counts its work. It knows how far each other stream had come at the events that it waited for; what happens
before what follows from that (vector clocks; C. Fidge 1988, F. Mattern 1989). Memory that is used from several streams
without such an edge is a race, and so is memory that is given back while another stream may still use it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from dtir.execute.backends.cupy_runtime import DeviceError

_numbers = count()


class RaceError(DeviceError):
    """Work of two streams uses memory without an order between them, or an event is waited for that nobody set."""


@dataclass(slots=True)
class Clock:
    """How far a stream has come, and how far it knows the others to have come.

    Args:
        name: of the stream, for messages.
        number: of the stream.
        seen: work done by number of the stream.
    """

    name: str
    number: int = field(default_factory=lambda: next(_numbers))
    seen: dict[int, int] = field(default_factory=dict[int, int])

    def tick(self, host: Clock | None = None) -> int:
        """One more piece of work, behind everything that the host waited for."""
        if host is not None:
            self.learn(host.seen)
        self.seen[self.number] = self.seen.get(self.number, 0) + 1
        return self.seen[self.number]

    def learn(self, seen: dict[int, int]) -> None:
        """Know of others' work."""
        for stream, work in seen.items():
            if work > self.seen.get(stream, 0):
                self.seen[stream] = work

    def knows(self, stream: int, work: int) -> bool:
        """Whether a piece of work of a stream happens before what comes next here."""
        return self.seen.get(stream, 0) >= work


class HostClock(threading.local):
    """What the host knows to be done, thread by thread."""

    def __init__(self) -> None:
        self.clock = Clock("host")


class Buffer:
    """Memory of one array and of its views.

    Args:
        address: where it begins.
        size_bytes: its size.
        returned: told when nobody uses it any more.
    """

    def __init__(self, address: int, size_bytes: int, returned: Callable[[Buffer], None]) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.written: tuple[int, int] | None = None
        """The last piece of work that wrote it: stream and number."""
        self.read: dict[int, int] = {}
        """The last piece of work of every stream that read it since."""
        self._returned = returned

    def __del__(self) -> None:
        self._returned(self)

    def note_read(self, clock: Clock, what: str) -> None:
        """Work of a stream reads it.

        Raises:
            RaceError: nothing says that the last write comes before it.
        """
        if self.written is not None and not clock.knows(*self.written):
            raise RaceError(f"{what} on {clock.name} reads memory before the write of another stream is waited for")
        self.read[clock.number] = clock.seen[clock.number]

    def note_write(self, clock: Clock, what: str) -> None:
        """Work of a stream writes it.

        Raises:
            RaceError: nothing says that the last write, or reads since, come before it.
        """
        if self.written is not None and not clock.knows(*self.written):
            raise RaceError(f"{what} on {clock.name} writes memory before the write of another stream is waited for")
        for stream, work in self.read.items():
            if not clock.knows(stream, work):
                raise RaceError(f"{what} on {clock.name} writes memory that another stream may still read")
        self.written = (clock.number, clock.seen[clock.number])
        self.read.clear()

    @property
    def uses(self) -> list[tuple[int, int]]:
        """Work that must be over before somebody else may have the memory."""
        return [*self.read.items(), *([self.written] if self.written is not None else [])]
