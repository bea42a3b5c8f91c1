"""What collectives mean, on the arrays of one group: the reference that every back end is compared with.

Members are in group order. Results that all members share are one array, and parts of a slab are views where that is
possible, so that an all_gather along the first dim or a broadcast moves nothing.

Source: NCCL user guide and MPI 4.1 chapter 6; for HLO forms openxla.org/xla/operation_semantics.

>>> import numpy as np
>>> all_to_all(np, np.arange(4).reshape(2, 2), 0, 0).tolist()
[[0, 2], [1, 3]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtir.execute.accumulate import Empty, left_fold
from dtir.execute.dtypes import Array
from dtir.ir.reductions import ReductionKind


class ExchangeError(ValueError):
    """The arrays of a group do not fit the collective."""


def require_equal(arrays: Sequence[Array], what: str) -> None:
    """Raise unless all arrays have one shape.

    Raises:
        ExchangeError: with the first two that differ.
    """
    for place, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ExchangeError(
                f"{what} needs equal shapes: member 0 has {list(arrays[0].shape)}, member {place} {list(array.shape)}"
            )


def _dim(dim: int | None, rank: int, what: str) -> int:
    if dim is None or not 0 <= dim < rank:
        raise ExchangeError(f"{what} needs a dim of an array of {rank} dims, got {dim}")
    return dim


def all_reduce(xp: Any, parts: Array, kind: ReductionKind, empty: Empty | None = None) -> Array:
    """The reduction of all members; ``(members, *shape)`` to ``shape``; `empty` gives the memory."""
    return left_fold(xp, parts, kind, empty)


def shard_bounds(extent: int, members: int, sizes: Sequence[int] | None) -> list[tuple[int, int]]:
    """Start and stop of every member's block along a dim.

    Raises:
        ExchangeError: the extent does not divide, or the sizes do not add up to it.
    """
    if sizes is None:
        if extent % members:
            raise ExchangeError(f"{extent} elements cannot be scattered evenly over {members} ranks")
        step = extent // members
        return [(place * step, (place + 1) * step) for place in range(members)]
    if len(sizes) != members or sum(sizes) != extent:
        raise ExchangeError(f"shard sizes {list(sizes)} do not cover {extent} elements on {members} ranks")
    bounds: list[tuple[int, int]] = []
    start = 0
    for size in sizes:
        bounds.append((start, start + size))
        start += size
    return bounds


def _block(array: Array, dim: int, bounds: tuple[int, int]) -> Array:
    return array[(slice(None),) * dim + (slice(*bounds),)]


def reduce_scatter(
    xp: Any,
    parts: Array,
    kind: ReductionKind,
    dim: int | None,
    sizes: Sequence[int] | None = None,
    empty: Empty | None = None,
) -> list[Array]:
    """The blocks of the reduction along a dim, one a member; `empty` gives the memory.

    Raises:
        ExchangeError: the dim does not divide and no sizes are given.
    """
    dim = _dim(dim, parts.ndim - 1, "reduce_scatter")
    bounds = shard_bounds(parts.shape[1 + dim], parts.shape[0], sizes)
    whole = left_fold(xp, parts, kind, empty)
    return [_block(whole, dim, bound) for bound in bounds]


def all_gather(
    xp: Any, parts: Sequence[Array], dim: int | None, *, vector: bool = False, trim: int | None = None
) -> Array:
    """The members' arrays joined along a dim.

    Args:
        vector: members may differ in that dim.
        trim: members may differ in it: all are padded with zeros to the largest, and the result is cut to this extent.

    Raises:
        ExchangeError: they differ in another dim, or in this one without `vector` or `trim`.
    """
    dim = _dim(dim, parts[0].ndim, "all_gather")
    if dim == 0 and not isinstance(parts, (list, tuple)):
        joined = xp.asarray(parts).reshape(-1, *parts[0].shape[1:])  # the slab is the gathered array
        return joined if trim is None else joined[:trim]
    uneven = vector or trim is not None
    for place, part in enumerate(parts):
        if part.ndim != parts[0].ndim or any(
            mine != theirs and not (at == dim and uneven)
            for at, (mine, theirs) in enumerate(zip(part.shape, parts[0].shape, strict=True))
        ):
            raise ExchangeError(
                f"all_gather along dim {dim}: member 0 has {list(parts[0].shape)}, member {place} {list(part.shape)}"
            )
    members = list(parts)
    if not vector and trim is not None:
        largest = max(part.shape[dim] for part in members)
        members = [_padded(xp, part, dim, largest) for part in members]
    joined = xp.concatenate(members, axis=dim)
    return joined if trim is None else _block(joined, dim, (0, trim))


def _padded(xp: Any, array: Array, dim: int, extent: int) -> Array:
    missing = extent - array.shape[dim]
    return xp.pad(array, [(0, missing if at == dim else 0) for at in range(array.ndim)]) if missing else array


def all_to_all(
    xp: Any,
    parts: Sequence[Array],
    split: int | None,
    concat: int | None,
    sizes: Sequence[int] | None = None,
) -> Sequence[Array]:
    """Block j of member i goes to member j, who joins what it gets in the order of the members.

    Returns:
        One array a member; of a slab a slab.

    Raises:
        ExchangeError: the dim does not divide and no sizes are given, or blocks do not fit together.
    """
    members = len(parts)
    split = _dim(split, parts[0].ndim, "all_to_all")
    concat = _dim(concat, parts[0].ndim, "all_to_all")
    bounds = [shard_bounds(part.shape[split], members, sizes) for part in parts]
    if not isinstance(parts, (list, tuple)) and sizes is None:
        return _slab_all_to_all(xp, xp.asarray(parts), split, concat)
    return [
        all_gather(xp, [_block(part, split, bounds[i][j]) for i, part in enumerate(parts)], concat, vector=True)
        for j in range(members)
    ]


def _slab_all_to_all(xp: Any, slab: Array, split: int, concat: int) -> Array:
    members, shape = slab.shape[0], slab.shape[1:]
    step = shape[split] // members
    # (source, ..., destination, step, ...) -> (destination, ..., source, concat dim, ...)
    parts = slab.reshape(members, *shape[:split], members, step, *shape[split + 1 :])
    parts = xp.moveaxis(parts, 1 + split, 0)  # (destination, source, *shape with step in split)
    parts = xp.moveaxis(parts, 1, 1 + concat)
    joined = [step if dim == split else size for dim, size in enumerate(shape)]
    joined[concat] *= members
    return parts.reshape(members, *joined)


def broadcast(parts: Sequence[Array], root: int) -> Array:
    """The array of the member at a position."""
    if not 0 <= root < len(parts):
        raise ExchangeError(f"the root is member {root} of a group of {len(parts)}")
    return parts[root]
