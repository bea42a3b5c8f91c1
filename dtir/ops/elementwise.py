"""Operators that work element by element, operands broadcast against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from dtir.ops.arithmetic import Arithmetic, Array, Place
from dtir.ops.opdef import (
    Degrees,
    Factor,
    OpCall,
    OpClass,
    OpDef,
    Run,
    ScaleLaw,
    SourceKind,
    Unscaled,
    elements,
)
from dtir.ops.parameters import constant, names, rational
from dtir.ops.rules import degree, elementwise, equal_scales, scale_free, unscaled

Unary = Callable[[Any, Array], Array]
"""Of an array module and an array."""


def _unary(function: Unary) -> Run:
    def run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
        del call, place
        return (arithmetic.settle(function(arithmetic.xp, operands[0])),)

    return run


def _binary(function: Callable[[Any, Array, Array], Array]) -> Run:
    """Left to right over two or more operands."""

    def run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
        del call, place
        result = operands[0]
        for other in operands[1:]:
            result = arithmetic.settle(function(arithmetic.xp, result, other))
        return (result,)

    return run


def _sign(value: int) -> Callable[[OpCall], tuple[int, ...]]:
    def signs(call: OpCall) -> tuple[int, ...]:
        return (value,) * len(call.operands)

    return signs


def _sub_signs(call: OpCall) -> tuple[int, ...]:
    return (1, *(-1 for _ in call.operands[1:]))


# -- functions ------------------------------------------------------------------------------------------------------


def erf(xp: Any, x: Array) -> Array:
    """The error function; numpy has none, so the values go through the C library's."""
    own = getattr(xp, "erf", None)
    if own is not None:
        return own(x)
    import numpy as np

    host = np.asarray(x.get() if hasattr(x, "get") else x)
    # float(): math.erf takes no numpy scalar of 16 bits.
    values = np.array([math.erf(float(item)) for item in host.ravel()], dtype=host.dtype).reshape(host.shape)
    return xp.asarray(values)


def sigmoid(xp: Any, x: Array) -> Array:
    """``1 / (1 + exp(-x))``, written so that no exponential overflows."""
    return 0.5 * (xp.tanh(0.5 * x) + 1.0)


def _gelu(xp: Any, x: Array) -> Array:
    return 0.5 * x * (1.0 + erf(xp, x * math.sqrt(0.5)))


