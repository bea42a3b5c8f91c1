"""Tasks: what the ranks do, one body variant each.

The first five variants are upstream's; `Call`, `Loop` and `Branch` are dtir's structured control flow, whose `Region`s
the program holds.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, TypeAlias

from dtir.ir.collectives import CollectiveSpecVariant, PeerTransfer
from dtir.ir.ids import Lineage, NodeId, RegionId, ValueId
from dtir.ir.ranks import RankRange
from dtir.ir.semantics import EMPTY_SEMANTIC, DistributedTaskSemantic
from dtir.ir.types import Effect, OperationName
from dtir.ir.values import DistributedValue
from dtir.schema.authoring import VariantSpec, adt, enum, extension, record, seal_adt, variant
from dtir.schema.frozen import EMPTY_MAP, FrozenDict
from dtir.schema.refinements import NonEmptyText, NonNegativeInt


@record("dtir.ir.span")
class Span:
    """A half-open range of indices along one dim."""

    start: NonNegativeInt
    stop: NonNegativeInt


@record("dtir.ir.reshard-region")
class ReshardRegion:
    """A block of the destination, and the block of the source it is filled from (None: the same indices)."""

    box: tuple[Span, ...]
    source: tuple[Span, ...] | None = None


@enum("dtir.ir.reshard-kind")
class ReshardKind(Enum):
    """How a reshard is meant: a change of layout, or an exchange of ghost layers."""

    LAYOUT = "layout"
    HALO = "halo"


@adt(wire="blueprinting.ir.distributed-task.task")
class TaskBody:
    """Closed family of task meanings."""

    __variant_spec__: ClassVar[VariantSpec]


@variant("local-compute")
class LocalCompute(TaskBody):
    """Each rank computes on its own."""


@variant("collective")
class Collective(TaskBody):
    """A collective among groups of ranks."""

    spec: CollectiveSpecVariant


@variant("point-to-point")
class PointToPoint(TaskBody):
    """One transfer between two ranks."""

    spec: PeerTransfer


@variant("reshard")
class Reshard(TaskBody):
    """A change of layout or owners through explicit values; `regions` empty means the whole tensor, block by block."""

    kind: ReshardKind = extension(default=ReshardKind.LAYOUT)
    regions: tuple[ReshardRegion, ...] = extension(default=())


@variant("control")
class Control(TaskBody):
    """Coordination only: ordering, waits, resource effects."""


@variant("call", extension=True)
class Call(TaskBody):
    """Run a region once; operands are its inputs, its outputs the task's."""

    region: RegionId


@variant("loop", extension=True)
class Loop(TaskBody):
    """Run `body` while `condition` yields true (or `trip_count` times when it is known).

    The operands are carried through: both regions have them as inputs, the body yields them again, the condition yields
    one predicate. `trip_count` None means data dependent.
    """

    body: RegionId
    condition: RegionId | None = None
    trip_count: NonNegativeInt | None = None


@variant("branch", extension=True)
class Branch(TaskBody):
    """Run one of the regions, chosen by the first operand.

    `operand_counts[i]` operands after the selector belong to region i, in order.
    """

    regions: tuple[RegionId, ...]
    operand_counts: tuple[NonNegativeInt, ...]

    def __post_init__(self) -> None:
        if len(self.regions) != len(self.operand_counts):
            raise ValueError(f"branch has {len(self.regions)} regions but {len(self.operand_counts)} operand counts")


TaskBodyVariant: TypeAlias = LocalCompute | Collective | PointToPoint | Reshard | Control | Call | Loop | Branch
seal_adt(TaskBody, TaskBodyVariant)


@record("dtir.ir.pipeline-slot")
class PipelineSlot:
    """Which stage, microbatch and phase (forward, backward, ...) of a pipeline a task is."""

    stage: NonNegativeInt
    microbatch: NonNegativeInt
    phase: NonEmptyText
    chunk: NonNegativeInt = 0


@record("blueprinting.ir.distributed-task.task-envelope")
class DistributedTask:
    """One task: body, operation, ranks, dataflow, dependencies and provenance.

    `inputs` are unique. The fields from `name` on are dtir's own: `operands` gives positions in `inputs` where an
    operation takes a value twice or in another order (empty: the inputs as they stand); `completes` names the
    asynchronous tasks that this one waits for; `pipeline` its slot in a schedule.
    """

    id: NodeId
    body: TaskBodyVariant
    operation: OperationName
    ranks: tuple[NonNegativeInt, ...] | RankRange
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    dependencies: tuple[NodeId, ...]
    lineage: Lineage
    effects: tuple[Effect, ...] = ()
    semantic: DistributedTaskSemantic = EMPTY_SEMANTIC
    attributes: FrozenDict[Any] = EMPTY_MAP
    name: str = extension(default="")
    operands: tuple[NonNegativeInt, ...] = extension(default=())
    completes: tuple[NodeId, ...] = extension(default=())
    pipeline: PipelineSlot | None = extension(default=None)

    def __post_init__(self) -> None:
        if self.operands and max(self.operands) >= len(self.inputs):
            raise ValueError(f"operand position {max(self.operands)} is outside {len(self.inputs)} inputs")

    @property
    def body_tag(self) -> str:
        """The body's local tag: ``local-compute``, ``collective``, ..."""
        return self.body.__variant_spec__.local_tag

    @property
    def operand_values(self) -> tuple[ValueId, ...]:
        """The values in operand order, repetitions included."""
        return tuple(self.inputs[position] for position in self.operands) if self.operands else self.inputs


@record("dtir.ir.region")
class Region:
    """A nested task list with values, inputs and outputs of its own: the body of a call, loop or branch.

    Unlike a program's, the outputs of a region may repeat a value or pass an input through.
    """

    id: RegionId
    name: NonEmptyText
    values: tuple[DistributedValue, ...]
    tasks: tuple[DistributedTask, ...]
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    attributes: FrozenDict[Any] = EMPTY_MAP
