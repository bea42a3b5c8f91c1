"""The tasks of a program in the node-link form that `networkx` reads, for tools that know graphs and not programs.

Source of the form: networkx, ``networkx.readwrite.json_graph.node_link_data`` with ``edges="edges"``.
"""

from __future__ import annotations

from typing import Any, cast

from dtir.analysis.summary import PlacedTask, placed_tasks
from dtir.ir.graph import task_graph
from dtir.ir.program import DistributedTaskIR, Scope


def node_link(program: DistributedTaskIR) -> dict[str, Any]:
    """A node for each task, by display id, and an edge to each task that waits for it.

    Node attributes: ``name, kind, operation, ranks`` (how many), ``region, executions``. Edge attribute: ``values``, display
    ids of what flows; empty for an order that is only declared. ``networkx.node_link_graph(data, edges="edges")`` reads it.
    """
    edges: list[dict[str, Any]] = []
    for _, scope in program.scopes():
        edges.extend(_edges(scope))
    return {
        "directed": True,
        "multigraph": False,
        "graph": {"name": program.name, "digest": program.digest},
        "nodes": [_node(placed) for placed in placed_tasks(program)],
        "edges": edges,
    }


def _node(placed: PlacedTask) -> dict[str, Any]:
    task = placed.task
    return {
        "id": str(task.id),
        "name": task.name,
        "kind": task.body_tag,
        "operation": str(task.operation),
        "ranks": len(task.ranks),
        "region": placed.region.name if placed.region else None,
        "executions": placed.executions,
    }


def _edges(scope: Scope) -> list[dict[str, Any]]:
    graph = task_graph(scope)
    edges: list[dict[str, Any]] = []
    for position, task in enumerate(scope.tasks):
        for earlier in cast("list[int]", graph.predecessors.of(position).tolist()):
            given = set(scope.tasks[earlier].outputs)
            values = [str(value) for value in task.inputs if value in given]
            edges.append({"source": str(graph.ids[earlier]), "target": str(task.id), "values": values})
    return edges
