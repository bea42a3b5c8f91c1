"""Exchanges of a plan looked at once, before anything runs: who meets whom, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dtir.execute.backends.mpi_direct import Direct
from dtir.execute.backends.mpi_layout import GroupLayout, Operand, Way, way_of
from dtir.execute.backends.mpi_native import Native, Short
from dtir.execute.backends.mpi_world import World
from dtir.execute.buffers import Buffers
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.exchange import Exchange, Move, Moves
from dtir.execute.steps import ExecPlan, ScopePlan, Slot, Step
from dtir.ir.collectives import CollectiveKind


@dataclass(frozen=True, slots=True)
class Meeting:
    """One group of an exchange that has members here and elsewhere.

    Args:
        number: of the group among the groups of the exchange.
        group: its number among all groups of the plan.
        layout: the group over processes.
        operands: what its members bring.
        direct: the exchange by messages.
        native: by the library, where that is the way.
        short: the same as one function of the only array of this process, where there is such a way.
    """

    number: int
    group: int
    layout: GroupLayout
    operands: tuple[Operand, ...]
    direct: Direct
    native: Native | None
    short: Short | None = None


@dataclass(frozen=True, slots=True)
class ReadyExchange:
    """An exchange, seen by one process.

    Args:
        step: the step.
        meetings: groups with members here and elsewhere, in order.
        inside: the part of the exchange whose groups are wholly here; None when there is none.
        members: the ranks of this process that are in a group.
        slots: the operands.
        crossing: pairs of a permute that leave or reach this process, by the other process.
        absent: who of this process waits for whom that takes no part in the step at all; two empty lists: nobody.
        alone: the only rank of this process, where it meets one group with one operand and everybody takes part: the
            most frequent case by far, for which there is a short way.
        usual: the shape of the slab with which that rank comes.
        dtype: its element type.
    """

    step: Step
    meetings: tuple[Meeting, ...]
    inside: Exchange | None
    members: frozenset[int]
    slots: tuple[Slot, ...]
    crossing: Mapping[int, tuple[tuple[int, int], ...]]
    absent: tuple[tuple[int, ...], tuple[int, ...]]
    alone: int | None
    usual: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None


@dataclass(frozen=True, slots=True)
class ReadyMoves:
    """Transfers, seen by one process.

    Args:
        step: the step.
        dtype: element type.
        outgoing: blocks for other processes, in the order of the list.
        incoming: blocks from other processes, in the order of the list.
        arriving: all blocks for ranks of this process, in the order of the list.
        shapes: what the ranks of this process hold in the end.
    """

    step: Step
    dtype: np.dtype[Any]
    outgoing: Mapping[int, tuple[Move, ...]]
    incoming: Mapping[int, tuple[Move, ...]]
    arriving: tuple[Move, ...]
    shapes: Mapping[int, tuple[int, ...]]


def held_shape(slot: Slot, rank: int) -> tuple[int, ...]:
    """What a rank holds of a value."""
    return slot.shape if slot.shape is not None else slot.placement.local_shape(rank)


def operand_of(slot: Slot, group: Sequence[int]) -> Operand:
    """What the members of a group bring."""
    dtype = numpy_dtype(slot.value.type.dtype)
    if slot.shape is not None:
        return Operand(dtype, (slot.shape,) * len(group))
    return Operand(dtype, tuple(held_shape(slot, rank) for rank in group))


class Preparer:
    """Looks at every exchange of a plan.

    Args:
        world: the processes.
        process_of: the process of every rank.
    """

    def __init__(self, world: World, process_of: Sequence[int]) -> None:
        self._world = world
        self._process = world.process
        self._process_of = process_of
        self._here = frozenset(rank for rank, process in enumerate(process_of) if process == world.process)
        self._buffers = Buffers()
        self.exchanges: dict[int, ReadyExchange] = {}
        self.moves: dict[int, ReadyMoves] = {}

    def prepare(self, plan: ExecPlan) -> None:
        """Look at all scopes, and make the communicators that they need, in one order on all processes."""
        teams: list[tuple[int, ...]] = []
        native: dict[int, set[int]] = {}
        for scope in plan.scopes:
            for step in scope.steps:
                if step.exchange is not None:
                    native[id(step.exchange)] = set()
                    self._exchange(scope, step, teams, native[id(step.exchange)])
                for place, moves in enumerate(step.moves):
                    self.moves[id(moves)] = self._move(scope.slots[step.inputs[place]], step, moves)
        self._world.connect(teams)
        for key, ready in self.exchanges.items():
            self.exchanges[key] = replace(
                ready, meetings=tuple(self._connected(ready.step, item, native[key]) for item in ready.meetings)
            )

    def _exchange(self, scope: ScopePlan, step: Step, teams: list[tuple[int, ...]], native: set[int]) -> None:
        request = step.exchange
        assert request is not None
        slots = tuple(scope.slots[number] for number in step.inputs)
        inside: list[int] = []
        meetings: list[Meeting] = []
        for number, group in enumerate(request.groups):
            layout = GroupLayout.of(group, self._process_of)
            operands = tuple(operand_of(slot, group) for slot in slots)
            way = way_of(request, layout, operands, step.algorithm, number)
            if way is Way.LIBRARY:
                teams.append(layout.processes)
                native.add(number)
            if self._process in layout.places:
                if way is Way.MEMORY:
                    inside.append(number)
                    continue
                direct = Direct(self._world.messenger, request, number, layout, self._process, self._buffers)
                name = request.numbers[number] if request.numbers else number
                meetings.append(Meeting(number, name, layout, operands, direct, None))
        alone = self._alone(request, step, meetings)
        self.exchanges[id(request)] = ReadyExchange(
            step,
            tuple(meetings),
            _restricted(request, inside),
            frozenset(rank for group in request.groups for rank in group if rank in self._here),
            slots,
            self._crossing(request.pairs),
            self._absent(request, frozenset(step.ranks)),
            alone,
            () if alone is None else (1, *held_shape(slots[0], alone)),
            None if alone is None else numpy_dtype(slots[0].value.type.dtype),
        )

    def _alone(self, request: Exchange, step: Step, meetings: Sequence[Meeting]) -> int | None:
        tuples = request.kind is CollectiveKind.ALL_TO_ALL and request.split is None
        if len(self._here) != 1 or len(meetings) != 1 or len(step.inputs) != 1 or tuples:
            return None
        (rank,) = self._here
        missing = set(meetings[0].layout.members) - set(step.ranks)
        return rank if rank in meetings[0].layout.members and not missing else None

    def _absent(self, request: Exchange, taking_part: frozenset[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ranks of this process that wait for somebody who takes no part in the step."""
        waits = [(group, group) for group in request.groups]
        waits += [((target,), (source,)) for source, target in request.pairs]
        for waiting, awaited in waits:
            here = tuple(rank for rank in waiting if rank in self._here and rank in taking_part)
            missing = tuple(rank for rank in awaited if rank not in taking_part)
            if here and missing:
                return here, missing
        return (), ()

    def _connected(self, step: Step, meeting: Meeting, native: set[int]) -> Meeting:
        if meeting.number not in native:
            return meeting
        request = step.exchange
        assert request is not None
        comm = self._world.team(meeting.layout.processes)
        found = Native(self._world.mpi, comm, request, meeting.number, meeting.layout, self._process, self._buffers)
        return replace(meeting, native=found, short=found.short(meeting.operands[0]))

    def _crossing(self, pairs: Sequence[tuple[int, int]]) -> dict[int, tuple[tuple[int, int], ...]]:
        found: dict[int, list[tuple[int, int]]] = {}
        for pair in pairs:
            source, target = (self._process_of[rank] for rank in pair)
            if source != target and self._process in (source, target):
                found.setdefault(source if target == self._process else target, []).append(pair)
        return {process: tuple(crossed) for process, crossed in found.items()}

    def _move(self, slot: Slot, step: Step, moves: Moves) -> ReadyMoves:
        outgoing: dict[int, list[Move]] = {}
        incoming: dict[int, list[Move]] = {}
        arriving: list[Move] = []
        for move in moves.moves:
            source, target = self._process_of[move.source], self._process_of[move.destination]
            if target == self._process:
                arriving.append(move)
                if source != target:
                    incoming.setdefault(source, []).append(move)
            elif source == self._process:
                outgoing.setdefault(target, []).append(move)
        return ReadyMoves(
            step,
            numpy_dtype(slot.value.type.dtype),
            {process: tuple(found) for process, found in outgoing.items()},
            {process: tuple(found) for process, found in incoming.items()},
            tuple(arriving),
            {rank: shape for rank, shape in moves.shapes.items() if rank in self._here},
        )


def _restricted(request: Exchange, numbers: Sequence[int]) -> Exchange | None:
    """The exchange with some of its groups only; None without any."""
    if not numbers:
        return None
    if len(numbers) == len(request.groups):
        return request
    return replace(
        request,
        groups=tuple(request.groups[number] for number in numbers),
        numbers=tuple(request.numbers[number] for number in numbers) if request.numbers else (),
        sizes=tuple(request.sizes[number] for number in numbers) if request.sizes is not None else None,
        roots=tuple(request.roots[number] for number in numbers) if request.roots else (),
    )
