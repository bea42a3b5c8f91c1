"""Which block of a value a rank holds: even and uneven splits, padding, ghost frames, confined values.

Shard i of a dim is the i-th in the row-major order of the axes that split it, major to minor. Even shards have
``extent / n`` elements; explicit `sizes` stand in block order, and what they have beyond the extent is padding at the end.

>>> shard_bounds(14, 4, (2, 3, 4, 5))
((0, 2), (2, 5), (5, 9), (9, 14))
>>> shard_bounds(5, 2, (3, 3)), padding_of(5, (3, 3))
(((0, 3), (3, 5)), 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from dtir.analysis.divisibility import divided, whole_number
from dtir.analysis.fibres import Space
from dtir.analysis.states import State
from dtir.ir.expr import Scalar
from dtir.ir.values import DistributedValue

Bounds = tuple[int, int]
Box = tuple[Bounds, ...]


def shard_bounds(extent: int, count: int, sizes: Sequence[int] | None = None) -> tuple[Bounds, ...]:
    """Start and stop of every shard of a dim, clipped at the extent.

    Raises:
        ValueError: no `sizes`, and the extent is not divisible.
    """
    if sizes is None:
        if extent % count:
            raise ValueError(f"{extent} elements do not split evenly over {count} shards")
        step = extent // count
        return tuple((index * step, (index + 1) * step) for index in range(count))
    stops = tuple(accumulate(sizes))
    starts = (0, *stops[:-1])
    return tuple((min(start, extent), min(stop, extent)) for start, stop in zip(starts, stops, strict=True))


def padding_of(extent: int, sizes: Sequence[int] | None) -> int:
    """Elements that explicit sizes have beyond the extent."""
    return max(0, sum(sizes) - extent) if sizes is not None else 0


def is_even(extent: int | None, count: int, sizes: Sequence[int] | None) -> bool:
    """True when all shards have the same number of real elements."""
    if sizes is None:
        return True
    return len(set(sizes)) <= 1 and (extent is None or padding_of(extent, sizes) == 0)


def box_of(shape: Sequence[int], state: State, space: Space, rank: int) -> Box:
    """The block of the undivided value that a rank holds, without its ghosts.

    Raises:
        ValueError: a dim does not split evenly and has no sizes, or its sizes do not fit the number of shards.
    """
    found: list[Bounds] = []
    for dim, extent in enumerate(shape):
        axes = state.dims[dim]
        if not axes:
            found.append((0, extent))
            continue
        sizes, count = state.size_of(dim), space.count(axes)
        if sizes is not None and len(sizes) != count:
            raise ValueError(f"dim {dim} has {len(sizes)} sizes for {count} shards")
        place = space.position(rank, axes)
        if sizes is None and extent % count == 0:
            step = extent // count
            found.append((place * step, (place + 1) * step))
        else:
            found.append(shard_bounds(extent, count, sizes)[place])
    return tuple(found)


def intersect(left: Box, right: Box) -> Box | None:
    """The common part of two blocks; None when there is none."""
    found: list[Bounds] = []
    for (a, b), (c, d) in zip(left, right, strict=True):
        start, stop = max(a, c), min(b, d)
        if start >= stop:
            return None
        found.append((start, stop))
    return tuple(found)


def volume(box: Box) -> int:
    """Elements of a block."""
    count = 1
    for start, stop in box:
        count *= max(0, stop - start)
    return count


def largest_shard(extent: Scalar, axes: Sequence[str], sizes: Sequence[int] | None, space: Space) -> Scalar:
    """Extent of the largest shard of a dim, padding included."""
    if sizes is not None:
        return max(sizes, default=0)
    return divided(extent, space.count(axes))


def smallest_shard(
    extent: Scalar, axes: Sequence[str], sizes: Sequence[int] | None, space: Space, bindings: Mapping[str, int | float]
) -> int | None:
    """Elements of the smallest shard of a dim; None while symbolic or not divisible."""
    if sizes is not None:
        return min(sizes, default=0)
    number, count = whole_number(extent, bindings), space.count(axes)
    return None if number is None or number % count else number // count


def local_shape(value: DistributedValue, state: State, space: Space) -> tuple[Scalar, ...]:
    """What one rank holds at most, without ghosts: the type's own shape along per-rank axes.

    Declared shapes of single ranks are not looked at: where ranks differ there is no one local shape.
    """
    return tuple(
        largest_shard(extent, axes, state.size_of(dim), space) if axes or state.size_of(dim) else extent
        for dim, (extent, axes) in enumerate(zip(value.type.shape, state.dims, strict=True))
    )
