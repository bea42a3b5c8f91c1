"""dot and convolution, as batched matrix products.

16-bit floats and less are multiplied and summed in float32 and rounded once; integers in the type of the result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dtir.execute.dtypes import Array, needs_float32
from dtir.execute.hlo.attributes import Window
from dtir.execute.hlo.call import Context, Evaluator, HloCall, HloError, Operands, Results
from dtir.execute.hlo.elementwise import settle
from dtir.execute.hlo.shaping import pad


def _working_type(call: HloCall) -> np.dtype[Any]:
    """The type in which products are summed."""
    kinds = [kind.numpy for kind in (*call.operands[:2], call.result)]
    if any(kind.kind in "iub" for kind in kinds):
        return call.result.numpy if call.result.numpy.kind != "b" else np.dtype(np.int64)
    wide = [np.dtype(np.float32) if needs_float32(kind) else kind for kind in kinds]
    return np.result_type(*wide)


def _product(xp: Any, left: Array, right: Array) -> Array:
    """Batched matrix product of ``(b, m, k)`` and ``(b, k, n)``; one side may have one batch that serves all."""
    if left.shape[1] and right.shape[0] == 1 and left.shape[0] > 1:
        flat = xp.matmul(left.reshape(left.shape[0] * left.shape[1], left.shape[2]), right[0])
        return flat.reshape(left.shape[0], left.shape[1], right.shape[2])
    return xp.matmul(left, right)


def is_uniform(array: Array) -> bool:
    """True when every instance holds the same elements, by construction (one array seen several times)."""
    return array.shape[0] <= 1 or (array.size > 0 and array.strides[0] == 0)


def _dot(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    work = _working_type(call)
    left, right = operands
    left_contract = tuple(1 + dim for dim in call.dims("lhs_contracting_dims", ()))
    right_contract = tuple(1 + dim for dim in call.dims("rhs_contracting_dims", ()))
    left_batch = tuple(1 + dim for dim in call.dims("lhs_batch_dims", ()))
    right_batch = tuple(1 + dim for dim in call.dims("rhs_batch_dims", ()))
    left_free = tuple(dim for dim in range(1, left.ndim) if dim not in left_contract and dim not in left_batch)
    right_free = tuple(dim for dim in range(1, right.ndim) if dim not in right_contract and dim not in right_batch)
    if not left_batch and is_uniform(right):
        right = right[:1]
    instances = left.shape[0]
    batch = math.prod(left.shape[dim] for dim in left_batch)
    inner = math.prod(left.shape[dim] for dim in left_contract)
    if inner != math.prod(right.shape[dim] for dim in right_contract):
        raise HloError(f"dot contracts {inner} with {math.prod(right.shape[dim] for dim in right_contract)} elements")
    a = left.transpose(0, *left_batch, *left_free, *left_contract).astype(work, copy=False)
    b = right.transpose(0, *right_batch, *right_contract, *right_free).astype(work, copy=False)
    rows = math.prod(left.shape[dim] for dim in left_free)
    columns = math.prod(right.shape[dim] for dim in right_free)
    a = a.reshape(instances * batch, rows, inner)
    b = b.reshape(right.shape[0] * batch, inner, columns)
    found = _product(xp, a, b)
    shape = [left.shape[dim] for dim in (*left_batch, *left_free)] + [right.shape[dim] for dim in right_free]
    return (settle(xp, found.reshape(instances, *shape), call.result),)


class _Labels:
    """The dims of a convolution: ``b01f_01io->b01f``."""

    def __init__(self, text: str) -> None:
        try:
            inputs, output = text.split("->")
            left, right = inputs.split("_")
        except ValueError:
            raise HloError(f"dim_labels {text!r} do not read lhs_rhs->out") from None
        spatial = sorted(label for label in left if label.isdigit())
        self.left = [left.index(label) for label in ("b", "f", *spatial)]
        self.right = [right.index(label) for label in ("o", "i", *spatial)]
        self.output = [output.index(label) for label in ("b", "f", *spatial)]
        self.rank = len(spatial)


def windows(xp: Any, array: Array, window: Window, out: tuple[int, ...]) -> Array:
    """A view with the window of every output position: ``(..., *out, *window.size)``; no element is copied.

    Args:
        array: the padded, dilated array; its last dims are those of the window.
    """
    rank = len(out)
    lead = array.ndim - rank
    strides = array.strides
    steps = tuple(strides[lead + dim] * window.stride[dim] for dim in range(rank))
    inner = tuple(strides[lead + dim] * window.rhs_dilate[dim] for dim in range(rank))
    shape = (*array.shape[:lead], *out, *window.size)
    return xp.lib.stride_tricks.as_strided(array, shape, (*strides[:lead], *steps, *inner))


def output_sizes(sizes: tuple[int, ...], window: Window) -> tuple[int, ...]:
    """Number of window positions in every dim of a padded, dilated array."""
    found: list[int] = []
    for dim, size in enumerate(sizes):
        reach = (window.size[dim] - 1) * window.rhs_dilate[dim] + 1
        found.append(max(0, (size - reach) // window.stride[dim] + 1))
    return tuple(found)


def padded(xp: Any, array: Array, window: Window, value: Array, lead: int) -> Array:
    """The array with the window's padding and base dilation; `lead` dims behind the instances are left alone."""
    low = tuple(before for before, _ in window.pad)
    high = tuple(after for _, after in window.pad)
    gaps = tuple(step - 1 for step in window.lhs_dilate)
    if not any((*low, *high, *gaps)):
        return xp.ascontiguousarray(array)
    zeros = (0,) * lead
    return pad(xp, array, value, (*zeros, *low), (*zeros, *high), (*zeros, *gaps))


