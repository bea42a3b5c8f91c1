"""reduce, reduce-window, select-and-scatter: folds through a computation.

A computation that is one known operation becomes one call of the array module; any other is applied to neighbours until
one element is left, which keeps the order of the elements (XLA leaves the grouping open).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array
from dtir.execute.hlo.attributes import Window
from dtir.execute.hlo.call import Context, Evaluator, HloCall, Operands, Results
from dtir.execute.hlo.contraction import output_sizes, padded, windows
from dtir.execute.hlo.elementwise import apply_elements, lift, settle
from dtir.execute.hlo.indexing import combine_at

_FOLDS = {
    "add": "add", "multiply": "multiply", "maximum": "maximum", "minimum": "minimum",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip


_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def fold_dims(xp: Any, function: Any, array: Array, dims: tuple[int, ...]) -> Array:
    """Fold some dims by a function of two arguments; none of the dims is empty.

    Array modules other than numpy need not have ``function.reduce``: theirs are the reductions by name, and the rest is
    done half by half.
    """
    name = function.__name__
    dtype: np.dtype[Any] = array.dtype
    if isinstance(array, np.ndarray):
        return function.reduce(array, axis=dims, dtype=dtype)
    if name in ("add", "multiply"):
        return getattr(xp, _REDUCTIONS[name])(array, axis=dims, dtype=dtype)
    if name in _REDUCTIONS:
        return getattr(xp, _REDUCTIONS[name])(array, axis=dims)
    kept = [dim for dim in range(array.ndim) if dim not in dims]
    flat = array.transpose(*kept, *dims).reshape(*(array.shape[dim] for dim in kept), -1)
    while (length := flat.shape[-1]) > 1:
        half = length // 2
        joined = function(flat[..., :half], flat[..., half : 2 * half])
        flat = joined if length % 2 == 0 else xp.concatenate([joined, flat[..., 2 * half :]], axis=-1)
    return flat[..., 0]


def _known(context: Context, computation: str, arrays: Operands) -> Any | None:
    """The array module's function of a computation on one array, None where it has none."""
    name = context.reducer(computation) if len(arrays) == 1 else None
    return getattr(context.xp, _FOLDS[name]) if name in _FOLDS else None


