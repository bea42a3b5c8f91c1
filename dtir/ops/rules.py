"""Label rules and scale laws that many operators share.

Labels are made from the call: ``d0, d1, ...`` are dims of the (broadcast) result, so that two calls with the same shapes
have the same labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from dtir.ir.expr import Scalar
from dtir.ops.opdef import (
    Degrees,
    DimGroup,
    EqualScales,
    Fold,
    Label,
    LabelRule,
    Labels,
    OpCall,
    OpError,
    Regroup,
    ScaleFree,
    ScaleLaw,
    Shape,
    Unscaled,
)
from dtir.ops.parameters import dims_of, flag

_ONE = Fraction(1)


def named_dims(rank: int, prefix: str = "d") -> tuple[str, ...]:
    """Labels of the dims of one tensor: ``d0, d1, ...``."""
    return tuple(f"{prefix}{dim}" for dim in range(rank))


def shape_text(shape: Shape) -> str:
    """A shape for a message."""
    return "[" + ", ".join(getattr(extent, "name", None) or str(extent) for extent in shape) + "]"


def _broadcast_labels(shape: Shape, result: Shape) -> tuple[Label, ...]:
    if len(shape) > len(result):
        raise OpError(f"operand {shape_text(shape)} has more dims than the result {shape_text(result)}")
    first = len(result) - len(shape)
    labels: list[Label] = []
    for dim, extent in enumerate(shape):
        wanted = result[first + dim]
        if extent == wanted:
            labels.append(f"d{first + dim}")
        elif extent == 1:
            labels.append(None)
        else:
            raise OpError(
                f"operand {shape_text(shape)} does not broadcast to the result {shape_text(result)}: "
                f"dim {dim} has {extent}, wanted {wanted} or 1"
            )
    return tuple(labels)


def elementwise(call: OpCall) -> LabelRule:
    """Operands broadcast to the results, dims aligned at the end (as numpy does)."""
    result = call.results[0]
    for other in call.results[1:]:
        if other != result:
            raise OpError(f"results {shape_text(result)} and {shape_text(other)} differ in shape")
    labels = named_dims(len(result))
    return Labels(
        tuple(_broadcast_labels(shape, result) for shape in call.operands), tuple(labels for _ in call.results)
    )


def with_whole(rule: Callable[[OpCall], LabelRule], default: int | None = -1) -> Callable[[OpCall], LabelRule]:
    """The same rule, with the dims that the call names (by default the last) whole on every rank."""

    def labels(call: OpCall) -> LabelRule:
        found = rule(call)
        assert isinstance(found, Labels)
        rank = len(call.operands[0])
        chosen = dims_of(call, rank, (default,) if default is not None and rank else () if rank == 0 else None)
        whole = frozenset(label for dim in chosen if (label := found.operands[0][dim]) is not None)
        return Labels(found.operands, found.results, found.folds, whole)

    return labels


def reduction(fold: Fold | None) -> Callable[[OpCall], LabelRule]:
    """Dims named by ``dims`` (default: all) are contracted by `fold`; with None they must be whole. ``keepdims`` leaves units."""

    def labels(call: OpCall) -> LabelRule:
        shape, result = call.operands[0], call.results[0]
        source = named_dims(len(shape))
        gone = set(dims_of(call, len(shape)))
        kept: tuple[Label, ...]
        if flag(call, "keepdims"):
            kept = tuple(None if dim in gone else label for dim, label in enumerate(source))
            wanted: Shape = tuple(1 if dim in gone else extent for dim, extent in enumerate(shape))
        else:
            kept = tuple(label for dim, label in enumerate(source) if dim not in gone)
            wanted = tuple(extent for dim, extent in enumerate(shape) if dim not in gone)
        if result != wanted:
            raise OpError(f"the reduction of {shape_text(shape)} over dims {sorted(gone)} is {shape_text(wanted)}, "
                          f"declared {shape_text(result)}")  # fmt: skip
        contracted = [source[dim] for dim in sorted(gone)]
        folds: Mapping[str, Fold] = dict.fromkeys(contracted, fold) if fold is not None else {}
        return Labels(
            (source,),
            tuple(kept for _ in call.results),
            MappingProxyType(dict(folds)),
            frozenset() if fold is not None else frozenset(contracted),
        )

    return labels


def one_to_one(call: OpCall) -> LabelRule:
    """One operand and results of its shape."""
    return elementwise(call)


def dim_groups(source: Shape, target: Shape) -> tuple[DimGroup, ...]:
    """How the dims of two shapes of equal size belong together, from the left; units stand alone and in no group.

    Raises:
        OpError: the numbers of elements differ, or symbolic extents cannot be paired.

    >>> dim_groups((2, 3, 4), (6, 4))
    (DimGroup(operand_dims=(0, 1), result_dims=(0,)), DimGroup(operand_dims=(2,), result_dims=(1,)))
    """
    left = [dim for dim, extent in enumerate(source) if extent != 1]
    right = [dim for dim, extent in enumerate(target) if extent != 1]
    groups: list[DimGroup] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if source[left[i]] == target[right[j]]:
            groups.append(DimGroup((left[i],), (right[j],)))
            i, j = i + 1, j + 1
            continue
        first_i, first_j = i, j
        i, j = _close_group(source, target, left, right, i, j)
        groups.append(DimGroup(tuple(left[first_i:i]), tuple(right[first_j:j])))
    if i < len(left) or j < len(right):
        raise OpError(f"{shape_text(source)} and {shape_text(target)} have different numbers of elements")
    return tuple(groups)


def _close_group(source: Shape, target: Shape, left: list[int], right: list[int], i: int, j: int) -> tuple[int, int]:
    product_left: Scalar = source[left[i]]
    product_right: Scalar = target[right[j]]
    i, j = i + 1, j + 1
    while product_left != product_right:
        if not isinstance(product_left, int) or not isinstance(product_right, int):
            raise OpError(
                f"cannot pair the dims of {shape_text(source)} and {shape_text(target)}: bind their symbols first"
            )
        if product_left < product_right and i < len(left):
            product_left, i = product_left * _int(source[left[i]]), i + 1
        elif product_right < product_left and j < len(right):
            product_right, j = product_right * _int(target[right[j]]), j + 1
        else:
            raise OpError(f"{shape_text(source)} and {shape_text(target)} have different numbers of elements")
    return i, j


def _int(extent: Scalar) -> int:
    if not isinstance(extent, int):
        raise OpError(f"extent {extent} has no value yet: bind its symbols first")
    return extent


def regroup(call: OpCall) -> LabelRule:
    """A reshape: row-major order of elements is kept."""
    return Regroup(dim_groups(call.operands[0], call.results[0]))


# -- scale laws ------------------------------------------------------------------------------------------------------


def degree(*degrees: int | Fraction) -> Callable[[OpCall], ScaleLaw]:
    """Homogeneous of these degrees; operands beyond the list have degree 1."""
    given = tuple(Fraction(item) for item in degrees)

    def law(call: OpCall) -> ScaleLaw:
        return Degrees((*given, *(_ONE for _ in call.operands[len(given) :]))[: len(call.operands)])

    return law


def equal_scales(*operands: int) -> Callable[[OpCall], ScaleLaw]:
    """The named operands (default: all) must have one scale."""

    def law(call: OpCall) -> ScaleLaw:
        return EqualScales(operands or tuple(range(len(call.operands))))

    return law


def unscaled(call: OpCall) -> ScaleLaw:
    """Not homogeneous."""
    del call
    return Unscaled()


def scale_free(call: OpCall) -> ScaleLaw:
    """The scale of the operands does not matter."""
    del call
    return ScaleFree()
