"""Whether two arrays hold the same, and whether parts of ranks are blocks of a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dtir.execute.assemble import stretched, tile_orders
from dtir.execute.dtypes import Array, is_extended, unit_roundoff
from dtir.execute.placement import Placement
from dtir.execute.values import Held, rows

RELATIVE = 2e-5
"""How far float32 results of two forms may be apart, relative to the greatest element: they sum in different orders."""
RELATIVE_DOUBLE = 1e-12
NARROW_ROUNDINGS = 8
"""16-bit and narrower floats: roundings that one form may do and the other not."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two arrays compared.

    Args:
        max_error: greatest absolute difference; infinite where one has a NaN and the other has none.
        bound: what counts as rounding.
        wrong: elements that differ by more.
        size: elements compared.
    """

    max_error: float
    bound: float
    wrong: int
    size: int

    @property
    def equal(self) -> bool:
        return self.wrong == 0


NOTHING = Agreement(0.0, 0.0, 0, 0)


def bound_of(wanted: Array) -> float:
    """What counts as rounding of an array; 0 for exact types.

    >>> import numpy as np
    >>> bound_of(np.array([1, 2])), bound_of(np.array([2.0], np.float32)) == 2 * RELATIVE
    (0.0, True)
    """
    roundoff = unit_roundoff(wanted.dtype)
    if roundoff == 0.0:
        return 0.0
    single = unit_roundoff(np.dtype(np.float32))
    relative = RELATIVE if roundoff >= single else RELATIVE_DOUBLE
    if roundoff > single:
        relative = max(relative, NARROW_ROUNDINGS * roundoff)
    finite = np.abs(np.nan_to_num(np.asarray(wanted, np.complex128), nan=0.0, posinf=0.0, neginf=0.0))
    return relative * float(finite.max(initial=0.0))


def compare(found: Array, wanted: Array, bound: float | None = None) -> Agreement:
    """Compare two arrays of one shape; NaN equals NaN."""
    limit = bound_of(wanted) if bound is None else bound
    if found.dtype.kind in "biu" and not is_extended(found.dtype):
        wrong = int((found != wanted).sum())
        apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        return Agreement(float(apart.max(initial=0.0)), 0.0, wrong, int(found.size))
    a, b = np.asarray(found, np.complex128), np.asarray(wanted, np.complex128)
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
    apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isnan(apart), np.inf, apart))
    return Agreement(float(apart.max(initial=0.0)), limit, int((apart > limit).sum()), int(found.size))


def together(found: Iterable[Agreement]) -> Agreement:
    """Several comparisons as one."""
    made = NOTHING
    for one in found:
        made = Agreement(
            max(made.max_error, one.max_error), max(made.bound, one.bound), made.wrong + one.wrong, made.size + one.size
        )
    return made


def parts_alike(found: Held, wanted: Held) -> Agreement | None:
    """Rank by rank; None when ranks or shapes differ."""
    if list(found.ranks) != list(wanted.ranks):
        return None
    pairs = list(zip(rows(found), rows(wanted), strict=True))
    if any(one.shape != other.shape or one.dtype != other.dtype for one, other in pairs):
        return None
    return together(compare(one, other) for one, other in pairs)


def blocks_of(placement: Placement, ranks: int) -> list[tuple[slice, ...]] | None:
    """The block of every rank under a layout, cut at the extent; None for layouts that are no plain split."""
    sharding = placement.sharding
    if placement.mesh.size != ranks or sharding.varying or sharding.partial is not None or placement.has_ghosts:
        return None
    blocks: list[tuple[slice, ...]] = []
    for rank in range(ranks):
        block: list[slice] = []
        for dim, extent in enumerate(placement.shape):
            shards = placement.shards(dim)
            step = -(-extent // shards)
            start = placement.position(rank, sharding.dimension_axes[dim]) * step
            block.append(slice(min(start, extent), min(start + step, extent)))
        blocks.append(tuple(block))
    return blocks


def parts_of_whole(found: Held, whole: Array, blocks: list[tuple[slice, ...]]) -> Agreement | None:
    """The part of every rank against its block of the whole; padding behind the extent is free. None when shapes do not fit."""
    compared: list[Agreement] = []
    bound = bound_of(whole)
    # A partitioner gives every rank as much as the first; the tail is padded.
    full = [max(block[dim].stop - block[dim].start for block in blocks) for dim in range(whole.ndim)]
    for part, block in zip(rows(found), blocks, strict=True):
        wanted = whole[block]
        if part.dtype != whole.dtype or part.ndim != whole.ndim:
            return None
        if any(size not in (cut, most) for size, cut, most in zip(part.shape, wanted.shape, full, strict=True)):
            return None
        compared.append(compare(part[tuple(slice(0, cut) for cut in wanted.shape)], wanted, bound))
    return together(compared)


def possible_blocks(local: tuple[int, ...], shape: tuple[int, ...], ranks: int) -> Iterator[list[tuple[slice, ...]]]:
    """Every way to read rank numbers as blocks of `local` elements of an array of `shape`."""
    if len(local) != len(shape) or any(size > extent for size, extent in zip(local, shape, strict=True)):
        return
    counts = [-(-extent // size) if size else 1 for size, extent in zip(local, shape, strict=True)]
    counts = stretched(counts, shape, local, ranks)
    if ranks % math.prod(counts):
        return
    for tiles in tile_orders(counts, ranks // math.prod(counts), ranks):
        yield [
            tuple(
                slice(min(place * size, extent), min((place + 1) * size, extent))
                for place, size, extent in zip(tile, local, shape, strict=True)
            )
            for tile in tiles
        ]
