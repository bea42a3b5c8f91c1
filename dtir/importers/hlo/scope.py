"""Lowers one computation: its values, tasks, inputs and outputs.

Tuples are taken apart: every instruction stands for a list of leaf values, and `tuple`, `get-tuple-element` and
`parameter` only rename leaves. Every other instruction is one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dtir.importers.hlo.asynchrony import Pending, Started, context_leaves, escaping_starts
from dtir.importers.hlo.collectives import result_shape
from dtir.importers.hlo.context import Lowering
from dtir.importers.hlo.devices import base_opcode
from dtir.importers.hlo.layouts import Form, leaf_shardings
from dtir.importers.hlo.naming import Names
from dtir.importers.hlo.opcodes import COLLECTIVES
from dtir.importers.hlo.peers import Peers
from dtir.importers.hlo.shapes import Shape, TupleShape, leaf_count
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.importers.hlo.validate import branch_names
from dtir.ir.collectives import CollectiveSpecVariant
from dtir.ir.ids import NodeId, ValueId
from dtir.ir.tasks import Branch, Call, Collective, Control, DistributedTask, LocalCompute, Loop, TaskBodyVariant
from dtir.ir.values import DistributedValue, ValueRole
from dtir.schema.frozen import EMPTY_MAP, FrozenDict

_LOCAL = LocalCompute()
_CONTROL = Control()
_NATIVE_STARTS = frozenset({"all-reduce-start", "all-gather-start", "collective-permute-start", "copy-start"})
_DONES = frozenset({"all-reduce-done", "all-gather-done", "collective-permute-done", "copy-done", "async-done"})
_CONTROLS = frozenset({"after-all"})
_ENTERED: dict[str, frozenset[str]] = {
    "while": frozenset({"body", "condition"}),
    "conditional": frozenset({"branch_computations", "true_computation", "false_computation"}),
    "call": frozenset({"to_apply", "calls"}),
    "fusion": frozenset({"calls"}),
    "async-start": frozenset({"calls", "called_computations"}),
}
_NOTHING: frozenset[str] = frozenset()


class ScopeLowering:
    """Values and tasks of one computation, filled by `run`."""

    def __init__(self, lowering: Lowering, computation: Computation) -> None:
        self.lowering = lowering
        self.computation = computation
        self.names = Names(lowering.module_name, computation.name)
        self.values: list[DistributedValue] = []
        self.tasks: list[DistributedTask] = []
        self.inputs: tuple[ValueId, ...] = ()
        self.outputs: tuple[ValueId, ...] = ()
        self._leaves: dict[str, tuple[ValueId, ...]] = {}
        self._shapes: dict[str, Shape] = {}
        self._producer: dict[ValueId, NodeId] = {}
        self._task_of: dict[str, NodeId] = {}
        self._started: dict[str, Started] = {}
        self._pending: dict[str, Pending] = {}
        self._escaping = escaping_starts(computation)
        self._peers = Peers()
        self._is_entry = computation.name == lowering.entry_name

    def run(self) -> None:
        """Lower every instruction in order."""
        parameters: dict[int, tuple[ValueId, ...]] = {}
        for instruction in self.computation.instructions:
            name = instruction.name
            self._shapes[name] = instruction.shape
            match instruction.opcode:
                case "parameter":
                    leaves = self._values_of(instruction, instruction.shape, ValueRole.INPUT)
                    parameters[instruction.number or 0] = leaves
                    self._leaves[name] = leaves
                case "tuple":
                    self._leaves[name] = self._operand_leaves(instruction)
                case "get-tuple-element":
                    self._leaves[name] = self._element(instruction)
                case _:
                    self._leaves[name] = self._lower(instruction)
        self.inputs = tuple(leaf for number in sorted(parameters) for leaf in parameters[number])
        self.outputs = self._leaves[self.computation.root.name]

    # -- leaves ------------------------------------------------------------------------------------------------

    def _operand_leaves(self, instruction: Instruction) -> tuple[ValueId, ...]:
        operands = instruction.operands
        if len(operands) == 1:
            return self._leaves[operands[0]]
        leaves = self._leaves
        return tuple(leaf for name in operands for leaf in leaves[name])

    def _element(self, instruction: Instruction) -> tuple[ValueId, ...]:
        shape = self._shapes[instruction.operands[0]]
        index = instruction.integer("index") or 0
        offsets = self.lowering.offsets(shape)
        return self._leaves[instruction.operands[0]][offsets[index] : offsets[index + 1]]

    def _values_of(
        self, instruction: Instruction, shape: Shape, role: ValueRole, name: str | None = None
    ) -> tuple[ValueId, ...]:
        """New values, one per leaf of `shape`."""
        lowering = self.lowering
        label = name or instruction.name
        sharding = instruction.attributes.get("sharding")
        found = sharding if isinstance(sharding, (Uniform, Maximal, Tiled, Named, TupleSharding)) else None
        leaves = shape.leaves()
        parts = leaf_shardings(found, len(leaves)) if found is not None else None
        ids: list[ValueId] = []
        for number, leaf in enumerate(leaves):
            identifier = self.names.value(label, number)
            attributes: FrozenDict[Any] = EMPTY_MAP
            if parts is None:
                spec, kind = lowering.layouts.free(leaf)
            else:
                part = parts[number]
                spec, kind = self._stated(instruction, leaf, part)
                attributes = lowering.sharding_attributes(part or found)
            ids.append(identifier)
            self.values.append(
                DistributedValue(
                    identifier,
                    kind,
                    role,
                    spec,
                    lowering.space.ranks,
                    lowering.lineage,
                    attributes=attributes,
                    name=label if len(leaves) == 1 else f"{label}[{number}]",
                )
            )
        return tuple(ids)

    def _stated(self, instruction: Instruction, leaf: Any, sharding: Sharding | None) -> Any:
        """In a per-device module only the entry's parameters mean their sharding; elsewhere it is a remnant."""
        layouts = self.lowering.layouts
        if layouts.form is Form.GLOBAL:
            return layouts.stated(leaf, sharding, local=False)
        if instruction.opcode == "parameter" and self._is_entry:
            return layouts.stated(leaf, sharding, local=True)
        return layouts.free(leaf)

    # -- tasks -------------------------------------------------------------------------------------------------

    def _lower(self, instruction: Instruction) -> tuple[ValueId, ...]:
        opcode = instruction.opcode
        if opcode in COLLECTIVES:
            return self._collective(instruction)
        entered = _ENTERED.get(opcode)
        if entered is not None:
            if opcode == "async-start":
                return self._async_start(instruction)
            return self._enter(instruction, self._body(instruction), entered)
        if opcode in _NATIVE_STARTS:
            return self._native_start(instruction)
        if opcode in _DONES:
            return self._done(instruction)
        match opcode:
            case "async-update":
                return self._update(instruction)
            case "send" | "recv" | "send-done" | "recv-done":
                return self._peer(instruction)
            case _:
                body = _CONTROL if opcode in _CONTROLS else _LOCAL
                role = ValueRole.CONSTANT if opcode == "constant" else ValueRole.ACTIVATION
                return self._task(instruction, body, self._operand_leaves(instruction), instruction.shape, role=role)

    def _body(self, instruction: Instruction) -> TaskBodyVariant:
        """Body of an instruction that enters computations."""
        region = self.lowering.region_id
        match instruction.opcode:
            case "while":
                trips = self.lowering.trips(self.computation.name, instruction.name)
                body, condition = instruction.names("body")[0], instruction.names("condition")[0]
                return Loop(region(body), region(condition), trips)
            case "conditional":
                counts = tuple(leaf_count(self._shapes[name]) for name in instruction.operands[1:])
                return Branch(tuple(region(name) for name in branch_names(instruction)), counts)
            case _:
                called = instruction.names("to_apply") if instruction.opcode == "call" else ()
                return Call(region((called or instruction.names("calls"))[0]))

    def _enter(self, instruction: Instruction, body: TaskBodyVariant, entered: frozenset[str]) -> tuple[ValueId, ...]:
        leaves = self._operand_leaves(instruction)
        return self._task(instruction, body, leaves, instruction.shape, entered=entered)

    def _task(
        self,
        instruction: Instruction,
        body: TaskBodyVariant,
        leaves: Sequence[ValueId],
        result: Shape,
        *,
        role: ValueRole = ValueRole.ACTIVATION,
        entered: frozenset[str] = _NOTHING,
        completes: tuple[NodeId, ...] = (),
        name: str | None = None,
        opcode: str | None = None,
        facts_of: Instruction | None = None,
        **more: Any,
    ) -> tuple[ValueId, ...]:
        """One task with new values for the leaves of `result`; gives these values."""
        lowering = self.lowering
        label = name or instruction.name
        outputs = self._values_of(instruction, result, role, label)
        inputs = tuple(leaves)
        operands: tuple[int, ...] = ()
        unique = dict.fromkeys(inputs)
        if len(unique) < len(inputs):
            position = {leaf: number for number, leaf in enumerate(unique)}
            operands = tuple(position[leaf] for leaf in inputs)
            inputs = tuple(unique)
        identifier = self.names.task(label)
        producers = dict.fromkeys(self._producer[leaf] for leaf in inputs if leaf in self._producer)
        producers.update(dict.fromkeys(completes))
        for before in instruction.names("control-predecessors"):
            producers.update(dict.fromkeys(self._tasks_behind(before)))
        self.tasks.append(
            DistributedTask(
                identifier,
                body,
                lowering.operation(opcode or instruction.opcode),
                body.spec.participants if isinstance(body, Collective) else lowering.space.ranks,
                inputs,
                outputs,
                tuple(producers),
                lowering.lineage,
                attributes=lowering.facts.of(facts_of or instruction, entered, **more),
                name=label,
                operands=operands,
                completes=completes,
            )
        )
        for leaf in outputs:
            self._producer[leaf] = identifier
        self._task_of.setdefault(instruction.name, identifier)
        return outputs

    def _tasks_behind(self, name: str) -> Iterable[NodeId]:
        """Tasks that a control dependency on an instruction waits for."""
        if name in self._task_of:
            return (self._task_of[name],)
        return [self._producer[leaf] for leaf in self._leaves[name] if leaf in self._producer]

    # -- communication -----------------------------------------------------------------------------------------

    def _collective(self, instruction: Instruction) -> tuple[ValueId, ...]:
        spec = self._spec(instruction, instruction.shape)
        return self._task(instruction, Collective(spec), self._operand_leaves(instruction), instruction.shape)

    def _spec(self, instruction: Instruction, result: Shape) -> CollectiveSpecVariant:
        shapes = [self._shapes[name] for name in instruction.operands]
        return self.lowering.collectives.make(instruction, shapes, result)

    def _native_start(self, instruction: Instruction) -> tuple[ValueId, ...]:
        leaves = self._operand_leaves(instruction)
        result = result_shape(instruction, len(leaves))
        body: TaskBodyVariant = _LOCAL
        if base_opcode(instruction.opcode) in COLLECTIVES:
            body = Collective(self._spec(instruction, result))
        results = self._task(instruction, body, leaves, result)
        return self._remember(instruction, leaves, results)

    def _async_start(self, instruction: Instruction) -> tuple[ValueId, ...]:
        called = (instruction.names("calls") or instruction.names("called_computations"))[0]
        pending = Pending(instruction, called, instruction.operands)
        leaves = self._operand_leaves(instruction)
        if len(pending.operands) < self.lowering.arity(called):
            self._task(instruction, _CONTROL, leaves, TupleShape(()), entered=_ENTERED["async-start"])
            self._pending[instruction.name] = pending
            return self._remember(instruction, leaves, ())
        return self._remember(instruction, leaves, self._run(instruction, pending))

    def _run(self, instruction: Instruction, pending: Pending) -> tuple[ValueId, ...]:
        """An asynchronous computation whose operands are all there: the collective that it wraps, or a call of it."""
        computation = self.lowering.computations[pending.called]
        wrapped = self.lowering.wrapped.get(pending.called)
        if wrapped is None:
            body: TaskBodyVariant = Call(self.lowering.region_id(pending.called))
            leaves = [leaf for name in pending.operands for leaf in self._leaves[name]]
            return self._task(
                instruction,
                body,
                leaves,
                computation.root.shape,
                entered=_ENTERED["async-start"],
                facts_of=pending.start,
            )
        parameters = {p.name: p.number or 0 for p in computation.parameters()}
        order = [pending.operands[parameters[name]] for name in wrapped.operands]
        shapes = [self._shapes[name] for name in order]
        return self._task(
            instruction,
            Collective(self.lowering.collectives.make(wrapped, shapes, wrapped.shape)),
            [leaf for name in order for leaf in self._leaves[name]],
            wrapped.shape,
            name=wrapped.name,
            opcode=wrapped.opcode,
            facts_of=wrapped,
            computation=pending.called,
            hlo__start=pending.start.name,
        )

    def _remember(
        self, instruction: Instruction, leaves: Sequence[ValueId], results: tuple[ValueId, ...]
    ) -> tuple[ValueId, ...]:
        """Leaves of a started op: its operands, its results, and contexts where something besides its done reads them."""
        task = self._task_of[instruction.name]
        self._started[instruction.name] = Started(task, results)
        if instruction.name not in self._escaping:
            return results
        return self._handle(instruction, leaves, results, task)

    def _handle(
        self, instruction: Instruction, leaves: Sequence[ValueId], results: tuple[ValueId, ...], task: NodeId
    ) -> tuple[ValueId, ...]:
        found = context_leaves(instruction, leaves, results)
        contexts = TupleShape(tuple(shape for shape, leaf in found if leaf is None))
        values: Iterable[ValueId] = ()
        if contexts.elements:
            label = f"{instruction.name}#context"
            opcode = f"{instruction.opcode}.context"
            values = self._task(
                instruction, _CONTROL, (), contexts, name=label, opcode=opcode, completes=(), hlo__context_of=str(task)
            )
        fresh = iter(values)
        return tuple(next(fresh) if leaf is None else leaf for _, leaf in found)

    def _done(self, instruction: Instruction) -> tuple[ValueId, ...]:
        started = self._started.get(instruction.operands[0])
        leaves = started.results if started is not None else self._operand_leaves(instruction)
        completes = (started.task,) if started is not None else ()
        entered = _ENTERED["async-start"]
        return self._task(instruction, _CONTROL, leaves, instruction.shape, completes=completes, entered=entered)

    def _update(self, instruction: Instruction) -> tuple[ValueId, ...]:
        """`async-update` moves a started op on. The one that binds the last operand is where the op runs."""
        source, *late = instruction.operands
        started = self._started.get(source)
        entered = _ENTERED["async-start"]
        if started is None:
            leaves = self._operand_leaves(instruction)
            return self._task(instruction, _CONTROL, leaves, instruction.shape, entered=entered)
        pending = self._pending.get(source)
        if pending is not None:
            pending = Pending(pending.start, pending.called, (*pending.operands, *late))
        if pending is not None and len(pending.operands) == self.lowering.arity(pending.called):
            results = self._run(instruction, pending)
            started = Started(self._task_of[instruction.name], results)
        else:
            leaves = (*started.results, *(leaf for name in late for leaf in self._leaves[name]))
            self._task(instruction, _CONTROL, leaves, TupleShape(()), entered=entered)
            if pending is not None:
                self._pending[instruction.name] = pending
        self._started[instruction.name] = started
        if instruction.name not in self._escaping:
            return started.results
        return self._handle(instruction, (), started.results, started.task)

    def _peer(self, instruction: Instruction) -> tuple[ValueId, ...]:
        """`send`, `recv` and their dones.

        A send between devices is a permute whose result the matching `recv-done` hands on; transfers to and from the
        host are control tasks.
        """
        leaves = self._operand_leaves(instruction)
        pairs = self.lowering.peer_pairs(instruction)
        match instruction.opcode:
            case "send" if pairs is not None:
                data = instruction.operands[0] if self._is_data(instruction.operands[0]) else instruction.operands[1]
                shape = self._shapes[data]
                body = Collective(self.lowering.permute(instruction, shape, pairs))
                received = self._task(instruction, body, leaves, shape)
                task = self._task_of[instruction.name]
                self._peers.sent(instruction, pairs, task, received)
                self._started[instruction.name] = Started(task, received)
                if instruction.name in self._escaping:
                    return self._handle(instruction, self._leaves[data], (), task)
                return received
            case "send" | "recv":
                values = self._task(instruction, _CONTROL, leaves, instruction.shape)
                task = self._task_of[instruction.name]
                self._started[instruction.name] = Started(task, values)
                if pairs is not None:
                    self._peers.posted(instruction, pairs)
                return values
            case _:
                return self._peer_done(instruction, leaves)

    def _is_data(self, name: str) -> bool:
        return any(leaf.dtype != "token" for leaf in self._shapes[name].leaves())

    def _peer_done(self, instruction: Instruction, leaves: tuple[ValueId, ...]) -> tuple[ValueId, ...]:
        started = self._started.get(instruction.operands[0])
        completes = (started.task,) if started is not None else ()
        inputs = started.results if started is not None else leaves
        sent = self._peers.take(instruction.operands[0])
        if sent is not None:
            completes = (*completes, sent.task)
            inputs = (*inputs, *sent.results)
        return self._task(instruction, _CONTROL, inputs, instruction.shape, completes=completes)
