"""Linear algebra, Fourier transforms and batch normalisation."""

from __future__ import annotations

import math
from typing import Any

from dtir.execute.dtypes import Array
from dtir.execute.hlo.call import Context, Evaluator, HloCall, HloError, Operands, Results
from dtir.execute.hlo.elementwise import lift, settle


def _cholesky(context: Context, call: HloCall, operands: Operands) -> Results:
    """``L`` with ``L @ L*`` equal to the operand (or ``U`` with ``U* @ U``); the other triangle is left as zeros."""
    xp = context.xp
    array = lift(operands[0])
    lower = call.get("lower", bool, False)
    whole = xp.tril(array) if lower else xp.triu(array)
    strict = xp.tril(array, -1) if lower else xp.triu(array, 1)
    hermitian = whole + xp.conj(xp.swapaxes(strict, -1, -2))
    try:
        factor = xp.linalg.cholesky(hermitian)
    except xp.linalg.LinAlgError:
        # XLA gives NaN where there is no factor; one matrix must not spoil the others.
        factor = _each_cholesky(xp, hermitian)
    found = factor if lower else xp.conj(xp.swapaxes(factor, -1, -2))
    return (settle(xp, found, call.result),)


def _each_cholesky(xp: Any, arrays: Array) -> Array:
    flat = arrays.reshape(-1, *arrays.shape[-2:])
    rows: list[Array] = []
    for array in flat:
        try:
            rows.append(xp.linalg.cholesky(array))
        except xp.linalg.LinAlgError:
            rows.append(xp.full(array.shape, xp.nan, array.dtype))
    return xp.stack(rows).reshape(arrays.shape)


_TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _triangular_solve(context: Context, call: HloCall, operands: Operands) -> Results:
    """``x`` with ``op(a) @ x = b`` (left side) or ``x @ op(a) = b``, using one triangle of `a`."""
    xp = context.xp
    a, b = lift(operands[0]), lift(operands[1])
    lower = call.get("lower", bool, False)
    triangle = xp.tril(a) if lower else xp.triu(a)
    if call.get("unit_diagonal", bool, False):
        triangle = xp.where(xp.eye(a.shape[-1], dtype=bool), xp.ones((), a.dtype), triangle)
    form = call.get("transpose_a", str, "NO_TRANSPOSE")
    if form not in _TRANSPOSES:
        raise HloError(f"triangular-solve has no transpose_a {form!r}")
    if form != "NO_TRANSPOSE":
        triangle = xp.swapaxes(triangle, -1, -2)
        triangle = xp.conj(triangle) if form == "ADJOINT" else triangle
    if call.get("left_side", bool, False):
        found = xp.linalg.solve(triangle, b)
    else:
        found = xp.swapaxes(xp.linalg.solve(xp.swapaxes(triangle, -1, -2), xp.swapaxes(b, -1, -2)), -1, -2)
    return (settle(xp, found, call.result),)


def _fft(context: Context, call: HloCall, operands: Operands) -> Results:
    """Transforms of the last dims; the inverse ones divide by the number of elements."""
    xp = context.xp
    (array,) = operands
    lengths = call.dims("fft_length")
    axes = tuple(range(array.ndim - len(lengths), array.ndim))
    kind = call.need("fft_type", str)
    functions = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}
    if kind not in functions:
        raise HloError(f"fft has no type {kind!r}")
    found = getattr(xp.fft, functions[kind])(array, s=lengths, axes=axes)
    return (settle(xp, found, call.result),)


def _feature_shape(call: HloCall, array: Array) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape in which a vector over features meets the array, the other dims, and how many elements a feature has."""
    feature = 1 + call.need("feature_index", int)
    shape = tuple(array.shape[dim] if dim in (0, feature) else 1 for dim in range(array.ndim))
    others = tuple(dim for dim in range(1, array.ndim) if dim != feature)
    return shape, others, math.prod(array.shape[dim] for dim in others)


def _epsilon(call: HloCall) -> float:
    return float(call.attributes.get("epsilon", 0.0))


def _batch_norm_inference(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    array, scale, offset, mean, variance = (lift(operand) for operand in operands)
    shape, _, _ = _feature_shape(call, array)
    factor = scale.reshape(shape) / xp.sqrt(variance.reshape(shape) + _epsilon(call))
    found = (array - mean.reshape(shape)) * factor + offset.reshape(shape)
    return (settle(xp, found, call.result),)


def _batch_norm_training(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    array, scale, offset = (lift(operand) for operand in operands)
    shape, others, _ = _feature_shape(call, array)
    mean = xp.mean(array, axis=others, keepdims=True)
    variance = xp.mean((array - mean) ** 2, axis=others, keepdims=True)
    found = (array - mean) / xp.sqrt(variance + _epsilon(call)) * scale.reshape(shape) + offset.reshape(shape)
    flat = (array.shape[0], -1)
    results = (found, mean.reshape(flat), variance.reshape(flat))
    return tuple(settle(xp, one, kind) for one, kind in zip(results, call.results, strict=True))


def _batch_norm_grad(context: Context, call: HloCall, operands: Operands) -> Results:
    """Gradients of the operand, the scale and the offset."""
    xp = context.xp
    array, scale, mean, variance, gradient = (lift(operand) for operand in operands)
    shape, others, count = _feature_shape(call, array)
    inverse = 1 / xp.sqrt(variance.reshape(shape) + _epsilon(call))
    centred = array - mean.reshape(shape)
    sums = xp.sum(gradient, axis=others, keepdims=True)
    products = xp.sum(gradient * centred, axis=others, keepdims=True)
    own = scale.reshape(shape) * inverse / count * (count * gradient - sums - centred * inverse**2 * products)
    flat = (array.shape[0], -1)
    results = (own, (products * inverse).reshape(flat), sums.reshape(flat))
    return tuple(settle(xp, one, kind) for one, kind in zip(results, call.results, strict=True))


OPCODES: dict[str, Evaluator] = {
    "batch-norm-grad": _batch_norm_grad,
    "batch-norm-inference": _batch_norm_inference,
    "batch-norm-training": _batch_norm_training,
    "cholesky": _cholesky,
    "fft": _fft,
    "triangular-solve": _triangular_solve,
}
