"""tt-mlir's TTIR: operations that say what StableHLO's say under other names. The rest stays opaque.

Source: the public TTIR dialect (tenstorrent/tt-mlir, include/ttmlir/Dialect/TTIR/IR/TTIROps.td).
"""

from __future__ import annotations

from dtir.importers.hlo.attributes import AttributeValue, Slices
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.literals import literal
from dtir.importers.stablehlo.ops_tensor import dims, number, take
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import integer, ints
from dtir.importers.stablehlo.views import View

_SAME = {
    "abs": "abs", "add": "add", "cos": "cosine", "div": "divide", "exp": "exponential", "expm1": "exponential-minus-one",
    "floor": "floor", "log": "log", "log1p": "log-plus-one", "maximum": "maximum", "minimum": "minimum",
    "multiply": "multiply", "neg": "negate", "pow": "power", "remainder": "remainder", "rsqrt": "rsqrt",
    "sigmoid": "logistic", "sign": "sign", "sin": "sine", "sqrt": "sqrt", "subtract": "subtract", "tan": "tan",
    "tanh": "tanh", "where": "select", "typecast": "convert", "logical_not": "not", "logical_and": "and",
    "logical_or": "or", "logical_xor": "xor", "isfinite": "is-finite", "erf": "erf", "ceil": "ceil", "cbrt": "cbrt",
}  # fmt: skip
_COMPARED = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


def _plain(opcode: str) -> Handler:
    def translate(translator: Translator, builder: Builder, view: View) -> None:
        take(view, "conservative_folding")
        translator.emit(builder, view, opcode)

    return translate


def _compare(direction: str) -> Handler:
    def translate(translator: Translator, builder: Builder, view: View) -> None:
        translator.emit(builder, view, "compare", {"direction": direction})

    return translate


def _constant(translator: Translator, builder: Builder, view: View) -> None:
    shape = view.result_shapes[0] if view.result_shapes else None
    found = literal(take(view, "value") or "", shape) if isinstance(shape, ArrayShape) else None
    if found is None:
        raise HloSyntaxError("a constant has no values of its type", 0, "mlir.literal")
    translator.emit(builder, view, "constant", operands=(), literal=found)


def _reshape(translator: Translator, builder: Builder, view: View) -> None:
    take(view, "shape")
    translator.emit(builder, view, "reshape")


def _broadcast(translator: Translator, builder: Builder, view: View) -> None:
    """Dims of size 1 are repeated; the number of dims stays."""
    take(view, "broadcast_dimensions")
    shape = view.result_shapes[0] if view.result_shapes else None
    rank = len(shape.dims) if isinstance(shape, ArrayShape) else 0
    translator.emit(builder, view, "broadcast", {"dimensions": tuple(range(rank))})


def _permute(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "transpose", {"dimensions": dims(view, "permutation")})


def _concat(translator: Translator, builder: Builder, view: View) -> None:
    dim = number(view, "dim")
    shape = view.result_shapes[0] if view.result_shapes else None
    rank = len(shape.dims) if isinstance(shape, ArrayShape) else 1
    translator.emit(builder, view, "concatenate", {"dimensions": (dim % rank if rank else 0,)})


def _slice(translator: Translator, builder: Builder, view: View) -> None:
    starts, limits = dims(view, "begins"), dims(view, "ends")
    strides = ints(take(view, "step")) or (1,) * len(starts)
    translator.emit(builder, view, "slice", {"slice": Slices(starts, limits, strides)})


def _dot(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {}
    for side in ("lhs", "rhs"):
        batch = ints(take(view, f"batch_dims_{side}"))
        if batch:
            attributes[f"{side}_batch_dims"] = batch
        attributes[f"{side}_contracting_dims"] = dims(view, f"contract_dims_{side}")
    translator.emit(builder, view, "dot", attributes)


def _arange(translator: Translator, builder: Builder, view: View) -> None:
    """Whole numbers from 0 in steps of 1 are an iota; others stay opaque."""
    if integer(view.attribute("start")) == 0 and integer(view.attribute("step")) == 1:
        for name in ("start", "step", "end"):
            take(view, name)
        translator.emit(builder, view, "iota", {"iota_dimension": number(view, "arange_dimension")})
    else:
        translator.unknown(builder, view)


HANDLERS: dict[str, Handler] = {
    **{f"ttir.{name}": _plain(opcode) for name, opcode in _SAME.items()},
    **{f"ttir.{name}": _compare(direction) for name, direction in _COMPARED.items()},
    "ttir.constant": _constant,
    "ttir.reshape": _reshape,
    "ttir.broadcast": _broadcast,
    "ttir.permute": _permute,
    "ttir.concat": _concat,
    "ttir.slice_static": _slice,
    "ttir.dot_general": _dot,
    "ttir.arange": _arange,
}
