"""Operations that work element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.dtypes import Array, contiguous, narrow_bits, needs_float32, wrap
from dtir.execute.hlo import convert, numbers
from dtir.execute.hlo.call import ArrayType, Context, Evaluator, HloCall, HloError, Operands, Results

Function: TypeAlias = Callable[..., Array]


def lift(array: Array) -> Array:
    """The array as it is computed with: 16-bit floats and less become float32."""
    return array.astype(np.float32) if needs_float32(array.dtype) else array


def settle(xp: Any, array: Array, result: ArrayType) -> Array:
    """The array in the type of the result: rounded, or brought back into the range of a narrow integer."""
    dtype = result.numpy
    if array.dtype != dtype:
        array = array.astype(dtype)
    return wrap(array, result.dtype)


def _bits(call: HloCall) -> int:
    kind = call.result.dtype
    return narrow_bits(kind) or call.result.numpy.itemsize * 8


def _plain(function: Callable[..., Array]) -> Evaluator:
    """An operation that is one function of its operands."""

    def run(context: Context, call: HloCall, operands: Operands) -> Results:
        value = function(context.xp, *(lift(operand) for operand in operands))
        return (settle(context.xp, value, call.result),)

    return run


def _named(name: str) -> Evaluator:
    """An operation that numpy has under a name."""

    def function(xp: Any, *operands: Array) -> Array:
        return getattr(xp, name)(*operands)

    return _plain(function)


def _sized(function: Callable[..., Array]) -> Evaluator:
    """An operation that needs the number of bits of its type."""

    def run(context: Context, call: HloCall, operands: Operands) -> Results:
        return (settle(context.xp, function(context.xp, *operands, _bits(call)), call.result),)

    return run


def _negate(xp: Any, a: Array) -> Array:
    return xp.negative(a)


def _not(xp: Any, a: Array) -> Array:
    return xp.logical_not(a) if a.dtype.kind == "b" else xp.invert(a)


def _logistic(xp: Any, a: Array) -> Array:
    return 1 / (1 + xp.exp(-a))


def _rsqrt(xp: Any, a: Array) -> Array:
    return 1 / xp.sqrt(a)


def _atan2(xp: Any, y: Array, x: Array) -> Array:
    """The angle; of complex numbers ``-i log((x + i y) / sqrt(x x + y y))``."""
    if y.dtype.kind != "c":
        return xp.arctan2(y, x)
    unit = xp.asarray(1j).astype(y.dtype)
    return -unit * xp.log((x + unit * y) / xp.sqrt(x * x + y * y))


def _complex(xp: Any, real: Array, imaginary: Array) -> Array:
    return real + imaginary * xp.asarray(1j, xp.result_type(real.dtype, xp.complex64))


def _cbrt(xp: Any, a: Array) -> Array:
    return xp.cbrt(a)


def _identity(context: Context, call: HloCall, operands: Operands) -> Results:
    return tuple(operands)


_DIRECTIONS = {
    "EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
}  # fmt: skip


def total_order(array: Array) -> Array:
    """Integers in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    if array.dtype.kind in "biu":
        return array
    width = array.dtype.itemsize
    bits: Array = contiguous(array).view(f"i{width}")
    choose: Any = np.where  # of the array's own module
    return choose(bits < 0, bits ^ np.dtype(f"i{width}").type(np.iinfo(f"i{width}").max), bits)


def _compare(context: Context, call: HloCall, operands: Operands) -> Results:
    direction = call.need("direction", str)
    if direction not in _DIRECTIONS:
        raise HloError(f"compare has no direction {direction!r}")
    left, right = operands
    if call.get("type", str, "") == "TOTALORDER":
        left, right = total_order(left), total_order(right)
    else:
        left, right = lift(left), lift(right)
    return (getattr(context.xp, _DIRECTIONS[direction])(left, right),)


def spread(array: Array, like: Array) -> Array:
    """A scalar of every instance, with dims so that it meets an array of more dims."""
    missing = like.ndim - array.ndim
    return array.reshape(*array.shape, *(1,) * missing) if array.ndim == 1 and missing > 0 else array


def _select(context: Context, call: HloCall, operands: Operands) -> Results:
    chosen, one, two = operands
    return (context.xp.where(spread(chosen, one), one, two),)


