"""Who takes part in what: every communication task's members, and the operation in which they meet (SEMANTICS 2.5).

Every group of a collective, every pair of a permute and every transfer is an operation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import groups_of
from dtir.ir.collectives import CollectivePermute
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

MAX_SLOTS = 100_000_000
"""Participant slots beyond this number are not projected."""

MAX_TABLE = 64_000_000
"""Entries of the table of (kind of groups, rank); beyond that slots are matched by sorting."""


class TooLarge(Exception):
    """The program has more participant slots than are projected; `slots` is a lower bound of their number."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self.slots = slots


@dataclass(frozen=True, slots=True)
class Membership:
    """Every (task, rank) that communicates, in task order, with the operation it meets in.

    Args:
        task, rank, op: parallel arrays; a rank stands twice where it sends and receives in one permute.
        sends: True at the sender's end of a transfer.
        op_task: the task of every operation.
        op_transfer: True for transfers and pairs of permutes.
        pattern: per task the number of its pattern of groups among `patterns`, -1 for transfers and other tasks.
        first_op: per task the number of its first operation.
        patterns: per pattern the group of every rank, -1 for ranks that do not take part.
    """

    task: Ints
    rank: Ints
    op: Ints
    sends: Bools
    op_task: Ints
    op_transfer: Bools
    pattern: Ints = field(repr=False)
    first_op: Ints = field(repr=False)
    patterns: npt.NDArray[np.int32] | None = field(repr=False)


def _meetings(task: DistributedTask, program: DistributedTaskIR) -> Iterator[tuple[Sequence[int], bool]]:
    """Members of every operation of a collective, and whether it is a pair of a permute (then the sender stands first)."""
    match task.body:
        case Collective(spec=CollectivePermute(pairs=pairs)):
            for source, destination in pairs:
                if source != destination:
                    yield (source, destination), True
        case Collective(spec=spec):
            for group in groups_of(spec, program.mesh) or ():
                if len(group) > 1:
                    yield group, False
        case _:
            return


def participants_of(task: DistributedTask) -> Sequence[int]:
    """The ranks that a communication task needs; none for other tasks."""
    match task.body:
        case Collective(spec=spec):
            if isinstance(spec, CollectivePermute):
                return tuple(dict.fromkeys(rank for pair in spec.pairs for rank in pair))
            return spec.participants
        case PointToPoint(spec=spec):
            return (spec.source_rank, spec.destination_rank)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Ranks, numbers of operations and senders of one task; tasks with the same groups share it."""

    number: int
    member: Ints
    own: Ints
    sending: Bools
    transfers: tuple[bool, ...]

    @property
    def collective(self) -> bool:
        return not any(self.transfers)


def membership(program: DistributedTaskIR) -> Membership:
    """The participants of every communication task.

    Raises:
        TooLarge: more than `MAX_SLOTS` of them.
    """
    parts: list[tuple[int, _Pattern, int]] = []
    # Transfers are many and small: task, source, destination and operation of each, laid out together at the end.
    transfers: list[tuple[int, int, int, int]] = []
    known: dict[tuple[object, ...], _Pattern] = {}
    slots = operations = 0
    pattern = np.full(len(program.tasks), -1, dtype=np.int64)
    first_op = np.zeros(len(program.tasks), dtype=np.int64)
    collectives: list[_Pattern] = []
    for index, task in enumerate(program.tasks):
        body = task.body
        if isinstance(body, PointToPoint):
            transfers.append((index, body.spec.source_rank, body.spec.destination_rank, operations))
            first_op[index] = operations
            operations += 1
            slots += 2
        elif isinstance(body, Collective):
            # Equal groups are laid out once: the specs of a program repeat a few lists of groups.
            lists = (getattr(body.spec, name, None) for name in ("groups", "participants", "pairs"))
            axes = getattr(body.spec, "axes", ())
            key = (type(body.spec), axes, *(id(item) if item is not None else 0 for item in lists))
            found = known.get(key)
            if found is None:
                found = known[key] = _lay_out(list(_meetings(task, program)), slots, len(collectives))
                if found.collective:
                    collectives.append(found)
            slots += len(found.member)
            parts.append((index, found, operations))
            first_op[index] = operations
            if found.collective:
                pattern[index] = found.number
            operations += len(found.transfers)
        if slots > MAX_SLOTS:
            raise TooLarge(slots)
    return _gathered(parts, transfers, pattern, first_op, _table(collectives, program.mesh.size))


def _gathered(
    parts: Sequence[tuple[int, _Pattern, int]],
    transfers: Sequence[tuple[int, int, int, int]],
    pattern: Ints,
    first_op: Ints,
    table: npt.NDArray[np.int32] | None,
) -> Membership:
    """All members in task order, all operations in order of their numbers."""
    moved = np.array(transfers, dtype=np.int64).reshape(-1, 4)
    tasks = [np.full(len(found.member), index, dtype=np.int64) for index, found, _ in parts]
    task = joined([*tasks, np.repeat(moved[:, 0], 2)])
    rank = joined([*(found.member for _, found, _ in parts), moved[:, 1:3].ravel()])
    op = joined([*(found.own + first for _, found, first in parts), np.repeat(moved[:, 3], 2)])
    ends = np.tile(np.array([True, False]), len(moved))
    sends = np.concatenate([*(found.sending for _, found, _ in parts), ends])
    if len(moved) and parts:
        order = np.argsort(task, kind="stable")
        task, rank, op, sends = task[order], rank[order], op[order], sends[order]
    owners = [np.full(len(found.transfers), index, dtype=np.int64) for index, found, _ in parts]
    op_task = joined([*owners, moved[:, 0]])
    numbers = joined([*(first + np.arange(len(found.transfers)) for _, found, first in parts), moved[:, 3]])
    transfer = np.array(
        [item for _, found, _ in parts for item in found.transfers] + [True] * len(moved), dtype=np.bool_
    )
    by_number = np.argsort(numbers, kind="stable")
    return Membership(task, rank, op, sends, op_task[by_number], transfer[by_number], pattern, first_op, table)


def _lay_out(meetings: list[tuple[Sequence[int], bool]], before: int, number: int) -> _Pattern:
    total = sum(len(group) for group, _ in meetings)
    if before + total > MAX_SLOTS:
        raise TooLarge(before + total)
    member = np.fromiter((rank for group, _ in meetings for rank in group), dtype=np.int64, count=total)
    lengths = np.array([len(group) for group, _ in meetings], dtype=np.int64)
    own = np.repeat(np.arange(len(meetings), dtype=np.int64), lengths)
    transfers = tuple(transfer for _, transfer in meetings)
    starts = np.cumsum(lengths) - lengths
    sending = np.zeros(total, dtype=np.bool_)
    sending[starts[np.array(transfers, dtype=np.bool_)]] = True
    return _Pattern(number, member, own, sending, transfers)


def _table(patterns: Sequence[_Pattern], ranks: int) -> npt.NDArray[np.int32] | None:
    """The group of every rank, pattern by pattern; None when that is too large."""
    if len(patterns) * ranks > MAX_TABLE:
        return None
    table = np.full((len(patterns), ranks), -1, dtype=np.int32)
    for pattern in patterns:
        table[pattern.number, pattern.member] = pattern.own
    return table


def joined(parts: Sequence[Ints]) -> Ints:
    """Arrays one after the other; an empty one where there are none."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
