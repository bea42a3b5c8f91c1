"""Communication among ranks of several processes.

All processes run the exchanges of the plan in one order, and the groups of an exchange in the order of the plan, so that
nobody waits in a circle. Groups that are wholly in one process exchange in memory, the others by the library or by
messages (`mpi_layout.way_of`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dtir.execute.backends.base import Traffic
from dtir.execute.backends.mpi_direct import Combine
from dtir.execute.backends.mpi_layout import Operand
from dtir.execute.backends.mpi_prepare import Meeting, Preparer, ReadyExchange, ReadyMoves, held_shape
from dtir.execute.backends.mpi_presence import COMMUNICATION, Presence
from dtir.execute.backends.mpi_transfers import Transfers
from dtir.execute.backends.mpi_world import World
from dtir.execute.binding import Binding
from dtir.execute.dtypes import Array, numpy_dtype
from dtir.execute.exchange import Exchange, Moves
from dtir.execute.fabric import LocalFabric
from dtir.execute.semantics import ExchangeError
from dtir.execute.steps import ExecPlan, Slot, Step
from dtir.execute.together import held_of, joined, packed
from dtir.execute.values import Held, Slab, at, rows, shared, stack, take
from dtir.execute.watchdog import Watch
from dtir.execute.wire import Sent, WireCounter
from dtir.ir.collectives import CollectiveKind

Ranks: TypeAlias = Sequence[int]


class MpiFabric:
    """Exchanges among the ranks of all processes.

    Args:
        world: the processes.
        plan: the plan, the same on all of them.
        binding: which process hosts which rank.
        watch: told what this process does.
        counter: counts what is sent; None where that cannot be counted.
    """

    def __init__(
        self, world: World, plan: ExecPlan, binding: Binding, watch: Watch, counter: WireCounter | None = None
    ) -> None:
        self.ranks = binding.ranks_of(world.process)
        self._world = world
        self._process = world.process
        self._watch = watch
        self._counter = counter
        self._here = frozenset(self.ranks)
        self._local = LocalFabric(self.ranks)
        process_of = tuple(seat.process for seat in binding.seats)
        self._presence = Presence(world, plan, process_of)
        ready = Preparer(world, process_of)
        ready.prepare(plan)
        self._exchanges: Mapping[int, ReadyExchange] = ready.exchanges
        self._moves: Mapping[int, ReadyMoves] = ready.moves
        self._transfers = Transfers(world, self._here, self._presence)
        self._before: Sent | None = None
        self._turns: dict[int, int] = {}
        self._count = 1 + max((step.index for scope in plan.scopes for step in scope.steps), default=0)

    # -- the protocol of fabrics ----------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """The monotonic clock, which all processes of a host share."""
        return time.perf_counter_ns()

    def sync(self) -> None:
        """Nothing is ever pending: every call waits for its own part."""

    def begin(self, step: Step) -> None:
        """Told before every step: what the watchdog names, and where counting begins."""
        communicates = step.kind in COMMUNICATION
        self._watch.enter(step, communicates)
        if communicates and step.exchange is not None:
            ready = self._exchanges[id(step.exchange)]
            if ready.alone is not None:
                self._watch.meet(ready.meetings[0].group)
        if communicates and self._counter is not None and self._before is None:
            self._before = self._counter.read()

    def end(self, step: Step) -> Traffic | None:
        """Told after every communication step: what this process sent in it."""
        self._watch.leave()
        if self._counter is None or self._before is None:
            return None
        now = self._counter.read()
        # Until something else is sent this is what the next step begins with: reading costs as much as a short message.
        sent, self._before = now.since(self._before), now
        peers = tuple(
            (int(peer), int(sent.sizes[peer]), int(sent.messages[peer])) for peer in np.flatnonzero(sent.messages)
        )
        return Traffic(sent.total_bytes, sent.total_messages, peers)

    def start(self) -> None:
        """A repetition begins: no process is measured while others are still loading."""
        self._before = None
        self._world.comm.Barrier()

    def barrier(self, step: Step) -> None:
        """Wait for the processes that take part in a step."""
        self._before = None
        self._watch.enter(step, True)
        self._world.barrier(self._presence.processes(self._presence.of(step)))

    def enter(self, step: Step) -> None:
        """Control flow begins (see `Presence`)."""
        if self._presence.matters(step):
            self._presence.enter(step)

    def part(self, step: Step, ranks: Ranks, choices: Sequence[int]) -> None:
        """The ranks of this process chose so (see `Presence`)."""
        if self._presence.matters(step):
            self._before = None
            self._watch.enter(step, True)
            self._presence.part(step, ranks, choices)
            self._watch.leave()

    def follow(self, step: Step, choice: int) -> None:
        """What comes next is done by the ranks that chose so."""
        if self._presence.matters(step):
            self._presence.follow(choice)

    def leave(self, step: Step) -> None:
        """Control flow is over."""
        if self._presence.matters(step):
            self._presence.leave()

    def everybody(self) -> bool:
        """Whether all ranks of all processes are there now."""
        return self._presence.ranks is None

    def gather(self, data: bytes) -> list[bytes] | None:
        """What every process has to say, at the first one; None at the others."""
        self._before = None
        return self._world.gather_bytes(data)

    def close(self) -> None:
        """Nothing is held: communicators are kept for the next session."""

    # -- collectives ----------------------------------------------------------------------------------------------------

    def ready(
        self, request: Exchange, operands: Sequence[Held], ranks: Ranks
    ) -> tuple[tuple[Held, ...], Callable[[], object]] | None:
        """The results of a collective before they are there, and the call of the library that brings them; None for a
        collective that asks for more than one call.

        What is left for the time of the collective is what a caller of the library would have to wait for as well.
        """
        ready = self._exchanges[id(request)]
        if ready.alone is None or self._presence.ranks is not None:
            return None
        short = ready.meetings[0].short
        if short is None:
            return None
        given = operands[0]
        # The usual slab of one row, of the declared type; whatever else there is goes the long way.
        if type(given) is not Slab or given.array.shape != ready.usual or given.array.dtype != ready.dtype:
            return None
        row = given.array[0]
        if not row.flags.c_contiguous:
            return None
        result, call = short(row)
        return (Slab(ranks, result[None]),), call

    def exchange(
        self, request: Exchange, operands: Sequence[Held], ranks: Ranks, combine: Combine | None
    ) -> tuple[Held, ...]:
        """The results of a collective on the ranks of this process.

        Raises:
            ExchangeError: shapes do not fit, or a member never arrives.
        """
        ready = self._exchanges[id(request)]
        if request.ragged or request.slices:
            return self._by_reference(ready, operands, ranks)
        if ready.alone is not None and self._presence.ranks is None:
            meeting = ready.meetings[0]
            tag = self._tag(ready.step)
            (result,) = self._one(request, meeting, meeting.operands[0], operands[0], combine, tag)
            return (Slab(ranks, np.asarray(result)[None]),)
        tag = self._tag(ready.step)
        if request.kind is CollectiveKind.COLLECTIVE_PERMUTE:
            self._require_pairs(ready, ranks)
            return tuple(
                self._transfers.permuted(ready, number, operand, ranks, tag) for number, operand in enumerate(operands)
            )
        self._require_members(ready, ranks)
        inside = ready.inside
        if inside is not None and not ready.meetings and ready.members.issuperset(ranks):
            return self._local.exchange(inside, operands, ranks, combine)
        found: list[dict[int, Array]] = [{} for _ in operands]
        if inside is not None:
            members = tuple(rank for rank in ranks if any(rank in group for group in inside.groups))
            given = operands if inside.roots else [take(operand, members) for operand in operands]
            if members:
                done = self._local.exchange(inside, given, members, combine)
                for results, held in zip(found, done, strict=True):
                    results.update(zip(held.ranks, rows(held), strict=True))
        for meeting in ready.meetings:
            if not self._here.intersection(meeting.layout.members).isdisjoint(ranks):
                self._watch.meet(meeting.group)
                self._met(request, meeting, operands, found, combine, tag)
        return tuple(
            self._assembled(request, results, slot, ranks) for results, slot in zip(found, ready.slots, strict=True)
        )

    def _by_reference(self, ready: ReadyExchange, operands: Sequence[Held], ranks: Ranks) -> tuple[Held, ...]:
        """Collectives whose data say who gets what: everybody hears all operands, and does what the reference does.

        That is more than must be sent, and the bytes that are measured show it.
        """
        request = ready.step.exchange
        assert request is not None
        everybody = tuple(ready.step.ranks)
        absent = [rank for rank in everybody if not self._presence.has(rank)]
        self._presence.require(ranks, absent)
        dtypes = [numpy_dtype(slot.value.type.dtype) for slot in ready.slots]
        parts = joined(self._world.tell_everybody(packed(operands)), dtypes)
        results = LocalFabric(everybody).exchange(request, [held_of(part) for part in parts], everybody, None)
        return tuple(take(held, ranks) for held in results)

    def _met(
        self,
        request: Exchange,
        meeting: Meeting,
        operands: Sequence[Held],
        found: Sequence[dict[int, Array]],
        combine: Combine | None,
        tag: int,
    ) -> None:
        """Exchange with one group and note the results by operand and rank."""
        layout = meeting.layout
        mine = layout.places[self._world.process]
        if request.kind is CollectiveKind.ALL_TO_ALL and request.split is None:
            if len(operands) != len(layout.members):
                raise ExchangeError(f"{len(operands)} operands for a group of {len(layout.members)} ranks")
            arrays = [
                _arrays(operand, meeting, expected, mine)
                for operand, expected in zip(operands, meeting.operands, strict=True)
            ]
            for place, results in meeting.direct.tuple_all_to_all(meeting.operands, arrays, tag).items():
                for number, result in enumerate(results):
                    found[number][layout.members[place]] = result
            return
        for operand, expected, results in zip(operands, meeting.operands, found, strict=True):
            made = self._one(request, meeting, expected, operand, combine, tag)
            results.update({layout.members[place]: array for place, array in zip(mine, made, strict=True)})

    def _one(
        self,
        request: Exchange,
        meeting: Meeting,
        expected: Operand,
        operand: Held,
        combine: Combine | None,
        tag: int,
    ) -> Sequence[Array]:
        """The results of one group, by member of this process."""
        mine = meeting.layout.places[self._world.process]
        native, direct = meeting.native, meeting.direct
        if request.kind is CollectiveKind.BROADCAST:
            root = request.roots[meeting.number]
            given = _arrays(operand, meeting, expected, (root,))[root] if root in mine else None
            whole = native.broadcast(expected, given) if native else direct.broadcast(expected, given, tag)
            return (whole,) * len(mine)
        arrays = _arrays(operand, meeting, expected, mine)
        match request.kind:
            case CollectiveKind.ALL_REDUCE:
                if native is not None:
                    return (native.all_reduce(expected, arrays),) * len(mine)
                return (direct.all_reduce(expected, arrays, combine, tag),) * len(mine)
            case CollectiveKind.ALL_GATHER:
                whole = native.all_gather(expected, arrays) if native else direct.all_gather(expected, arrays, tag)
                if request.trim is not None and request.dim is not None:
                    whole = whole[(slice(None),) * request.dim + (slice(0, request.trim),)]
                return (whole,) * len(mine)
            case CollectiveKind.REDUCE_SCATTER:
                if native is not None:
                    return native.reduce_scatter(expected, arrays)
                return direct.reduce_scatter(expected, arrays, combine, tag)
            case CollectiveKind.ALL_TO_ALL:
                if native is not None:
                    return (native.all_to_all(expected, arrays[mine[0]]),)
                return direct.all_to_all(expected, arrays, tag)
            case CollectiveKind.COLLECTIVE_PERMUTE:
                raise AssertionError(f"{request.kind.value} has no parts of all members")

    def _assembled(self, request: Exchange, results: dict[int, Array], slot: Slot, ranks: Ranks) -> Held:
        missing = [rank for rank in ranks if rank not in results]
        if missing:
            # A rank of no group: HLO gives it zeros, in the shape that members get.
            dtype = numpy_dtype(slot.value.type.dtype)
            for rank in missing:
                results[rank] = np.zeros(result_shape(request, held_shape(slot, rank)), dtype)
        first = results[ranks[0]]
        if len(ranks) > 1 and all(results[rank] is first for rank in ranks):
            return shared(ranks, first)
        return stack(ranks, [results[rank] for rank in ranks])

    # -- blocks ---------------------------------------------------------------------------------------------------------

    def move(self, request: Moves, operand: Held, ranks: Ranks) -> Held:
        """The results of transfers, on the ranks of this process that have one.

        Raises:
            ExchangeError: who should send never arrives.
        """
        ready = self._moves[id(request)]
        tag = self._tag(ready.step)
        return self._transfers.moved(ready, request, operand, tag)

    # -- parts ----------------------------------------------------------------------------------------------------------

    def _require_members(self, ready: ReadyExchange, ranks: Ranks) -> None:
        """All members of a group that has a member among the ranks must be there."""
        request, there = ready.step.exchange, self._presence
        assert request is not None
        there.require(*ready.absent)
        if there.ranks is None:
            return
        for group in request.groups:
            if not set(group).isdisjoint(ranks):
                present = [rank for rank in group if there.has(rank)]
                there.require(present, (rank for rank in group if not there.has(rank)))

    def _require_pairs(self, ready: ReadyExchange, ranks: Ranks) -> None:
        request, there = ready.step.exchange, self._presence
        assert request is not None
        there.require(*ready.absent)
        if there.ranks is None:
            return
        for source, target in request.pairs:
            if there.has(target):
                there.require((target,), () if there.has(source) else (source,))

    def _tag(self, step: Step) -> int:
        """The tag of a step's messages: a rank that runs a step more often than another waits, it never takes a wrong one."""
        turn = self._turns.get(step.index, 0)
        self._turns[step.index] = turn + 1
        return 2 * ((turn * self._count + step.index) % (self._world.messenger.tags // 2))


def _arrays(operand: Held, meeting: Meeting, expected: Operand, places: Sequence[int]) -> dict[int, Array]:
    """What members of this process bring, by position in the group; it must be what the plan says.

    Raises:
        ExchangeError: another shape or type than declared: the other processes expect what is declared.
    """
    found: dict[int, Array] = {}
    for place in places:
        rank = meeting.layout.members[place]
        array = at(operand, rank)
        if array.shape != expected.shapes[place] or array.dtype != expected.dtype:
            raise ExchangeError(
                f"rank {rank} brings {array.dtype}{list(array.shape)}, "
                f"declared is {expected.dtype}{list(expected.shapes[place])}"
            )
        found[place] = array
    return found


def result_shape(request: Exchange, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that a collective makes of one, for groups of equal shares."""
    members = len(request.groups[0]) if request.groups else 1
    found = list(shape)
    match request.kind:
        case CollectiveKind.ALL_GATHER if request.dim is not None:
            found[request.dim] = min(found[request.dim] * members, request.trim or found[request.dim] * members)
        case CollectiveKind.REDUCE_SCATTER if request.dim is not None:
            found[request.dim] //= members
        case CollectiveKind.ALL_TO_ALL if request.split is not None and request.concat is not None:
            found[request.split] //= members
            found[request.concat] *= members
        case _:
            pass
    return tuple(found)