def _convolution(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    work = _working_type(call)
    labels = _Labels(call.need("dim_labels", str))
    window = call.get("window", Window, Window.plain(0))
    if len(window.size) != labels.rank:
        raise HloError(f"the window has {len(window.size)} dims, the labels {labels.rank}")
    groups = call.get("feature_group_count", int, 1)
    batch_groups = call.get("batch_group_count", int, 1)
    left = operands[0].transpose(0, *(1 + dim for dim in labels.left)).astype(work, copy=False)
    right = operands[1].transpose(0, *(1 + dim for dim in labels.right)).astype(work, copy=False)
    turned = tuple(3 + dim for dim in range(labels.rank) if window.reversed[dim])
    right = xp.flip(right, axis=turned) if turned else right
    instances = left.shape[0]
    left = padded(xp, left, window, xp.zeros((instances,), work), 2)
    out = output_sizes(left.shape[3:], window)
    seen = windows(xp, left, window, out)  # (instances, batch, features, *out, *window)
    batch, features = left.shape[1], left.shape[2]
    outputs, per_group = right.shape[1], right.shape[2]
    if per_group * groups != features or outputs % groups or outputs % batch_groups or batch % batch_groups:
        raise HloError(
            f"{features} features in {groups} groups and {batch_groups} batch groups do not fit {right.shape[1:]}"
        )
    places, taps = math.prod(out), math.prod(window.size)
    split, small = max(groups, batch_groups), batch // batch_groups
    rank = labels.rank
    tail = (*range(4, 4 + rank), 3, *range(4 + rank, 4 + 2 * rank))  # (*out, features, *window)
    if batch_groups > 1:
        seen = seen.reshape(instances, batch_groups, small, features, *seen.shape[3:]).transpose(0, 1, 2, *tail)
    else:
        seen = seen.reshape(instances, batch, groups, per_group, *seen.shape[3:]).transpose(0, 2, 1, *tail)
    rows = seen.reshape(instances * split, small * places, per_group * taps)
    kernel = right.reshape(instances * split, outputs // split, per_group * taps).swapaxes(1, 2)
    found = xp.matmul(rows, kernel).reshape(instances, split, small, *out, outputs // split)
    # -> (instances, small, split, outputs // split, *out)
    found = xp.moveaxis(xp.moveaxis(found, 1, 2), -1, 3)
    found = found.reshape(instances, small, outputs, *out)
    back = [0] * len(labels.output)
    for place, dim in enumerate(labels.output):
        back[dim] = 1 + place
    return (settle(xp, found.transpose(0, *back), call.result),)


OPCODES: dict[str, Evaluator] = {"dot": _dot, "convolution": _convolution}
