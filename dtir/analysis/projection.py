"""Who issues what in which order: per-rank steps of communication, as arrays (SEMANTICS 2.5).

A program with issue lists is projected as these say; a rank without a list issues the tasks it takes part in, in task
order. Every group of a collective, every pair of a permute and every transfer is an operation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import groups_of
from dtir.ir.collectives import CollectivePermute, PeerTransfer
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

MAX_SLOTS = 100_000_000
"""Participant slots beyond this number are not projected."""


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
    """

    task: Ints
    rank: Ints
    op: Ints
    sends: Bools
    op_task: Ints
    op_transfer: Bools


@dataclass(frozen=True, slots=True)
class Projection:
    """Steps and operations, rank by rank.

    Args:
        members: who takes part in what.
        step_rank: the rank of every step; the steps of a rank are consecutive.
        post_step, post_op: pairs "in this step this operation is entered".
        need_step, need_op: pairs "this step is left only when this operation is done".
        need_buffered: for every need pair whether a runtime that buffers sends leaves the step without it.
        missing: positions in `members` of those who never issue their operation.
    """

    members: Membership
    step_rank: Ints = field(repr=False)
    post_step: Ints = field(repr=False)
    post_op: Ints = field(repr=False)
    need_step: Ints = field(repr=False)
    need_op: Ints = field(repr=False)
    need_buffered: Bools = field(repr=False)
    missing: Ints


def _meetings(task: DistributedTask, program: DistributedTaskIR) -> Iterator[tuple[Sequence[int], bool]]:
    """Members of every operation of a task, and whether it is a transfer (then the sender stands first)."""
    match task.body:
        case Collective(spec=CollectivePermute(pairs=pairs)):
            for source, destination in pairs:
                if source != destination:
                    yield (source, destination), True
        case Collective(spec=spec):
            for group in groups_of(spec, program.mesh) or ():
                if len(group) > 1:
                    yield group, False
        case PointToPoint(spec=spec):
            yield (spec.source_rank, spec.destination_rank), True
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


def membership(program: DistributedTaskIR) -> Membership:
    """The participants of every communication task.

    Raises:
        TooLarge: more than `MAX_SLOTS` of them.
    """
    tasks: list[Ints] = []
    ranks: list[Ints] = []
    ops: list[Ints] = []
    sends: list[Bools] = []
    op_task: list[int] = []
    op_transfer: list[bool] = []
    known: dict[tuple[object, ...], tuple[Ints, Ints, Bools, tuple[bool, ...]]] = {}
    slots = 0
    for index, task in enumerate(program.tasks):
        if not isinstance(task.body, (Collective, PointToPoint)):
            continue
        # Equal groups are laid out once: the specs of a program repeat a few lists of groups.
        spec = task.body.spec
        lists = (getattr(spec, name, None) for name in ("groups", "participants", "pairs"))
        own = id(spec) if isinstance(spec, PeerTransfer) else 0
        key = (type(spec), own, getattr(spec, "axes", ()), *(id(item) if item is not None else 0 for item in lists))
        found = known.get(key)
        if found is None:
            found = known[key] = _lay_out(list(_meetings(task, program)), slots)
        member, own, sending, transfers = found
        slots += len(member)
        if slots > MAX_SLOTS:
            raise TooLarge(slots)
        tasks.append(np.full(len(member), index, dtype=np.int64))
        ranks.append(member)
        ops.append(own + len(op_task))
        sends.append(sending)
        op_task.extend([index] * len(transfers))
        op_transfer.extend(transfers)
    return Membership(
        _join(tasks),
        _join(ranks),
        _join(ops),
        np.concatenate(sends) if sends else np.zeros(0, dtype=np.bool_),
        np.array(op_task, dtype=np.int64),
        np.array(op_transfer, dtype=np.bool_),
    )


def _lay_out(meetings: list[tuple[Sequence[int], bool]], before: int) -> tuple[Ints, Ints, Bools, tuple[bool, ...]]:
    """Ranks, numbers of operations and senders of one task."""
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
    return member, own, sending, transfers


