"""HLO opcodes as operators of the dialect ``hlo``: labels, pending class, scale law and flops, from the attributes that the importer keeps.

Parameters are the facts ``hlo.<attribute>`` by their plain names (``dimensions``, ``lhs_contracting_dims``, ...). There is no
`run` here: modules are evaluated as a whole, regions and literals included, by the executors. An opcode that depends on a
computation of its own (``reduce``, ``map``, ``scatter``, ``sort``) is not known to be linear, so its dims are whole.

The table is not part of the registry. Before partitioning, the operations of a module are steps of one undivided program: their
layouts are wishes, and the compiler puts the communication in later, so that judging them as steps of ranks finds faults in
right programs. Who knows that a module is partitioned (``hlo.form: per_device``) asks `HLO_OPS`.

Source: the operations' semantics (openxla.org/xla/operation_semantics).

>>> contracted = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
>>> rule = HLO_OPS["dot"].labels(OpCall(((4, 8), (8, 6)), ((4, 6),), contracted))
>>> rule.operands, rule.results
((('l0', 'c0'), ('c0', 'r1')), (('l0', 'r1'),))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from dtir.ops.opdef import (
    Fold,
    Label,
    LabelRule,
    Labels,
    OpCall,
    OpClass,
    OpDef,
    OpError,
    ScaleLaw,
    SourceKind,
    elements,
    no_signs,
)
from dtir.ops.parameters import checked_dim, integers
from dtir.ops.rules import degree, elementwise, equal_scales, named_dims, regroup, scale_free, shape_text, unscaled


def _dims(call: OpCall, name: str) -> tuple[int, ...]:
    value = call.attributes.get(name)
    return () if value is None else integers(value, name)


def _whole_tensors(call: OpCall) -> LabelRule:
    """Every dim must be whole, and operands share no label with results."""
    operands = tuple(named_dims(len(shape), f"o{index}_") for index, shape in enumerate(call.operands))
    results = tuple(named_dims(len(shape), f"r{index}_") for index, shape in enumerate(call.results))
    whole = frozenset(label for labels in (*operands, *results) for label in labels)
    return Labels(operands, results, MappingProxyType({}), whole)


def _pointwise(call: OpCall) -> LabelRule:
    """Operands of the result's shape, or scalars (the predicate of a select, the bounds of a clamp)."""
    return elementwise(call)


def _dot(call: OpCall) -> LabelRule:
    """Result dims are the batch dims, the free dims of the left operand, those of the right."""
    left, right = call.operands
    contracted = _pairs(call, "contracting")
    batch = _pairs(call, "batch")
    a: list[str] = [f"l{dim}" for dim in range(len(left))]
    b: list[str] = [f"r{dim}" for dim in range(len(right))]
    for prefix, pairs in (("c", contracted), ("b", batch)):
        for number, (mine, theirs) in enumerate(pairs):
            mine, theirs = checked_dim(mine, len(left)), checked_dim(theirs, len(right))
            if left[mine] != right[theirs]:
                raise OpError(f"dims {mine} and {theirs} of {shape_text(left)} and {shape_text(right)} do not meet")
            a[mine] = b[theirs] = f"{prefix}{number}"
    result = (
        *(f"b{number}" for number in range(len(batch))),
        *(label for label in a if label.startswith("l")),
        *(label for label in b if label.startswith("r")),
    )
    if len(result) != len(call.results[0]):
        raise OpError(f"the product has {len(result)} dims, declared {shape_text(call.results[0])}")
    folds = {f"c{number}": Fold.SUM for number in range(len(contracted))}
    return Labels((tuple(a), tuple(b)), (result,), MappingProxyType(folds))


def _pairs(call: OpCall, kind: str) -> list[tuple[int, int]]:
    left, right = _dims(call, f"lhs_{kind}_dims"), _dims(call, f"rhs_{kind}_dims")
    if len(left) != len(right):
        raise OpError(f"{len(left)} and {len(right)} {kind} dims")
    return list(zip(left, right, strict=True))


def _dot_flops(call: OpCall) -> int | float:
    left = call.operands[0]
    inner = math.prod(elements((left[dim],)) for dim in _dims(call, "lhs_contracting_dims"))
    return 2 * elements(call.results[0]) * inner


