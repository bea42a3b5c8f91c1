"""Back ends, by name. Each is loaded when it is asked for: what it needs (MPI, CUDA) need not be there for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from dtir.execute.backends.base import Backend, Capabilities, Fabric, Probe

__all__ = ["BACKENDS", "Backend", "BackendError", "Capabilities", "Fabric", "Probe", "load_backend"]


class BackendError(ValueError):
    """There is no such back end."""


def _numpy() -> Backend:
    from dtir.execute.backends.numpy_ import NumpyBackend

    return NumpyBackend()


def _mpi() -> Backend:
    from dtir.execute.backends.mpi import MpiBackend

    return MpiBackend()


def _cupy() -> Backend:
    from dtir.execute.backends.cupy_ import CupyBackend

    return CupyBackend()


BACKENDS: Mapping[str, Callable[[], Backend]] = MappingProxyType({"numpy": _numpy, "mpi": _mpi, "cupy": _cupy})
"""Name to what loads the back end."""


def load_backend(name: str) -> Backend:
    """The back end of that name; whether it can run here is for its `probe` to say.

    Raises:
        BackendError: there is none; the known ones are named.
    """
    if name not in BACKENDS:
        close = get_close_matches(name, BACKENDS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise BackendError(f"there is no back end {name!r}: {hint}known are {', '.join(BACKENDS)}")
    return BACKENDS[name]()
