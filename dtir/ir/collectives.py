"""Collectives and transfers between ranks.

`message_bytes` is the nccl-tests size S everywhere: the larger of what one rank contributes in total and what it
obtains in total, per group (all_gather: full output; reduce_scatter: full input; all_to_all: the whole local buffer).
`participants` is the union of the groups. The groups are either named by mesh `axes` (groups = fibres of those axes,
members in row-major order of the axes as listed), or listed in `groups`, in member order; with neither there is one
group, the participants.

>>> make_collective_spec(CollectiveKind.ALL_REDUCE, (0, 1), 64, reduction=ReductionKind.SUM).reduction
<ReductionKind.SUM: 'sum'>
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, TypeAlias, assert_never

from dtir.ir.expr import Scalar
from dtir.ir.ranks import RankRange
from dtir.ir.reductions import ReductionKind
from dtir.schema.authoring import adt, enum, extension, record, seal_adt, variant
from dtir.schema.refinements import NonEmptyText, NonNegativeInt, ValueConstraint

CollectiveParticipants: TypeAlias = (
    Annotated[
        tuple[int, ...],
        ValueConstraint.NON_EMPTY,
        ValueConstraint.UNIQUE_ITEMS,
        ValueConstraint.NON_NEGATIVE_ITEMS,
    ]
    | RankRange
)
CollectiveGroups: TypeAlias = tuple[tuple[NonNegativeInt, ...] | RankRange, ...]


@enum("blueprinting.ir.distributed-task.collective-kind", extensions=("COLLECTIVE_PERMUTE",))
class CollectiveKind(Enum):
    """What a collective does, whatever library runs it."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    COLLECTIVE_PERMUTE = "collective_permute"


@adt(wire="blueprinting.ir.distributed-task.collective")
class CollectiveSpec:
    """Closed family of collectives; fields that only some of them have stand only there."""


@variant("all-reduce")
class AllReduce(CollectiveSpec):
    """Every rank of a group obtains the reduction of the group's values."""

    participants: CollectiveParticipants
    message_bytes: Scalar
    reduction: ReductionKind
    axes: tuple[NonEmptyText, ...] = extension(default=())
    groups: CollectiveGroups = extension(default=())


@variant("reduce-scatter")
class ReduceScatter(CollectiveSpec):
    """As all_reduce, but rank i of a group keeps block i of the result along `dim`."""

    participants: CollectiveParticipants
    message_bytes: Scalar
    reduction: ReductionKind
    axes: tuple[NonEmptyText, ...] = extension(default=())
    groups: CollectiveGroups = extension(default=())
    dim: NonNegativeInt | None = extension(default=None)


@variant("all-gather")
class AllGather(CollectiveSpec):
    """Every rank of a group obtains the group's values concatenated along `dim`, in group order."""

    participants: CollectiveParticipants
    message_bytes: Scalar
    axes: tuple[NonEmptyText, ...] = extension(default=())
    groups: CollectiveGroups = extension(default=())
    dim: NonNegativeInt | None = extension(default=None)


@variant("all-to-all")
class AllToAll(CollectiveSpec):
    """Rank i of a group sends block j along `split_dim` to rank j, which concatenates along `concat_dim`.

    Blocks are concatenated in group order.
    """

    participants: CollectiveParticipants
    message_bytes: Scalar
    axes: tuple[NonEmptyText, ...] = extension(default=())
    groups: CollectiveGroups = extension(default=())
    split_dim: NonNegativeInt | None = extension(default=None)
    concat_dim: NonNegativeInt | None = extension(default=None)


@variant("broadcast")
class Broadcast(CollectiveSpec):
    """Every rank of a group obtains the root's value.

    With several groups `roots` holds one global rank a group, `root` being the first.
    """

    participants: CollectiveParticipants
    message_bytes: Scalar
    root: NonNegativeInt
    axes: tuple[NonEmptyText, ...] = extension(default=())
    groups: CollectiveGroups = extension(default=())
    roots: tuple[NonNegativeInt, ...] = extension(default=())

    def __post_init__(self) -> None:
        if self.root not in self.participants:
            raise ValueError("broadcast root must be one of its participants")


