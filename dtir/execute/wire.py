"""What crosses the wire, counted by the MPI library itself: messages and bytes that this process sent to each peer.

Open MPI's monitoring component (``--mca pml ob1,monitoring --mca pml_monitoring_enable 1``) keeps the counters and the
tool interface of MPI (MPI 4.1, chapter 15) reads them; 0.7 us for both. Traffic of sub-communicators is counted by the
peer's number in the world. Other libraries offer nothing like it: then bytes are not measured, and that is said.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array

COUNT, SIZE = b"pml_monitoring_messages_count", b"pml_monitoring_messages_size"
"""The counters: messages and bytes sent, by peer."""

_NAME_BYTES = 256
_BOUND_TO_COMMUNICATOR = 1


class WireError(RuntimeError):
    """The counters cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one process sent.

    Args:
        messages: by peer.
        sizes: bytes, by peer.
    """

    messages: Array
    sizes: Array

    @property
    def total_messages(self) -> int:
        """Messages to all peers."""
        return int(self.messages.sum())

    @property
    def total_bytes(self) -> int:
        """Bytes to all peers."""
        return int(self.sizes.sum())

    def since(self, earlier: Sent) -> Sent:
        """What was sent after an earlier reading."""
        return Sent(self.messages - earlier.messages, self.sizes - earlier.sizes)


class WireCounter:
    """Reads the counters of this process.

    Args:
        mpi: the module `mpi4py.MPI`.
        world: the communicator of all processes.

    Raises:
        WireError: the library has no such counters, or they are switched off.
    """

    def __init__(self, mpi: Any, world: Any) -> None:
        self._library = _library()
        self._session = ctypes.c_void_p()
        self._own: int = world.Get_rank()
        provided = ctypes.c_int()
        self._check("MPI_T_init_thread", mpi.THREAD_SERIALIZED, ctypes.byref(provided))
        self._check("MPI_T_pvar_session_create", ctypes.byref(self._session))
        self._handle = ctypes.c_void_p(mpi._addressof(world))
        self._counters = [self._open(name) for name in (COUNT, SIZE)]

    def read(self) -> Sent:
        """What was sent since the counters were opened; messages of a process to itself are none.

        Raises:
            WireError: the library refuses.
        """
        read, session = self._library.MPI_T_pvar_read, self._session
        found: list[Array] = []
        for handle, buffer, pointer in self._counters:
            code = read(session, handle, pointer)
            if code:
                raise WireError(f"MPI_T_pvar_read gives error {code}")
            counted = buffer.copy()
            counted[self._own] = 0
            found.append(counted)
        return Sent(found[0], found[1])

    def close(self) -> None:
        """Give the session back."""
        if self._session:
            self._library.MPI_T_pvar_session_free(ctypes.byref(self._session))
            self._library.MPI_T_finalize()
            self._session = ctypes.c_void_p()
            self._counters = []

    def _open(self, wanted: bytes) -> tuple[ctypes.c_void_p, Array, ctypes.c_void_p]:
        index = self._index(wanted)
        handle, count = ctypes.c_void_p(), ctypes.c_int()
        self._check(
            "MPI_T_pvar_handle_alloc",
            self._session,
            ctypes.c_int(index),
            self._handle,
            ctypes.byref(handle),
            ctypes.byref(count),
        )
        self._check("MPI_T_pvar_start", self._session, handle)
        buffer = np.zeros(count.value, np.uint64)
        return handle, buffer, ctypes.c_void_p(buffer.ctypes.data)

    def _index(self, wanted: bytes) -> int:
        """The number of a counter, found by name: classes have other numbers in every library."""
        total = ctypes.c_int()
        self._check("MPI_T_pvar_get_num", ctypes.byref(total))
        for index in range(total.value):
            name, length = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int(_NAME_BYTES)
            words, words_length = ctypes.create_string_buffer(1), ctypes.c_int(1)
            enumeration, kind = ctypes.c_void_p(), ctypes.c_void_p()
            numbers = [ctypes.c_int() for _ in range(6)]
            verbosity, variable_class, bind, readonly, continuous, atomic = (ctypes.byref(item) for item in numbers)
            code = self._library.MPI_T_pvar_get_info(
                index, name, ctypes.byref(length), verbosity, variable_class, ctypes.byref(kind),
                ctypes.byref(enumeration), words, ctypes.byref(words_length), bind, readonly, continuous, atomic,
            )  # fmt: skip
            if code == 0 and name.value == wanted:
                if numbers[2].value != _BOUND_TO_COMMUNICATOR:
                    raise WireError(f"{wanted.decode()} does not belong to a communicator")
                return index
        raise WireError("this MPI keeps no counters of what it sends (Open MPI does, with --mca pml ob1,monitoring)")

    def _check(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise WireError(f"the MPI library has no {name}")
        code = function(*arguments)
        if code:
            raise WireError(f"{name} gives error {code}")


def _library() -> ctypes.CDLL:
    """The MPI library that this process has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        raise WireError("the loaded MPI library cannot be found on this system") from None
    path = next((line.split()[-1] for line in lines if "libmpi.so" in line), None)
    if path is None:
        raise WireError("the process has loaded no libmpi.so")
    return ctypes.CDLL(path)


def open_counter(mpi: Any, world: Any) -> tuple[WireCounter | None, str]:
    """A counter, or None and the reason why bytes are not measured."""
    if "Open MPI" not in str(mpi.Get_library_version()):
        return None, "not measured: only Open MPI counts what it sends"
    try:
        return WireCounter(mpi, world), ""
    except WireError as error:
        return None, f"not measured: {error}"
