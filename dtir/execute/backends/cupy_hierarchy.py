"""Communication of ranks on several devices: fused kernels on each, NCCL between them, fused kernels again.

NCCL never sees two ranks of one device. An all_reduce folds the ranks of a device with one kernel (sums of 16-bit floats stay
in float32), reduces over devices, and rounds once; an all_to_all sends each pair of devices one message with all the blocks
between them. Everything else, and everything where the order of the ranks counts (``--algorithm ordered``), sends each
device the parts that its ranks need, and does there what one device does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtir.execute.backends.base import Combine
from dtir.execute.backends.cupy_fabric import ELEMENT_OF, DeviceFabric
from dtir.execute.backends.cupy_lane import Lane
from dtir.execute.backends.cupy_peers import Card, Peers, Places
from dtir.execute.backends.cupy_trade import BlockTrade, is_block_exchange
from dtir.execute.dtypes import Array, needs_float32
from dtir.execute.exchange import Exchange, Group, Moves
from dtir.execute.fabric import LocalFabric
from dtir.execute.kernels import can_fold, fold
from dtir.execute.steps import Step
from dtir.execute.values import Held, Slab, at, is_shared, rows, shared, stack, take
from dtir.ir.collectives import CollectiveKind
from dtir.ir.reductions import ReductionKind

_BETWEEN = (ReductionKind.SUM, ReductionKind.PRODUCT, ReductionKind.MAX, ReductionKind.MIN)
"""Reductions that NCCL does."""

_NCCL_ELEMENTS = frozenset({"f32", "f64", "i8", "u8", "i32", "u32", "i64", "u64"})
"""Element types that it reduces, beside those that are float32 by then."""


@dataclass(frozen=True, slots=True)
class _Span:
    """A step that spans devices.

    Args:
        places: the devices.
        here: this one.
        cards: what each says.
    """

    places: Places
    here: int
    cards: Mapping[int, Card]

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks that take part."""
        return tuple(sorted(rank for card in self.cards.values() for rank in card.ranks))


