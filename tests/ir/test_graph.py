"""The task graph: edges, levels and the networkx view."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given, settings

from dtir.ir import DistributedTaskIR, NodeId, ProgramBuilder
from dtir.ir.graph import TaskGraph, task_graph
from tests.helpers.strategies import programs


def of_edges(count: int, edges: list[tuple[int, int]]) -> DistributedTaskIR:
    """Tasks 0..count-1 with declared dependencies (from, to); to may stand before from."""
    build = ProgramBuilder("edges", axes={"x": 1})
    ids = [NodeId.derive("edges", index) for index in range(count)]
    for index in range(count):
        build.task("a.b", dependencies=[ids[first] for first, second in edges if second == index], id=ids[index])
    return build.build()


def rows(graph: TaskGraph) -> list[list[int]]:
    return [graph.predecessors.of(index).tolist() for index in range(len(graph.ids))]


def test_values_and_declared_dependencies_make_edges() -> None:
    build = ProgramBuilder("mixed", axes={"x": 1})
    v, w = build.value("v", (1,), "f32"), build.value("w", (1,), "f32")
    first = build.task("a.b", (), (v,))
    build.task("a.b", (v,), (w,), dependencies=())
    build.task("a.b", (v, w), dependencies=(first,))
    build.task("a.b", after=(first,))
    graph = task_graph(build.build())
    assert rows(graph) == [[], [0], [0, 1], [0]]
    assert [graph.successors.of(index).tolist() for index in range(4)] == [[1, 2, 3], [2], [], []]
    assert graph.levels.tolist() == [0, 1, 2, 1]
    assert graph.predecessors.indptr.tolist() == [0, 0, 1, 3, 4]
    assert graph.predecessors.indices.dtype == np.int64


def test_unknown_references_have_no_edge() -> None:
    program = of_edges(2, [(0, 1)])
    faulty = replace(program.tasks[1], dependencies=(*program.tasks[1].dependencies, NodeId.derive("zzz")))
    graph = task_graph(replace(program, tasks=(program.tasks[0], faulty)))
    assert rows(graph) == [[], [0]]


def test_cycles_have_no_level() -> None:
    graph = task_graph(of_edges(5, [(0, 1), (1, 2), (2, 1), (2, 3)]))
    assert graph.levels.tolist() == [0, -1, -1, -1, 0]
    assert task_graph(of_edges(1, [(0, 0)])).levels.tolist() == [-1]


def test_order_in_the_list_does_not_matter() -> None:
    graph = task_graph(of_edges(3, [(2, 1), (1, 0)]))
    assert graph.levels.tolist() == [2, 1, 0]


def test_an_empty_scope() -> None:
    graph = task_graph(of_edges(0, []))
    assert (len(graph.ids), graph.levels.tolist(), graph.predecessors.indptr.tolist()) == (0, [], [0])
    assert graph.to_networkx().number_of_nodes() == 0


@settings(max_examples=40)
@given(programs())
def test_levels_are_longest_ways(program: DistributedTaskIR) -> None:
    graph = task_graph(program)
    view = graph.to_networkx()
    assert list(view) == [str(task.id) for task in program.tasks]
    assert nx.is_directed_acyclic_graph(view)
    for generation, members in enumerate(nx.topological_generations(view)):
        for member in members:
            assert view.nodes[member]["level"] == generation
    assert [view.nodes[str(task.id)]["name"] for task in program.tasks] == [task.name for task in program.tasks]
    for index, identifier in enumerate(graph.ids):
        assert set(view.predecessors(str(identifier))) == {
            str(graph.ids[other]) for other in graph.predecessors.of(index)
        }


def calls_of(work: Callable[[], Any]) -> int:
    count = 0

    def tick(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_cost_is_linear_in_tasks_and_edges() -> None:
    def made(count: int) -> DistributedTaskIR:
        build = ProgramBuilder("chain", axes={"x": 1})
        before = [build.task("a.b")]
        for _ in range(count):
            before = [*before, build.task("a.b", after=before)][-3:]
        return build.build()

    small, large = made(200), made(1600)
    assert calls_of(lambda: task_graph(large)) < 9 * calls_of(lambda: task_graph(small))
