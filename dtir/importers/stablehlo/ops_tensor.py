"""Operations on tensors: constants, shapes, slices, contractions, gathers.

Attribute names of both forms are those of the StableHLO specification (openxla/stablehlo, docs/spec.md).
"""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Padding, Raw, Slices
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.lists import closing, entries, split
from dtir.importers.stablehlo.literals import literal
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import boolean, integer, ints
from dtir.importers.stablehlo.views import View

_SLICE = re.compile(r"(-?\d{1,18}):(-?\d{1,18})(?::(-?\d{1,18}))?")
_DENSE = re.compile(r"\b(?:dense(?:_resource)?<|sparse<|#stablehlo\.elided)")


def take(view: View, *names: str) -> str | None:
    """The text of the first of these attributes that is there; it is then said by what is made of it."""
    for name in names:
        if name in view.attributes:
            text = view.attribute(name)
            del view.attributes[name]
            return text
    return None


def dims(view: View, clause: str, *names: str) -> tuple[int, ...]:
    """A list of integers: ``clause = [..]`` of the pretty form, or one of the attributes; raises without either."""
    found = view.numbers(clause) if not view.operation.generic else None
    if found is None:
        found = ints(take(view, *names, clause))
    if found is None:
        raise HloSyntaxError(f"needs the list '{clause}'", 0, "mlir.missing_attribute")
    return found


def number(view: View, clause: str, *names: str) -> int:
    """One integer: ``clause = 1`` of the pretty form, or one of the attributes; raises without either."""
    match = re.search(rf"\b{clause}\s*=\s*(-?\d{{1,18}})", view.pretty) if not view.operation.generic else None
    found = int(match.group(1)) if match is not None else integer(take(view, *names, clause))
    if found is None:
        raise HloSyntaxError(f"needs the integer '{clause}'", 0, "mlir.missing_attribute")
    return found


def word(view: View, *names: str) -> str | None:
    """The word of an enumeration: the last one of ``#stablehlo<comparison_direction LT>``, or a bare one."""
    text = take(view, *names)
    found = re.findall(r"\w+", text) if text is not None else []
    return found[-1] if found else None


def _constant(translator: Translator, builder: Builder, view: View) -> None:
    text = take(view, "value")
    if text is None:
        match = _DENSE.search(view.head)
        if match is None:
            raise HloSyntaxError("a constant has no values", 0, "mlir.literal")
        text = view.head[match.start() :]
    shapes = view.result_shapes
    if not shapes:
        raise HloSyntaxError("a constant has no type", 0, "mlir.result_types")
    shape = shapes[0]
    found = literal(text, shape) if isinstance(shape, ArrayShape) else None
    if found is None:
        raise HloSyntaxError(f"'{text[:40]}' is not a constant of its type", 0, "mlir.literal")
    translator.emit(builder, view, "constant", operands=(), literal=found)


def _broadcast_in_dim(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "broadcast", {"dimensions": dims(view, "dims", "broadcast_dimensions")})


def _broadcast(translator: Translator, builder: Builder, view: View) -> None:
    sizes = dims(view, "sizes", "broadcast_sizes")
    (shape,) = view.result_shapes
    rank = len(shape.dims) if isinstance(shape, ArrayShape) else 0
    translator.emit(builder, view, "broadcast", {"dimensions": tuple(range(len(sizes), rank))})


def _iota(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "iota", {"iota_dimension": number(view, "dim", "iota_dimension")})


def _transpose(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "transpose", {"dimensions": dims(view, "dims", "permutation")})


def _reverse(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "reverse", {"dimensions": dims(view, "dims", "dimensions")})


def _concatenate(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "concatenate", {"dimensions": (number(view, "dim", "dimension"),)})


def _slice(translator: Translator, builder: Builder, view: View) -> None:
    if view.operation.generic:
        starts, limits = dims(view, "start_indices"), dims(view, "limit_indices")
        strides = ints(take(view, "strides")) or (1,) * len(starts)
    else:
        start = view.head.find("[")
        parts = split(view.head[start + 1 : closing(view.head, start) - 1]) if start >= 0 else []
        found = [_SLICE.fullmatch(part.replace(" ", "")) for part in parts]
        if start < 0 or any(match is None for match in found):
            raise HloSyntaxError("needs ranges such as [0:4, 2:8:2]", 0, "mlir.missing_attribute")
        triples = [match.groups() for match in found if match is not None]
        starts = tuple(int(first) for first, _, _ in triples)
        limits = tuple(int(limit) for _, limit, _ in triples)
        strides = tuple(int(stride or 1) for _, _, stride in triples)
    translator.emit(builder, view, "slice", {"slice": Slices(starts, limits, strides)})


