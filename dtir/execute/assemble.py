"""Outputs of a run as undivided arrays.

A program that was partitioned elsewhere (a per-device HLO module) does not say how its outputs belong together. Where
that comes from is said with every output:

| source | what it is |
|---|---|
| `program` | the layout that the program states |
| `stated` | a layout handed in (that of the same module before it was partitioned, say) |
| `inferred` | a layout inferred from those of the inputs (`dtir.execute.inferred`), which fits the shapes and has equal copies |
| `shape` | the undivided shape is known, and the parts fit it in one way only (equal copies are found by value) |
| `equal` | every rank holds the same |
| `unknown` | none of these: the parts are given rank by rank |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import permutations

import numpy as np

from dtir.execute.accumulate import left_fold
from dtir.execute.dtypes import Array, is_extended
from dtir.execute.inferred import NOTHING_INFERRED, Inferred
from dtir.execute.placement import Placement
from dtir.execute.steps import ExecPlan, Form, Slot
from dtir.execute.values import Held, Slab, at, is_shared, rows

COPIES_RELATIVE = 1e-5
"""Copies that differ by less, relative to the greatest element, count as equal when a layout is inferred."""


class Source(Enum):
    """Where the layout of an output comes from."""

    PROGRAM = "program"
    STATED = "stated"
    INFERRED = "inferred"
    SHAPE = "shape"
    EQUAL = "equal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Output:
    """One output.

    Args:
        number: its number.
        name: what people call the value.
        source: where its layout comes from.
        array: the undivided array; None when the layout is unknown.
        parts: what each rank holds, when the layout is unknown.
        difference: greatest difference between copies that should be equal; 0.0 when all are.
        holes: elements that no rank holds.
    """

    number: int
    name: str
    source: Source
    array: Array | None = field(repr=False)
    parts: Mapping[int, Array] = field(default_factory=dict[int, Array], repr=False)
    difference: float = 0.0
    holes: int = 0


def assemble(
    plan: ExecPlan,
    slots: Sequence[int],
    held: Sequence[Held],
    stated: Mapping[int, Placement] | None = None,
    shapes: Mapping[int, tuple[int, ...]] | None = None,
    inferred: Inferred = NOTHING_INFERRED,
) -> list[Output]:
    """The outputs of a run.

    Args:
        slots: the slot of every output.
        held: what the ranks hold of it.
        stated: layouts by output number that the program itself lacks.
        shapes: undivided shapes by output number.
        inferred: layouts by output number that are likely, and used where they fit.
    """
    stated, shapes = stated or {}, shapes or {}
    return [
        _output(
            plan,
            number,
            plan.main.slots[slot],
            parts,
            stated.get(number),
            shapes.get(number),
            inferred.layouts.get(number) if number in shapes or not inferred.by_hand else None,
        )
        for number, (slot, parts) in enumerate(zip(slots, held, strict=True))
    ]


def _output(
    plan: ExecPlan,
    number: int,
    slot: Slot,
    held: Held,
    stated: Placement | None,
    shape: tuple[int, ...] | None,
    inferred: Placement | None,
) -> Output:
    if plan.form is Form.UNDIVIDED:
        return Output(number, slot.name, Source.PROGRAM, rows(held)[0])
    if not slot.placement.sharding.varying:
        return _joined(number, slot.name, Source.PROGRAM, held, slot.placement)
    local = slot.shape
    if stated is not None and local is not None and _fits(stated, local, plan.ranks):
        return _joined(number, slot.name, Source.STATED, held, stated)
    if inferred is not None and local is not None and (found := _inferred(held, inferred, local, shape)) is not None:
        return _joined(number, slot.name, Source.INFERRED, held, found)
    if shape is not None and isinstance(held, Slab) and local is not None:
        tiles = tiling(held, local, shape)
        if tiles is not None:
            return Output(number, slot.name, Source.SHAPE, tiled(held, shape, tiles))
    if isinstance(held, Slab) and _all_equal(held):
        return Output(number, slot.name, Source.EQUAL, rows(held)[0])
    return Output(number, slot.name, Source.UNKNOWN, None, dict(zip(held.ranks, rows(held), strict=True)))


def _fits(placement: Placement, local: tuple[int, ...], ranks: int) -> bool:
    """Whether shards of a layout have the shape that ranks hold: ceil(extent / shards), the tail padded."""
    if placement.mesh.size != ranks or len(placement.shape) != len(local):
        return False
    return all(
        -(-extent // placement.shards(dim)) == size
        for dim, (extent, size) in enumerate(zip(placement.shape, local, strict=True))
    )


def _inferred(
    held: Held, placement: Placement, local: tuple[int, ...], shape: tuple[int, ...] | None
) -> Placement | None:
    """An inferred layout that fits: shards of the right shape, and equal copies; for the undivided shape where it is known."""
    whole = placement if shape is None else replace(placement, shape=shape)
    if not _fits(whole, local, len(held.ranks)) or not any(whole.sharding.dimension_axes):
        return None
    first: dict[tuple[tuple[int, int], ...], Array] = {}
    for rank, row in zip(held.ranks, rows(held), strict=True):
        box = tuple(_block(whole, rank))
        known = first.setdefault(box, row)
        if known is not row and _distance(known, row) > COPIES_RELATIVE * float(
            np.abs(known.astype(complex)).max(initial=0)
        ):
            return None
    return whole


def _joined(number: int, name: str, source: Source, held: Held, placement: Placement) -> Output:
    """Blocks put together; pending values folded, copies compared."""
    if placement.partial_axes:
        held, placement = _folded(held, placement)
    if isinstance(held, Slab) and placement.same_on_all() and is_shared(held):
        return Output(number, name, source, rows(held)[0])
    dtype = rows(held)[0].dtype
    whole = np.zeros(placement.shape, dtype)
    filled = np.zeros(placement.shape, bool)
    difference = 0.0
    for rank in held.ranks:
        box = tuple(slice(start, stop) for start, stop in _block(placement, rank))
        part = _inside(at(held, rank), placement, rank, tuple(cut.stop - cut.start for cut in box))
        if filled[box].all() and part.size:
            difference = max(difference, _distance(whole[box], part))
            continue
        whole[box] = part
        filled[box] = True
    return Output(number, name, source, whole, difference=difference, holes=int((~filled).sum()))


def _block(placement: Placement, rank: int) -> list[tuple[int, int]]:
    """The block of a rank; an extent that does not divide is cut into pieces of ceil(extent / shards)."""
    found: list[tuple[int, int]] = []
    for dim, extent in enumerate(placement.shape):
        shards = placement.shards(dim)
        if placement.sizes(dim) is None and extent % shards:
            step = -(-extent // shards)
            start = placement.position(rank, placement.sharding.dimension_axes[dim]) * step
            found.append((min(start, extent), min(start + step, extent)))
        else:
            span = placement.box(rank)[dim]
            found.append(span)
    return found


def _inside(array: Array, placement: Placement, rank: int, sizes: Sequence[int]) -> Array:
    starts = [placement.halo(dim)[0] for dim in range(len(sizes))]
    return array[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


def _folded(held: Held, placement: Placement) -> tuple[Held, Placement]:
    """A pending value as its reduction, on the first coordinates of the pending axes."""
    partial = placement.sharding.partial
    assert partial is not None
    groups: dict[tuple[int, ...], list[int]] = {}
    others = tuple(axis for axis in placement.mesh.axis_names if axis not in partial.axes)
    for rank in held.ranks:
        groups.setdefault((placement.position(rank, others),), []).append(rank)
    ranks: list[int] = []
    arrays: list[Array] = []
    for members in groups.values():
        parts = np.stack([at(held, rank) for rank in members])
        ranks.append(members[0])
        arrays.append(left_fold(np, parts, partial.op))
    order = sorted(range(len(ranks)), key=lambda place: ranks[place])
    from dtir.execute.values import stack

    return stack(tuple(ranks[place] for place in order), [arrays[place] for place in order]), placement


def _distance(left: Array, right: Array) -> float:
    if left.dtype.kind in "biu" and not is_extended(left.dtype):
        return float((left != right).any())
    a, b = left.astype(np.complex128), right.astype(np.complex128)
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
    apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, apart)
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def _all_equal(held: Slab) -> bool:
    if is_shared(held) or len(held.ranks) == 1:
        return True
    first = held.array[0]
    return all(np.array_equal(first, row, equal_nan=first.dtype.kind in "fc") for row in held.array[1:])


# -- layouts by shape ---------------------------------------------------------------------------------------------------------


def tiling(held: Slab, local: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
    """The tile of every rank (its index along every dim) that makes one array of `shape`.

    A rank number is read as digits, one a dim and one or two for the copies, in any order; ranks with the same tile must
    hold equal arrays.

    Returns:
        None when the shapes do not fit, no reading has equal copies, or two readings have and give different arrays.
    """
    ranks = len(held.ranks)
    if len(local) != len(shape):
        return None
    counts: list[int] = []
    for extent, size in zip(shape, local, strict=True):
        count = -(-extent // size) if size else 1
        # Tail shards may be empty: the partitioner cuts ceil(extent / n) elements for each of n ranks.
        counts.append(count)
    if any(extent < size for extent, size in zip(shape, local, strict=True)):
        return None
    tiles = math.prod(counts)
    if tiles == 1:
        return tuple(tuple(0 for _ in local) for _ in range(ranks)) if _all_equal(held) else None
    counts = stretched(counts, shape, local, ranks)
    if ranks % math.prod(counts):
        return None
    copies = ranks // math.prod(counts)
    chosen: tuple[tuple[int, ...], ...] | None = None
    for found in tile_orders(counts, copies, ranks):
        if not _copies_equal(held, found):
            continue
        if chosen is not None and not np.array_equal(
            tiled(held, shape, chosen), tiled(held, shape, found), equal_nan=held.array.dtype.kind in "fc"
        ):
            return None  # two ways fit and differ: neither is known to be right
        chosen = chosen or found
    return chosen


def stretched(counts: list[int], shape: tuple[int, ...], local: tuple[int, ...], ranks: int) -> list[int]:
    """Shard counts, with empty tail shards where only they make the counts divide the number of ranks."""
    if ranks % math.prod(counts) == 0:
        return counts
    for dim, (extent, size) in enumerate(zip(shape, local, strict=True)):
        for count in range(counts[dim] + 1, ranks + 1):
            if -(-extent // count) != size:
                break
            tried = [*counts[:dim], count, *counts[dim + 1 :]]
            if ranks % math.prod(tried) == 0:
                return tried
    return counts


MOST_ORDERS = 5_000
"""Ways to number tiles that are tried."""


def tile_orders(counts: Sequence[int], copies: int, ranks: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The different ways to read rank numbers as tiles: every order of the digits of the dims and of the copies.

    The copies may be one digit or two, since an axis that splits a dim may lie between two that do not.
    """
    tiles = [(dim, count) for dim, count in enumerate(counts) if count > 1]
    splits: list[list[tuple[int, int]]] = [[(-1, copies)]] if copies > 1 else [[]]
    splits += [[(-1, part), (-2, copies // part)] for part in range(2, copies // 2 + 1) if copies % part == 0]
    seen: set[tuple[tuple[int, ...], ...]] = set()
    tried = 0
    for extra in splits:
        for order in permutations([*tiles, *extra]):
            tried += 1
            if tried > MOST_ORDERS:
                return
            found = tuple(_place(rank, order, len(counts)) for rank in range(ranks))
            if found not in seen:
                seen.add(found)
                yield found


def _place(rank: int, order: Sequence[tuple[int, int]], dims: int) -> tuple[int, ...]:
    place = [0] * dims
    for dim, size in reversed(order):
        rank, digit = divmod(rank, size)
        if dim >= 0:
            place[dim] = digit
    return tuple(place)


def _copies_equal(held: Slab, tiles: Sequence[tuple[int, ...]]) -> bool:
    first: dict[tuple[int, ...], Array] = {}
    for tile, row in zip(tiles, held.array, strict=True):
        if tile not in first:
            first[tile] = row
        elif not np.array_equal(first[tile], row, equal_nan=row.dtype.kind in "fc"):
            return False
    return True


def tiled(held: Slab, shape: tuple[int, ...], tiles: Sequence[tuple[int, ...]]) -> Array:
    """The undivided array of a shape, put together from the tiles that ranks hold; what is padded is left out."""
    whole = np.zeros(shape, held.array.dtype)
    for tile, row in zip(tiles, held.array, strict=True):
        box = tuple(
            slice(min(place * size, extent), min((place + 1) * size, extent))
            for place, size, extent in zip(tile, row.shape, shape, strict=True)
        )
        sizes = tuple(slice(0, cut.stop - cut.start) for cut in box)
        whole[box] = row[sizes]
    return whole
