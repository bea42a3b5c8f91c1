"""Builds the exchange of a communication task: groups, dims, uneven sizes, planned bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never, cast

from dtir.analysis.groups import groups_of
from dtir.execute.dtypes import DtypeError, numpy_dtype
from dtir.execute.exchange import Exchange, Moves
from dtir.execute.moves import peer_moves, reshard_moves
from dtir.execute.placement import PlacementError
from dtir.execute.routed import DISPATCH, combine, dispatch
from dtir.execute.steps import Planned, Slot
from dtir.execute.updates import RAGGED_OPERANDS
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectiveKind,
    CollectivePermute,
    CollectiveSpecVariant,
    PeerTransfer,
    ReduceScatter,
    collective_kind,
)
from dtir.ir.ids import RegionId
from dtir.ir.mesh import LogicalMesh
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import DistributedTask, Reshard
from dtir.ir.types import dtype_bits


class Unsupported(ValueError):
    """A form of communication that the executors do not do; the message says which."""


class GroupNumbers:
    """Numbers distinct groups in the order in which they are met: the same on every process."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    def of(self, group: tuple[int, ...]) -> int:
        """The number of a group."""
        return self._numbers.setdefault(group, len(self._numbers))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """All groups, by number."""
        return tuple(self._numbers)