def _dynamic_slice(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "dynamic-slice", {"dynamic_slice_sizes": dims(view, "sizes", "slice_sizes")})


def _dynamic_update_slice(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "dynamic-update-slice")


def _pad(translator: Translator, builder: Builder, view: View) -> None:
    padding = Padding(
        dims(view, "low", "edge_padding_low"),
        dims(view, "high", "edge_padding_high"),
        dims(view, "interior", "interior_padding"),
    )
    translator.emit(builder, view, "pad", {"padding": padding})


def _compare(translator: Translator, builder: Builder, view: View) -> None:
    if view.operation.generic:
        direction, kind = word(view, "comparison_direction"), word(view, "compare_type")
    else:
        words = re.findall(r"\b[A-Z]{2,}\b", re.sub(r"\{.*\}", "", view.head))
        direction, kind = (words[0] if words else None), (words[1] if len(words) > 1 else None)
    if direction not in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        raise HloSyntaxError("needs a direction such as LT", 0, "mlir.missing_attribute")
    attributes: dict[str, AttributeValue] = {"direction": direction}
    if kind not in (None, "NOTYPE"):
        attributes["type"] = kind or ""
    translator.emit(builder, view, "compare", attributes)


def _pair_clause(view: View, name: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """``name = [0] x [1, 2]`` of a pretty form."""
    match = re.search(rf"\b{name}\s*=\s*\[([\d,\s]*)\]\s*x\s*\[([\d,\s]*)\]", view.pretty)
    if match is None:
        return None
    left, right = (tuple(int(part) for part in text.split(",") if part.strip()) for text in match.groups())
    return left, right


def _dot_general(translator: Translator, builder: Builder, view: View) -> None:
    numbers = take(view, "dot_dimension_numbers")
    if numbers is not None:
        start = numbers.find("<")
        stated = entries(numbers[start + 1 : closing(numbers, start) - 1])
        batch = (_listed(stated, "lhs_batching_dimensions"), _listed(stated, "rhs_batching_dimensions"))
        contracted = (_listed(stated, "lhs_contracting_dimensions"), _listed(stated, "rhs_contracting_dimensions"))
    else:
        batch = _pair_clause(view, "batching_dims") or ((), ())
        contracted = _pair_clause(view, "contracting_dims") or ((), ())
    attributes: dict[str, AttributeValue] = {}
    for side, dims_of in (("lhs", 0), ("rhs", 1)):
        if batch[dims_of]:
            attributes[f"{side}_batch_dims"] = batch[dims_of]
        attributes[f"{side}_contracting_dims"] = contracted[dims_of]
    _precision(view, attributes)
    translator.emit(builder, view, "dot", attributes)


def _dot(translator: Translator, builder: Builder, view: View) -> None:
    left, _ = (builder.shape(ssa) for ssa in view.operands)
    rank = len(left.dims) if isinstance(left, ArrayShape) else 1
    attributes: dict[str, AttributeValue] = {
        "lhs_contracting_dims": (max(rank - 1, 0),),
        "rhs_contracting_dims": (0,),
    }
    _precision(view, attributes)
    translator.emit(builder, view, "dot", attributes)


def _precision(view: View, attributes: dict[str, AttributeValue]) -> None:
    text = take(view, "precision_config", "precision") or view.clause("precision")
    words = [found for found in re.findall(r"\b(DEFAULT|HIGH|HIGHEST)\b", text or "") if found != "DEFAULT"]
    if words:
        attributes["operand_precision"] = Raw("{" + ",".join(found.lower() for found in words) + "}")


def _listed(stated: dict[str, str], name: str) -> tuple[int, ...]:
    return ints(stated.get(name)) or ()


def _gather(translator: Translator, builder: Builder, view: View) -> None:
    numbers = take(view, "dimension_numbers") or ""
    stated = entries(numbers[numbers.find("<") + 1 : -1])
    attributes: dict[str, AttributeValue] = {
        "offset_dims": _listed(stated, "offset_dims"),
        "collapsed_slice_dims": _listed(stated, "collapsed_slice_dims"),
        "start_index_map": _listed(stated, "start_index_map"),
        "index_vector_dim": integer(stated.get("index_vector_dim")) or 0,
        "slice_sizes": dims(view, "slice_sizes"),
    }
    for name in ("operand_batching_dims", "start_indices_batching_dims"):
        if name in stated:
            attributes[name] = _listed(stated, name)
    if boolean(take(view, "indices_are_sorted")):
        attributes["indices_are_sorted"] = True
    translator.emit(builder, view, "gather", attributes)


def _reduce_precision(translator: Translator, builder: Builder, view: View) -> None:
    match = re.search(r"\bformat\s*=\s*e(\d{1,3})m(\d{1,3})", view.pretty)
    if match is not None:
        exponent, mantissa = int(match.group(1)), int(match.group(2))
    else:
        exponent, mantissa = number(view, "exponent_bits"), number(view, "mantissa_bits")
    translator.emit(builder, view, "reduce-precision", {"exponent_bits": exponent, "mantissa_bits": mantissa})


def _plain(opcode: str) -> Handler:
    def translate(translator: Translator, builder: Builder, view: View) -> None:
        translator.emit(builder, view, opcode)

    return translate


def _sized(opcode: str) -> Handler:
    """``get_dimension_size`` and its like: the dim that they speak of."""

    def translate(translator: Translator, builder: Builder, view: View) -> None:
        translator.emit(builder, view, opcode, {"dimensions": (number(view, "dim", "dimension"),)})

    return translate


def _rng_bits(translator: Translator, builder: Builder, view: View) -> None:
    algorithm = word(view, "rng_algorithm")
    if algorithm is None:
        match = re.search(r"\balgorithm\s*=\s*(\w+)", view.pretty)
        algorithm = match.group(1) if match is not None else "DEFAULT"
    translator.emit(builder, view, "rng-bit-generator", {"algorithm": f"rng_{algorithm.lower()}"})


def _rng(translator: Translator, builder: Builder, view: View) -> None:
    distribution = word(view, "rng_distribution")
    if distribution is None:
        match = re.search(r"\bdistribution\s*=\s*(\w+)", view.pretty)
        distribution = match.group(1) if match is not None else "UNIFORM"
    translator.emit(builder, view, "rng", {"distribution": f"rng_{distribution.lower()}"})


def _cholesky(translator: Translator, builder: Builder, view: View) -> None:
    lower = "lower = true" in view.pretty or boolean(take(view, "lower"))
    translator.emit(builder, view, "cholesky", {"lower": lower})


def _triangular_solve(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {
        name: boolean(take(view, name)) for name in ("left_side", "lower", "unit_diagonal")
    }
    attributes["transpose_a"] = word(view, "transpose_a") or "NO_TRANSPOSE"
    translator.emit(builder, view, "triangular-solve", attributes)


def _fft(translator: Translator, builder: Builder, view: View) -> None:
    kind = word(view, "fft_type")
    if kind is None:
        match = re.search(r"\btype\s*=\s*(\w+)", view.pretty)
        kind = match.group(1) if match is not None else "FFT"
    translator.emit(builder, view, "fft", {"fft_type": kind, "fft_length": dims(view, "length", "fft_length")})


def _batch_norm(opcode: str) -> Handler:
    def translate(translator: Translator, builder: Builder, view: View) -> None:
        epsilon = (take(view, "epsilon") or "0").split(":")[0].strip()
        try:
            small = float(epsilon)
        except ValueError:
            small = 0.0
        attributes: dict[str, AttributeValue] = {"epsilon": small, "feature_index": number(view, "feature_index")}
        translator.emit(builder, view, opcode, attributes)

    return translate


def _top_k(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "topk", {"k": number(view, "k"), "largest": True})


HANDLERS: dict[str, Handler] = {
    "stablehlo.constant": _constant,
    "sdy.constant": _constant,
    "arith.constant": _constant,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.iota": _iota,
    "stablehlo.reshape": _plain("reshape"),
    "stablehlo.bitcast_convert": _plain("bitcast-convert"),
    "stablehlo.copy": _plain("copy"),
    "stablehlo.partition_id": _plain("partition-id"),
    "stablehlo.replica_id": _plain("replica-id"),
    "stablehlo.transpose": _transpose,
    "stablehlo.reverse": _reverse,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.pad": _pad,
    "stablehlo.compare": _compare,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dot": _dot,
    "stablehlo.gather": _gather,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.get_dimension_size": _sized("get-dimension-size"),
    "stablehlo.set_dimension_size": _sized("set-dimension-size"),
    "stablehlo.rng_bit_generator": _rng_bits,
    "stablehlo.rng": _rng,
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
    "stablehlo.fft": _fft,
    "stablehlo.batch_norm_inference": _batch_norm("batch-norm-inference"),
    "stablehlo.batch_norm_training": _batch_norm("batch-norm-training"),
    "stablehlo.batch_norm_grad": _batch_norm("batch-norm-grad"),
    "chlo.top_k": _top_k,
}