def _broadcast(call: OpCall) -> LabelRule:
    shape, result = call.operands[0], call.results[0]
    dims = _dims(call, "dimensions")
    if len(dims) != len(shape):
        raise OpError(f"dimensions {list(dims)} do not place the {len(shape)} operand dims")
    labels = named_dims(len(result))
    mine: list[Label] = []
    for extent, dim in zip(shape, dims, strict=True):
        wanted = result[checked_dim(dim, len(result))]
        if extent != wanted and extent != 1:
            raise OpError(f"{shape_text(shape)} does not broadcast to {shape_text(result)}")
        mine.append(labels[dim] if extent == wanted else None)
    return Labels((tuple(mine),), (labels,))


def _transpose(call: OpCall) -> LabelRule:
    shape = call.operands[0]
    perm = _dims(call, "dimensions")
    if sorted(perm) != list(range(len(shape))):
        raise OpError(f"dimensions {list(perm)} are no permutation of {len(shape)} dims")
    labels = named_dims(len(shape))
    return Labels((labels,), (tuple(labels[dim] for dim in perm),))


def _along(name: str) -> Callable[[OpCall], LabelRule]:
    """Operand and result of one shape; the dims under a parameter are whole."""

    def labels(call: OpCall) -> LabelRule:
        rank = len(call.operands[0])
        row = named_dims(rank)
        whole = frozenset(row[checked_dim(dim, rank)] for dim in _dims(call, name))
        return Labels(tuple(row for _ in call.operands), tuple(row for _ in call.results), MappingProxyType({}), whole)

    return labels


def _changed(call: OpCall) -> LabelRule:
    """A part or an enlargement of the first operand: dims that keep their extent keep their label, the others are whole.

    Further operands (positions, the value of a padding) are scalars.
    """
    source, result = call.operands[0], call.results[0]
    if len(source) != len(result):
        raise OpError(f"{shape_text(source)} and {shape_text(result)} have different numbers of dims")
    labels = named_dims(len(source))
    kept = tuple(
        label if mine == theirs else f"e{label[1:]}" for label, mine, theirs in zip(labels, source, result, strict=True)
    )
    whole = {label for label, other in zip(labels, kept, strict=True) if label != other}
    whole |= {other for label, other in zip(labels, kept, strict=True) if label != other}
    others = tuple(named_dims(len(shape), f"s{index}_") for index, shape in enumerate(call.operands[1:]))
    whole |= {label for row in others for label in row}
    return Labels((labels, *others), (kept,), MappingProxyType({}), frozenset(whole))


def _update_slice(call: OpCall) -> LabelRule:
    """The operand with a block replaced: dims that the update has in full keep their label."""
    source, update = call.operands[0], call.operands[1]
    if len(source) != len(update):
        raise OpError(f"{shape_text(source)} and {shape_text(update)} have different numbers of dims")
    labels = named_dims(len(source))
    part = tuple(
        label if mine == theirs else f"u{label[1:]}" for label, mine, theirs in zip(labels, source, update, strict=True)
    )
    cut = [label for label, other in zip(labels, part, strict=True) if label != other]
    whole = {*cut, *(f"u{label[1:]}" for label in cut)}
    others = tuple(named_dims(len(shape), f"s{index}_") for index, shape in enumerate(call.operands[2:]))
    whole |= {label for row in others for label in row}
    return Labels((labels, part, *others), (labels,), MappingProxyType({}), frozenset(whole))


def _concatenate(call: OpCall) -> LabelRule:
    rank = len(call.results[0])
    (dim,) = _dims(call, "dimensions") or (0,)
    dim = checked_dim(dim, rank)
    labels = named_dims(rank)
    rows = tuple(
        tuple(f"part{index}" if k == dim else label for k, label in enumerate(labels))
        for index in range(len(call.operands))
    )
    return Labels(rows, (labels,), MappingProxyType({}), frozenset({labels[dim], *(row[dim] for row in rows)}))


def _reduce(call: OpCall) -> LabelRule:
    """Operands, then their initial values; the computation is a region, so that the folded dims are whole here."""
    count = len(call.results)
    rank = len(call.operands[0])
    gone = {checked_dim(dim, rank) for dim in _dims(call, "dimensions")}
    labels = named_dims(rank)
    kept = tuple(label for dim, label in enumerate(labels) if dim not in gone)
    starts: tuple[tuple[str, ...], ...] = tuple(() for _ in call.operands[count:])
    rows = (*(labels for _ in call.operands[:count]), *starts)
    return Labels(rows, tuple(kept for _ in call.results), MappingProxyType({}), frozenset(labels[dim] for dim in gone))


