"""Smaller extents for a program that is too large to run: dims that must be equal stay equal, splits stay as legal as they were.

Dims are put in classes by the label rules of the tasks; each class gets a small extent that differs from those of the
classes it meets, so that a wrong dim fails by shape. Classes whose extent is written out somewhere (shard sizes, slices,
routes, regions) keep it. A reshape, join or cut makes the extent of one class the product or sum of others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dtir.ir import Collective, DistributedTask, DistributedValue, LocalCompute, PointToPoint, Reshard, ValueId
from dtir.ops import Fold, Labels, OpCall, OpError, Regroup, find_op, op_attributes
from dtir.verify.value.case import Shape
from dtir.verify.value.grid import Grid

Dim = tuple[ValueId, int]

_SIZED_PARAMETERS = frozenset(
    {"starts", "stops", "start", "stop", "low", "high", "shift", "route", "send_splits", "recv_splits"}
)
"""Parameters that hold extents or positions: the dims of their task keep their extents."""

_ELEMENTS_A_SHARD = 2


@dataclass(slots=True)
class _Class:
    """Dims of one extent."""

    dims: list[Dim] = field(default_factory=list[Dim])
    pinned: bool = False
    product: tuple[int, ...] = ()
    total: tuple[int, ...] = ()
    meets: set[int] = field(default_factory=set[int])


class Shrinker:
    """Chooses extents for the values of a program."""

    def __init__(self, grid: Grid, values: Sequence[DistributedValue], shapes: Mapping[ValueId, Shape]) -> None:
        self.grid = grid
        self.values = {value.id: value for value in values}
        self.shapes = shapes
        self._parent: dict[Dim, Dim] = {
            (value.id, dim): (value.id, dim) for value in values for dim in range(len(shapes[value.id]))
        }
        self._pinned: set[Dim] = set()
        self._products: list[tuple[Dim, tuple[Dim, ...]]] = []
        self._sums: list[tuple[Dim, tuple[Dim, ...]]] = []
        self._together: list[set[Dim]] = []
        for value in values:
            self._own_facts(value)

    # -- gathering facts -----------------------------------------------------------------------------------------------

    def _root(self, dim: Dim) -> Dim:
        while self._parent[dim] != dim:
            self._parent[dim] = self._parent[self._parent[dim]]
            dim = self._parent[dim]
        return dim

    def _join(self, one: Dim, other: Dim) -> None:
        if self._extent(one) != self._extent(other):
            # What is not equal now is not kept equal; both stay as they are.
            self._pinned.update((one, other))
            return
        self._parent[self._root(one)] = self._root(other)

    def _extent(self, dim: Dim) -> int:
        return self.shapes[dim[0]][dim[1]]

    def _pin_all(self, identifiers: Sequence[ValueId]) -> None:
        for identifier in identifiers:
            self._pinned.update((identifier, dim) for dim in range(len(self.shapes[identifier])))

    def _own_facts(self, value: DistributedValue) -> None:
        own = [(value.id, dim) for dim in range(len(self.shapes[value.id]))]
        self._together.append(set(own))
        for dim in own:
            if self._extent(dim) <= 1 or not isinstance(value.type.shape[dim[1]], int):
                self._pinned.add(dim)
        self._pinned.update((value.id, item.dim) for item in value.sharding.sizes if item.dim < len(own))
        if value.local_shapes or value.sharding.varying:
            self._pinned.update(own)

    def add(self, task: DistributedTask, *, explicit_oracle: bool) -> None:
        """Take the facts of a task into account."""
        known = [item for item in (*task.operand_values, *task.outputs) if item in self.values]
        if _SIZED_PARAMETERS & op_attributes(task).keys():
            self._pin_all(known)
        match task.body:
            case LocalCompute():
                self._local(task, explicit_oracle)
            case Collective() | PointToPoint() | Reshard():
                if isinstance(task.body, Reshard) and task.body.regions:
                    self._pin_all(known)
                for source, result in zip(task.operand_values, task.outputs, strict=False):
                    self._same_dims(source, result)
            case _:
                self._pin_all(known)

    def _same_dims(self, source: ValueId, result: ValueId) -> None:
        if len(self.shapes[source]) != len(self.shapes[result]):
            self._pin_all((source, result))
            return
        for dim in range(len(self.shapes[source])):
            self._join((source, dim), (result, dim))

    def _local(self, task: DistributedTask, explicit_oracle: bool) -> None:
        known = (*task.operand_values, *task.outputs)
        operator = find_op(task.operation)
        if operator is None:
            self._pin_all(known)
            return
        call = OpCall(
            tuple(self.shapes[item] for item in task.operand_values),
            tuple(self.shapes[item] for item in task.outputs),
            op_attributes(task),
        )
        try:
            rule = operator.labels(call)
        except OpError:
            self._pin_all(known)
            return
        match rule:
            case Labels():
                self._labelled(task, rule, explicit_oracle)
            case Regroup():
                source, result = task.operand_values[0], task.outputs[0]
                for group in rule.groups:
                    self._grouped(
                        [(source, dim) for dim in group.operand_dims], [(result, dim) for dim in group.result_dims]
                    )

    def _labelled(self, task: DistributedTask, rule: Labels, explicit_oracle: bool) -> None:
        first: dict[str, Dim] = {}
        tensors = zip((*task.operand_values, *task.outputs), (*rule.operands, *rule.results), strict=True)
        for identifier, labels in tensors:
            for dim, label in enumerate(labels):
                if label is None:
                    continue
                self._join((identifier, dim), first.setdefault(label, (identifier, dim)))
                if explicit_oracle and rule.folds.get(label) is Fold.MEAN:
                    # The other program may say the mean as a sum and a constant.
                    self._pinned.add((identifier, dim))
        self._together.append(set(first.values()))
        self._joined_parts(task, rule, first)

    def _joined_parts(self, task: DistributedTask, rule: Labels, first: Mapping[str, Dim]) -> None:
        """Labels that the operator makes or takes away: the parts of a join or cut, else extents that stay."""
        parts = [label for label in first if label.startswith("part")]
        if parts:
            whole = next((first[label] for label in sorted(rule.whole) if label in first and label not in parts), None)
            if whole is not None:
                self._sums.append((whole, tuple(first[label] for label in parts)))
                return
        appearing = {label for labels in rule.results for label in labels if label} - {
            label for labels in rule.operands for label in labels if label
        }
        if task.operand_values:
            self._pinned.update(first[label] for label in appearing & rule.whole if label.startswith("e"))
            self._pinned.update(first[label] for label in rule.whole if f"e{label[1:]}" in appearing and label in first)

    def _grouped(self, operands: list[Dim], results: list[Dim]) -> None:
        if len(operands) == 1 and len(results) == 1:
            self._join(operands[0], results[0])
        elif len(results) == 1:
            self._products.append((results[0], tuple(operands)))
        elif len(operands) == 1:
            self._products.append((operands[0], tuple(results)))
        else:
            self._pinned.update((*operands, *results))

    # -- choosing -----------------------------------------------------------------------------------------------------

    def choose(self) -> dict[ValueId, Shape]:
        """A shape for every value."""
        classes, number = self._classes()
        extents: dict[int, int] = {}
        order = self._order(classes)
        for index in order:
            extents[index] = self._pick(index, classes, extents)
        return {
            identifier: tuple(extents[number[self._root((identifier, dim))]] for dim in range(len(shape)))
            for identifier, shape in self.shapes.items()
            if identifier in self.values
        }

    def _classes(self) -> tuple[list[_Class], dict[Dim, int]]:
        number: dict[Dim, int] = {}
        classes: list[_Class] = []
        for dim in self._parent:
            root = self._root(dim)
            if root not in number:
                number[root] = len(classes)
                classes.append(_Class())
            own = classes[number[root]]
            own.dims.append(dim)
            own.pinned = own.pinned or dim in self._pinned
        for made, parts in self._products:
            self._define(classes, number[self._root(made)], [number[self._root(part)] for part in parts], product=True)
        for made, parts in self._sums:
            self._define(classes, number[self._root(made)], [number[self._root(part)] for part in parts], product=False)
        for dims in self._together:
            members = {number[self._root(dim)] for dim in dims}
            for member in members:
                classes[member].meets |= members - {member}
        return classes, number

    def _define(self, classes: list[_Class], made: int, parts: list[int], *, product: bool) -> None:
        own = classes[made]
        definition = tuple(parts)
        if own.pinned or own.product or own.total or made in parts:
            if (own.product if product else own.total) == definition:
                return
            for index in (made, *parts):
                classes[index].pinned = True
        elif product:
            own.product = definition
        else:
            own.total = definition

    def _order(self, classes: list[_Class]) -> list[int]:
        """Classes after the ones that they are made of; a circle keeps its extents."""
        done: dict[int, bool] = {}
        order: list[int] = []
        for start in range(len(classes)):
            stack = [(start, False)]
            while stack:
                index, visited = stack.pop()
                if visited:
                    done[index] = True
                    order.append(index)
                    continue
                if index in done:
                    if not done[index]:
                        classes[index].pinned = True
                    continue
                done[index] = False
                stack.append((index, True))
                if not classes[index].pinned:
                    stack.extend((part, False) for part in (*classes[index].product, *classes[index].total))
        return order

    def _pick(self, index: int, classes: list[_Class], extents: Mapping[int, int]) -> int:
        own = classes[index]
        now = self._extent(own.dims[0])
        if own.pinned:
            return now
        parts = own.product or own.total
        if parts:
            if any(part not in extents for part in parts):
                return now
            return math.prod(extents[part] for part in parts) if own.product else sum(extents[part] for part in parts)
        counts = [self._count(dim) for dim in own.dims]
        multiple = math.lcm(*counts)
        rest = now % multiple
        widest = max((self._frame(dim) for dim in own.dims), default=0)
        taken = {extents[other] for other in own.meets if other in extents}
        shard = max(_ELEMENTS_A_SHARD, widest + 1)
        times = shard * max(counts) // multiple if multiple < shard * max(counts) else 1
        candidate = max(times, 1) * multiple + rest
        while candidate in taken or candidate < 2:
            candidate += multiple
        return min(now, candidate)

    def _count(self, dim: Dim) -> int:
        return self.grid.members(self.values[dim[0]].sharding.dimension_axes[dim[1]])

    def _frame(self, dim: Dim) -> int:
        halo = self.values[dim[0]].sharding.halo
        if halo is None:
            return 0
        return max((max(item.before, item.after) for item in halo.dims if item.dim == dim[1]), default=0)
