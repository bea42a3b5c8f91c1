"""Computations that are applied to elements, or to two arrays in a reduction: regions of the plan as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtir.execute.dtypes import Array
from dtir.execute.hlo import Context, HloError
from dtir.execute.local import LocalOp, RunContext, compile_step
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.execute.values import Held, Slab
from dtir.ir.ids import RegionId
from dtir.ir.tasks import Call


class Applied:
    """The regions of a plan, evaluated on instances: every element of the operands is one.

    Args:
        plan: the plan.
        local: local steps that are compiled already, by index; others are added.
        xp: the array module.
        seed: root of all random numbers.
    """

    def __init__(self, plan: ExecPlan, local: dict[int, LocalOp], xp: Any, seed: int) -> None:
        self._plan = plan
        self._local = local
        self._xp = xp
        self._reducers: dict[str, str | None] = {}
        self._context = RunContext(Context(xp, (), None, self.apply, self.reducer, seed), seed)

    def apply(self, name: str, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a region by its name.

        Raises:
            HloError: there is none, or it does what no element can.
        """
        if name not in self._plan.by_name:
            raise HloError(f"there is no computation {name}")
        return self._region(self._plan.by_name[name], operands)

    def _region(self, region: RegionId, operands: Sequence[Array]) -> tuple[Array, ...]:
        scope = self._plan.regions[region]
        count = operands[0].shape[0]
        ranks = range(count)
        values: dict[int, Held] = {
            number: Slab(ranks, operand) for number, operand in zip(scope.inputs, operands, strict=True)
        }
        context = self._context
        for step in scope.steps:
            if step.kind is not StepKind.LOCAL:
                self._control(step, values, ranks)
            else:
                given = [values[number] for number in step.inputs]
                for number, held in zip(step.outputs, self._local_of(scope, step)(context, given, ranks), strict=True):
                    values[number] = held
            for number in step.frees:
                values.pop(number, None)
        return tuple(_instances(values[number]) for number in scope.outputs)

    def _local_of(self, scope: ScopePlan, step: Step) -> LocalOp:
        found = self._local.get(step.index)
        if found is None:  # local steps are skipped, but a reduction across ranks needs its computation
            found = self._local[step.index] = compile_step(self._plan, scope, step)
        return found

    def _control(self, step: Step, values: dict[int, Held], ranks: Sequence[int]) -> None:
        """Calls inside an applied computation; loops and branches by element are not offered."""
        body = step.task.body
        if not isinstance(body, Call):
            raise HloError(f"{step.task.operation} inside a computation that is applied to elements is not executed")
        given = [_instances(values[number]) for number in step.inputs]
        for number, array in zip(step.outputs, self._region(body.region, given), strict=True):
            values[number] = Slab(ranks, array)

    def combine(self, region: RegionId) -> Callable[[Array, Array], Array]:
        """A custom reduction of two arrays, element by element."""

        def combine(left: Array, right: Array) -> Array:
            flat = (self._xp.ascontiguousarray(left).reshape(-1), self._xp.ascontiguousarray(right).reshape(-1))
            (found,) = self._region(region, flat)
            return self._xp.broadcast_to(found, flat[0].shape).reshape(left.shape)

        return combine

    def reducer(self, name: str) -> str | None:
        """The opcode of a region that is one operation (see `Context.reducer`)."""
        if name not in self._reducers:
            self._reducers[name] = _simple(self._plan, name)
        return self._reducers[name]


def _instances(held: Held) -> Array:
    assert isinstance(held, Slab)
    return held.array


_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


def _simple(plan: ExecPlan, name: str) -> str | None:
    """The opcode of a computation that is one operation on its first two parameters (see `Context.reducer`)."""
    region = plan.by_name.get(name)
    scope = plan.regions.get(region) if region is not None else None
    if scope is None or len(scope.steps) != 1 or len(scope.inputs) < 2 or len(scope.outputs) != 1:
        return None
    (step,) = scope.steps
    operation = step.task.operation
    if operation.dialect != "hlo" or step.outputs != scope.outputs or len(step.inputs) != 2:
        return None
    first, second = scope.inputs[:2]
    in_order = step.inputs == (first, second)
    if operation.name in _COMMUTATIVE:
        return operation.name if in_order or step.inputs == (second, first) else None
    if operation.name == "compare" and in_order:
        kind = step.task.attributes.get("hlo.type")
        direction = step.task.attributes.get("hlo.direction")
        return f"compare.{direction}.{kind}" if kind else f"compare.{direction}"
    return None
