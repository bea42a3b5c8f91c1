"""Communication on local arrays: collectives, permutes and exchanges by a route, group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from dtir.ir import ReductionKind
from dtir.ops.arithmetic import Arithmetic, Array
from dtir.verify.value.case import CaseTask, CaseValue, Move
from dtir.verify.value.exchange import combine, dispatch
from dtir.verify.value.grid import Grid
from dtir.verify.value.held import Held, fold


class Misfit(Exception):
    """The arrays of a task do not fit its operation; the message says how."""


def run_move(
    task: CaseTask,
    move: Move,
    source: CaseValue,
    result: CaseValue,
    held: Held,
    grid: Grid,
    arithmetic: Arithmetic,
    route: Sequence[int] | None,
) -> Held:
    """What the ranks hold of `result` after a communication of `source`."""
    if move.kind == "permute":
        return _permute(move, source, result, held, grid, arithmetic)
    found = Held({}, ghosts=False)
    for index, group in enumerate(move.groups):
        try:
            _group(task, move, index, group, source, result, held, found, grid, arithmetic, route)
        except Misfit as error:
            found.fault = found.fault or str(error)
    return found


def _group(
    task: CaseTask,
    move: Move,
    index: int,
    group: tuple[int, ...],
    source: CaseValue,
    result: CaseValue,
    held: Held,
    found: Held,
    grid: Grid,
    arithmetic: Arithmetic,
    route: Sequence[int] | None,
) -> None:
    if move.kind == "broadcast":
        root = move.roots[index]
        if root is not None and root in held.arrays:
            found.arrays.update(dict.fromkeys(group, held.arrays[root]))
        return
    missing = [rank for rank in group if rank not in held.arrays]
    if missing or not group:
        # Nobody of the group gets a result: it has not all arrived.
        return
    arrays = [held.arrays[rank] for rank in group]
    match move.kind:
        case "all_reduce":
            found.arrays.update(dict.fromkeys(group, _reduced(arithmetic, arrays, move.reduction)))
        case "reduce_scatter":
            total = _reduced(arithmetic, arrays, move.reduction)
            dim = move.dim if move.dim is not None else scatter_dim(source, result, group, grid)
            for rank, piece in zip(group, pieces(total, dim, result, group, grid, task), strict=True):
                found.arrays[rank] = piece
        case "all_gather":
            dim = move.dim if move.dim is not None else gather_dim(source, result, group, grid)
            for rank in group:
                found.arrays[rank] = _joined(arrays, dim, task, result, grid, rank)
        case "all_to_all":
            split = move.split if move.split is not None else scatter_dim(source, result, group, grid)
            concat = move.concat if move.concat is not None else gather_dim(source, result, group, grid)
            rows = [pieces(array, split, result, group, grid, task) for array in arrays]
            for place, rank in enumerate(group):
                found.arrays[rank] = _concatenated([row[place] for row in rows], concat)
        case "moe_dispatch":
            rows = dispatch(task, group, arrays, source, result, grid, route)
            found.arrays.update(rows.arrays)
            found.experts.update(rows.experts)
        case "moe_combine":
            found.arrays.update(combine(task, group, arrays, result, grid, route))
        case _:
            raise AssertionError(f"move {move.kind}")


# -- which dim, where a collective does not say ---------------------------------------------------------------------


def _moving(source: CaseValue, result: CaseValue, group: Sequence[int], grid: Grid) -> set[str]:
    """Axes along which the members of a group differ."""
    del source, result
    first = grid.coordinates(group[0])
    return {axis for rank in group for axis in grid.axes if grid.coordinate(rank, axis) != first[axis]}


def gather_dim(source: CaseValue, result: CaseValue, group: Sequence[int], grid: Grid) -> int:
    """The dim that loses an axis of the group between the two layouts; else the first whose extent differs; else 0."""
    moving = _moving(source, result, group, grid)
    for dim, axes in enumerate(source.dims):
        kept = result.dims[dim] if dim < len(result.dims) else ()
        if any(axis in moving and axis not in kept for axis in axes):
            return dim
    return _other_extent(source, result, group, grid, lambda mine, theirs: theirs > mine)


def scatter_dim(source: CaseValue, result: CaseValue, group: Sequence[int], grid: Grid) -> int:
    """The dim that gains an axis of the group; else the first whose extent differs; else 0."""
    moving = _moving(source, result, group, grid)
    for dim, axes in enumerate(result.dims):
        had = source.dims[dim] if dim < len(source.dims) else ()
        if any(axis in moving and axis not in had for axis in axes):
            return dim
    return _other_extent(source, result, group, grid, lambda mine, theirs: theirs < mine)


def _other_extent(
    source: CaseValue, result: CaseValue, group: Sequence[int], grid: Grid, changed: Callable[[int, int], bool]
) -> int:
    before, after = source.local_shape(grid, group[0]), result.local_shape(grid, group[0])
    for dim, (mine, theirs) in enumerate(zip(before, after, strict=False)):
        if changed(mine, theirs):
            return dim
    return 0


# -- pieces and joins ------------------------------------------------------------------------------------------------


def _reduced(arithmetic: Arithmetic, arrays: Sequence[Array], kind: ReductionKind | None) -> Array:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise Misfit(f"the members reduce arrays of different shapes: {_shapes(arrays)}")
    total = fold(arithmetic, arrays, kind or ReductionKind.SUM)
    if total is None:
        raise Misfit("the reduction is a computation of its own, which is not evaluated")
    return total


def _shapes(arrays: Sequence[Array]) -> str:
    unique = list(dict.fromkeys(array.shape for array in arrays))
    return " and ".join(str(list(shape)) for shape in unique[:4])


def pieces(array: Array, dim: int, result: CaseValue, group: Sequence[int], grid: Grid, task: CaseTask) -> list[Array]:
    """An array cut along a dim, one piece a member: equal pieces, or the declared sizes of the result."""
    if dim >= array.ndim or dim >= len(result.shape):
        raise Misfit(f"there is no dim {dim} to cut in arrays of shape {list(array.shape)}")
    extent, count = array.shape[dim], len(group)
    if dim in result.sizes or task.attributes.get("vector") is True:
        sizes = [result.local_shape(grid, rank)[dim] for rank in group]
        if sum(sizes) != extent:
            raise Misfit(f"dim {dim} has {extent} elements, the declared pieces {sizes} have {sum(sizes)}")
    elif extent % count:
        raise Misfit(f"dim {dim} has {extent} elements, which is no multiple of the {count} members")
    else:
        sizes = [extent // count] * count
    stops = list(accumulate(sizes))
    before = (slice(None),) * dim
    return [array[(*before, slice(stop - size, stop))] for size, stop in zip(sizes, stops, strict=True)]


def _concatenated(arrays: Sequence[Array], dim: int) -> Array:
    first = arrays[0]
    if dim >= first.ndim:
        raise Misfit(f"there is no dim {dim} to join in arrays of shape {list(first.shape)}")
    rests = {array.shape[:dim] + array.shape[dim + 1 :] for array in arrays}
    if len(rests) > 1:
        raise Misfit(f"arrays of shapes {_shapes(arrays)} cannot be joined along dim {dim}")
    return np.concatenate(arrays, axis=dim)


def _joined(arrays: Sequence[Array], dim: int, task: CaseTask, result: CaseValue, grid: Grid, rank: int) -> Array:
    """All members' arrays along a dim. A collective with one size for all sends the largest and pads the others."""
    trim = task.attributes.get("trim") is True
    if task.attributes.get("vector") is not True and dim < arrays[0].ndim:
        extents = {array.shape[dim] for array in arrays}
        if len(extents) > 1 and not trim:
            raise Misfit(f"the members gather arrays of different shapes: {_shapes(arrays)}")
        most = max(extents)
        arrays = [_padded(array, dim, most) for array in arrays]
    joined = _concatenated(arrays, dim)
    if trim and dim < joined.ndim:
        wanted = result.local_shape(grid, rank)
        return joined[(*(slice(None),) * dim, slice(0, wanted[dim] if dim < len(wanted) else None))]
    return joined