class HierarchicalFabric(DeviceFabric):
    """Exchanges among ranks of several devices, as seen by one of them.

    Args:
        ranks: the ranks of the device.
        lane: the device.
        peers: all devices.
        place: its number among them.
    """

    def __init__(self, ranks: Sequence[int], lane: Lane, peers: Peers, place: int) -> None:
        super().__init__(ranks, lane)
        self._peers = peers
        self._place = place
        self._step: Step | None = None

    def begin(self, step: Step) -> None:
        """What comes next."""
        self._step = step

    def sync(self) -> None:
        """Wait until everything that was issued is done, and ask for errors between devices."""
        super().sync()
        self._peers.check()

    # -- exchanges ------------------------------------------------------------------------------------------------------

    def exchange(
        self, request: Exchange, operands: Sequence[Held], ranks: Sequence[int], combine: Combine | None
    ) -> tuple[Held, ...]:
        """The results of a collective."""
        span = self._span(groups_that_meet(request), operands, ranks)
        if span is None:
            return super().exchange(request, operands, ranks, combine)
        with self.lane.transferring():
            if request.kind is CollectiveKind.COLLECTIVE_PERMUTE:
                results, kept = self._permuted(request, span, operands, ranks)
            elif self._is_native(request, span, operands, combine):
                results, kept = self._reduced_over(request, span, operands, ranks)
            elif is_block_exchange(request, span.cards.values(), operands):
                results, kept = self._blocks_between(request, span, operands, ranks)
            else:
                results, kept = self._gathered_first(request, span, operands, ranks, combine)
        self.lane.issued([*operands, *kept], results)
        return results

    def _span(self, groups: Sequence[Sequence[int]], operands: Sequence[Held], ranks: Sequence[int]) -> _Span | None:
        assert self._step is not None
        places = next((one for one in self._peers.together(groups) if self._place in one), ())
        if len(places) < 2:
            return None
        shapes = tuple(
            {rank: tuple(row.shape) for rank, row in zip(held.ranks, rows(held), strict=True)} for held in operands
        )
        same = tuple(isinstance(held, Slab) and is_shared(held) for held in operands)
        card = Card(self._step.index, tuple(ranks), shapes, same)
        return _Span(places, self._place, self._peers.meet(places, self._place, card))

    def _gathered_first(
        self,
        request: Exchange,
        span: _Span,
        operands: Sequence[Held],
        ranks: Sequence[int],
        combine: Combine | None,
    ) -> tuple[tuple[Held, ...], list[Held]]:
        """Every device gets what its groups need, and does the collective for its own ranks."""
        needs: dict[int, set[int]] = {}
        for place in span.places:
            own = set(span.cards[place].ranks)
            mine = [(number, group) for number, group in enumerate(request.groups) if own.intersection(group)]
            if request.kind is CollectiveKind.BROADCAST:
                needs[place] = {group[request.roots[number]] for number, group in mine}
            else:
                needs[place] = {rank for _, group in mine for rank in group}
        given: list[Held] = []
        kept: list[Held] = []
        for number, operand in enumerate(operands):
            whole, sent = self._collect(span, number, operand, needs)
            given.append(whole)
            kept += [whole, *sent]
        groups = [group for group in request.groups if set(ranks).intersection(group)]
        involved = {rank for group in groups for rank in group} | set(ranks)
        everybody = tuple(rank for rank in span.ranks if rank in involved)
        results = LocalFabric.exchange(self, request, given, everybody, combine)
        return tuple(take(held, tuple(ranks)) for held in results), kept

    def _permuted(
        self, request: Exchange, span: _Span, operands: Sequence[Held], ranks: Sequence[int]
    ) -> tuple[tuple[Held, ...], list[Held]]:
        """Every device gets the parts that its ranks receive."""
        present = set(span.ranks)
        needs = {
            place: {
                source
                for source, target in request.pairs
                if target in span.cards[place].ranks and (source in present or target not in present)
            }
            for place in span.places
        }
        own = replace(request, pairs=tuple(pair for pair in request.pairs if pair[1] in set(ranks)))
        results: list[Held] = []
        kept: list[Held] = []
        if request.slices:
            given: list[Held] = []
            for number, operand in enumerate(operands):
                whole, sent = self._collect(span, number, operand, needs)
                given.append(whole)
                kept += [whole, *sent]
            everybody = tuple(sorted({*ranks, *given[0].ranks}))
            found = LocalFabric.exchange(self, own, given, everybody, None)
            return tuple(take(held, tuple(ranks)) for held in found), kept
        for number, operand in enumerate(operands):
            whole, sent = self._collect(span, number, operand, needs)
            everybody = tuple(sorted({*ranks, *whole.ranks}))
            (found,) = LocalFabric.exchange(self, own, [_filled(whole, everybody, self.xp)], everybody, None)
            results.append(take(found, tuple(ranks)))
            kept += [whole, *sent]
        return tuple(results), kept

    def move(self, request: Moves, operand: Held, ranks: Sequence[int]) -> Held:
        """The results of transfers."""
        span = self._span([(move.source, move.destination) for move in request.moves], [operand], ranks)
        if span is None:
            return super().move(request, operand, ranks)
        place_of = self._peers.place_of
        needs = {
            place: {move.source for move in request.moves if place_of[move.destination] == place}
            for place in span.places
        }
        mine = Moves(
            tuple(move for move in request.moves if place_of[move.destination] == self._place),
            {rank: shape for rank, shape in request.shapes.items() if place_of[rank] == self._place},
        )
        with self.lane.transferring():
            whole, sent = self._collect(span, 0, operand, needs)
            if whole.ranks and mine.shapes:
                result = LocalFabric.move(self, mine, whole, ranks)
            else:
                dtype = operand.array.dtype if isinstance(operand, Slab) else operand.arrays[0].dtype
                zeros = [self.xp.zeros(shape, dtype) for _, shape in sorted(mine.shapes.items())]
                result = (
                    stack(tuple(sorted(mine.shapes)), zeros, self.xp) if zeros else Slab((), self.xp.empty(0, dtype))
                )
        self.lane.issued([operand, whole, *sent], [result])
        return result

    def _collect(
        self, span: _Span, number: int, operand: Held, needs: Mapping[int, set[int]]
    ) -> tuple[Held, list[Held]]:
        """Send other devices the parts that they need, and get those needed here.

        Returns:
            The parts of this device's ranks and those that came; what must be kept until it is sent.
        """
        lane, runtime = self.lane, self.lane.runtime
        end = self._peers.end(span.places, self._place)
        mine = dict(zip(operand.ranks, rows(operand), strict=True))
        dtype: np.dtype[np.generic] = operand.array.dtype if isinstance(operand, Slab) else operand.arrays[0].dtype
        sent: list[Held] = []
        came: dict[int, Array] = {}
        with runtime.group():
            for peer, place in enumerate(span.places):
                if place == self._place:
                    continue
                for rank in _once(sorted(needs[place] & set(mine)), same=span.cards[self._place].same[number]):
                    part = mine[rank] if mine[rank].flags.c_contiguous else self.xp.ascontiguousarray(mine[rank])
                    if part.size:
                        end.send(runtime.address(part), int(part.nbytes), peer, lane.transfer)
                        sent.append(Slab((rank,), part[None]))
                card = span.cards[place]
                wanted = sorted(needs[self._place] & set(card.shapes[number]))
                for rank in _once(wanted, same=card.same[number]):
                    part = self.xp.empty(card.shapes[number][rank], dtype)
                    if part.size:
                        end.receive(runtime.address(part), int(part.nbytes), peer, lane.transfer)
                    came.update(dict.fromkeys(wanted if card.same[number] else [rank], part))
        if not came:
            return operand, sent
        found = {**mine, **came}
        ranks = tuple(sorted(found))
        return stack(ranks, [found[rank] for rank in ranks], self.xp), sent

    def _blocks_between(
        self, request: Exchange, span: _Span, operands: Sequence[Held], ranks: Sequence[int]
    ) -> tuple[tuple[Held, ...], list[Held]]:
        """An all_to_all of equal blocks: one message from device to device for every group, with the blocks between them."""
        results: list[Held] = []
        kept: list[Held] = []
        for operand in operands:
            assert isinstance(operand, Slab)
            trades = [
                BlockTrade(self.xp, request, group, operand, self._peers.place_of, self._place)
                for group in request.groups
                if any(rank in set(ranks) for rank in group)
            ]
            with self.lane.runtime.group():
                for trade in trades:
                    kept += self._trade(span, trade)
            found: dict[int, Array] = {}
            for trade in trades:
                found.update(trade.results())
            for rank in ranks:  # a rank of no group gets zeros
                found.setdefault(rank, self.xp.zeros_like(next(iter(found.values()))))
            results.append(stack(ranks, [found[rank] for rank in ranks], self.xp))
        return tuple(results), kept

    def _trade(self, span: _Span, trade: BlockTrade) -> list[Held]:
        """Issue the messages of a group; what must be kept until they are sent."""
        end, runtime = self._peers.end(span.places, self._place), self.lane.runtime
        kept: list[Held] = []
        for peer, place in enumerate(span.places):
            if place == self._place or place not in trade.places:
                continue
            outgoing, incoming = trade.message_to(place), trade.room_for(place)
            end.send(runtime.address(outgoing), int(outgoing.nbytes), peer, self.lane.transfer)
            end.receive(runtime.address(incoming), int(incoming.nbytes), peer, self.lane.transfer)
            kept += [Slab((0,), outgoing[None]), Slab((0,), incoming[None])]
        return kept

    # -- reductions over devices ---------------------------------------------------------------------------------------

    def _is_native(self, request: Exchange, span: _Span, operands: Sequence[Held], combine: Combine | None) -> bool:
        """Whether the devices' partial results are reduced by NCCL: the order of the ranks is then not kept."""
        assert self._step is not None
        reduces = request.kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)
        if not reduces or self._step.algorithm != "native" or combine is not None or request.reduction not in _BETWEEN:
            return False
        shapes = {shape for card in span.cards.values() for parts in card.shapes for shape in parts.values()}
        present = set(span.ranks)
        return (
            len(shapes) == 1
            and all(rank in present for group in request.groups for rank in group)
            and all(isinstance(held, Slab) and held.array.size for held in operands)
            and all(_between(held) is not None for held in operands)
        )

    def _reduced_over(
        self, request: Exchange, span: _Span, operands: Sequence[Held], ranks: Sequence[int]
    ) -> tuple[tuple[Held, ...], list[Held]]:
        results: list[Held] = []
        kept: list[Held] = []
        for operand in operands:
            assert isinstance(operand, Slab)
            found: dict[int, Array] = {}
            for number, group in enumerate(request.groups):
                mine = tuple(rank for rank in group if self._peers.place_of[rank] == self._place)
                if not mine:
                    continue
                whole = self._over(request, group, take(operand, mine))
                kept.append(Slab((mine[0],), whole[None]))
                if request.kind is CollectiveKind.ALL_REDUCE:
                    found.update(dict.fromkeys(mine, whole))
                else:
                    sizes = request.sizes[number] if request.sizes is not None else None
                    blocks = self._blocks_of(request, whole, len(group), sizes)
                    found.update({rank: blocks[group.index(rank)] for rank in mine})
            for rank in ranks:  # a rank of no group gets zeros
                found.setdefault(rank, self.xp.zeros_like(next(iter(found.values()))))
            arrays = [found[rank] for rank in ranks]
            alike = all(array is arrays[0] for array in arrays)
            results.append(shared(ranks, arrays[0], self.xp) if alike else stack(ranks, arrays, self.xp))
        return tuple(results), kept

    def _over(self, request: Exchange, group: Group, parts: Held) -> Array:
        """The reduction of a group that may span devices: a kernel for the ranks here, NCCL over devices, one rounding."""
        assert isinstance(parts, Slab)
        assert request.reduction is not None
        places = self._peers.places(group)
        if len(places) < 2:
            return self._folded(parts.array, request.reduction)
        dtype = parts.array.dtype
        wide = needs_float32(dtype)
        partial = self._partial(parts.array, request.reduction, wide=wide)
        element = _between(parts)
        assert element is not None
        address = self.lane.runtime.address(partial)
        end = self._peers.end(places, self._place)
        end.all_reduce(address, address, int(partial.size), element, request.reduction, self.lane.transfer)
        return partial.astype(dtype) if wide else partial

    def _partial(self, slab: Array, kind: ReductionKind, *, wide: bool) -> Array:
        """The fold of the ranks here, in the accumulator's type and in memory of its own."""
        work = np.dtype(np.float32) if wide else slab.dtype
        if slab.shape[0] == 1:
            return self.xp.array(slab[0], dtype=work)
        listed, members = self._lines(slab)
        result = self.xp.empty(slab.shape[1:], work)
        element = ELEMENT_OF[slab.dtype.name]
        self.lane.launch(
            fold(
                members, [self.lane.runtime.address(result)], element, kind, int(result.size), self.lane.geometry,
                result="f32" if wide else None,
            )
        )  # fmt: skip
        del listed
        return result

    def _blocks_of(self, request: Exchange, whole: Array, members: int, sizes: Sequence[int] | None) -> Sequence[Array]:
        from dtir.execute.semantics import shard_bounds

        dim = request.dim
        assert dim is not None
        bounds = shard_bounds(whole.shape[dim], members, sizes)
        return [whole[(slice(None),) * dim + (slice(*bound),)] for bound in bounds]


