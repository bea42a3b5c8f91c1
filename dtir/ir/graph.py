"""The dependency graph of a task list as flat arrays, and as a `networkx` graph on demand.

An edge goes from a task to one that waits for it: because it is declared (`dependencies`), or because a value flows from
one to the other. Building it and its levels is linear in tasks and edges.

>>> from dtir.ir.builder import ProgramBuilder
>>> build = ProgramBuilder("diamond", axes={"x": 1})
>>> a = build.task("demo.a"); b = build.task("demo.b", after=(a,)); c = build.task("demo.c", after=(a,))
>>> d = build.task("demo.d", after=(b, c))
>>> graph = task_graph(build.build())
>>> graph.levels.tolist(), graph.predecessors.of(3).tolist(), graph.successors.of(0).tolist()
([0, 1, 1, 2], [1, 2], [1, 2])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dtir.ir.ids import NodeId, ValueId
from dtir.ir.program import Scope

if TYPE_CHECKING:  # networkx takes a while to load, and few need it
    import networkx as nx

Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """For every task a list of others, in compressed sparse rows.

    Args:
        indptr: shape ``[tasks + 1]``; the neighbours of task i are ``indices[indptr[i]:indptr[i + 1]]``.
        indices: shape ``[edges]``; task positions, rising within each row.
    """

    indptr: Indices
    indices: Indices

    def of(self, task: int) -> Indices:
        """The neighbours of the task at a position."""
        return self.indices[self.indptr[task] : self.indptr[task + 1]]


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Who waits for whom among the tasks of one scope; tasks are known by their position in it.

    Args:
        ids: the tasks' identifiers, in the order of the scope.
        predecessors: for every task those that it waits for, each once.
        successors: for every task those that wait for it, each once.
        levels: shape ``[tasks]``; edges on the longest way that leads to a task. -1 for a task on a cycle or behind
            one, which only a program with errors has.
    """

    ids: tuple[NodeId, ...]
    predecessors: Adjacency
    successors: Adjacency
    levels: Indices
    _names: tuple[str, ...] = field(default=(), repr=False)

    def to_networkx(self) -> nx.DiGraph[str]:
        """The same graph for `networkx`: nodes are display ids in the order of the scope, with ``level`` and ``name``."""
        import networkx

        graph = cast("Any", networkx.DiGraph())
        for position, identifier in enumerate(self.ids):
            graph.add_node(str(identifier), level=int(self.levels[position]), name=self._names[position])
        for position, identifier in enumerate(self.ids):
            for other in cast("list[int]", self.successors.of(position).tolist()):
                graph.add_edge(str(identifier), str(self.ids[other]))
        return graph


def task_graph(scope: Scope) -> TaskGraph:
    """The dependency graph of a program's or region's own tasks.

    A reference to a task or value that does not exist has no edge (the structural verifier reports it). Of two tasks
    with one id, or two definitions of one value, the last counts.
    """
    positions = {task.id: index for index, task in enumerate(scope.tasks)}
    producers: dict[ValueId, int] = {value: index for index, task in enumerate(scope.tasks) for value in task.outputs}
    rows: list[list[int]] = []
    for task in scope.tasks:
        found = {positions[item] for item in task.dependencies if item in positions}
        found.update(producers[item] for item in task.inputs if item in producers)
        rows.append(sorted(found))
    predecessors = _compressed(rows)
    successors = _transposed(predecessors, len(rows))
    return TaskGraph(
        tuple(task.id for task in scope.tasks),
        predecessors,
        successors,
        _levels(predecessors, successors),
        tuple(task.name for task in scope.tasks),
    )


def _compressed(rows: list[list[int]]) -> Adjacency:
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return Adjacency(indptr, np.fromiter((item for row in rows for item in row), dtype=np.int64, count=int(indptr[-1])))


def _transposed(graph: Adjacency, count: int) -> Adjacency:
    indptr = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(graph.indices, minlength=count), out=indptr[1:])
    owners = np.repeat(np.arange(count, dtype=np.int64), np.diff(graph.indptr))
    # A stable sort by neighbour keeps the owners rising within each row.
    return Adjacency(indptr, owners[np.argsort(graph.indices, kind="stable")])


def _levels(predecessors: Adjacency, successors: Adjacency) -> Indices:
    count = len(predecessors.indptr) - 1
    waiting = cast("list[int]", np.diff(predecessors.indptr).tolist())
    levels = [-1 if missing else 0 for missing in waiting]
    reached = [0] * count
    indptr = cast("list[int]", successors.indptr.tolist())
    indices = cast("list[int]", successors.indices.tolist())
    ready = [position for position in range(count) if not waiting[position]]
    for position in ready:  # grows while it is walked
        levels[position] = reached[position]
        for following in indices[indptr[position] : indptr[position + 1]]:
            reached[following] = max(reached[following], reached[position] + 1)
            waiting[following] -= 1
            if not waiting[following]:
                ready.append(following)
    return np.array(levels, dtype=np.int64)
