"""Judging one value of one run: shape, then completeness, then equal copies, then meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from dtir.ops.arithmetic import Arithmetic, Array
from dtir.verify.value.case import CaseValue
from dtir.verify.value.grid import Grid
from dtir.verify.value.held import Held, assemble, needed_places, replicas

RELATIVE = 1e-8
"""Largest difference of floats that still count as equal, relative to the larger element; rounding stays far below it."""

_TO_LARGEST = 1e-10
"""The same relative to the largest element of the array, for elements that cancel to almost nothing."""


class Fault(Enum):
    """What can be wrong with a value; the order is that of the checks."""

    SHAPE = "value.shape"
    UNDEFINED = "value.undefined"
    DIVERGENCE = "value.replica_divergence"
    MISMATCH = "value.mismatch"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a value.

    Args:
        fault: what is wrong.
        ranks: where, in rank order.
        text: what was found and what was wanted.
    """

    fault: Fault
    ranks: tuple[int, ...]
    text: str


def same(arithmetic: Arithmetic, found: Array, wanted: Array) -> Array:
    """Element by element, whether two arrays of one shape are equal; elements that are no number in `wanted` count as equal."""
    if arithmetic.exact:
        return found == wanted
    with np.errstate(all="ignore"):
        finite = np.isfinite(wanted)
        largest = float(np.max(np.abs(np.where(finite, wanted, 0.0)), initial=0.0))
        limit = RELATIVE * np.abs(wanted) + _TO_LARGEST * largest
        return ~finite | (np.abs(found - wanted) <= limit)


def equal_copies(arithmetic: Arithmetic, one: Array, other: Array) -> bool:
    """Whether two copies hold the same: also the same places that are no number."""
    if arithmetic.exact:
        return bool(np.array_equal(one, other))
    with np.errstate(all="ignore"):
        strange = ~np.isfinite(one)
        if not np.array_equal(strange, ~np.isfinite(other)):
            return False
        return bool(np.all(same(arithmetic, other, np.where(strange, np.nan, one))))


def _listed(ranks: Sequence[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}" + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")


def check_shape(value: CaseValue, held: Held, grid: Grid) -> Finding | None:
    """Local arrays must have the shape of their block."""
    if held.fault is not None:
        return Finding(Fault.SHAPE, value.owners, held.fault)
    wrong = [
        rank for rank in value.owners
        if rank in held.arrays and tuple(held.arrays[rank].shape) != value.local_shape(grid, rank)
    ]  # fmt: skip
    if not wrong:
        return None
    first = wrong[0]
    text = (
        f"{_listed(wrong)}: the local array is {list(held.arrays[first].shape)}, "
        f"the layout wants {list(value.local_shape(grid, first))}"
    )
    return Finding(Fault.SHAPE, tuple(wrong), text)


def check_complete(value: CaseValue, held: Held, grid: Grid) -> Finding | None:
    """Every owner must have its block, every block and share an owner, every element a value."""
    empty = [rank for rank in value.owners if rank not in held.arrays and math.prod(value.local_shape(grid, rank))]
    if empty:
        return Finding(Fault.UNDEFINED, tuple(empty), f"{_listed(empty)}: nothing arrives here")
    holes = [rank for rank in value.owners if rank in held.holes]
    if holes:
        first = held.holes[holes[0]]
        text = f"{_listed(holes)}: {int(first.sum())} of {first.size} elements are never written"
        return Finding(Fault.UNDEFINED, tuple(holes), text)
    axes = (*value.split, *value.folds)
    there = {grid.place(rank, axes) for rank in value.owners}
    missing = sorted(needed_places(value, grid) - there)
    if missing and not value.varying:
        where = ", ".join(f"{axis} {step}" for axis, step in zip(axes, missing[0], strict=True))
        more = f" ({len(missing)} such parts)" if len(missing) > 1 else ""
        return Finding(Fault.UNDEFINED, (), f"no owner holds the part at {where}{more}")
    return None


def check_copies(value: CaseValue, held: Held, grid: Grid, arithmetic: Arithmetic) -> Finding | None:
    """Owners that agree on everything but axes of equal copies must hold equal arrays."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in value.owners:
        if rank in held.arrays and value.is_valid(rank):
            groups.setdefault(value.replica_key(grid, rank), []).append(rank)
    wrong: list[int] = []
    example = ""
    for ranks in groups.values():
        first = held.arrays[ranks[0]]
        other = [rank for rank in ranks[1:] if not equal_copies(arithmetic, first, held.arrays[rank])]
        if other and not wrong:
            example = f"ranks {ranks[0]} and {other[0]} should hold equal copies and do not"
        wrong += [ranks[0], *other] if other else []
    if not wrong:
        return None
    axes = [axis for axis in value.copied(grid) if grid.size[axis] > 1]
    return Finding(Fault.DIVERGENCE, tuple(sorted(wrong)), f"{example} (copies along {', '.join(axes)})")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a value as one replica has it, beside the specification.

    Args:
        ranks: the ranks of the replica.
        found: what they mean together.
        wanted: the declared scale times the specification.
        right: whether all elements are equal.
    """

    ranks: tuple[int, ...]
    found: Array
    wanted: Array
    right: bool


def meanings(
    value: CaseValue, held: Held, whole: Array, grid: Grid, arithmetic: Arithmetic, scale: Fraction
) -> list[Meaning]:
    """The meaning of a value in every replica that is complete; of all owners together when none is by itself.

    Raises:
        ZeroDivisionError: the scale has no value in this arithmetic.
    """
    owners = [rank for rank in value.owners if rank in held.arrays and value.is_valid(rank)]
    wanted = whole if scale == 1 else arithmetic.settle(whole * arithmetic.number(scale))
    found: list[Meaning] = []
    for ranks in (*replicas(value, grid, owners), owners):
        if ranks is owners and found:
            break
        meaning = assemble(value, grid, arithmetic, held.arrays, ranks)
        if meaning is None:
            continue
        right = meaning.shape == wanted.shape and bool(np.all(same(arithmetic, meaning, wanted)))
        found.append(Meaning(tuple(ranks), meaning, wanted, right))
    return found
