"""Rank classes: symmetric ranks stay together, others are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.groups import axis_fibres
from dtir.cost.classes import Pairs, RankClasses, pattern_of
from dtir.cost.spread import TooMany
from dtir.ir.mesh import LogicalMesh, MeshAxis

MESH = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4)))


def members(classes: RankClasses) -> set[tuple[int, ...]]:
    return {tuple(classes.ranks_of(number)) for number in range(classes.count)}


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_ranks_that_all_do_the_same_are_one_class() -> None:
    classes = RankClasses(8)
    classes.refine([pattern_of(axis_fibres(MESH, ("tp",)), None), pattern_of(axis_fibres(MESH, ("dp",)), None)])
    assert members(classes) == {tuple(range(8))}
    assert (classes.first_ranks(), classes.sizes()) == ([0], [8])


def test_a_rank_that_does_something_else_takes_its_groups_along() -> None:
    classes = RankClasses(8)
    classes.split_off((0,))
    classes.refine([pattern_of(axis_fibres(MESH, ("tp",)), None)])
    # Rank 0; who meets it (1 to 3); who does not.
    assert members(classes) == {(0,), (1, 2, 3), (4, 5, 6, 7)}
    classes.refine([pattern_of(axis_fibres(MESH, ("dp",)), None), pattern_of(axis_fibres(MESH, ("tp",)), None)])
    assert members(classes) == {(0,), (1, 2, 3), (4,), (5, 6, 7)}


def test_a_ring_stays_one_class_and_a_chain_does_not() -> None:
    ranks = ints(0, 1, 2, 3)
    ring = RankClasses(4)
    ring.refine([Pairs(ranks, ints(1, 2, 3, 0), ints(0, 0, 0, 0))])
    assert ring.count == 1
    chain = RankClasses(4)
    chain.refine([Pairs(ranks[:3], ints(1, 2, 3), ints(0, 0, 0))])
    assert chain.count == 4
    dear = RankClasses(4)
    dear.refine([Pairs(ranks, ints(1, 2, 3, 0), ints(0, 0, 0, 1))])
    assert dear.count == 4


def test_prices_and_sizes_of_groups_tell_apart() -> None:
    groups = ((0, 1), (2, 3), (4, 5), (6, 7))
    classes = RankClasses(8)
    classes.refine([pattern_of(groups, ints(0, 0, 1, 0))])
    assert members(classes) == {(0, 1, 2, 3, 6, 7), (4, 5)}
    uneven = RankClasses(8)
    uneven.refine([pattern_of(((0, 1, 2), (3, 4, 5), (6, 7)), None)])
    assert members(uneven) == {(0, 1, 2, 3, 4, 5), (6, 7)}
    outside = RankClasses(4)
    outside.refine([pattern_of(((0, 1),), None)])
    assert members(outside) == {(0, 1), (2, 3)}


@given(st.lists(st.integers(0, 3), min_size=12, max_size=12), st.permutations(range(12)))
def test_classes_are_equitable(labels: list[int], shuffled: list[int]) -> None:
    """In the end, ranks of one class meet the same classes."""
    groups = (tuple(shuffled[:5]), tuple(shuffled[5:8]), tuple(shuffled[8:]))
    classes = RankClasses(12)
    classes.split(ints(*labels))
    classes.refine([pattern_of(groups, None)])
    signature: dict[int, set[tuple[int, ...]]] = {}
    for group in groups:
        seen = tuple(sorted(classes.of(rank) for rank in group))
        for rank in group:
            signature.setdefault(classes.of(rank), set()).add(seen)
    assert all(len(seen) == 1 for seen in signature.values())
    for first in range(12):
        for second in range(12):
            if labels[first] != labels[second]:
                assert classes.of(first) != classes.of(second)


def test_a_huge_mesh_that_does_one_thing_is_never_expanded() -> None:
    classes = RankClasses(2_000_000_000)
    classes.split_off(range(2_000_000_000))
    assert (classes.count, classes.sizes(), classes.of(7)) == (1, [2_000_000_000], 0)
    with pytest.raises(TooMany):
        classes.split_off((0, 1))
