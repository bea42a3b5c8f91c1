"""The undivided program: what a run is compared with, where the program says enough for it.

Local tasks run once on whole arrays; communication changes where things are and not what they are, so that it and tasks
that exist only in the divided program (`intro`) are the identity. An explicit undivided program (`oracle`) is run instead
where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dtir.execute.dtypes import Array, numpy_dtype, unit_roundoff
from dtir.execute.local import UnknownOperation, run_operator, task_seed
from dtir.execute.placement import PlacementError, concrete
from dtir.execute.steps import ExecPlan
from dtir.ir.ids import ValueId
from dtir.ir.tasks import Branch, Call, DistributedTask, LocalCompute, Loop
from dtir.ir.values import DistributedValue
from dtir.ops import OpCall, OpDef, OpError, Place, SourceKind, find_op, op_attributes


@dataclass(frozen=True, slots=True)
class Undivided:
    """What the undivided program computes.

    Args:
        values: arrays by value, as far as they are known.
        steps: how many local tasks lie behind each (for the tolerance).
        reason: why some value is not known; empty when all are.
    """

    values: Mapping[ValueId, Array] = field(repr=False)
    steps: Mapping[ValueId, int] = field(repr=False)
    reason: str = ""


def run_undivided(plan: ExecPlan, inputs: Mapping[int, Array], seed: int) -> Undivided:
    """Run the undivided program.

    Args:
        inputs: undivided inputs, by number.
        seed: root of all random numbers.
    """
    program = plan.program
    declared: dict[ValueId, DistributedValue] = {value.id: value for value in program.values}
    tasks: Sequence[DistributedTask] = tuple(step.task for step in plan.main.steps)
    if program.oracle is not None:
        declared.update({value.id: value for value in program.oracle.values})
        tasks = program.oracle.tasks
    known: dict[ValueId, Array] = {program.inputs[number]: array for number, array in inputs.items()}
    behind: dict[ValueId, int] = dict.fromkeys(known, 0)
    reason = ""
    for task in tasks:
        operands = task.operand_values
        if any(operand not in known for operand in operands):
            continue
        depth = max((behind[operand] for operand in operands), default=0)
        if isinstance(task.body, (Call, Loop, Branch)):
            reason = reason or f"{task.name or task.id} is control flow"
            continue
        if not isinstance(task.body, LocalCompute) or task.attributes.get("op.intro") is True:
            for output, operand in zip(task.outputs, operands, strict=False):
                known.setdefault(output, known[operand])
                behind.setdefault(output, depth)
            continue
        try:
            made = _whole(task, [known[operand] for operand in operands], declared, plan, seed)
        except (OpError, UnknownOperation, PlacementError, ValueError, IndexError) as error:
            reason = reason or f"{task.name or task.id}: {error}"
            continue
        for output, array in zip(task.outputs, made, strict=False):
            known.setdefault(output, array)
            behind.setdefault(output, depth + 1)
    return Undivided(known, behind, reason)


def _whole(
    task: DistributedTask,
    operands: Sequence[Array],
    declared: Mapping[ValueId, DistributedValue],
    plan: ExecPlan,
    seed: int,
) -> tuple[Array, ...]:
    operator = find_op(task.operation)
    if operator is None:
        raise UnknownOperation(f"operator {task.operation} is not known")
    if operator.source is SourceKind.RANDOM:
        raise UnknownOperation(f"{task.operation} draws what it likes")
    results = [declared[output] for output in task.outputs]
    shapes = tuple(tuple(concrete(extent, plan.program.bindings) for extent in value.type.shape) for value in results)
    call = OpCall(tuple(array.shape for array in operands), shapes, op_attributes(task))
    given = _framed(operator, call, list(operands))
    dtypes = [value.type.dtype for value in results]
    return run_operator(np, operator, call, given, Place(seed=task_seed(seed, task)), dtypes)


def _framed(operator: OpDef, call: OpCall, arrays: list[Array]) -> list[Array]:
    """A stencil reads around every element: the whole array is a ring in every dim."""
    reach = operator.reach(call)
    if reach is not None and arrays:
        for at in reach.operands:
            arrays[at] = np.pad(arrays[at], [(radius, radius) for radius in reach.radius], mode="wrap")
    return arrays


def tolerance(value: DistributedValue, steps: int, terms: int, whole: Array) -> float:
    """How far a divided run may be from the undivided one.

    Both round every local step once and sum in their own order: with u the unit roundoff of the type, about
    ``(2 * steps + terms) * u`` of the greatest element, sixteen times that for what intermediate results were larger.
    Exact types must agree.
    """
    roundoff = unit_roundoff(numpy_dtype(value.type.dtype))
    if roundoff == 0.0:
        return 0.0
    finite = np.abs(np.nan_to_num(np.asarray(whole, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0))
    return 16 * roundoff * (2 * steps + math.sqrt(terms) + 2) * float(finite.max(initial=0.0))
