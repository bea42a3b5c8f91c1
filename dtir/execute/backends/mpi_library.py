"""The door to MPI: mpi4py, loaded when a run needs it, and what it says of itself.

Loading initialises MPI: only a process that takes part in a run may do it. Whoever only asks whether MPI is there looks
with `missing`, which loads nothing.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array, is_extended, needs_float32
from dtir.ir.reductions import ReductionKind

INSTALL = "pip install 'dtir[mpi]' (mpi4py and Open MPI), or 'dtir[mpi-site]' where the site has an MPI of its own"

PACKAGE = "mpi4py"


class MpiError(RuntimeError):
    """MPI cannot be used here; the message says why and what to do."""


def missing() -> str | None:
    """Why MPI cannot be loaded, as far as that is known without loading it; None when nothing speaks against it."""
    if find_spec(PACKAGE) is None:
        return f"the package mpi4py is not installed: {INSTALL}"
    return None


def binding_version() -> str:
    """The version of mpi4py."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "unknown"


@cache
def load() -> Any:
    """The module `mpi4py.MPI`, initialised.

    One thread calls MPI at a time (the watchdog never does), so that level "serialized" is enough: with MPICH the
    default level costs twice as much a call.

    Raises:
        MpiError: mpi4py is missing, or finds no MPI library.
    """
    reason = missing()
    if reason is not None:
        raise MpiError(reason)
    try:
        configuration = import_module(PACKAGE)
        configuration.rc.thread_level = "serialized"
        return import_module(f"{PACKAGE}.MPI")
    except (ImportError, RuntimeError, OSError) as error:
        first = str(error).strip().splitlines()
        raise MpiError(f"mpi4py finds no MPI library ({first[0] if first else error}): {INSTALL}") from None


def library_name(mpi: Any) -> str:
    """Which MPI it is, in one line.

    >>> short_name("Open MPI v5.0.11, package: Open MPI user@localhost Distribution, ident: 5.0.11")
    'Open MPI 5.0.11'
    """
    return f"{short_name(str(mpi.Get_library_version()))}, mpi4py {binding_version()}"


def short_name(text: str) -> str:
    """Vendor and version from what a library or launcher says of itself."""
    first = text.strip().split("\x00")[0].splitlines()
    line = first[0] if first else ""
    numbers = re.search(r"(\d+\.\d+[\w.]*)", text)
    number = numbers.group(1) if numbers else ""
    for name, signs in _VENDORS.items():
        if any(sign in text.lower() for sign in signs):
            return f"{name} {number}".strip()
    return line.split(",")[0][:60] or "unknown MPI"


_VENDORS: dict[str, tuple[str, ...]] = {
    "Open MPI": ("open mpi", "openrte", "prrte", "prterun"),
    "Intel MPI": ("intel(r) mpi", "intel mpi"),
    "MVAPICH": ("mvapich",),
    "MPICH": ("mpich", "hydra"),
}
"""Vendors by what their libraries and launchers say; those derived from MPICH before MPICH itself."""


def vendor_of(text: str) -> str:
    """The vendor of a library or launcher, ``unknown`` for others.

    >>> vendor_of("mpiexec (Open MPI) 5.0.11"), vendor_of("HYDRA build details: Version: 4.1")
    ('Open MPI', 'MPICH')
    """
    for name, signs in _VENDORS.items():
        if any(sign in text.lower() for sign in signs):
            return name
    return "unknown"


# -- types and operations ---------------------------------------------------------------------------------------------

_TYPES: dict[str, str] = {
    "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T",
    "uint8": "UINT8_T", "uint16": "UINT16_T", "uint32": "UINT32_T", "uint64": "UINT64_T",
    "float32": "FLOAT", "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
    "bool": "UINT8_T",
}  # fmt: skip

_OPERATIONS: dict[ReductionKind, str] = {
    ReductionKind.SUM: "SUM",
    ReductionKind.AVERAGE: "SUM",
    ReductionKind.PRODUCT: "PROD",
    ReductionKind.MAX: "MAX",
    ReductionKind.MIN: "MIN",
    ReductionKind.AND: "BAND",
    ReductionKind.OR: "BOR",
    ReductionKind.XOR: "BXOR",
}

_PREDICATES: dict[ReductionKind, str] = {
    ReductionKind.SUM: "BOR",
    ReductionKind.PRODUCT: "BAND",
    ReductionKind.MAX: "BOR",
    ReductionKind.MIN: "BAND",
    ReductionKind.AND: "BAND",
    ReductionKind.OR: "BOR",
    ReductionKind.XOR: "BXOR",
}
"""numpy's arithmetic of predicates: a sum is an "or", a product an "and"."""


def operation_name(dtype: np.dtype[Any], kind: ReductionKind) -> str | None:
    """MPI's operation with the meaning that a reduction has here, None where it has none.

    MPI's 16-bit floats are software and slow, bfloat16 has none; its maximum of floats does not keep NaN as numpy's and
    XLA's do.
    """
    if is_extended(dtype) or needs_float32(dtype) or dtype.name not in _TYPES:
        return None
    if dtype.kind == "b":
        return _PREDICATES.get(kind)
    if dtype.kind in "fc" and kind not in (ReductionKind.SUM, ReductionKind.AVERAGE, ReductionKind.PRODUCT):
        return None
    return _OPERATIONS.get(kind)


def type_name(dtype: np.dtype[Any]) -> str:
    """MPI's name of an element type that takes part in a reduction."""
    return _TYPES[dtype.name]


LARGEST_COUNT = 2**31 - 1
"""Elements of one message: MPI 3's counts are of 32 bits."""

_UNITS: tuple[tuple[int, str, str], ...] = ((1, "uint8", "BYTE"), (8, "uint64", "UINT64_T"))


def raw(mpi: Any, *arrays: Array) -> list[list[Any]]:
    """Contiguous arrays as buffers that MPI takes, whatever their element type: counted in bytes, or in units of 8.

    Raises:
        MpiError: they are larger than one message can be.
    """
    for size, view, name in _UNITS:
        if all(array.nbytes % size == 0 and array.nbytes // size <= LARGEST_COUNT for array in arrays):
            unit = getattr(mpi, name)
            return [[array.reshape(-1).view(view), array.nbytes // size, unit] for array in arrays]
    largest = max(array.nbytes for array in arrays)
    raise MpiError(f"one message of {largest} bytes is more than MPI takes: split the value over more ranks")
