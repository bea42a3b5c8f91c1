"""What PyTorch writes about NCCL calls: on ``record_param_comms``, and again on the kernels.

Keys are those of torch/csrc/profiler/util.h: "Collective name", "In msg nelems", "Out msg nelems", "In split size", "dtype",
"Group size", "Process Group Name" (older: "Process Group ID"), "Process Group Description", "Process Group Ranks" (a text,
shortened with "..." where it is long), "Global rank start", "Global rank stride", "Src Rank", "Dst Rank".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dtir.importers.execution_trace.params import strided
from dtir.importers.rank_set.events import Call, CallKind, Tensor, Transfer
from dtir.importers.rank_set.plain import count_of, ranks_of, text_of
from dtir.importers.rank_set.words import call_kind, dtype_name, transfer_side
from dtir.ir.ranks import Ranks

COLLECTIVE = "Collective name"

_NUMBER = re.compile(r"\d{1,18}")


def described_call(arguments: Mapping[str, Any]) -> Call | Transfer | None:
    """The call that the metadata describe; None for a wait and for names that are no collective."""
    name = text_of(arguments.get(COLLECTIVE))
    side, kind = transfer_side(name), call_kind(name)
    if side is None and kind is None:
        return None
    group = group_name(arguments)
    brings, gets = _tensor(arguments, "In msg nelems"), _tensor(arguments, "Out msg nelems")
    if side is not None:
        peer = count_of(arguments.get("Dst Rank" if side else "Src Rank"))
        return Transfer(side, peer, "0", brings if side else (gets or brings), group=group)
    assert kind is not None
    if kind is CallKind.BARRIER:
        brings = gets = None
    root = count_of(arguments.get("Root Rank", arguments.get("Root rank")))
    sends, receives = _splits(arguments.get("In split size")), _splits(arguments.get("Out split size"))
    size = count_of(arguments.get("Group size")) or None
    return Call(kind, group, None, brings, gets, root=root, group_size=size, send_splits=sends, recv_splits=receives)


def group_name(arguments: Mapping[str, Any]) -> str | None:
    """The process group's name; that of all ranks has the empty name here."""
    value = arguments.get("Process Group Name", arguments.get("Process Group ID"))
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return None
    return "" if arguments.get("Process Group Description") == "default_pg" else str(value)


def group_members(arguments: Mapping[str, Any]) -> Ranks | None:
    """The members that the metadata list, or that lie evenly from a first rank on."""
    members = ranks_of(arguments.get("Process Group Ranks"))
    if members:
        return members
    numbers = (count_of(arguments.get(key)) for key in ("Global rank start", "Global rank stride", "Group size"))
    return strided(*numbers)


def _tensor(arguments: Mapping[str, Any], key: str) -> Tensor | None:
    elements = count_of(arguments.get(key))
    dtype = dtype_name(text_of(arguments.get("dtype")))
    return Tensor((elements,), dtype or "u8") if elements is not None else None


def _splits(value: object) -> tuple[int, ...]:
    """Split sizes, a text like ``"[3, 5]"``; one that was shortened says nothing."""
    text = text_of(value)
    return () if "..." in text else tuple(int(item) for item in _NUMBER.findall(text))
