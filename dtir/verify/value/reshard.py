"""Reshards: every destination block filled from source blocks, region by region or as a whole."""

from __future__ import annotations

import numpy as np

from dtir.ir import ReductionKind
from dtir.ops.arithmetic import Arithmetic, Array
from dtir.verify.value.case import CaseTask, CaseValue, Region
from dtir.verify.value.grid import Grid
from dtir.verify.value.held import Held, fold


def run_reshard(
    task: CaseTask, source: CaseValue, result: CaseValue, held: Held, grid: Grid, arithmetic: Arithmetic
) -> Held:
    """What the owners of `result` hold after a change of layout.

    A rank that has an element keeps its own; else it takes it from an owner, and copies of one destination block take it from
    different owners, so that sources that are not equal show.
    """
    found = Held({}, ghosts=task.kind == "halo")
    if task.kind == "halo":
        # Every rank keeps its own block and gets a frame around it; no block moves.
        found.arrays = {rank: held.arrays[rank] for rank in result.owners if rank in held.arrays}
        return found
    if source.varying or result.varying or source.local_shapes or result.local_shapes:
        _same_ranks(source, result, held, found, grid)
        return found
    copies: dict[tuple[int, ...], int] = {}
    view = _View(task, source, result, held, grid, arithmetic)
    for rank in result.owners:
        place = grid.place(rank, result.split)
        number = copies.get(place, 0)
        copies[place] = number + 1
        elements, there = view.seen_by(rank, number)
        _fill(task.regions, result, grid, rank, elements, there, found)
    return found


def _same_ranks(source: CaseValue, result: CaseValue, held: Held, found: Held, grid: Grid) -> None:
    """Per-rank data has no blocks to move: every rank keeps what it has."""
    del source
    for rank in result.owners:
        if rank in held.arrays and held.arrays[rank].shape == result.local_shape(grid, rank):
            found.arrays[rank] = held.arrays[rank]


def _fill(
    regions: tuple[Region, ...],
    result: CaseValue,
    grid: Grid,
    rank: int,
    elements: Array,
    there: Array,
    found: Held,
) -> None:
    spans = result.block(grid, rank)
    if len(spans) != elements.ndim:
        found.fault = found.fault or f"{elements.ndim} dims cannot be resharded to {len(spans)}"
        return
    shape = tuple(span.held for span in spans)
    block = np.zeros(shape, dtype=elements.dtype)
    written = np.zeros(shape, dtype=bool)
    # Padding is nobody's element: it counts as written.
    for dim, span in enumerate(spans):
        written[(slice(None),) * dim + (slice(span.stop - span.start, None),)] = True
    whole = tuple((0, extent) for extent in result.shape)
    for region in regions or (Region(whole, whole),):
        if len(region.box) != len(spans) or len(region.source) != len(spans):
            found.fault = found.fault or f"a region has {len(region.box)} ranges for {len(spans)} dims"
            return
        target: list[slice] = []
        origin: list[slice] = []
        for span, (start, stop), (first, last), extent in zip(
            spans, region.box, region.source, elements.shape, strict=True
        ):
            low, high = max(start, span.start), min(stop, span.stop)
            # The part of the box that this block has, cut to what the source range and the source have.
            high = min(high, start + (last - first), start + (extent - first))
            target.append(slice(low - span.start, max(low, high) - span.start))
            origin.append(slice(first + low - start, first + max(low, high) - start))
        block[tuple(target)] = elements[tuple(origin)]
        written[tuple(target)] = there[tuple(origin)]
    found.arrays[rank] = block
    if not written.all():
        found.holes[rank] = ~written


class _View:
    """The source of a reshard as a destination rank sees it."""

    def __init__(
        self,
        task: CaseTask,
        source: CaseValue,
        result: CaseValue,
        held: Held,
        grid: Grid,
        arithmetic: Arithmetic,
    ) -> None:
        self.source, self.held, self.grid, self.arithmetic = source, held, grid, arithmetic
        self.kept = tuple(axis for axis in source.folds if axis in result.folds)
        reduce = task.attributes.get("reduce")
        self.reduced = reduce is not None and reduce is not False
        self.blocks: dict[tuple[int, ...], list[int]] = {}
        for rank in source.owners:
            if source.is_valid(rank) and rank in held.arrays:
                self.blocks.setdefault(grid.place(rank, source.split), []).append(rank)

    def seen_by(self, rank: int, number: int) -> tuple[Array, Array]:
        """The whole source and which of its elements are there, for the destination's copy `number`."""
        kind = np.int64 if self.arithmetic.exact else np.float64
        elements = np.zeros(self.source.shape, dtype=kind)
        there = np.zeros(self.source.shape, dtype=bool)
        own = self.grid.place(rank, self.source.split)
        for place, owners in self.blocks.items():
            candidates = [
                item for item in owners if self.grid.place(item, self.kept) == self.grid.place(rank, self.kept)
            ]
            if not candidates:
                continue
            chosen = rank if place == own and rank in candidates else candidates[number % len(candidates)]
            spans = self.source.block(self.grid, chosen)
            array = self._array(chosen, candidates)
            real = tuple(slice(0, span.stop - span.start) for span in spans)
            where = tuple(slice(span.start, span.stop) for span in spans)
            if array is None or array.ndim != len(spans):
                continue
            elements[where] = array[real]
            there[where] = True
        return elements, there

    def _array(self, chosen: int, candidates: list[int]) -> Array | None:
        array = self.held.arrays[chosen]
        pending = {axis: kind for axis, kind in self.source.folds.items() if axis not in self.kept}
        if not self.reduced or not pending:
            return array
        shares: dict[tuple[int, ...], Array] = {}
        for rank in candidates:
            shares.setdefault(self.grid.place(rank, pending), self.held.arrays[rank])
        kind = next(iter(pending.values()), ReductionKind.SUM)
        return fold(self.arithmetic, [shares[place] for place in sorted(shares)], kind)
