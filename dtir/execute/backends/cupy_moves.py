"""Collectives that move equal parts, as blocks of lines for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dtir.execute.kernels import Box


def exchange_box(shape: Sequence[int], split: int, concat: int, members: int, itemsize: int) -> tuple[Box, int, int]:
    """The block that each member of an all_to_all sends to each other.

    Args:
        shape: what a member holds; contiguous.
        split: the dim that is divided.
        concat: the dim along which parts are joined.
        members: of the group; `shape[split]` is a multiple.
        itemsize: bytes of an element.

    Returns:
        The block, the distance in bytes of the blocks of two neighbouring targets in what a member holds, and that of the
        blocks of two neighbouring sources in what it gets.

    >>> exchange_box((4, 3), 0, 1, 2, 4)
    (Box(outer=1, middle=2, row_bytes=12, source=(48, 12), target=(48, 24)), 24, 12)
    """
    block = [extent // members if dim == split else extent for dim, extent in enumerate(shape)]
    result = [extent * members if dim == concat else extent for dim, extent in enumerate(block)]
    low, high = min(split, concat), max(split, concat)

    def stride(of: Sequence[int], dim: int) -> int:
        return prod(of[dim + 1 :]) * itemsize

    def strides(of: Sequence[int]) -> tuple[int, int]:
        # From line to line over the dims low to high - 1, which lie as one; from group to group over those before low.
        return stride(of, low - 1) if low else stride(of, -1), stride(of, high - 1) if high > low else stride(
            of, low - 1
        )

    outer, middle = prod(block[:low]), prod(block[low:high])
    box = Box(outer, middle, prod(block[high:]) * itemsize, strides(shape), strides(result))
    return box, block[split] * stride(shape, split), block[concat] * stride(result, concat)


def gather_box(shape: Sequence[int], dim: int, members: int, itemsize: int) -> tuple[Box, int]:
    """What each member of an all_gather contributes, and the distance in bytes of neighbouring contributions.

    >>> gather_box((2, 3), 1, 2, 4)
    (Box(outer=1, middle=2, row_bytes=12, source=(24, 12), target=(48, 24)), 12)
    """
    row = prod(shape[dim:]) * itemsize
    lines = prod(shape[:dim])
    return Box(1, lines, row, (lines * row, row), (lines * row * members, row * members)), row