def groups_that_meet(request: Exchange) -> Sequence[Sequence[int]]:
    """The ranks that exchange something with each other: groups, or pairs."""
    return request.pairs if request.kind is CollectiveKind.COLLECTIVE_PERMUTE else request.groups


def _once(ranks: Sequence[int], *, same: bool) -> Sequence[int]:
    """Ranks whose parts are sent: one stands for all where they hold one array."""
    return ranks[:1] if same else ranks


def _between(held: Held) -> str | None:
    """The element type in which partial results are reduced over devices; None where NCCL does not do it."""
    if not isinstance(held, Slab) or held.array.dtype.kind == "b":
        return None
    element = ELEMENT_OF.get(held.array.dtype.name)
    if element is None or not can_fold(element, ReductionKind.SUM):
        return None
    if needs_float32(held.array.dtype):
        return "f32"
    return element if element in _NCCL_ELEMENTS else None


def _filled(held: Held, ranks: Sequence[int], xp: object) -> Held:
    """Parts of more ranks: those that have none get that of the first, which nobody reads."""
    if tuple(held.ranks) == tuple(ranks) or not held.ranks:
        return held
    first = at(held, held.ranks[0])
    known = set(held.ranks)
    return stack(ranks, [at(held, rank) if rank in known else first for rank in ranks], xp)
