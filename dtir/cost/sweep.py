"""Sweeps: programs that run one collective at many message sizes, to be measured.

>>> sweep = sweep_program("all_gather", 4, [8, 1000])
>>> sweep.sizes
{'all_gather.16': 16, 'all_gather.1008': 1008}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dtir.cost.profile import SENDRECV
from dtir.ir.builder import ProgramBuilder
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectiveKind,
    PeerTransfer,
    ReduceScatter,
)
from dtir.ir.ids import NodeId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import all_ranks
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import AxisCoordinate, Partial, ShardingSpec
from dtir.ir.tasks import Collective, PointToPoint, TaskBodyVariant

AXIS = "x"
DTYPE, ITEM_BYTES = "f32", 4

OPERATIONS = (
    CollectiveKind.ALL_REDUCE.value,
    CollectiveKind.REDUCE_SCATTER.value,
    CollectiveKind.ALL_GATHER.value,
    CollectiveKind.ALL_TO_ALL.value,
    CollectiveKind.BROADCAST.value,
    SENDRECV,
)
"""What can be swept."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A program and what its tasks measure.

    Args:
        program: one communication task a size, one after the other.
        sizes: S by task name; sizes are rounded up to whole elements for every rank.
    """

    program: DistributedTaskIR = field(repr=False)
    sizes: dict[str, int]


def sweep_program(op: str, group_size: int, sizes: Sequence[int]) -> Sweep:
    """A sweep over one group of all ranks (two for a transfer), f32.

    Raises:
        ValueError: an operation that is not swept, fewer than 2 ranks, or a size below 1.
    """
    if op not in OPERATIONS:
        raise ValueError(f"op={op!r}: wanted one of {', '.join(OPERATIONS)}")
    if group_size < 2 or not sizes or min(sizes) < 1:
        raise ValueError(f"group_size={group_size}, sizes={tuple(sizes)}: wanted 2 ranks or more, sizes of 1 B or more")
    build = ProgramBuilder(f"sweep-{op}-{group_size}", axes={AXIS: group_size})
    named: dict[str, int] = {}
    before: NodeId | None = None
    step = ITEM_BYTES * group_size
    for elements in dict.fromkeys(-(-size // step) * group_size for size in sorted(sizes)):
        size = elements * ITEM_BYTES
        name = f"{op}.{size}"
        named[name] = size
        before = _task(build, op, group_size, elements, name, before)
    return Sweep(build.build(require_valid=True), named)


def _task(build: ProgramBuilder, op: str, group_size: int, elements: int, name: str, before: NodeId | None) -> NodeId:
    shape = (group_size, elements) if op == CollectiveKind.ALL_TO_ALL.value else (elements,)
    source, target = _layouts(op)
    ends: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = ((0,), (1,)) if op == SENDRECV else (None, None)
    value = build.input(f"{name}.in", shape, DTYPE, sharding=source, owners=ends[0])
    result = build.value(f"{name}.out", shape, DTYPE, sharding=target, owners=ends[1])
    return build.task(
        f"sweep.{op}",
        (value,),
        (result,),
        body=_body(op, group_size, elements * ITEM_BYTES),
        ranks=(0, 1) if op == SENDRECV else None,
        name=name,
        after=() if before is None else (before,),
    )


def _layouts(op: str) -> tuple[ShardingSpec, ShardingSpec]:
    """How the value lies before and after."""
    equal = ShardingSpec(((),), (AXIS,))
    split = ShardingSpec(((AXIS,),), ())
    pending = ShardingSpec(((),), (), partial=Partial((AXIS,), ReductionKind.SUM))
    match op:
        case CollectiveKind.ALL_REDUCE.value:
            return pending, equal
        case CollectiveKind.REDUCE_SCATTER.value:
            return pending, split
        case CollectiveKind.ALL_GATHER.value:
            return split, equal
        case CollectiveKind.ALL_TO_ALL.value:
            return ShardingSpec(((AXIS,), ()), ()), ShardingSpec(((), (AXIS,)), ())
        case CollectiveKind.BROADCAST.value:
            return equal, equal
        case _:
            first, second = (ShardingSpec(((),), (), at=(AxisCoordinate(AXIS, rank),)) for rank in (0, 1))
            return first, second


def _body(op: str, group_size: int, size_bytes: int) -> TaskBodyVariant:
    ranks, axes = all_ranks(group_size), (AXIS,)
    match op:
        case CollectiveKind.ALL_REDUCE.value:
            return Collective(AllReduce(ranks, size_bytes, ReductionKind.SUM, axes=axes))
        case CollectiveKind.REDUCE_SCATTER.value:
            return Collective(ReduceScatter(ranks, size_bytes, ReductionKind.SUM, axes=axes, dim=0))
        case CollectiveKind.ALL_GATHER.value:
            return Collective(AllGather(ranks, size_bytes, axes=axes, dim=0))
        case CollectiveKind.ALL_TO_ALL.value:
            return Collective(AllToAll(ranks, size_bytes, axes=axes, split_dim=1, concat_dim=0))
        case CollectiveKind.BROADCAST.value:
            return Collective(Broadcast(ranks, size_bytes, 0, axes=axes))
        case _:
            return PointToPoint(PeerTransfer(0, 1, size_bytes))
