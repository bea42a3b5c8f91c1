"""Folding a task list: local work between two communications becomes one block, communication stays visible.

The depth of a task is how many communications lie on the way to it at most. Local tasks of one depth that hang together are one
item, every other task is an item of its own. A consumer of a communication is deeper than it, so the folded graph has no cycle.
Constants and other work that waits for nothing belongs to the depth where it is first used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]

FOLD_ABOVE = 160
"""Task lists longer than this open folded."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What became of a list of tasks.

    Args:
        item: the item of every task.
        first: of every item, the task of the list that comes first.
        size: number of tasks of every item.
        source, destination: edges between items, each pair once.
        weight: how many edges between tasks each stands for.
        order_only: whether all of them are mere order.
    """

    item: Ints
    first: Ints
    size: Ints
    source: Ints
    destination: Ints
    weight: Ints
    order_only: npt.NDArray[np.bool_]

    @property
    def count(self) -> int:
        return len(self.first)


def unfolded(
    count: int, source: npt.NDArray[np.integer], destination: npt.NDArray[np.integer], order_only: npt.NDArray[np.bool_]
) -> Folded:
    """Every task an item of its own."""
    each = np.arange(count, dtype=np.int32)
    ones = np.ones(len(source), dtype=np.int32)
    return Folded(
        each, each, np.ones(count, np.int32), source.astype(np.int32), destination.astype(np.int32), ones, order_only
    )


def fold(
    count: int,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    order_only: npt.NDArray[np.bool_],
    visible: npt.NDArray[np.bool_],
    group: npt.NDArray[np.integer] | None = None,
) -> Folded:
    """Fold the tasks that are not `visible`.

    Args:
        count: number of tasks, in an order in which they may run.
        source, destination: edges; those against the order are left out of the folded graph.
        order_only: per edge.
        visible: per task, whether it stays an item of its own.
        group: per task, what it must not leave: tasks of different groups are never one item.
    """
    keep = source < destination
    source, destination, order_only = source[keep], destination[keep], order_only[keep]
    depth = _depths(count, source, destination, visible, group)
    root = _components(count, source, destination, depth, visible, group)
    # Items are numbered by their last task: whatever an item waits for has a smaller number.
    last = np.zeros(count, dtype=np.int64)
    np.maximum.at(last, root, np.arange(count))
    key = depth.astype(np.int64) * 2 + visible
    heads = np.flatnonzero(root == np.arange(count))
    heads = heads[np.lexsort((last[heads], key[heads]))]
    number = np.empty(count, dtype=np.int32)
    number[heads] = np.arange(len(heads), dtype=np.int32)
    item = number[root]
    pair_source, pair_destination, weight, only = pairs_of(item, source, destination, order_only, len(heads))
    size = np.bincount(item, minlength=len(heads)).astype(np.int32)
    return Folded(item, heads.astype(np.int32), size, pair_source, pair_destination, weight, only)


def _depths(
    count: int,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    visible: npt.NDArray[np.bool_],
    group: npt.NDArray[np.integer] | None,
) -> Ints:
    # Whoever leaves a group goes deeper too, so that no item waits for itself through another group.
    groups = [0] * count if group is None else group.tolist()
    depth = [0] * count
    shown = visible.tolist()
    waits = [False] * count
    order = np.argsort(destination, kind="stable")
    for before, after in zip(source[order].tolist(), destination[order].tolist(), strict=True):
        reached = depth[before] + (shown[before] or groups[before] != groups[after])
        if reached > depth[after]:
            depth[after] = reached
        if shown[before] or waits[before]:
            waits[after] = True
    # Work that waits for no communication moves to where it is first used, in its own group.
    far = count + 1
    first_use = [far] * count
    order = np.argsort(-source, kind="stable")
    for before, after in zip(source[order].tolist(), destination[order].tolist(), strict=True):
        use = first_use[after] if not waits[after] and not shown[after] and first_use[after] < far else depth[after]
        use -= groups[before] != groups[after]
        if use < first_use[before]:
            first_use[before] = use
    for task in range(count):
        if not waits[task] and not shown[task] and first_use[task] < far:
            depth[task] = first_use[task]
    return np.array(depth, dtype=np.int32)


def _components(
    count: int,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    depth: Ints,
    visible: npt.NDArray[np.bool_],
    group: npt.NDArray[np.integer] | None,
) -> npt.NDArray[np.int64]:
    """Of every task, the first task of the item that it belongs to."""
    joins = ~visible[source] & ~visible[destination] & (depth[source] == depth[destination])
    if group is not None:
        joins &= group[source] == group[destination]
    parent = list(range(count))

    def find(task: int) -> int:
        while parent[task] != task:
            parent[task] = parent[parent[task]]
            task = parent[task]
        return task

    for before, after in zip(source[joins].tolist(), destination[joins].tolist(), strict=True):
        left, right = find(before), find(after)
        if left != right:
            parent[max(left, right)] = min(left, right)
    return np.array([find(task) for task in range(count)], dtype=np.int64)


def pairs_of(
    item: Ints,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    order_only: npt.NDArray[np.bool_],
    items: int,
) -> tuple[Ints, Ints, Ints, npt.NDArray[np.bool_]]:
    """Each pair of different items once: source, destination, number of edges, whether all of them are mere order."""
    left, right = item[source].astype(np.int64), item[destination].astype(np.int64)
    across = left != right
    code = left[across] * max(items, 1) + right[across]
    unique, inverse, weight = np.unique(code, return_inverse=True, return_counts=True)
    carries = np.bincount(inverse, weights=~order_only[across], minlength=len(unique)) > 0
    pair_source, pair_destination = np.divmod(unique, max(items, 1))
    return (
        pair_source.astype(np.int32),
        pair_destination.astype(np.int32),
        weight.astype(np.int32),
        ~carries,
    )
