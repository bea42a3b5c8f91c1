"""A program of what a set of ranks did: one task for each collective, transfer and piece of local work.

Values are what single ranks hold, so that they vary along the one axis of the mesh, ``rank``. Every collective has the value
that its members bring and the one that they get; nothing says which of them are one tensor, so that no value is shared
between tasks. Where ranks bring different shapes, each value says so (`local_shapes`). No time is kept here: times go into a
table of their own, `Times`, which only a run record takes up.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtir._version import __version__
from dtir.importers.base import TaskTime
from dtir.importers.rank_set.events import DIALECT, Call, CallKind, Event, Local, Order, Span, Tensor, Transfer, fact
from dtir.importers.rank_set.matching import Alone, Matched, Meeting, Passage
from dtir.importers.rank_set.ordering import Ordered
from dtir.importers.rank_set.sizes import call_bytes, transfer_bytes
from dtir.importers.rank_set.specs import Assumed, Specs, brought, got, uneven
from dtir.ir.collectives import (
    PeerTransfer,
)
from dtir.ir.header import make_header
from dtir.ir.ids import Lineage, NodeId, ValueId
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, DistributedTaskIR
from dtir.ir.ranks import Ranks
from dtir.ir.schedule import IssueList
from dtir.ir.sharding import AxisCoordinate, ShardingSpec
from dtir.ir.tasks import Collective, Control, DistributedTask, LocalCompute, PointToPoint, TaskBodyVariant
from dtir.ir.types import OperationName, TensorType
from dtir.ir.values import DistributedValue, LocalShape, ValueRole
from dtir.schema.frozen import FrozenDict

AXIS = "rank"
LINEAGE = Lineage.root(f"{DIALECT}.import")


@dataclass(frozen=True, slots=True)
class Built:
    """A program, the times of its tasks, and what was assumed."""

    program: DistributedTaskIR
    times: tuple[TaskTime, ...]
    assumed: Assumed


def build(matched: Matched, ordered: Ordered, *, name: str, digest: str, attributes: Mapping[str, Any]) -> Built:
    """The program.

    Args:
        matched: what the ranks did.
        ordered: in which order.
        name: of the program.
        digest: content digest of the sources (40 hex digits).
        attributes: what is said of the program as a whole.
    """
    return _Builder(matched, ordered, name).build(digest, attributes)


class _Builder:
    def __init__(self, matched: Matched, ordered: Ordered, name: str) -> None:
        self._matched = matched
        self._ordered = ordered
        self._name = name
        self._mesh = LogicalMesh("mesh", (MeshAxis(AXIS, matched.world),))
        self._values: list[DistributedValue] = []
        self._tasks: list[DistributedTask] = []
        self._inputs: list[ValueId] = []
        self._outputs: list[ValueId] = []
        self._ids: dict[int, NodeId] = {}
        self._counts: Counter[str] = Counter()
        self._taken: set[str] = set()
        self._layouts: dict[tuple[int, int | None], ShardingSpec] = {}
        self._specs = Specs()
        self._waits: dict[int, NodeId] = {}
        self._seed = hashlib.blake2b(b"trace\0" + name.encode("utf-8", "surrogatepass") + b"\0", digest_size=16)
        self._before: dict[int, list[int]] = {}
        # Records repeat a few operations, types and rank sets; each is made and checked once.
        self._operations: dict[str, OperationName] = {}
        self._types: dict[Tensor, TensorType] = {}
        self._alone_ranks: dict[int, tuple[int, ...]] = {}

    def build(self, digest: str, attributes: Mapping[str, Any]) -> Built:
        for number in self._ordered.things:
            self._thing(number)
            thing = self._matched.things[number]
            for rank in thing.before if isinstance(thing, Meeting) else ():
                self._before.setdefault(rank, []).append(number)
        self._wait_for_transfers()
        if not self._values:
            # A program needs a value: what the ranks start from, of which these files say nothing.
            self._value("nothing", Tensor((), "opaque"), self._everyone(), ValueRole.INPUT, {}, self._layout(0, None))
        if not self._tasks:
            self._tasks.append(self._task("nothing", Control(), "nothing", self._everyone(), (), (), (), {}))
        program = DistributedTaskIR(
            self._name,
            digest,
            self._mesh,
            tuple(self._values),
            tuple(self._tasks),
            tuple(self._inputs),
            tuple(self._outputs),
            attributes=FrozenDict(attributes),
            header=make_header(NATIVE_SCHEMA, NATIVE_VERSION, parent_digests=(digest,), producer_version=__version__),
            issue=tuple(self._issue(rank) for rank in sorted(self._matched.traces)),
        )
        return Built(program, tuple(self._times()), self._specs.assumed)

    def _everyone(self) -> tuple[int, ...]:
        return tuple(sorted(self._matched.traces))

    def _event(self, rank: int, position: int) -> Event:
        return self._matched.traces[rank].events[position]

    # -- tasks -------------------------------------------------------------------------------------------------------------

    def _thing(self, number: int) -> None:
        thing = self._matched.things[number]
        match thing:
            case Meeting():
                made = self._meeting(number, thing)
            case Passage():
                made = self._passage(number, thing)
            case Alone(rank=rank, event=position):
                made = self._alone(number, rank, position)
        self._tasks.append(made)
        self._ids[number] = made.id

    def _needed(self, number: int, parts: Mapping[int, int]) -> tuple[NodeId, ...]:
        """Tasks that come before, of any rank; those of a circle that stand behind are said by the issue lists alone."""
        found: dict[NodeId, None] = {}
        for rank, position in parts.items():
            for needed in self._event(rank, position).needs:
                other = self._matched.thing_of[rank][needed]
                if other != number and other in self._ids:
                    found[self._ids[other]] = None
        return tuple(found)

    def _task(
        self,
        label: str,
        body: TaskBodyVariant,
        operation: str,
        ranks: Ranks,
        inputs: Sequence[ValueId],
        outputs: Sequence[ValueId],
        needed: Sequence[NodeId],
        attributes: Mapping[str, Any],
        completes: Sequence[NodeId] = (),
    ) -> DistributedTask:
        return DistributedTask(
            NodeId(self._hash(b"task", label)),
            body,
            self._operation(operation),
            ranks,
            tuple(inputs),
            tuple(outputs),
            tuple(needed),
            LINEAGE,
            attributes=FrozenDict(attributes),
            name=label,
            completes=tuple(completes),
        )

    def _hash(self, what: bytes, label: str) -> str:
        """32 hex digits of a name within this program; traces have many tasks, and `derive` writes JSON for each."""
        found = self._seed.copy()
        found.update(what + b"\0" + label.encode("utf-8", "surrogatepass"))
        return found.hexdigest()

    def _operation(self, name: str) -> OperationName:
        known = self._operations.get(name)
        if known is None:
            known = self._operations[name] = OperationName(DIALECT, name)
        return known

    def _label(self, name: str) -> str:
        """A name that no other task has: the file's own, numbered from its second use on."""
        base = name or "unnamed"
        while True:
            count = self._counts[base]
            self._counts[base] += 1
            label = f"{base}.{count}" if count else base
            if label not in self._taken:
                self._taken.add(label)
                return label

    def _meeting(self, number: int, meeting: Meeting) -> DistributedTask:
        calls = {rank: self._event(rank, position) for rank, position in meeting.parts.items()}
        first_rank = min(calls)
        first = calls[first_rank]
        whats = {rank: event.what for rank, event in calls.items() if isinstance(event.what, Call)}
        label = self._label(first.name)
        size = max(call_bytes(what, len(meeting.members)) for what in whats.values())
        attributes: dict[str, Any] = {"op_name": first.name, fact("kind"): meeting.kind.value}
        if meeting.group is not None:
            attributes[fact("group")] = meeting.group
        attributes |= _sources(calls)
        if meeting.kind is CallKind.ALL_TO_ALL and uneven(list(whats.values())):
            attributes["op.vector"] = True
        if any(what.send_splits or what.recv_splits for what in whats.values()):
            attributes[fact("send_splits")] = tuple((rank, what.send_splits) for rank, what in sorted(whats.items()))
            attributes[fact("recv_splits")] = tuple((rank, what.recv_splits) for rank, what in sorted(whats.items()))
        spec = self._specs.make(meeting, whats, size, attributes)
        root = (attributes[fact("root")],) if fact("root") in attributes else meeting.members
        bring = root if meeting.kind is CallKind.SCATTER else meeting.members
        get = root if meeting.kind in (CallKind.REDUCE, CallKind.GATHER) else meeting.members
        number_of = len(meeting.members)
        inputs = self._held(label, "in", {rank: brought(what, number_of) for rank, what in whats.items()}, bring)
        outputs = self._held(label, "out", {rank: got(what, number_of) for rank, what in whats.items()}, get)
        operation = meeting.kind.value
        needed = self._needed(number, meeting.parts)
        return self._task(label, Collective(spec), operation, meeting.members, inputs, outputs, needed, attributes)

    def _passage(self, number: int, passage: Passage) -> DistributedTask:
        ends = {rank: self._event(rank, position) for rank, position in passage.parts.items()}
        whats = {rank: event.what for rank, event in ends.items() if isinstance(event.what, Transfer)}
        first = ends[min(ends)] if passage.source not in ends else ends[passage.source]
        label = self._label(first.name)
        sent, received = whats.get(passage.source), whats.get(passage.destination)
        # Where the ends disagree the receiver's size is stated: the verifier holds it against what the source has.
        size = transfer_bytes(received or sent or Transfer(True, None)) or max(map(transfer_bytes, whats.values()))
        spec = PeerTransfer(passage.source, passage.destination, size, passage.tag or "0")
        tensor = next((what.tensor for what in (sent, received) if what is not None and what.tensor is not None), None)
        inputs: tuple[ValueId, ...] = ()
        outputs: tuple[ValueId, ...] = ()
        if tensor is not None:
            here = sent.tensor if sent is not None and sent.tensor is not None else tensor
            there = received.tensor if received is not None and received.tensor is not None else tensor
            inputs = self._held(label, "in", {passage.source: here}, (passage.source,), alone=True)
            outputs = self._held(label, "out", {passage.destination: there}, (passage.destination,), alone=True)
        return self._task(
            label,
            PointToPoint(spec),
            "transfer",
            (passage.source, passage.destination),
            inputs,
            outputs,
            self._needed(number, passage.parts),
            {"op_name": first.name, fact("tag"): passage.tag, **_sources(ends)},
        )

    def _alone(self, number: int, rank: int, position: int) -> DistributedTask:
        event = self._event(rank, position)
        facts = dict(event.what.facts) if isinstance(event.what, Local) else {}
        if isinstance(event.what, Local) and event.what.operations != 1:
            facts[fact("operations")] = event.what.operations
        attributes = {"op_name": event.name, **facts, fact("source"): event.source}
        needed = self._needed(number, {rank: position})
        ranks = self._alone_ranks.setdefault(rank, (rank,))
        return self._task(self._label(event.name), _LOCAL, "local", ranks, (), (), needed, attributes)

    def _wait_for_transfers(self) -> None:
        """Where ranks issue transfers without a word on when they wait for them, they do so at the end of the trace."""
        for rank, trace in sorted(self._matched.traces.items()):
            if trace.order is not Order.ISSUED:
                continue
            own = [
                self._ids[number]
                for number, event in zip(self._matched.thing_of[rank], trace.events, strict=True)
                if isinstance(event.what, Transfer) and isinstance(self._matched.things[number], Passage)
            ]
            if own:
                made = self._task(self._label(f"end of rank {rank}"), Control(), "wait", (rank,), (), (), (), {}, own)
                self._tasks.append(made)
                self._waits[rank] = made.id

    def _issue(self, rank: int) -> IssueList:
        own = self._matched.thing_of[rank]
        steps = [(self._ids[number],) for number in self._before.get(rank, ())]
        steps += [(self._ids[own[position]],) for position in self._ordered.lists[rank]]
        if rank in self._waits:
            steps.append((self._waits[rank],))
        return IssueList(rank, tuple(steps))

    def _times(self) -> list[TaskTime]:
        found: list[TaskTime] = []
        for rank, trace in sorted(self._matched.traces.items()):
            own = self._matched.thing_of[rank]
            placed = any(event.span is not None for event in trace.events)
            clock_ns = 0
            for position in self._ordered.lists[rank]:
                event = trace.events[position]
                span = event.span
                if span is None and not placed and event.duration_ns is not None:
                    span = Span(clock_ns, clock_ns + event.duration_ns)
                    clock_ns = span.end_ns
                if span is not None:
                    found.append(TaskTime(self._ids[own[position]], rank, span.start_ns, span.end_ns))
        return found

    # -- values ------------------------------------------------------------------------------------------------------------

    def _held(
        self, label: str, side: str, parts: Mapping[int, Tensor | None], owners: Ranks, *, alone: bool = False
    ) -> tuple[ValueId, ...]:
        """The value of one side of a task, none where no file says what it is; `alone`: it is one rank's, not one of each."""
        known = {rank: tensor for rank, tensor in parts.items() if tensor is not None}
        if not known:
            return ()
        first = known[min(known)]
        shapes = {rank: tensor.shape for rank, tensor in known.items() if rank in owners}
        differing = shapes if len(set(shapes.values())) > 1 else {}
        role = ValueRole.INPUT if side == "in" else ValueRole.ACTIVATION
        layout = self._layout(len(first.shape), owners[0] if alone else None)
        return (self._value(f"{label}.{side}", first, owners, role, differing, layout),)

    def _layout(self, dims: int, rank: int | None) -> ShardingSpec:
        known = self._layouts.get((dims, rank))
        if known is None:
            none = tuple(() for _ in range(dims))
            known = (
                ShardingSpec(none, varying=(AXIS,))
                if rank is None
                else ShardingSpec(none, at=(AxisCoordinate(AXIS, rank),))
            )
            self._layouts[dims, rank] = known
        return known

    def _type(self, tensor: Tensor) -> TensorType:
        known = self._types.get(tensor)
        if known is None:
            known = self._types[tensor] = TensorType(tensor.shape, tensor.dtype)
        return known

    def _value(
        self,
        name: str,
        tensor: Tensor,
        owners: Ranks,
        role: ValueRole,
        shapes: Mapping[int, tuple[int, ...]],
        layout: ShardingSpec,
    ) -> ValueId:
        made = DistributedValue(
            ValueId(self._hash(b"value", name)),
            self._type(tensor),
            role,
            layout,
            owners,
            LINEAGE,
            name=name,
            local_shapes=tuple(LocalShape(rank, shape) for rank, shape in sorted(shapes.items())),
        )
        self._values.append(made)
        (self._inputs if role is ValueRole.INPUT else self._outputs).append(made.id)
        return made.id


_LOCAL = LocalCompute()

MOST_SOURCES = 64
"""Ranks whose places in their files are written on a task; the task itself names all its ranks."""


def _sources(events: Mapping[int, Event]) -> dict[str, Any]:
    """Where each rank's file has it; of very many ranks the first, and how many there are."""
    kept = sorted(events)[:MOST_SOURCES]
    found: dict[str, Any] = {fact("sources"): tuple((rank, events[rank].source) for rank in kept)}
    if len(events) > MOST_SOURCES:
        found[fact("sources_left_out")] = len(events) - MOST_SOURCES
    unfinished = [rank for rank in sorted(events) if events[rank].finished is False]
    if unfinished:
        found[fact("unfinished_ranks")] = tuple(unfinished)
    return found
