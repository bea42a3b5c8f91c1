"""What ranks of several processes hold, brought together: values as bytes, and back."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.archive import pack
from dtir.execute.dtypes import Array
from dtir.execute.values import Held, rows, stack

Parts: TypeAlias = dict[int, Array]
"""Arrays by rank."""


def by_rank(held: Held) -> Parts:
    """What each rank holds."""
    return dict(zip(held.ranks, (np.asarray(row) for row in rows(held)), strict=True))


def held_of(parts: Parts) -> Held:
    """What all ranks hold, ranks ascending."""
    ranks = tuple(sorted(parts))
    return stack(ranks, [parts[rank] for rank in ranks])


def packed(values: Sequence[Held]) -> bytes:
    """What the ranks of a process hold of some values, as bytes."""
    return pack(
        {f"{number}@{rank}": array for number, held in enumerate(values) for rank, array in by_rank(held).items()}
    )


def joined(gathered: Sequence[bytes], dtypes: Sequence[np.dtype[Any]]) -> list[Parts]:
    """What the ranks of all processes hold of each value.

    Args:
        gathered: of every process.
        dtypes: of the values: numpy's files keep types of ml_dtypes as raw bytes.
    """
    found: list[Parts] = [{} for _ in dtypes]
    for data in gathered:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            for name in arrays.files:
                number, _, rank = name.partition("@")
                array, dtype = arrays[name], dtypes[int(number)]
                found[int(number)][int(rank)] = array if array.dtype == dtype else array.view(dtype)
    return found
