"""What kinds of task there are, and the five families that pictures distinguish.

A family has a colour and a shape; the exact kind is a code of two or three letters, so that nothing is told by colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    LocalCompute,
    Loop,
    PointToPoint,
    Reshard,
    TaskBodyVariant,
)


class Family(IntEnum):
    """A family of kinds; the number is what columns hold."""

    LOCAL = 0
    COLLECTIVE = 1
    POINT_TO_POINT = 2
    RESHARD = 3
    CONTROL = 4
    BLOCK = 5


FAMILY_LABELS: dict[Family, str] = {
    Family.LOCAL: "local compute",
    Family.COLLECTIVE: "collective",
    Family.POINT_TO_POINT: "point to point",
    Family.RESHARD: "reshard",
    Family.CONTROL: "control",
    Family.BLOCK: "block",
}

COMMUNICATION = frozenset({Family.COLLECTIVE, Family.POINT_TO_POINT, Family.RESHARD})


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of task.

    Args:
        name: as filters and tables write it.
        code: two or three letters for a picture; empty for local compute, whose operation is its label.
        family: what decides colour and shape.
        label: for people.
    """

    name: str
    code: str
    family: Family
    label: str


KINDS: tuple[Kind, ...] = (
    Kind("local_compute", "", Family.LOCAL, "local compute"),
    Kind("all_reduce", "AR", Family.COLLECTIVE, "all-reduce"),
    Kind("reduce_scatter", "RS", Family.COLLECTIVE, "reduce-scatter"),
    Kind("all_gather", "AG", Family.COLLECTIVE, "all-gather"),
    Kind("all_to_all", "A2A", Family.COLLECTIVE, "all-to-all"),
    Kind("broadcast", "BC", Family.COLLECTIVE, "broadcast"),
    Kind("collective_permute", "CP", Family.COLLECTIVE, "collective-permute"),
    Kind("point_to_point", "P2P", Family.POINT_TO_POINT, "point to point"),
    Kind("reshard", "RSH", Family.RESHARD, "reshard"),
    Kind("control", "CTL", Family.CONTROL, "control"),
    Kind("call", "CALL", Family.BLOCK, "call"),
    Kind("loop", "LOOP", Family.BLOCK, "loop"),
    Kind("branch", "IF", Family.BLOCK, "branch"),
)
"""Every kind; a column of kinds holds positions in this tuple."""

KIND_INDEX: dict[str, int] = {kind.name: position for position, kind in enumerate(KINDS)}
FAMILY_OF_KIND: tuple[Family, ...] = tuple(kind.family for kind in KINDS)


def _collective_name(spec: CollectiveSpecVariant) -> str:
    match spec:
        case AllReduce():
            return "all_reduce"
        case ReduceScatter():
            return "reduce_scatter"
        case AllGather():
            return "all_gather"
        case AllToAll():
            return "all_to_all"
        case Broadcast():
            return "broadcast"
        case CollectivePermute():
            return "collective_permute"
        case _:
            assert_never(spec)


def kind_name(body: TaskBodyVariant) -> str:
    """The kind of a task by its body."""
    match body:
        case LocalCompute():
            return "local_compute"
        case Collective(spec=spec):
            return _collective_name(spec)
        case PointToPoint():
            return "point_to_point"
        case Reshard():
            return "reshard"
        case Control():
            return "control"
        case Call():
            return "call"
        case Loop():
            return "loop"
        case Branch():
            return "branch"
        case _:
            assert_never(body)