def _each(call: OpCall) -> LabelRule:
    """Result i is operand i."""
    if call.operands != call.results:
        raise OpError(f"{len(call.operands)} operands and {len(call.results)} results must have the same shapes")
    rows = tuple(named_dims(len(shape), f"o{index}_") for index, shape in enumerate(call.operands))
    return Labels(rows, rows)


def _made(call: OpCall) -> LabelRule:
    return Labels((), tuple(named_dims(len(shape)) for shape in call.results))


def _nothing(call: OpCall) -> int | float:
    del call
    return 0


def _read(call: OpCall) -> int | float:
    return elements(call.operands[0])


def _zero_signs(call: OpCall) -> tuple[int, ...]:
    return no_signs(call)


_HALF = Fraction(1, 2)
Law = Callable[[OpCall], ScaleLaw]

# opcode: class, sign, law, zero stays zero
_UNARY: Mapping[str, tuple[OpClass, int, Law, bool]] = {
    **dict.fromkeys(("copy", "convert", "reduce-precision", "domain"),
                    (OpClass.LINEAR, 1, degree(1), True)),
    "negate": (OpClass.LINEAR, -1, degree(1), True),
    "abs": (OpClass.NONLINEAR, 0, degree(1), True),
    "sign": (OpClass.MONOTONE, 1, scale_free, True),
    "sqrt": (OpClass.MONOTONE, 1, degree(_HALF), True),
    "rsqrt": (OpClass.MONOTONE, -1, degree(-_HALF), False),
    "cbrt": (OpClass.MONOTONE, 1, degree(Fraction(1, 3)), True),
    **dict.fromkeys(("exponential", "log", "logistic"), (OpClass.MONOTONE, 1, unscaled, False)),
    **dict.fromkeys(("exponential-minus-one", "log-plus-one", "tanh", "erf", "floor", "ceil", "round-nearest-afz",
                     "round-nearest-even", "sinh", "asinh", "atanh"), (OpClass.MONOTONE, 1, unscaled, True)),
    **dict.fromkeys(("sine", "tan", "asin"), (OpClass.NONLINEAR, 0, unscaled, True)),
    **dict.fromkeys(("cosine", "cosh", "acos", "acosh", "not", "popcnt", "count-leading-zeros"),
                    (OpClass.NONLINEAR, 0, unscaled, False)),
    "is-finite": (OpClass.NONLINEAR, 0, scale_free, False),
    "real": (OpClass.LINEAR, 1, degree(1), True),
    "imag": (OpClass.LINEAR, 0, degree(1), True),
}  # fmt: skip

_NONLINEAR_BINARY = (
    "and", "or", "xor", "power", "remainder", "atan2", "shift-left", "shift-right-arithmetic", "shift-right-logical", "compare",
)  # fmt: skip


def _sign(value: int) -> Callable[[OpCall], tuple[int, ...]]:
    def signs(call: OpCall) -> tuple[int, ...]:
        return (value,) * len(call.operands)

    return signs


def _subtract_signs(call: OpCall) -> tuple[int, ...]:
    return (1, *(-1 for _ in call.operands[1:]))


def _select_signs(call: OpCall) -> tuple[int, ...]:
    return (0, *(1 for _ in call.operands[1:]))


def _moves(name: str, summary: str, labels: Callable[[OpCall], LabelRule], *parameters: str) -> OpDef:
    """Elements moved about and not changed."""
    return OpDef(name, summary, (1, 1), OpClass.LINEAR, labels, degree(1), keeps_zero=True, flops=_nothing,
                 parameters=frozenset(parameters))  # fmt: skip


def _table() -> list[OpDef]:
    made = [
        OpDef(name, f"HLO {name}", (1, 1), kind, _pointwise, law, signs=_sign(sign), keeps_zero=zero)
        for name, (kind, sign, law, zero) in _UNARY.items()
    ]
    made += [
        OpDef(name, f"HLO {name}", (2, 2), OpClass.NONLINEAR, _pointwise, unscaled, signs=_sign(0))
        for name in _NONLINEAR_BINARY
    ]
    return made


