"""How reductions over ranks are accumulated, and how far another order may be away.

The canonical value is the left fold in group order, accumulated in `dtypes.accumulator` and rounded once.
Source of the bound: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2.

>>> import numpy as np
>>> left_fold(np, np.asarray([[1.0, 2.0], [3.0, 4.0]], np.float32), ReductionKind.SUM).tolist()
[4.0, 6.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.dtypes import Array, is_extended, needs_float32, unit_roundoff
from dtir.ir.reductions import ReductionKind

BLOCK_ELEMENTS = 32_768
"""Elements that are folded together: 128 KiB of float32 stay in the second-level cache."""

ROW_BYTES = 1 << 16
"""Rows up to this are left to numpy's own reduction, which then costs one call."""

LARGE_BYTES = 1 << 25
"""Slabs beyond this are folded block by block: the running total would fall out of the cache between two rows."""

PAIRWISE_FROM = 8
"""numpy adds a single column of so many rows pairwise, not from the left."""


class ReductionError(ValueError):
    """The reduction has no meaning for the type or for the number of ranks."""


_FUNCTIONS = {
    ReductionKind.SUM: "add",
    ReductionKind.AVERAGE: "add",
    ReductionKind.PRODUCT: "multiply",
    ReductionKind.MAX: "maximum",
    ReductionKind.MIN: "minimum",
    ReductionKind.AND: "bitwise_and",
    ReductionKind.OR: "bitwise_or",
    ReductionKind.XOR: "bitwise_xor",
}


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which elements of a type are accumulated."""
    return np.dtype(np.float32) if needs_float32(dtype) else dtype


Empty: TypeAlias = Callable[[Sequence[int], np.dtype[Any]], Array]
"""Makes an array of a shape and type, with whatever its memory holds."""


def left_fold(xp: Any, parts: Array, kind: ReductionKind, empty: Empty | None = None) -> Array:
    """Reduce over the first dim, from the left, and round once.

    Args:
        parts: ``(members, *shape)``, members in group order.
        empty: gives the memory of the result; None: `xp` does.

    Returns:
        ``shape``, in the type of `parts`.

    Raises:
        ReductionError: no members, a bitwise operation on floats, or a custom reduction.
    """
    if parts.shape[0] == 0:
        raise ReductionError("a reduction needs at least one rank")
    if kind not in _FUNCTIONS:
        raise ReductionError(f"{kind.value} is a reduction of its own: it needs its computation")
    dtype: np.dtype[Any] = parts.dtype
    if kind in (ReductionKind.AND, ReductionKind.OR, ReductionKind.XOR) and (
        dtype.kind not in "biu" or is_extended(dtype)
    ):
        raise ReductionError(f"{kind.value} works on integers and predicates, not on {dtype}")
    function = getattr(xp, _FUNCTIONS[kind])
    members, shape = parts.shape[0], parts.shape[1:]
    if members == 1:
        return parts[0]
    flat = parts.reshape(members, -1)
    folded = _fold(xp, flat, function, working_dtype(dtype), empty or xp.empty).reshape(shape)
    if kind is ReductionKind.AVERAGE:
        folded = folded // members if dtype.kind in "iu" and not is_extended(dtype) else folded / members
    return folded if folded.dtype == dtype else folded.astype(dtype)


def _fold(xp: Any, flat: Array, function: Any, work: np.dtype[Any], empty: Empty) -> Array:
    members, length = flat.shape
    as_is = flat.dtype == work
    own = xp is np  # other modules reduce in an order of their own
    if own and as_is and flat.nbytes <= members * ROW_BYTES and not (length == 1 and members >= PAIRWISE_FROM):
        contiguous = flat if flat.flags.c_contiguous else xp.ascontiguousarray(flat)
        return function.reduce(contiguous, axis=0, dtype=work)
    total = empty((length,), work)
    block = max(1, length) if not own or (as_is and flat.nbytes <= LARGE_BYTES) else BLOCK_ELEMENTS
    for start in range(0, length, block):
        stop = min(start + block, length)
        part = total[start:stop]
        function(_lifted(flat[0, start:stop], work), _lifted(flat[1, start:stop], work), out=part)
        for member in range(2, members):
            function(part, _lifted(flat[member, start:stop], work), out=part)
    return total


def _lifted(array: Array, work: np.dtype[Any]) -> Array:
    return array if array.dtype == work else array.astype(work)


def gamma(terms: int, roundoff: float) -> float:
    """``m u / (1 - m u)``: the relative error of m roundings."""
    product = terms * roundoff
    return product / (1 - product) if product < 1 else float("inf")


def error_bound(xp: Any, parts: Array, kind: ReductionKind) -> Array:
    """How far two ways to reduce may differ, element by element: 0 for exact types and for max, min and bitwise operations.

    Args:
        parts: ``(members, *shape)``.

    Returns:
        ``shape``, in float64: twice ``gamma(members - 1)`` times the sum of moduli, and one rounding of the result.
    """
    dtype: np.dtype[Any] = parts.dtype
    shape = parts.shape[1:]
    exact = kind in (ReductionKind.MAX, ReductionKind.MIN, ReductionKind.AND, ReductionKind.OR, ReductionKind.XOR)
    if exact or unit_roundoff(dtype) == 0:
        return xp.zeros(shape, xp.float64)
    work = unit_roundoff(working_dtype(dtype))
    moduli = xp.abs(parts.astype(xp.float64))
    members = parts.shape[0]
    size = moduli.prod(axis=0) if kind is ReductionKind.PRODUCT else moduli.sum(axis=0)
    size = size / members if kind is ReductionKind.AVERAGE else size
    return (2 * gamma(members - 1, work) + unit_roundoff(dtype)) * size
