"""The work of the tasks of one program, rank by rank: what it states, what operators say, what HLO operations need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtir.analysis.divisibility import bound
from dtir.cost.hlo_work import FREE_OPS, HloUse, hlo_flops, hlo_work, read_bytes, written_bytes
from dtir.cost.sizes import LocalSizes
from dtir.cost.work import FREE, Number, Typed, Work, typed, unknown
from dtir.ir.ids import RegionId, ValueId
from dtir.ir.program import DistributedTaskIR, Scope
from dtir.ir.tasks import Call, Control, DistributedTask, LocalCompute, Loop, Region
from dtir.ir.transformer import (
    EngineKind,
    TransformerInferenceDistributedTaskSemantic,
    TransformerInferenceProgramSemantic,
    TransformerTrainingDistributedTaskSemantic,
    TransformerTrainingProgramSemantic,
)
from dtir.ir.values import DistributedValue
from dtir.ops import Fold, Labels, OpCall, OpDef, OpError, find_op, op_attributes

HLO = "hlo"
FUSION = "fusion"

_PASS_THROUGH = FREE_OPS - {"constant", "parameter", "partition-id", "replica-id"}
"""Inside a fusion these hand their first operand on."""


def program_dtype(program: DistributedTaskIR) -> str | None:
    """The element type that a program states as a whole; None where it states none."""
    match program.semantic:
        case TransformerTrainingProgramSemantic(workload=workload):
            return workload.datatype
        case TransformerInferenceProgramSemantic(datatype=datatype):
            return datatype
        case _:
            return None


def is_fusion(task: DistributedTask) -> bool:
    """Whether a call is one kernel: its computation's intermediate values never reach memory."""
    return isinstance(task.body, Call) and task.operation.dialect == HLO and task.operation.name == FUSION


