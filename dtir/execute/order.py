"""One total order of the tasks of a scope: every rank runs its subsequence of it, so that no rank waits in a circle.

Kahn's algorithm over dependencies, data flow and, for the program itself, per-rank issue lists; of the tasks that are
ready the one that stands first in the program comes next.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from dtir.ir.ids import NodeId, ValueId
from dtir.ir.schedule import IssueList
from dtir.ir.tasks import DistributedTask


def total_order(tasks: Sequence[DistributedTask], issue: Iterable[IssueList] = ()) -> tuple[list[int], list[int]]:
    """Positions of the tasks in execution order, and positions of those that wait for each other in a circle.

    The cost is linear in tasks, operands and issued steps, but for the heap.
    """
    position = {task.id: place for place, task in enumerate(tasks)}
    producer: dict[ValueId, int] = {}
    for place, task in enumerate(tasks):
        for value in task.outputs:
            producer[value] = place
    # Nodes beyond the tasks stand between two issued steps of a rank: "everything of the first before all of the second".
    edges: list[set[int]] = [set() for _ in tasks]
    for place, task in enumerate(tasks):
        before = [position[item] for item in (*task.dependencies, *task.completes) if item in position]
        before += [producer[value] for value in task.inputs if value in producer]
        for earlier in before:
            if earlier != place:
                edges[earlier].add(place)
    for issued in issue:
        _issue_edges(issued.steps, position, edges)
    waiting = [0] * len(edges)
    for followers in edges:
        for follower in followers:
            waiting[follower] += 1
    # A node between steps has to be passed before any task, so that it counts as standing at the very front.
    ready = [(place if place < len(tasks) else -1, place) for place, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, place = heapq.heappop(ready)
        if place < len(tasks):
            order.append(place)
        for follower in edges[place]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (follower if follower < len(tasks) else -1, follower))
    done = set(order)
    return order, [place for place in range(len(tasks)) if place not in done]


def _issue_edges(steps: Sequence[tuple[NodeId, ...]], position: dict[NodeId, int], edges: list[set[int]]) -> None:
    previous: list[int] = []
    for step in steps:
        current = [position[item] for item in step if item in position]
        if not current:
            continue
        if len(previous) == 1 or len(current) == 1:
            for earlier in previous:
                edges[earlier].update(later for later in current if later != earlier)
        elif previous:
            edges.append(set(current))
            between = len(edges) - 1
            for earlier in previous:
                edges[earlier].add(between)
        previous = current
