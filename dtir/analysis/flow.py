"""Walk a program once: what follows for every value, and where that deviates from what is declared.

Every task is judged with its operands as they are known: as inferred where that agrees with the declaration, else as
declared, so that one cause gives one deviation. Tasks that look alike (operator, parameters, layouts, states) are judged
once; a program of many equal layers costs little more than one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, assert_never

from dtir.analysis.abstract import ONE, Abstract, Declared, Surroundings, declare, given
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.intern import Interned
from dtir.analysis.layout import SIZELESS, layout_deviations
from dtir.analysis.local import Step, local_step, unknown_step
from dtir.analysis.permuted import permute_step
from dtir.analysis.resharding import reshard_step, transfer_step
from dtir.analysis.states import State
from dtir.analysis.transitions import exchange_step
from dtir.ir.collectives import CollectivePermute
from dtir.ir.ids import ValueId
from dtir.ir.program import DistributedTaskIR, Scope
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    LocalCompute,
    Loop,
    PointToPoint,
    Reshard,
    ReshardKind,
)
from dtir.ir.values import DistributedValue
from dtir.ops import find_op, op_attributes


@dataclass(frozen=True, slots=True)
class TaskDeviation:
    """A deviation of the task at `index` of a scope."""

    index: int
    deviation: Deviation


@dataclass(frozen=True, slots=True)
class ValueDeviation:
    """A deviation of the value at `index` of a scope."""

    index: int
    deviation: Deviation


@dataclass(frozen=True, slots=True)
class Flow:
    """What the walk of one scope found.

    Args:
        scope: the program or one of its regions.
        path: where the scope is.
        values: what is known of every value that has a layout to judge, by id.
        position: index of every value.
        of_tasks: deviations of tasks, in task order.
        of_values: deviations of values, in value order.
        origin: for values whose scale is not 1, the index of the task that brought the factor in (None: an input).
        producer: index of the task that writes a value.
    """

    scope: Scope
    path: tuple[str, ...]
    values: Mapping[ValueId, Abstract]
    position: Mapping[ValueId, int]
    of_tasks: tuple[TaskDeviation, ...]
    of_values: tuple[ValueDeviation, ...]
    origin: Mapping[ValueId, int | None]
    producer: Mapping[ValueId, int]


class Walker:
    """Walks the scopes of one program; remembers what it has judged."""

    def __init__(self, program: DistributedTaskIR, around: Surroundings, reader: ExchangeReader) -> None:
        self.program = program
        self.around = around
        self.reader = reader
        self._known = Interned[Abstract]()
        self._declared = Interned[Declared]()
        self._declarations: dict[Hashable, tuple[int, tuple[Deviation, ...]]] = {}
        self._shared = Interned[Hashable]()
        self._steps: dict[Hashable, tuple[tuple[int, ...], tuple[Deviation, ...]]] = {}

    def walk(self, scope: Scope, path: tuple[str, ...]) -> Flow:
        """Judge every value and task of a scope."""
        position = {value.id: index for index, value in enumerate(scope.values)}
        declared: list[int] = []
        of_values: list[ValueDeviation] = []
        for index, value in enumerate(scope.values):
            number, deviations = self._declare(value)
            declared.append(number)
            of_values += [ValueDeviation(index, item) for item in deviations]
        known: list[int] = [-1] * len(scope.values)
        for identifier in scope.inputs:
            place = position[identifier]
            known[place] = self._known.number(self._input(self._declared.items[declared[place]]))
        of_tasks: list[TaskDeviation] = []
        origin: dict[ValueId, int | None] = {}
        producer: dict[ValueId, int] = {}
        for index, task in enumerate(scope.tasks):
            operands = [position[item] for item in task.operand_values]
            results = [position[item] for item in task.outputs]
            for item in task.outputs:
                producer[item] = index
            inputs = tuple(known[place] for place in operands)
            outputs = tuple(declared[place] for place in results)
            numbers, deviations = self._step(task, inputs, outputs)
            for place, number in zip(results, numbers, strict=True):
                known[place] = number
            if deviations:
                of_tasks += [TaskDeviation(index, item) for item in deviations]
            self._trace(task, index, numbers, origin)
        values = {
            value.id: self._known.items[known[index]] for index, value in enumerate(scope.values) if known[index] >= 0
        }
        return Flow(scope, path, values, position, tuple(of_tasks), tuple(of_values), origin, producer)

    def _trace(
        self, task: DistributedTask, index: int, numbers: Sequence[int], origin: dict[ValueId, int | None]
    ) -> None:
        """Remember which task brought a factor in."""
        for item, number in zip(task.outputs, numbers, strict=True):
            scale = self._known.items[number].scale
            if scale is None or scale == ONE:
                continue
            before = [origin[name] for name in task.inputs if name in origin]
            origin[item] = before[0] if before else index

    # -- declarations --------------------------------------------------------------------------------------------------

    def _declare(self, value: DistributedValue) -> tuple[int, tuple[Deviation, ...]]:
        key = (
            self._shared.number(value.type),
            self._shared.number(value.sharding),
            self._shared.number(value.scale),
            self._shared.number(value.local_shapes),
        )
        found = self._declarations.get(key)
        if found is None:
            declared = declare(value, self.around.space)
            deviations = layout_deviations(value.sharding, declared, self.around)
            if any(item.kind in SIZELESS for item in deviations):
                declared = replace(declared, sized=False)
            found = self._declarations[key] = self._declared.number(declared), deviations
        return found

    def _input(self, declared: Declared) -> Abstract:
        value = given(declared, self.around)
        return replace(value, open=True) if self.around.infer else value

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _step(
        self, task: DistributedTask, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[Deviation, ...]]:
        if not outputs:
            return (), ()
        key = (
            self._shared.number(task.body),
            self._shared.number(task.operation),
            self._shared.number(task.attributes),
            inputs,
            outputs,
        )
        found = self._steps.get(key)
        if found is None:
            step = self._judge(
                task,
                [self._known.items[number] for number in inputs if number >= 0],
                [self._declared.items[number] for number in outputs],
                complete=all(number >= 0 for number in inputs),
            )
            step = _with_declared_scales(step, [self._declared.items[number] for number in outputs])
            found = tuple(self._known.number(item) for item in step.results), step.deviations
            self._steps[key] = found
        return found

    def _judge(
        self, task: DistributedTask, operands: list[Abstract], results: list[Declared], *, complete: bool
    ) -> Step:
        if not complete:
            return unknown_step(results, self.around)
        match task.body:
            case LocalCompute():
                return self._local(task, operands, results)
            case PointToPoint():
                return _pairwise(operands, results, self.around, transfer_step)
            case Collective(spec=spec):
                if isinstance(spec, CollectivePermute):
                    return _pairwise(operands, results, self.around, partial(permute_step, pairs=spec.pairs))
                read = self.reader.read(task, spec)
                if read is None:
                    return unknown_step(results, self.around)
                if read.deviation is not None and self.around.infer and _some_loose(operands, results):
                    # Groups of a dump need not follow axes that were found for it.
                    return Step(tuple(given(item, self.around) for item in results))
                if read.deviation is not None:
                    return Step(tuple(given(item, self.around) for item in results), (read.deviation,))
                exchange = read.exchange
                return _pairwise(operands, results, self.around, lambda a, d, s: exchange_step(exchange, a, d, s))
            case Reshard(kind=kind):
                step = partial(reshard_step, exchanges_ghosts=kind is ReshardKind.HALO)
                return _pairwise(operands, results, self.around, step)
            case Control():
                return self._control(operands, results)
            case Call() | Loop() | Branch():
                return self._entered(operands, results)
            case _:
                assert_never(task.body)

    def _local(self, task: DistributedTask, operands: list[Abstract], results: list[Declared]) -> Step:
        if self.around.infer and all(_loose(item.state, self.around) for item in results):
            # One rank's view alone: the operator cannot contradict a layout that nobody declares.
            return Step(tuple(given(item, self.around) for item in results))
        return local_step(find_op(task.operation), op_attributes(task), operands, results, self.around)

    def _control(self, operands: list[Abstract], results: list[Declared]) -> Step:
        """Waits and joins hand their operands on where there is one for each result."""
        return _pairwise(operands, results, self.around, transfer_step)

    def _entered(self, operands: list[Abstract], results: list[Declared]) -> Step:
        """A region is judged by itself; its results are as declared, with a factor only where the operands have none."""
        plain = all(item.known and item.scale == ONE for item in operands)
        return Step(
            tuple(
                given(item, self.around) if plain else replace(given(item, self.around), scale=None) for item in results
            )
        )


def _with_declared_scales(step: Step, declared: Sequence[Declared]) -> Step:
    """Compare factors with those that values declare; a value that declares 1 declares nothing."""
    found: list[Abstract] = []
    deviations = list(step.deviations)
    for index, (value, item) in enumerate(zip(step.results, declared, strict=True)):
        if item.scale != ONE and value.known and value.scale not in (None, item.scale):
            deviations.append(Deviation(Kind.SCALE_FACTOR, (), None, index, (), str(value.scale), str(item.scale)))
            value = replace(value, scale=item.scale)
        found.append(value)
    return Step(tuple(found), tuple(deviations))


def _some_loose(operands: Sequence[Abstract], results: Sequence[Declared]) -> bool:
    return any(item.state.varying for item in (*operands, *results))


def _loose(state: State, around: Surroundings) -> bool:
    """True when a value is per rank along every axis."""
    return set(state.varying) == set(around.space.axes)


OneStep: TypeAlias = Callable[[Abstract, Declared, Surroundings], Step]


def _pairwise(operands: list[Abstract], results: list[Declared], around: Surroundings, step: OneStep) -> Step:
    """Operand i becomes result i; a task with other numbers of operands and results is not judged."""
    if len(operands) != len(results):
        return unknown_step(results, around)
    found: list[Abstract] = []
    deviations: list[Deviation] = []
    for index, (operand, result) in enumerate(zip(operands, results, strict=True)):
        one = step(operand, result, around)
        found += one.results
        deviations += [
            replace(item, operand=index if item.operand is not None else None, result=index) for item in one.deviations
        ]
    return Step(tuple(found), tuple(deviations))


def output_deviations(flow: Flow, around: Surroundings) -> list[tuple[int, Deviation]]:
    """Outputs that are still pending or scaled, by position among the outputs."""
    found: list[tuple[int, Deviation]] = []
    for index, identifier in enumerate(flow.scope.outputs):
        value = flow.values.get(identifier)
        if value is None or not value.known:
            continue
        if value.state.partial:
            op = value.state.op
            found.append((index, Deviation(Kind.OUTPUT, value.state.partial, found=op.value if op is not None else "")))
    return found
