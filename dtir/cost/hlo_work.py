"""Flops and memory traffic of HLO operations.

| operations | flops | bytes |
|---|---|---|
| dot, convolution | 2 an element of the result and contracted element (matrix) | operands and results |
| elementwise | 1 an element of the result | operands and results |
| reduce, reduce-window, map, sort, ... | those of the applied computation, as often as it is applied | operands and results |
| copy, transpose, broadcast, concatenate, pad, ... | none | operands and results |
| slice, dynamic-slice, gather | none | what is taken, read and written |
| dynamic-update-slice, scatter | none (scatter: those of its computation) | the update, read and written in place |
| bitcast, reshape, tuple, constant, parameter, annotations, ... | none | none: no work at run time |
| fusion | those of its computation | what its operands are read for and its results; nothing in between |

A reshape moves nothing: compilers print a copy where one does. Anything else (custom calls, host transfers) is unknown.

**Source**: the operations' semantics (openxla.org/xla/operation_semantics); the counting of fused traffic follows the idea
of XLA's HloCostAnalysis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dtir.cost.work import FREE, Number, Typed, Work, unknown


@dataclass(frozen=True, slots=True)
class HloUse:
    """One HLO operation on one rank.

    Args:
        opcode: as HLO names it.
        operands, results: local arrays.
        attributes: of the task (``hlo.dimensions``, ...).
        applied: flops of one application of a computation, by its name; None when it is not known.
    """

    opcode: str
    operands: tuple[Typed, ...]
    results: tuple[Typed, ...]
    attributes: Mapping[str, Any]
    applied: Callable[[str], Number | None]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FREE_OPS = _words(
    "parameter constant tuple get-tuple-element bitcast reshape after-all opt-barrier optimization-barrier domain "
    "add-dependency partition-id replica-id get-dimension-size"
)
"""Nothing is done at run time."""

ALIASES = _words("bitcast reshape opt-barrier optimization-barrier domain add-dependency")
"""The result is the operand, seen in another way."""

IN_PLACE = _words("dynamic-update-slice scatter")
"""The result takes the place of the first operand where nobody else needs that."""

ANNOTATIONS = _words(
    "Sharding SPMDFullToShardShape SPMDShardToFullShape annotate_device_placement LayoutConstraint "
    "xla.sdy.FuncResultSharding xla.sdy.Sharding xla.sdy.GlobalToLocalShape xla.sdy.LocalToGlobalShape"
)
"""Targets of custom calls that only say something."""

_ELEMENTWISE = _words(
    "abs acos acosh add and asin asinh atan2 atanh cbrt ceil clamp clz compare complex convert cos cosh cosine "
    "count-leading-zeros divide erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic "
    "maximum minimum multiply negate not or popcnt power real reduce-precision remainder round-nearest-afz "
    "round-nearest-even rsqrt select shift-left shift-right-arithmetic shift-right-logical sign sine sinh sqrt "
    "stochastic-convert subtract tan tanh xor rng rng-bit-generator rng-get-and-update-state"
)
_MOVING = _words(
    "bitcast-convert broadcast concatenate copy iota pad reverse transpose set-dimension-size dynamic-reshape"
)
_TAKING = _words("slice dynamic-slice gather")


def hlo_work(use: HloUse) -> Work:
    """The work of one operation outside a fusion."""
    opcode = use.opcode
    if opcode in FREE_OPS or opcode.endswith("-done"):
        return FREE
    if opcode == "custom-call":
        return _custom_call(use)
    flops = hlo_flops(use)
    if isinstance(flops, str):
        return unknown(flops)
    matrix, vector = flops
    return Work(matrix, vector, traffic(use), _rate_dtype(use), f"hlo.{opcode}")


def _custom_call(use: HloUse) -> Work:
    target = str(use.attributes.get("hlo.custom_call_target", ""))
    if target in ANNOTATIONS:
        return FREE
    if target == "TopK":
        return Work(0, _elements(use.operands[:1]), traffic(use), _rate_dtype(use), "hlo.topk")
    return unknown(f"custom call {target or '(no target)'}")


def _rate_dtype(use: HloUse) -> str:
    """The element type that decides the rate: of what is multiplied or read, else of what is made."""
    arrays = (*use.operands, *use.results)
    return arrays[0].dtype if arrays else "f32"


Flops: TypeAlias = tuple[Number, Number]
"""Of matrix products, and others."""


def hlo_flops(use: HloUse) -> Flops | str:
    """Flops of one operation, or why they are not known."""
    opcode = use.opcode
    if opcode in _ELEMENTWISE:
        return 0, _elements(use.results[:1])
    if opcode in FREE_OPS or opcode in _MOVING or opcode in _TAKING or opcode.endswith("-done"):
        return 0, 0
    function = _FLOPS.get(opcode)
    if function is None:
        return f"operation hlo.{opcode}"
    return function(use)


def _elements(arrays: Sequence[Typed]) -> Number:
    return sum([array.elements for array in arrays])


def _all_bytes(arrays: Sequence[Typed]) -> Number:
    return sum([array.size_bytes for array in arrays])


def traffic(use: HloUse) -> Number:
    """Bytes that one operation outside a fusion reads and writes."""
    opcode = use.opcode
    if opcode in _TAKING:
        return 2 * _all_bytes(use.results) + (_all_bytes(use.operands[1:]) if opcode == "gather" else 0)
    if opcode == "dynamic-update-slice":
        return 2 * _all_bytes(use.operands[1:2])
    if opcode == "scatter":
        # Operands: the arrays, the indices, as many updates. What is updated is read, too.
        count = len(use.operands) // 2
        return 3 * _all_bytes(use.operands[count + 1 :]) + _all_bytes(use.operands[count : count + 1])
    return _all_bytes(use.operands) + _all_bytes(use.results)


# -- flops by opcode --------------------------------------------------------------------------------------------------


def _dims(use: HloUse, key: str) -> tuple[int, ...]:
    value = use.attributes.get(f"hlo.{key}", ())
    found = (value,) if isinstance(value, int) else value
    return tuple(item for item in found if isinstance(item, int))


def _dot(use: HloUse) -> Flops | str:
    left = use.operands[0].extents
    contracted = math.prod(left[dim] for dim in _dims(use, "lhs_contracting_dims") if dim < len(left))
    return 2 * _elements(use.results) * contracted, 0


def _ragged_dot(use: HloUse) -> Flops | str:
    return 2 * _elements(use.results) * (use.operands[0].extents or (1,))[-1], 0


def _convolution(use: HloUse) -> Flops | str:
    labels = str(use.attributes.get("hlo.dim_labels", ""))
    kernel = labels.partition("_")[2].partition("->")[0]
    if "o" not in kernel or len(kernel) != len(use.operands[1].extents):
        return f"convolution with dim_labels {labels!r}"
    outputs = use.operands[1].extents[kernel.index("o")]
    taps = _elements(use.operands[1:2]) / outputs if outputs else 0
    return 2 * _elements(use.results) * taps, 0


def _applied(use: HloUse, times: Number) -> Flops | str:
    name = use.attributes.get("hlo.to_apply", use.attributes.get("hlo.scatter", use.attributes.get("hlo.calls")))
    each = use.applied(name) if isinstance(name, str) else None
    return (0, each * times) if each is not None else f"the computation that hlo.{use.opcode} applies"


def _reduce(use: HloUse) -> Flops | str:
    taken = _elements(use.operands[:1]) - _elements(use.results[:1])
    return _applied(use, max(0, taken))


def _window_taps(use: HloUse) -> Number:
    window: Any = use.attributes.get("hlo.window")
    sizes = window.get("size", ()) if isinstance(window, Mapping) else ()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return math.prod(int(item) for item in sizes)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _reduce_window(use: HloUse) -> Flops | str:
    return _applied(use, _elements(use.results[:1]) * max(0, _window_taps(use) - 1))


def _select_and_scatter(use: HloUse) -> Flops | str:
    return 0, _elements(use.operands[1:2]) * (_window_taps(use) + 1)


def _map(use: HloUse) -> Flops | str:
    return _applied(use, _elements(use.results[:1]))


def _scatter(use: HloUse) -> Flops | str:
    count = len(use.operands) // 2
    return _applied(use, _elements(use.operands[count + 1 : count + 2]))


def _sort(use: HloUse) -> Flops | str:
    dims = _dims(use, "dimensions")
    extents = use.operands[0].extents
    length = extents[dims[0]] if dims and dims[0] < len(extents) else _elements(use.operands[:1])
    return _applied(use, _elements(use.operands[:1]) * max(1, math.ceil(math.log2(max(2, length)))))


def _top_k(use: HloUse) -> Flops | str:
    return 0, _elements(use.operands[:1])


def _fft(use: HloUse) -> Flops | str:
    length = math.prod(_dims(use, "fft_length")) or 2
    return 0, 5 * _elements(use.operands[:1]) * math.log2(max(2, length))


def _cholesky(use: HloUse) -> Flops | str:
    extents = use.operands[0].extents
    return _elements(use.operands[:1]) * extents[-1] / 3, 0


def _triangular_solve(use: HloUse) -> Flops | str:
    return _elements(use.operands[1:2]) * use.operands[0].extents[-1], 0


def _batch_norm(use: HloUse) -> Flops | str:
    # Mean, variance, scale and shift: about 8 an element; the gradient twice as many.
    return 0, (16 if use.opcode == "batch-norm-grad" else 8) * _elements(use.operands[:1])


_FLOPS: Mapping[str, Callable[[HloUse], Flops | str]] = {
    "dot": _dot,
    "scaled-dot": _dot,
    "ragged-dot": _ragged_dot,
    "convolution": _convolution,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "map": _map,
    "scatter": _scatter,
    "dynamic-update-slice": lambda use: (0, 0),
    "sort": _sort,
    "topk": _top_k,
    "fft": _fft,
    "cholesky": _cholesky,
    "triangular-solve": _triangular_solve,
    "batch-norm-training": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-grad": _batch_norm,
}


# -- what a fusion reads ----------------------------------------------------------------------------------------------


def read_bytes(
    opcode: str, position: int, operand: Typed, results: Sequence[Typed], operands: Sequence[Typed]
) -> Number:
    """Bytes of an operand that an operation inside a fusion reads: what it takes of it, not all of it.

    Args:
        opcode: of the operation.
        position: which operand it is.
        operand, results, operands: local arrays.
    """
    whole = operand.size_bytes
    if opcode in _TAKING and position == 0:
        return min(whole, _all_bytes(results[:1]))
    if opcode == "dynamic-update-slice" and position == 0:
        return 0
    if opcode == "scatter" and position < len(operands) // 2:
        return min(whole, _all_bytes(operands[len(operands) // 2 + 1 :]))
    return whole


def written_bytes(opcode: str, result: Typed, operands: Sequence[Typed]) -> Number:
    """Bytes that the last operation of a fusion writes: an update in place writes the update."""
    if opcode == "dynamic-update-slice" and len(operands) > 1:
        return min(result.size_bytes, operands[1].size_bytes)
    if opcode == "scatter":
        return min(result.size_bytes, _all_bytes(operands[len(operands) // 2 + 1 :]))
    return result.size_bytes
