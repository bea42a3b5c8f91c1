"""From a program and its extents to a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dtir.ir import (
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    LocalCompute,
    RankRange,
    Scalar,
    ValueId,
    substitute,
)
from dtir.ops import find_op
from dtir.verify.value.case import Case, CaseTask, CaseValue, Shape, case_task, case_value
from dtir.verify.value.grid import Grid

Ranks = tuple[int, ...]


class NotConcrete(Exception):
    """The program cannot be given concrete sizes; the message says why."""


def grid_of(program: DistributedTaskIR) -> Grid:
    """The mesh of a program."""
    return Grid(program.mesh.axis_names, program.mesh.shape)


def concrete_shape(value: DistributedValue, bindings: Mapping[str, int | float]) -> Shape:
    """A value's shape with symbols bound.

    Raises:
        NotConcrete: a symbol stays free, or an extent is no whole number.
    """
    return tuple(concrete_extent(extent, bindings) for extent in value.type.shape)


def concrete_extent(extent: Scalar, bindings: Mapping[str, int | float]) -> int:
    """An extent as a whole number.

    Raises:
        NotConcrete: it is none.
    """
    if isinstance(extent, int):
        return extent
    try:
        found = substitute(extent, bindings)
    except (ValueError, ZeroDivisionError, TypeError) as error:
        raise NotConcrete(f"extent {extent} cannot be bound: {error}") from error
    if isinstance(found, (int, float)) and found == int(found) and found >= 0:
        return int(found)
    raise NotConcrete(f"extent {extent} is no whole number")


def build_case(
    program: DistributedTaskIR,
    grid: Grid,
    shapes: Mapping[ValueId, Shape],
    *,
    ranks: Callable[[tuple[int, ...] | RankRange], Ranks] = tuple,
    reduced: str = "",
) -> Case:
    """The case of a program.

    Args:
        shapes: a concrete shape for every value of the program and of its oracle.
        ranks: what a rank set of the program is on `grid`.
        reduced: how the case is smaller than the program, in words; empty when it is not.
    """
    values: dict[ValueId, CaseValue] = {}
    for index, value in enumerate(program.values):
        values[value.id] = case_value(value, index, shapes[value.id], ranks(value.owners))
    oracle = program.oracle
    return Case(
        grid,
        values,
        tuple(_task(task, index, grid, ranks) for index, task in enumerate(program.tasks)),
        program.inputs,
        program.outputs,
        None if oracle is None else tuple(_task(task, index, grid, ranks) for index, task in enumerate(oracle.tasks)),
        {} if oracle is None else {value.id: shapes[value.id] for value in oracle.values},
        reduced,
    )


def _task(
    task: DistributedTask, index: int, grid: Grid, ranks: Callable[[tuple[int, ...] | RankRange], Ranks]
) -> CaseTask:
    operator = find_op(task.operation) if isinstance(task.body, LocalCompute) else None
    return case_task(task, index, grid, operator, ranks(task.ranks))
