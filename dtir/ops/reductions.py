"""Operators that fold dims away, and those that mix whole dims (softmax, norms, scans)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from dtir.ops.arithmetic import Arithmetic, Array, Place
from dtir.ops.opdef import (
    Fold,
    Label,
    LabelRule,
    Labels,
    OpCall,
    OpClass,
    OpDef,
    OpError,
    Run,
    ScaleLaw,
    elements,
    no_signs,
)
from dtir.ops.parameters import constant, dim_of, dims_of, flag
from dtir.ops.rules import degree, elementwise, equal_scales, named_dims, reduction, scale_free, unscaled, with_whole

Reducer = Callable[[Any, Array, tuple[int, ...], bool], Array]
"""Of an array module, an array, its dims to fold and whether they stay as units."""


def _reduce(function: Reducer) -> Run:
    def run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
        del place
        dims = dims_of(call, operands[0].ndim)
        if not dims:
            return (operands[0],)
        return (arithmetic.settle(function(arithmetic.xp, operands[0], dims, flag(call, "keepdims"))),)

    return run


def _mean(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    (array,) = operands
    dims = dims_of(call, array.ndim)
    count = 1
    for dim in dims:
        count *= array.shape[dim]
    if count == 0:
        raise OpError(f"mean over no element: dims {list(dims)} of shape {tuple(array.shape)}")
    total = arithmetic.settle(arithmetic.xp.sum(array, axis=dims, keepdims=flag(call, "keepdims")))
    return (arithmetic.settle(total * arithmetic.number(Fraction(1, count))),)


def _read_elements(call: OpCall) -> int | float:
    return elements(call.operands[0])


_SUM: Reducer = lambda xp, x, dims, keep: xp.sum(x, axis=dims, keepdims=keep)  # noqa: E731 - a row of the table below


def _log_sum_exp(xp: Any, x: Array, dims: tuple[int, ...], keep: bool) -> Array:
    most = xp.max(x, axis=dims, keepdims=True)
    total = xp.log(xp.sum(xp.exp(x - most), axis=dims, keepdims=True)) + most
    return total if keep else xp.squeeze(total, axis=dims)


# name: summary, class, fold (None: the dims must be whole), scale law, polynomial, zero stays zero, function
_FOLDS: tuple[
    tuple[str, str, OpClass, Fold | None, Callable[[OpCall], ScaleLaw], bool, bool, Reducer],
    ...,
] = (
    ("sum", "sum over dims", OpClass.LINEAR, Fold.SUM, degree(1), True, True, _SUM),
    ("max", "greatest over dims", OpClass.EXTREMUM, Fold.MAX, degree(1), False, True,
     lambda xp, x, dims, keep: xp.max(x, axis=dims, keepdims=keep)),
    ("min", "least over dims", OpClass.EXTREMUM, Fold.MIN, degree(1), False, True,
     lambda xp, x, dims, keep: xp.min(x, axis=dims, keepdims=keep)),
    ("amax", "greatest magnitude over dims", OpClass.NONLINEAR, Fold.MAX, degree(1), False, True,
     lambda xp, x, dims, keep: xp.max(xp.abs(x), axis=dims, keepdims=keep)),
    ("sum_squares", "sum of squares over dims", OpClass.NONLINEAR, Fold.SUM, degree(2), True, True,
     lambda xp, x, dims, keep: xp.sum(x * x, axis=dims, keepdims=keep)),
    ("any", "true when any is true", OpClass.NONLINEAR, Fold.OR, scale_free, False, True,
     lambda xp, x, dims, keep: xp.any(x, axis=dims, keepdims=keep)),
    ("all", "true when all are true", OpClass.NONLINEAR, Fold.AND, scale_free, False, False,
     lambda xp, x, dims, keep: xp.all(x, axis=dims, keepdims=keep)),
    ("norm", "square root of the sum of squares over dims", OpClass.NONLINEAR, None, degree(1), False, True,
     lambda xp, x, dims, keep: xp.sqrt(xp.sum(x * x, axis=dims, keepdims=keep))),
    ("var", "variance over dims (divided by the count)", OpClass.NONLINEAR, None, degree(2), False, True,
     lambda xp, x, dims, keep: xp.var(x, axis=dims, keepdims=keep)),
    ("std", "standard deviation over dims (divided by the count)", OpClass.NONLINEAR, None, degree(1), False, True,
     lambda xp, x, dims, keep: xp.std(x, axis=dims, keepdims=keep)),
    ("logsumexp", "logarithm of the sum of exponentials over dims", OpClass.NONLINEAR, None, unscaled, False, False,
     _log_sum_exp),
)  # fmt: skip


def _product(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    array = operands[0]
    keep = flag(call, "keepdims")
    for dim in sorted(dims_of(call, array.ndim), reverse=True):
        # One factor at a time: a product of many elements modulo a prime must be settled at every step.
        total = arithmetic.xp.ones_like(arithmetic.xp.sum(array, axis=dim, keepdims=True))
        for index in range(array.shape[dim]):
            factor = arithmetic.xp.take(array, arithmetic.xp.asarray([index]), axis=dim)
            total = arithmetic.settle(total * factor)
        array = total if keep else arithmetic.xp.squeeze(total, axis=dim)
    return (array,)


def _index_of(best: Callable[[Any, Array, int], Array]) -> Run:
    def run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
        del place
        dim = dim_of(call, operands[0].ndim, -1)
        found = best(arithmetic.xp, operands[0], dim)
        return (arithmetic.xp.expand_dims(found, dim) if flag(call, "keepdims") else found,)

    return run


# -- operators that mix whole dims -------------------------------------------------------------------------------------


def _along(function: Callable[[Any, Array, tuple[int, ...]], Array]) -> Run:
    def run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
        del place
        dims = dims_of(call, operands[0].ndim, (-1,))
        return (arithmetic.settle(function(arithmetic.xp, operands[0], dims)),)

    return run


def softmax(xp: Any, x: Array, dims: tuple[int, ...]) -> Array:
    """Exponentials divided by their sum over dims, shifted by the greatest so that none overflows."""
    shifted = xp.exp(x - xp.max(x, axis=dims, keepdims=True))
    return shifted / xp.sum(shifted, axis=dims, keepdims=True)


def _log_softmax(xp: Any, x: Array, dims: tuple[int, ...]) -> Array:
    shifted = x - xp.max(x, axis=dims, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=dims, keepdims=True))


def _normalised(center: bool) -> Run:
    """``(x - mean) / sqrt(var + eps)``, or without the mean; then times the second operand, plus the third."""

    def run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
        del place
        xp, x = arithmetic.xp, operands[0]
        dims = dims_of(call, x.ndim, (-1,))
        eps = arithmetic.number(constant(call, "eps", Fraction(1, 100_000)))
        moved = x - xp.mean(x, axis=dims, keepdims=True) if center else x
        result = moved / xp.sqrt(xp.mean(moved * moved, axis=dims, keepdims=True) + eps)
        if len(operands) > 1:
            result = result * operands[1]
        return (result + operands[2] if len(operands) > 2 else result,)

    return run


def _cross_entropy_labels(call: OpCall) -> LabelRule:
    logits, target = call.operands
    labels = named_dims(len(logits))
    if len(target) != len(logits) - 1:
        raise OpError(f"logits have {len(logits)} dims, targets {len(target)}: one fewer is wanted")
    kept: tuple[Label, ...] = labels[:-1]
    return Labels((labels, kept), (kept,), MappingProxyType({}), frozenset({labels[-1]}))


def _cross_entropy(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del call, place
    xp, (logits, target) = arithmetic.xp, operands
    log_probability = _log_softmax(xp, logits, (logits.ndim - 1,))
    index = xp.expand_dims(target.astype(xp.int64), -1)
    return (-xp.squeeze(xp.take_along_axis(log_probability, index, axis=-1), axis=-1),)


def _attention_labels(call: OpCall) -> LabelRule:
    query, key, value = call.operands
    if not (len(query) == len(key) == len(value) == len(call.results[0]) >= 2):
        raise OpError("attention takes query, key and value with the same number of dims, at least 2")
    batch = named_dims(len(query) - 2)
    return Labels(
        ((*batch, "q", "h"), (*batch, "k", "h"), (*batch, "k", "v")),
        ((*batch, "q", "v"),),
        MappingProxyType({}),
        frozenset({"h", "k"}),
    )


def _attention(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    xp, (query, key, value) = arithmetic.xp, operands
    scores = xp.matmul(query, xp.swapaxes(key, -1, -2)) / query.shape[-1] ** 0.5
    if flag(call, "causal"):
        rows, columns = scores.shape[-2:]
        future = xp.arange(columns)[None, :] > xp.arange(rows)[:, None] + (columns - rows)
        scores = xp.where(future, -xp.inf, scores)
    return (xp.matmul(softmax(xp, scores, (scores.ndim - 1,)), value),)


def _attention_flops(call: OpCall) -> int | float:
    query, key, value = (elements(shape) for shape in call.operands)
    rows, width = call.operands[0][-2], call.operands[0][-1]
    if not isinstance(rows, int) or not isinstance(width, int) or not width:
        raise OpError("an extent has no value yet: bind its symbols first")
    scores = key / width * rows
    return 2 * scores * width + 5 * scores + 2 * rows * value + query


def _scan(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (arithmetic.settle(arithmetic.xp.cumsum(operands[0], axis=dim_of(call, operands[0].ndim, -1))),)


def _sort(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (arithmetic.xp.sort(operands[0], axis=dim_of(call, operands[0].ndim, -1)),)


def _times(per_element: int) -> Callable[[OpCall], int | float]:
    def count(call: OpCall) -> int | float:
        return per_element * elements(call.operands[0])

    return count


_DIMS = frozenset({"dims", "dim"})
_KEPT = _DIMS | {"keepdims", "include_halo"}
_WHOLE = with_whole(elementwise)

_MIXING: tuple[OpDef, ...] = (
    OpDef("mean", "mean over dims", (1, 1), OpClass.LINEAR, reduction(Fold.MEAN), degree(1), _mean, polynomial=True,
          keeps_zero=True, flops=_read_elements, parameters=_KEPT),
    OpDef("prod", "product over dims", (1, 1), OpClass.NONLINEAR, reduction(Fold.PRODUCT), unscaled, _product, polynomial=True,
          flops=_read_elements, parameters=_KEPT),
    OpDef("argmax", "index of the greatest along a dim", (1, 1), OpClass.NONLINEAR, reduction(None), scale_free,
          _index_of(lambda xp, x, dim: xp.argmax(x, axis=dim)), flops=_read_elements, parameters=_KEPT),
    OpDef("argmin", "index of the least along a dim", (1, 1), OpClass.NONLINEAR, reduction(None), scale_free,
          _index_of(lambda xp, x, dim: xp.argmin(x, axis=dim)), flops=_read_elements, parameters=_KEPT),
    OpDef("softmax", "exponentials divided by their sum over a dim", (1, 1), OpClass.NONLINEAR, _WHOLE, unscaled,
          _along(softmax), flops=_times(5), parameters=_DIMS),
    OpDef("log_softmax", "logarithm of softmax", (1, 1), OpClass.NONLINEAR, _WHOLE, unscaled, _along(_log_softmax),
          flops=_times(5), parameters=_DIMS),
    OpDef("layernorm", "shifted and divided to mean 0 and variance 1 over dims, then times gamma, plus beta", (1, 3),
          OpClass.NONLINEAR, _WHOLE, unscaled, _normalised(center=True), flops=_times(8), parameters=_DIMS | {"eps"}),
    OpDef("rmsnorm", "divided by the root mean square over dims, then times gamma", (1, 2), OpClass.NONLINEAR, _WHOLE, unscaled,
          _normalised(center=False), keeps_zero=True, flops=_times(4), parameters=_DIMS | {"eps"}),
    OpDef("cross_entropy", "minus the logarithm of the softmax at the target index", (2, 2), OpClass.NONLINEAR,
          _cross_entropy_labels, unscaled, _cross_entropy, nonlinear_operands=(0, 1), flops=_times(5)),
    OpDef("attention", "softmax(query key^T / sqrt(width)) value", (3, 3), OpClass.MULTILINEAR, _attention_labels,
          equal_scales(2), _attention, nonlinear_operands=(0, 1), flops=_attention_flops, parameters=frozenset({"causal"})),
    OpDef("cumsum", "running sum along a dim", (1, 1), OpClass.LINEAR, _WHOLE, degree(1), _scan, no_signs, polynomial=True,
          flops=_read_elements, parameters=_DIMS),
    OpDef("sort", "sorted along a dim", (1, 1), OpClass.NONLINEAR, _WHOLE, degree(1), _sort, parameters=_DIMS),
)  # fmt: skip


def _table() -> list[OpDef]:
    return [
        OpDef(
            name,
            summary,
            (1, 1),
            kind,
            reduction(fold),
            law,
            _reduce(function),
            polynomial=polynomial,
            keeps_zero=zero,
            flops=_times(2) if name in ("sum_squares", "norm") else _read_elements,
            parameters=_KEPT,
        )
        for name, summary, kind, fold, law, polynomial, zero, function in _FOLDS
    ]


OPS: tuple[tuple[str, OpDef], ...] = tuple(("core", operator) for operator in (*_table(), *_MIXING))
