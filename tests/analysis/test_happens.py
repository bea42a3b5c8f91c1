"""Happens-before: batched answers against the transitive closure, on random graphs."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.happens import Order, happens_before, topological_order
from tests.helpers.authoring import program, sketch


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    count = draw(st.integers(1, 24))
    return [tuple(sorted(draw(st.sets(st.integers(0, late - 1), max_size=3)))) if late else () for late in range(count)]


def closure(before: list[tuple[int, ...]]) -> set[tuple[int, int]]:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(before)))
    graph.add_edges_from((early, late) for late, items in enumerate(before) for early in items)
    return set(nx.transitive_closure(graph, reflexive=False).edges)


@given(graphs(), st.data())
def test_answers_are_those_of_the_closure(before: list[tuple[int, ...]], data: st.DataObject) -> None:
    place = st.integers(0, len(before) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=60))
    order = Order(tuple(before), topological_order(before))
    known = closure(before)
    assert order.ordered(pairs) == [pair in known for pair in pairs]
    assert order.comparable(pairs) == [pair in known or pair[::-1] in known for pair in pairs]


@given(graphs(), st.data())
def test_answers_without_a_topological_order(before: list[tuple[int, ...]], data: st.DataObject) -> None:
    place = st.integers(0, len(before) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=20))
    known = closure(before)
    assert Order(tuple(before), None).ordered(pairs) == [pair in known for pair in pairs]


def test_many_open_queries_are_squeezed() -> None:
    count = 2000
    before = [(index - 1,) if index else () for index in range(count)]
    order = Order(tuple(before), tuple(range(count)))
    pairs = [(index, min(count - 1, index + 3)) for index in range(count - 1)]
    assert all(order.ordered(pairs))


def test_a_circle_has_no_order() -> None:
    assert topological_order([(1,), (0,)]) is None


PROGRAM = """
mesh [tp, 2]
{issue}
values
  x [4] partial: {{tp: sum}}
  X [4]
  u [4] partial: {{tp: sum}}
  U [4]
  y [4]
tasks
  a: ar x -> X, axes: [tp], reduction: sum
  b: ar u -> U, axes: [tp], reduction: sum
  c: relu X -> y
  w: control -> , completes: [{completes}], deps: [{deps}]
in x, u
out y, U
"""


def order_of(*, issue: str = "", completes: str = "", deps: str = "") -> Order:
    return happens_before(
        program(sketch(PROGRAM.format(issue=issue, completes=completes, deps=deps).replace("\n\n", "\n")))
    )


def test_list_order_is_no_order() -> None:
    order = order_of()
    assert order.comparable([(0, 1), (0, 2), (1, 2), (2, 3)]) == [False, True, False, False]


def test_dependencies_waits_and_issue_order_are() -> None:
    assert order_of(deps="b").ordered([(1, 3)]) == [True]
    assert order_of(completes="a").ordered([(0, 3), (1, 3)]) == [True, False]
    assert order_of(issue="issue: {0: [a, b, c, w], 1: [a, b, c, w]}").ordered([(0, 1), (1, 2), (0, 3)]) == [True] * 3


def test_an_asynchronous_task_orders_only_by_its_completion() -> None:
    order = order_of(issue="issue: {0: [a, b, w, c], 1: [a, b, w, c]}", completes="a")
    assert order.ordered([(0, 1), (0, 3), (1, 3)]) == [False, True, True]


def test_tasks_of_one_step_are_not_ordered_among_each_other() -> None:
    order = order_of(issue="issue: {0: [[a, b], w], 1: [[b, a], w]}")
    assert order.comparable([(0, 1)]) == [False]
    assert order.ordered([(0, 3), (1, 3)]) == [True, True]
