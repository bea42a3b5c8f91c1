"""Collectives of the IR for what ranks called: kinds that the IR lacks, roots and reductions that no file says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.importers.rank_set.events import Call, CallKind, Tensor, fact
from dtir.importers.rank_set.matching import Meeting
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, Broadcast, CollectiveSpecVariant, ReduceScatter
from dtir.ir.reductions import ReductionKind


@dataclass(slots=True)
class Assumed:
    """What no file says and had to be put in, counted."""

    reductions: int = 0
    roots: int = 0
    rooted: Counter[str] = field(default_factory=Counter[str])


class Specs:
    """Makes the collectives of one program.

    Attributes:
        assumed: what had to be put in, counted.
    """

    def __init__(self) -> None:
        self.assumed = Assumed()

    def make(
        self, meeting: Meeting, whats: Mapping[int, Call], size: int, attributes: dict[str, Any]
    ) -> CollectiveSpecVariant:
        """The collective of a meeting; attributes say what the IR has no word for, and what was put in.

        Args:
            meeting: who meets.
            whats: the calls by rank.
            size: message bytes.
            attributes: of the task; added to.
        """
        members = meeting.members
        match meeting.kind:
            case CallKind.ALL_REDUCE | CallKind.REDUCE:
                if meeting.kind is CallKind.REDUCE:
                    self._rooted(meeting, whats, attributes)
                return AllReduce(members, size, self._reduction(whats, attributes))
            case CallKind.REDUCE_SCATTER:
                return ReduceScatter(members, size, self._reduction(whats, attributes), dim=0)
            case CallKind.ALL_GATHER:
                return AllGather(members, size, dim=0)
            case CallKind.GATHER:
                self._rooted(meeting, whats, attributes)
                return AllGather(members, size, dim=0)
            case CallKind.ALL_TO_ALL:
                return AllToAll(members, size, split_dim=0, concat_dim=0)
            case CallKind.BROADCAST:
                return Broadcast(members, size, self._root(meeting, whats, attributes))
            case CallKind.SCATTER:
                self.assumed.rooted[meeting.kind.value] += 1
                return Broadcast(members, size, self._root(meeting, whats, attributes))
            case CallKind.BARRIER:
                self.assumed.rooted[meeting.kind.value] += 1
                return AllReduce(members, 0, ReductionKind.SUM)

    def _rooted(self, meeting: Meeting, whats: Mapping[int, Call], attributes: dict[str, Any]) -> None:
        self.assumed.rooted[meeting.kind.value] += 1
        self._root(meeting, whats, attributes)

    def _root(self, meeting: Meeting, whats: Mapping[int, Call], attributes: dict[str, Any]) -> int:
        """The root as a rank; where no file says it, the first member, and that is said."""
        for what in whats.values():
            if what.root is None:
                continue
            if what.root_is_rank and what.root in meeting.members:
                attributes[fact("root")] = what.root
                return what.root
            if not what.root_is_rank and 0 <= what.root < len(meeting.members):
                attributes[fact("root")] = meeting.members[what.root]
                return meeting.members[what.root]
        # Only the root of a scatter brings something, only that of a gather gets something.
        alone = [rank for rank, what in whats.items() if what.operand is not None]
        if meeting.kind is CallKind.GATHER:
            alone = [rank for rank, what in whats.items() if what.result is not None]
        if meeting.kind in (CallKind.SCATTER, CallKind.GATHER) and len(alone) == 1 and len(whats) > 1:
            attributes[fact("root")] = alone[0]
            return alone[0]
        attributes[fact("root_assumed")] = True
        self.assumed.roots += 1
        return meeting.members[0]

    def _reduction(self, whats: Mapping[int, Call], attributes: dict[str, Any]) -> ReductionKind:
        for what in whats.values():
            if what.reduction is not None:
                return what.reduction
        attributes[fact("reduction_assumed")] = True
        self.assumed.reductions += 1
        return ReductionKind.SUM


def uneven(calls: Sequence[Call]) -> bool:
    """Whether parts of an exchange differ in size: as split sizes say, or shapes that could not differ otherwise."""
    if any(call.send_splits or call.recv_splits for call in calls):
        return True
    shapes = {tensor.shape for call in calls for tensor in (call.operand, call.result) if tensor is not None}
    return len(shapes) > 1


def brought(call: Call, members: int) -> Tensor | None:
    """What a rank brings; of a gather whose result is stated as a number of bytes, its share."""
    if call.operand is None and call.kind is CallKind.ALL_GATHER and call.size_bytes and call.result is not None:
        return _share(call.size_bytes, members, call.result.dtype)
    return call.operand


def got(call: Call, members: int) -> Tensor | None:
    """What a rank gets; of a scatter whose operand is stated as a number of bytes, its share."""
    if call.result is None and call.kind is CallKind.REDUCE_SCATTER and call.size_bytes and call.operand is not None:
        return _share(call.size_bytes, members, call.operand.dtype)
    return call.result


def _share(size_bytes: int, members: int, dtype: str) -> Tensor | None:
    return Tensor((size_bytes // members,), dtype) if not size_bytes % members else None
