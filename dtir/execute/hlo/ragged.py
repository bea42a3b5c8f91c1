"""ragged-dot: a product whose rows come in groups of sizes that are data, as in layers of experts.

| the ragged dim of the left operand | the right operand | result |
|---|---|---|
| neither contracted nor batch | has a dim of groups: each group of rows meets its own matrix | rows of no group are zero |
| contracted | as in a plain product | one product a group, groups first |
| batch | as in a plain product | batches of no group are zero |

Source: the CHLO specification of `ragged_dot` (openxla/stablehlo) and JAX's documentation of `jax.lax.ragged_dot_general`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dtir.execute.dtypes import Array
from dtir.execute.hlo.call import ArrayType, Context, Evaluator, HloCall, HloError, Operands, Results
from dtir.execute.hlo.contraction import OPCODES as PRODUCTS

_SAME = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")


def _ragged_dot(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    left, right, sizes = operands
    if sizes.ndim != 2:
        raise HloError(f"ragged-dot takes one list of group sizes, they have {sizes.ndim - 1} dims")
    ragged = call.dims("lhs_ragged_dims")
    grouped = call.dims("rhs_group_dims", ())
    if len(ragged) != 1 or len(grouped) > 1 or not 0 <= ragged[0] < left.ndim - 1:
        raise HloError(f"ragged-dot has one ragged dim and at most one dim of groups, got {ragged} and {grouped}")
    apart = ragged[0] in call.dims("lhs_contracting_dims", ())
    attributes = {key: call.attributes[key] for key in _SAME if key in call.attributes}
    for key in ("rhs_batch_dims", "rhs_contracting_dims"):
        # The dim of groups is not there any more when a group's matrix is taken.
        attributes[key] = tuple(dim - sum(dim > group for group in grouped) for dim in call.dims(key, ()))
    kind = call.result
    one = ArrayType(kind.dtype, kind.shape[1:] if apart else kind.shape)
    plain = replace(call, opcode="dot", results=(one,), attributes=attributes)
    ends = xp.cumsum(sizes, axis=1)
    found: list[Array] = []
    for group in range(sizes.shape[1]):
        rows = _of_group(xp, left, 1 + ragged[0], ends[:, group] - sizes[:, group], ends[:, group])
        matrix = xp.take(right, group, axis=1 + grouped[0]) if grouped else right
        types = (call.operands[0], ArrayType(call.operands[1].dtype, tuple(matrix.shape[1:])))
        (product,) = PRODUCTS["dot"](context, replace(plain, operands=types), (rows, matrix))
        found.append(product)
    if apart:
        return (xp.stack(found, axis=1),)
    total = found[0] if found else xp.zeros((left.shape[0], *kind.shape), kind.numpy)
    for product in found[1:]:
        total = total + product  # every row is of one group: the others add zeros
    return (total,)


def _of_group(xp: Any, array: Array, dim: int, start: Array, stop: Array) -> Array:
    """An array with zeros outside of a range of one dim, which each instance has for itself."""
    shape = [1] * array.ndim
    shape[dim] = -1
    place = xp.arange(array.shape[dim]).reshape(shape)
    lead = (-1, *(1,) * (array.ndim - 1))
    inside = (place >= start.reshape(lead)) & (place < stop.reshape(lead))
    return xp.where(inside, array, xp.zeros((), array.dtype))


OPCODES: dict[str, Evaluator] = {"ragged-dot": _ragged_dot}