class TaskWork:
    """Work of tasks; regions that are applied or fused are looked at once."""

    def __init__(self, program: DistributedTaskIR, sizes: LocalSizes) -> None:
        self._program = program
        self._sizes = sizes
        self._dtype = program_dtype(program)
        self._regions: dict[RegionId, Region] = {region.id: region for region in program.regions}
        self._by_name: dict[str, Region] = {region.name: region for region in program.regions}
        self._values: dict[int, dict[ValueId, DistributedValue]] = {}
        self._flops: dict[RegionId, tuple[Number, Number] | str] = {}
        self._begun: set[RegionId] = set()
        self._known: dict[int, Typed] = {}

    def values_of(self, scope: Scope) -> Mapping[ValueId, DistributedValue]:
        """The values of a scope by id."""
        key = id(scope)
        if key not in self._values:
            self._values[key] = {value.id: value for value in scope.values}
        return self._values[key]

    def of(
        self,
        task: DistributedTask,
        inputs: Sequence[DistributedValue],
        outputs: Sequence[DistributedValue],
        rank: int,
    ) -> Work:
        """The work of a local task (or of a fusion) on one rank.

        Args:
            task: the task.
            inputs: its operands in operand order.
            outputs: its results.
            rank: the rank.
        """
        stated = self._stated(task)
        if stated is not None:
            return stated
        if isinstance(task.body, Control):
            return FREE
        operands = self._arrays(inputs, rank)
        results = self._arrays(outputs, rank)
        if operands is None or results is None:
            return unknown("a size is symbolic: bind it (--bind)")
        if task.operation.dialect == HLO:
            if is_fusion(task):
                assert isinstance(task.body, Call)
                return self._fusion(self._regions[task.body.region], operands, results, rank)
            return hlo_work(HloUse(task.operation.name, operands, results, task.attributes, self._applied))
        operator = find_op(task.operation)
        if operator is None:
            return unknown(f"operation {task.operation}")
        return self._operator(operator, task, operands, results)

    def _typed(
        self, names: Sequence[ValueId], values: Mapping[ValueId, DistributedValue], rank: int
    ) -> tuple[Typed, ...] | None:
        return self._arrays([values[name] for name in names], rank)

    def _arrays(self, values: Sequence[DistributedValue], rank: int) -> tuple[Typed, ...] | None:
        found: list[Typed] = []
        for value in values:
            key = id(value)
            known = self._known.get(key)
            if known is None:
                shape = self._sizes.shape(value, rank)
                if shape is None:
                    return None
                known = typed(shape, value.type.dtype)
                if self._sizes.is_uniform(value):
                    # By identity: the program keeps its values alive.
                    self._known[key] = known
            found.append(known)
        return tuple(found)

    # -- what the program states -----------------------------------------------------------------------------------------

    def _stated(self, task: DistributedTask) -> Work | None:
        semantic = task.semantic
        if not isinstance(
            semantic, (TransformerTrainingDistributedTaskSemantic, TransformerInferenceDistributedTaskSemantic)
        ):
            return None
        invocation = semantic.invocation
        work, matrix = invocation.work, invocation.engine is EngineKind.MATRIX
        return Work(
            work.operations if matrix else 0,
            0 if matrix else work.operations,
            work.read_bytes + work.write_bytes,
            self._dtype or "any",
            "work that the program states",
        )

    # -- operators -------------------------------------------------------------------------------------------------------

    def _operator(
        self, operator: OpDef, task: DistributedTask, operands: Sequence[Typed], results: Sequence[Typed]
    ) -> Work:
        call = OpCall(
            tuple(item.extents for item in operands), tuple(item.extents for item in results), op_attributes(task)
        )
        try:
            flops = operator.flops(call)
            matrix = _is_product(operator, call)
        except OpError as error:
            return unknown(f"operation {task.operation}: {error}")
        arrays = (*operands, *results)
        moved = sum([item.size_bytes for item in arrays])
        dtype = arrays[0].dtype if arrays else "f32"
        return Work(flops if matrix else 0, 0 if matrix else flops, moved, dtype, f"operator {task.operation}")

    # -- HLO computations ------------------------------------------------------------------------------------------------

    def _applied(self, name: str) -> Number | None:
        """Flops of one application of a computation."""
        region = self._by_name.get(name)
        if region is None:
            return None
        found = self._region_flops(region)
        return None if isinstance(found, str) else found[0] + found[1]

    def _region_flops(self, region: Region) -> tuple[Number, Number] | str:
        """Flops of a computation as a whole, its own calls and loops included."""
        if region.id in self._flops:
            return self._flops[region.id]
        if region.id in self._begun:
            return f"computation {region.name} enters itself"
        self._begun.add(region.id)
        matrix: Number = 0
        vector: Number = 0
        found: tuple[Number, Number] | str | None = None
        for task in region.tasks:
            part = self._task_flops(region, task)
            if isinstance(part, str):
                found = part
                break
            matrix, vector = matrix + part[0], vector + part[1]
        self._flops[region.id] = found if found is not None else (matrix, vector)
        return self._flops[region.id]

    def _task_flops(self, region: Region, task: DistributedTask) -> tuple[Number, Number] | str:
        match task.body:
            case LocalCompute():
                values = self.values_of(region)
                operands = self._typed(task.operand_values, values, 0)
                results = self._typed(task.outputs, values, 0)
                if operands is None or results is None:
                    return "a size is symbolic: bind it (--bind)"
                use = HloUse(task.operation.name, operands, results, task.attributes, self._applied)
                if task.operation.name == "custom-call":
                    work = hlo_work(use)
                    return work.unknown or (work.matrix_flops, work.vector_flops)
                return hlo_flops(use)
            case Control():
                return 0, 0
            case Call(region=inner):
                return self._region_flops(self._regions[inner])
            case Loop(body=inner, trip_count=trips) if trips is not None:
                found = self._region_flops(self._regions[inner])
                return found if isinstance(found, str) else (found[0] * trips, found[1] * trips)
            case _:
                return f"operation {task.operation} inside computation {region.name}"

    def _fusion(self, region: Region, operands: Sequence[Typed], results: Sequence[Typed], rank: int) -> Work:
        flops = self._region_flops(region)
        if isinstance(flops, str):
            return unknown(flops)
        read = sum(self._read(region, position, operand, rank) for position, operand in enumerate(operands))
        written = sum(self._written(region, position, result, rank) for position, result in enumerate(results))
        dtype = self._product_dtype(region, rank) if flops[0] else None
        first = (*operands, *results)
        return Work(flops[0], flops[1], read + written, dtype or (first[0].dtype if first else "f32"), "hlo.fusion")

    def _product_dtype(self, region: Region, rank: int) -> str | None:
        """The element type that the first matrix product of a fusion takes."""
        values = self.values_of(region)
        for task in region.tasks:
            if task.operation.name in ("dot", "convolution", "ragged-dot", "scaled-dot") and task.operand_values:
                return values[task.operand_values[0]].type.dtype
        return None

    def _read(self, region: Region, position: int, operand: Typed, rank: int) -> Number:
        """Bytes that a fusion reads of an operand: the sum over its uses, at most all of it."""
        values = self.values_of(region)
        views = {region.inputs[position]}
        whole = operand.size_bytes
        total: Number = 0
        for task in region.tasks:  # in order, so that a view is known before its uses
            names = task.operand_values
            if not views.intersection(names):
                continue
            if task.operation.name in _PASS_THROUGH:
                views.update(task.outputs)
                continue
            arrays, results = self._typed(names, values, rank), self._typed(task.outputs, values, rank)
            if arrays is None or results is None:
                return whole
            for place, name in enumerate(names):
                if name in views:
                    total += read_bytes(task.operation.name, place, arrays[place], results, arrays)
            if total >= whole:
                return whole
        return whole if views.intersection(region.outputs) else min(whole, total)

    def _written(self, region: Region, position: int, result: Typed, rank: int) -> Number:
        """Bytes that a fusion writes of a result: those of the update where it is made in place."""
        values = self.values_of(region)
        wanted = region.outputs[position]
        for task in reversed(region.tasks):
            if wanted not in task.outputs:
                continue
            if task.operation.name in _PASS_THROUGH and task.operand_values:
                wanted = task.operand_values[0]
                continue
            arrays = self._typed(task.operand_values, values, rank)
            return result.size_bytes if arrays is None else written_bytes(task.operation.name, result, arrays)
        return result.size_bytes


def _is_product(operator: OpDef, call: OpCall) -> bool:
    """Whether a call is a matrix product: a label that several operands carry is summed."""
    rule: Any = operator.labels(call)
    if not isinstance(rule, Labels):
        return False
    return any(
        fold is Fold.SUM and sum(label in operand for operand in rule.operands) > 1
        for label, fold in rule.folds.items()
    )


def message_number(quantity: Any, bindings: Mapping[str, int | float]) -> int | float | None:
    """A number of bytes with its symbols bound; None while it is symbolic."""
    value = bound(quantity, bindings)
    return value if isinstance(value, (int, float)) else None
