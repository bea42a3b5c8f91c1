"""Local steps made ready to run: an HLO operation on all ranks at once, or an operator of `dtir.ops` rank by rank."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.dtypes import Array, is_token, needs_float32, numpy_dtype
from dtir.execute.hlo import ArrayType, Context, HloCall, evaluate, is_known
from dtir.execute.hlo.attributes import decode
from dtir.execute.hlo.convert import by_value
from dtir.execute.placement import Placement
from dtir.execute.steps import ExecPlan, ScopePlan, Slot, Step, is_relayout
from dtir.execute.values import Held, Pieces, Slab, at, is_shared, shared, stack
from dtir.ir.tasks import Control, DistributedTask
from dtir.ops import Floats, OpCall, OpDef, Place, find_op, op_attributes

HLO = "hlo"
CHLO = "chlo"
"""The operations that StableHLO's clients have beyond it: those that are known are evaluated as HLO's are."""

LocalOp: TypeAlias = Callable[["RunContext", Sequence[Held], Sequence[int]], tuple[Held, ...]]
"""Runs a local step: context, operands of the ranks, ranks."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What local steps may know of the run.

    Args:
        hlo: context of HLO operations, for all ranks of the process.
        seed: root of all random numbers.
    """

    hlo: Context
    seed: int = 0

    @property
    def xp(self) -> Any:
        """The array module."""
        return self.hlo.xp


class UnknownOperation(ValueError):
    """No evaluation is known for the operation of a task."""


_PER_RANK = frozenset({"partition-id", "replica-id", "rng"})
"""Operations whose results differ from rank to rank though their operands do not."""


def compile_step(plan: ExecPlan, scope: ScopePlan, step: Step) -> LocalOp:
    """The function of a local step.

    Raises:
        UnknownOperation: there is none; the message names the operation.
        KeyError: an attribute lacks a part.
    """
    inputs = [scope.slots[number] for number in step.inputs]
    outputs = [scope.slots[number] for number in step.outputs]
    if isinstance(step.task.body, Control):
        return _control(inputs, outputs)
    operation = step.task.operation
    if operation.dialect in (HLO, CHLO):
        from dtir.execute.manual import manual_boundary

        boundary = manual_boundary(plan, step, inputs, outputs)
        return boundary if boundary is not None else _hlo(step, inputs, outputs)
    if is_relayout(plan.form, step.task):
        return _passed_on
    operator = find_op(operation)
    if operator is None or operator.run is None:
        raise UnknownOperation(str(operation))
    return _Core(operator, step, plan, inputs, outputs).run


def _passed_on(context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
    """A whole value in another layout is the same value."""
    del context, ranks
    return tuple(operands)


# -- HLO ----------------------------------------------------------------------------------------------------------------


def _array_type(slot: Slot) -> ArrayType:
    kind = slot.value.type
    shape = slot.shape
    if shape is None:
        raise UnknownOperation(f"an HLO operation on {slot.name}, whose shape differs from rank to rank")
    return ArrayType(kind.dtype, shape, kind.layout or ())


def _hlo(step: Step, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> LocalOp:
    task = step.task
    call = HloCall(
        task.operation.name.replace("_", "-"),
        tuple(_array_type(slot) for slot in inputs),
        tuple(_array_type(slot) for slot in outputs),
        MappingProxyType(decode(task.attributes)),
        step.name,
    )
    if not is_known(call):
        target = call.attributes.get("custom_call_target")
        raise UnknownOperation(f"{task.operation}" + (f" to {target}" if target else ""))
    per_rank = call.opcode in _PER_RANK

    def run(context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
        slabs = [operand for operand in operands if isinstance(operand, Slab)]
        if len(slabs) != len(operands):
            raise UnknownOperation(f"{task.operation} on arrays that differ in shape from rank to rank")
        arrays = [slab.array for slab in slabs]
        hlo = context.hlo
        if len(ranks) > 1 and not per_rank and all(is_shared(slab) or not slab.array.size for slab in slabs):
            # The same operands everywhere give the same results: computed once, seen by all.
            results = evaluate(_for_ranks(hlo, ranks[:1]), call, [array[:1] for array in arrays])
            return tuple(shared(ranks, result[0], hlo.xp) for result in results)
        results = evaluate(_for_ranks(hlo, ranks), call, arrays)
        return tuple(Slab(ranks, result) for result in results)

    return run


def _for_ranks(context: Context, ranks: Sequence[int]) -> Context:
    if context.ranks is ranks:
        return context
    return Context(context.xp, ranks, context.devices, context.apply, context.reducer, context.seed)


def _control(inputs: Sequence[Slot], outputs: Sequence[Slot]) -> LocalOp:
    """A control task hands its inputs on: results take the last inputs of their type, tokens and counters are zeros."""
    sources: list[int | None] = []
    free = list(range(len(inputs)))
    for slot in reversed(outputs):
        kind = slot.value.type
        found = None
        if not is_token(kind.dtype):
            same = [n for n in free if inputs[n].value.type.dtype == kind.dtype and inputs[n].shape == slot.shape]
            found = same[-1] if same else None
        if found is not None:
            free.remove(found)
        sources.append(found)
    sources.reverse()

    def run(context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
        results: list[Held] = []
        for source, slot in zip(sources, outputs, strict=True):
            if source is not None:
                results.append(operands[source])
            else:
                zero = context.xp.zeros(slot.shape or (), numpy_dtype(slot.value.type.dtype))
                results.append(shared(ranks, zero, context.xp))
        return tuple(results)

    return run


# -- operators of dtir.ops ------------------------------------------------------------------------------------------------


class _Core:
    """An operator of `dtir.ops` on local arrays."""

    def __init__(
        self,
        operator: OpDef,
        step: Step,
        plan: ExecPlan,
        inputs: Sequence[Slot],
        outputs: Sequence[Slot],
    ) -> None:
        self._operator = operator
        self._task = step.task
        self._attributes = op_attributes(step.task)
        self._experts = step.experts
        self._inputs = inputs
        self._outputs = outputs
        mesh = plan.program.mesh
        self._mesh = mesh
        self._sizes = MappingProxyType({axis.name: axis.size for axis in mesh.axes})

    def run(self, context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
        """Evaluate rank by rank."""
        rows = [self._one(context, [at(operand, rank) for operand in operands], rank) for rank in ranks]
        return tuple(stack(ranks, [row[number] for row in rows], context.xp) for number in range(len(self._outputs)))

    def _one(self, context: RunContext, arrays: Sequence[Array], rank: int) -> tuple[Array, ...]:
        xp = context.xp
        boxes = [slot.placement.box(rank) for slot in self._outputs]
        results = tuple(tuple(stop - start for start, stop in box) for box in boxes)
        place = Place(
            rank,
            tuple(tuple(start for start, _ in box) for box in boxes),
            MappingProxyType(dict(zip(self._mesh.axis_names, self._mesh.coordinates(rank), strict=True))),
            self._sizes,
            task_seed(context.seed, self._task),
        )
        shapes = tuple(tuple(stop - start for start, stop in slot.placement.box(rank)) for slot in self._inputs)
        attributes = self._attributes
        if rank in self._experts and "route" in attributes:
            # A route names the experts of all tokens; a rank needs those of the rows that it received.
            attributes = {**attributes, "route": self._experts[rank]}
        call = OpCall(shapes, results, attributes)
        given = [
            _visible(xp, array, slot.placement, rank, self._frame(call, number))
            for number, (array, slot) in enumerate(zip(arrays, self._inputs, strict=True))
        ]
        found = run_operator(xp, self._operator, call, given, place, [slot.value.type.dtype for slot in self._outputs])
        return tuple(_framed(xp, array, slot.placement, rank) for array, slot in zip(found, self._outputs, strict=True))

    def _frame(self, call: OpCall, number: int) -> tuple[int, ...] | None:
        """How many ghosts an operand is given on each side: as far as the operator reads, all of them if it asks for them."""
        if call.reads_ghosts:
            return None
        reach = self._operator.reach(call)
        return reach.radius if reach is not None and number in reach.operands else (0,) * len(call.operands[number])


def _visible(xp: Any, array: Array, placement: Placement, rank: int, frame: tuple[int, ...] | None) -> Array:
    """What an operator sees of an operand: its block with a frame of ghosts; zeros where a split dim has none."""
    if frame is None:
        return array
    if not placement.has_ghosts and not any(frame) and placement.local_shape(rank) == array.shape:
        inside = placement.interior(rank)
        return (
            array
            if all(cut.stop - cut.start == n for cut, n in zip(inside, array.shape, strict=True))
            else array[inside]
        )
    index: list[slice] = []
    margins: list[tuple[int, int]] = []
    for cut, reach, extent in zip(placement.interior(rank), frame, array.shape, strict=True):
        start, stop = cut.start - reach, cut.stop + reach
        margins.append((max(0, -start), max(0, stop - extent)))
        index.append(slice(max(0, start), min(extent, stop)))
    seen = array[tuple(index)]
    if not any(any(margin) for margin in margins):
        return seen
    # A dim that is not split is all here: beyond its end comes its beginning. Along a split one nobody filled these ghosts.
    whole = [placement.shards(dim) == 1 for dim in range(len(margins))]
    around = [margin if here else (0, 0) for margin, here in zip(margins, whole, strict=True)]
    beyond = [(0, 0) if here else margin for margin, here in zip(margins, whole, strict=True)]
    return xp.pad(xp.pad(seen, around, mode="wrap"), beyond)


def _framed(xp: Any, array: Array, placement: Placement, rank: int) -> Array:
    """A result as the rank holds it: ghosts and padding as zeros around it."""
    shape = placement.local_shape(rank)
    if array.shape == shape:
        return array
    framed = xp.zeros(shape, array.dtype)
    inside = placement.interior(rank)
    if tuple(cut.stop - cut.start for cut in inside) != array.shape:
        return array  # another shape than declared: the check of results names it
    framed[inside] = array
    return framed


def task_seed(seed: int, task: DistributedTask) -> int:
    """A seed of its own for every task, the same on every rank and in the undivided program."""
    return zlib.crc32(f"{seed}:{task.name}:{task.id}".encode())


def run_operator(
    xp: Any, operator: OpDef, call: OpCall, arrays: Sequence[Array], place: Place, dtypes: Sequence[str]
) -> tuple[Array, ...]:
    """Evaluate an operator: 16-bit floats and less in float32, results rounded once to their declared types.

    Raises:
        OpError: the operands do not fit the operator.
        UnknownOperation: it has a rule but no evaluation.
    """
    if operator.run is None:
        raise UnknownOperation(operator.name)
    operator.check_arity(len(arrays))
    lifted = [array.astype(xp.float32) if needs_float32(array.dtype) else array for array in arrays]
    with np.errstate(all="ignore"):
        found = operator.run(Floats(xp), lifted, call, place)
        return tuple(
            array if array.dtype == numpy_dtype(name) else by_value(xp, xp.asarray(array), name)
            for array, name in zip(found, dtypes, strict=True)
        )


def check_shapes(step: Step, outputs: Sequence[Slot], found: Sequence[Held]) -> None:
    """Raise unless the results have the shapes that the program declares.

    Raises:
        ValueError: with both shapes.
    """
    for slot, held in zip(outputs, found, strict=True):
        if isinstance(held, Slab) and slot.shape is not None:
            if held.array.shape[1:] != slot.shape:
                raise ValueError(f"{slot.name} comes out as {list(held.array.shape[1:])}, declared {list(slot.shape)}")
            continue
        rows = held.arrays if isinstance(held, Pieces) else held.array
        for rank, array in zip(held.ranks, rows, strict=True):
            wanted = slot.placement.local_shape(rank)
            if array.shape != wanted:
                raise ValueError(
                    f"{slot.name} comes out as {list(array.shape)} on rank {rank}, declared {list(wanted)}"
                )