def _reduce(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    count = len(operands) // 2
    arrays, starts = operands[:count], operands[count:]
    dims = tuple(sorted(1 + dim for dim in call.dims()))
    computation = call.need("to_apply", str)
    kept = tuple(dim for dim in range(1, arrays[0].ndim) if dim not in dims)
    shape = (arrays[0].shape[0], *(arrays[0].shape[dim] for dim in kept))
    length = math.prod(arrays[0].shape[dim] for dim in dims)
    starts = [xp.broadcast_to(start.reshape(-1, *(1,) * len(kept)), shape) for start in starts]
    if length == 0 or not dims:
        if length == 0:
            return tuple(starts)
        return apply_elements(context, computation, (*starts, *arrays))
    function = _known(context, computation, arrays)
    if function is not None:
        array = lift(arrays[0])
        found = function(lift(starts[0]), fold_dims(xp, function, array, dims))
        return (settle(xp, found, call.results[0]),)
    flat = [array.transpose(0, *kept, *dims).reshape(*shape, length) for array in arrays]
    return _fold(context, computation, starts, flat)


def _fold(context: Context, computation: str, starts: Operands, arrays: Operands) -> Results:
    """Fold the last dim of some arrays, neighbours first, and put the starts before everything."""
    xp = context.xp
    current = list(arrays)
    while (length := current[0].shape[-1]) > 1:
        even = length - length % 2
        left = [array[..., 0:even:2] for array in current]
        right = [array[..., 1:even:2] for array in current]
        joined = apply_elements(context, computation, (*left, *right))
        if even < length:
            joined = tuple(
                xp.concatenate([new, old[..., even:]], axis=-1) for new, old in zip(joined, current, strict=True)
            )
        current = list(joined)
    return apply_elements(context, computation, (*starts, *(array[..., 0] for array in current)))


def _window_of(call: HloCall, rank: int) -> Window:
    return call.get("window", Window, Window.plain(rank))


def _reduce_window(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    count = len(operands) // 2
    arrays, starts = operands[:count], operands[count:]
    rank = arrays[0].ndim - 1
    window = _window_of(call, rank)
    computation = call.need("to_apply", str)
    function = _known(context, computation, arrays)
    if function is not None:
        return (settle(xp, _slide(xp, function, arrays[0], starts[0], window), call.results[0]),)
    filled = [padded(xp, array, window, start, 0) for array, start in zip(arrays, starts, strict=True)]
    out = output_sizes(filled[0].shape[1:], window)
    seen = [windows(xp, array, window, out).reshape(array.shape[0], *out, -1) for array in filled]
    shape = (arrays[0].shape[0], *out)
    first = [xp.broadcast_to(start.reshape(-1, *(1,) * rank), shape) for start in starts]
    if math.prod(window.size) == 0 or math.prod(shape) == 0:
        return tuple(first)
    return _fold(context, computation, first, seen)


def _slide(xp: Any, function: Any, array: Array, start: Array, window: Window) -> Array:
    """Fold every window one dim after the other: the operation is associative and commutative."""
    current, first = lift(array), lift(start)
    current = padded(xp, current, window, first, 0)
    for dim in range(current.ndim - 1):
        size, stride, dilate = window.size[dim], window.stride[dim], window.rhs_dilate[dim]
        one = Window((size,), (stride,), ((0, 0),), (1,), (dilate,), (False,))
        (length,) = output_sizes((current.shape[1 + dim],), one)
        moved = xp.moveaxis(current, 1 + dim, -1)
        if size == 1:
            current = xp.moveaxis(
                moved[..., : (length - 1) * stride + 1 : stride] if length else moved[..., :0], -1, 1 + dim
            )
            continue
        seen = windows(xp, xp.ascontiguousarray(moved), one, (length,))
        current = xp.moveaxis(fold_dims(xp, function, seen, (seen.ndim - 1,)), -1, 1 + dim)
    return function(first.reshape(-1, *(1,) * (current.ndim - 1)), current)


def _select_and_scatter(context: Context, call: HloCall, operands: Operands) -> Results:
    """Every element of the source goes to the element of its window that the select computation prefers."""
    xp = context.xp
    array, source, start = operands
    rank = array.ndim - 1
    window = _window_of(call, rank)
    shape: tuple[int, ...] = array.shape
    numbers = xp.arange(math.prod(shape[1:])).reshape(1, *shape[1:])
    places = padded(xp, numbers, window, xp.asarray([-1]), 0)
    out = output_sizes(places.shape[1:], window)
    places = windows(xp, places, window, out).reshape(*out, -1)
    values = padded(xp, array, window, xp.zeros((shape[0],), array.dtype), 0)
    values = windows(xp, values, window, out).reshape(shape[0], *out, -1)
    select = call.need("select", str)
    best = values[..., 0]
    where = xp.broadcast_to(places[..., 0], best.shape)
    for step in range(1, values.shape[-1]):
        value, place = values[..., step], xp.broadcast_to(places[..., step], best.shape)
        (keeps,) = apply_elements(context, select, (best, value))
        better = (place >= 0) & ((where < 0) | ~keeps)
        best, where = xp.where(better, value, best), xp.where(better, place, where)
    result = xp.array(xp.broadcast_to(start.reshape(-1, *(1,) * rank), shape)).reshape(-1)
    flat = where + xp.arange(shape[0]).reshape(-1, *(1,) * rank) * math.prod(shape[1:])
    inside = where >= 0
    combine_at(context, call.need("scatter", str), [result], flat[inside], [source[inside]])
    return (result.reshape(shape),)


OPCODES: dict[str, Evaluator] = {
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
}
