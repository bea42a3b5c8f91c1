"""What it takes to launch a kernel: which instance of a template, on how large a grid, with which arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array

PARTS = ("platform.cuh", "types.cuh", "fold.cuh", "copy.cuh")
"""The files of the source, in the order in which they build on each other."""

OPTIONS = ("-std=c++17",)
"""Options of NVRTC; divisions and square roots are rounded correctly and denormals kept, which is its default."""

TABLE = 64
"""Addresses that one launch takes each for operands and results: 1 KiB of the 4 KiB of a kernel's parameters."""

WORD_BYTES = 16
"""A thread moves so many bytes at a time where addresses allow it."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """How large grids become.

    Args:
        blocks: most blocks of a grid along x; further elements are done in turn.
        threads: of a block.
    """

    blocks: int
    threads: int = 256

    def grid_x(self, items: int, per_thread: int = 1) -> int:
        """Blocks for so many items."""
        return max(1, min(-(-items // (self.threads * per_thread)), self.blocks))


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch.

    Args:
        expression: the instance of a kernel template, as NVRTC takes a name expression.
        grid: blocks along x, y and z.
        threads: of a block.
        arguments: arrays of one element each, whose bytes are the kernel's parameters in order.
        reads: address and size of memory that is read.
        writes: address and size of memory that is written.
    """

    expression: str
    grid: tuple[int, int, int]
    threads: int
    arguments: tuple[Array, ...]
    reads: tuple[tuple[int, int], ...] = ()
    writes: tuple[tuple[int, int], ...] = ()


@cache
def kernel_source() -> str:
    """The source of all kernels, one text."""
    folder = files(__package__ or "dtir.execute.kernels")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in PARTS)


@cache
def host_source() -> str:
    """What runs kernels on the host, to stand behind their source."""
    return files(__package__ or "dtir.execute.kernels").joinpath("host.cuh").read_text(encoding="utf-8")


def table(addresses: Sequence[int], size: int = TABLE) -> Array:
    """The parameter ``Table<size>``; places beyond the addresses are 0."""
    found = np.zeros(1, np.dtype([("at", np.uint64, (size,))]))
    found["at"][0, : len(addresses)] = addresses
    return found


def numbers(*values: int) -> Array:
    """A parameter of several unsigned 64-bit integers, a structure."""
    found: Any = np.zeros(1, np.dtype([("words", np.uint64, (len(values),))]))
    found["words"][0] = values
    return found


def integer(value: int) -> Array:
    """A parameter ``int``."""
    return np.asarray([value], np.int32)


def unsigned(value: int) -> Array:
    """A parameter of one unsigned 64-bit integer."""
    return np.asarray([value], np.uint64)


def word_bytes(*multiples: int) -> int:
    """The largest word of which all addresses, sizes and steps are multiples."""
    for size in (WORD_BYTES, 8, 4, 2):
        if all(number % size == 0 for number in multiples):
            return size
    return 1
