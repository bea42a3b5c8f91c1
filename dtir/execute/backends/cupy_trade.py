"""The blocks of an all_to_all whose group spans devices: packed for each of them, and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from dtir.execute.backends.cupy_peers import Card
from dtir.execute.dtypes import Array
from dtir.execute.exchange import Exchange, Group
from dtir.execute.values import Held, Slab, take
from dtir.ir.collectives import CollectiveKind


def is_block_exchange(request: Exchange, cards: Iterable[Card], operands: Sequence[Held]) -> bool:
    """Whether an exchange is an all_to_all of equal blocks in which all members take part."""
    listed = list(cards)
    present = {rank for card in listed for rank in card.ranks}
    shapes = {shape for card in listed for parts in card.shapes for shape in parts.values()}
    if request.kind is not CollectiveKind.ALL_TO_ALL or request.sizes is not None or request.ragged or len(shapes) != 1:
        return False
    (shape,) = shapes
    return (
        request.split is not None
        and request.concat is not None
        and 0 <= request.split < len(shape)
        and 0 <= request.concat < len(shape)
        and all(shape[request.split] % len(group) == 0 for group in request.groups)
        and all(rank in present for group in request.groups for rank in group)
        and all(isinstance(held, Slab) and held.array.size for held in operands)
    )


class BlockTrade:
    """One group of an all_to_all, as seen by one of its devices.

    Args:
        xp: the array module.
        request: the all_to_all.
        group: its group.
        operand: what the ranks of this device hold.
        place_of: the device of every rank.
        here: this device.
    """

    def __init__(
        self, xp: Any, request: Exchange, group: Group, operand: Slab, place_of: Sequence[int], here: int
    ) -> None:
        assert request.split is not None
        assert request.concat is not None
        self._xp = xp
        self._split, self._concat, self._group = request.split, request.concat, group
        self._members = {
            place: tuple(at for at, rank in enumerate(group) if place_of[rank] == place)
            for place in sorted({place_of[rank] for rank in group})
        }
        self._here = here
        mine = take(operand, tuple(group[at] for at in self._members[here]))
        assert isinstance(mine, Slab)
        shape = tuple(mine.array.shape[1:])
        step = shape[self._split] // len(group)
        self._block = (*shape[: self._split], step, *shape[self._split + 1 :])
        # (source here, target in the group, before the split dim, step, behind it)
        parts = mine.array.reshape(
            len(self._members[here]), prod(shape[: self._split]), len(group), step, prod(shape[self._split + 1 :])
        )
        self._blocks: Array = xp.moveaxis(parts, 2, 1)
        self._came: dict[int, Array] = {}

    @property
    def places(self) -> tuple[int, ...]:
        """The devices of the group."""
        return tuple(self._members)

    def message_to(self, place: int) -> Array:
        """The blocks for the ranks of another device, in one piece: source by source, target by target."""
        return self._xp.stack([self._blocks[:, target] for target in self._members[place]], axis=1)

    def room_for(self, place: int) -> Array:
        """Where the blocks of another device come."""
        shape = (len(self._members[place]), len(self._members[self._here]), *self._blocks.shape[2:])
        self._came[place] = self._xp.empty(shape, self._blocks.dtype)
        return self._came[place]

    def results(self) -> dict[int, Array]:
        """What every rank of this device gets, when all messages are there: the blocks in the order of their sources."""
        owner = {at: (place, number) for place, listed in self._members.items() for number, at in enumerate(listed)}
        found: dict[int, Array] = {}
        for number, target in enumerate(self._members[self._here]):
            parts: list[Array] = []
            for source in range(len(self._group)):
                place, row = owner[source]
                block = self._blocks[row, target] if place == self._here else self._came[place][row, number]
                parts.append(block.reshape(self._block))
            found[self._group[target]] = self._xp.concatenate(parts, axis=self._concat)
        return found