_MORE: tuple[OpDef, ...] = (
    OpDef("add", "HLO add", (2, 2), OpClass.ADDITIVE, _pointwise, equal_scales(), keeps_zero=True),
    OpDef("subtract", "HLO subtract", (2, 2), OpClass.ADDITIVE, _pointwise, equal_scales(), signs=_subtract_signs,
          keeps_zero=True),
    OpDef("multiply", "HLO multiply", (2, 2), OpClass.MULTILINEAR, _pointwise, degree(), signs=_sign(0), keeps_zero=True),
    OpDef("divide", "HLO divide", (2, 2), OpClass.MULTILINEAR, _pointwise, degree(1, -1), signs=_sign(0),
          nonlinear_operands=(1,), keeps_zero=True),
    OpDef("maximum", "HLO maximum", (2, 2), OpClass.ORDER, _pointwise, equal_scales(), signs=_sign(1), keeps_zero=True),
    OpDef("minimum", "HLO minimum", (2, 2), OpClass.ORDER, _pointwise, equal_scales(), signs=_sign(1), keeps_zero=True),
    OpDef("clamp", "HLO clamp", (3, 3), OpClass.NONLINEAR, _pointwise, equal_scales(), signs=_sign(1)),
    OpDef("select", "HLO select", (3, 3), OpClass.ADDITIVE, _pointwise, equal_scales(1, 2), signs=_select_signs,
          nonlinear_operands=(0,), keeps_zero=True),
    OpDef("dot", "HLO dot", (2, 2), OpClass.MULTILINEAR, _dot, degree(), signs=_zero_signs, keeps_zero=True, flops=_dot_flops,
          parameters=frozenset({"lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims"})),
    _moves("broadcast", "HLO broadcast", _broadcast, "dimensions"),
    _moves("transpose", "HLO transpose", _transpose, "dimensions"),
    _moves("reshape", "HLO reshape", regroup),
    _moves("bitcast", "HLO bitcast", regroup),
    _moves("reverse", "HLO reverse", _along("dimensions"), "dimensions"),
    _moves("slice", "HLO slice", _changed, "slice"),
    OpDef("pad", "HLO pad", (2, 2), OpClass.MONOTONE, _changed, equal_scales(), flops=_nothing, parameters=frozenset({"padding"})),
    OpDef("dynamic-slice", "HLO dynamic-slice", (1, None), OpClass.NONLINEAR, _changed, unscaled, flops=_nothing,
          parameters=frozenset({"dynamic_slice_sizes"})),
    OpDef("dynamic-update-slice", "HLO dynamic-update-slice", (2, None), OpClass.NONLINEAR, _update_slice, unscaled,
          flops=_nothing),
    OpDef("concatenate", "HLO concatenate", (1, None), OpClass.ADDITIVE, _concatenate, equal_scales(), keeps_zero=True,
          flops=_nothing, parameters=frozenset({"dimensions"})),
    OpDef("reduce", "HLO reduce", (2, None), OpClass.NONLINEAR, _reduce, unscaled, flops=_read,
          parameters=frozenset({"dimensions", "to_apply"})),
    OpDef("sort", "HLO sort", (1, None), OpClass.NONLINEAR, _along("dimensions"), unscaled, flops=_read,
          parameters=frozenset({"dimensions", "is_stable", "to_apply"})),
    OpDef("iota", "HLO iota", (0, 0), OpClass.SOURCE, _made, scale_free, source=SourceKind.POSITION, flops=_nothing,
          parameters=frozenset({"iota_dimension"})),
    OpDef("constant", "HLO constant", (0, 0), OpClass.SOURCE, _made, scale_free, source=SourceKind.CONSTANT, flops=_nothing,
          parameters=frozenset({"literal", "elided"})),
    # Of several operands there is no one class: each passes on its own.
    *(OpDef(name, f"HLO {name}", (1, None), OpClass.NONLINEAR, _each, unscaled, flops=_nothing)
      for name in ("opt-barrier", "optimization-barrier")),
    *(OpDef(name, f"HLO {name}", arity, OpClass.NONLINEAR, _whole_tensors, unscaled, flops=_nothing)
      for name, arity in (("gather", (2, 2)), ("scatter", (3, None)), ("convolution", (2, 2)), ("fft", (1, 1)),
                          ("bitcast-convert", (1, 1)), ("reduce-window", (2, None)), ("select-and-scatter", (3, 3)),
                          ("topk", (1, 1)), ("cholesky", (1, 1)), ("triangular-solve", (2, 2)))),
)  # fmt: skip

HLO_OPS: Mapping[str, OpDef] = MappingProxyType({operator.name: operator for operator in (*_table(), *_MORE)})
"""Operators of a partitioned HLO module, by opcode."""
