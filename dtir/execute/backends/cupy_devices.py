"""A session over several devices: a thread and a session for each, which this one leads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from dtir.execute.backends.base import Traffic
from dtir.execute.backends.cupy_check import DeviceChecker, Pool
from dtir.execute.backends.cupy_hierarchy import HierarchicalFabric, groups_that_meet
from dtir.execute.backends.cupy_lane import Lane
from dtir.execute.backends.cupy_peers import Peers
from dtir.execute.backends.cupy_session import DeviceSession, host_remarks
from dtir.execute.checked import Checker
from dtir.execute.dtypes import Array
from dtir.execute.fabric import LocalFabric
from dtir.execute.session import Observer, Options, Session
from dtir.execute.steps import ExecPlan, Step
from dtir.execute.values import Held, Slab, merge, take
from dtir.schema.diagnostics import Diagnostic


class DevicesSession(Session):
    """A prepared plan on the ranks of several devices.

    Args:
        plan: the plan.
        peers: the devices, and which rank is where.
        options: how to run.
        observer: told of every step, device by device.
    """

    def __init__(self, plan: ExecPlan, peers: Peers, options: Options, observer: Observer | None = None) -> None:
        super().__init__(plan, LocalFabric(range(plan.ranks)), options)
        self.peers = peers
        for places in spans(plan, peers):
            peers.connect(places)
        told = _one_at_a_time(observer) if observer is not None else None
        self.sessions: list[DeviceSession] = []
        for place, device in enumerate(peers.devices):
            ranks = tuple(rank for rank in range(plan.ranks) if peers.place_of[rank] == place)
            lane = Lane(peers.runtime, device, timed=observer is not None)
            self.sessions.append(DeviceSession(plan, HierarchicalFabric(ranks, lane, peers, place), options, told))
        self._threads = [ThreadPoolExecutor(1, f"device-{device}") for device in peers.devices]

    @property
    def on_host(self) -> dict[str, str]:
        """Local steps that the devices could not do."""
        return {name: why for session in self.sessions for name, why in session.on_host.items()}

    def remarks(self) -> tuple[Diagnostic, ...]:
        """The steps that ran on the host."""
        return host_remarks(self.on_host)

    def _all(self, work: Callable[[DeviceSession], None]) -> None:
        """Do something on every device at the same time.

        Raises:
            ExecutionError: it fails on one, and therefore on the others.
        """
        futures = [thread.submit(work, session) for thread, session in zip(self._threads, self.sessions, strict=True)]
        over, _ = wait(futures, return_when=FIRST_EXCEPTION)
        failed = [error for future in over if (error := future.exception()) is not None]
        if failed:
            self.peers.abort(str(failed[0]))
        wait(futures)
        if failed:
            raise failed[0]  # the others follow from it

    def load_slot(self, slot: int, held: Held) -> None:
        """Give ranks their parts of an input, from arrays of the host."""

        def load(session: DeviceSession) -> None:
            ranks = tuple(rank for rank in held.ranks if rank in session.local_ranks)
            if ranks:
                session.load_slot(slot, take(held, ranks))

        self._all(load)

    def load(self, value: str, rank: int, data: Array) -> None:
        """Give a rank its part of an input, by the name of the value."""
        self.load_slot(self._numbers[value], Slab((rank,), data[None]))

    def execute(self, step: Step) -> None:
        """Run one step of the program's own list on every device."""

        def run(session: DeviceSession) -> None:
            try:
                session.execute(step)
            finally:
                self.peers.done(self.sessions.index(session))

        self.peers.begin()
        self._all(run)

    def sync(self) -> None:
        """Wait for all devices."""
        self._all(lambda session: session.sync())

    def make_checker(self) -> Checker:
        """What compares the exchanges of all devices with the reference; they bring them together."""
        return Checker(self.plan.ranks)

    def start(self) -> None:
        """A repetition begins."""
        pool = Pool(self.plan.ranks, self.checker.wrong) if self.checker is not None else None
        for session in self.sessions:
            session.checker = DeviceChecker(session, pool) if pool is not None else None
        self._all(lambda session: session.start())

    def reset(self) -> None:
        """Forget all values."""
        self._all(lambda session: session.reset())

    def read_slot(self, slot: int) -> Held:
        """What all ranks hold of a value that was kept, as arrays of the host."""
        parts = [thread.submit(session.read_slot, slot).result() for thread, session in self._pairs()]
        held = [part for part in parts if len(part.ranks)]
        return merge(held) if held else parts[0]

    def read(self, value: str, rank: int) -> Array:
        """A rank's part of a value that was kept."""
        for thread, session in self._pairs():
            if rank in session.local_ranks:
                return thread.submit(session.read, value, rank).result()
        raise KeyError(rank)

    def _pairs(self) -> Sequence[tuple[ThreadPoolExecutor, DeviceSession]]:
        return list(zip(self._threads, self.sessions, strict=True))

    def close(self) -> None:
        """End the threads and give everything back."""
        for thread, session in self._pairs():
            thread.submit(session.close).result()
            thread.shutdown()
        self.peers.close()


def spans(plan: ExecPlan, peers: Peers) -> list[tuple[int, ...]]:
    """The sets of devices that communicate, in the order of the plan."""
    found: dict[tuple[int, ...], None] = {}
    for scope in plan.scopes:
        for step in scope.steps:
            if step.exchange is not None:
                groups = groups_that_meet(step.exchange)
                found.update(dict.fromkeys([*(peers.places(group) for group in groups), *peers.together(groups)]))
            for moves in step.moves:
                found.update(dict.fromkeys(peers.together([(move.source, move.destination) for move in moves.moves])))
    return [places for places in found if len(places) > 1]


def _one_at_a_time(observer: Observer) -> Observer:
    lock = threading.Lock()

    def told(step: Step, ranks: Sequence[int], start_ns: int, end_ns: int, sent: Traffic | None) -> None:
        with lock:
            observer(step, ranks, start_ns, end_ns, sent)

    return told


__all__ = ["DevicesSession", "spans"]
