"""Sums of products: einsum and matmul, lowered to batched matrix products.

Two operands at a time: labels in both operands and in the result are batch dims, labels in both and not in the result
are contracted, labels in one operand alone that the result lacks are summed first. Modulo a prime the product runs in
float64 on blocks of 8,192 terms, each exact (products stay below 2**40, sums below 2**53).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from dtir.ir.expr import Scalar
from dtir.ops.arithmetic import Arithmetic, Array, Place
from dtir.ops.opdef import Fold, LabelRule, Labels, OpCall, OpClass, OpDef, OpError, Shape
from dtir.ops.rules import degree, shape_text

EXACT_TERMS = 8192
"""Products below 2**40 of which float64 sums this many without rounding."""

_MOST_LABELS = 48


def parse_spec(spec: object, operands: int) -> tuple[tuple[str, ...], str]:
    """The labels of an einsum: one letter a dim, ``"bi,io->bo"``.

    Returns:
        Labels of every operand, and of the result.

    Raises:
        OpError: not of that form, another number of operands, a result label that no operand has or that occurs twice.
    """
    if not isinstance(spec, str):
        raise OpError(f"parameter spec must be text such as 'bi,io->bo', got {spec!r}")
    left, arrow, right = spec.replace(" ", "").partition("->")
    parts = tuple(left.split(","))
    if not arrow or not all(part.isalpha() or not part for part in (*parts, right)):
        raise OpError(f"spec {spec!r} must read 'labels,labels->labels' with one letter a dim")
    if len(parts) != operands:
        raise OpError(f"spec {spec!r} has {len(parts)} operands, the task {operands}")
    if len(set(right)) != len(right):
        raise OpError(f"spec {spec!r} names a result label twice")
    if missing := [label for label in right if label not in left]:
        raise OpError(f"spec {spec!r}: result label {missing[0]!r} occurs in no operand")
    if len(set(left)) > _MOST_LABELS:
        raise OpError(f"spec {spec!r} has more than {_MOST_LABELS} labels")
    return parts, right


def _einsum_labels(call: OpCall) -> LabelRule:
    parts, right = parse_spec(call.attributes.get("spec"), len(call.operands))
    return spec_labels(parts, right, call)


def spec_labels(parts: Sequence[str], right: str, call: OpCall) -> Labels:
    """Labels of a sum of products.

    Raises:
        OpError: a label has two extents, or the number of labels differs from the number of dims.
    """
    extents: dict[str, Scalar] = {}
    for labels, shape in (*zip(parts, call.operands, strict=True), (right, call.results[0])):
        if len(labels) != len(shape):
            raise OpError(f"labels {labels!r} are {len(labels)}, the tensor {shape_text(shape)} has {len(shape)} dims")
        for label, extent in zip(labels, shape, strict=True):
            if extents.setdefault(label, extent) != extent:
                raise OpError(f"label {label!r} has extent {extents[label]} and {extent}")
    contracted = sorted(set("".join(parts)) - set(right))
    return Labels(
        tuple(tuple(labels) for labels in parts),
        (tuple(right),),
        MappingProxyType(dict.fromkeys(contracted, Fold.SUM)),
    )


def _einsum(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    parts, right = parse_spec(call.attributes.get("spec"), len(operands))
    return (contract(arithmetic, operands, parts, right),)


def contract(arithmetic: Arithmetic, operands: Sequence[Array], parts: Sequence[str], right: str) -> Array:
    """The sum of products of some arrays, pair by pair from the left.

    Raises:
        OpError: a label has two extents.
    """
    terms = [_diagonal(arithmetic, array, labels) for array, labels in zip(operands, parts, strict=True)]
    array, labels = terms[0]
    if len(terms) == 1:
        array, labels = _sum_away(arithmetic, array, labels, set(right))
    for index, (other, theirs) in enumerate(terms[1:], start=1):
        needed = set(right).union(*(later for _, later in terms[index + 1 :]))
        array, labels = _pair(arithmetic, (array, labels), (other, theirs), needed)
    return arithmetic.xp.transpose(array, tuple(labels.index(label) for label in right))


def _diagonal(arithmetic: Arithmetic, array: Array, labels: str) -> tuple[Array, str]:
    """The operand without repeated labels: a label that occurs twice means the diagonal."""
    if len(labels) != array.ndim:
        raise OpError(f"labels {labels!r} are {len(labels)}, the array has {array.ndim} dims")
    while repeated := next((label for label in labels if labels.count(label) > 1), None):
        first = labels.index(repeated)
        second = labels.index(repeated, first + 1)
        if array.shape[first] != array.shape[second]:
            raise OpError(f"label {repeated!r} has extent {array.shape[first]} and {array.shape[second]}")
        array = arithmetic.xp.diagonal(array, 0, first, second)  # numpy puts the diagonal last
        labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + repeated
    return array, labels


def _sum_away(arithmetic: Arithmetic, array: Array, labels: str, needed: Iterable[str]) -> tuple[Array, str]:
    kept = set(needed)
    gone = tuple(dim for dim, label in enumerate(labels) if label not in kept)
    if not gone:
        return array, labels
    return arithmetic.settle(arithmetic.xp.sum(array, axis=gone)), "".join(label for label in labels if label in kept)


def _pair(
    arithmetic: Arithmetic, left: tuple[Array, str], right: tuple[Array, str], needed: set[str]
) -> tuple[Array, str]:
    xp = arithmetic.xp
    a, a_labels = _sum_away(arithmetic, *left, needed | set(right[1]))
    b, b_labels = _sum_away(arithmetic, *right, needed | set(a_labels))
    sizes = dict(zip(a_labels, a.shape, strict=True))
    for label, extent in zip(b_labels, b.shape, strict=True):
        if sizes.setdefault(label, extent) != extent:
            raise OpError(f"label {label!r} has extent {sizes[label]} and {extent}")
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rows = [label for label in a_labels if label not in b_labels]
    columns = [label for label in b_labels if label not in a_labels]

    def matrix(array: Array, labels: str, first: list[str], last: list[str]) -> Array:
        order = [*batch, *first, *last]
        moved = xp.transpose(array, tuple(labels.index(label) for label in order))
        return xp.reshape(moved, (_product(sizes, batch), _product(sizes, first), _product(sizes, last)))

    product = _matmul(arithmetic, matrix(a, a_labels, rows, inner), matrix(b, b_labels, inner, columns))
    labels = [*batch, *rows, *columns]
    return xp.reshape(product, tuple(sizes[label] for label in labels)), "".join(labels)


def _product(sizes: dict[str, int], labels: Iterable[str]) -> int:
    return math.prod(sizes[label] for label in labels)


def _matmul(arithmetic: Arithmetic, a: Array, b: Array) -> Array:
    xp = arithmetic.xp
    if not arithmetic.exact:
        return xp.matmul(a, b)
    # float64 has a fast matrix product and 64-bit integers have none.
    left, right = a.astype(xp.float64), b.astype(xp.float64)
    total = None
    for start in range(0, max(1, left.shape[-1]), EXACT_TERMS):
        block = xp.matmul(left[..., start : start + EXACT_TERMS], right[..., start : start + EXACT_TERMS, :])
        part = arithmetic.settle(block.astype(xp.int64))
        total = part if total is None else arithmetic.settle(total + part)
    return total


def _einsum_flops(call: OpCall) -> int | float:
    parts, right = parse_spec(call.attributes.get("spec"), len(call.operands))
    return contraction_flops(parts, right, call.operands)


def contraction_flops(parts: Sequence[str], right: str, shapes: Sequence[Shape]) -> int | float:
    """Multiplications and additions of a sum of products, pair by pair from the left."""
    extents = {
        label: extent
        for labels, shape in zip(parts, shapes, strict=True)
        for label, extent in zip(labels, shape, strict=True)
    }
    if any(not isinstance(extent, (int, float)) for extent in extents.values()):
        raise OpError("an extent has no value yet: bind its symbols first")
    sizes = {label: extent for label, extent in extents.items() if isinstance(extent, (int, float))}
    if len(parts) == 1:
        return math.prod(sizes[label] for label in set(parts[0]))
    total: int | float = 0
    held = set(parts[0])
    for index, labels in enumerate(parts[1:], start=1):
        total += 2 * math.prod(sizes[label] for label in held | set(labels))
        held = (held | set(labels)) & set(right).union(*parts[index + 1 :])
    return total


def _matmul_spec(call: OpCall) -> tuple[tuple[str, str], str]:
    left, right = call.operands
    if not left or not right:
        raise OpError("matmul takes tensors of at least one dim")
    batch = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: max(len(left), len(right)) - 2]
    if len(left) - 2 > len(batch) or len(right) - 2 > len(batch):
        raise OpError("matmul handles at most 28 dims")
    a_batch = batch[len(batch) - max(len(left) - 2, 0) :] if len(left) > 2 else ""
    b_batch = batch[len(batch) - max(len(right) - 2, 0) :] if len(right) > 2 else ""
    a = a_batch + ("mk" if len(left) > 1 else "k")
    b = b_batch + ("kn" if len(right) > 1 else "k")
    return (a, b), batch + ("m" if len(left) > 1 else "") + ("n" if len(right) > 1 else "")


def _matmul_labels(call: OpCall) -> LabelRule:
    parts, right = _matmul_spec(call)
    return spec_labels(parts, right, call)


def _matmul_run(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    parts, right = _matmul_spec(call)
    return (contract(arithmetic, operands, parts, right),)


def _matmul_flops(call: OpCall) -> int | float:
    parts, right = _matmul_spec(call)
    return contraction_flops(parts, right, call.operands)


OPS: tuple[tuple[str, OpDef], ...] = (
    (
        "core",
        OpDef(
            "einsum",
            "a sum of products of one or more tensors, by labels",
            (1, None),
            OpClass.MULTILINEAR,
            _einsum_labels,
            degree(),
            run=_einsum,
            polynomial=True,
            keeps_zero=True,
            flops=_einsum_flops,
            parameters=frozenset({"spec"}),
        ),
    ),
    (
        "core",
        OpDef(
            "matmul",
            "matrix product over the last two dims, batch dims before them",
            (2, 2),
            OpClass.MULTILINEAR,
            _matmul_labels,
            degree(),
            run=_matmul_run,
            polynomial=True,
            keeps_zero=True,
            flops=_matmul_flops,
        ),
    ),
)
