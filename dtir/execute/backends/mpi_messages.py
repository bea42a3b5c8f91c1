"""Messages between processes: what each sends to whom is known on both sides, so that nothing but the data travels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.backends.mpi_library import raw
from dtir.execute.dtypes import Array

Parcel: TypeAlias = tuple[int, Sequence[Array]]
"""A process, and the arrays that go to it or come from it, in an order that both know."""


class Messenger:
    """Sends and receives whole arrays.

    Args:
        mpi: the module `mpi4py.MPI`.
        comm: a communicator of all processes that is used for nothing else.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi = mpi
        self._comm = comm
        limit = comm.Get_attr(mpi.TAG_UB)
        self.tags: int = int(limit) + 1 if limit is not None else 32_768

    def swap(self, outgoing: Sequence[Parcel], incoming: Sequence[Parcel], tag: int) -> None:
        """Send and receive at the same time; the arrays of `incoming` are filled.

        One message goes to each process, with its arrays one after the other; a single array that is contiguous is sent
        from where it lies and received where it belongs. Without elements there is no message.
        """
        requests: list[Any] = []
        staged: list[tuple[Array, Sequence[Array]]] = []
        for process, targets in incoming:
            buffer = _whole(targets)
            if buffer is None:
                size = sum(target.nbytes for target in targets)
                buffer = np.empty(size, np.uint8)
                staged.append((buffer, targets))
            if buffer.size:
                requests.append(self._comm.Irecv(raw(self._mpi, buffer)[0], process, tag))
        packed: dict[int, Array] = {}
        for process, arrays in outgoing:
            # The same list of arrays for several processes is packed once.
            buffer = packed.get(id(arrays))
            if buffer is None:
                buffer = packed[id(arrays)] = _packed(arrays)
            if buffer.size:
                requests.append(self._comm.Isend(raw(self._mpi, buffer)[0], process, tag))
        self._mpi.Request.Waitall(requests)
        for buffer, targets in staged:
            _unpack(buffer, targets)

    def close(self) -> None:
        """Give the communicator back."""
        self._comm.Free()


def _whole(arrays: Sequence[Array]) -> Array | None:
    """The one array that is to be sent or filled, where it is contiguous."""
    if len(arrays) == 1 and arrays[0].flags.c_contiguous:
        return arrays[0]
    return None


def _packed(arrays: Sequence[Array]) -> Array:
    whole = _whole(arrays)
    if whole is not None:
        return whole
    buffer = np.empty(sum(array.nbytes for array in arrays), np.uint8)
    start = 0
    for array in arrays:
        stop = start + array.nbytes
        if array.nbytes:
            buffer[start:stop].view(array.dtype).reshape(array.shape)[...] = array
        start = stop
    return buffer


def _unpack(buffer: Array, targets: Sequence[Array]) -> None:
    start = 0
    for target in targets:
        stop = start + target.nbytes
        if target.nbytes:
            target[...] = buffer[start:stop].view(target.dtype).reshape(target.shape)
        start = stop
