"""What a plan consists of: steps over numbered slots, scope by scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from dtir.execute.exchange import Exchange, Moves
from dtir.execute.placement import Placement
from dtir.ir.ids import RegionId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import RankRange
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue

Ranks: TypeAlias = tuple[int, ...] | RankRange


class StepKind(Enum):
    """What a back end has to do for a step."""

    LOCAL = "local"
    EXCHANGE = "exchange"
    MOVE = "move"
    ORDER = "order"
    CALL = "call"
    LOOP = "loop"
    BRANCH = "branch"


class Form(Enum):
    """What the shapes of a program mean to an executor."""

    PER_RANK = "per_rank"
    UNDIVIDED = "undivided"


def is_relayout(form: Form, task: DistributedTask) -> bool:
    """Whether a task of an undivided program only changes a layout: Shardy's operations, which leave whole values as they are."""
    return form is Form.UNDIVIDED and task.operation.dialect == "sdy" and len(task.inputs) == len(task.outputs)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a communication step costs by plan.

    Args:
        message_bytes: the nccl-tests size S of one group.
        sent_bytes: bytes that each rank sends at least, by rank; empty for steps that do not communicate.
        elements: elements of S.
    """

    message_bytes: int = 0
    sent_bytes: Mapping[int, int] = field(default_factory=dict[int, int], repr=False)
    elements: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes that all ranks send together."""
        return sum(self.sent_bytes.values())


NOTHING_PLANNED = Planned()


@dataclass(frozen=True, slots=True)
class Step:
    """One task in its place in the order.

    Args:
        index: its number in the whole plan, scopes one after the other; the same on every process.
        task: the task.
        kind: what has to be done.
        ranks: who takes part, ascending.
        inputs: slots of the operands, repetitions included.
        outputs: slots of the results.
        frees: slots that nothing reads after this step.
        exchange: of an `EXCHANGE` step.
        moves: of a `MOVE` step, one for every result.
        algorithm: how a collective is done: ``native`` (the back end's own) or ``ordered`` (left fold, reproducible).
        planned: what it costs by plan.
        experts: of a local step whose operand was routed, the local expert of every row, by rank.
    """

    index: int
    task: DistributedTask
    kind: StepKind
    ranks: Ranks
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    frees: tuple[int, ...] = ()
    exchange: Exchange | None = None
    moves: tuple[Moves, ...] = ()
    algorithm: str = "native"
    planned: Planned = NOTHING_PLANNED
    experts: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]], repr=False)

    @property
    def name(self) -> str:
        """What people call the task."""
        return self.task.name or str(self.task.id)


@dataclass(frozen=True, slots=True)
class Slot:
    """One value of a scope.

    Args:
        value: the value.
        placement: where its parts are.
        shape: the local shape when all ranks have the same, else None.
    """

    value: DistributedValue
    placement: Placement
    shape: tuple[int, ...] | None

    @property
    def name(self) -> str:
        """What people call the value."""
        return self.value.name or str(self.value.id)


@dataclass(frozen=True, slots=True)
class ScopePlan:
    """The steps of the program or of one region.

    Args:
        name: of the region; empty for the program.
        region: None for the program itself.
        slots: the values, by number.
        steps: in execution order.
        inputs: slots of the inputs.
        outputs: slots of the outputs.
        peak_bytes: greatest number of bytes that one rank holds at a time in this scope, without regions it enters.
    """

    name: str
    region: RegionId | None
    slots: tuple[Slot, ...] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ExecPlan:
    """A program as steps.

    Args:
        program: the program.
        form: what its shapes mean.
        main: the program's own steps.
        regions: every region's steps.
        by_name: regions by name.
        groups: the distinct groups, by global number.
        peak_bytes: estimate of the bytes that one rank holds at a time, regions included.
        digest: content digest of the program.
    """

    program: DistributedTaskIR
    form: Form
    main: ScopePlan
    regions: Mapping[RegionId, ScopePlan] = field(repr=False)
    by_name: Mapping[str, RegionId] = field(repr=False)
    groups: tuple[tuple[int, ...], ...] = field(repr=False)
    peak_bytes: int
    digest: str

    @property
    def ranks(self) -> int:
        """Number of virtual ranks."""
        return self.program.mesh.size

    @property
    def scopes(self) -> tuple[ScopePlan, ...]:
        """The program's own steps, then those of the regions."""
        return (self.main, *self.regions.values())

    def attribute(self, key: str, default: Any = None) -> Any:
        """An attribute of the program."""
        return self.program.attributes.get(key, default)