class ExchangeMaker:
    """Exchanges of one program."""

    def __init__(self, mesh: LogicalMesh, regions: Mapping[str, RegionId]) -> None:
        self._mesh = mesh
        self._regions = regions
        self.numbers = GroupNumbers()
        self._groups: dict[int, tuple[tuple[int, ...], ...]] = {}

    def collective(
        self, task: DistributedTask, spec: CollectiveSpecVariant, inputs: Sequence[Slot], outputs: Sequence[Slot]
    ) -> tuple[Exchange, Planned]:
        """The exchange of a collective.

        Raises:
            PlacementError: it names an axis that the mesh lacks, or a layout does not fit.
            Unsupported: a form that is not executed.
        """
        kind = collective_kind(spec)
        if isinstance(spec, CollectivePermute):
            slices = _slices(task, inputs, outputs)
            if slices:
                given = inputs[: len(slices)]
                return Exchange(kind, (), pairs=tuple(spec.pairs), slices=slices), _planned_pairs(spec.pairs, given)
            return Exchange(kind, (), pairs=tuple(spec.pairs)), _planned_pairs(spec.pairs, inputs)
        groups = self._members(spec)
        numbers = tuple(self.numbers.of(group) for group in groups)
        exchange = self._exchange(task, spec, kind, groups, numbers, inputs, outputs)
        for source, target in zip(inputs[1:] if exchange.ragged else inputs, outputs, strict=False):
            _require_shape(exchange, source, target)
        counted = inputs[:1] if exchange.ragged else inputs
        return exchange, _planned(kind, groups, counted, outputs, exchange)

    def _members(self, spec: CollectiveSpecVariant) -> tuple[tuple[int, ...], ...]:
        found = groups_of(spec, self._mesh)
        if found is None:
            raise PlacementError("the collective names an axis that the mesh does not have")
        return tuple(tuple(group) for group in found)

    def _exchange(
        self,
        task: DistributedTask,
        spec: CollectiveSpecVariant,
        kind: CollectiveKind,
        groups: tuple[tuple[int, ...], ...],
        numbers: tuple[int, ...],
        inputs: Sequence[Slot],
        outputs: Sequence[Slot],
    ) -> Exchange:
        computation = self._computation(task)
        match spec:
            case AllReduce(reduction=reduction):
                return Exchange(kind, groups, numbers, reduction=reduction, computation=computation)
            case ReduceScatter(reduction=reduction, dim=dim):
                dim = self._grown_dim(inputs, outputs, shrinks=True) if dim is None else dim
                sizes = _scattered_sizes(groups, dim, outputs)
                return Exchange(
                    kind, groups, numbers, reduction=reduction, computation=computation, dim=dim, sizes=sizes
                )
            case AllGather(dim=dim):
                dim = self._grown_dim(inputs, outputs, shrinks=False) if dim is None else dim
                trim = outputs[0].placement.shape[dim] if task.attributes.get("op.trim") is True else None
                vector = task.attributes.get("op.vector") is True
                return Exchange(kind, groups, numbers, dim=dim, trim=trim, vector=vector)
            case AllToAll(split_dim=split, concat_dim=concat):
                if any(name in task.attributes for name in ("op.route", "op.send_splits", "op.recv_splits")):
                    raise Unsupported(
                        "an all_to_all with routes or per-rank counts is not executed: name it moe_dispatch or moe_combine"
                    )
                if task.operation.name == "ragged-all-to-all":
                    if len(inputs) != RAGGED_OPERANDS or inputs[0].shape is None or inputs[1].shape is None:
                        raise Unsupported(f"ragged-all-to-all has {RAGGED_OPERANDS} operands, {len(inputs)} are given")
                    return Exchange(kind, groups, numbers, ragged=True)
                if split is None and len(inputs) == 1 and len(groups[0]) > 1:
                    split, concat = self._moved_dims(inputs[0], outputs[0], groups)
                sizes = _scattered_sizes(groups, split, outputs) if split is not None else None
                return Exchange(kind, groups, numbers, split=split, concat=concat, sizes=sizes)
            case Broadcast(root=root, roots=roots):
                listed = roots or (root,) * len(groups)
                positions: list[int] = []
                for group, rank in zip(groups, listed, strict=True):
                    if rank not in group:
                        raise PlacementError(f"root {rank} is not in its group {list(group)[:8]}")
                    positions.append(group.index(rank))
                return Exchange(kind, groups, numbers, roots=tuple(positions))
            case CollectivePermute():
                raise AssertionError("permutes have no groups")
            case _:
                assert_never(spec)

    def _computation(self, task: DistributedTask) -> RegionId | None:
        name = task.attributes.get("hlo.to_apply")
        return self._regions.get(name) if isinstance(name, str) else None

    def _grown_dim(self, inputs: Sequence[Slot], outputs: Sequence[Slot], *, shrinks: bool) -> int:
        """The dim of a gather or scatter that the collective does not name: the one whose local extent changes.

        Raises:
            PlacementError: none or several change.
        """
        if not inputs or not outputs:
            raise PlacementError("the collective names no dim, and no tensors that would tell which one it is")
        before, after = inputs[0].placement, outputs[0].placement
        rank = next(iter(outputs[0].value.owners))
        old, new = before.local_shape(rank), after.local_shape(rank)
        changed = [dim for dim, (a, b) in enumerate(zip(old, new, strict=False)) if (a > b if shrinks else a < b)]
        if len(old) != len(new) or len(changed) != 1:
            raise PlacementError(
                f"the collective names no dim, and {list(old)} to {list(new)} does not tell which one it is"
            )
        return changed[0]

    def _moved_dims(self, source: Slot, target: Slot, groups: tuple[tuple[int, ...], ...]) -> tuple[int, int]:
        """Split and concat dims that the collective does not name: the local extents divided and multiplied by the group."""
        size = len(groups[0])
        rank = groups[0][0]
        old, new = source.placement.local_shape(rank), target.placement.local_shape(rank)
        split = [dim for dim, (a, b) in enumerate(zip(old, new, strict=False)) if a == b * size and a != b]
        concat = [dim for dim, (a, b) in enumerate(zip(old, new, strict=False)) if b == a * size and a != b]
        if len(old) != len(new) or len(split) != 1 or len(concat) != 1:
            if old == new and old and old[0] % size == 0:
                return 0, 0
            raise PlacementError(
                f"the all_to_all names no dims, and {list(old)} to {list(new)} does not tell which they are"
            )
        return split[0], concat[0]

    def transfer(self, spec: PeerTransfer, source: Slot, target: Slot) -> tuple[Moves, Planned]:
        """The blocks of a transfer between two ranks."""
        pairs = ((spec.source_rank, spec.destination_rank),)
        moves = peer_moves(
            pairs, source.placement, tuple(source.value.owners), target.placement, tuple(target.value.owners)
        )
        return moves, planned_moves(moves, source)

    def permute(self, pairs: Sequence[tuple[int, int]], source: Slot, target: Slot) -> tuple[Moves, Planned]:
        """The blocks of transfers between several pairs of ranks."""
        moves = peer_moves(
            pairs, source.placement, tuple(source.value.owners), target.placement, tuple(target.value.owners)
        )
        return moves, planned_moves(moves, source)

    def routed(
        self,
        task: DistributedTask,
        spec: CollectiveSpecVariant,
        source: Slot,
        target: Slot,
        route: Sequence[int] | None,
    ) -> tuple[Moves, Planned, dict[int, tuple[int, ...]]]:
        """The rows of an exchange by a route, and the local expert of every row that arrives (none after a combine).

        Raises:
            PlacementError: the route or the splits do not fit.
        """
        groups = self._members(spec)
        if task.operation.name == DISPATCH:
            moves, experts = dispatch(task, groups, source.placement, target.placement, route)
            return moves, planned_moves(moves, source), experts
        moves = combine(task, groups, source.placement, target.placement, route)
        return moves, planned_moves(moves, source), {}

    def reshard(self, body: Reshard, source: Slot, target: Slot) -> tuple[Moves, Planned]:
        """The blocks of a reshard or halo exchange."""
        owners, receivers = tuple(source.value.owners), tuple(target.value.owners)
        moves = reshard_moves(body, source.placement, owners, target.placement, receivers)
        return moves, planned_moves(moves, source)


