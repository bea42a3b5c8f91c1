"""The tasks of a scope by number: what each reads, writes and waits for, and in which order they are looked at."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from dtir.analysis.executions import entered
from dtir.ir.ids import NodeId, RegionId, ValueId
from dtir.ir.program import DistributedTaskIR, Scope
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import Call, Collective, Control, DistributedTask, LocalCompute, PointToPoint, Reshard


@dataclass(frozen=True, slots=True)
class ScopeIndex:
    """One scope.

    Args:
        scope: the program or a region.
        name: of the region; empty for the program.
        base: number of its first task among all tasks of the program, the program's own first.
        reads, writes: per task, positions of values.
        after: per task, positions of the tasks that it waits for besides.
        order: an order in which every task comes after what it waits for, and every rank's streams are in its own order.
        inputs, outputs: positions of values.
    """

    scope: Scope
    name: str
    base: int
    reads: tuple[tuple[int, ...], ...] = field(repr=False)
    writes: tuple[tuple[int, ...], ...] = field(repr=False)
    after: tuple[tuple[int, ...], ...] = field(repr=False)
    order: Sequence[int] = field(repr=False)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    @property
    def tasks(self) -> tuple[DistributedTask, ...]:
        """The tasks, by position."""
        return self.scope.tasks


class OrderError(ValueError):
    """Issue orders and dependencies go round in a circle; `tasks` are positions on it or behind it."""

    def __init__(self, tasks: Sequence[int]) -> None:
        super().__init__(f"{len(tasks)} tasks wait for each other in a circle")
        self.tasks = tuple(tasks)


def communicates(task: DistributedTask) -> bool:
    """Whether a task runs on the communication stream."""
    return isinstance(task.body, (Collective, PointToPoint, Reshard))


def index_scope(program: DistributedTaskIR, scope: Scope, name: str, base: int) -> ScopeIndex:
    """A scope by number.

    Raises:
        OrderError: the issue lists contradict the dependencies.
    """
    values: dict[ValueId, int] = {value.id: place for place, value in enumerate(scope.values)}
    positions: dict[NodeId, int] = {task.id: place for place, task in enumerate(scope.tasks)}
    reads: list[tuple[int, ...]] = []
    writes: list[tuple[int, ...]] = []
    after: list[tuple[int, ...]] = []
    producer: dict[int, int] = {}
    for place, task in enumerate(scope.tasks):
        mine = tuple(values[item] for item in task.inputs if item in values)
        reads.append(mine)
        writes.append(tuple(values[item] for item in task.outputs if item in values))
        # A declared dependency that a value carries anyway is not looked at twice.
        carried = {producer[value] for value in mine if value in producer}
        waits = dict.fromkeys(positions[item] for item in (*task.dependencies, *task.completes) if item in positions)
        after.append(tuple(item for item in waits if item not in carried and item != place))
        for value in writes[-1]:
            producer[value] = place
    order: Sequence[int] = range(len(scope.tasks))
    if isinstance(scope, DistributedTaskIR) and program.issue:
        order = _issued_order(program, reads, after, producer)
    return ScopeIndex(
        scope,
        name,
        base,
        tuple(reads),
        tuple(writes),
        tuple(after),
        order,
        tuple(values[item] for item in scope.inputs),
        tuple(values[item] for item in scope.outputs),
    )


def _issued_order(
    program: DistributedTaskIR,
    reads: Sequence[tuple[int, ...]],
    after: Sequence[tuple[int, ...]],
    producer: dict[int, int],
) -> list[int]:
    """Kahn's algorithm over dependencies and the order of every rank's streams; earlier tasks first where both may come."""
    edges: list[set[int]] = [set() for _ in program.tasks]
    for place in range(len(program.tasks)):
        for before in (*after[place], *(producer[value] for value in reads[place] if value in producer)):
            if before != place:
                edges[before].add(place)
    position = {task.id: place for place, task in enumerate(program.tasks)}
    stream = [communicates(task) for task in program.tasks]
    listed: set[int] = set()
    for issue in program.issue:
        if issue.rank in listed:
            continue
        listed.add(issue.rank)
        _chain([[position[item] for item in step if item in position] for step in issue.steps], stream, edges)
    _chain_unlisted(program, listed, stream, edges)
    waiting = [0] * len(edges)
    for followers in edges:
        for follower in followers:
            waiting[follower] += 1
    ready = [place for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        place = heapq.heappop(ready)
        order.append(place)
        for follower in edges[place]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    if len(order) < len(edges):
        raise OrderError([place for place, count in enumerate(waiting) if count])
    return order


def _chain(steps: Sequence[Sequence[int]], stream: Sequence[bool], edges: list[set[int]]) -> None:
    """Each stream runs the tasks of one step after those of the step before it; tasks of one step in any order."""
    for on in (False, True):
        previous: list[int] = []
        for step in steps:
            current = [place for place in step if stream[place] is on]
            if not current:
                continue
            for before in previous:
                edges[before].update(place for place in current if place != before)
            previous = current


def _chain_unlisted(
    program: DistributedTaskIR, listed: set[int], stream: Sequence[bool], edges: list[set[int]]
) -> None:
    """Ranks without an issue list run their tasks in list order. Those of one task set need one chain."""
    if len(listed) >= program.mesh.size:
        return
    chains: dict[object, list[int]] = {}
    for place, task in enumerate(program.tasks):
        known = rank_set(task.ranks)
        if all(rank in listed for rank in known) if len(known) <= len(listed) else False:
            continue
        if len(task.ranks) == program.mesh.size:
            chains.setdefault("all", []).append(place)
            continue
        for rank in known:
            if rank not in listed:
                chains.setdefault(rank, []).append(place)
    whole = chains.pop("all", [])
    for own in chains.values() or [[]]:
        _chain([[place] for place in sorted({*own, *whole})], stream, edges)


def region_depth(program: DistributedTaskIR) -> int:
    """How deep regions enter each other (own stack); tasks of the program are at depth 0. Fused computations do not count."""
    inner: dict[RegionId, list[RegionId]] = {
        region.id: [name for task in region.tasks for name, _ in entered(task.body)] for region in program.regions
    }
    depth: dict[RegionId, int] = {}
    for start in inner:
        stack = [(start, False)]
        while stack:
            name, visited = stack.pop()
            if name in depth and not visited:
                continue
            if visited:
                depth[name] = 1 + max((depth.get(item, 0) for item in inner[name]), default=0)
                continue
            depth[name] = 0  # begun: a circle, which structure rules out, ends here
            stack.append((name, True))
            stack.extend((item, False) for item in inner[name] if item in inner and item not in depth)
    return max(depth.values(), default=0)


def is_local(task: DistributedTask) -> bool:
    """Whether a task is one piece of local work (a fusion counts as one, elsewhere)."""
    return isinstance(task.body, (LocalCompute, Control))


def is_call(task: DistributedTask) -> bool:
    """Whether a task enters a region once."""
    return isinstance(task.body, Call)
