"""Checks a module that could be read: do its instructions fit together.

Operand counts and dims are checked as far as a program can be made of the module at all: tuples, calls, loops, branches,
asynchronous pairs and collectives. Whether an element-wise op has the right shape is not judged here.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtir.importers.hlo.attributes import Pairs
from dtir.importers.hlo.devices import DeviceCount, base_opcode, mode_of, sharding_devices
from dtir.importers.hlo.groups import ExplicitGroups, GroupMode, IotaGroups, MeshGroups
from dtir.importers.hlo.meshes import Iota
from dtir.importers.hlo.opcodes import COLLECTIVES, KNOWN, OPERAND_COUNTS
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.shapes import ArrayShape, Shape, TupleShape
from dtir.importers.hlo.shardings import Maximal, Named, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.syntax import Computation, HloModule, Instruction

_ASYNC_CHAIN = frozenset({"async-start", "async-update"})
_DONE_OF = {
    "all-reduce-done": ("all-reduce-start",),
    "all-gather-done": ("all-gather-start",),
    "collective-permute-done": ("collective-permute-start",),
    "copy-done": ("copy-start",),
    "async-done": ("async-start", "async-update"),
    "async-update": ("async-start", "async-update"),
}


def validate(module: HloModule, computations: tuple[Computation, ...], count: DeviceCount, problems: Problems) -> None:
    """Report what does not fit in the given computations of a module."""
    by_name = module.by_name()
    checker = _Checker(by_name, count, problems)
    for computation in computations:
        checker.computation(computation)


def validate_collectives(
    module: HloModule, computations: tuple[Computation, ...], count: DeviceCount, problems: Problems
) -> None:
    """Report what does not fit in collectives and shardings alone: for modules that were not HLO text before."""
    checker = _Checker(module.by_name(), count, problems)
    for computation in computations:
        shapes = {instruction.name: instruction.shape for instruction in computation.instructions}
        for instruction in computation.instructions:
            if base_opcode(instruction.opcode) in COLLECTIVES:
                checker.bounded_dims(instruction)
                checker.collective(instruction, [shapes[name] for name in instruction.operands])
            checker.sharding(instruction)


class _Checker:
    def __init__(self, by_name: Mapping[str, Computation], count: DeviceCount, problems: Problems) -> None:
        self.by_name = by_name
        self.count = count
        self.problems = problems
        self.async_users: dict[str, str] = {}
        self.parameters: dict[str, tuple[Instruction, ...]] = {}
        self.bounded: set[int] = set()
        self.bound: dict[str, tuple[Computation, int]] = {}

    def computation(self, computation: Computation) -> None:
        self.bound = {}
        scope: dict[str, Instruction] = {}
        for instruction in computation.instructions:
            self._instruction(instruction, scope)
            scope[instruction.name] = instruction
        if any("control-predecessors" in i.attributes for i in computation.instructions):
            self._control_predecessors(computation)

    def _control_predecessors(self, computation: Computation) -> None:
        seen: set[str] = set()
        for instruction in computation.instructions:
            for name in instruction.names("control-predecessors"):
                if name not in seen:
                    message = f"control predecessor '{name}' of '{instruction.name}' is not defined before it"
                    self.problems.error("hlo.unknown_operand", message, instruction.offset)
            seen.add(instruction.name)

    def _instruction(self, instruction: Instruction, scope: Mapping[str, Instruction]) -> None:
        opcode = instruction.opcode
        self.bounded_dims(instruction)
        if opcode not in KNOWN:
            message = f"opcode '{opcode}' is not known; it is kept as an opaque local task"
            self.problems.warning("hlo.unknown_opcode", message, instruction.offset)
            return
        self.sharding(instruction)
        wanted = OPERAND_COUNTS.get(opcode)
        if wanted is not None and len(instruction.operands) != wanted:
            message = f"'{instruction.name}' ({opcode}) has {len(instruction.operands)} operands, wanted {wanted}"
            self.problems.error("hlo.operand_count", message, instruction.offset)
            return
        shapes = [scope[name].shape for name in instruction.operands if name in scope]
        if len(shapes) != len(instruction.operands):
            return
        match opcode:
            case "tuple":
                self._same(instruction, TupleShape(tuple(shapes)), instruction.shape, "the result", "its operands")
            case "get-tuple-element":
                self._element(instruction, shapes[0])
            case "while":
                self._while(instruction, shapes[0])
            case "conditional":
                self._conditional(instruction, shapes)
            case "call" | "fusion":
                self._call(instruction, shapes)
            case "async-start":
                self._async_start(instruction, shapes)
            case "async-update":
                self._done(instruction, scope)
                self._bind(instruction, instruction.operands[0] if shapes else "", shapes[1:])
            case "send" | "recv":
                self._peer(instruction)
            case _ if opcode in _DONE_OF:
                self._done(instruction, scope)
            case _ if base_opcode(opcode) in COLLECTIVES:
                self.collective(instruction, shapes)
            case _:
                pass

    def sharding(self, instruction: Instruction) -> None:
        """A sharding names devices that there are."""
        sharding = instruction.attributes.get("sharding")
        if isinstance(sharding, (Uniform, Maximal, Tiled, Named, TupleSharding)):
            needed, partitions = sharding_devices(sharding), self.count.devices.partitions
            if needed > partitions:
                message = f"the sharding names {needed} devices, but there are {partitions} partitions"
                self._error("hlo.device_count", instruction, message)

    def bounded_dims(self, instruction: Instruction) -> None:
        """Every dim has a size or a bound. Equal shapes are mostly one object, which the module keeps alive."""
        if id(instruction.shape) in self.bounded:
            return
        self.bounded.add(id(instruction.shape))
        for leaf in instruction.shape.leaves():
            if min(leaf.dims, default=0) < 0:
                self._error("hlo.unbounded_dim", instruction, f"{leaf.text()} has a dim without size or bound")

    def _error(self, code: str, instruction: Instruction, message: str) -> None:
        self.problems.error(code, f"'{instruction.name}': {message}", instruction.offset)

    def _same(self, instruction: Instruction, found: Shape, wanted: Shape, what: str, other: str) -> bool:
        if _compatible(found, wanted):
            return True
        self._error("hlo.shape_mismatch", instruction, f"{what} {wanted.text()} does not match {other} {found.text()}")
        return False

    def _element(self, instruction: Instruction, shape: Shape) -> None:
        index = instruction.integer("index")
        if not isinstance(shape, TupleShape):
            self._error("hlo.tuple_index", instruction, f"takes an element of {shape.text()}, which is no tuple")
        elif index is None or not 0 <= index < len(shape.elements):
            self._error("hlo.tuple_index", instruction, f"takes element {index} of a tuple with {len(shape.elements)}")
        else:
            self._same(instruction, shape.elements[index], instruction.shape, "the result", f"element {index}")

    def _enter(self, instruction: Instruction, key: str, shapes: list[Shape], result: Shape | None) -> None:
        """One computation entered with operands of these shapes."""
        names = instruction.names(key)
        computation = self.by_name.get(names[0]) if len(names) == 1 else None
        if computation is None:
            if not names:
                self._error("hlo.missing_attribute", instruction, f"{instruction.opcode} needs the attribute '{key}'")
            return
        if self._arguments(instruction, computation, shapes) and result is not None:
            self._same(instruction, computation.root.shape, result, "the result", f"the root of '{computation.name}'")

    def _arguments(self, instruction: Instruction, computation: Computation, shapes: list[Shape]) -> bool:
        parameters = self._parameters_of(computation)
        if len(parameters) != len(shapes):
            message = f"passes {len(shapes)} operands to '{computation.name}', which takes {len(parameters)}"
            self._error("hlo.operand_count", instruction, message)
            return False
        for parameter, shape in zip(parameters, shapes, strict=True):
            other = f"parameter {parameter.number} of '{computation.name}'"
            if not self._same(instruction, parameter.shape, shape, "operand", other):
                return False
        return True

    def _while(self, instruction: Instruction, shape: Shape) -> None:
        self._same(instruction, shape, instruction.shape, "the result", "the operand")
        self._enter(instruction, "body", [shape], shape)
        self._enter(instruction, "condition", [shape], ArrayShape("pred", ()))

    def _conditional(self, instruction: Instruction, shapes: list[Shape]) -> None:
        if not shapes:
            self._error("hlo.operand_count", instruction, "conditional has no operands, wanted a selector first")
            return
        branches = branch_names(instruction)
        if not branches:
            self._error("hlo.missing_attribute", instruction, "conditional needs the attribute 'branch_computations'")
            return
        if len(shapes) != 1 + len(branches):
            message = f"has {len(shapes)} operands for {len(branches)} branches, wanted {1 + len(branches)}"
            self._error("hlo.operand_count", instruction, message)
            return
        if not _compatible(shapes[0], ArrayShape("s32", ())) and not _compatible(shapes[0], ArrayShape("pred", ())):
            self._error(
                "hlo.shape_mismatch", instruction, f"the selector is {shapes[0].text()}, wanted pred[] or s32[]"
            )
        for name, shape in zip(branches, shapes[1:], strict=True):
            computation = self.by_name.get(name)
            if computation is not None:
                if not self._arguments(instruction, computation, [shape]):
                    return
                other = f"the root of '{name}'"
                self._same(instruction, computation.root.shape, instruction.shape, "the result", other)

    def _call(self, instruction: Instruction, shapes: list[Shape]) -> None:
        key = "calls" if instruction.opcode == "fusion" or not instruction.names("to_apply") else "to_apply"
        self._enter(instruction, key, shapes, instruction.shape)

    def _bind(self, instruction: Instruction, source: str, shapes: list[Shape]) -> None:
        """An asynchronous computation takes its operands at the start or later, at updates, in order."""
        found = self.bound.get(source)
        if found is None:
            return
        computation, before = found
        parameters = self._parameters_of(computation)
        if before + len(shapes) > len(parameters):
            message = f"passes {before + len(shapes)} operands to '{computation.name}', which takes {len(parameters)}"
            self._error("hlo.operand_count", instruction, message)
            return
        self.bound[instruction.name] = computation, before + len(shapes)
        for parameter, shape in zip(parameters[before:], shapes, strict=False):
            other = f"parameter {parameter.number} of '{computation.name}'"
            if not self._same(instruction, parameter.shape, shape, "operand", other):
                return

    def _parameters_of(self, computation: Computation) -> tuple[Instruction, ...]:
        parameters = self.parameters.get(computation.name)
        if parameters is None:
            parameters = self.parameters[computation.name] = computation.parameters()
        return parameters

    def _async_start(self, instruction: Instruction, shapes: list[Shape]) -> None:
        names = instruction.names("calls") or instruction.names("called_computations")
        if not names:
            self._error("hlo.missing_attribute", instruction, "async-start needs the attribute 'calls'")
            return
        if names[0] in self.by_name:
            self.bound[instruction.name] = self.by_name[names[0]], 0
            self._bind(instruction, instruction.name, shapes)
        user = self.async_users.setdefault(names[0], instruction.name)
        if user != instruction.name:
            self._error("hlo.async_pair", instruction, f"'{names[0]}' already runs in '{user}'")
        shape = instruction.shape
        if (
            not isinstance(shape, TupleShape)
            or len(shape.elements) < 2
            or not isinstance(shape.elements[0], TupleShape)
        ):
            message = f"the result {shape.text()} is not of the form ((operands), results, ...)"
            self._error("hlo.async_pair", instruction, message)

    def _peer(self, instruction: Instruction) -> None:
        shape = instruction.shape
        if not isinstance(shape, TupleShape) or len(shape.elements) < 2:
            self._error("hlo.shape_mismatch", instruction, f"the result {shape.text()} is not (data, u32[], token[])")

    def _done(self, instruction: Instruction, scope: Mapping[str, Instruction]) -> None:
        if not instruction.operands:
            self._error("hlo.async_pair", instruction, f"{instruction.opcode} has no operand, wanted its start")
            return
        source = scope[instruction.operands[0]]
        wanted = _DONE_OF[instruction.opcode]
        if source.opcode in KNOWN and source.opcode not in wanted and source.opcode not in _PASSES_ON:
            message = f"{instruction.opcode} takes the {source.opcode} '{source.name}', wanted {' or '.join(wanted)}"
            self._error("hlo.async_pair", instruction, message)

    def collective(self, instruction: Instruction, shapes: list[Shape]) -> None:
        """A collective has operands, groups or pairs within the devices, a reducer, a dim."""
        opcode = base_opcode(instruction.opcode)
        if not shapes:
            self._error("hlo.operand_count", instruction, f"{instruction.opcode} has no operands")
            return
        if instruction.flag("use_global_device_ids") and instruction.integer("channel_id") is None:
            self._error("hlo.group_mode", instruction, "use_global_device_ids needs a channel_id")
        self._ids(instruction)
        if opcode in ("all-reduce", "reduce-scatter") and not instruction.names("to_apply"):
            self._error("hlo.missing_attribute", instruction, f"{opcode} needs the attribute 'to_apply'")
        if opcode in ("all-gather", "reduce-scatter"):
            dims = instruction.ints("dimensions")
            if dims is None or len(dims) != 1:
                self._error(
                    "hlo.missing_attribute", instruction, f"{opcode} needs 'dimensions' with one dim, found {dims}"
                )
                return
            for shape in shapes:
                if isinstance(shape, ArrayShape) and not 0 <= dims[0] < len(shape.dims):
                    self._error("hlo.attribute", instruction, f"dim {dims[0]} is outside of {shape.text()}")
                    return

    def _ids(self, instruction: Instruction) -> None:
        """Ids within what the header states."""
        devices = self.count.devices
        match mode_of(instruction):
            case GroupMode.FLATTENED:
                limit, what = devices.ranks, "devices"
            case GroupMode.PARTITIONS:
                limit, what = devices.partitions, "partitions"
            case GroupMode.REPLICAS | GroupMode.REPLICAS_ALL_PARTITIONS:
                limit, what = devices.replicas, "replicas"
        groups = instruction.attributes.get("replica_groups")
        size = 0
        if isinstance(groups, ExplicitGroups):
            size = max((max(group) for group in groups.groups), default=-1) + 1
        elif isinstance(groups, (IotaGroups, MeshGroups)):
            size = groups.size()
            if isinstance(groups, MeshGroups) and groups.mesh.device_ids is not None:
                self._device_ids(instruction, groups)
        if size > limit:
            self._error(
                "hlo.device_count", instruction, f"replica groups name id {size - 1}, but there are {limit} {what}"
            )
        pairs = instruction.attributes.get("source_target_pairs")
        if isinstance(pairs, Pairs):
            highest = max((max(pair) for pair in pairs.pairs), default=-1)
            if highest >= limit:
                message = f"source_target_pairs name id {highest}, but there are {limit} {what}"
                self._error("hlo.device_count", instruction, message)
        elif base_opcode(instruction.opcode) == "collective-permute":
            message = "collective-permute needs the attribute 'source_target_pairs'"
            self._error("hlo.missing_attribute", instruction, message)

    def _device_ids(self, instruction: Instruction, groups: MeshGroups) -> None:
        ids = groups.mesh.device_ids
        if ids is not None and not isinstance(ids, Iota) and sorted(ids) != list(range(len(ids))):
            self._error(
                "hlo.device_ids", instruction, f"device_ids of the mesh are not 0..{len(ids) - 1} in some order"
            )


_PASSES_ON = frozenset(
    {"get-tuple-element", "parameter", "opt-barrier", "optimization-barrier", "copy", "while", "call"}
)
"""Ops through which the handle of a started op may come, as in pipelined loops."""


def branch_names(instruction: Instruction) -> tuple[str, ...]:
    """Branches of a conditional in the order of the selector's values (index; for pred: true, false)."""
    names = instruction.names("branch_computations")
    return names or (*instruction.names("true_computation"), *instruction.names("false_computation"))


def _compatible(left: Shape, right: Shape) -> bool:
    """Same types and dims; layouts and dynamic bounds may differ."""
    if isinstance(left, ArrayShape) or isinstance(right, ArrayShape):
        return (
            isinstance(left, ArrayShape)
            and isinstance(right, ArrayShape)
            and left.dtype == right.dtype
            and left.dims == right.dims
        )
    return len(left.elements) == len(right.elements) and all(map(_compatible, left.elements, right.elements))
