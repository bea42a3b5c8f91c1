"""What one rank did, as a trace says it, whatever the format: `RankTrace` and its events in issue order.

Readers of formats (Chakra, Kineto, execution traces, flight recorders) only fill these records. What holds across ranks,
which calls meet and which sends a receive takes, is found from them in `dtir.importers.rank_set.matching`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from dtir.ir.ranks import Ranks
from dtir.ir.reductions import ReductionKind
from dtir.schema.diagnostics import EMPTY_DIAGNOSTICS, DiagnosticSet

MOST_RANKS = 1 << 20
"""Ranks above this number are not believed: what a verifier keeps for each rank must not grow with a number in a file."""


DIALECT = "trace"
"""The dialect of operations that were read from traces."""


def fact(name: str) -> str:
    """The key of what a trace says, among the attributes of a task or program: ``trace.<name>``."""
    return f"{DIALECT}.{name}"


class CallKind(Enum):
    """What a collective call does; the values are the words of the IR where it has the kind."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    BARRIER = "barrier"


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and element type (an IR name, ``f32``) of what one rank brings or gets."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """One rank's call of a collective.

    Args:
        kind: what it does.
        group: the process group's name in the file; None when the file does not say.
        sequence: the file's own number of the call within its group; None when it has none.
        operand, result: what the rank brings and gets; None when the file does not say.
        size_bytes: the size that the file states in place of shapes.
        reduction: how values are combined; None when the file does not say.
        root: position in the group of the root, or a rank when `root_is_rank`; None when the file does not say.
        root_is_rank: whether `root` numbers ranks of the program.
        group_size: members of the group, where the file says a number only.
        send_splits, recv_splits: elements (along the first dim) to and from each member, of uneven exchanges.
    """

    kind: CallKind
    group: str | None = None
    sequence: int | None = None
    operand: Tensor | None = None
    result: Tensor | None = None
    size_bytes: int | None = None
    reduction: ReductionKind | None = None
    root: int | None = None
    root_is_rank: bool = False
    group_size: int | None = None
    send_splits: tuple[int, ...] = ()
    recv_splits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """One end of a transfer.

    Args:
        sends: whether this rank sends.
        peer: the rank at the other end; None when the file does not say.
        tag: transfers of one (source, destination, tag) meet in order.
        tensor: what is moved; None when the file does not say.
        size_bytes: the size that the file states in place of a shape.
        group: the process group in whose numbering `peer` is a position; None: `peer` is a rank.
    """

    sends: bool
    peer: int | None
    tag: str = "0"
    tensor: Tensor | None = None
    size_bytes: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """What a rank does on its own: one operation, or a run of several that lie between two communications.

    Args:
        operations: how many.
        facts: what the file says of it, as plain attributes.
    """

    operations: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Span:
    """When something began and ended, in nanoseconds of the file's clock."""

    start_ns: int
    end_ns: int


What: TypeAlias = Call | Transfer | Local


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a rank did.

    Args:
        what: what it is.
        name: its name in the file.
        source: where it stands there: a node id, a record number.
        needs: positions, in the same list, of the events that must be over before it begins.
        span: when it ran; None when the file does not say.
        finished: whether it was over when the file was written; None when the file does not say.
        duration_ns: how long it took, where the file says that alone.
    """

    what: What
    name: str
    source: str
    needs: tuple[int, ...] = ()
    span: Span | None = None
    finished: bool | None = None
    duration_ns: int | None = None


class Order(Enum):
    """What the order of the events of a rank means."""

    ISSUED = "issued"
    """They were issued one after the other; `needs` is empty."""

    DEPENDENCIES = "dependencies"
    """Only `needs` binds; the list is the order of the file."""


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank's file.

    Args:
        format: short name of the format.
        label: what to call the file.
        name: what to call the program: the file's name without the rank.
        digest: of the file.
        rank: whose file it is; None when neither content nor name says.
        schema: version of the format as the file states it; may be empty.
        events: in issue order.
        order: what that order means.
        world: ranks of the whole job; None when the file does not say.
        groups: process groups by name, members in group order.
        group_sizes: members of groups of which only the number is known.
        default_group: the name of the group of all ranks, for calls that name none; None when calls without a group are
            of an unknown one.
        facts: what else the file says about itself.
        diagnostics: found while reading.
    """

    format: str
    label: str
    name: str
    digest: str
    rank: int | None
    schema: str
    events: tuple[Event, ...] = field(repr=False)
    order: Order = Order.ISSUED
    world: int | None = None
    groups: Mapping[str, Ranks] = field(default_factory=dict[str, Ranks], repr=False)
    group_sizes: Mapping[str, int] = field(default_factory=dict[str, int], repr=False)
    default_group: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    diagnostics: DiagnosticSet = EMPTY_DIAGNOSTICS
