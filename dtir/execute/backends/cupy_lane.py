"""One device of a session: its memory, its two streams, and the edges between them.

Local steps run on one stream, communication on the other. A communication step waits for all local work before it; later
local steps wait for it only when they use its results, so that other work goes on beside it. What it reads is kept until
then: given back earlier, its memory would be handed to the next local step.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from dtir.execute.backends.cupy_runtime import DeviceRuntime, Event
from dtir.execute.dtypes import Array
from dtir.execute.kernels import Launch
from dtir.execute.values import Held, Slab

MOST_PENDING = 8
"""Communication steps whose operands are kept at a time; with one more, local work waits for all of them."""


@dataclass(frozen=True, slots=True)
class _Pending:
    event: Event
    kept: tuple[Held, ...]


class Lane:
    """One device of a session.

    Args:
        runtime: the devices.
        device: which of them.
        limit_bytes: memory that the session may take; None: all that is free.
        timed: take times with events of the device instead of the host's clock.
    """

    def __init__(
        self, runtime: DeviceRuntime, device: int, limit_bytes: int | None = None, *, timed: bool = False
    ) -> None:
        self.runtime = runtime
        self.device = device
        self.geometry = runtime.geometry(device)
        self.arena = runtime.arena(device, limit_bytes)
        self.compute = runtime.stream(device)
        self.transfer = runtime.stream(device)
        self._pending: dict[int, _Pending] = {}
        self._issued: list[_Pending] = []
        self._epoch: tuple[Event, int] | None = None
        self._timed = timed

    # -- where work goes -----------------------------------------------------------------------------------------------

    def computing(self) -> AbstractContextManager[None]:
        """Work of the array module in this thread is local work of this device."""
        return self.runtime.on(self.compute, self.arena)

    @contextmanager
    def transferring(self) -> Generator[None]:
        """Work inside is communication: behind all local work so far."""
        edge = self.runtime.event(self.device)
        self.compute.record(edge)
        self.transfer.wait(edge)
        with self.runtime.on(self.transfer, self.arena):
            yield

    def launch(self, launches: Launch | Iterable[Launch]) -> None:
        """Issue kernels as communication."""
        for launch in [launches] if isinstance(launches, Launch) else launches:
            self.runtime.launch(launch, self.transfer)

    # -- edges ----------------------------------------------------------------------------------------------------------

    def issued(self, operands: Sequence[Held], results: Sequence[Held]) -> None:
        """A communication step was issued: who uses its results waits for it."""
        event = self.runtime.event(self.device)
        self.transfer.record(event)
        pending = _Pending(event, tuple(operands))
        self._issued.append(pending)
        for memory in self._memory(results):
            self._pending[memory] = pending
        if len(self._issued) > MOST_PENDING:
            self.join()

    def need(self, operands: Sequence[Held]) -> None:
        """Local work is about to use operands."""
        waiting = [self._pending[memory] for memory in self._memory(operands) if memory in self._pending]
        if waiting:
            self._join(max(self._issued.index(pending) for pending in waiting))

    def join(self) -> None:
        """Local work waits for all communication so far."""
        if self._issued:
            self._join(len(self._issued) - 1)

    def _join(self, last: int) -> None:
        # Communication is done in order: who waits for one step waits for those before it.
        self.compute.wait(self._issued[last].event)
        over, self._issued = self._issued[: last + 1], self._issued[last + 1 :]
        for pending in over:
            for memory in [memory for memory, other in self._pending.items() if other is pending]:
                del self._pending[memory]

    def _memory(self, values: Sequence[Held]) -> list[int]:
        found = [self.runtime.memory(array) for held in values for array in _arrays(held)]
        return [memory for memory in found if memory is not None]

    # -- the host waits ---------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Wait for everything."""
        self.join()
        self.transfer.synchronize()
        self.compute.synchronize()

    def now_ns(self) -> int:
        """The time: of the device, at the end of all work so far, for which the host waits; else of the host."""
        if not self._timed:
            return time.perf_counter_ns()
        event = self.runtime.event(self.device, timed=True)
        self.join()
        self.compute.record(event)
        event.synchronize()
        if self._epoch is None:
            self._epoch = event, time.perf_counter_ns()
        return self._epoch[1] + int(event.since_ms(self._epoch[0]) * 1e6)

    def close(self) -> None:
        """Give memory back."""
        self.join()
        self.arena.close()


def _arrays(held: Held) -> Sequence[Array]:
    found: Any = held.array if isinstance(held, Slab) else held.arrays
    return [found] if isinstance(held, Slab) else list(found)
