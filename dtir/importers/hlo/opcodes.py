"""Known HLO opcodes, and the shapes of results where the text leaves them out.

Source of the list: the public HLO opcode table (openxla/xla, xla/hlo/ir/hlo_opcode.h).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtir.importers.hlo.attributes import AttributeValue
from dtir.importers.hlo.shapes import ArrayShape, Shape, TupleShape


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNARY = _words(
    "abs acos acosh asin asinh atanh cbrt ceil copy cosh cosine count-leading-zeros erf exponential "
    "exponential-minus-one floor log log-plus-one logistic negate not opt-barrier popcnt reduce-precision "
    "round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh domain optimization-barrier"
)
BINARY = _words(
    "add and atan2 divide maximum minimum multiply or power remainder shift-left shift-right-arithmetic "
    "shift-right-logical subtract xor stochastic-convert add-dependency"
)
COLLECTIVES = _words(
    "all-gather all-reduce all-to-all collective-broadcast collective-permute ragged-all-to-all reduce-scatter"
)
NATIVE_STARTS = _words("all-gather all-reduce collective-permute copy async")
"""Ops whose `-start` is an opcode of its own; any other `X-start` is short for `async-start` around an X."""

KNOWN = (
    UNARY
    | BINARY
    | COLLECTIVES
    | {f"{name}-{part}" for name in NATIVE_STARTS for part in ("start", "done")}
    | _words(
        "after-all async-update batch-norm-grad batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast "
        "call cholesky clamp compare complex concatenate conditional constant convert convolution custom-call dot "
        "dynamic-reshape dynamic-slice dynamic-update-slice fft fusion gather get-dimension-size get-tuple-element imag "
        "infeed iota is-finite map outfeed pad parameter partition-id ragged-dot real recv recv-done reduce "
        "reduce-window replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state scaled-dot scan "
        "scatter select select-and-scatter send send-done set-dimension-size slice sort topk transpose "
        "triangular-solve tuple while"
    )
)

_NEVER_WRAPPED = NATIVE_STARTS | {"send", "recv", "parameter", "constant", "tuple", "get-tuple-element"}

OPERAND_COUNTS: dict[str, int] = {
    **dict.fromkeys(UNARY, 1),
    **dict.fromkeys(BINARY, 2),
    **dict.fromkeys(
        _words(
            "all-gather-done all-reduce-done bitcast bitcast-convert broadcast collective-permute-done convert copy-done "
            "copy-start fft get-dimension-size get-tuple-element imag is-finite real recv recv-done reshape reverse "
            "send-done slice topk transpose while"
        ),
        1,
    ),
    **dict.fromkeys(
        _words("compare complex convolution gather outfeed pad send set-dimension-size triangular-solve"), 2
    ),
    **dict.fromkeys(_words("clamp select select-and-scatter"), 3),
    **dict.fromkeys(_words("iota partition-id replica-id rng-get-and-update-state"), 0),
    "ragged-all-to-all": 6,
}
"""Operands of opcodes that always take the same number."""


def wrapped_opcode(opcode: str) -> tuple[str, str] | None:
    """(X, start|update|done) of `X-start`, `X-update` or `X-done` that is short for an async op around a known X.

    >>> wrapped_opcode("reduce-scatter-start"), wrapped_opcode("all-reduce-start"), wrapped_opcode("slice-done")
    (('reduce-scatter', 'start'), None, ('slice', 'done'))
    """
    for part in ("start", "update", "done"):
        suffix = f"-{part}"
        if opcode.endswith(suffix):
            inner = opcode.removesuffix(suffix)
            if inner in KNOWN and opcode not in KNOWN and inner not in _NEVER_WRAPPED:
                return inner, part
    return None


def infer_shape(opcode: str, operands: Sequence[Shape], attributes: Mapping[str, AttributeValue]) -> Shape | None:
    """The result shape of an instruction that states none, where it follows from the operands alone."""
    if opcode == "tuple":
        return TupleShape(tuple(operands))
    if not operands:
        return ArrayShape("token", ()) if opcode == "after-all" else None
    first = operands[0]
    if opcode == "get-tuple-element":
        index = attributes.get("index")
        if isinstance(first, TupleShape) and isinstance(index, int) and 0 <= index < len(first.elements):
            return first.elements[index]
        return None
    if opcode in UNARY or opcode in BINARY or opcode in ("while", "dynamic-update-slice", "all-reduce"):
        return first if opcode != "all-reduce" or len(operands) == 1 else TupleShape(tuple(operands))
    if opcode == "after-all":
        return ArrayShape("token", ())
    if opcode in ("select", "clamp") and len(operands) == 3:
        return operands[1]
    if opcode in ("compare", "is-finite") and isinstance(first, ArrayShape):
        return replace(first, dtype="pred", layout="")
    return None