def _clamp(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    low, array, high = (lift(operand) for operand in operands)
    found = xp.minimum(xp.maximum(array, spread(low, array)), spread(high, array))
    return (settle(xp, found, call.result),)


def _convert(context: Context, call: HloCall, operands: Operands) -> Results:
    return (convert.by_value(context.xp, operands[0], call.result.dtype),)


def _bitcast_convert(context: Context, call: HloCall, operands: Operands) -> Results:
    (operand,) = operands
    shape = (operand.shape[0], *call.result.shape)
    return (convert.by_bits(operand, call.operands[0].dtype, call.result.dtype, shape),)


def _reduce_precision(context: Context, call: HloCall, operands: Operands) -> Results:
    return (convert.reduce_precision(operands[0], call.need("exponent_bits", int), call.need("mantissa_bits", int)),)


def _stochastic_convert(context: Context, call: HloCall, operands: Operands) -> Results:
    """Cut towards zero, and one unit further where the random number is below the rest that was cut off."""
    xp = context.xp
    array, random = operands
    whole = xp.trunc(array.astype(xp.float64))
    rest = xp.abs(array.astype(xp.float64) - whole)
    share = numbers.unsigned(random).astype(xp.float64) / float(2 ** (random.dtype.itemsize * 8))
    moved = whole + xp.copysign((share < rest).astype(xp.float64), array.astype(xp.float64))
    return (convert.by_value(xp, moved, call.result.dtype),)


def _map(context: Context, call: HloCall, operands: Operands) -> Results:
    """A computation on scalars, applied to every element."""
    return apply_elements(context, call.need("to_apply", str), operands)


def apply_elements(context: Context, computation: str, arrays: Sequence[Array]) -> Results:
    """Apply a computation on scalars to arrays of one shape; every element is an instance."""
    xp = context.xp
    shape: tuple[int, ...] = xp.broadcast_shapes(*(array.shape for array in arrays))
    flat = [xp.ascontiguousarray(xp.broadcast_to(array, shape)).reshape(-1) for array in arrays]
    return tuple(xp.broadcast_to(found, flat[0].shape).reshape(shape) for found in context.apply(computation, flat))


def _is_finite(xp: Any, a: Array) -> Array:
    return xp.isfinite(a)


def _first(context: Context, call: HloCall, operands: Operands) -> Results:
    return (operands[0],)


OPCODES: dict[str, Evaluator] = {
    **{
        opcode: _named(name)
        for opcode, name in {
            "abs": "abs", "acos": "arccos", "acosh": "arccosh", "add": "add", "asin": "arcsin", "asinh": "arcsinh",
            "atanh": "arctanh", "ceil": "ceil", "cosh": "cosh", "cosine": "cos",
            "exponential": "exp", "exponential-minus-one": "expm1", "floor": "floor", "imag": "imag", "log": "log",
            "log-plus-one": "log1p", "maximum": "maximum", "minimum": "minimum", "multiply": "multiply",
            "real": "real", "round-nearest-even": "rint", "sine": "sin", "sinh": "sinh", "sqrt": "sqrt",
            "subtract": "subtract", "tan": "tan", "tanh": "tanh",
            "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
        }.items()
    },
    "atan2": _plain(_atan2),
    "cbrt": _plain(_cbrt),
    "clamp": _clamp,
    "compare": _compare,
    "complex": _plain(_complex),
    "convert": _convert,
    "bitcast-convert": _bitcast_convert,
    "copy": _identity,
    "copy-start": _first,
    "count-leading-zeros": _sized(numbers.leading_zeros),
    "divide": _plain(numbers.divide),
    "domain": _identity,
    "erf": _plain(numbers.erf),
    "erf-inv": _plain(numbers.erf_inv),
    "erfc": _plain(numbers.erfc),
    "square": _plain(numbers.square),
    "is-finite": _plain(_is_finite),
    "logistic": _plain(_logistic),
    "map": _map,
    "negate": _plain(_negate),
    "not": _plain(_not),
    "opt-barrier": _identity,
    "optimization-barrier": _identity,
    "popcnt": _sized(numbers.ones_count),
    "power": _plain(numbers.power),
    "reduce-precision": _reduce_precision,
    "remainder": _plain(numbers.remainder),
    "round-nearest-afz": _plain(numbers.round_away),
    "rsqrt": _plain(_rsqrt),
    "select": _select,
    "shift-left": _sized(numbers.shift_left),
    "shift-right-arithmetic": _sized(numbers.shift_right_arithmetic),
    "shift-right-logical": _sized(numbers.shift_right_logical),
    "sign": _plain(numbers.sign),
    "stochastic-convert": _stochastic_convert,
    "add-dependency": _first,
}  # fmt: skip
