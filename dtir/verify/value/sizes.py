"""Choosing the sizes of a run."""

from __future__ import annotations

from dtir.ir import DistributedTaskIR, ValueId
from dtir.verify.value.build import build_case, concrete_shape, grid_of
from dtir.verify.value.case import Case, Shape


def choose_case(program: DistributedTaskIR) -> Case:
    """The case to run."""
    oracle = program.oracle.values if program.oracle is not None else ()
    shapes: dict[ValueId, Shape] = {
        value.id: concrete_shape(value, program.bindings) for value in (*program.values, *oracle)
    }
    return build_case(program, grid_of(program), shapes)