@variant("collective-permute", extension=True)
class CollectivePermute(CollectiveSpec):
    """Rank s sends its value to rank d for every pair (s, d); a rank that is no destination obtains zeros."""

    participants: CollectiveParticipants
    message_bytes: Scalar
    pairs: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    channel: NonEmptyText = extension(default="default")


CollectiveSpecVariant: TypeAlias = AllReduce | ReduceScatter | AllGather | AllToAll | Broadcast | CollectivePermute
seal_adt(CollectiveSpec, CollectiveSpecVariant)


def collective_kind(spec: CollectiveSpecVariant) -> CollectiveKind:
    """The kind of a collective."""
    match spec:
        case AllReduce():
            return CollectiveKind.ALL_REDUCE
        case ReduceScatter():
            return CollectiveKind.REDUCE_SCATTER
        case AllGather():
            return CollectiveKind.ALL_GATHER
        case AllToAll():
            return CollectiveKind.ALL_TO_ALL
        case Broadcast():
            return CollectiveKind.BROADCAST
        case CollectivePermute():
            return CollectiveKind.COLLECTIVE_PERMUTE
        case _:
            assert_never(spec)


def _check_fields(
    kind: CollectiveKind, reduction: ReductionKind | None, root: int | None, pairs: object, wanted: str
) -> None:
    given = {name for name, value in (("reduction", reduction), ("root", root), ("pairs", pairs)) if value is not None}
    needed = {wanted} if wanted else set[str]()
    if given != needed:
        label = kind.value.replace("_", "-")
        parts = [f"requires {name}" for name in sorted(needed - given)]
        parts += [f"does not accept {name}" for name in sorted(given - needed)]
        raise ValueError(f"{label} {' and '.join(parts)}")


def make_collective_spec(
    kind: CollectiveKind,
    participants: tuple[int, ...] | RankRange,
    message_bytes: Scalar,
    *,
    reduction: ReductionKind | None = None,
    root: int | None = None,
    pairs: tuple[tuple[int, int], ...] | None = None,
) -> CollectiveSpecVariant:
    """A collective by its kind.

    Raises:
        ValueError: a field that the kind needs is missing, or one that it does not have is given.
    """
    match kind:
        case CollectiveKind.ALL_REDUCE | CollectiveKind.REDUCE_SCATTER:
            _check_fields(kind, reduction, root, pairs, "reduction")
            assert reduction is not None
            make = AllReduce if kind is CollectiveKind.ALL_REDUCE else ReduceScatter
            return make(participants, message_bytes, reduction)
        case CollectiveKind.ALL_GATHER:
            _check_fields(kind, reduction, root, pairs, "")
            return AllGather(participants, message_bytes)
        case CollectiveKind.ALL_TO_ALL:
            _check_fields(kind, reduction, root, pairs, "")
            return AllToAll(participants, message_bytes)
        case CollectiveKind.BROADCAST:
            _check_fields(kind, reduction, root, pairs, "root")
            assert root is not None
            return Broadcast(participants, message_bytes, root)
        case CollectiveKind.COLLECTIVE_PERMUTE:
            _check_fields(kind, reduction, root, pairs, "pairs")
            assert pairs is not None
            return CollectivePermute(participants, message_bytes, pairs)
        case _:
            assert_never(kind)


@record("blueprinting.ir.distributed-task.peer-transfer")
class PeerTransfer:
    """One transfer between two ranks; transfers of one (source, destination, channel) are matched in order."""

    source_rank: NonNegativeInt
    destination_rank: NonNegativeInt
    message_bytes: Scalar
    channel: NonEmptyText = "default"

    def __post_init__(self) -> None:
        if self.source_rank == self.destination_rank:
            raise ValueError("peer transfer endpoints must differ")
