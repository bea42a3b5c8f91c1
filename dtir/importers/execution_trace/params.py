"""``record_param_comms``: the node that says which collective was called, in which group and with which parts.

Its arguments: the tensors (missing for a wait), a number, the process group ([name, description]; in schema 1.0.1 a handle
that differs from rank to rank), the root or the own rank, the collective's name, the two lists of split sizes, and from 1.0.3
on the first rank, the stride and the size of the group. From 1.1 on attributes say the same with names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtir.importers.execution_trace.nodes import Node
from dtir.importers.rank_set.events import Call, CallKind, Tensor, Transfer
from dtir.importers.rank_set.plain import count_of, sequence, text_of, whole_number
from dtir.importers.rank_set.words import call_kind, dtype_name, transfer_side
from dtir.importers.torch_calls import joined
from dtir.ir.ranks import RankRange, Ranks

NAME = "record_param_comms"
LISTED_RANKS = 64

_ROOTED = (CallKind.BROADCAST, CallKind.REDUCE, CallKind.GATHER, CallKind.SCATTER)


class Params:
    """Reads the nodes of one file; handles of process groups are numbered as they come.

    Attributes:
        groups: members by group name, where the nodes say them.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Ranks] = {}
        self._handles: dict[int, str] = {}

    def call(self, node: Node) -> Call | Transfer | None:
        """What was called; None for a wait, or when the name is no collective."""
        place, name = _named(node)
        side, kind = transfer_side(name), call_kind(name)
        if side is None and kind is None:
            return None
        values = [argument.value for argument in node.inputs]
        group = self._group(node, values, place)
        operand = joined([tensor for argument in node.inputs for tensor in argument.tensors])
        result = joined([tensor for argument in node.outputs for tensor in argument.tensors])
        operand, result = _counted(node, "in", operand), _counted(node, "out", result)
        if side is not None:
            peer = count_of(node.attributes.get("dst_rank" if side else "src_rank"))
            peer = whole_number(values[place - 1]) if peer is None and place > 0 else peer
            return Transfer(side, peer, "0", operand if side else (result or operand), group=group)
        assert kind is not None
        root = whole_number(values[place - 1]) if kind in _ROOTED and place > 0 else None
        sends, receives = (_splits(values, place + offset) for offset in (1, 2))
        size = count_of(node.attributes.get("pg_size")) or len(sends) or len(receives) or None
        if kind is CallKind.BARRIER:
            operand = result = None
        return Call(
            kind, group, None, operand, result, root=root, group_size=size, send_splits=sends, recv_splits=receives
        )

    def _group(self, node: Node, values: Sequence[Any], place: int) -> str | None:
        """The group's name; that of all ranks has the empty name here."""
        found: tuple[str, str] | None = None
        stated = text_of(node.attributes.get("pg_name"))
        if stated:
            found = stated, text_of(node.attributes.get("pg_desc"))
        for value in values[:place]:
            pair = [text_of(item) for item in sequence(value)]
            if found is None and len(pair) == 2 and all(isinstance(item, str) for item in sequence(value)):
                found = pair[0], pair[1]
        if found is not None and found[0]:
            name = "" if found[1] == "default_pg" or (found[0] == "0" and not found[1]) else found[0]
            self._members(name, values, place)
            return name
        handle = whole_number(values[place - 2]) if place >= 2 else None
        if not handle:
            return None
        return self._handles.setdefault(handle, f"handle {len(self._handles)}")

    def _members(self, name: str, values: Sequence[Any], place: int) -> None:
        """First rank, stride and size stand behind the split sizes."""
        numbers = [whole_number(value) for value in values[place + 3 : place + 6]]
        if len(numbers) == 3 and name not in self.groups:
            members = strided(*numbers)
            if members:
                self.groups[name] = members


def collective_name(node: Node) -> str:
    """The collective's own name, ``all_to_allv``."""
    return _named(node)[1] or node.name


def strided(start: int | None, stride: int | None, size: int | None) -> Ranks | None:
    """The ranks of a group that lie evenly; None when the three numbers say none."""
    if start is None or stride is None or size is None or start < 0 or stride < 1 or not 0 < size <= 1 << 20:
        return None
    run = RankRange(start, start + stride * size, stride)
    # A long run costs nothing as a run, and as a list as much as a number in a file says.
    return tuple(run) if size <= LISTED_RANKS else run


def _named(node: Node) -> tuple[int, str]:
    """Where the collective's name stands among the arguments, and the name: the first text."""
    stated = text_of(node.attributes.get("collective_name"))
    for place, argument in enumerate(node.inputs):
        if isinstance(argument.value, str) and argument.value and not argument.value.startswith("<"):
            return place, stated or argument.value
    return len(node.inputs), stated


def _splits(values: Sequence[Any], place: int) -> tuple[int, ...]:
    found = [count_of(item) for item in sequence(values[place] if place < len(values) else None)]
    known = tuple(item for item in found if item is not None)
    return known if len(known) == len(found) else ()


def _counted(node: Node, side: str, tensor: Tensor | None) -> Tensor | None:
    """The tensor, or what the attributes count of it."""
    if tensor is not None:
        return tensor
    elements = count_of(node.attributes.get(f"{side}_msg_nelems"))
    dtype = dtype_name(text_of(node.attributes.get("dtype")))
    return Tensor((elements,), dtype) if elements and dtype else None