def _slices(task: DistributedTask, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> tuple[tuple[int, ...], ...]:
    """The slice of every array of a permute in place; empty for every other permute.

    Raises:
        Unsupported: an array has several slices: nothing says which transfer takes which.
    """
    sizes = task.attributes.get("hlo.slice_sizes")
    if not task.operation.name.startswith("collective-permute") or not isinstance(sizes, tuple) or not sizes:
        return ()
    slices = cast("tuple[tuple[int, ...], ...]", sizes)
    arrays, count = len(outputs), len(inputs)
    ranks = [len(slot.placement.shape) for slot in inputs[: 2 * arrays]]
    if len(slices) != arrays or count != 2 * arrays + sum(ranks):
        raise Unsupported(
            f"a collective-permute in place of {len(slices)} slices for {arrays} arrays: "
            "nothing says which transfer takes which slice"
        )
    return slices


def _require_shape(exchange: Exchange, source: Slot, target: Slot) -> None:
    """Raise unless a collective of equal parts gives the shape that the program declares.

    Raises:
        PlacementError: with both shapes.
    """
    sizes = {len(group) for group in exchange.groups}
    if source.shape is None or target.shape is None or exchange.sizes is not None or len(sizes) != 1:
        return
    members = sizes.pop()
    shape = list(source.shape)
    for dim, factor in _resized(exchange):
        if dim >= len(shape):
            raise PlacementError(f"{exchange.kind.value} along dim {dim} of {list(source.shape)}")
        if factor < 0 and shape[dim] % members:
            raise PlacementError(
                f"{exchange.kind.value} of {list(source.shape)}: {shape[dim]} elements cannot be scattered evenly over {members} ranks"
            )
        shape[dim] = shape[dim] // members if factor < 0 else shape[dim] * members
    if exchange.trim is not None and exchange.dim is not None:
        shape[exchange.dim] = min(shape[exchange.dim], exchange.trim)
    if tuple(shape) != target.shape:
        raise PlacementError(
            f"{exchange.kind.value} of {list(source.shape)} over {members} ranks gives {shape}, declared {list(target.shape)}"
        )


def _resized(exchange: Exchange) -> list[tuple[int, int]]:
    """The dims that are divided (-1) or multiplied (1) by the members of a group."""
    match exchange.kind:
        case CollectiveKind.ALL_GATHER if exchange.dim is not None:
            return [(exchange.dim, 1)]
        case CollectiveKind.REDUCE_SCATTER if exchange.dim is not None:
            return [(exchange.dim, -1)]
        case CollectiveKind.ALL_TO_ALL if exchange.split is not None and exchange.concat is not None:
            return [(exchange.split, -1), (exchange.concat, 1)]
        case _:
            return []


def _scattered_sizes(
    groups: tuple[tuple[int, ...], ...], dim: int | None, outputs: Sequence[Slot]
) -> tuple[tuple[int, ...], ...] | None:
    """What every member gets along a dim, where members get different amounts."""
    slot = outputs[0]
    if dim is None or slot.shape is not None or slot.placement.sizes(dim) is None:
        return None
    return tuple(tuple(slot.placement.local_shape(rank)[dim] for rank in group) for group in groups)


# -- planned bytes ----------------------------------------------------------------------------------------------------


def array_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a dense array, narrow types packed."""
    count = 1
    for extent in shape:
        count *= extent
    bits = dtype_bits(dtype)
    if bits is None:
        try:
            bits = numpy_dtype(dtype).itemsize * 8
        except DtypeError:
            return 0
    return -(-count * bits // 8)


def held_bytes(slot: Slot, rank: int) -> int:
    """Bytes that a rank holds of a value."""
    shape = slot.shape if slot.shape is not None else slot.placement.local_shape(rank)
    return array_bytes(shape, slot.value.type.dtype)


def _elements(slots: Sequence[Slot], rank: int) -> int:
    total = 0
    for slot in slots:
        count = 1
        for extent in slot.shape if slot.shape is not None else slot.placement.local_shape(rank):
            count *= extent
        total += count
    return total


def _planned(
    kind: CollectiveKind,
    groups: tuple[tuple[int, ...], ...],
    inputs: Sequence[Slot],
    outputs: Sequence[Slot],
    exchange: Exchange,
) -> Planned:
    """Bytes that every rank sends at least (SEMANTICS 3.1): 2(n-1)/n S, (n-1)/n S, or S of the root."""
    counted = outputs if kind is CollectiveKind.ALL_GATHER else inputs
    sent: dict[int, int] = {}
    largest = elements = 0
    for number, group in enumerate(groups):
        sizes = [sum(held_bytes(slot, rank) for slot in counted) for rank in group]
        size, members = max(sizes, default=0), len(group)
        if size >= largest:
            largest, elements = size, _elements(counted, group[sizes.index(size)]) if group else 0
        for place, rank in enumerate(group):
            own = sizes[place]
            match kind:
                case CollectiveKind.ALL_REDUCE:
                    bytes_sent = 2 * (members - 1) * own // members
                case CollectiveKind.ALL_GATHER:
                    bytes_sent = (members - 1) * sum(held_bytes(slot, rank) for slot in inputs)
                case CollectiveKind.REDUCE_SCATTER | CollectiveKind.ALL_TO_ALL:
                    bytes_sent = (members - 1) * own // members
                case CollectiveKind.BROADCAST:
                    bytes_sent = (members - 1) * own if place == exchange.roots[number] else 0
                case CollectiveKind.COLLECTIVE_PERMUTE:
                    bytes_sent = 0
                case _:
                    assert_never(kind)
            sent[rank] = sent.get(rank, 0) + bytes_sent
    return Planned(largest, sent, elements)


def _planned_pairs(pairs: Sequence[tuple[int, int]], inputs: Sequence[Slot]) -> Planned:
    sent: dict[int, int] = {}
    largest = elements = 0
    for source, destination in pairs:
        size = sum(held_bytes(slot, source) for slot in inputs)
        if size > largest:
            largest, elements = size, _elements(inputs, source)
        if source != destination:
            sent[source] = sent.get(source, 0) + size
    return Planned(largest, sent, elements)


def planned_moves(moves: Moves, source: Slot) -> Planned:
    """Bytes of blocks that change their rank; S is the largest amount that one rank sends or receives."""
    dtype = source.value.type.dtype
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    for move in moves.moves:
        if move.source != move.destination:
            size = array_bytes([stop - start for start, stop in move.source_box], dtype)
            sent[move.source] = sent.get(move.source, 0) + size
            received[move.destination] = received.get(move.destination, 0) + size
    largest = max((*sent.values(), *received.values()), default=0)
    bits = dtype_bits(dtype) or 8
    return Planned(largest, sent, largest * 8 // bits)


def reduction_of(spec: CollectiveSpecVariant) -> ReductionKind | None:
    """The reduction of a collective, None where nothing is reduced."""
    match spec:
        case AllReduce(reduction=reduction) | ReduceScatter(reduction=reduction):
            return reduction
        case AllGather() | AllToAll() | Broadcast() | CollectivePermute():
            return None
        case _:
            assert_never(spec)
