"""gather, scatter, dynamic slices: elements chosen by indices that are data.

Start indices are clamped so that what is read lies inside; updates of a scatter whose window does not lie inside are
left out as a whole.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array, needs_float32
from dtir.execute.hlo.call import Context, Evaluator, HloCall, HloError, Operands, Results


def _integers(xp: Any, array: Array) -> Array:
    """Indices as int64; unsigned ones beyond its range become its largest number."""
    if array.dtype == np.uint64:
        return xp.minimum(array, np.uint64(np.iinfo(np.int64).max)).astype(xp.int64)
    return array.astype(xp.int64)


def _starts(xp: Any, indices: Operands, shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[Array]:
    """One start index an instance for every dim, clamped."""
    flat = list(indices)
    if len(flat) == 1 and flat[0].ndim == 2:  # the old form: one vector of indices
        flat = [flat[0][:, place] for place in range(flat[0].shape[1])]
    if len(flat) != len(shape):
        raise HloError(f"{len(flat)} start indices for {len(shape)} dims")
    return [
        xp.clip(_integers(xp, start), 0, max(0, extent - size))
        for start, extent, size in zip(flat, shape, sizes, strict=True)
    ]


def _box(xp: Any, starts: list[Array], sizes: tuple[int, ...]) -> tuple[Array, ...]:
    """Index arrays that pick a box of `sizes` at the start of every instance."""
    rank = len(sizes)
    instances = starts[0].shape[0]
    index: list[Array] = [xp.arange(instances).reshape(-1, *(1,) * rank)]
    for dim, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        line = xp.arange(size).reshape(*(-1 if place == dim else 1 for place in range(rank)))
        index.append(start.reshape(-1, *(1,) * rank) + line)
    return tuple(index)


def _same_everywhere(starts: list[Array]) -> tuple[int, ...] | None:
    """The start indices when all instances have the same, else None."""
    found: list[int] = []
    for start in starts:
        first = int(start[0])
        if not bool((start == first).all()):
            return None
        found.append(first)
    return tuple(found)


def _dynamic_slice(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    array = operands[0]
    sizes = call.dims("dynamic_slice_sizes")
    if not sizes:
        return (array,)
    starts = _starts(xp, operands[1:], array.shape[1:], sizes)
    if (fixed := _same_everywhere(starts)) is not None:
        index = tuple(slice(start, start + size) for start, size in zip(fixed, sizes, strict=True))
        return (array[(slice(None), *index)],)
    return (array[_box(xp, starts, sizes)],)


def _dynamic_update_slice(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    array, update = operands[:2]
    sizes: tuple[int, ...] = update.shape[1:]
    if not sizes:
        return (update,)
    starts = _starts(xp, operands[2:], array.shape[1:], sizes)
    result = xp.array(array)
    if (fixed := _same_everywhere(starts)) is not None:
        index = tuple(slice(start, start + size) for start, size in zip(fixed, sizes, strict=True))
        result[(slice(None), *index)] = update
    else:
        result[_box(xp, starts, sizes)] = update
    return (result,)


def _index_vectors(array: Array, dim: int) -> Array:
    """Indices with the dim of the index vector last; ``(instances, *batch, components)``."""
    rank = array.ndim - 1
    if dim == rank:
        return array[..., None]
    order = [place for place in range(rank + 1) if place != 1 + dim]
    return array.transpose(*order, 1 + dim)


def _batch_positions(count: int, window_dims: tuple[int, ...]) -> list[int]:
    """The dims of a result (or of updates) that are no window dims."""
    return [dim for dim in range(count) if dim not in window_dims]


def _placed(array: Array, dims: list[int], rank: int) -> Array:
    """``(instances, *batch)`` with its batch dims at these places of `rank` dims, units elsewhere."""
    shape = [1] * rank
    for place, dim in enumerate(dims):
        shape[dim] = array.shape[1 + place]
    return array.reshape(array.shape[0], *shape)


def _batching(xp: Any, dims: tuple[int, ...], skipped: int, vectors: Array) -> list[Array]:
    """Indices of batching dims: the position along the dim of the indices that goes with each."""
    found: list[Array] = []
    batch_rank = vectors.ndim - 2
    for dim in dims:
        place = dim if dim < skipped else dim - 1  # the dim of the index vector is gone from the batch dims
        shape = [1] * (1 + batch_rank)
        shape[1 + place] = -1
        line = xp.arange(vectors.shape[1 + place]).reshape(shape)
        found.append(xp.broadcast_to(line, vectors.shape[:-1]))
    return found


def _gather(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    array, indices = operands
    vector_dim = call.need("index_vector_dim", int)
    vectors = _integers(xp, _index_vectors(indices, vector_dim))
    sizes = call.dims("slice_sizes")
    offset_dims = call.dims("offset_dims", ())
    collapsed = call.dims("collapsed_slice_dims", ())
    start_map = call.dims("start_index_map", ())
    batching = call.dims("operand_batching_dims", ())
    rank = len(call.result.shape)
    batch_dims = _batch_positions(rank, offset_dims)
    kept = [dim for dim in range(array.ndim - 1) if dim not in collapsed and dim not in batching]
    if len(kept) != len(offset_dims) or len(batch_dims) != vectors.ndim - 2:
        raise HloError("gather: offset dims, collapsed dims and the shape of the result do not fit together")
    index: list[Array] = [xp.arange(array.shape[0]).reshape(-1, *(1,) * rank)]
    paired = dict(
        zip(batching, _batching(xp, call.dims("start_indices_batching_dims", ()), vector_dim, vectors), strict=True)
    )
    for dim in range(array.ndim - 1):
        extent, size = array.shape[1 + dim], sizes[dim]
        if dim in paired:
            where = _placed(paired[dim], batch_dims, rank)
        elif dim in start_map:
            start = xp.clip(vectors[..., start_map.index(dim)], 0, extent - size)
            where = _placed(start, batch_dims, rank)
        else:
            where = xp.zeros((1,) * (rank + 1), xp.int64)
        if dim in kept:
            place = offset_dims[kept.index(dim)]
            where = where + xp.arange(size).reshape(1, *(-1 if at == place else 1 for at in range(rank)))
        index.append(where)
    found = array[tuple(index)]
    shape = (array.shape[0], *call.result.shape)
    return (found if found.shape == shape else xp.broadcast_to(found, shape),)


def _scatter(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    count = (len(operands) - 1) // 2
    arrays, indices, updates = list(operands[:count]), operands[count], list(operands[count + 1 :])
    shape: tuple[int, ...] = arrays[0].shape
    flat, valid = _scatter_places(xp, call, shape, indices, updates[0].shape)
    results = [xp.array(array).reshape(-1) for array in arrays]
    chosen = flat[valid]
    values = [update[valid] for update in updates]
    computation = call.need("to_apply", str)
    combine_at(context, computation, results, chosen, values)
    return tuple(result.reshape(shape) for result in results)


def _scatter_places(
    xp: Any, call: HloCall, shape: tuple[int, ...], indices: Array, update_shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """For every element of the updates its place in the flat operand, and whether its window lies inside."""
    vector_dim = call.need("index_vector_dim", int)
    vectors = _integers(xp, _index_vectors(indices, vector_dim))
    window_dims = call.dims("update_window_dims", ())
    inserted = call.dims("inserted_window_dims", ())
    batching = call.dims("input_batching_dims", ())
    target = call.dims("scatter_dims_to_operand_dims", ())
    rank = len(update_shape) - 1
    batch_dims = _batch_positions(rank, window_dims)
    kept = [dim for dim in range(len(shape) - 1) if dim not in inserted and dim not in batching]
    if len(kept) != len(window_dims) or len(batch_dims) != vectors.ndim - 2:
        raise HloError("scatter: window dims, inserted dims and the shape of the updates do not fit together")
    paired = dict(
        zip(batching, _batching(xp, call.dims("scatter_indices_batching_dims", ()), vector_dim, vectors), strict=True)
    )
    place = xp.arange(shape[0]).reshape(-1, *(1,) * rank) * math.prod(shape[1:])
    valid = xp.ones((1,) * (rank + 1), bool)
    stride = math.prod(shape[1:])
    for dim in range(len(shape) - 1):
        stride = stride // shape[1 + dim] if shape[1 + dim] else 0
        extent = shape[1 + dim]
        size = update_shape[1 + window_dims[kept.index(dim)]] if dim in kept else 1
        if dim in paired:
            place = place + _placed(paired[dim], batch_dims, rank) * stride
        elif dim in target:
            start = _placed(vectors[..., target.index(dim)], batch_dims, rank)
            valid = valid & (start >= 0) & (start <= extent - size)
            # Places that are left out need not be numbers of the operand.
            place = place + xp.clip(start, 0, max(0, extent - size)) * stride
        if dim in kept:
            at = window_dims[kept.index(dim)]
            place = place + xp.arange(size).reshape(1, *(-1 if other == at else 1 for other in range(rank))) * stride
    return xp.broadcast_to(place, update_shape), xp.broadcast_to(valid, update_shape)


_UFUNCS = {
    "add": "add", "multiply": "multiply", "maximum": "maximum", "minimum": "minimum",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip


def combine_at(context: Context, computation: str, results: list[Array], places: Array, values: list[Array]) -> None:
    """Put values into flat arrays through a computation, in order."""
    xp = context.xp
    known = context.reducer(computation)
    if known in _UFUNCS and len(results) == 1 and not needs_float32(results[0].dtype):
        getattr(xp, _UFUNCS[known]).at(results[0], places, values[0])
        return
    # Elements that meet in one place are put in one after the other: round i takes the i-th of every place.
    order = xp.argsort(places, kind="stable")
    ordered = places[order]
    fresh = xp.ones(ordered.shape, bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    first = xp.maximum.accumulate(xp.where(fresh, xp.arange(ordered.size), 0)) if ordered.size else xp.arange(0)
    turn = xp.arange(ordered.size) - first
    for number in range(int(turn.max()) + 1 if turn.size else 0):
        now = turn == number
        where = ordered[now]
        current = [result[where] for result in results]
        new = context.apply(computation, (*current, *(value[order[now]] for value in values)))
        for result, value in zip(results, new, strict=True):
            result[where] = value


OPCODES: dict[str, Evaluator] = {
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
}
