"""Operations that move elements: broadcast, reshape, transpose, slices, padding, iota; and constants."""

from __future__ import annotations

import math
from typing import Any

from dtir.execute.dtypes import Array, numpy_dtype
from dtir.execute.hlo import literals
from dtir.execute.hlo.attributes import Padding, Slices
from dtir.execute.hlo.call import ArrayType, Context, Devices, Evaluator, HloCall, HloError, Operands, Results


def _broadcast(context: Context, call: HloCall, operands: Operands) -> Results:
    (operand,) = operands
    shape = call.result.shape
    dims = call.dims(default=())
    wanted = [1] * len(shape)
    for place, dim in enumerate(dims):
        wanted[dim] = operand.shape[1 + place]
    # Operand dims need not be in ascending order of the result's.
    order = sorted(range(len(dims)), key=lambda place: dims[place])
    moved = operand.transpose(0, *(1 + place for place in order))
    moved = moved.reshape(operand.shape[0], *wanted)
    return (context.xp.broadcast_to(moved, (operand.shape[0], *shape)),)


def _reshape(context: Context, call: HloCall, operands: Operands) -> Results:
    (operand,) = operands
    return (operand.reshape(operand.shape[0], *call.result.shape),)


def _bitcast(context: Context, call: HloCall, operands: Operands) -> Results:
    """The same memory under another shape and layout: both layouts decide which element is where."""
    xp = context.xp
    (operand,) = operands
    source, result = call.operands[0], call.result
    if source.dtype != result.dtype:
        raise HloError(f"bitcast from {source.dtype} to {result.dtype} changes the element type; bitcast-convert does")
    physical = operand.transpose(0, *(1 + dim for dim in _major_to_minor(source)))
    order = _major_to_minor(result)
    shaped = xp.ascontiguousarray(physical).reshape(operand.shape[0], *(result.shape[dim] for dim in order))
    back = [0] * len(order)
    for place, dim in enumerate(order):
        back[dim] = 1 + place
    return (shaped.transpose(0, *back),)


def _major_to_minor(kind: ArrayType) -> tuple[int, ...]:
    return tuple(reversed(kind.layout)) if kind.layout else tuple(range(len(kind.shape)))


def _transpose(context: Context, call: HloCall, operands: Operands) -> Results:
    return (operands[0].transpose(0, *(1 + dim for dim in call.dims())),)


def _slice(context: Context, call: HloCall, operands: Operands) -> Results:
    found = call.need("slice", Slices)
    index = tuple(
        slice(start, limit, stride)
        for start, limit, stride in zip(found.starts, found.limits, found.strides, strict=True)
    )
    return (operands[0][(slice(None), *index)],)


def _concatenate(context: Context, call: HloCall, operands: Operands) -> Results:
    (dim,) = call.dims()
    return (context.xp.concatenate(list(operands), axis=1 + dim),)


def _reverse(context: Context, call: HloCall, operands: Operands) -> Results:
    return (context.xp.flip(operands[0], axis=tuple(1 + dim for dim in call.dims())),)


def pad(
    xp: Any, array: Array, value: Array, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]
) -> Array:
    """Put elements between and around those of every dim but the first; negative edges crop, after the interior is put in.

    Args:
        array: ``(instances, *shape)``.
        value: the element put in, one an instance: ``(instances,)``.

    Raises:
        HloError: a dim would become negative.
    """
    shape: tuple[int, ...] = array.shape[1:]
    spread = [n + max(0, n - 1) * gap for n, gap in zip(shape, interior, strict=True)]
    out = [n + before + after for n, before, after in zip(spread, low, high, strict=True)]
    if any(n < 0 for n in out):
        raise HloError(f"padding gives the negative size {min(out)}")
    filled = xp.broadcast_to(value.reshape(-1, *(1,) * len(shape)), (array.shape[0], *out)).astype(array.dtype)
    filled = xp.array(filled) if not filled.flags.writeable else filled
    source: list[slice] = [slice(None)]
    target: list[slice] = [slice(None)]
    for n, before, gap, size in zip(shape, low, interior, out, strict=True):
        step = gap + 1
        # Elements i with 0 <= before + i * step < size survive.
        first = max(0, -(before // step))
        last = min(n - 1, (size - 1 - before) // step)
        if last < first:
            return filled
        source.append(slice(first, last + 1))
        target.append(slice(before + first * step, before + last * step + 1, step))
    filled[tuple(target)] = array[tuple(source)]
    return filled


def _pad(context: Context, call: HloCall, operands: Operands) -> Results:
    array, value = operands
    found = call.need("padding", Padding)
    return (pad(context.xp, array, value, found.low, found.high, found.interior),)


def _iota(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    shape = call.result.shape
    dim = call.need("iota_dimension", int)
    if not 0 <= dim < len(shape):
        raise HloError(f"iota_dimension {dim} is outside a result of {len(shape)} dims")
    line = xp.arange(shape[dim]).astype(call.result.numpy)
    line = line.reshape(*(-1 if place == dim else 1 for place in range(len(shape))))
    return (xp.broadcast_to(line, (len(context.ranks), *shape)),)


def _constant(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    value = literals.array(call.attributes.get("literal"), call.result)
    return (xp.broadcast_to(xp.asarray(value), (len(context.ranks), *call.result.shape)),)


def _devices(context: Context, call: HloCall) -> Devices:
    if context.devices is None:
        raise HloError(f"{call.opcode} has no meaning inside a computation that is applied to elements")
    return context.devices


def _partition_id(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    ids = [rank % _devices(context, call).partitions for rank in context.ranks]
    return (xp.asarray(ids).astype(call.result.numpy),)


def _replica_id(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    ids = [rank // _devices(context, call).partitions for rank in context.ranks]
    return (xp.asarray(ids).astype(call.result.numpy),)


def _token(context: Context, call: HloCall, operands: Operands) -> Results:
    return tuple(context.xp.zeros((len(context.ranks), *kind.shape), numpy_dtype(kind.dtype)) for kind in call.results)


def _dimension_size(context: Context, call: HloCall, operands: Operands) -> Results:
    (dim,) = call.dims()
    size = call.operands[0].shape[dim]
    return (context.xp.full((len(context.ranks),), size, call.result.numpy),)


def _set_dimension_size(context: Context, call: HloCall, operands: Operands) -> Results:
    """Allowed where it sets the size that the dim has: sizes that vary at run time are not executed."""
    array, size = operands
    (dim,) = call.dims()
    if (size != array.shape[1 + dim]).any():
        raise HloError(
            f"dim {dim} becomes {int(size.ravel()[0])} of {array.shape[1 + dim]}: dynamic sizes are not executed"
        )
    return (array,)


OPCODES: dict[str, Evaluator] = {
    "after-all": _token,
    "bitcast": _bitcast,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "get-dimension-size": _dimension_size,
    "iota": _iota,
    "pad": _pad,
    "partition-id": _partition_id,
    "replica-id": _replica_id,
    "reshape": _reshape,
    "reverse": _reverse,
    "set-dimension-size": _set_dimension_size,
    "slice": _slice,
    "transpose": _transpose,
}


def element_count(shape: tuple[int, ...]) -> int:
    """Number of elements of a shape."""
    return math.prod(shape)
