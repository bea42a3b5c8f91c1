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

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from dtir.importers.hlo.axes import RankSpace
from dtir.importers.hlo.collectives import CollectiveMaker
from dtir.importers.hlo.context import Lowering
from dtir.importers.hlo.control import Control as ControlFlow
from dtir.importers.hlo.facts import Facts
from dtir.importers.hlo.layouts import Layouts
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import MAX_RANKS, Mesh
from dtir.importers.hlo.scope import ScopeLowering
from dtir.importers.hlo.shapes import DTYPE_BITS, ArrayShape
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Tiled, TupleSharding, Uniform, to_tiled
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.importers.stablehlo.facts import sharding_facts
from dtir.importers.stablehlo.lists import closing
from dtir.importers.stablehlo.sdy import parse_dims, parse_refs
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)
from dtir.ir.expr import BindingAxis, Symbol
from dtir.ir.ids import ValueId
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import Partial, ShardingSpec
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
_MOVES = re.compile(r"\{([^{}]*)\}\s*:\s*(\d{1,9})\s*->\s*(\d{1,9})")


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


@dataclass(frozen=True, slots=True)
class Stage:
    """One collective of several: what it is, and the layout after it (None: the operation's own result)."""

    spec: CollectiveSpecVariant
    after: ShardingSpec | None


class MlirScope(ScopeLowering):
    """Lowers a computation that came from MLIR."""

    def __init__(self, lowering: Lowering, computation: Computation) -> None:
        super().__init__(lowering, computation)
        self._found: dict[ValueId, DistributedValue] = {}

    def _lower(self, instruction: Instruction) -> tuple[ValueId, ...]:
        opcode = instruction.opcode
        match opcode:
            case _ if opcode in _CONTROLS:
                return self._task(instruction, Control(), self._operand_leaves(instruction), instruction.shape)
            case "mpmd.for":
                body = Loop(
                    self.lowering.region_id(instruction.names("body")[0]), None, instruction.integer("iterations")
                )
                return self._enter(instruction, body, frozenset({"body", "iterations"}))
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
        maker = _Maker(self.lowering, sharding.mesh, value)
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
        self, maker: _Maker, instruction: Instruction, text: str, value: DistributedValue, sharding: Named
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


