"""Lowers Shardy's own operations on whole values: collectives along mesh axes, changes of layout, slices.

A Shardy collective may work on several dims at once; the IR's collectives have one. It becomes as many tasks, with a value
between them whose layout follows from the ones before.

| operation | tasks |
|---|---|
| ``all_gather [{"x"}, {"y"}]`` | one all_gather per dim that has axes |
| ``reduce_scatter [{"x"}, {}]`` | one reduce_scatter per dim that has axes |
| ``all_to_all [{"x"}: 0->1]`` | one all_to_all per move |
| ``all_reduce {"x"}`` | an all_reduce |
| ``collective_permute`` | a permute of the ranks whose blocks change places |
| ``reshard`` | a change of layout, whose communication is the compiler's to choose |
| ``all_slice``, ``sharded_to_unreduced``, ``replicated_to_unreduced``, ``propagation_barrier`` | local, nothing is sent |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dtir.importers.hlo.axes import RankSpace
from dtir.importers.hlo.collectives import CollectiveMaker
from dtir.importers.hlo.context import Lowering
from dtir.importers.hlo.control import Control as ControlFlow
from dtir.importers.hlo.facts import Facts
from dtir.importers.hlo.layouts import Layouts
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.scope import ScopeLowering
from dtir.importers.hlo.shapes import ArrayShape, Shape
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.importers.stablehlo.facts import sharding_facts
from dtir.importers.stablehlo.mpmd import AXIS, ON, confined, mesh_of, ranks_of
from dtir.importers.stablehlo.stages import Stage, StageMaker
from dtir.ir.expr import BindingAxis, Symbol
from dtir.ir.ids import ValueId
from dtir.ir.sharding import ShardingSpec
from dtir.ir.tasks import Call, Collective, Control, LocalCompute, Loop, Reshard, TaskBodyVariant
from dtir.ir.types import OperationName, TensorType
from dtir.ir.values import DistributedValue, ValueRole
from dtir.schema.frozen import FrozenDict

_CONTROLS = frozenset({"sdy.sharding_group"})
_RELAYOUTS = frozenset(
    {
        "sdy.reshard",
        "sdy.all_gather",
        "sdy.all_to_all",
        "sdy.all_reduce",
        "sdy.reduce_scatter",
        "sdy.collective_permute",
    }
)


class MlirLayouts(Layouts):
    """As for HLO; a dim without any bound, ``tensor<?xf32>``, has a symbol for its size."""

    def type_of(self, shape: ArrayShape, dims: tuple[int, ...]) -> TensorType:
        """The tensor type of a shape, with other dim sizes where they are global ones."""
        if min(shape.dims, default=0) >= 0:
            return super().type_of(shape, dims)
        found = super().type_of(shape, tuple(max(dim, 0) for dim in dims))
        sizes = tuple(
            Symbol(f"dim{number}", BindingAxis.WORKLOAD) if stated < 0 else size
            for number, (size, stated) in enumerate(zip(dims, shape.dims, strict=True))
        )
        return replace(found, shape=sizes)

    def stated(self, shape: ArrayShape, sharding: Sharding | None, local: bool) -> tuple[ShardingSpec, TensorType]:
        """The layout that a sharding states; an unknown size is taken to divide."""
        if min(shape.dims, default=0) >= 0:
            return super().stated(shape, sharding, local)
        spec, _ = super().stated(replace(shape, dims=tuple(max(dim, 0) for dim in shape.dims)), sharding, local)
        return spec, self.type_of(shape, shape.dims)


class MlirLowering(Lowering):
    """As for HLO, with the names of MLIR's dialects."""

    def __init__(
        self,
        module_name: str,
        entry_name: str,
        computations: Mapping[str, Computation],
        wrapped: Mapping[str, Instruction],
        control: ControlFlow,
        space: RankSpace,
        layouts: Layouts,
        collectives: CollectiveMaker,
        facts: Facts,
    ) -> None:
        own = MlirLayouts(space, layouts.form)
        super().__init__(module_name, entry_name, computations, wrapped, control, space, own, collectives, facts)

    def operation(self, opcode: str) -> OperationName:
        """``hlo.<opcode>``, or the operation's own name where HLO has none."""
        if "." not in opcode:
            return super().operation(opcode)
        dialect, _, name = opcode.partition(".")
        return OperationName(dialect, name)

    def sharding_attributes(self, sharding: object) -> FrozenDict[object]:
        """The text of a sharding, and what a layout cannot say: open dims and priorities."""
        if isinstance(sharding, (Uniform, Maximal, Tiled, Named, TupleSharding)):
            return sharding_facts(super().sharding_attributes(sharding), sharding.text)
        return super().sharding_attributes(None)


