"""Pipeline-parallel programs: GPipe, 1F1B and interleaved 1F1B.

Every stage multiplies by its weights; its backward multiplies the incoming gradient by the transposed weights and by the
activation that its forward left, so that activations stay live as they do in training. The loss is half the square of the
result, whose gradient is the result itself.

>>> [slot.text for slot in slot_order(PipelineKind.ONE_F_ONE_B, stages=2, microbatches=3, rank=0)]
['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
>>> program = pipeline_program(PipelineKind.GPIPE, stages=2, microbatches=2)
>>> [task.name for task in program.tasks]
['F0.0', 'send F0.0', 'F0.1', 'F1.0', 'send F0.1', 'F1.1', 'B1.0', 'send B1.0', 'B0.0', 'B1.1', 'send B1.1', 'B0.1']

**Source**: orders as in Narayanan et al., "Efficient large-scale language model training on GPU clusters using
Megatron-LM", 2021, arXiv 2104.04473; Huang et al., "GPipe", 2019, arXiv 1811.06965.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dtir.ir.builder import ProgramBuilder
from dtir.ir.collectives import PeerTransfer
from dtir.ir.ids import NodeId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.sharding import AxisCoordinate, ShardingSpec
from dtir.ir.tasks import PipelineSlot, PointToPoint
from dtir.ir.types import dtype_bits
from dtir.ir.values import ValueRole

AXIS = "pp"
FORWARD, BACKWARD = "forward", "backward"


class PipelineKind(Enum):
    """Which schedule: all forwards first; one forward, one backward; the same with several chunks of layers a rank."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


@dataclass(frozen=True, slots=True)
class Slot:
    """One forward or backward of a rank."""

    forward: bool
    microbatch: int
    chunk: int = 0

    @property
    def text(self) -> str:
        """``F3``, ``B0``; with its chunk where that is not the first: ``F3/1``."""
        return f"{'F' if self.forward else 'B'}{self.microbatch}" + (f"/{self.chunk}" if self.chunk else "")


def _check(kind: PipelineKind, stages: int, microbatches: int, chunks: int) -> None:
    if stages < 1 or microbatches < 1 or chunks < 1:
        raise ValueError(f"stages={stages}, microbatches={microbatches}, chunks={chunks}: each is at least 1")
    if kind is not PipelineKind.INTERLEAVED and chunks != 1:
        raise ValueError(f"chunks={chunks}: only the interleaved schedule has several chunks a rank")
    if kind is PipelineKind.INTERLEAVED and microbatches % stages:
        raise ValueError(f"microbatches={microbatches}: the interleaved schedule needs a multiple of stages={stages}")


def slot_order(kind: PipelineKind, *, stages: int, microbatches: int, rank: int, chunks: int = 1) -> list[Slot]:
    """In which order a rank runs its forwards and backwards.

    Raises:
        ValueError: a number is below 1, chunks without interleaving, or microbatches that stages do not divide with it.
    """
    _check(kind, stages, microbatches, chunks)
    total = microbatches * chunks
    forwards = [_numbered(number, True, stages, chunks) for number in range(total)]
    backwards = [_numbered(number, False, stages, chunks) for number in range(total)]
    match kind:
        case PipelineKind.GPIPE:
            return forwards + backwards
        case PipelineKind.INTERLEAVED if chunks > 1:
            warmup = min(total, 2 * (stages - rank - 1) + (chunks - 1) * stages)
        case PipelineKind.ONE_F_ONE_B | PipelineKind.INTERLEAVED:
            warmup = min(microbatches, stages - rank - 1)
    order = forwards[:warmup]
    for number in range(total - warmup):
        order += [forwards[warmup + number], backwards[number]]
    return order + backwards[total - warmup :]


def _numbered(number: int, forward: bool, stages: int, chunks: int) -> Slot:
    """The n-th forward (or backward) of a rank: with chunks, `stages` microbatches of one chunk, then of the next."""
    if chunks == 1:
        return Slot(forward, number)
    group, within = divmod(number, stages * chunks)
    chunk = within // stages
    return Slot(forward, group * stages + number % stages, chunk if forward else chunks - 1 - chunk)