class _Maker:
    """Makes the collectives of one operation on a value, one after the other."""

    def __init__(self, lowering: Lowering, mesh: Mesh, value: DistributedValue) -> None:
        self._space = lowering.space
        self._mesh = mesh
        self._type = value.type
        self._spec = value.sharding

    def _axes(self, text: str) -> tuple[str, ...]:
        """Axes of the program's mesh that references stand for; raises where they are none."""
        refs, _ = parse_refs(text)
        if not refs:
            return ()
        named = Named(self._mesh, (refs,), (False,), (), (), (), None, f"axes {{{text}}} of {self._mesh}")
        tiles = self._space.tile_axes(named)
        axes = self._space.axes_of(tiles.dims[0]) if tiles is not None else None
        if axes is None:
            raise HloSyntaxError("the axes are no axes of the program", 0)
        return axes

    def even(self, spec: ShardingSpec) -> bool:
        """Whether all shards of the value have one size."""
        size = self._space.mesh.axis_size
        return all(
            not isinstance(extent, int) or extent % prod(map(size, axes)) == 0
            for extent, axes in zip(self._type.shape, spec.dimension_axes, strict=False)
        )

    def _local_bytes(self, spec: ShardingSpec) -> int:
        return local_bytes(self._type, spec, self._space.mesh.axis_size)

    def along_dims(self, text: str, make: Callable[[int, tuple[str, ...]], Stage]) -> list[Stage] | None:
        """One collective per dim that has axes."""
        text = text.strip()
        start = text.find("[")
        if start < 0:
            return None
        dims = parse_dims(text[start + 1 : closing(text, start) - 1])
        found: list[Stage] = []
        for dim, stated in enumerate(dims):
            if stated.axes:
                axes = self._axes(", ".join(_ref_text(ref.name, ref.pre, ref.size) for ref in stated.axes))
                found.append(make(dim, axes))
        return found or None

    def gather(self, dim: int, axes: tuple[str, ...]) -> Stage:
        """Gather a dim."""
        self._spec = _moved(self._spec, dim, axes, None)
        return Stage(AllGather(self._space.ranks, self._local_bytes(self._spec), axes, (), dim), self._spec)

    def scatter(self, dim: int, axes: tuple[str, ...]) -> Stage:
        """Reduce, and keep a block of a dim."""
        size, reduction = self._local_bytes(self._spec), _reduction(self._spec)
        self._spec = _reduced(self._spec, axes, dim)
        return Stage(ReduceScatter(self._space.ranks, size, reduction, axes, (), dim), self._spec)

    def moves(self, text: str) -> list[Stage] | None:
        """One exchange per move of axes from dim to dim."""
        found: list[Stage] = []
        for refs, source, target in _MOVES.findall(text):
            axes = self._axes(refs)
            size = self._local_bytes(self._spec)
            self._spec = _moved(self._spec, int(source), axes, int(target))
            spec = AllToAll(self._space.ranks, size, axes, (), int(target), int(source))
            found.append(Stage(spec, self._spec))
        return found or None

    def all_reduce(self, text: str) -> list[Stage] | None:
        """A reduction of everything along axes."""
        start = text.find("{")
        axes = self._axes(text[start + 1 : closing(text, start) - 1]) if start >= 0 else ()
        if not axes:
            return None
        spec = AllReduce(self._space.ranks, self._local_bytes(self._spec), _reduction(self._spec), axes)
        return [Stage(spec, None)]

    def permute(
        self, value: DistributedValue, sharding: Named, instruction: Instruction, source: Named | None
    ) -> list[Stage] | None:
        """Ranks whose blocks change places."""
        if source is None or max(source.mesh.count, sharding.mesh.count) > MAX_RANKS:
            return None
        before, after = to_tiled(source), to_tiled(sharding)
        if not isinstance(before, Tiled) or not isinstance(after, Tiled) or before.tile_dims != after.tile_dims:
            return None
        pairs = tuple(zip(before.devices(), after.devices(), strict=True))
        size = self._local_bytes(value.sharding)
        return [Stage(CollectivePermute(self._space.ranks, size, pairs, instruction.name), None)]


def _ref_text(name: str, pre: int, size: int | None) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if size is None else f'"{escaped}":({pre}){size}'


def _reduction(spec: ShardingSpec) -> ReductionKind:
    return spec.partial.op if spec.partial is not None else ReductionKind.SUM


def _moved(spec: ShardingSpec, dim: int, axes: tuple[str, ...], target: int | None) -> ShardingSpec:
    """A layout after axes left a dim: for another one, or to hold copies."""
    dims = [list(names) for names in spec.dimension_axes]
    if dim >= len(dims) or (target is not None and target >= len(dims)):
        raise HloSyntaxError("a dim that the value does not have", 0)
    dims[dim] = [name for name in dims[dim] if name not in axes]
    replicated = spec.replicated_axes
    if target is None:
        replicated = (*replicated, *axes)
    else:
        dims[target] += axes
    return replace(spec, dimension_axes=tuple(map(tuple, dims)), replicated_axes=tuple(replicated), sizes=())


def _reduced(spec: ShardingSpec, axes: tuple[str, ...], dim: int) -> ShardingSpec:
    dims = [list(names) for names in spec.dimension_axes]
    if dim >= len(dims):
        raise HloSyntaxError("a dim that the value does not have", 0)
    dims[dim] += axes
    pending = tuple(name for name in (spec.partial.axes if spec.partial is not None else ()) if name not in axes)
    partial = Partial(pending, _reduction(spec)) if pending else None
    return replace(spec, dimension_axes=tuple(map(tuple, dims)), partial=partial, sizes=())


def local_bytes(kind: TensorType, spec: ShardingSpec, axis_size: Callable[[str], int]) -> int:
    """Bytes of the largest block of a value."""
    elements = 1
    for extent, axes in zip(kind.shape, spec.dimension_axes, strict=True):
        shards = 1
        for axis in axes:
            shards *= axis_size(axis)
        elements *= -(-extent // shards) if isinstance(extent, int) else 0
    return (elements * DTYPE_BITS.get(kind.dtype, 0) + 7) // 8
