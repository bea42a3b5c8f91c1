"""Bytes that a run in several processes puts on the wire, by plan: ranks of one process exchange in memory.

For messages of our own the number is exact; for a collective of the library it is the least that any algorithm sends,
so that what its algorithm sends beyond that is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dtir.execute.backends.mpi_layout import GroupLayout, Issued, Way, issued_by_group, way_of
from dtir.execute.backends.mpi_prepare import held_shape, operand_of
from dtir.execute.binding import Binding
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.steps import ExecPlan, ScopePlan, Slot, Step


def planned_wire(plan: ExecPlan, binding: Binding) -> dict[int, Issued]:
    """What one execution of every communication step sends, by index of the step."""
    process_of = tuple(seat.process for seat in binding.seats)
    found: dict[int, Issued] = {}
    for scope in plan.scopes:
        for step in scope.steps:
            if step.exchange is not None:
                found[step.index] = _exchange(scope, step, process_of)
            elif step.moves:
                found[step.index] = _moves(scope, step, process_of)
    return found


def _exchange(scope: ScopePlan, step: Step, process_of: Sequence[int]) -> Issued:
    request = step.exchange
    assert request is not None
    slots = [scope.slots[number] for number in step.inputs]
    sent: dict[int, int] = {}
    exact = True
    for number, group in enumerate(request.groups):
        layout = GroupLayout.of(group, process_of)
        operands = [operand_of(slot, group) for slot in slots]
        way = way_of(request, layout, operands, step.algorithm, number)
        exact = exact and way is not Way.LIBRARY
        _add(sent, issued_by_group(request, layout, operands, way, number))
    for source, target in request.pairs:
        if process_of[source] != process_of[target]:
            _add(sent, {process_of[source]: sum(_nbytes(slot, source) for slot in slots)})
    return Issued({process: size for process, size in sent.items() if size}, exact)


def _moves(scope: ScopePlan, step: Step, process_of: Sequence[int]) -> Issued:
    sent: dict[int, int] = {}
    for place, moves in enumerate(step.moves):
        item = numpy_dtype(scope.slots[step.inputs[place]].value.type.dtype).itemsize
        for move in moves.moves:
            source = process_of[move.source]
            if source != process_of[move.destination]:
                elements = 1
                for start, stop in move.source_box:
                    elements *= stop - start
                _add(sent, {source: elements * item})
    return Issued({process: size for process, size in sent.items() if size}, True)


def _nbytes(slot: Slot, rank: int) -> int:
    shape = held_shape(slot, rank)
    return int(np.prod(shape, dtype=np.int64)) * numpy_dtype(slot.value.type.dtype).itemsize


def _add(total: dict[int, int], more: Mapping[int, int]) -> None:
    for process, size in more.items():
        total[process] = total.get(process, 0) + size
