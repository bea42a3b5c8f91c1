"""Operators that move elements: reshape, transpose, slices, joins, look-ups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from types import MappingProxyType

from dtir.ops.arithmetic import Arithmetic, Array, Place
from dtir.ops.opdef import Fold, Label, LabelRule, Labels, OpCall, OpClass, OpDef, OpError, Shape, no_signs
from dtir.ops.parameters import checked_dim, constant, dim_of, dims_of, integers
from dtir.ops.rules import (
    degree,
    elementwise,
    equal_scales,
    named_dims,
    regroup,
    scale_free,
    shape_text,
    unscaled,
    with_whole,
)


def local_extents(shape: Shape) -> tuple[int, ...]:
    """A shape as ints.

    Raises:
        OpError: an extent is symbolic.
    """
    if not all(isinstance(extent, int) for extent in shape):
        raise OpError(f"shape {shape_text(shape)} has no value yet: bind its symbols first")
    return tuple(int(extent) for extent in shape if isinstance(extent, int))


def _reshape(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    shape = local_extents(call.results[0])
    if math.prod(shape) != math.prod(operands[0].shape):
        raise OpError(f"{tuple(operands[0].shape)} cannot be reshaped to {shape}: different numbers of elements")
    return (arithmetic.xp.reshape(operands[0], shape),)


def _permutation(call: OpCall) -> tuple[int, ...]:
    rank = len(call.operands[0])
    given = call.attributes.get("perm")
    perm = tuple(reversed(range(rank))) if given is None else integers(given, "perm")
    if sorted(perm) != list(range(rank)):
        raise OpError(f"perm {list(perm)} is no permutation of the {rank} dims")
    return perm


def _transpose_labels(call: OpCall) -> LabelRule:
    perm, shape, result = _permutation(call), call.operands[0], call.results[0]
    wanted = tuple(shape[dim] for dim in perm)
    if wanted != result:
        raise OpError(f"the transpose of {shape_text(shape)} by {list(perm)} is {shape_text(wanted)}, "
                      f"declared {shape_text(result)}")  # fmt: skip
    labels = named_dims(len(shape))
    return Labels((labels,), (tuple(labels[dim] for dim in perm),))


def _transpose(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (arithmetic.xp.transpose(operands[0], _permutation(call)),)


def _broadcast_dims(call: OpCall) -> tuple[int, ...]:
    """Which result dim each operand dim becomes."""
    shape, result = call.operands[0], call.results[0]
    given = call.attributes.get("dims")
    dims = tuple(range(len(result) - len(shape), len(result))) if given is None else integers(given, "dims")
    if len(dims) != len(shape) or len(set(dims)) != len(dims) or any(not 0 <= dim < len(result) for dim in dims):
        raise OpError(f"dims {list(dims)} do not place the {len(shape)} operand dims in the {len(result)} result dims")
    return dims


def _broadcast_labels(call: OpCall) -> LabelRule:
    shape, result = call.operands[0], call.results[0]
    labels = named_dims(len(result))
    mine: list[Label] = []
    for extent, dim in zip(shape, _broadcast_dims(call), strict=True):
        if extent != result[dim] and extent != 1:
            raise OpError(f"operand {shape_text(shape)} does not broadcast to {shape_text(result)}")
        mine.append(labels[dim] if extent == result[dim] else None)
    return Labels((tuple(mine),), (labels,))


def _broadcast(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    (array,) = operands
    result = local_extents(call.results[0])
    dims = _broadcast_dims(call)
    order = sorted(range(len(dims)), key=dims.__getitem__)
    spread = [1] * len(result)
    for position, dim in enumerate(dims):
        spread[dim] = array.shape[position]
    moved = arithmetic.xp.reshape(arithmetic.xp.transpose(array, order), tuple(spread))
    if any(mine not in (1, wanted) for mine, wanted in zip(spread, result, strict=True)):
        raise OpError(f"{tuple(array.shape)} does not broadcast to {result}")
    return (arithmetic.xp.broadcast_to(moved, result),)


# -- parts -----------------------------------------------------------------------------------------------------------


def _cuts(call: OpCall, shape: Sequence[int]) -> tuple[slice, ...]:
    """The slice of every dim, from ``starts``, ``stops`` and ``steps``, or from ``dim``, ``start`` and ``stop`` alone."""
    rank = len(shape)
    if "starts" in call.attributes:
        starts = integers(call.attributes["starts"], "starts")
        stops = integers(call.attributes.get("stops", list(shape)), "stops")
        steps = integers(call.attributes.get("steps", [1] * rank), "steps")
    else:
        dim = dim_of(call, rank, 0)
        starts, stops, steps = [0] * rank, list(shape), [1] * rank
        starts[dim] = integers(call.attributes.get("start", 0), "start")[0]
        stops[dim] = integers(call.attributes.get("stop", shape[dim]), "stop")[0]
    if not len(starts) == len(stops) == len(steps) == rank or any(step < 1 for step in steps):
        raise OpError(f"starts, stops and steps need {rank} entries each, steps above 0")
    return tuple(slice(start, stop, step) for start, stop, step in zip(starts, stops, steps, strict=True))


def _changed_dims(source: Shape, result: Shape) -> Labels:
    """Dims whose extent changes are whole and lose their label; the others keep it."""
    if len(source) != len(result):
        raise OpError(f"{shape_text(source)} and {shape_text(result)} have different numbers of dims")
    labels = named_dims(len(source))
    new = named_dims(len(source), "e")
    same = tuple(mine == theirs for mine, theirs in zip(source, result, strict=True))
    kept = tuple(label if equal else other for label, other, equal in zip(labels, new, same, strict=True))
    whole = {label for label, equal in zip(labels, same, strict=True) if not equal} | {
        other for other, equal in zip(new, same, strict=True) if not equal
    }
    return Labels((labels,), (kept,), MappingProxyType({}), frozenset(whole))


def _part_labels(call: OpCall) -> LabelRule:
    return _changed_dims(call.operands[0], call.results[0])


def _slice(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del arithmetic, place
    return (operands[0][_cuts(call, operands[0].shape)],)


def _pad(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    array = operands[0]
    low = integers(call.attributes.get("low", [0] * array.ndim), "low")
    high = integers(call.attributes.get("high", [0] * array.ndim), "high")
    wanted = local_extents(call.results[0])
    if len(low) != array.ndim or len(high) != array.ndim or min((*low, *high), default=0) < 0:
        raise OpError(f"low and high need {array.ndim} entries of at least 0 each")
    padded = tuple(size + before + after for size, before, after in zip(array.shape, low, high, strict=True))
    if padded != wanted:  # checked before anything of that size is made
        raise OpError(f"padding {tuple(array.shape)} by {list(low)} and {list(high)} gives {padded}, declared {wanted}")
    value = arithmetic.number(constant(call, "value", Fraction(0)))
    return (arithmetic.xp.pad(array, tuple(zip(low, high, strict=True)), constant_values=value),)


def _pad_labels(call: OpCall) -> LabelRule:
    if constant(call, "value", Fraction(0)) != 0:
        raise OpError("pad fills with zeros, which keeps it linear: use pad_value for another value")
    return _part_labels(call)


def _concat_labels(call: OpCall) -> LabelRule:
    rank = len(call.results[0])
    dim = dim_of(call, rank, 0)
    labels = named_dims(rank)
    rows: list[tuple[Label, ...]] = []
    for index, shape in enumerate(call.operands):
        if len(shape) != rank or any(shape[k] != call.results[0][k] for k in range(rank) if k != dim):
            raise OpError(f"{shape_text(shape)} cannot be joined along dim {dim} to {shape_text(call.results[0])}")
        rows.append(tuple(f"part{index}" if k == dim else label for k, label in enumerate(labels)))
    whole = frozenset({labels[dim], *(f"part{index}" for index in range(len(rows)))})
    return Labels(tuple(rows), (labels,), MappingProxyType({}), whole)


def _concat(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (arithmetic.xp.concatenate(tuple(operands), axis=dim_of(call, operands[0].ndim, 0)),)


def _split_labels(call: OpCall) -> LabelRule:
    rank = len(call.operands[0])
    dim = dim_of(call, rank, 0)
    labels = named_dims(rank)
    rows: list[tuple[Label, ...]] = [
        tuple(f"part{index}" if k == dim else label for k, label in enumerate(labels))
        for index in range(len(call.results))
    ]
    whole = frozenset({labels[dim], *(f"part{index}" for index in range(len(rows)))})
    return Labels((labels,), tuple(rows), MappingProxyType({}), whole)


def _split(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del arithmetic, place
    (array,) = operands
    dim = dim_of(call, array.ndim, 0)
    sizes = [local_extents(shape)[dim] for shape in call.results]
    if sum(sizes) != array.shape[dim]:
        raise OpError(f"dim {dim} of {tuple(array.shape)} cannot be cut into {sizes}")
    parts: list[Array] = []
    start = 0
    for size in sizes:
        parts.append(array[(slice(None),) * dim + (slice(start, start + size),)])
        start += size
    return tuple(parts)


def _reverse(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (arithmetic.xp.flip(operands[0], axis=dims_of(call, operands[0].ndim, (-1,))),)


def _roll(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    dim = dim_of(call, operands[0].ndim, -1)
    return (arithmetic.xp.roll(operands[0], integers(call.attributes.get("shift", 1), "shift")[0], axis=dim),)


# -- look-ups --------------------------------------------------------------------------------------------------------


def _gather_labels(call: OpCall) -> LabelRule:
    table, index = call.operands
    dim = dim_of(call, len(table), 0)
    labels = named_dims(len(table))
    rows = named_dims(len(index), "i")
    result = (*labels[:dim], *rows, *labels[dim + 1 :])
    if len(result) != len(call.results[0]):
        raise OpError(f"look-up of {shape_text(index)} in dim {dim} of {shape_text(table)} has {len(result)} dims, "
                      f"declared {len(call.results[0])}")  # fmt: skip
    return Labels((labels, rows), (result,), MappingProxyType({}), frozenset({labels[dim]}))


def whole_numbers(arithmetic: Arithmetic, array: Array, extent: int) -> Array:
    """An index operand: whole numbers, wrapped into ``range(extent)`` so that every index exists."""
    if extent == 0:
        raise OpError("a look-up in a dim of extent 0")
    return arithmetic.xp.asarray(array).astype(arithmetic.xp.int64) % extent


def _gather(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    table, index = operands
    dim = dim_of(call, table.ndim, 0)
    return (arithmetic.xp.take(table, whole_numbers(arithmetic, index, table.shape[dim]), axis=dim),)


def _take_along(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    table, index = operands
    dim = dim_of(call, table.ndim, -1)
    found = whole_numbers(arithmetic, index, table.shape[dim])
    return (arithmetic.xp.take_along_axis(table, found, axis=dim),)


def _take_along_labels(call: OpCall) -> LabelRule:
    table, index = call.operands
    if len(table) != len(index) or len(index) != len(call.results[0]):
        raise OpError("take_along takes a table and an index with the same number of dims")
    dim = dim_of(call, len(table), -1)
    labels = named_dims(len(table))
    rows: tuple[Label, ...] = tuple("chosen" if k == dim else label for k, label in enumerate(labels))
    return Labels((labels, rows), (rows,), MappingProxyType({}), frozenset({labels[dim]}))


def _scatter_labels(call: OpCall) -> LabelRule:
    updates, index = call.operands
    if len(index) != 1 or not updates or len(updates) != len(call.results[0]):
        raise OpError("scatter_add takes updates [n, ...] and an index [n]; the result has the updates' number of dims")
    labels = named_dims(len(updates))
    result: tuple[Label, ...] = ("row", *labels[1:])
    return Labels((labels, ("d0",)), (result,), MappingProxyType({"d0": Fold.SUM}), frozenset({"row"}))


def _scatter_add(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    xp, (updates, index) = arithmetic.xp, operands
    rows = local_extents(call.results[0])[0]
    chosen = (whole_numbers(arithmetic, index, rows)[None, :] == xp.arange(rows)[:, None]).astype(updates.dtype)
    return (arithmetic.settle(xp.tensordot(chosen, updates, axes=1)),)


def _embedding_labels(call: OpCall) -> LabelRule:
    found = _gather_labels(OpCall((call.operands[0], call.operands[1]), call.results, {"dim": 0}))
    assert isinstance(found, Labels)
    return found


def _embedding(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del call, place
    table, index = operands
    return (arithmetic.xp.take(table, whole_numbers(arithmetic, index, table.shape[0]), axis=0),)


def _one_hot_labels(call: OpCall) -> LabelRule:
    labels = named_dims(len(call.operands[0]))
    return Labels((labels,), ((*labels, "class"),), MappingProxyType({}), frozenset({"class"}))


def _one_hot(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    classes = local_extents(call.results[0])[-1]
    index = whole_numbers(arithmetic, operands[0], classes)
    return ((index[..., None] == arithmetic.xp.arange(classes)).astype(operands[0].dtype),)


def _rope_labels(call: OpCall) -> LabelRule:
    found = elementwise(OpCall(call.operands[:1], call.results, call.attributes))
    assert isinstance(found, Labels)
    labels = found.operands[0]
    dim = checked_dim(integers(call.attributes.get("position_dim", -2), "position_dim")[0], len(labels))
    positions: tuple[tuple[Label, ...], ...] = ((labels[dim],),) if len(call.operands) > 1 else ()
    whole = {labels[-1]} if positions else {labels[-1], labels[dim]}
    return Labels((labels, *positions), found.results, MappingProxyType({}),
                  frozenset(label for label in whole if label is not None))  # fmt: skip


def _rope(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    xp, x = arithmetic.xp, operands[0]
    if x.shape[-1] % 2:
        raise OpError(f"rope needs an even last dim, got {x.shape[-1]}")
    dim = checked_dim(integers(call.attributes.get("position_dim", -2), "position_dim")[0], x.ndim)
    position = operands[1] if len(operands) > 1 else xp.arange(x.shape[dim])
    half = x.shape[-1] // 2
    base = arithmetic.number(constant(call, "base")) if "base" in call.attributes else 10000.0
    angle = position[:, None] * base ** (-xp.arange(half) / half)[None, :]
    shape = [1] * x.ndim
    shape[dim], shape[-1] = angle.shape
    sine, cosine = xp.reshape(xp.sin(angle), tuple(shape)), xp.reshape(xp.cos(angle), tuple(shape))
    first, second = x[..., :half], x[..., half:]
    return (xp.concatenate((first * cosine - second * sine, first * sine + second * cosine), axis=-1),)


def _nothing(call: OpCall) -> int | float:
    del call
    return 0


_DIM = frozenset({"dim", "dims"})

_OPS: tuple[OpDef, ...] = (
    OpDef("reshape", "the same elements in another shape", (1, 1), OpClass.LINEAR, regroup, degree(1), _reshape,
          polynomial=True, keeps_zero=True, flops=_nothing, parameters=frozenset({"shape"})),
    OpDef("transpose", "dims in another order", (1, 1), OpClass.LINEAR, _transpose_labels, degree(1), _transpose,
          polynomial=True, keeps_zero=True, flops=_nothing, parameters=frozenset({"perm"})),
    OpDef("broadcast", "copies along new or unit dims", (1, 1), OpClass.LINEAR, _broadcast_labels, degree(1), _broadcast,
          polynomial=True, keeps_zero=True, flops=_nothing, parameters=frozenset({"dims"})),
    OpDef("slice", "a part of a tensor", (1, 1), OpClass.LINEAR, _part_labels, degree(1), _slice, polynomial=True,
          keeps_zero=True, flops=_nothing, parameters=_DIM | {"starts", "stops", "steps", "start", "stop"}),
    OpDef("pad", "a tensor with a border of zeros", (1, 1), OpClass.LINEAR, _pad_labels, degree(1), _pad,
          polynomial=True, keeps_zero=True, flops=_nothing, parameters=frozenset({"low", "high", "value"})),
    OpDef("pad_value", "a tensor with a border of one value", (1, 1), OpClass.MONOTONE, _part_labels, unscaled, _pad,
          polynomial=True, flops=_nothing, parameters=frozenset({"low", "high", "value"})),
    OpDef("concat", "tensors joined along a dim", (1, None), OpClass.ADDITIVE, _concat_labels, equal_scales(), _concat,
          polynomial=True, keeps_zero=True, flops=_nothing, parameters=_DIM),
    OpDef("split", "a tensor cut along a dim", (1, 1), OpClass.LINEAR, _split_labels, degree(1), _split,
          polynomial=True, keeps_zero=True, flops=_nothing, parameters=_DIM),
    OpDef("reverse", "elements in reverse order along dims", (1, 1), OpClass.LINEAR, with_whole(elementwise), degree(1),
          _reverse, polynomial=True, keeps_zero=True, flops=_nothing, parameters=_DIM),
    OpDef("roll", "elements shifted cyclically along a dim", (1, 1), OpClass.LINEAR, with_whole(elementwise), degree(1),
          _roll, polynomial=True, keeps_zero=True, flops=_nothing, parameters=_DIM | {"shift"}),
    OpDef("gather", "rows of the first operand chosen by the second", (2, 2), OpClass.LINEAR, _gather_labels, degree(1, 0),
          _gather, nonlinear_operands=(1,), keeps_zero=True, flops=_nothing, parameters=_DIM),
    OpDef("embedding", "rows of a table chosen by ids", (2, 2), OpClass.LINEAR, _embedding_labels, degree(1, 0), _embedding,
          nonlinear_operands=(1,), keeps_zero=True, flops=_nothing),
    OpDef("take_along", "elements along a dim chosen element by element", (2, 2), OpClass.LINEAR, _take_along_labels,
          degree(1, 0), _take_along, nonlinear_operands=(1,), keeps_zero=True, flops=_nothing, parameters=_DIM),
    OpDef("scatter_add", "rows added into the places that an index names", (2, 2), OpClass.LINEAR, _scatter_labels,
          degree(1, 0), _scatter_add, no_signs, (1,), keeps_zero=True),
    OpDef("one_hot", "1 at the index, else 0, along a new last dim", (1, 1), OpClass.NONLINEAR, _one_hot_labels, scale_free,
          _one_hot, nonlinear_operands=(0,), flops=_nothing),
    OpDef("rope", "pairs of elements rotated by an angle that grows with the position", (1, 2), OpClass.LINEAR, _rope_labels,
          degree(1, 0), _rope, no_signs, (1,), keeps_zero=True, parameters=frozenset({"position_dim", "base"})),
)  # fmt: skip

OPS: tuple[tuple[str, OpDef], ...] = tuple(("core", operator) for operator in _OPS)
