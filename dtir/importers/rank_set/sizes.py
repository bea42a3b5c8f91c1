"""Message sizes of calls and transfers: the nccl-tests size S of DESIGN.md, from shapes or as the file states it."""

from __future__ import annotations

from dtir.importers.rank_set.events import Call, CallKind, Transfer
from dtir.importers.rank_set.words import tensor_bytes


def call_bytes(call: Call, members: int) -> int:
    """S of a call: the larger of what a rank brings in total and what it gets.

    A size that the file states stands as it is. Where a gather's result or a scatter's operand is not said, it is as many
    times the other side as the group has members.
    """
    if call.size_bytes is not None:
        return call.size_bytes
    brings = tensor_bytes(call.operand) if call.operand is not None else 0
    gets = tensor_bytes(call.result) if call.result is not None else 0
    match call.kind:
        case CallKind.ALL_GATHER | CallKind.GATHER:
            return max(gets, brings * members)
        case CallKind.REDUCE_SCATTER | CallKind.SCATTER:
            return max(brings, gets * members)
        case CallKind.ALL_REDUCE | CallKind.ALL_TO_ALL | CallKind.BROADCAST | CallKind.REDUCE:
            return max(brings, gets)
        case CallKind.BARRIER:
            return 0


def transfer_bytes(transfer: Transfer) -> int:
    """Bytes that one end of a transfer says are moved."""
    if transfer.size_bytes is not None:
        return transfer.size_bytes
    return tensor_bytes(transfer.tensor) if transfer.tensor is not None else 0