def _padded(array: Array, dim: int, extent: int) -> Array:
    if array.shape[dim] == extent:
        return array
    return np.pad(array, [(0, extent - array.shape[dim]) if k == dim else (0, 0) for k in range(array.ndim)])


# -- permutes --------------------------------------------------------------------------------------------------------


def _permute(move: Move, source: CaseValue, result: CaseValue, held: Held, grid: Grid, arithmetic: Arithmetic) -> Held:
    found = Held({}, ghosts=held.ghosts)
    for origin, target in move.pairs:
        if origin in held.arrays:
            found.arrays[target] = held.arrays[origin]
    targets = {target for _, target in move.pairs}
    for rank in result.owners:
        if rank in targets:
            continue
        if move.fills_zero:
            found.arrays[rank] = np.zeros(result.local_shape(grid, rank), dtype=_kind(held, arithmetic))
        elif rank in held.arrays and _keeps(move, source, result, grid, rank):
            found.arrays[rank] = held.arrays[rank]
    return found


def _kind(held: Held, arithmetic: Arithmetic) -> type:
    del held
    return np.int64 if arithmetic.exact else np.float64


def _keeps(move: Move, source: CaseValue, result: CaseValue, grid: Grid, rank: int) -> bool:
    """A sender that holds a copy of what it sent already, the value being replicated along the way, keeps it."""
    copied = set(result.copied(grid))
    ways = [
        {axis for axis in grid.axes if grid.coordinate(origin, axis) != grid.coordinate(target, axis)}
        for origin, target in move.pairs
        if origin == rank
    ]
    if not ways or not all(way <= copied for way in ways):
        return False
    return source.block(grid, rank) == result.block(grid, rank) and source.shape == result.shape
