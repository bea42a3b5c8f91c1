"""Transfers between ranks of several processes: permutes, and blocks that go from one rank to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtir.execute.backends.mpi_prepare import ReadyExchange, ReadyMoves, held_shape
from dtir.execute.backends.mpi_presence import Presence
from dtir.execute.backends.mpi_world import World
from dtir.execute.dtypes import Array, numpy_dtype
from dtir.execute.exchange import Move, Moves
from dtir.execute.placement import Box
from dtir.execute.values import Held, Slab, at, stack


@dataclass(frozen=True, slots=True)
class Transfers:
    """The transfers of one process.

    Args:
        world: the processes.
        here: the ranks of this one.
        presence: which ranks of all processes are there.
    """

    world: World
    here: frozenset[int]
    presence: Presence

    def permuted(self, ready: ReadyExchange, number: int, operand: Held, ranks: Sequence[int], tag: int) -> Held:
        """The results of a permute for one of its operands; a rank that gets nothing has zeros."""
        request, slot = ready.step.exchange, ready.slots[number]
        assert request is not None
        sources = {target: source for source, target in request.pairs if target in self.here}
        dtype = numpy_dtype(slot.value.type.dtype)
        found: dict[int, Array] = {}
        for rank in ranks:
            source = sources.get(rank)
            if source is None:
                found[rank] = np.zeros(held_shape(slot, rank), dtype)
            elif source in self.here:
                found[rank] = at(operand, source)
            else:
                found[rank] = np.empty(held_shape(slot, source), dtype)
        incoming = [
            (process, [found[target] for _, target in pairs if target in found])
            for process, pairs in ready.crossing.items()
        ]
        outgoing = [
            (
                process,
                [
                    np.asarray(at(operand, source), order="C")
                    for source, target in pairs
                    if source in ranks and self.presence.has(target)
                ],
            )
            for process, pairs in ready.crossing.items()
        ]
        self.world.messenger.swap(outgoing, incoming, tag)
        return stack(ranks, [found[rank] for rank in ranks])

    def moved(self, ready: ReadyMoves, request: Moves, operand: Held, tag: int) -> Held:
        """The results of transfers, on the ranks of this process that have one.

        Raises:
            ExchangeError: who should send never arrives.
        """
        there = self.presence
        if there.ranks is not None:
            ready = self._still_there(ready)
        arrived: dict[int, Array] = {}
        incoming: list[tuple[int, list[Array]]] = []
        for process, moves in ready.incoming.items():
            blocks = [np.empty(_shape(move.source_box), ready.dtype) for move in moves]
            arrived.update({id(move): block for move, block in zip(moves, blocks, strict=True)})
            incoming.append((process, blocks))
        outgoing = [
            (process, [np.asarray(at(operand, move.source)[_index(move.source_box)], order="C") for move in moves])
            for process, moves in ready.outgoing.items()
        ]
        self.world.messenger.swap(outgoing, incoming, tag)
        if not ready.shapes:
            like = next(iter(request.shapes.values()), ())
            return Slab((), np.empty((0, *like), ready.dtype))
        filled = {rank: np.zeros(shape, ready.dtype) for rank, shape in ready.shapes.items()}
        # In the order of the list: where blocks meet, the later one counts.
        for move in ready.arriving:
            block = arrived.get(id(move))
            if block is None:
                block = at(operand, move.source)[_index(move.source_box)]
            filled[move.destination][_index(move.destination_box)] = block
        targets = tuple(sorted(filled))
        return stack(targets, [filled[rank] for rank in targets])

    def _still_there(self, ready: ReadyMoves) -> ReadyMoves:
        """The transfers among ranks that are there."""
        there = self.presence

        def kept(moves: Sequence[Move]) -> tuple[Move, ...]:
            found = tuple(move for move in moves if there.has(move.destination))
            for move in found:
                there.require((move.destination,), () if there.has(move.source) else (move.source,))
            return found

        return replace(
            ready,
            outgoing={process: kept(moves) for process, moves in ready.outgoing.items()},
            incoming={process: kept(moves) for process, moves in ready.incoming.items()},
            arriving=kept(ready.arriving),
            shapes={rank: shape for rank, shape in ready.shapes.items() if there.has(rank)},
        )


def _index(box: Box) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in box)


def _shape(box: Box) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in box)
