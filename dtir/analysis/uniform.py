"""Equal copies among per-rank data: along which axes all ranks of a partitioned program hold the same, as far as that follows.

Nothing is declared of such values but the shape of one rank. What follows: a parameter is equal along the axes that
replicate it, a constant everywhere; a reduction or gather makes its result equal along its axes; any other operator gives
equal results for equal operands, unless it asks which rank it runs on. The sets are the greatest that satisfy these
equations, so that loops and regions entered several times are sound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.states import declared_state
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, Broadcast, CollectivePermute, ReduceScatter
from dtir.ir.ids import RegionId, ValueId
from dtir.ir.program import DistributedTaskIR, Scope
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    LocalCompute,
    Loop,
    PointToPoint,
    Reshard,
)
from dtir.ir.types import OperationName
from dtir.ir.values import DistributedValue
from dtir.ops import SourceKind, find_op

RANK_DEPENDENT = frozenset(
    OperationName("hlo", name)
    for name in (
        "partition-id", "replica-id", "rng", "rng-get-and-update-state", "infeed", "recv", "recv-done", "custom-call",
        "outfeed", "send", "send-done",
    )
)  # fmt: skip
"""Operators whose result depends on the rank that runs them, or on something that is not known."""

MOST_PASSES = 64
"""Passes over the regions before the search is given up; each passes a set that shrinks, so that few are needed."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """Axes of equal copies.

    Args:
        axes: the factors of the space, bit i for the i-th.
        scopes: per scope (in the order of `DistributedTaskIR.scopes`) a bit set for every value that is reached.
    """

    axes: tuple[str, ...]
    scopes: tuple[Mapping[ValueId, int], ...] = field(repr=False)

    def bits(self, axes: Sequence[str]) -> int:
        """A bit set of axes."""
        return sum(1 << self.axes.index(axis) for axis in axes)


def uniform_axes(program: DistributedTaskIR, reader: ExchangeReader) -> Uniform | None:
    """Along which axes every value is the same on all ranks; None when it cannot be told within `MOST_PASSES`."""
    return _Solver(program, reader).solve()


class _Solver:
    """Shrinks sets until all equations hold."""

    def __init__(self, program: DistributedTaskIR, reader: ExchangeReader) -> None:
        self.program, self.reader = program, reader
        self.axes = reader.space.axes
        self.all = (1 << len(self.axes)) - 1
        self.inputs: dict[RegionId, list[int]] = {}
        self.results: dict[RegionId, list[int]] = {
            region.id: [self.all] * len(region.outputs) for region in program.regions
        }
        self.changed = False

    def solve(self) -> Uniform | None:
        scopes: list[Mapping[ValueId, int]] = []
        for _ in range(MOST_PASSES):
            self.changed = False
            known = {value.id: value for value in self.program.values}
            start = {item: self._declared(known[item]) for item in self.program.inputs}
            scopes = [self._walk(self.program, start)]
            for region in self.program.regions:
                given = self.inputs.get(region.id)
                if given is None:
                    scopes.append({})
                    continue
                found = self._walk(region, dict(zip(region.inputs, given, strict=True)))
                scopes.append(found)
                self._shrink(self.results[region.id], [found.get(item, 0) for item in region.outputs])
            if not self.changed:
                return Uniform(self.axes, tuple(scopes))
        return None

    def _shrink(self, known: list[int], new: Sequence[int]) -> None:
        for place, bits in enumerate(new):
            if known[place] & bits != known[place]:
                known[place] &= bits
                self.changed = True

    def _declared(self, value: DistributedValue) -> int:
        state = declared_state(value.sharding, self.reader.space)
        return sum(1 << place for place, axis in enumerate(self.axes) if state.is_equal(axis))

    def _walk(self, scope: Scope, start: dict[ValueId, int]) -> dict[ValueId, int]:
        known = start
        for task in scope.tasks:
            operands = [known.get(item, 0) for item in task.operand_values]
            for item, bits in zip(task.outputs, self._results(task, operands), strict=True):
                known[item] = bits
        return known

    def _results(self, task: DistributedTask, operands: list[int]) -> list[int]:
        count = len(task.outputs)
        match task.body:
            case LocalCompute():
                return [self._local(task, operands)] * count
            case Collective():
                given = operands if len(operands) == count else [0] * count
                return [self._collective(task, bits) for bits in given]
            case PointToPoint() | Reshard():
                return [0] * count
            case Control():
                return operands if len(operands) == count else [_meet(operands, self.all)] * count
            case Call(region=region):
                self._enter(region, operands)
                return list(self.results[region])
            case Loop():
                return self._loop(task.body, operands, count)
            case Branch():
                return self._branch(task.body, operands, count)
            case _:
                assert_never(task.body)

    def _local(self, task: DistributedTask, operands: list[int]) -> int:
        operator = find_op(task.operation)
        random = operator is not None and operator.source is SourceKind.RANDOM
        if task.operation in RANK_DEPENDENT or random or "op.c_by_rank" in task.attributes:
            return 0
        return _meet(operands, self.all)

    def _collective(self, task: DistributedTask, bits: int) -> int:
        assert isinstance(task.body, Collective)
        spec = task.body.spec
        if isinstance(spec, CollectivePermute):
            targets = {target for _, target in spec.pairs}
            return self.all if bits == self.all and len(targets) == self.program.mesh.size else 0
        axes = self.reader.axes(spec)
        if axes is None:
            # Groups of no axes: the members of one agree, and nothing is said about axes, unless all did before.
            return self.all if bits == self.all and isinstance(spec, (AllReduce, AllGather, Broadcast)) else 0
        own = sum(1 << self.axes.index(axis) for axis in axes)
        match spec:
            case AllReduce() | AllGather() | Broadcast():
                return bits | own
            case ReduceScatter() | AllToAll():
                return bits & ~own
            case _:
                assert_never(spec)

    # -- control flow ------------------------------------------------------------------------------------------------

    def _enter(self, region: RegionId, operands: Sequence[int]) -> None:
        known = self.inputs.get(region)
        if known is None:
            self.inputs[region] = list(operands)
            self.changed = True
        else:
            self._shrink(known, operands)

    def _loop(self, body: Loop, operands: list[int], count: int) -> list[int]:
        """The carried values are what enters, what the body yields, and equal only while all ranks leave together."""
        carried = [one & other for one, other in zip(operands, self.results[body.body], strict=True)]
        gate = self.all
        if body.condition is not None:
            self._enter(body.condition, carried)
            gate = _meet(self.results[body.condition], self.all)
        carried = [bits & gate for bits in carried]
        self._enter(body.body, carried)
        return carried if len(carried) == count else [_meet(carried, self.all)] * count

    def _branch(self, body: Branch, operands: list[int], count: int) -> list[int]:
        selector, place = operands[0] if operands else 0, 1
        found = [selector] * count
        for region, taken in zip(body.regions, body.operand_counts, strict=True):
            self._enter(region, operands[place : place + taken])
            place += taken
            found = [one & other for one, other in zip(found, self.results[region], strict=True)]
        return found


def _meet(sets: Sequence[int], everything: int) -> int:
    for bits in sets:
        everything &= bits
    return everything
