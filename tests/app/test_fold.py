from __future__ import annotations

import numpy as np
from dtir_app.fold import Folded, fold, unfolded
from hypothesis import given
from hypothesis import strategies as st

from tests.app.strategies import Graph, graphs


def folded(graph: Graph, visible: list[bool]) -> Folded:
    count, source, destination = graph
    return fold(
        count, source, destination, np.zeros(len(source), bool), np.array(visible[:count] + [False] * count)[:count]
    )


SHOWN = st.lists(st.booleans(), min_size=40, max_size=40)


@given(graphs(), SHOWN)
def test_every_task_is_in_one_item(graph: Graph, visible: list[bool]) -> None:
    made = folded(graph, visible)
    assert np.bincount(made.item, minlength=made.count).tolist() == made.size.tolist()
    assert made.size.sum() == graph[0]
    assert (made.item[made.first] == np.arange(made.count)).all()


@given(graphs(), SHOWN)
def test_communication_stays_alone(graph: Graph, visible: list[bool]) -> None:
    made = folded(graph, visible)
    for task in range(graph[0]):
        if visible[task]:
            assert made.size[made.item[task]] == 1


@given(graphs(), SHOWN)
def test_the_folded_graph_has_no_cycle(graph: Graph, visible: list[bool]) -> None:
    made = folded(graph, visible)
    assert (made.source < made.destination).all()


@given(graphs(), SHOWN)
def test_edges_between_items_are_those_between_their_tasks(graph: Graph, visible: list[bool]) -> None:
    made = folded(graph, visible)
    _, source, destination = graph
    pairs = [
        (int(made.item[a]), int(made.item[b]))
        for a, b in zip(source, destination, strict=True)
        if made.item[a] != made.item[b]
    ]
    assert sorted(set(pairs)) == sorted(zip(made.source.tolist(), made.destination.tolist(), strict=True))
    assert made.weight.sum() == len(pairs)


@given(graphs(), SHOWN)
def test_a_block_hangs_together(graph: Graph, visible: list[bool]) -> None:
    made = folded(graph, visible)
    _, source, destination = graph
    for item in np.flatnonzero(made.size > 1).tolist():
        members = set(np.flatnonzero(made.item == item).tolist())
        reached, waiting = set(), [min(members)]
        while waiting:
            task = waiting.pop()
            if task in reached:
                continue
            reached.add(task)
            near = [*destination[source == task].tolist(), *source[destination == task].tolist()]
            waiting += [other for other in near if other in members]
        assert reached == members


def test_work_between_two_collectives_is_one_block() -> None:
    # a b | AR | c d | AR | e, and a constant k that only e uses
    source = np.array([0, 1, 2, 3, 4, 5, 7], dtype=np.int32)
    destination = np.array([1, 2, 3, 4, 5, 6, 6], dtype=np.int32)
    order = np.argsort(destination)
    visible = [False, False, True, False, False, True, False, False]
    # the constant is listed first
    shift = {7: 0} | {task: task + 1 for task in range(7)}
    made = fold(
        8,
        np.array([shift[int(t)] for t in source[order]], np.int32),
        np.array([shift[int(t)] for t in destination[order]], np.int32),
        np.zeros(7, bool),
        np.array([False, *visible[:7]]),
    )
    blocks = [sorted(np.flatnonzero(made.item == item).tolist()) for item in range(made.count)]
    assert blocks == [[1, 2], [3], [4, 5], [6], [0, 7]]


def test_a_pair_is_mere_order_only_when_all_its_edges_are() -> None:
    source, destination = np.array([0, 1], np.int32), np.array([2, 2], np.int32)
    visible = np.array([False, False, True])
    joined = np.array([0, 0], np.int32), np.array([1, 2], np.int32)
    made = fold(3, np.append(joined[0], 1), np.append(joined[1], 2), np.array([False, True, False]), visible)
    assert made.order_only.tolist() == [False]
    alone = fold(3, source, destination, np.array([True, True]), visible)
    assert alone.order_only.all()


def test_unfolded_keeps_the_list() -> None:
    made = unfolded(3, np.array([0]), np.array([2]), np.array([False]))
    assert made.item.tolist() == [0, 1, 2]
    assert made.size.tolist() == [1, 1, 1]
