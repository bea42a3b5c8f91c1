"""Hierarchical collectives: the formulas of SEMANTICS 3.3, and that nothing is lost or sent twice."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost import formulas as f
from dtir.cost.algorithms import ALGORITHMS, Link, best
from dtir.cost.formulas import Terms
from dtir.cost.hierarchy import hierarchical, phases
from dtir.ir.collectives import CollectiveKind

AR, RS, AG = CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER
A2A, BC = CollectiveKind.ALL_TO_ALL, CollectiveKind.BROADCAST

levels = st.lists(st.integers(1, 16), min_size=1, max_size=4)


def ring(kind: CollectiveKind, p: int, n: f.Number) -> Terms:
    terms = ALGORITHMS[kind]["ring"](p, n)
    assert terms is not None
    return terms


@given(levels, st.integers(0, 1 << 40))
def test_ring_phases_send_the_bytes_of_the_flat_ring(sizes: list[int], n: int) -> None:
    p = 1
    for size in sizes:
        p *= size
    for kind in (AR, RS, AG):
        total = sum(ring(phase.kind, phase.members, phase.size_bytes).wire_bytes for phase in phases(kind, sizes, n))
        assert total == ring(kind, p, n).wire_bytes


@given(st.integers(2, 16), st.integers(2, 16), st.integers(1, 1 << 40))
def test_two_levels_of_rings_cost_what_the_formula_says(g: int, nodes: int, size: int) -> None:
    inner, outer = (1e-6, 2e-11), (1e-5, 5e-10)
    found = sum(
        ring(phase.kind, phase.members, phase.size_bytes).seconds(*(inner, outer)[phase.level])
        for phase in phases(AR, (g, nodes), size)
    )
    wanted = (
        2 * (g - 1) * inner[0]
        + 2 * size * (g - 1) / g * inner[1]
        + 2 * (nodes - 1) * outer[0]
        + 2 * (size / g) * (nodes - 1) / nodes * outer[1]
    )
    assert found == pytest.approx(wanted)


@given(st.integers(2, 16), st.integers(2, 16), st.integers(1, 1 << 40))
def test_slow_links_carry_a_share(g: int, nodes: int, size: int) -> None:
    links = (Link(1e-6, 1e-11), Link(1e-6, 1e-9))

    def slow(kind: CollectiveKind) -> f.Number:
        return sum(
            ring(phase.kind, phase.members, phase.size_bytes).wire_bytes
            for phase in phases(kind, (g, nodes), size)
            if phase.level == 1
        )

    assert slow(AR) == 2 * Fraction(size, g) * Fraction(nodes - 1, nodes)
    assert slow(RS) == slow(AG) == Fraction(size, g) * Fraction(nodes - 1, nodes)
    exchange = hierarchical(A2A, (g, nodes), size, links)
    pairwise = [f.pairwise_all_to_all(phase.members, phase.size_bytes) for phase in exchange.phases]
    assert [terms.steps for terms in pairwise] == [g - 1, nodes - 1]
    assert pairwise[1].wire_bytes == Fraction(size * (nodes - 1), nodes)


@given(st.integers(2, 64), st.integers(1, 1 << 30))
def test_one_level_is_the_flat_collective(p: int, size: int) -> None:
    link = Link(3e-6, 1e-10, 1e-11)
    for kind in CollectiveKind:
        found = hierarchical(kind, (p,), size, (link,))
        assert found.seconds == best(kind, p, size, link).seconds


def test_a_broadcast_goes_from_the_outside_in() -> None:
    assert [phase.level for phase in phases(BC, (8, 4, 2), 10)] == [2, 1, 0]


def test_levels_of_one_rank_are_left_out() -> None:
    assert [phase.level for phase in phases(AR, (1, 4), 16)] == [1]
    assert phases(AR, (1, 1), 16) == []


def test_links_must_match_levels() -> None:
    with pytest.raises(ValueError, match="one link a level"):
        hierarchical(AR, (2, 2), 16, (Link(0, 0),))