def _gelu_tanh(xp: Any, x: Array) -> Array:
    return 0.5 * x * (1.0 + xp.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


_EXACT: Mapping[str, tuple[str, OpClass, int, Callable[[OpCall], ScaleLaw], Unary]] = {
    "identity": ("the value itself", OpClass.LINEAR, 1, degree(1), lambda xp, x: x),
    "cast": ("the value in another element type", OpClass.LINEAR, 1, degree(1), lambda xp, x: x),
    "stop_gradient": ("the value itself", OpClass.LINEAR, 1, degree(1), lambda xp, x: x),
    "neg": ("the negative", OpClass.LINEAR, -1, degree(1), lambda xp, x: -x),
    "square": ("x * x", OpClass.NONLINEAR, 0, degree(2), lambda xp, x: x * x),
}

_HALF = Fraction(1, 2)
# name: summary, class, sign, scale law, f(0) == 0, flops an element, function
_FLOAT: Mapping[str, tuple[str, OpClass, int, Callable[[OpCall], ScaleLaw], bool, int, Unary]] = {
    "relu": ("max(x, 0)", OpClass.MONOTONE, 1, degree(1), True, 1, lambda xp, x: xp.maximum(x, 0)),
    "abs": ("|x|", OpClass.NONLINEAR, 0, degree(1), True, 1, lambda xp, x: xp.abs(x)),
    "sign": ("-1, 0 or 1", OpClass.MONOTONE, 1, scale_free, True, 1, lambda xp, x: xp.sign(x)),
    "sqrt": ("square root", OpClass.MONOTONE, 1, degree(_HALF), True, 1, lambda xp, x: xp.sqrt(x)),
    "rsqrt": ("1 / sqrt(x)", OpClass.MONOTONE, -1, degree(-_HALF), False, 2, lambda xp, x: 1.0 / xp.sqrt(x)),
    "cbrt": ("cube root", OpClass.MONOTONE, 1, degree(Fraction(1, 3)), True, 1, lambda xp, x: xp.cbrt(x)),
    "reciprocal": ("1 / x", OpClass.NONLINEAR, 0, degree(-1), False, 1, lambda xp, x: 1.0 / x),
    "exp": ("e to the x", OpClass.MONOTONE, 1, unscaled, False, 1, lambda xp, x: xp.exp(x)),
    "exp2": ("2 to the x", OpClass.MONOTONE, 1, unscaled, False, 1, lambda xp, x: xp.exp2(x)),
    "expm1": ("exp(x) - 1", OpClass.MONOTONE, 1, unscaled, True, 1, lambda xp, x: xp.expm1(x)),
    "log": ("natural logarithm", OpClass.MONOTONE, 1, unscaled, False, 1, lambda xp, x: xp.log(x)),
    "log2": ("logarithm to base 2", OpClass.MONOTONE, 1, unscaled, False, 1, lambda xp, x: xp.log2(x)),
    "log1p": ("log(1 + x)", OpClass.MONOTONE, 1, unscaled, True, 1, lambda xp, x: xp.log1p(x)),
    "tanh": ("hyperbolic tangent", OpClass.MONOTONE, 1, unscaled, True, 1, lambda xp, x: xp.tanh(x)),
    "sigmoid": ("1 / (1 + exp(-x))", OpClass.MONOTONE, 1, unscaled, False, 3, sigmoid),
    "softplus": (
        "log(1 + exp(x))",
        OpClass.MONOTONE,
        1,
        unscaled,
        False,
        3,
        lambda xp, x: xp.logaddexp(x, xp.zeros_like(x)),
    ),
    "silu": ("x * sigmoid(x)", OpClass.NONLINEAR, 0, unscaled, True, 4, lambda xp, x: x * sigmoid(xp, x)),
    "gelu": ("x times the normal distribution function", OpClass.NONLINEAR, 0, unscaled, True, 5, _gelu),
    "gelu_tanh": ("gelu by its tanh approximation", OpClass.NONLINEAR, 0, unscaled, True, 8, _gelu_tanh),
    "erf": ("error function", OpClass.MONOTONE, 1, unscaled, True, 1, erf),
    "sin": ("sine", OpClass.NONLINEAR, 0, unscaled, True, 1, lambda xp, x: xp.sin(x)),
    "cos": ("cosine", OpClass.NONLINEAR, 0, unscaled, False, 1, lambda xp, x: xp.cos(x)),
    "tan": ("tangent", OpClass.NONLINEAR, 0, unscaled, True, 1, lambda xp, x: xp.tan(x)),
    "floor": ("greatest integer below", OpClass.MONOTONE, 1, unscaled, True, 1, lambda xp, x: xp.floor(x)),
    "ceil": ("least integer above", OpClass.MONOTONE, 1, unscaled, True, 1, lambda xp, x: xp.ceil(x)),
    "round": ("nearest integer, halves to even", OpClass.MONOTONE, 1, unscaled, True, 1, lambda xp, x: xp.rint(x)),
    "logical_not": ("not x", OpClass.NONLINEAR, 0, unscaled, False, 1, lambda xp, x: xp.logical_not(x)),
    "isfinite": ("neither infinite nor NaN", OpClass.NONLINEAR, 0, scale_free, False, 1, lambda xp, x: xp.isfinite(x)),
}

# name: summary, function; none is linear in a pending operand
_RELATIONS: Mapping[str, tuple[str, Callable[[Any, Array, Array], Array]]] = {
    "equal": ("x == y", lambda xp, x, y: x == y),
    "not_equal": ("x != y", lambda xp, x, y: x != y),
    "less": ("x < y", lambda xp, x, y: x < y),
    "less_equal": ("x <= y", lambda xp, x, y: x <= y),
    "greater": ("x > y", lambda xp, x, y: x > y),
    "greater_equal": ("x >= y", lambda xp, x, y: x >= y),
    "logical_and": ("x and y", lambda xp, x, y: xp.logical_and(x, y)),
    "logical_or": ("x or y", lambda xp, x, y: xp.logical_or(x, y)),
    "logical_xor": ("either x or y", lambda xp, x, y: xp.logical_xor(x, y)),
    "pow": ("x to the y", lambda xp, x, y: xp.power(x, y)),
    "atan2": ("angle of (y, x)", lambda xp, x, y: xp.arctan2(x, y)),
    "remainder": ("remainder with the sign of x", lambda xp, x, y: xp.fmod(x, y)),
}


# -- operators with parameters -----------------------------------------------------------------------------------------


def scale_factor(call: OpCall, rank: int | None) -> Fraction:
    """The constant by which `scale` multiplies on a rank; None: in the undivided program.

    There it is ``c_oracle`` where that is given, 1 where the task is introduced, else ``c``.
    """
    if rank is None:
        given = call.attributes.get("c_oracle")
        if given is not None:
            return rational(given, "c_oracle")
        return Fraction(1) if call.introduced else constant(call, "c")
    own = call.attributes.get("c_by_rank")
    if isinstance(own, Mapping):
        value = cast("Mapping[str, Any]", own).get(str(rank))
        if value is not None:
            return rational(value, f"c_by_rank[{rank}]")
    return constant(call, "c")


def _scale_law(call: OpCall) -> ScaleLaw:
    factor, reference = constant(call, "c"), scale_factor(call, None)
    if factor == reference:
        return Degrees((Fraction(1),))
    return Factor(factor, reference) if reference and factor else Unscaled()


def _scale_signs(call: OpCall) -> tuple[int, ...]:
    factor = constant(call, "c")
    return ((factor > 0) - (factor < 0),)


def _scale(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    return (arithmetic.settle(operands[0] * arithmetic.number(scale_factor(call, place.rank))),)


def _shift(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (arithmetic.settle(operands[0] + arithmetic.number(constant(call, "c"))),)


def _clip(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    low, high = call.attributes.get("low"), call.attributes.get("high")
    result = operands[0]
    if low is not None:
        result = arithmetic.xp.maximum(result, arithmetic.number(rational(low, "low")))
    if high is not None:
        result = arithmetic.xp.minimum(result, arithmetic.number(rational(high, "high")))
    return (result,)


def _clamp(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del call, place
    low, value, high = operands
    return (arithmetic.xp.minimum(arithmetic.xp.maximum(value, low), high),)


def _power(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    exponent = constant(call, "exponent")
    return (arithmetic.xp.power(operands[0], arithmetic.number(exponent)),)


def _power_law(call: OpCall) -> ScaleLaw:
    return Degrees((constant(call, "exponent"),))


def _leaky_relu(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    slope = arithmetic.number(constant(call, "slope", Fraction(1, 100)))
    return (arithmetic.xp.where(operands[0] > 0, operands[0], slope * operands[0]),)


def _where(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del call, place
    mask, yes, no = operands
    return (arithmetic.xp.where(mask.astype(bool), yes, no),)


def _divide(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del call, place
    result = operands[0]
    for divisor in operands[1:]:
        result = result / divisor
    return (result,)


def draw_key(call: OpCall, place: Place) -> tuple[int, ...]:
    """What seeds the random numbers of a rank besides the run's seed: its coordinates on the axes in ``key_axes``."""
    axes = names(call.attributes.get("key_axes", ()), "key_axes")
    return tuple(place.coordinates.get(axis, 0) for axis in axes)


def random_integers(call: OpCall, place: Place, below: int, shape: tuple[int, ...]) -> Array:
    """Whole numbers from 0, drawn from the run's seed and the call's key: exact in floats and modulo a prime alike."""
    import numpy as np

    return np.random.default_rng((place.seed, *draw_key(call, place))).integers(0, below, size=shape)


def _dropout(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    mask = random_integers(call, place, 2, tuple(operands[0].shape))
    return (arithmetic.settle(operands[0] * arithmetic.xp.asarray(mask)),)


def _table() -> list[OpDef]:
    made: list[OpDef] = []
    for name, (summary, kind, sign, law, function) in _EXACT.items():
        made.append(
            OpDef(
                name,
                summary,
                (1, 1),
                kind,
                elementwise,
                law,
                _unary(function),
                _sign(sign),
                (),
                True,
                True,
                parameters=frozenset({"dtype"}) if name == "cast" else frozenset(),
            )
        )
    for name, (summary, kind, sign, law, zero, flops, function) in _FLOAT.items():
        made.append(
            OpDef(
                name,
                summary,
                (1, 1),
                kind,
                elementwise,
                law,
                _unary(function),
                _sign(sign),
                (),
                False,
                zero,
                flops=_flops(flops),
            )
        )
    for name, (summary, relation) in _RELATIONS.items():
        made.append(OpDef(name, summary, (2, 2), OpClass.NONLINEAR, elementwise, unscaled, _binary(relation), _sign(0)))
    return made


def _flops(per_element: int) -> Callable[[OpCall], int | float]:
    def count(call: OpCall) -> int | float:
        return per_element * elements(call.results[0])

    return count


_PARAMETERS = frozenset({"c", "c_oracle", "c_by_rank"})

_MORE: tuple[OpDef, ...] = (
    OpDef("scale", "multiplication by the constant c", (1, 1), OpClass.LINEAR, elementwise, _scale_law, _scale,
          _scale_signs, (), True, True, parameters=_PARAMETERS),
    OpDef("shift", "addition of the constant c", (1, 1), OpClass.MONOTONE, elementwise, unscaled, _shift, _sign(1), (),
          True, parameters=frozenset({"c"})),
    OpDef("add", "sum of the operands", (2, None), OpClass.ADDITIVE, elementwise, equal_scales(),
          _binary(lambda xp, x, y: x + y), _sign(1), (), True, True),
    OpDef("sub", "first operand less the others", (2, None), OpClass.ADDITIVE, elementwise, equal_scales(),
          _binary(lambda xp, x, y: x - y), _sub_signs, (), True, True),
    OpDef("mul", "product of the operands", (2, None), OpClass.MULTILINEAR, elementwise, degree(),
          _binary(lambda xp, x, y: x * y), _sign(0), (), True, True),
    OpDef("div", "quotient", (2, 2), OpClass.MULTILINEAR, elementwise, degree(1, -1), _divide, _sign(0), (1,), False, True),
    OpDef("maximum", "elementwise greatest", (2, None), OpClass.ORDER, elementwise, equal_scales(),
          _binary(lambda xp, x, y: xp.maximum(x, y)), _sign(1), (), False, True),
    OpDef("minimum", "elementwise least", (2, None), OpClass.ORDER, elementwise, equal_scales(),
          _binary(lambda xp, x, y: xp.minimum(x, y)), _sign(1), (), False, True),
    OpDef("power", "x to a constant exponent", (1, 1), OpClass.NONLINEAR, elementwise, _power_law, _power, _sign(0), (), False,
          False, parameters=frozenset({"exponent"})),
    OpDef("leaky_relu", "x, or slope * x below 0", (1, 1), OpClass.MONOTONE, elementwise, degree(1), _leaky_relu, _sign(1),
          (), False, True, parameters=frozenset({"slope"})),
    OpDef("clip", "x kept between low and high", (1, 1), OpClass.MONOTONE, elementwise, unscaled, _clip, _sign(1), (),
          parameters=frozenset({"low", "high"})),
    OpDef("clamp", "x kept between two tensors: low, x, high", (3, 3), OpClass.NONLINEAR, elementwise, equal_scales(), _clamp,
          _sign(1)),
    OpDef("select", "the second operand where the first is true, else the third", (3, 3), OpClass.ADDITIVE, elementwise,
          equal_scales(1, 2), _where, lambda call: (0, 1, 1), (0,), False, True),
    OpDef("dropout", "the value with random elements put to zero", (1, 1), OpClass.LINEAR, elementwise, degree(1), _dropout,
          _sign(1), (), True, True, source=SourceKind.RANDOM, parameters=frozenset({"key_axes", "rate"})),
)  # fmt: skip

OPS: tuple[tuple[str, OpDef], ...] = tuple(("core", operator) for operator in (*_table(), *_MORE))
