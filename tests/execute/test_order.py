from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute.order import total_order
from dtir.ir import IssueList, LocalCompute, LogicalMesh
from tests.helpers.programs import mesh_of, node_id, task

MESH: LogicalMesh = mesh_of(x=4)


def tasks_of(edges: Sequence[Sequence[int]]) -> list:
    """Tasks t0, t1, ...; edges[i] are the numbers of those that task i depends on."""
    return [
        task(f"t{number}", MESH, LocalCompute(), dependencies=tuple(node_id(f"t{item}") for item in before))
        for number, before in enumerate(edges)
    ]


def issue(rank: int, *steps: Sequence[int]) -> IssueList:
    return IssueList(rank, tuple(tuple(node_id(f"t{item}") for item in step) for step in steps))


def test_without_constraints_the_program_order_stays() -> None:
    assert total_order(tasks_of([[], [], []])) == ([0, 1, 2], [])


def test_issue_lists_move_tasks() -> None:
    order, circle = total_order(tasks_of([[], [], []]), [issue(0, [2], [0]), issue(1, [1])])
    assert circle == []
    assert order == [1, 2, 0]


def test_grouped_steps_stay_together_before_the_next() -> None:
    order, circle = total_order(tasks_of([[], [], [], []]), [issue(0, [3, 2], [1, 0])])
    assert circle == []
    assert set(order[:2]) == {2, 3}


def test_opposite_orders_are_a_circle() -> None:
    order, circle = total_order(tasks_of([[], [], []]), [issue(0, [0], [1]), issue(1, [1], [0])])
    assert order == [2]
    assert circle == [0, 1]


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_every_dependency_comes_first(edges: list[list[int]]) -> None:
    # Only earlier tasks: a valid program.
    kept = [[item for item in before if item < number] for number, before in enumerate(edges)]
    order, circle = total_order(tasks_of(kept))
    assert circle == []
    place = {item: position for position, item in enumerate(order)}
    assert all(place[item] < place[number] for number, before in enumerate(kept) for item in before)
    assert order == list(range(len(edges))), "of the ready tasks the first in the program comes next"


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_two_ranks_in_some_orders(first: list[int], second: list[int]) -> None:
    """An order exists exactly when the two lists agree, and then every list is a subsequence of it."""
    order, circle = total_order(
        tasks_of([[]] * 6), [issue(0, *([item] for item in first)), issue(1, *([item] for item in second))]
    )
    if first == second:
        assert order == first
    else:
        assert circle


@pytest.mark.parametrize("width", [3_000])
def test_wide_steps_cost_no_pairs(width: int) -> None:
    """Two grouped steps of n tasks give n edges to and from one node between them, not n squared."""
    half = list(range(width))
    other = list(range(width, 2 * width))
    order, circle = total_order(tasks_of([[]] * (2 * width)), [issue(0, other, half)])
    assert circle == []
    assert set(order[:width]) == set(other)
