"""Memory for results, used again once nobody holds them: fresh pages cost as much as the transfer itself.

Values are never changed after they are made, and a session drops them after their last use. A buffer is free when no
array refers to it any more; numpy's views all refer to the array that owns the memory, so that counting the references
to that one tells.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array

LEAST_BYTES = 32_768
"""Smaller arrays come from the allocator's own lists, which are as quick."""

MOST_KEPT = 4
"""Buffers of one size that are kept: what is needed beyond that is allocated and given back as usual."""

PAGE, PLACE = 4096, 2112
"""Results begin on a cache line, half a page away from where the allocator puts large arrays: a load and a store that are a
multiple of a page apart wait for each other (on an 8-fold sum of 1 MiB that is a seventh of the time)."""

_FREE = 3
"""References to an owner that nobody uses: its entry, the loop that looks, and the call that counts."""


class Buffers:
    """Buffers by size."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[tuple[Array, int]]] = {}

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array with whatever its memory holds."""
        size = math.prod(shape) * dtype.itemsize
        if size < LEAST_BYTES:
            return np.empty(shape, dtype)
        kept = self._by_size.setdefault(size, [])
        for owner, start in kept:
            if sys.getrefcount(owner) == _FREE:
                return owner[start : start + size].view(dtype).reshape(shape)
        owner = np.empty(size + PAGE, np.uint8)
        start = (PLACE - owner.ctypes.data) % PAGE
        if len(kept) < MOST_KEPT:
            kept.append((owner, start))
        return owner[start : start + size].view(dtype).reshape(shape)
