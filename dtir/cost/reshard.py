"""How much a reshard or ghost exchange moves: what each destination needs and does not hold itself.

Σ over ranks of need ∖ have is what any implementation moves at least (SEMANTICS 3.1). A message is counted for every other
shard of the source that a missing block touches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dtir.analysis.blocks import Box, box_of, intersect, volume
from dtir.analysis.fibres import Space, factor_mesh
from dtir.analysis.states import State, declared_state
from dtir.ir.ids import ValueId
from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import DistributedTask, Reshard, ReshardKind
from dtir.ir.types import dtype_bits
from dtir.ir.values import DistributedValue

MOST_DESTINATIONS = 65_536
"""Destination ranks that are looked at."""


@dataclass(frozen=True, slots=True)
class Volume:
    """What a reshard moves.

    Args:
        total_bytes: all ranks together.
        busiest_bytes: the most that one rank receives.
        messages: the most messages that one rank receives.
    """

    total_bytes: int | float
    busiest_bytes: int | float
    messages: int


def reshard_volume(
    task: DistributedTask,
    body: Reshard,
    values: Mapping[ValueId, DistributedValue],
    mesh: LogicalMesh,
) -> Volume | str:
    """The volume of a reshard, or why it is not known."""
    space, _ = factor_mesh(mesh, [])
    total: float = 0
    received: dict[int, float] = {}
    messages: dict[int, int] = {}
    if len(task.inputs) != len(task.outputs):
        return f"a reshard with {len(task.inputs)} inputs and {len(task.outputs)} outputs"
    for one, other in zip(task.inputs, task.outputs, strict=True):
        source, target = values[one], values[other]
        if len(target.owners) > MOST_DESTINATIONS:
            return f"a reshard to {len(target.owners)} ranks is not looked at rank by rank"
        shape = _whole_shape(target)
        bits = dtype_bits(target.type.dtype)
        if shape is None or bits is None or len(source.type.shape) != len(shape):
            return "a reshard of symbolic sizes"
        states = declared_state(source.sharding, space), declared_state(target.sharding, space)
        holders = rank_set(source.owners)
        try:
            for rank in target.owners:
                held = box_of(shape, states[0], space, rank) if rank in holders else None
                for wanted, origin in _wanted(body, target, shape, states[1], space, rank):
                    own = intersect(origin, held) if held is not None else None
                    missing = volume(wanted) - (volume(own) if own is not None else 0)
                    if missing > 0:
                        moved = missing * bits / 8
                        total += moved
                        received[rank] = received.get(rank, 0) + moved
                        touched = _touched(origin, shape, states[0], space) - (own is not None)
                        messages[rank] = messages.get(rank, 0) + max(1, touched)
        except ValueError as error:
            return f"a reshard of shards without sizes: {error}"
    return Volume(total, max(received.values(), default=0), max(messages.values(), default=0))


def _whole_shape(value: DistributedValue) -> tuple[int, ...] | None:
    shape = value.type.shape
    return tuple(item for item in shape if isinstance(item, int)) if value.type.is_static else None


def _wanted(
    body: Reshard, target: DistributedValue, shape: tuple[int, ...], state: State, space: Space, rank: int
) -> list[tuple[Box, Box]]:
    """The blocks that a rank gets, and where they lie in the source."""
    own = box_of(shape, state, space, rank)
    if body.kind is ReshardKind.HALO:
        return [(frame, frame) for frame in _frame(own, target, shape)]
    if not body.regions:
        return [(own, own)]
    found: list[tuple[Box, Box]] = []
    for region in body.regions:
        box: Box = tuple((span.start, span.stop) for span in region.box)
        part = intersect(box, own) if len(box) == len(own) else None
        if part is None:
            continue
        if region.source is None:
            found.append((part, part))
        else:
            shift = [origin.start - start for origin, (start, _) in zip(region.source, box, strict=True)]
            moved = tuple((start + by, stop + by) for (start, stop), by in zip(part, shift, strict=True))
            found.append((part, moved))
    return found


def _frame(own: Box, target: DistributedValue, shape: tuple[int, ...]) -> list[Box]:
    """The ghost layers around a block as disjoint boxes, wrapped around where they cross an end; corners where they are kept."""
    halo = target.sharding.halo
    if halo is None:
        return []
    found: list[Box] = []
    grown = list(own)
    for item in halo.dims:
        if item.dim >= len(own) or shape[item.dim] == 0:
            continue
        start, stop = own[item.dim]
        extent = shape[item.dim]
        for low, high in ((start - item.before, start), (stop, stop + item.after)):
            if low < high:
                shift = (low // extent) * extent
                layer = (low - shift, high - shift)
                found.append((*grown[: item.dim], layer, *grown[item.dim + 1 :]))
        if halo.corners:
            grown[item.dim] = (start - item.before, stop + item.after)
    return found


def _touched(box: Box, shape: tuple[int, ...], state: State, space: Space) -> int:
    """How many shards of the source a block touches."""
    counts: list[int] = []
    for dim, (start, stop) in enumerate(box):
        shards = space.count(state.dims[dim])
        if shards == 1 or stop <= start or shape[dim] == 0:
            counts.append(1)
            continue
        sizes = state.size_of(dim)
        step = max(1, -(-shape[dim] // shards)) if sizes is None else max(1, max(sizes))
        counts.append(min(shards, (stop - 1) // step - start // step + 1))
    return math.prod(counts)
