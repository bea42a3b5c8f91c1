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

_FREE = 3
"""References to an owner that nobody uses: the list of buffers, the loop that looks, and the call that counts."""


class Buffers:
    """Buffers by size."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[Array]] = {}

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array with whatever its memory holds."""
        size = math.prod(shape) * dtype.itemsize
        if size < LEAST_BYTES:
            return np.empty(shape, dtype)
        kept = self._by_size.setdefault(size, [])
        for owner in kept:
            if sys.getrefcount(owner) == _FREE:
                return owner.view(dtype).reshape(shape)
        owner = np.empty(size, np.uint8)
        if len(kept) < MOST_KEPT:
            kept.append(owner)
        return owner.view(dtype).reshape(shape)
