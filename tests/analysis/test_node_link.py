from __future__ import annotations

import networkx as nx

from dtir.analysis.node_link import node_link
from dtir.ir import LocalCompute
from tests.helpers.programs import mesh_of, node_id, program, region, task, value_id

MESH = mesh_of(dp=2, tp=4)


def test_networkx_reads_it() -> None:
    made = program(
        regions=(
            region(
                "body",
                MESH,
                (task("a", MESH, LocalCompute()), task("b", MESH, LocalCompute(), dependencies=(node_id("a"),))),
            ),
        )
    )
    graph = nx.node_link_graph(node_link(made), edges="edges")
    assert graph.is_directed()
    assert graph.graph["digest"] == made.digest
    names = {node: data["name"] for node, data in graph.nodes(data=True)}
    edges = [(names[source], names[target], data["values"]) for source, target, data in graph.edges(data=True)]
    assert edges == [("mul.0", "sum.1", [str(value_id("h"))]), ("a", "b", [])]
    data = graph.nodes[str(node_id("sum.1"))]
    assert data == {
        "name": "sum.1",
        "kind": "collective",
        "operation": "core.op",
        "ranks": 8,
        "region": None,
        "executions": 1,
    }
    assert graph.nodes[str(node_id("a"))]["region"] == "body"
    assert graph.nodes[str(node_id("a"))]["executions"] == 0
