"""Memory of the host by address, as kernels and communicators of played devices see it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


def memory_at(address: int, size_bytes: int) -> np.ndarray[Any, Any]:
    """Memory as bytes; no copy."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))


def read_memory(address: int, size_bytes: int) -> np.ndarray[Any, Any]:
    """A copy of memory."""
    return memory_at(address, size_bytes).copy()


def write_memory(address: int, data: np.ndarray[Any, Any]) -> None:
    """Put bytes into memory."""
    memory_at(address, data.size)[...] = data
