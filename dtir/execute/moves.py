"""Transfers and reshards as blocks that move: which elements each destination gets, and from whom.

Every element of a destination's block comes from one rank that holds it: the destination itself where it can, else the
first rank in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from dtir.execute.exchange import Move, Moves
from dtir.execute.placement import Bounds, Box, Placement, PlacementError
from dtir.ir.tasks import Reshard, ReshardKind, ReshardRegion


def intersect(left: Box, right: Box) -> Box | None:
    """The common part of two blocks, None when there is none."""
    found: list[Bounds] = []
    for (a, b), (c, d) in zip(left, right, strict=True):
        start, stop = max(a, c), min(b, d)
        if start >= stop:
            return None
        found.append((start, stop))
    return tuple(found)


def subtract(box: Box, cut: Box) -> list[Box]:
    """What is left of a block without another one that lies inside, as disjoint blocks."""
    rest: list[Box] = []
    current = list(box)
    for dim, ((start, stop), (low, high)) in enumerate(zip(box, cut, strict=True)):
        for piece in ((start, low), (high, stop)):
            if piece[0] < piece[1]:
                rest.append((*current[:dim], piece, *box[dim + 1 :]))
        current[dim] = (low, high)
    return rest


def _shifted(box: Box, origin: Box, offset: Sequence[int]) -> Box:
    """A block of the undivided value as index ranges of what a rank holds."""
    return tuple(
        (start - low + before, stop - low + before)
        for (start, stop), (low, _), before in zip(box, origin, offset, strict=True)
    )


def _ghosts_before(placement: Placement) -> tuple[int, ...]:
    return tuple(placement.halo(dim)[0] for dim in range(len(placement.shape)))


def _others_first(rank: int, ranks: Iterable[int]) -> list[int]:
    found = list(ranks)
    return [rank, *(other for other in found if other != rank)] if rank in found else found


def reshard_moves(
    body: Reshard, source: Placement, source_ranks: Sequence[int], target: Placement, target_ranks: Sequence[int]
) -> Moves:
    """The blocks of a reshard or halo exchange.

    Raises:
        PlacementError: listed regions do not fit the values.
    """
    if body.kind is ReshardKind.HALO:
        return halo_moves(source, source_ranks, target, target_ranks)
    if body.regions:
        return region_moves(body.regions, source, source_ranks, target, target_ranks)
    return copy_moves(source, source_ranks, target, target_ranks)


def copy_moves(source: Placement, source_ranks: Sequence[int], target: Placement, target_ranks: Sequence[int]) -> Moves:
    """A change of layout: every destination gets its block of the undivided value.

    Pending and per-rank axes are kept apart: a rank reads only from ranks at its own coordinates of them.
    """
    apart = tuple(dict.fromkeys((*source.partial_axes, *source.sharding.varying)))
    boxes = {rank: source.box(rank) for rank in source_ranks}
    offset, target_offset = _ghosts_before(source), _ghosts_before(target)
    moves: list[Move] = []
    shapes: dict[int, tuple[int, ...]] = {}
    for rank in target_ranks:
        wanted = target.box(rank)
        shapes[rank] = target.local_shape(rank)
        missing = [wanted]
        same = [other for other in source_ranks if source.position(other, apart) == source.position(rank, apart)]
        for other in _others_first(rank, same):
            left: list[Box] = []
            for box in missing:
                found = intersect(box, boxes[other])
                if found is None:
                    left.append(box)
                    continue
                moves.append(
                    Move(
                        other,
                        rank,
                        _shifted(found, boxes[other], offset),
                        _shifted(found, wanted, target_offset),
                    )
                )
                left.extend(subtract(box, found))
            missing = left
            if not missing:
                break
    return Moves(tuple(moves), shapes)


def region_moves(
    regions: Sequence[ReshardRegion],
    source: Placement,
    source_ranks: Sequence[int],
    target: Placement,
    target_ranks: Sequence[int],
) -> Moves:
    """A reshard by listed blocks: later ones overwrite earlier ones where they meet.

    Raises:
        PlacementError: a block has another number of dims than its value, or source and destination differ in size.
    """
    moves: list[Move] = []
    shapes = {rank: target.local_shape(rank) for rank in target_ranks}
    offset, target_offset = _ghosts_before(source), _ghosts_before(target)
    for region in regions:
        box: Box = tuple((span.start, span.stop) for span in region.box)
        origin: Box = tuple((span.start, span.stop) for span in region.source) if region.source is not None else box
        if len(box) != len(target.shape) or len(origin) != len(source.shape):
            raise PlacementError(f"a region of {len(box)} dims does not fit values of {len(target.shape)} dims")
        if tuple(b - a for a, b in box) != tuple(b - a for a, b in origin):
            raise PlacementError(f"a region fills {list(box)} from {list(origin)}: the sizes differ")
        for rank in target_ranks:
            own = target.box(rank)
            wanted = intersect(box, own)
            if wanted is None:
                continue
            missing = [
                tuple((a - b + o, c - b + o) for (a, c), (b, _), (o, _) in zip(wanted, box, origin, strict=True))
            ]
            for other in _others_first(rank, source_ranks):
                held = source.box(other)
                left: list[Box] = []
                for piece in missing:
                    found = intersect(piece, held)
                    if found is None:
                        left.append(piece)
                        continue
                    place: Box = tuple(
                        (a - o + b, c - o + b) for (a, c), (o, _), (b, _) in zip(found, origin, box, strict=True)
                    )
                    moves.append(Move(other, rank, _shifted(found, held, offset), _shifted(place, own, target_offset)))
                    left.extend(subtract(piece, found))
                missing = left
                if not missing:
                    break
    return Moves(tuple(moves), shapes)


def halo_moves(source: Placement, source_ranks: Sequence[int], target: Placement, target_ranks: Sequence[int]) -> Moves:
    """A halo exchange: blocks are kept, ghosts come from the neighbours, across the ends of the value as if it were a ring.

    Without `corners` only ghosts that lie beside the block along one dim are filled.
    """
    halo = target.sharding.halo
    corners = halo.corners if halo is not None else True
    offset, target_offset = _ghosts_before(source), _ghosts_before(target)
    boxes = {rank: source.box(rank) for rank in source_ranks}
    moves: list[Move] = []
    shapes: dict[int, tuple[int, ...]] = {}
    for rank in target_ranks:
        own = target.box(rank)
        shapes[rank] = target.local_shape(rank)
        ghosts = [target.halo(dim) for dim in range(len(own))]
        parts = [
            [part for part in ((start - before, start), (start, stop), (stop, stop + after)) if part[0] < part[1]]
            for (start, stop), (before, after) in zip(own, ghosts, strict=True)
        ]
        for frame in product(*parts):
            outside = sum(part != bounds for part, bounds in zip(frame, own, strict=True))
            if outside > 1 and not corners:
                continue
            for piece, shift in _wrapped(frame, target.shape):
                missing = [piece]
                for other in _others_first(rank, source_ranks):
                    left: list[Box] = []
                    for box in missing:
                        found = intersect(box, boxes[other])
                        if found is None:
                            left.append(box)
                            continue
                        place = tuple((a + s, b + s) for (a, b), s in zip(found, shift, strict=True))
                        moves.append(
                            Move(
                                other, rank, _shifted(found, boxes[other], offset), _shifted(place, own, target_offset)
                            )
                        )
                        left.extend(subtract(box, found))
                    missing = left
                    if not missing:
                        break
    return Moves(tuple(moves), shapes)


def _wrapped(frame: Box, shape: Sequence[int]) -> list[tuple[Box, tuple[int, ...]]]:
    """A block that may reach over the ends, as blocks inside, each with what to add to get back."""
    choices: list[list[tuple[Bounds, int]]] = []
    for (start, stop), extent in zip(frame, shape, strict=True):
        pieces: list[tuple[Bounds, int]] = []
        at = start
        while at < stop and extent:
            shift = at // extent * extent
            end = min(stop, shift + extent)
            pieces.append(((at - shift, end - shift), shift))
            at = end
        choices.append(pieces)
    return [
        (tuple(bounds for bounds, _ in chosen), tuple(shift for _, shift in chosen)) for chosen in product(*choices)
    ]


def peer_moves(
    pairs: Sequence[tuple[int, int]],
    source: Placement,
    source_ranks: Sequence[int],
    target: Placement,
    target_ranks: Sequence[int],
) -> Moves:
    """Whole local arrays from source to destination; an owner of both values that receives nothing keeps its copy."""
    receives = {destination: origin for origin, destination in pairs}
    moves: list[Move] = []
    shapes: Mapping[int, tuple[int, ...]] = {rank: target.local_shape(rank) for rank in target_ranks}
    for rank in target_ranks:
        origin = receives.get(rank, rank)
        if origin not in source_ranks:
            continue
        held = source.local_shape(origin)
        if held != shapes[rank]:
            raise PlacementError(
                f"rank {origin} sends {list(held)} elements, rank {rank} receives {list(shapes[rank])}"
            )
        box: Box = tuple((0, extent) for extent in held)
        moves.append(Move(origin, rank, box, box))
    return Moves(tuple(moves), dict(shapes))
