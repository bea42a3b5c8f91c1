"""What a program and a region have in common while they are built: values, tasks and an interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, Unpack

from dtir.ir.expr import Scalar
from dtir.ir.ids import Lineage, NodeId, ValueId
from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import RankRange, all_ranks
from dtir.ir.semantics import EMPTY_SEMANTIC, DistributedTaskSemantic
from dtir.ir.sharding import Partial, ShardingSpec
from dtir.ir.tasks import DistributedTask, LocalCompute, PipelineSlot, TaskBodyVariant
from dtir.ir.types import Effect, OperationName, TensorType
from dtir.ir.values import UNSCALED, DistributedValue, Scale, ValueRole
from dtir.schema.frozen import FrozenDict

Ranks: TypeAlias = tuple[int, ...] | RankRange
Split: TypeAlias = Mapping[int, str | tuple[str, ...]]


class ValueOptions(TypedDict, total=False):
    """What may be said of a value besides its name, shape and element type; see `ScopeBuilder.value`."""

    role: ValueRole
    split: Split | None
    partial: Partial | None
    varying: tuple[str, ...]
    sharding: ShardingSpec | None
    owners: Ranks | None
    lineage: Lineage | None
    source_value: ValueId | None
    attributes: Mapping[str, Any] | None
    scale: Scale
    grad_of: ValueId | None
    id: ValueId | None


class ScopeBuilder:
    """Values and tasks of one scope: the program or a region. Made by `ProgramBuilder`, never directly.

    Attributes:
        mesh: the mesh.
        values: what was declared so far.
        tasks: what was added so far.
        inputs: the inputs of the scope.
        outputs: its outputs.
    """

    def __init__(self, mesh: LogicalMesh, key: tuple[str, ...]) -> None:
        self.mesh = mesh
        self._key = key
        self._everyone = all_ranks(mesh.size)
        self.values: list[DistributedValue] = []
        self.tasks: list[DistributedTask] = []
        self.inputs: list[ValueId] = []
        self.outputs: list[ValueId] = []
        self.producers: dict[ValueId, NodeId] = {}
        self._names: set[tuple[str, str]] = set()

    def take(self, what: str, name: str) -> None:
        """Claim a name.

        Raises:
            ValueError: another thing of this sort has it.
        """
        if (what, name) in self._names:
            raise ValueError(f"name={name!r} (str) names another {what} of this scope")
        self._names.add((what, name))

    # -- values ------------------------------------------------------------------------------------------------

    def value(
        self,
        name: str,
        shape: Sequence[Scalar],
        dtype: str,
        *,
        role: ValueRole = ValueRole.ACTIVATION,
        split: Split | None = None,
        partial: Partial | None = None,
        varying: tuple[str, ...] = (),
        sharding: ShardingSpec | None = None,
        owners: Ranks | None = None,
        lineage: Lineage | None = None,
        source_value: ValueId | None = None,
        attributes: Mapping[str, Any] | None = None,
        scale: Scale = UNSCALED,
        grad_of: ValueId | None = None,
        id: ValueId | None = None,
    ) -> ValueId:
        """Declare a value.

        Args:
            name: for people, and what its identifier is derived from; unique among the values of the scope.
            shape: the global shape (per rank along `varying` axes).
            dtype: element type, for example ``bf16``.
            role: what it is for.
            split: the axes that split a dim, major to minor, by dim. Axes that are named nowhere are replicated.
            partial: a pending reduction.
            varying: axes along which every rank has a value of its own.
            sharding: the whole layout, instead of the three before it.
            owners: the ranks that hold it; None means the whole mesh.
            lineage: where it came from; None means a root.
            source_value: the value of the source model that it stands for.
            attributes: open data.
            scale: by which factor it exceeds its specification.
            grad_of: the value whose gradient this is.
            id: an identifier of its own instead of a derived one.

        Returns:
            Its identifier.

        Raises:
            ValueError: the name is taken, or a layout is given twice.
            TypeError: an argument does not match (see `DistributedValue`).
        """
        self.take("value", name)
        if sharding is not None and (split or partial or varying):
            raise ValueError(f"sharding={sharding!r} stands for the whole layout: give it, or split, partial, varying")
        made = DistributedValue(
            id or ValueId.derive(*self._key, "value", name),
            TensorType(tuple(shape), dtype),
            role,
            sharding or self._layout(len(shape), split or {}, partial, varying),
            self._everyone if owners is None else owners,
            lineage or Lineage.root("build"),
            source_value,
            FrozenDict(attributes or {}),
            name=name,
            scale=scale,
            grad_of=grad_of,
        )
        self.values.append(made)
        return made.id

    def _layout(
        self,
        rank: int,
        split: Split,
        partial: Partial | None,
        varying: tuple[str, ...],
    ) -> ShardingSpec:
        beyond = [dim for dim in split if not 0 <= dim < rank]
        if beyond:
            raise ValueError(f"split={dict(split)!r} names dim {beyond[0]} of a tensor of rank {rank}")
        axes = {dim: (names,) if isinstance(names, str) else names for dim, names in split.items()}
        used = {name for names in axes.values() for name in names} | set(varying)
        used |= set(partial.axes if partial is not None else ())
        return ShardingSpec(
            tuple(axes.get(dim, ()) for dim in range(rank)),
            tuple(name for name in self.mesh.axis_names if name not in used),
            partial=partial,
            varying=varying,
        )

    def input(self, name: str, shape: Sequence[Scalar], dtype: str, **options: Unpack[ValueOptions]) -> ValueId:
        """Declare a value and list it among the inputs of the scope; options as for `value`, role INPUT by default."""
        options.setdefault("role", ValueRole.INPUT)
        made = self.value(name, shape, dtype, **options)
        self.inputs.append(made)
        return made

    def output(self, *values: ValueId) -> None:
        """List values among the outputs of the scope."""
        self.outputs += values

    # -- tasks -------------------------------------------------------------------------------------------------

    def task(
        self,
        operation: str | OperationName,
        inputs: Sequence[ValueId] = (),
        outputs: Sequence[ValueId] = (),
        *,
        body: TaskBodyVariant | None = None,
        ranks: Ranks | None = None,
        dependencies: Iterable[NodeId] | None = None,
        after: Iterable[NodeId] = (),
        name: str = "",
        lineage: Lineage | None = None,
        effects: Sequence[Effect] = (),
        semantic: DistributedTaskSemantic = EMPTY_SEMANTIC,
        attributes: Mapping[str, Any] | None = None,
        completes: Sequence[NodeId] = (),
        pipeline: PipelineSlot | None = None,
        id: NodeId | None = None,
    ) -> NodeId:
        """Add a task.

        Args:
            operation: ``dialect.name``.
            inputs: the operands in order; a value may stand twice, the task then lists it once and keeps the positions.
            outputs: the values that it defines.
            body: what it does; None means `LocalCompute`.
            ranks: the ranks that run it; None means the whole mesh.
            dependencies: the tasks that it waits for; None means those that define its inputs.
            after: further tasks that it waits for.
            name: for people; unique among the tasks of the scope when given.
            lineage: where it came from; None means a root.
            effects: what it does to resources besides its values.
            semantic: what it means above its dataflow.
            attributes: open data.
            completes: asynchronous tasks that this one waits for.
            pipeline: its slot in a pipeline schedule.
            id: an identifier of its own instead of a derived one.

        Returns:
            Its identifier.

        Raises:
            ValueError: the name is taken.
            TypeError: an argument does not match (see `DistributedTask`).
        """
        if name:
            self.take("task", name)
        unique = tuple(dict.fromkeys(inputs))
        positions = {value: index for index, value in enumerate(unique)}
        if dependencies is None:
            dependencies = (self.producers[value] for value in unique if value in self.producers)
        made = DistributedTask(
            id or NodeId.derive(*self._key, "task", name or len(self.tasks)),
            LocalCompute() if body is None else body,
            OperationName.parse(operation) if isinstance(operation, str) else operation,
            self._everyone if ranks is None else ranks,
            unique,
            tuple(outputs),
            tuple(dict.fromkeys((*dependencies, *after))),
            lineage or Lineage.root("build"),
            tuple(effects),
            semantic,
            FrozenDict(attributes or {}),
            name=name,
            operands=() if len(unique) == len(inputs) else tuple(positions[value] for value in inputs),
            completes=tuple(completes),
            pipeline=pipeline,
        )
        self.tasks.append(made)
        self.producers.update((value, made.id) for value in outputs)
        return made.id
