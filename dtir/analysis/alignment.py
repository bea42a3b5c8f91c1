"""Do the operands of a local task lie alike: one axis list a label, everywhere the label occurs (SEMANTICS 2.3, rule 1)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dtir.analysis.abstract import Abstract, Fill, Surroundings
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.divisibility import divided
from dtir.analysis.states import EQUAL, Equal, Pending, State, state_text
from dtir.ir.expr import Scalar
from dtir.ops import Labels


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the labels of a call carry.

    Args:
        axes: per label the axes that split it, major to minor.
        sizes: per label explicit shard sizes, where it has any.
        fills: per label what its padding holds, where it has any.
        deviations: operands that do not lie alike.
    """

    axes: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    fills: Mapping[str, Fill] = field(default_factory=dict[str, Fill])
    deviations: tuple[Deviation, ...] = ()


def align(rule: Labels, operands: Sequence[Abstract]) -> Alignment:
    """Gather what every label carries, and where operands disagree; per-rank axes have been taken out of the states before."""
    axes: dict[str, tuple[str, ...]] = {}
    first: dict[str, int] = {}
    sizes: dict[str, tuple[int, ...] | None] = {}
    fills: dict[str, Fill] = {}
    found: list[Deviation] = []
    for index, (value, labels) in enumerate(zip(operands, rule.operands, strict=True)):
        for dim, label in enumerate(labels):
            if label is None:
                continue
            mine = value.state.dims[dim]
            fill = value.fill(dim)
            if fill is not Fill.NONE:
                fills[label] = Fill.OTHER if Fill.OTHER in (fill, fills.get(label)) else fill
            if label not in axes:
                axes[label], first[label], sizes[label] = mine, index, value.state.size_of(dim)
                continue
            if mine != axes[label]:
                found.append(_apart(axes[label], mine, label, operands, first[label], index, dim))
            elif mine and value.state.size_of(dim) != sizes[label]:
                found.append(Deviation(Kind.OPERANDS, mine, index, dims=(dim,), note="sizes", wanted=label))
    if found:
        return Alignment(axes, deviations=tuple(found[:1]))
    split = {axis: label for label, names in axes.items() for axis in names}
    deviation = _twice(axes) or _pending_over_split(split, rule, operands) or _in_parts(axes, rule)
    known = {label: item for label, item in sizes.items() if item is not None and axes[label]}
    return Alignment(axes, known, fills, (deviation,) if deviation is not None else ())


def _apart(
    wanted: tuple[str, ...],
    found: tuple[str, ...],
    label: str,
    operands: Sequence[Abstract],
    first: int,
    index: int,
    dim: int,
) -> Deviation:
    texts = state_text(operands[index].state), state_text(operands[first].state)
    if set(wanted) == set(found):
        return Deviation(Kind.ORDER, found, index, None, (dim,), *texts)
    axes = tuple(axis for axis in (*wanted, *found) if (axis in wanted) != (axis in found))
    # Which of the two lies amiss nobody can tell; the message names both.
    return Deviation(Kind.OPERANDS, axes, index, None, (dim,), *texts, note=f"operand:{first}")


def _twice(axes: Mapping[str, tuple[str, ...]]) -> Deviation | None:
    """One axis on two labels: a rank would meet blocks of different positions."""
    seen: dict[str, str] = {}
    for label, names in axes.items():
        for axis in names:
            if seen.setdefault(axis, label) != label:
                return Deviation(Kind.OPERANDS, (axis,), note="two_labels", found=label, wanted=seen[axis])
    return None


def _pending_over_split(split: Mapping[str, str], rule: Labels, operands: Sequence[Abstract]) -> Deviation | None:
    """An operand pending along an axis that splits another operand."""
    for index, value in enumerate(operands):
        for axis in value.state.partial:
            if axis in split and any(
                split[axis] in labels and axis in other.state.split
                for other, labels in zip(operands, rule.operands, strict=True)
            ):
                return Deviation(Kind.OPERANDS, (axis,), index, note="pending", found=state_text(value.state))
    return None


def _in_parts(axes: Mapping[str, tuple[str, ...]], rule: Labels) -> Deviation | None:
    """A dim that the operator needs whole is split."""
    for label in sorted(rule.whole):
        if axes.get(label):
            for index, labels in enumerate(rule.operands):
                if label in labels:
                    return Deviation(Kind.OPERANDS, axes[label], index, None, (labels.index(label),), note="whole")
    return None


def take_per_rank(operands: Sequence[Abstract], around: Surroundings) -> tuple[tuple[Abstract, ...], tuple[str, ...]]:
    """Look at a call as one rank does, along the axes where some operand is per rank.

    Returns:
        The operands with the shapes of one rank along those axes, and the axes. A pending or replicated operand is what
        one rank holds anyway.
    """
    axes = around.space.ordered({axis for value in operands for axis in value.state.varying})
    if not axes:
        return tuple(operands), ()
    found: list[Abstract] = []
    for value in operands:
        shape, state = as_one_rank(value.shape, value.state, axes, around)
        found.append(replace(value, shape=shape, state=state))
    return tuple(found), axes


def as_one_rank(
    shape: tuple[Scalar, ...], state: State, axes: Sequence[str], around: Surroundings
) -> tuple[tuple[Scalar, ...], State]:
    """A shape and a state as one rank sees them along some axes: neither split nor pending nor per rank there."""
    gone = set(axes)
    extents: list[Scalar] = []
    dims: list[tuple[str, ...]] = []
    for dim, extent in enumerate(shape):
        mine = state.dims[dim]
        kept = tuple(axis for axis in mine if axis not in gone)
        sizes = state.size_of(dim)
        if len(kept) == len(mine):
            extents.append(extent)
        elif sizes is not None and not kept:
            extents.append(max(sizes, default=0))
        else:
            extents.append(divided(extent, around.space.count(axis for axis in mine if axis in gone)))
        dims.append(kept)
    left = state.without_pending(gone)
    sizes = tuple(state.size_of(dim) if dims[dim] == state.dims[dim] else None for dim in range(len(dims)))
    return tuple(extents), replace(
        left,
        dims=tuple(dims),
        varying=tuple(axis for axis in left.varying if axis not in gone),
        sizes=sizes if any(item is not None for item in sizes) else (),
    )


def letters_along(axis: str, operands: Sequence[Abstract]) -> tuple[Equal | Pending, ...]:
    """Pending or not, for every operand, along an axis that splits none of them."""
    found: list[Equal | Pending] = []
    for value in operands:
        letter = value.state.letter(axis)
        found.append(letter if isinstance(letter, Pending) else EQUAL)
    return tuple(found)
