"""Choosing the sizes of a run: as written where that is small, else smaller extents, else a smaller mesh, else a refusal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dtir.ir import DistributedTaskIR, DistributedValue, ValueId
from dtir.verify.value.build import build_case, concrete_shape, grid_of
from dtir.verify.value.case import Case, Shape
from dtir.verify.value.grid import Grid
from dtir.verify.value.locally import TooLarge
from dtir.verify.value.meshes import MeshReducer
from dtir.verify.value.shrink import Shrinker
from dtir.verify.value.symbols import bind_symbols

MOST_ELEMENTS = 4_000_000
"""Elements of all values, undivided and on every owner, of a run."""

MOST_ARRAYS = 60_000
"""Local arrays of a run: owners of all values together."""


def choose_case(program: DistributedTaskIR) -> Case:
    """The case to run: the program itself, or one of the same form with smaller sizes.

    Raises:
        NotConcrete: an extent has no value.
        TooLarge: no form of it is small enough.
    """
    values = _values(program)
    grid = grid_of(program)
    reducer: MeshReducer | None = None
    arrays = sum(len(value.owners) for value in program.values)
    if arrays > MOST_ARRAYS:
        reducer = MeshReducer(program)
        grid = reducer.grid
        arrays = sum(reducer.count(value.owners) for value in program.values) if reducer.reducible else arrays
        if arrays > MOST_ARRAYS:
            raise TooLarge(
                f"the ranks hold {arrays} local arrays, more than {MOST_ARRAYS}, and the mesh cannot be reduced"
            )
    bindings = bind_symbols(program, grid, values)
    shapes = {value.id: concrete_shape(value, bindings) for value in values}
    reduced = reducer.words() if reducer is not None else ""
    if reducer is not None or _elements(values, shapes, grid) > MOST_ELEMENTS:
        smaller = _shrunk(program, values, shapes, grid)
        if smaller != shapes:
            reduced = f"{reduced}, extents reduced" if reduced else "extents reduced"
        shapes = smaller
        elements = _elements(values, shapes, grid)
        if elements > MOST_ELEMENTS:
            raise TooLarge(f"the smallest run of it has {elements} elements, more than {MOST_ELEMENTS}")
    return build_case(program, grid, shapes, ranks=reducer.ranks if reducer is not None else tuple, reduced=reduced)


def _values(program: DistributedTaskIR) -> list[DistributedValue]:
    known = {value.id: value for value in program.oracle.values} if program.oracle is not None else {}
    known.update((value.id, value) for value in program.values)
    return list(known.values())


def _shrunk(
    program: DistributedTaskIR, values: list[DistributedValue], shapes: Mapping[ValueId, Shape], grid: Grid
) -> dict[ValueId, Shape]:
    shrinker = Shrinker(grid, values, shapes)
    oracle = program.oracle.tasks if program.oracle is not None else ()
    for task in (*program.tasks, *oracle):
        shrinker.add(task, explicit_oracle=program.oracle is not None)
    return shrinker.choose()


def _elements(values: list[DistributedValue], shapes: Mapping[ValueId, Shape], grid: Grid) -> int:
    """Elements of the undivided values, and of the largest block on each owner (on each rank of the mesh, at most)."""
    total = 0
    for value in values:
        shape = shapes[value.id]
        sizes = {item.dim: max(item.sizes) for item in value.sharding.sizes}
        local = math.prod(
            sizes[dim] if dim in sizes else -(-extent // grid.members(axes))
            for dim, (extent, axes) in enumerate(zip(shape, value.sharding.dimension_axes, strict=True))
        )
        local = max([local, *(math.prod(item.shape) for item in value.local_shapes)])
        total += math.prod(shape) + local * min(len(value.owners), grid.count)
    return total