class MlirScope(ScopeLowering):
    """Lowers a computation that came from MLIR."""

    def __init__(self, lowering: Lowering, computation: Computation) -> None:
        super().__init__(lowering, computation)
        self._found: dict[ValueId, DistributedValue] = {}
        self._is_mpmd = AXIS in lowering.space.axis_names

    def _values_of(
        self, instruction: Instruction, shape: Shape, role: ValueRole, name: str | None = None
    ) -> tuple[ValueId, ...]:
        found = super()._values_of(instruction, shape, role, name)
        if self._is_mpmd and ON in instruction.attributes:
            first = len(self.values) - len(found)
            for leaf in range(len(found)):
                self.values[first + leaf] = confined(self.values[first + leaf], instruction, leaf, self.lowering.space)
        return found

    def _task(self, instruction: Instruction, body: TaskBodyVariant, *rest: Any, **more: Any) -> tuple[ValueId, ...]:
        """As for HLO; in an MPMD program a task is on the meshes that its values are on."""
        outputs = super()._task(instruction, body, *rest, **more)
        if self._is_mpmd and not isinstance(body, Collective):
            task = self.tasks[-1]
            meshes = {mesh_of(self._value(value)) for value in (*task.inputs, *task.outputs)}
            if not meshes and (on := instruction.ints(ON)):
                meshes = set(on)
            if meshes and None not in meshes:
                numbers = {mesh for mesh in meshes if mesh is not None}
                self.tasks[-1] = replace(task, ranks=ranks_of(self.lowering.space, numbers))
        return outputs

    def _lower(self, instruction: Instruction) -> tuple[ValueId, ...]:
        opcode = instruction.opcode
        match opcode:
            case _ if "." not in opcode and opcode != "call":
                return super()._lower(instruction)
            case _ if opcode in _CONTROLS:
                return self._task(instruction, Control(), self._operand_leaves(instruction), instruction.shape)
            case "mpmd.for":
                body = Loop(
                    self.lowering.region_id(instruction.names("body")[0]), None, instruction.integer("iterations")
                )
                return self._enter(instruction, body, frozenset({"body", "iterations"}))
            case "mpmd.transfer":
                return self._task(instruction, Reshard(), self._operand_leaves(instruction), instruction.shape)
            case "call":
                called = Call(self.lowering.region_id(instruction.names("to_apply")[0]))
                return self._enter(instruction, called, frozenset({"to_apply"}))
            case _ if opcode.startswith("sdy."):
                return self._shardy(instruction)
            case _:
                return super()._lower(instruction)

    def _shardy(self, instruction: Instruction) -> tuple[ValueId, ...]:
        leaves = self._operand_leaves(instruction)
        stages = self._stages(instruction, leaves) if len(leaves) == 1 else None
        if stages is None:
            return self._task(instruction, self._plain_body(instruction, leaves), leaves, instruction.shape)
        for number, stage in enumerate(stages[:-1]):
            leaves = self._between(instruction, stage, leaves, f"{instruction.name}.step{number}")
        return self._task(instruction, Collective(stages[-1].spec), leaves, instruction.shape)

    def _plain_body(self, instruction: Instruction, leaves: Sequence[ValueId]) -> TaskBodyVariant:
        """A change of layout whose communication is the compiler's to choose, or a step without any.

        Collectives on shards of different sizes are such changes too: what is padded, and where, is the compiler's choice.
        """
        known = all(self._is_known(self._value(leaf)) for leaf in leaves)
        if not known or instruction.opcode not in _RELAYOUTS or instruction.flag("ill_formed"):
            return LocalCompute()
        after = self._stated_pending(instruction)
        before = {axis for leaf in leaves for axis in self._value(leaf).sharding.partial_axes}
        # Nothing is sent to make a value pending: all but one rank take zeros for it.
        return LocalCompute() if after - before else Reshard()

    def _stated_pending(self, instruction: Instruction) -> set[str]:
        sharding = instruction.attributes.get("sharding")
        if not isinstance(sharding, Named):
            return set()
        spec, _ = self.lowering.layouts.stated(instruction.shape.leaves()[0], sharding, local=False)
        return set(spec.partial_axes)

    def _value(self, identifier: ValueId) -> DistributedValue:
        if len(self._found) < len(self.values):
            for value in self.values[len(self._found) :]:
                self._found[value.id] = value
        return self._found[identifier]

    @staticmethod
    def _is_known(value: DistributedValue) -> bool:
        return not value.sharding.varying

    # -- collectives -------------------------------------------------------------------------------------------

    def _between(
        self, instruction: Instruction, stage: Stage, leaves: Sequence[ValueId], label: str
    ) -> tuple[ValueId, ...]:
        """One collective whose result is not yet the operation's."""
        source = self._value(leaves[0])
        found = self._task(
            replace(instruction, attributes={k: v for k, v in instruction.attributes.items() if k != "sharding"}),
            Collective(stage.spec),
            leaves,
            instruction.shape,
            name=label,
        )
        assert stage.after is not None
        self.values[-1] = replace(self.values[-1], type=source.type, sharding=stage.after, role=ValueRole.ACTIVATION)
        return found

    def _stages(self, instruction: Instruction, leaves: Sequence[ValueId]) -> list[Stage] | None:
        """The collectives of an operation; None where it is none or its axes are not axes of the program's mesh."""
        sharding = instruction.attributes.get("sharding")
        value = self._value(leaves[0])
        if not isinstance(sharding, Named) or not self._is_known(value) or instruction.flag("ill_formed"):
            return None
        maker = StageMaker(self.lowering, sharding.mesh, value)
        text = instruction.text("axes") or ""
        result, _ = self.lowering.layouts.stated(instruction.shape.leaves()[0], sharding, local=False)
        if not maker.even(value.sharding) or not maker.even(result):
            return None
        try:
            found = self._made(maker, instruction, text, value, sharding)
        except HloSyntaxError:
            return None
        if found is None or not all(maker.even(stage.after) for stage in found if stage.after is not None):
            return None
        return found

    def _made(
        self, maker: StageMaker, instruction: Instruction, text: str, value: DistributedValue, sharding: Named
    ) -> list[Stage] | None:
        match instruction.opcode:
            case "sdy.all_gather":
                return maker.along_dims(text, maker.gather)
            case "sdy.reduce_scatter":
                return maker.along_dims(text, maker.scatter)
            case "sdy.all_to_all":
                return maker.moves(text)
            case "sdy.all_reduce":
                return maker.all_reduce(text)
            case "sdy.collective_permute":
                return maker.permute(value, sharding, instruction, self._source_sharding(instruction))
            case _:
                return None

    def _source_sharding(self, instruction: Instruction) -> Named | None:
        name = instruction.operands[0]
        found = next((i for i in self.computation.instructions if i.name == name), None)
        sharding = found.attributes.get("sharding") if found is not None else None
        return sharding if isinstance(sharding, Named) else None
