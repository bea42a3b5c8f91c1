"""The processes of a run: communicators, made in one order on all of them, and what they tell each other beside the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from dtir.execute.backends.mpi_library import LARGEST_COUNT, MpiError, library_name, load, vendor_of
from dtir.execute.backends.mpi_messages import Messenger
from dtir.execute.wire import WireCounter, open_counter

_MOST_COMMUNICATORS: Mapping[str, int] = {"Open MPI": 65_000, "MPICH": 2_000, "Intel MPI": 2_000, "MVAPICH": 2_000}
"""Live communicators of one process (measured: 65,532 and 2,046)."""

_FEW_COMMUNICATORS = 2_000


class World:
    """All processes.

    Args:
        mpi: the module `mpi4py.MPI`.
    """

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self.comm: Any = mpi.COMM_WORLD
        self.size: int = self.comm.Get_size()
        self.process: int = self.comm.Get_rank()
        # Data, and what is said beside it, must not be taken for each other.
        self.messenger = Messenger(mpi, self.comm.Dup())
        self._side: Any = self.comm.Dup()
        self._communicators: dict[tuple[int, ...], Any] = {tuple(range(self.size)): self.comm}
        self.library: str = library_name(mpi)
        counter, self.unmeasured = open_counter(mpi, self.comm)
        if counter is not None and self.size > 1 and not self._counts(counter):
            counter, self.unmeasured = None, "not measured: the counters of the library stand still"
        self.counter: WireCounter | None = counter

    def _counts(self, counter: WireCounter) -> bool:
        """Whether the counters move when something is sent (they are there, but stand still, unless switched on)."""
        before = counter.read()
        right, left = (self.process + 1) % self.size, (self.process - 1) % self.size
        letter, heard = np.zeros(1, np.int64), np.empty(1, np.int64)
        self._side.Sendrecv([letter, self.mpi.INT64_T], right, 4, [heard, self.mpi.INT64_T], left, 4)
        sent = counter.read().since(before)
        return sent.total_bytes == letter.nbytes and sent.total_messages == 1

    def connect(self, teams: Iterable[tuple[int, ...]]) -> None:
        """Make the communicators of teams of processes, those of which this process is one.

        Args:
            teams: the same on all processes and in the same order; the place in it is the tag by which the members of a
                team find each other.

        Raises:
            MpiError: more than the library can keep.
        """
        distinct = dict.fromkeys(teams)
        wanted = sum(self.process in team for team in distinct)
        vendor = vendor_of(str(self.mpi.Get_library_version()))
        most = _MOST_COMMUNICATORS.get(vendor, _FEW_COMMUNICATORS)
        if wanted > most:
            raise MpiError(
                f"the program has {wanted} different groups on process {self.process}, {vendor} keeps {most} communicators:"
                " choose --algorithm ordered, which needs none, or more ranks a process"
            )
        everybody = self.comm.Get_group()
        for number, team in enumerate(distinct):
            if self.process in team and team not in self._communicators:
                group = everybody.Incl(list(team))
                self._communicators[team] = self.comm.Create_group(group, tag=number % self.messenger.tags)
                group.Free()
        everybody.Free()

    def team(self, processes: tuple[int, ...]) -> Any:
        """The communicator of a team that was connected."""
        return self._communicators[processes]

    def barrier(self, processes: Sequence[int]) -> None:
        """Wait for some processes, in messages without data: everybody hears of everybody in log2 rounds.

        Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
        """
        if len(processes) == self.size:
            self._side.Barrier()
            return
        count, at = len(processes), list(processes).index(self.process)
        nothing = np.empty(0, np.uint8)
        step = 1
        while step < count:
            to, source = processes[(at + step) % count], processes[(at - step) % count]
            self._side.Sendrecv([nothing, self.mpi.BYTE], to, 1, [np.empty(0, np.uint8), self.mpi.BYTE], source, 1)
            step *= 2

    def tell(self, processes: Sequence[int], numbers: Sequence[int], counts: Mapping[int, int]) -> dict[int, list[int]]:
        """Tell some processes a list of numbers, and hear theirs.

        Args:
            processes: who takes part, this process too; the same list on all of them.
            numbers: of this process.
            counts: how many numbers each process tells.
        """
        own = np.asarray(numbers, np.int64)
        heard = {process: np.empty(counts[process], np.int64) for process in processes}
        heard[self.process][...] = own
        others = [process for process in processes if process != self.process]
        requests = [self._side.Irecv([heard[process], self.mpi.INT64_T], process, 2) for process in others]
        requests += [self._side.Isend([own, self.mpi.INT64_T], process, 2) for process in others]
        self.mpi.Request.Waitall(requests)
        return {process: [int(number) for number in found] for process, found in heard.items()}

    @property
    def one_host(self) -> bool:
        """Whether all processes share memory; all of them ask together."""
        node = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        found = node.Get_size() == self.size
        node.Free()
        return found

    def tell_all(self, text: str) -> str:
        """What process 0 says, on all processes."""
        data = np.frombuffer(text.encode(), np.uint8).copy()
        size = np.asarray([data.size], np.int64)
        self._side.Bcast([size, self.mpi.INT64_T], root=0)
        data = data if self.process == 0 else np.empty(int(size[0]), np.uint8)
        self._side.Bcast([data, self.mpi.BYTE], root=0)
        return data.tobytes().decode()

    def abort(self, status: int) -> None:
        """End all processes."""
        self.comm.Abort(status)

    def tell_everybody(self, data: bytes) -> list[bytes]:
        """What every process has to say, at all of them.

        Raises:
            MpiError: it is more than one message can hold.
        """
        sizes = np.empty(self.size, np.int64)
        self._side.Allgather([np.asarray([len(data)], np.int64), self.mpi.INT64_T], [sizes, self.mpi.INT64_T])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        if int(starts[-1]) > LARGEST_COUNT:
            raise MpiError(f"{int(starts[-1])} bytes are told to everybody, at most {LARGEST_COUNT} can be")
        whole = np.empty(int(starts[-1]), np.uint8)
        parts = [whole, (sizes.tolist(), starts[:-1].tolist()), self.mpi.BYTE]
        self._side.Allgatherv([np.frombuffer(data, np.uint8), self.mpi.BYTE], parts)
        return [whole[start:stop].tobytes() for start, stop in pairwise(starts.tolist())]

    def gather_bytes(self, data: bytes) -> list[bytes] | None:
        """What every process has to say, at process 0; None elsewhere."""
        size = np.asarray([len(data)], np.int64)
        sizes = np.empty(self.size, np.int64) if self.process == 0 else None
        self._side.Gather([size, self.mpi.INT64_T], None if sizes is None else [sizes, self.mpi.INT64_T], root=0)
        if sizes is None:
            self._side.Send([np.frombuffer(data, np.uint8), self.mpi.BYTE], 0, 3)
            return None
        found = [data]
        for process in range(1, self.size):
            buffer = np.empty(int(sizes[process]), np.uint8)
            self._side.Recv([buffer, self.mpi.BYTE], process, 3)
            found.append(buffer.tobytes())
        return found


@cache
def world() -> World:
    """The processes that were started together with this one; MPI is initialised by the first call.

    One object for the life of the process: communicators are kept for the next session, and freeing them, which all
    members do together, must not stand in the way of a process that ends because of an error.

    Raises:
        MpiError: MPI cannot be used here.
    """
    return World(load())
