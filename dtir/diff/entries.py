"""What a difference is made of: things that only one program has, and fields of matched things that differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Match(Enum):
    """How two things were found to be the same one, the surest first."""

    EXACT = "exact"
    LINEAGE = "lineage"
    STRUCTURE = "structure"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Present:
    """A thing that one program has and the other lacks.

    Args:
        what: ``axis``, ``task``, ``value``, ``input`` or ``output``.
        id: display id (``node:...``, ``value:...``), the name of an axis, the number of an input or output.
        name: for people.
        kind: of a task, its body tag or the kind of its collective; of a value, its role; else empty.
        operation: of a task; else empty.
        source: where it comes from, as its importer noted it.
        message_bytes: of a communication task, the nccl-tests size S; None where there is no number.
        region: name of the region that holds it; empty for the program itself.
    """

    what: str
    id: str
    name: str
    kind: str = ""
    operation: str = ""
    source: str = ""
    message_bytes: int | None = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One field of a matched pair that differs.

    Args:
        what: ``mesh``, ``program``, ``task``, ``value``, ``input`` or ``output``.
        id: display id in the first program.
        other_id: the same in the second.
        name: for people, in the first program.
        other_name: in the second.
        kind: as in `Present`, in the first program.
        field: what differs (``message_bytes``, ``groups``, ``sharding_dims``, ``reads``, ...).
        before: in the first program, as text; empty when it is not there.
        after: in the second.
        match: how the pair was found.
        region: name of the region that holds it in the first program; empty for the program itself.
    """

    what: str
    id: str
    other_id: str
    name: str
    other_name: str
    kind: str
    field: str
    before: str
    after: str
    match: Match
    region: str = ""