def pipeline_program(
    kind: PipelineKind,
    *,
    stages: int,
    microbatches: int,
    chunks: int = 1,
    batch: int = 4,
    width: int = 8,
    dtype: str = "f32",
) -> DistributedTaskIR:
    """A pipeline of linear stages, forward and backward, one rank a stage (on mesh axis ``pp``).

    Shapes: a microbatch ``[batch, width]``, weights ``[width, width]`` for every stage and chunk. Results: the gradient of
    every microbatch. Tasks are listed in an order that is right for every rank: that in which they would start if a
    backward took twice as long as a forward and transfers no time.

    Raises:
        ValueError: see `slot_order`; or a dtype whose width is not known.
    """
    _check(kind, stages, microbatches, chunks)
    return _Builder(kind, stages, microbatches, chunks, batch, width, dtype).build()


@dataclass(frozen=True, slots=True)
class _Event:
    """A slot of a layer, or the transfer of what it made, and when it begins; transfers come first."""

    time: int
    computes: bool
    rank: int
    place: int
    slot: Slot

    @property
    def key(self) -> tuple[int, bool, int, int]:
        return self.time, self.computes, self.rank, self.place


class _Builder:
    def __init__(
        self, kind: PipelineKind, stages: int, microbatches: int, chunks: int, batch: int, width: int, dtype: str
    ) -> None:
        bits = dtype_bits(dtype)
        if bits is None:
            raise ValueError(f"dtype={dtype!r}: its width is not known")
        self._kind, self._stages, self._microbatches, self._chunks = kind, stages, microbatches, chunks
        self._last = stages * chunks - 1
        self._shape, self._dtype = (batch, width), dtype
        self._message_bytes = -(-batch * width * bits // 8)
        name = f"pipeline-{kind.value}-p{stages}-m{microbatches}" + (f"-v{chunks}" if chunks > 1 else "")
        self._build = ProgramBuilder(name, axes={AXIS: stages}, attributes={"schedule": kind.value})
        self._weights: dict[int, ValueId] = {}
        # Activations and gradients by what they are, layer and microbatch, where they are used.
        self._held: dict[tuple[str, int, int], ValueId] = {}
        self._sent: dict[tuple[int, int, str], NodeId] = {}

    def build(self) -> DistributedTaskIR:
        width = self._shape[1]
        for layer in range(self._last + 1):
            role = ValueRole.PARAMETER
            self._weights[layer] = self._build.input(
                f"w{layer}", (width, width), self._dtype, role=role, sharding=self._at(layer), owners=self._owner(layer)
            )
        for microbatch in range(self._microbatches):
            self._held["x", 0, microbatch] = self._build.input(
                f"x{microbatch}", self._shape, self._dtype, sharding=self._at(0), owners=self._owner(0)
            )
        for event in sorted(self._events(), key=lambda item: item.key):
            layer = event.slot.chunk * self._stages + event.rank
            if not event.computes:
                self._send(layer, event.slot)
            elif event.slot.forward:
                self._forward(layer, event.slot)
            else:
                self._backward(layer, event.slot)
        return self._build.build(require_valid=True)

    # -- the clock ------------------------------------------------------------------------------------------------------

    def _events(self) -> list[_Event]:
        """All slots and transfers with their times, when a forward takes 1, a backward 2 and a transfer nothing."""
        orders = [
            slot_order(self._kind, stages=self._stages, microbatches=self._microbatches, rank=rank, chunks=self._chunks)
            for rank in range(self._stages)
        ]
        place, free = [0] * self._stages, [0] * self._stages
        done: dict[tuple[bool, int, int], int] = {}
        events: list[_Event] = []
        left = sum(map(len, orders))
        while left:
            before = left
            for rank, order in enumerate(orders):
                while place[rank] < len(order):
                    slot = order[place[rank]]
                    ready = self._ready(slot, rank, done)
                    if ready is None:
                        break
                    start = max(free[rank], ready)
                    free[rank] = start + (1 if slot.forward else 2)
                    layer = slot.chunk * self._stages + rank
                    done[slot.forward, layer, slot.microbatch] = free[rank]
                    events.append(_Event(start, True, rank, place[rank], slot))
                    if self._stages > 1 and layer != (self._last if slot.forward else 0):
                        events.append(_Event(free[rank], False, rank, place[rank], slot))
                    place[rank] += 1
                    left -= 1
            if left == before:
                raise ValueError(f"{self._kind.value}: the orders of the ranks wait for each other")
        return events

    def _ready(self, slot: Slot, rank: int, done: dict[tuple[bool, int, int], int]) -> int | None:
        """When what a slot reads is there; None while it is not."""
        layer = slot.chunk * self._stages + rank
        if slot.forward:
            return 0 if layer == 0 else done.get((True, layer - 1, slot.microbatch))
        if layer == self._last:
            return done.get((True, layer, slot.microbatch))
        return done.get((False, layer + 1, slot.microbatch))

    # -- tasks ----------------------------------------------------------------------------------------------------------

    def _owner(self, layer: int) -> tuple[int, ...]:
        return (layer % self._stages,)

    def _at(self, layer: int) -> ShardingSpec:
        return ShardingSpec(((), ()), (), at=(AxisCoordinate(AXIS, layer % self._stages),))

    def _value(self, name: str, layer: int, role: ValueRole = ValueRole.ACTIVATION) -> ValueId:
        return self._build.value(
            name, self._shape, self._dtype, role=role, sharding=self._at(layer), owners=self._owner(layer)
        )

    def _slot(self, layer: int, slot: Slot) -> PipelineSlot:
        phase = FORWARD if slot.forward else BACKWARD
        return PipelineSlot(layer % self._stages, slot.microbatch, phase, layer // self._stages)

    def _forward(self, layer: int, slot: Slot) -> None:
        number = slot.microbatch
        result = self._value(f"y{layer}.{number}", layer)
        self._build.task(
            "core.einsum",
            (self._held["x", layer, number], self._weights[layer]),
            (result,),
            ranks=self._owner(layer),
            name=f"F{layer}.{number}",
            attributes={"op.spec": "bi,io->bo"},
            pipeline=self._slot(layer, slot),
        )
        self._held["y", layer, number] = result
        if layer == self._last:
            self._held["dy", layer, number] = result
        elif self._stages == 1:
            self._held["x", layer + 1, number] = result

    def _backward(self, layer: int, slot: Slot) -> None:
        number = slot.microbatch
        role = ValueRole.OUTPUT if layer == 0 else ValueRole.ACTIVATION
        result = self._value(f"dx{layer}.{number}", layer, role)
        self._build.task(
            "core.einsum",
            (self._held["dy", layer, number], self._weights[layer], self._held["x", layer, number]),
            (result,),
            ranks=self._owner(layer),
            name=f"B{layer}.{number}",
            attributes={"op.spec": "bo,io,bi->bi"},
            pipeline=self._slot(layer, slot),
        )
        self._held["dx", layer, number] = result
        if layer == 0:
            self._build.output(result)
        elif self._stages == 1:
            self._held["dy", layer - 1, number] = result

    def _send(self, layer: int, slot: Slot) -> None:
        """What a layer made goes to the layer that reads it."""
        number = slot.microbatch
        target = layer + 1 if slot.forward else layer - 1
        made, wanted, name = ("y", "x", f"F{layer}.{number}") if slot.forward else ("dx", "dy", f"B{layer}.{number}")
        source, destination = layer % self._stages, target % self._stages
        received = self._value(f"{wanted}{target}.{number}", target)
        # Messages of one channel are matched in order, so that each waits for the one before it.
        channel = (source, destination, made)
        before = self._sent.get(channel)
        self._sent[channel] = self._build.task(
            "core.send",
            (self._held[made, layer, number],),
            (received,),
            body=PointToPoint(PeerTransfer(source, destination, self._message_bytes, channel=made)),
            ranks=tuple(sorted((source, destination))),
            name=f"send {name}",
            after=() if before is None else (before,),
        )
        self._held[wanted, target, number] = received