def _join(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def project(program: DistributedTaskIR) -> Projection:
    """The steps of every rank.

    Raises:
        TooLarge: more than `MAX_SLOTS` participants.
    """
    members = membership(program)
    awaited = {item for task in program.tasks for item in task.completes}
    waits = {index for index, task in enumerate(program.tasks) if task.completes}
    slot_rank, slot_step, slot_task = _slots(program, members, waits)
    size = max(program.mesh.size, 1)
    # (task, rank) as one number; both sides sorted by it, then matched.
    member_key = members.task * size + members.rank
    slot_key = slot_task * size + slot_rank
    by_slot = np.argsort(slot_key, kind="stable")
    sorted_keys = slot_key[by_slot]
    place = np.searchsorted(sorted_keys, member_key)
    inside = place < len(sorted_keys)
    hit = inside.copy()
    hit[inside] = sorted_keys[place[inside]] == member_key[inside]
    slot_of_member = np.full(len(member_key), -1, dtype=np.int64)
    slot_of_member[hit] = by_slot[place[hit]]
    step_rank, step_of_slot = _steps(slot_rank, slot_step)
    issued = np.flatnonzero(slot_of_member >= 0)
    post_step = step_of_slot[slot_of_member[issued]]
    post_op = members.op[issued]
    asynchronous = np.array([task.id in awaited for task in program.tasks], dtype=np.bool_)
    at_once = ~asynchronous[members.task[issued]] if len(issued) else np.zeros(0, dtype=np.bool_)
    need_step, need_op = post_step[at_once], post_op[at_once]
    buffered = members.sends[issued][at_once]
    if waits:
        more = _waits(program, members, slot_rank, slot_task, step_of_slot, waits)
        need_step, need_op = np.concatenate([need_step, more[0]]), np.concatenate([need_op, more[1]])
        buffered = np.concatenate([buffered, more[2]])
    missing = np.flatnonzero(slot_of_member < 0)
    return Projection(members, step_rank, post_step, post_op, need_step, need_op, buffered, missing)


def _slots(program: DistributedTaskIR, members: Membership, waits: set[int]) -> tuple[Ints, Ints, Ints]:
    """(rank, step, task) of everything that is issued: as the lists say, else in task order."""
    by_value = {task.id: index for index, task in enumerate(program.tasks)}
    # By identity first: issue lists hold the same few ids millions of times, and hashing an id costs ten look-ups.
    by_identity = {id(task.id): index for index, task in enumerate(program.tasks)}
    ranks: list[Ints] = []
    steps: list[Ints] = []
    tasks: list[Ints] = []
    listed = np.zeros(program.mesh.size if program.issue else 0, dtype=np.bool_)
    for issue in program.issue:
        if listed[issue.rank]:
            continue
        listed[issue.rank] = True
        flat = [item for step in issue.steps for item in step]
        found = [by_identity.get(id(item), -1) for item in flat]
        if -1 in found:
            found = [by_value.get(item, -1) if place < 0 else place for item, place in zip(flat, found, strict=True)]
        if len(flat) == len(issue.steps):
            own = np.arange(len(flat), dtype=np.int64)
        else:
            lengths = np.array([len(step) for step in issue.steps], dtype=np.int64)
            own = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        ranks.append(np.full(len(flat), issue.rank, dtype=np.int64))
        steps.append(own)
        tasks.append(np.array(found, dtype=np.int64))
    free = ~listed[members.rank] if program.issue else np.ones(len(members.rank), dtype=np.bool_)
    ranks.append(members.rank[free])
    steps.append(members.task[free])
    tasks.append(members.task[free])
    for index in waits:
        own_ranks = [rank for rank in program.tasks[index].ranks if not program.issue or not listed[rank]]
        ranks.append(np.array(own_ranks, dtype=np.int64))
        steps.append(np.full(len(own_ranks), index, dtype=np.int64))
        tasks.append(np.full(len(own_ranks), index, dtype=np.int64))
    rank, step, task = np.concatenate(ranks), np.concatenate(steps), np.concatenate(tasks)
    known = task >= 0
    return rank[known], step[known], task[known]


def _steps(slot_rank: Ints, slot_step: Ints) -> tuple[Ints, Ints]:
    """Steps numbered through, rank by rank: the rank of each, and the step of every slot."""
    if not len(slot_rank):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.lexsort((slot_step, slot_rank))
    rank, step = slot_rank[order], slot_step[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (rank[1:] != rank[:-1]) | (step[1:] != step[:-1])
    number = np.cumsum(new) - 1
    of_slot = np.empty(len(order), dtype=np.int64)
    of_slot[order] = number
    return rank[new], of_slot


def _waits(
    program: DistributedTaskIR,
    members: Membership,
    slot_rank: Ints,
    slot_task: Ints,
    step_of_slot: Ints,
    waits: set[int],
) -> tuple[Ints, Ints, Bools]:
    """Need pairs of steps that wait for asynchronous tasks: one for each operation that the rank takes part in."""
    position = {task.id: index for index, task in enumerate(program.tasks)}
    starts = np.searchsorted(members.task, np.arange(len(program.tasks) + 1))
    step_of: dict[tuple[int, int], int] = {}
    for slot in np.flatnonzero(np.isin(slot_task, list(waits))):
        step_of[int(slot_task[slot]), int(slot_rank[slot])] = int(step_of_slot[slot])
    need_step: list[int] = []
    need_op: list[int] = []
    buffered: list[bool] = []
    for index in sorted(waits):
        for item in program.tasks[index].completes:
            task = position.get(item)
            if task is None:
                continue
            for place in range(int(starts[task]), int(starts[task + 1])):
                step = step_of.get((index, int(members.rank[place])))
                if step is not None:
                    need_step.append(step)
                    need_op.append(int(members.op[place]))
                    buffered.append(bool(members.sends[place]))
    return (
        np.array(need_step, dtype=np.int64),
        np.array(need_op, dtype=np.int64),
        np.array(buffered, dtype=np.bool_),
    )


def in_one_order(projection: Projection) -> bool:
    """The shortcut: every rank issues its operations in the order of the task list, and nobody is missing.

    Then nothing can wait in a circle, whatever is grouped: the earliest operation that is not done has all its members
    before it. Cost: one look at every slot.
    """
    if len(projection.missing):
        return False
    task = projection.members.op_task[projection.need_op]
    order = np.lexsort((task, projection.need_step)) if not _ascending(projection.need_step) else None
    step = projection.need_step if order is None else projection.need_step[order]
    task = task if order is None else task[order]
    rank = projection.step_rank[step] if len(step) else step
    same = rank[1:] == rank[:-1]
    return bool(np.all(task[1:][same] >= task[:-1][same])) and not _delayed(projection)


def _ascending(numbers: Ints) -> bool:
    return bool(np.all(numbers[1:] >= numbers[:-1]))


def _delayed(projection: Projection) -> bool:
    """True when some operation is waited for in another step than the one that enters it."""
    return len(projection.need_op) != len(projection.post_op) or not (
        np.array_equal(projection.need_step, projection.post_step)
        and np.array_equal(projection.need_op, projection.post_op)
    )
