"""Bytes of communication: the nccl-tests size S of a task, and what crosses the wire (SEMANTICS 3.1).

S is the larger of what one rank contributes in total and what it obtains in total: the local value for all_reduce,
broadcast and transfers; the full output of an all_gather; the full input of a reduce_scatter; the whole local buffer of
an all_to_all.

>>> wire_bytes(CollectiveKind.ALL_REDUCE, 4, 1024), wire_bytes(CollectiveKind.ALL_GATHER, 4, 1024)
(6144, 3072)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from dtir.analysis.divisibility import bound
from dtir.ir.collectives import CollectiveKind
from dtir.ir.expr import ExprOp, Scalar, expression
from dtir.ir.types import elements_bytes


def bytes_of_shape(shape: Sequence[Scalar], dtype: str) -> Scalar | None:
    """Bytes of a dense local array; None when the dtype is not known, or there are more than a float can count."""
    count: Scalar = 1
    try:
        for extent in shape:
            count = expression(ExprOp.MUL, count, extent)
        return elements_bytes(count, dtype)
    except ArithmeticError:
        return None


def message_bytes(kind: CollectiveKind, local_input: Scalar | None, local_output: Scalar | None) -> Scalar | None:
    """S of one group, from the bytes of the local input and of the local output of a rank."""
    match kind:
        case CollectiveKind.ALL_GATHER:
            return local_output
        case (
            CollectiveKind.ALL_REDUCE
            | CollectiveKind.REDUCE_SCATTER
            | CollectiveKind.ALL_TO_ALL
            | CollectiveKind.BROADCAST
            | CollectiveKind.COLLECTIVE_PERMUTE
        ):
            return local_input
        case _:
            assert_never(kind)


def counted(quantity: Scalar | None, bindings: Mapping[str, int | float]) -> int | float | None:
    """A number of bytes as a number, symbols bound; None while it is symbolic."""
    if quantity is None:
        return None
    value = bound(quantity, bindings)
    return value if isinstance(value, (int, float)) else None


def wire_bytes(kind: CollectiveKind, members: int, size_bytes: int | float) -> int | float:
    """Bytes that all ranks of one group send together, at least (SEMANTICS 3.1, last column).

    Args:
        kind: the collective; a permute counts one pair.
        members: ranks of the group.
        size_bytes: S.
    """
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return 2 * (members - 1) * size_bytes
        case (
            CollectiveKind.REDUCE_SCATTER
            | CollectiveKind.ALL_GATHER
            | CollectiveKind.ALL_TO_ALL
            | CollectiveKind.BROADCAST
        ):
            return (members - 1) * size_bytes
        case CollectiveKind.COLLECTIVE_PERMUTE:
            return size_bytes
        case _:
            assert_never(kind)
