from __future__ import annotations

import numpy as np
from dtir_app.layout import MAX_LANES, arrange, columns_of, levels
from hypothesis import given

from tests.app.strategies import Graph, graphs


@given(graphs())
def test_every_edge_goes_to_a_later_level(graph: Graph) -> None:
    count, source, destination = graph
    level = levels(count, source, destination)
    assert (level[source] < level[destination]).all()
    assert level.min() >= 0


@given(graphs())
def test_an_item_stands_just_before_its_first_user(graph: Graph) -> None:
    count, source, destination = graph
    level = levels(count, source, destination)
    for item in range(count):
        users = destination[source == item]
        if len(users):
            assert level[item] == level[users].min() - 1


@given(graphs())
def test_items_of_a_level_do_not_overlap(graph: Graph) -> None:
    made = arrange(*graph)
    for level in range(made.level_count):
        lanes = np.sort(made.lane[made.level == level])
        assert (np.diff(lanes) > 1 - 1e-6).all()
    assert made.lane.min() == 0


@given(graphs())
def test_equal_graphs_give_equal_pictures(graph: Graph) -> None:
    first, second = arrange(*graph), arrange(*graph)
    assert (first.level == second.level).all()
    assert (first.lane == second.lane).all()


def test_a_chain_is_a_straight_line() -> None:
    steps = np.arange(99, dtype=np.int32)
    made = arrange(100, steps, steps + 1)
    assert made.level.tolist() == list(range(100))
    assert made.lane.max() == 0


def test_a_fan_is_centred_on_its_root() -> None:
    source, destination = np.zeros(4, np.int32), np.arange(1, 5, dtype=np.int32)
    made = arrange(5, source, destination)
    assert made.lane[0] == np.mean(made.lane[1:])


def test_an_edge_against_the_order_does_not_count() -> None:
    assert levels(3, np.array([0, 2, 1]), np.array([1, 0, 2])).tolist() == [0, 1, 2]


def test_nothing_has_no_levels() -> None:
    empty = np.zeros(0, np.int32)
    assert arrange(0, empty, empty).level_count == 0


@given(graphs())
def test_full_levels_become_columns_and_edges_still_lead_to_the_right(graph: Graph) -> None:
    count, source, destination = graph
    made = columns_of(levels(count, source, destination), 3)
    assert (made[source] < made[destination]).all()
    counts = np.bincount(made)
    assert counts.max() <= 3
    assert counts.min() >= 1


def test_a_thousand_independent_items_are_a_block_not_a_tower() -> None:
    empty = np.zeros(0, np.int32)
    made = arrange(1000, empty, empty)
    assert made.level_count == 1000 // MAX_LANES
    assert made.lane.max() == MAX_LANES - 1
