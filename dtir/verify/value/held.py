"""What ranks hold of a value during a run, and its meaning: blocks put together, pending shares folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dtir.ir import ReductionKind
from dtir.ops.arithmetic import Arithmetic, Array
from dtir.verify.value.case import CaseValue
from dtir.verify.value.grid import Grid


@dataclass(slots=True)
class Held:
    """The local arrays of a value.

    Args:
        arrays: by rank; a rank without an entry has nothing.
        fault: why arrays are missing or have no legal shape: the operation could not run on them.
        holes: by rank, where elements were never written.
        ghosts: the ghost frame was filled (or taken over from an operand that had one).
        experts: by rank the local expert of every row, after a dispatch.
    """

    arrays: dict[int, Array]
    fault: str | None = None
    holes: dict[int, Array] = field(default_factory=dict[int, Array])
    ghosts: bool = False
    experts: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])


def fold(arithmetic: Arithmetic, arrays: Sequence[Array], kind: ReductionKind) -> Array:
    """Some arrays of one shape folded in order."""
    result = arrays[0]
    for array in arrays[1:]:
        match kind:
            case ReductionKind.SUM | ReductionKind.AVERAGE:
                result = arithmetic.settle(result + array)
            case ReductionKind.PRODUCT:
                result = arithmetic.settle(result * array)
            case ReductionKind.MAX:
                result = np.maximum(result, array)
            case ReductionKind.MIN:
                result = np.minimum(result, array)
            case ReductionKind.AND:
                result = np.logical_and(result, array).astype(np.float64)
            case ReductionKind.OR:
                result = np.logical_or(result, array).astype(np.float64)
            case ReductionKind.XOR:
                result = np.logical_xor(result, array).astype(np.float64)
            case ReductionKind.CUSTOM:
                return None
    if kind is ReductionKind.AVERAGE:
        from fractions import Fraction

        result = arithmetic.settle(result * arithmetic.number(Fraction(1, len(arrays))))
    return result


def is_polynomial(kind: ReductionKind | None) -> bool:
    """True for reductions that are exact modulo a prime."""
    return kind in (None, ReductionKind.SUM, ReductionKind.AVERAGE, ReductionKind.PRODUCT)


def needed_places(value: CaseValue, grid: Grid) -> set[tuple[int, ...]]:
    """The positions on split and pending axes that some owner must have: those whose block has elements."""
    axes = (*value.split, *value.folds)
    others = [axis for axis in grid.axes if axis not in axes]
    corner = sum(value.at.get(axis, 0) * grid.stride[axis] for axis in others)
    found: set[tuple[int, ...]] = set()
    for rank in grid.fibre(corner, axes):
        if all(span.stop > span.start for span in value.block(grid, rank)):
            found.add(grid.place(rank, axes))
    return found


def assemble(
    value: CaseValue, grid: Grid, arithmetic: Arithmetic, arrays: dict[int, Array], ranks: Iterable[int]
) -> Array | None:
    """The meaning of a value from the arrays of some ranks: pending shares folded, blocks in their places.

    Returns:
        None when a block or a share is missing, or a fold is not known.
    """
    blocks: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    for rank in ranks:
        if rank in arrays:
            place = grid.place(rank, value.split)
            blocks.setdefault(place, {}).setdefault(grid.place(rank, value.folds), rank)
    whole: Array | None = None
    for place in {needed[: len(value.split)] for needed in needed_places(value, grid)}:
        shares = blocks.get(place, {})
        if len(shares) < grid.members(value.folds):
            return None
        array = _folded(value, grid, arithmetic, {step: arrays[rank] for step, rank in shares.items()})
        if array is None:
            return None
        if whole is None:
            whole = np.zeros(value.shape, dtype=array.dtype)
        spans = value.block(grid, next(iter(shares.values())))
        real = tuple(slice(0, span.stop - span.start) for span in spans)
        whole[tuple(slice(span.start, span.stop) for span in spans)] = array[real]
    return np.zeros(value.shape) if whole is None else whole


def _folded(value: CaseValue, grid: Grid, arithmetic: Arithmetic, shares: dict[tuple[int, ...], Array]) -> Array | None:
    for axis, kind in reversed(list(value.folds.items())):
        grouped: dict[tuple[int, ...], list[Array]] = {}
        for step in sorted(shares):
            grouped.setdefault(step[:-1], []).append(shares[step])
        shares = {}
        for step, arrays in grouped.items():
            folded = fold(arithmetic, arrays, kind)
            if folded is None or len(arrays) != grid.size[axis]:
                return None
            shares[step] = folded
    return shares[()]


def replicas(value: CaseValue, grid: Grid, ranks: Iterable[int]) -> list[list[int]]:
    """Owners grouped by their position on the axes of equal copies, in order of rank."""
    copied = value.copied(grid)
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in ranks:
        found.setdefault(grid.place(rank, copied), []).append(rank)
    return list(found.values())
