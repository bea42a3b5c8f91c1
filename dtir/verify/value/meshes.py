"""A smaller mesh for a program over more ranks than are run: axes that the program uses only as a whole get small prime sizes.

An axis keeps its size when anything names a coordinate of it: a confined value, a root, a pair of a permute, a listed group,
sizes of shards, a rank of its own. A constant that may stand for an axis size (a declared scale, an introduced factor) keeps
all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtir.ir import (
    Broadcast,
    Collective,
    CollectivePermute,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    PointToPoint,
    RankRange,
    Reshard,
)
from dtir.ops import Degrees, Factor, OpCall, OpError, find_op, op_attributes
from dtir.verify.value.build import grid_of
from dtir.verify.value.grid import Grid

PRIMES = (2, 3, 5, 7)
"""Sizes of reduced axes, pairwise coprime: a wrong factor names its axes."""

MOST_LISTED = 1_000_000
"""Ranks of one set that are looked at one by one; a program that lists more is not reduced."""

RankSet = tuple[int, ...] | RankRange


class MeshReducer:
    """Which axes of a program may be smaller, and what its rank sets become."""

    def __init__(self, program: DistributedTaskIR) -> None:
        self.program = program
        self.full = grid_of(program)
        self.fixed: set[str] = set()
        self._coordinates: dict[RankSet, dict[str, int] | None] = {}
        self.reducible = self._look()
        self.grid = self._smaller() if self.reducible else self.full

    def _look(self) -> bool:
        """Fill `fixed`; False when nothing may change."""
        program = self.program
        if any(value.local_shapes or value.valid_on is not None for value in program.values):
            return False
        for value in program.values:
            if not self._look_at_value(value):
                return False
        return all(self._look_at_task(task) for task in program.tasks)

    def _look_at_value(self, value: DistributedValue) -> bool:
        if (value.scale.numerator, value.scale.denominator) != (1, 1):
            return False
        sharding = value.sharding
        for item in sharding.sizes:
            self.fixed.update(sharding.dimension_axes[item.dim] if item.dim < len(sharding.dimension_axes) else ())
        self.fixed.update(item.axis for item in sharding.at)
        return self._look_at_ranks(value.owners)

    def _look_at_ranks(self, ranks: RankSet) -> bool:
        found = self.coordinates(ranks)
        if found is None:
            return False
        self.fixed.update(found)
        return True

    def _look_at_task(self, task: DistributedTask) -> bool:
        if (
            "c_by_rank" in op_attributes(task)
            or "send_splits" in op_attributes(task)
            or "recv_splits" in op_attributes(task)
        ):
            return False
        match task.body:
            case PointToPoint():
                return False
            case Collective(spec=spec):
                if isinstance(spec, CollectivePermute) or spec.groups or not spec.axes:
                    return False
                if isinstance(spec, Broadcast):
                    self.fixed.update(spec.axes)
            case Reshard(regions=regions):
                if regions:
                    return False
            case _:
                if self._introduces_factor(task):
                    return False
        return self._look_at_ranks(task.ranks)

    def _introduces_factor(self, task: DistributedTask) -> bool:
        operator = find_op(task.operation)
        if operator is None:
            return False
        if op_attributes(task).get("intro") is True:
            return True
        shapes = tuple(() for _ in task.operand_values)
        try:
            law = operator.scale(OpCall(shapes, ((),) * len(task.outputs), op_attributes(task)))
        except OpError:
            return False
        return isinstance(law, Factor) and not isinstance(law, Degrees)

    def coordinates(self, ranks: RankSet) -> dict[str, int] | None:
        """The axes on which a rank set has one coordinate, it being whole on all others; None when it is no such set."""
        if len(ranks) == self.full.count:
            return {}
        if ranks not in self._coordinates:
            self._coordinates[ranks] = self._find(ranks) if len(ranks) <= MOST_LISTED else None
        return self._coordinates[ranks]

    def _find(self, ranks: Sequence[int]) -> dict[str, int] | None:
        found: dict[str, int] = {}
        count = 1
        for axis in self.full.axes:
            places = {self.full.coordinate(rank, axis) for rank in ranks}
            if len(places) == 1 and self.full.size[axis] > 1:
                found[axis] = places.pop()
            elif len(places) != self.full.size[axis]:
                return None
            else:
                count *= self.full.size[axis]
        return found if count == len(set(ranks)) else None

    def _smaller(self) -> Grid:
        primes = iter(PRIMES)
        sizes: list[int] = []
        for axis, size in zip(self.full.axes, self.full.sizes, strict=True):
            if axis in self.fixed or size <= 2:
                sizes.append(size)
            else:
                sizes.append(min(size, next(primes, 2)))
        return Grid(self.full.axes, tuple(sizes))

    def ranks(self, ranks: RankSet) -> tuple[int, ...]:
        """A rank set of the program on the smaller mesh."""
        if self.grid is self.full:
            return tuple(ranks)
        at = self.coordinates(ranks) or {}
        base = sum(coordinate * self.grid.stride[axis] for axis, coordinate in at.items())
        return self.grid.fibre(base, [axis for axis in self.grid.axes if axis not in at])

    def count(self, ranks: RankSet) -> int:
        """How many ranks a rank set of the program has on the smaller mesh; found without listing them."""
        at = self.coordinates(ranks) or {}
        return self.grid.members(axis for axis in self.grid.axes if axis not in at)

    def words(self) -> str:
        """How the mesh is smaller; empty when it is not."""
        changed = [
            f"{axis} {before} as {after}"
            for axis, before, after in zip(self.full.axes, self.full.sizes, self.grid.sizes, strict=True)
            if before != after
        ]
        return f"mesh axes {', '.join(changed)}" if changed else ""
