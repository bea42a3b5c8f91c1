"""The tasks of a program as a directed graph for `networkx`, and as its node-link JSON.

A view made when asked for; the program stays the store.

Source of the JSON form: networkx, ``networkx.readwrite.json_graph.node_link_data`` with ``edges="edges"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dtir.analysis.summary import PlacedTask, placed_tasks
from dtir.ir.ids import NodeId, RegionId, ValueId
from dtir.ir.program import DistributedTaskIR

if TYPE_CHECKING:  # networkx takes a while to load, and few need it
    import networkx as nx


def _node(placed: PlacedTask) -> dict[str, Any]:
    task = placed.task
    return {
        "name": task.name,
        "kind": task.body_tag,
        "operation": str(task.operation),
        "ranks": len(task.ranks),
        "region": placed.region.name if placed.region else None,
        "executions": placed.executions,
    }


def _edges(placed: list[PlacedTask]) -> dict[tuple[NodeId, NodeId], list[str]]:
    """Edges to the values that flow along them, in task order; no value where there is only a declared dependency.

    Values flow inside one task list: a region has its own.
    """
    writers: dict[tuple[RegionId | None, ValueId], NodeId] = {}
    known = {one.task.id for one in placed}
    edges: dict[tuple[NodeId, NodeId], list[str]] = {}
    for one in placed:
        scope = one.region.id if one.region else None
        for value in one.task.inputs:
            writer = writers.get((scope, value))
            if writer is not None:
                edges.setdefault((writer, one.task.id), []).append(str(value))
        for earlier in one.task.dependencies:
            if earlier in known:
                edges.setdefault((earlier, one.task.id), [])
        for value in one.task.outputs:
            writers[scope, value] = one.task.id
    return edges


def to_networkx(program: DistributedTaskIR) -> nx.DiGraph[str]:
    """A graph with a node for each task, by display id, and an edge for each flow of values or declared dependency.

    Node attributes: ``name, kind, operation, ranks`` (how many), ``region, executions``. Edge attributes: ``values``, display
    ids of what flows; empty for an order that is only declared.
    """
    import networkx as nx

    placed = list(placed_tasks(program))
    graph: nx.DiGraph[str] = nx.DiGraph(name=program.name, digest=program.digest)
    for one in placed:
        graph.add_node(str(one.task.id), **_node(one))
    for (source, target), values in _edges(placed).items():
        graph.add_edge(str(source), str(target), values=values)
    return graph


def node_link(program: DistributedTaskIR) -> dict[str, Any]:
    """The graph in networkx's node-link form, for JSON; ``networkx.node_link_graph(data, edges="edges")`` reads it."""
    import networkx as nx

    data: Any = cast("Any", nx).node_link_data(to_networkx(program), edges="edges")
    return data
