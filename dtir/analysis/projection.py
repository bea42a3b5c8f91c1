"""Who issues what in which order: per-rank steps of communication, as arrays (SEMANTICS 2.5).

A program with issue lists is projected as these say; a rank without a list issues the tasks it takes part in, in task
order. Every group of a collective, every pair of a permute and every transfer is an operation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from dtir.analysis.membership import MAX_SLOTS, Bools, Ints, Membership, membership
from dtir.ir.program import DistributedTaskIR


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


@dataclass(frozen=True, slots=True)
class _Slots:
    """What is issued: by which rank, in which of its steps, which task; steps of a rank ascend."""

    rank: Ints
    step: Ints
    task: Ints


def project(program: DistributedTaskIR) -> Projection:
    """The steps of every rank.

    Raises:
        TooLarge: more than `MAX_SLOTS` participants.
    """
    members = membership(program)
    awaited = {item for task in program.tasks for item in task.completes}
    waits = {index for index, task in enumerate(program.tasks) if task.completes}
    slots = _slots(program, members, waits)
    step_rank, step_of_slot = _steps(slots)
    post_slot, post_op, sends, missing = _match(members, slots, program.mesh.size)
    post_step = step_of_slot[post_slot]
    need_step, need_op, buffered = post_step, post_op, sends
    if awaited:
        asynchronous = np.array([task.id in awaited for task in program.tasks], dtype=np.bool_)
        at_once = ~asynchronous[members.op_task[post_op]]
        more = _waits(program, members, slots, step_of_slot, waits)
        need_step = np.concatenate([post_step[at_once], more[0]])
        need_op = np.concatenate([post_op[at_once], more[1]])
        buffered = np.concatenate([sends[at_once], more[2]])
    return Projection(members, step_rank, post_step, post_op, need_step, need_op, buffered, missing)


def _match(members: Membership, slots: _Slots, size: int) -> tuple[Ints, Ints, Bools, Ints]:
    """(slot, operation, sends) of everything that is entered, and the members that enter nothing."""
    pattern = members.pattern[slots.task] if members.patterns is not None else np.full(len(slots.task), -1)
    dense = np.flatnonzero(pattern >= 0)
    found_slot, found_op = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    found_sends = [np.zeros(0, dtype=np.bool_)]
    missing = [np.zeros(0, dtype=np.int64)]
    rest = np.arange(len(members.task))
    if members.patterns is not None and len(dense):
        group = members.patterns[pattern[dense], slots.rank[dense]].astype(np.int64)
        inside = group >= 0
        # A task that a rank issues twice counts once.
        entering = _first_of_each(slots, dense[inside], size)
        dense, group = dense[inside][entering], group[inside][entering]
        found_slot.append(dense)
        found_op.append(members.first_op[slots.task[dense]] + group)
        found_sends.append(np.zeros(len(dense), dtype=np.bool_))
        collective = members.pattern[members.task] >= 0
        issued = np.bincount(slots.task[dense], minlength=len(members.pattern))
        wanted = np.bincount(members.task[collective], minlength=len(members.pattern))
        lacking = np.flatnonzero(issued < wanted)
        # Only tasks that somebody lacks are looked at rank by rank.
        rest = np.flatnonzero(~collective)
        if len(lacking):
            doubtful = np.flatnonzero(collective & np.isin(members.task, lacking))
            hit = _find(members, slots, doubtful, size)[0]
            missing.append(doubtful[~hit])
    if len(rest):
        hit, slot = _find(members, slots, rest, size)
        found_slot.append(slot[hit])
        found_op.append(members.op[rest[hit]])
        found_sends.append(members.sends[rest[hit]])
        missing.append(rest[~hit])
    slot = np.concatenate(found_slot)
    order = np.argsort(slot, kind="stable") if not _ascending(slot) else None
    op, sends = np.concatenate(found_op), np.concatenate(found_sends)
    if order is not None:
        slot, op, sends = slot[order], op[order], sends[order]
    return slot, op, sends, np.sort(np.concatenate(missing))


def _first_of_each(slots: _Slots, chosen: Ints, size: int) -> Ints:
    """Positions among chosen slots of the first with each (rank, task)."""
    key = slots.task[chosen] * size + slots.rank[chosen]
    span = int(key.max(initial=-1)) + 1
    if span <= MAX_SLOTS:
        seen = np.zeros(span, dtype=np.bool_)
        seen[key] = True
        if int(np.count_nonzero(seen)) == len(key):
            return np.arange(len(chosen))
    return np.sort(np.unique(key, return_index=True)[1])


def _find(members: Membership, slots: _Slots, chosen: Ints, size: int) -> tuple[Bools, Ints]:
    """For chosen members whether they issue their task, and in which slot; by sorting the slots of these tasks."""
    tasks = np.zeros(len(members.pattern), dtype=np.bool_)
    tasks[members.task[chosen]] = True
    relevant = np.flatnonzero(tasks[slots.task])
    keys = slots.task[relevant] * size + slots.rank[relevant]
    order = np.argsort(keys, kind="stable")
    keys, relevant = keys[order], relevant[order]
    wanted = members.task[chosen] * size + members.rank[chosen]
    place = np.searchsorted(keys, wanted)
    inside = place < len(keys)
    hit = inside.copy()
    hit[inside] = keys[place[inside]] == wanted[inside]
    slot = np.zeros(len(chosen), dtype=np.int64)
    slot[hit] = relevant[place[hit]]
    return hit, slot


def _slots(program: DistributedTaskIR, members: Membership, waits: set[int]) -> _Slots:
    """Everything that is issued: as the lists say, else in task order; sorted by rank and step."""
    by_value = {task.id: index for index, task in enumerate(program.tasks)}
    # By identity first: issue lists hold the same few ids millions of times, and hashing an id costs ten look-ups.
    by_identity = {id(task.id): index for index, task in enumerate(program.tasks)}
    ranks: list[Ints] = []
    steps: list[Ints] = []
    tasks: list[Ints] = []
    listed = np.zeros(program.mesh.size if program.issue else 0, dtype=np.bool_)
    shared: dict[int, tuple[Ints, Ints]] = {}
    for issue in program.issue:
        if listed[issue.rank]:
            continue
        listed[issue.rank] = True
        own = shared.get(id(issue.steps))
        if own is None:
            flat = list(chain.from_iterable(issue.steps))
            found = [place for place in map(by_identity.get, map(id, flat)) if place is not None]
            if len(found) != len(flat):
                found = [by_value.get(item, -1) for item in flat]
            number = np.arange(len(issue.steps), dtype=np.int64)
            if len(flat) != len(issue.steps):
                number = np.repeat(number, np.array([len(step) for step in issue.steps], dtype=np.int64))
            own = shared[id(issue.steps)] = np.array(found, dtype=np.int64), number
        ranks.append(np.full(len(own[0]), issue.rank, dtype=np.int64))
        tasks.append(own[0])
        steps.append(own[1])
    free = ~listed[members.rank] if program.issue else np.ones(len(members.rank), dtype=np.bool_)
    ranks.append(members.rank[free])
    steps.append(members.task[free])
    tasks.append(members.task[free])
    for index in waits:
        waiting = [rank for rank in program.tasks[index].ranks if not program.issue or not listed[rank]]
        ranks.append(np.array(waiting, dtype=np.int64))
        steps.append(np.full(len(waiting), index, dtype=np.int64))
        tasks.append(np.full(len(waiting), index, dtype=np.int64))
    rank, step, task = np.concatenate(ranks), np.concatenate(steps), np.concatenate(tasks)
    if len(task) and task.min() < 0:
        known = task >= 0
        rank, step, task = rank[known], step[known], task[known]
    if not _ascending(rank):
        order = np.lexsort((step, rank))
        rank, step, task = rank[order], step[order], task[order]
    return _Slots(rank, step, task)


def _steps(slots: _Slots) -> tuple[Ints, Ints]:
    """Steps numbered through, rank by rank: the rank of each, and the step of every slot."""
    if not len(slots.rank):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    new = np.ones(len(slots.rank), dtype=np.bool_)
    new[1:] = (slots.rank[1:] != slots.rank[:-1]) | (slots.step[1:] != slots.step[:-1])
    return slots.rank[new], np.cumsum(new) - 1


def _waits(
    program: DistributedTaskIR, members: Membership, slots: _Slots, step_of_slot: Ints, waits: set[int]
) -> tuple[Ints, Ints, Bools]:
    """Need pairs of steps that wait for asynchronous tasks: one for each operation that the rank takes part in."""
    position = {task.id: index for index, task in enumerate(program.tasks)}
    starts = np.searchsorted(members.task, np.arange(len(program.tasks) + 1))
    step_of: dict[tuple[int, int], int] = {}
    for slot in np.flatnonzero(np.isin(slots.task, list(waits))):
        step_of[int(slots.task[slot]), int(slots.rank[slot])] = int(step_of_slot[slot])
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


# -- the shortcut --------------------------------------------------------------------------------------------------------------


def in_one_order(projection: Projection) -> bool:
    """The shortcut: every rank issues its operations in the order of the task list, and nobody is missing.

    Then nothing can wait in a circle, whatever is grouped: the earliest operation that is not done has all its members
    before it. Cost: one look at every slot.
    """
    if len(projection.missing) or is_delayed(projection):
        return False
    task = projection.members.op_task[projection.need_op]
    rank = projection.step_rank[projection.need_step]
    same = rank[1:] == rank[:-1]
    return _ascending(projection.need_step) and bool(np.all(task[1:][same] >= task[:-1][same]))


def _ascending(numbers: Ints) -> bool:
    return bool(np.all(numbers[1:] >= numbers[:-1]))


def is_delayed(projection: Projection) -> bool:
    """True when some operation is waited for in another step than the one that enters it."""
    return projection.need_op is not projection.post_op
