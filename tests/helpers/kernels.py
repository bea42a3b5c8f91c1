"""Kernels of several ranks on one device, compiled for the host, and arrays for them at addresses of any alignment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from dtir.execute.dtypes import numpy_dtype
from dtir.execute.kernels import ELEMENTS, FOLDS, Geometry, can_fold, fold
from dtir.execute.kernels.host import HostKernels, host_compiler

SMALL = Geometry(blocks=2, threads=32)
"""Grids so small that every thread does several elements."""

NAMES = {"i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64"}
"""Element types of the kernels whose names in programs are others."""


def element_dtype(element: str) -> np.dtype:
    return numpy_dtype(NAMES.get(element, element))


@cache
def compiled_kernels() -> HostKernels:
    """The kernels on the host, compiled once."""
    # The instances that the tests use most, in one go; the others are compiled when they are met.
    wanted = [
        fold([4096 * m for m in range(k)], [1 << 20], element, kind, 8, SMALL).expression
        for element in ELEMENTS
        for kind in FOLDS
        if can_fold(element, kind)
        for k in (2, 3, 4, 8)
    ]
    return HostKernels(wanted)


@pytest.fixture(scope="session")
def host_kernels() -> HostKernels:
    """The kernels on the host; skips with the reason when there is no C++ compiler."""
    if host_compiler() is None:
        pytest.skip("no C++ compiler was found: the kernels cannot be compiled for the host")
    return compiled_kernels()


class Memory:
    """Arrays side by side in one buffer, each so many bytes behind a multiple of 64; what lies between is checked."""

    def __init__(self, arrays: Sequence[np.ndarray], offsets: Sequence[int]) -> None:
        size = sum(array.nbytes + 256 for array in arrays) + 256
        self.buffer = np.full(size, 0xA5, np.uint8)
        place = -self.buffer.ctypes.data % 64 + 64
        self.arrays: list[np.ndarray] = []
        self.used = np.zeros(size, bool)
        for array, offset in zip(arrays, offsets, strict=True):
            start = place + offset
            held = self.buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
            held[...] = array
            self.used[start : start + array.nbytes] = True
            self.arrays.append(held)
            place += -(-(array.nbytes + offset) // 64) * 64 + 64

    @property
    def addresses(self) -> list[int]:
        return [array.ctypes.data for array in self.arrays]

    def intact(self) -> bool:
        """Whether nothing was written beside the arrays."""
        return bool((self.buffer[~self.used] == 0xA5).all())


def equal_bits(found: np.ndarray, wanted: np.ndarray, *, signed_zeros: bool = True) -> bool:
    """Bit by bit, but any NaN for a NaN: its payload is the machine's."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    width = found.dtype.itemsize
    same = found.reshape(-1).view(np.uint8).reshape(-1, width) == wanted.reshape(-1).view(np.uint8).reshape(-1, width)
    fine = same.all(axis=-1)
    if found.dtype.kind not in "iub":
        one, two = found.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
        fine |= np.isnan(one) & np.isnan(two)
        if not signed_zeros:
            fine |= (one == 0) & (two == 0)
    return bool(fine.all())
