"""Collectives as messages of our own: every transfer is issued here, so that bytes are known exactly beforehand.

Reductions are folded from the left in group order, in float32 for 16-bit floats, and rounded once: bit for bit what one
process with all ranks computes. An all_reduce cuts the value into one chunk a process; each process gets its chunk of
every member, folds it, and hands the result to the others: ``2 (k-1)/k n`` bytes a rank, as the best algorithms
(Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from dtir.execute.accumulate import ReductionError, left_fold
from dtir.execute.backends.mpi_layout import GroupLayout, Operand, chunk_bounds
from dtir.execute.backends.mpi_messages import Messenger
from dtir.execute.buffers import Buffers
from dtir.execute.dtypes import Array
from dtir.execute.exchange import Exchange
from dtir.execute.semantics import ExchangeError, shard_bounds
from dtir.ir.reductions import ReductionKind

Combine: TypeAlias = Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Direct:
    """The exchange of one group, seen by one process.

    Args:
        messenger: carries the messages.
        request: the collective.
        number: of the group among the request's groups.
        layout: the group over processes.
        process: this one.
        buffers: memory for results.
    """

    messenger: Messenger
    request: Exchange
    number: int
    layout: GroupLayout
    process: int
    buffers: Buffers

    @property
    def mine(self) -> tuple[int, ...]:
        """Positions of this process's members in the group."""
        return self.layout.places[self.process]

    @property
    def others(self) -> tuple[int, ...]:
        """The other processes of the group."""
        return self.layout.others(self.process)

    # -- reductions -----------------------------------------------------------------------------------------------------

    def all_reduce(self, operand: Operand, arrays: Mapping[int, Array], combine: Combine | None, tag: int) -> Array:
        """The reduction of all members.

        Args:
            operand: what the members bring.
            arrays: those of this process, by position.
            combine: the computation of a custom reduction.
            tag: of the messages; the next one is used too.
        """
        layout = self.layout
        operand.require_even(self.request.kind.value)
        first = arrays[self.mine[0]]
        flat = {place: np.ascontiguousarray(array).reshape(-1) for place, array in arrays.items()}
        bounds = dict(zip(layout.processes, chunk_bounds(first.size, len(layout.processes)), strict=True))
        parts = self._chunks(flat, bounds, operand, tag)
        whole = self.buffers.empty((first.size,), operand.dtype)
        own = whole[slice(*bounds[self.process])]
        if own.size:
            own[...] = self._folded(parts, combine)
        self.messenger.swap(
            [(other, (own,)) for other in self.others],
            [(other, (whole[slice(*bounds[other])],)) for other in self.others],
            tag + 1,
        )
        return whole.reshape(first.shape)

    def _chunks(
        self, flat: Mapping[int, Array], bounds: Mapping[int, tuple[int, int]], operand: Operand, tag: int
    ) -> Array:
        """This process's chunk of every member, ``(members, chunk)``."""
        layout = self.layout
        start, stop = bounds[self.process]
        parts = self.buffers.empty((len(layout.members), stop - start), operand.dtype)
        for place, array in flat.items():
            parts[place] = array[start:stop]
        self.messenger.swap(
            [(other, [flat[place][slice(*bounds[other])] for place in self.mine]) for other in self.others],
            [(other, [parts[place] for place in layout.places[other]]) for other in self.others],
            tag,
        )
        return parts

    def reduce_scatter(
        self, operand: Operand, arrays: Mapping[int, Array], combine: Combine | None, tag: int
    ) -> list[Array]:
        """Each member's block of the reduction, for the members of this process."""
        layout, dim = self.layout, self._dim(self.request.dim, operand)
        operand.require_even(self.request.kind.value)
        extent = operand.shapes[self.mine[0]][dim]
        cuts = [_cut(dim, bounds) for bounds in shard_bounds(extent, len(layout.members), self._sizes())]
        gathered: dict[int, Array] = {}
        for target in self.mine:
            block = arrays[self.mine[0]][cuts[target]]
            parts = gathered[target] = self.buffers.empty((len(layout.members), *block.shape), operand.dtype)
            for place, array in arrays.items():
                parts[place] = array[cuts[target]]
        self.messenger.swap(
            [
                (other, [arrays[place][cuts[target]] for target in layout.places[other] for place in self.mine])
                for other in self.others
            ],
            [
                (other, [gathered[target][place] for target in self.mine for place in layout.places[other]])
                for other in self.others
            ],
            tag,
        )
        return [self._folded(gathered[target], combine) for target in self.mine]

    def _folded(self, parts: Array, combine: Combine | None) -> Array:
        kind = self.request.reduction
        if kind is None:
            raise ReductionError(f"{self.request.kind.value} names no reduction")
        if kind is not ReductionKind.CUSTOM:
            return left_fold(np, parts, kind)
        if combine is None:
            raise ReductionError("a custom reduction needs its computation")
        if not parts.size:
            return parts[0]
        total = parts[0]
        for part in parts[1:]:
            total = combine(total, part)
        return total

    # -- exchanges that compute nothing -----------------------------------------------------------------------------------

    def all_gather(self, operand: Operand, arrays: Mapping[int, Array], tag: int) -> Array:
        """The members' arrays joined along the dim.

        Members may differ in it where the exchange says so; where it trims, each has as much room as the largest. Only
        what they hold is sent.
        """
        layout, request = self.layout, self.request
        dim = self._dim(request.dim, operand)
        uneven = request.vector or request.trim is not None
        _require_fit(operand.shapes, dim, "all_gather", uneven=uneven)
        extents = [found[dim] for found in operand.shapes]
        largest = max(extents)
        rooms = [largest] * len(extents) if request.trim is not None and not request.vector else extents
        starts = [sum(rooms[:place]) for place in range(len(rooms))]
        shape = list(operand.shapes[0])
        shape[dim] = sum(rooms)
        whole = self.buffers.empty(shape, operand.dtype) if rooms == extents else np.zeros(shape, operand.dtype)
        blocks = [whole[_cut(dim, (start, start + extent))] for start, extent in zip(starts, extents, strict=True)]
        for place, array in arrays.items():
            blocks[place][...] = array
        outgoing = [arrays[place] for place in self.mine]
        self.messenger.swap(
            [(other, outgoing) for other in self.others],
            [(other, [blocks[place] for place in layout.places[other]]) for other in self.others],
            tag,
        )
        return whole

    def all_to_all(self, operand: Operand, arrays: Mapping[int, Array], tag: int) -> list[Array]:
        """Block j of member i at member j, joined in group order; for the members of this process."""
        layout, request = self.layout, self.request
        split, concat = self._dim(request.split, operand), self._dim(request.concat, operand)
        count, sizes = len(layout.members), self._sizes()
        cuts = [
            [_cut(split, bounds) for bounds in shard_bounds(shape[split], count, sizes)] for shape in operand.shapes
        ]
        results: list[Array] = []
        blocks: dict[int, list[Array]] = {}
        for target in self.mine:
            shapes = [_cut_shape(shape, cuts[place][target]) for place, shape in enumerate(operand.shapes)]
            _require_fit(shapes, concat, "all_to_all")
            starts = [0]
            for shape in shapes:
                starts.append(starts[-1] + shape[concat])
            joined = list(shapes[0])
            joined[concat] = starts[-1]
            whole = self.buffers.empty(joined, operand.dtype)
            results.append(whole)
            blocks[target] = [whole[_cut(concat, bounds)] for bounds in pairwise(starts)]
            for place, array in arrays.items():
                blocks[target][place][...] = array[cuts[place][target]]
        self.messenger.swap(
            [
                (other, [arrays[place][cuts[place][target]] for target in layout.places[other] for place in self.mine])
                for other in self.others
            ],
            [
                (other, [blocks[target][place] for target in self.mine for place in layout.places[other]])
                for other in self.others
            ],
            tag,
        )
        return results

    def tuple_all_to_all(
        self, operands: Sequence[Operand], arrays: Sequence[Mapping[int, Array]], tag: int
    ) -> dict[int, list[Array]]:
        """Operand j of member i as result i of member j: by position of the members of this process, all their results."""
        layout = self.layout
        results: dict[int, list[Array]] = {}
        for target in self.mine:
            results[target] = [
                np.empty(operands[target].shapes[place], operands[target].dtype) for place in range(len(layout.members))
            ]
            for place in self.mine:
                results[target][place][...] = arrays[target][place]
        self.messenger.swap(
            [
                (other, [arrays[target][place] for target in layout.places[other] for place in self.mine])
                for other in self.others
            ],
            [
                (other, [results[target][place] for target in self.mine for place in layout.places[other]])
                for other in self.others
            ],
            tag,
        )
        return results

    def broadcast(self, operand: Operand, array: Array | None, tag: int) -> Array:
        """The root's array; `array` is that of the root, where it lives here."""
        root = self.request.roots[self.number]
        if root in self.mine:
            assert array is not None
            self.messenger.swap([(other, (array,)) for other in self.others], (), tag)
            return array
        process = next(process for process, places in self.layout.places.items() if root in places)
        found = self.buffers.empty(operand.shapes[root], operand.dtype)
        self.messenger.swap((), [(process, (found,))], tag)
        return found

    # -- parts ----------------------------------------------------------------------------------------------------------

    def _dim(self, dim: int | None, operand: Operand) -> int:
        rank = len(operand.shapes[0])
        if dim is None or not 0 <= dim < rank:
            raise ExchangeError(f"{self.request.kind.value} needs a dim of an array of {rank} dims, got {dim}")
        return dim

    def _sizes(self) -> tuple[int, ...] | None:
        return self.request.sizes[self.number] if self.request.sizes is not None else None


def _require_fit(shapes: Sequence[tuple[int, ...]], dim: int, what: str, *, uneven: bool = True) -> None:
    """Raise unless arrays can be joined along a dim: every process finds the same, before anything is sent.

    Args:
        uneven: they may differ in that dim.

    Raises:
        ExchangeError: with the first two that differ.
    """
    for place, shape in enumerate(shapes):
        others_fit = shape[:dim] == shapes[0][:dim] and shape[dim + 1 :] == shapes[0][dim + 1 :]
        if not others_fit or (not uneven and shape != shapes[0]):
            raise ExchangeError(f"{what} along dim {dim}: member 0 has {list(shapes[0])}, member {place} {list(shape)}")


def _cut(dim: int, bounds: tuple[int, int]) -> tuple[slice, ...]:
    return (slice(None),) * dim + (slice(*bounds),)


def _cut_shape(shape: Sequence[int], cut: tuple[slice, ...]) -> tuple[int, ...]:
    dim = len(cut) - 1
    return (*shape[:dim], cut[dim].stop - cut[dim].start, *shape[dim + 1 :])
