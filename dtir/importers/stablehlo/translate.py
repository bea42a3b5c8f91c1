"""Translates the functions of one MLIR part into the records that the HLO importer lowers.

StableHLO has the operations of HLO under other names, so that everything behind the reader is shared: groups and meshes,
trip counts, layouts, lowering, and what executors, cost model and judges know about the operations. Regions become
computations. What a region uses from outside becomes a further operand: of a loop it is carried through unchanged.

A manual computation becomes what XLA makes of it: a boundary that cuts whole values into parts, a call of its body, and a
boundary that joins them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dtir.importers.hlo.attributes import AttributeValue, Frontend, Names, Raw
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import shorten
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.shapes import Shape, TupleShape
from dtir.importers.hlo.shardings import Sharding
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.importers.stablehlo.builder import Builder, Skip, metadata
from dtir.importers.stablehlo.capture import captured
from dtir.importers.stablehlo.functions import Function
from dtir.importers.stablehlo.lists import split
from dtir.importers.stablehlo.mpmd import ON, MeshTensor, Topology
from dtir.importers.stablehlo.sdy import SdyMesh
from dtir.importers.stablehlo.shardings import FRONTEND, SHARDING_KEYS, ShardingReader, joined
from dtir.importers.stablehlo.syntax import Operation, Region
from dtir.importers.stablehlo.types import MALFORMED
from dtir.importers.stablehlo.values import frontend
from dtir.importers.stablehlo.views import Argument, Dialects, View, arguments

Handler: TypeAlias = Callable[["Translator", Builder, View], None]
"""Translates one operation."""

_NOT_KEPT = frozenset({*SHARDING_KEYS, FRONTEND, "operandSegmentSizes", "operand_segment_sizes", "resultSegmentSizes"})


class Translator:
    """Translates functions of one part; computations are shared between the programs of the part."""

    def __init__(
        self,
        shared: Dialects,
        functions: dict[str, Function],
        meshes: dict[str, SdyMesh],
        problems: Problems,
        handler: Callable[[str], Handler],
        declared: frozenset[str] = frozenset(),
        cluster: tuple[int, ...] | None = None,
    ) -> None:
        self.shared = shared
        self.functions = functions
        self.meshes = meshes
        self.problems = problems
        self._handler = handler
        self.computations: dict[str, Computation] = {}
        self.callees: dict[str, tuple[str, ...]] = {}
        self.declared = declared
        self._cluster = cluster
        self.topology: Topology | None = None
        """Of the function that is being translated."""
        self.shardings = ShardingReader(meshes, shared.part.aliases, problems)
        self._unknown: set[str] = set()
        self._places: dict[str, Raw | None] = {}

    # -- functions ---------------------------------------------------------------------------------------------

    def function(self, name: str) -> None:
        """Translate a function and what it calls; everything goes to `computations`."""
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current not in self.computations and current in self.functions:
                self.shardings.function = current
                self.topology = topology_of(self.functions[current], self.shared.part.aliases)
                self.computations[current] = self._function(self.functions[current])
                waiting += self.functions[current].calls

    def _function(self, function: Function) -> Computation:
        operation = function.operation
        builder = Builder(self, function.name, operation.offset)
        for argument in function.arguments:
            attributes: dict[str, AttributeValue] = {}
            sharding = self.shardings.of(argument.attributes, 1, builder.manual, operation.offset)
            self.place([argument.type], attributes)
            if sharding is None:
                sharding = self.sharding_in(argument.type, builder, operation.offset)
            if sharding is not None:
                attributes["sharding"] = sharding
            place = metadata(argument.place)
            if place is not None:
                attributes["metadata"] = place
            shape = self.shared.types.one(argument.type)
            if shape is MALFORMED:
                message = f"argument {argument.name}: '{shorten(argument.type)}' is no type"
                self.problems.error("mlir.type", message, operation.offset)
            self._placed(operation.offset, builder.parameter, argument.name, shape, attributes, operation.offset)
        results = self.region(builder, function.body)
        # What it returns is told apart from what it computes: a result may be passed on, and have a layout of its own.
        stated = [self.shardings.of(one.attributes, 1, builder.manual, operation.offset) for one in function.results]
        attributes = {}
        if any(stated) and len(stated) == len(results):
            attributes["sharding"] = joined(stated)
        return builder.finish(results, operation.offset, bool(attributes), attributes)

    # -- regions -----------------------------------------------------------------------------------------------

    def region(self, builder: Builder, region: Region) -> list[str]:
        """Translate the operations of a region into a builder; gives the instructions that it returns."""
        if len(region.blocks) > 1:
            message = f"a region has {len(region.blocks)} blocks; jumps between blocks are not read"
            self.problems.error("mlir.blocks", message, region.blocks[1].offset, "lower it to structured control flow")
            return []
        results: list[str] = []
        for operation in region.operations():
            name = operation.name
            if name == "return" or name.endswith((".return", ".yield", "_yield")):
                view = View(operation, self.shared)
                try:
                    results = [self._placed(operation.offset, builder.value, ssa) for ssa in view.operands]
                except Skip:
                    results = []
            else:
                self._operation(builder, operation)
        return results

    def _operation(self, builder: Builder, operation: Operation) -> None:
        view = View(operation, self.shared)
        try:
            self._handler(operation.name)(self, builder, view)
        except HloSyntaxError as error:
            code = error.code if error.code != "hlo.syntax" else "mlir.operation"
            self.problems.error(code, f"{operation.name}: {error.message}", operation.at)
            builder.broken([*operation.result_names(), *(name for name, _ in operation.results)])
        except Skip:
            builder.broken([*operation.result_names(), *(name for name, _ in operation.results)])

    def _placed(self, offset: int, function: Callable[..., str], *values: object) -> str:
        try:
            return function(*values)
        except HloSyntaxError as error:
            self.problems.error(error.code, error.message, offset)
            raise Skip from None

    def computation(
        self,
        builder: Builder,
        name: str,
        region: Region,
        parameters: Sequence[Argument],
        shapes: Sequence[Shape] | None = None,
        outside: Sequence[str] = (),
        sunk: Sequence[str] = (),
        manual: tuple[str, ...] | None = None,
        shardings: Sequence[Sharding | None] = (),
        mesh: int | None = None,
        carried: bool = False,
        counted: bool = False,
    ) -> tuple[str, Computation]:
        """Translate a region into a computation of its own, with the values it uses from outside as last parameters.

        Args:
            builder: the computation around it.
            name: what to call it; made unique.
            region: the region.
            parameters: its arguments.
            shapes: their shapes; from their types when not given.
            outside: SSA values of `builder` that it uses.
            sunk: constants of `builder` that it uses: it gets constants of its own.
            manual: axes of manual computations around its operations; those of `builder` when not given.
            shardings: shardings of the parameters.
            mesh: number of the mesh of the topology that it runs on; that of `builder` when not given.
            carried: whether it yields the values from outside again, after its own results (the body of a loop).
            counted: whether it yields its last parameter plus one as its last result (the number of an iteration).
        """
        label = self.fresh(name)
        inner = Builder(
            self,
            label,
            region.offset,
            builder.manual if manual is None else manual,
            builder.mesh if mesh is None else mesh,
        )
        self.reserve(label, region.offset)
        for number, argument in enumerate(parameters):
            attributes: dict[str, AttributeValue] = {}
            place = metadata(argument.place)
            if place is not None:
                attributes["metadata"] = place
            if inner.mesh is None:
                self.place([argument.type], attributes)
            if number < len(shardings) and (sharding := shardings[number]) is not None:
                attributes["sharding"] = sharding
            shape = self.shared.types.one(argument.type) if shapes is None else shapes[number]
            if shape is MALFORMED:
                raise HloSyntaxError(f"{argument.name}: '{shorten(argument.type)}' is no type", 0, "mlir.type")
            self._placed(region.offset, inner.parameter, argument.name, shape, attributes, region.offset)
        for ssa in outside:
            self._placed(region.offset, inner.parameter, ssa, builder.shape(ssa), {}, region.offset)
        self.sink(builder, inner, sunk)
        results = self.region(inner, region)
        if carried:
            results += [inner.value(ssa) for ssa in outside]
        if counted:
            number = inner.value(parameters[-1].name)
            kind = inner.by_name[number].shape
            one = inner.emit("one", "constant", kind, (), {}, region.offset, "1")
            results.append(inner.emit("next", "add", kind, (number, one), {}, region.offset))
        found = inner.finish(results, region.offset, always_tuple=carried and len(results) != 1)
        self.computations[label] = found
        return label, found

    def fresh(self, wanted: str) -> str:
        """A name that no computation or function has."""
        name, number = wanted, 0
        while name in self.computations or name in self.functions:
            number += 1
            name = f"{wanted}.{number}"
        return name

    def applied(self, builder: Builder, view: View, region: Region, name: str) -> str:
        """A region that is applied to elements: a reducer, a comparator, the body of a map. Gives its name."""
        parameters = arguments(region.arguments, self.shared)
        outside = [ssa for ssa in captured(region) if not _is_argument(ssa, parameters)]
        outside, sunk = self.constants(builder, outside)
        if outside:
            raise HloSyntaxError(
                f"its region uses {outside[0]} from outside, which a function of elements cannot", 0, "mlir.capture"
            )
        return self.computation(builder, f"{builder.name}.{name}", region, parameters, sunk=sunk)[0]

    @staticmethod
    def constants(builder: Builder, outside: Sequence[str]) -> tuple[list[str], list[str]]:
        """What a region uses from outside, told apart: values, and constants, of which it can have its own."""
        values: list[str] = []
        sunk: list[str] = []
        for ssa in outside:
            known = builder.has(ssa) and builder.by_name[builder.value(ssa)].opcode == "constant"
            (sunk if known else values).append(ssa)
        return values, sunk

    @staticmethod
    def sink(builder: Builder, inner: Builder, constants: Sequence[str]) -> None:
        """Give a computation constants like those of the one around it."""
        for ssa in constants:
            found = builder.by_name[builder.value(ssa)]
            name = inner.fresh(ssa)
            inner.bind(ssa, inner.add(replace(found, name=name)))

    def outside(self, builder: Builder, regions: Iterable[Region]) -> list[str]:
        """SSA values of a computation that regions in it use, each once, in order of use."""
        found: dict[str, None] = {}
        for region in regions:
            found.update(dict.fromkeys(captured(region)))
        return [ssa for ssa in found if builder.has(ssa) or not self.is_defined_inside(ssa, regions)]

    @staticmethod
    def is_defined_inside(ssa: str, regions: Iterable[Region]) -> bool:
        """Whether a block of the regions has it as an argument."""
        return any(ssa.partition("#")[0] in block.arguments for region in regions for block in region.blocks)

    # -- operations --------------------------------------------------------------------------------------------

    def emit(
        self,
        builder: Builder,
        view: View,
        opcode: str,
        attributes: dict[str, AttributeValue] | None = None,
        operands: Sequence[str] | None = None,
        shapes: Sequence[Shape] | None = None,
        literal: str | None = None,
    ) -> str:
        """One instruction for an operation, with its results bound; gives its name."""
        operation = view.operation
        inputs = [builder.value(ssa) for ssa in view.operands] if operands is None else operands
        results = operation.result_names()
        kinds = view.result_shapes if shapes is None else tuple(shapes)
        if len(kinds) != len(results):
            counted = f"{len(kinds)} types" if kinds else "no type"
            raise HloSyntaxError(f"{len(results)} results, but {counted} for them", 0, "mlir.result_types")
        if MALFORMED in kinds:
            raise HloSyntaxError(f"'{shorten(view.type_text)}' are no types", 0, "mlir.type")
        found: dict[str, AttributeValue] = {} if attributes is None else attributes
        stated = view.attributes
        if self.topology is not None and builder.mesh is None:
            types = split(view.signature[1])
            self.place(types if len(types) == len(results) else types[-1:] * len(results), found)
            if len(types) == 1 and "sharding" not in found:
                inside = self.sharding_in(types[0], builder, operation.at)
                if inside is not None:
                    found["sharding"] = inside
        if stated:
            sharding = self.shardings.of(stated, len(results), builder.manual, operation.at)
            if sharding is not None:
                found["sharding"] = sharding
            if FRONTEND in stated:
                found["frontend_attributes"] = Frontend(frontend(stated[FRONTEND]))
            for key, text in stated.items():
                if key not in found and key not in _NOT_KEPT:
                    found[key] = Raw(text or "true")
        if view.location:
            place = self.metadata(view.location)
            if place is not None:
                found["metadata"] = place
        shape = kinds[0] if len(kinds) == 1 else TupleShape(kinds)
        name = builder.emit(self.label(view), opcode, shape, inputs, found, operation.at, literal)
        self.bind(builder, view, name)
        return name

    def place(self, types: Sequence[str], attributes: dict[str, AttributeValue]) -> None:
        """Say on which meshes of the topology values of these types are."""
        if self.topology is None:
            return
        found = [MeshTensor.of(text, self.shared.part.aliases) for text in types]
        if any(found):
            attributes[ON] = tuple(self.topology.number(one.mesh if one is not None else None) for one in found)

    def sharding_in(self, text: str, builder: Builder, offset: int) -> Sharding | None:
        """The sharding that the type of a mesh tensor states."""
        found = MeshTensor.of(text, self.shared.part.aliases) if "mesh_tensor" in text or text.startswith("!") else None
        if found is None or found.sharding is None:
            return None
        return self.shardings.of({"sdy.sharding": found.sharding}, 1, builder.manual, offset)

    def metadata(self, location: str) -> Raw | None:
        """The metadata of a location; equal texts give the same object."""
        if location not in self._places:
            self._places[location] = metadata(self.shared.locations.of(location))
        return self._places[location]

    def bind(self, builder: Builder, view: View, name: str) -> None:
        """Say that an instruction is an operation's results."""
        results = view.operation.result_names()
        if len(results) == 1:
            builder.bind(results[0], name)
        else:
            for number, result in enumerate(results):
                builder.bind(result, name, number)

    def label(self, view: View) -> str:
        """What to call the instruction of an operation: its result's name, or where it stands."""
        results = view.operation.results
        if not results:
            line, _ = self.problems.lines.position(view.operation.at)
            return f"{view.name}:{line}"
        return results[0][0] if len(results) == 1 else f"{results[0][0]}.results"

    def unknown(self, builder: Builder, view: View) -> None:
        """Keep an operation that nothing is known of: an opaque task with all that its text says."""
        name = view.name
        if name not in self._unknown:
            self._unknown.add(name)
            message = f"operation {name} is not known; it is kept as an opaque local task"
            self.problems.warning("mlir.unknown_op", message, view.operation.at)
        attributes: dict[str, AttributeValue] = {}
        if not view.operation.generic and (stated := " ".join(view.pretty.split())):
            attributes["assembly"] = Raw(stated)
        outside = self.outside(builder, view.operation.regions)
        if view.operation.regions:
            called: list[str] = []
            for number, region in enumerate(view.operation.regions):
                parameters = arguments(region.arguments, self.shared)
                free = [ssa for ssa in outside if not _is_argument(ssa, parameters)]
                called.append(
                    self.computation(builder, f"{builder.name}.{self.label(view)}.{number}", region, parameters,
                                     outside=free)[0]
                )  # fmt: skip
            attributes["called_computations"] = Names(tuple(called))
        operands = [builder.value(ssa) for ssa in dict.fromkeys((*view.operands, *outside))]
        self.emit(builder, view, name, attributes, operands)

    def common(self, builder: Builder, view: View, count: int) -> dict[str, AttributeValue]:
        """What every instruction of an operation has: its place, and the sharding of its results where there are any."""
        found: dict[str, AttributeValue] = {}
        if count:
            sharding = self.shardings.of(view.attributes, count, builder.manual, view.operation.at)
            if sharding is not None:
                found["sharding"] = sharding
        place = self.metadata(view.location) if view.location else None
        if place is not None:
            found["metadata"] = place
        return found

    def reserve(self, name: str, offset: int) -> None:
        """Take a name for a computation that is being translated."""
        self.computations[name] = Computation(name, (), _PLACEHOLDER, offset)

    def mesh(self, name: str) -> SdyMesh | None:
        """A mesh of the module by name."""
        self.shardings.note(f"@{name}")
        return self.meshes.get(name)

    def cluster(self) -> tuple[int, ...] | None:
        """The shape of the device mesh of tt-mlir, None without one."""
        return self._cluster

    @staticmethod
    def bundle(shapes: Sequence[Shape]) -> TupleShape:
        """The shape of several results."""
        return TupleShape(tuple(shapes))


def topology_of(function: Function, aliases: Mapping[str, str]) -> Topology | None:
    """The topology of a function; None where it has none, or one whose meshes differ."""
    text = function.attributes.get("topology")
    return Topology.parse(aliases.get(text, text)) if text is not None else None


def _is_argument(ssa: str, parameters: Sequence[Argument]) -> bool:
    return any(ssa == argument.name for argument in parameters)


_PLACEHOLDER = Instruction("", "tuple", TupleShape(()), (), {}, 0)
"""Stands for the root of a computation that is being translated."""
