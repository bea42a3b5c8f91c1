"""Operators of ``c10d``: which argument is the operand, the result, the root, the peer and the tag.

The signatures are those of torch/csrc/distributed/c10d/Ops.cpp: collectives that are not in place take their results first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.importers.rank_set.events import Call, CallKind, Tensor, Transfer
from dtir.importers.rank_set.plain import sequence, whole_number
from dtir.importers.rank_set.words import call_kind, transfer_side
from dtir.importers.torch_calls.tensors import joined

NAMESPACES = ("c10d::",)

_RESULT_FIRST = {
    CallKind.ALL_GATHER,
    CallKind.REDUCE_SCATTER,
    CallKind.ALL_TO_ALL,
    CallKind.GATHER,
    CallKind.SCATTER,
}
_ROOT = {CallKind.BROADCAST: 2, CallKind.REDUCE: 3, CallKind.GATHER: 3, CallKind.SCATTER: 3}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operator: its tensors, and its value where it is a number or a list of numbers."""

    tensors: Sequence[Tensor] = ()
    value: Any = field(default=None)


def operator_call(name: str, arguments: Sequence[Argument], group: str | None) -> Call | Transfer | None:
    """The call that an operator makes; None for one that communicates nothing."""
    side = transfer_side(name)
    if side is not None:
        any_source = "any" in name
        peer = None if any_source else _number(arguments, 2)
        tag = _number(arguments, 2 if any_source else 3)
        return Transfer(side, peer, str(tag or 0), _tensor(arguments, 0), group=group)
    kind = call_kind(name)
    if kind is None:
        return None
    if kind is CallKind.BARRIER:
        return Call(kind, group)
    first = kind in _RESULT_FIRST
    operand, result = _tensor(arguments, 1 if first else 0), _tensor(arguments, 0)
    root = _number(arguments, _ROOT[kind]) if kind in _ROOT else None
    sends = receives = ()
    if kind is CallKind.ALL_TO_ALL and "base" in name:
        receives, sends = _numbers(arguments, 3), _numbers(arguments, 4)
    return Call(
        kind,
        group,
        None,
        operand,
        result if first or kind is not CallKind.REDUCE else operand,
        root=root,
        send_splits=sends,
        recv_splits=receives,
        group_size=len(sends) or len(receives) or None,
    )


def annotation_call(name: str, arguments: Sequence[Argument]) -> Call | Transfer | None:
    """The call that a backend's annotation (``nccl:all_to_all``) tells of: what it is, and its operand alone."""
    side, kind = transfer_side(name), call_kind(name)
    tensor = joined([item for argument in arguments for item in argument.tensors])
    if side is not None:
        return Transfer(side, None, "0", tensor)
    if kind is None:
        return None
    if kind is CallKind.BARRIER:
        return Call(kind)
    alike = kind in (CallKind.ALL_REDUCE, CallKind.BROADCAST)
    return Call(kind, None, None, tensor, tensor if alike else None)


def _tensor(arguments: Sequence[Argument], position: int) -> Tensor | None:
    return joined(arguments[position].tensors) if position < len(arguments) else None


def _number(arguments: Sequence[Argument], position: int) -> int | None:
    return whole_number(arguments[position].value) if position < len(arguments) else None


def _numbers(arguments: Sequence[Argument], position: int) -> tuple[int, ...]:
    value: object = arguments[position].value if position < len(arguments) else None
    found = [whole_number(item) for item in sequence(value)]
    known = tuple(item for item in found if item is not None and item >= 0)
    return known if len(known) == len(found) else ()
