"""The formulas against executions of the algorithms, message by message; sums, identities and lower bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost import formulas as f
from dtir.cost.algorithms import ALGORITHMS, RING_ALGORITHMS, Link, Shape, best, candidates, crossovers
from dtir.cost.bounds import bus_factor, lower_bound
from dtir.cost.formulas import Terms
from dtir.ir.collectives import CollectiveKind
from tests.cost import walk as w

AR, RS, AG = CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER
A2A, BC = CollectiveKind.ALL_TO_ALL, CollectiveKind.BROADCAST

EXECUTIONS: dict[tuple[CollectiveKind, str], w.Execution] = {
    (AR, "recursive_doubling"): w.recursive_doubling_all_reduce,
    (AR, "rabenseifner"): w.rabenseifner_all_reduce,
    (AR, "ring"): w.ring_all_reduce,
    (RS, "recursive_halving"): w.recursive_halving_reduce_scatter,
    (RS, "ring"): w.ring_reduce_scatter,
    (RS, "pairwise"): w.pairwise_reduce_scatter,
    (AG, "recursive_doubling"): w.recursive_doubling_all_gather,
    (AG, "bruck"): w.bruck_all_gather,
    (AG, "ring"): w.ring_all_gather,
    (A2A, "bruck"): w.bruck_all_to_all,
    (A2A, "pairwise"): w.pairwise_all_to_all,
    (BC, "binomial"): w.binomial_broadcast,
    (BC, "scatter_all_gather"): w.scatter_all_gather_broadcast,
}


def wanted(kind: CollectiveKind, data: list[w.Vector]) -> list[w.Vector]:
    p = len(data)
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return [np.sum(data, axis=0)] * p
        case CollectiveKind.REDUCE_SCATTER:
            return list(np.sum(data, axis=0).reshape(p, -1))
        case CollectiveKind.ALL_GATHER:
            return [np.concatenate(data)] * p
        case CollectiveKind.ALL_TO_ALL:
            return [np.concatenate([item.reshape(p, -1)[rank] for item in data]) for rank in range(p)]
        case _:
            return [data[0]] * p


def execute(kind: CollectiveKind, execution: w.Execution, p: int, n: int) -> w.Walk:
    """Counts of one execution whose results are right; n is S."""
    data = w.vectors(p, n // p if kind is AG else n)
    expected = [item.copy() for item in wanted(kind, data)]
    walk = w.Walk()
    found = execution(p, data, walk)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, right)
    return walk


def test_every_algorithm_is_executed() -> None:
    tables = {(kind, name) for kind, table in ALGORITHMS.items() for name in table}
    assert tables - set(EXECUTIONS) == {(CollectiveKind.COLLECTIVE_PERMUTE, "transfer")}


@pytest.mark.parametrize(("kind", "name"), EXECUTIONS, ids=lambda item: getattr(item, "value", item))
@pytest.mark.parametrize("p", [*range(1, 18), 24, 32])
def test_formula_counts_what_the_execution_sends(kind: CollectiveKind, name: str, p: int) -> None:
    n = 64 * p * (1 << (p.bit_length() - 1))
    terms = ALGORITHMS[kind][name](p, n)
    if terms is None:
        assert not f.is_power_of_two(p)
        return
    walk = execute(kind, EXECUTIONS[kind, name], p, n)
    assert (walk.steps, walk.total) == (terms.steps, terms.total_bytes)
    if name == "rabenseifner" and not f.is_power_of_two(p):
        # MPICH's formula has p where the steps need the power of two below it.
        assert 0 <= terms.wire_bytes - walk.wire <= Fraction(2 * n, p)
        assert 0 <= terms.reduced_bytes - walk.reduced <= Fraction(n, p)
        return
    assert (walk.wire, walk.reduced) == (terms.wire_bytes, terms.reduced_bytes)


@pytest.mark.parametrize("p", range(1, 20))
def test_all_to_all_on_a_ring_is_the_load_of_the_busiest_link(p: int) -> None:
    n = 8 * p
    walk = execute(A2A, w.ring_all_to_all, p, n)
    terms = f.ring_all_to_all(p, n)
    assert (walk.steps, walk.wire, walk.total) == (terms.steps, terms.wire_bytes, terms.total_bytes)


sizes = st.integers(0, 1 << 40)
groups = st.integers(1, 5000)


@given(groups, sizes)
def test_all_reduce_is_reduce_scatter_and_all_gather(p: int, n: int) -> None:
    assert f.ring_all_reduce(p, n) == f.ring_reduce_scatter(p, n) + f.ring_all_gather(p, n)
    halving, doubling = f.recursive_halving_reduce_scatter(p, n), f.recursive_doubling_all_gather(p, n)
    if halving is not None and doubling is not None:
        assert f.rabenseifner_all_reduce(p, n) == halving + doubling


@given(groups, sizes)
def test_no_algorithm_is_below_the_lower_bounds(p: int, n: int) -> None:
    for kind, table in ALGORITHMS.items():
        bound = lower_bound(kind, p, n)
        for name, formula in table.items():
            terms = formula(p, n)
            if terms is None or (p == 1 and kind is CollectiveKind.COLLECTIVE_PERMUTE):
                continue
            assert terms.steps >= bound.steps, (kind, name)
            assert terms.wire_bytes >= bound.wire_bytes, (kind, name)
            assert terms.total_bytes >= bound.total_bytes, (kind, name)
            if kind in (AR, RS):
                assert terms.reduced_bytes >= bound.reduced_bytes, (kind, name)


@given(groups, sizes, st.integers(1, 64))
def test_a_tree_is_not_below_the_lower_bounds(p: int, n: int, chunks: int) -> None:
    terms, bound = f.tree_all_reduce(p, n, chunks), lower_bound(AR, p, n)
    assert terms.steps >= bound.steps
    assert terms.wire_bytes >= bound.wire_bytes
    assert terms.total_bytes == bound.total_bytes


@given(groups, sizes)
def test_what_two_directions_save_is_half_of_the_bytes(p: int, n: int) -> None:
    for kind, name in ((AR, "ring"), (RS, "ring"), (AG, "ring")):
        one, both = ALGORITHMS[kind][name](p, n), RING_ALGORITHMS[kind]["bidirectional_ring"](p, n)
        assert one is not None
        assert both is not None
        assert (2 * both.wire_bytes, both.steps, both.total_bytes) == (one.wire_bytes, one.steps, one.total_bytes)


@given(st.integers(2, 512), sizes, st.floats(1e-7, 1e-3), st.floats(1e-12, 1e-6))
def test_the_best_is_the_least_of_the_candidates(p: int, n: int, alpha: float, beta: float) -> None:
    for shape in Shape:
        link = Link(alpha, beta, beta / 3, shape)
        for kind in CollectiveKind:
            found = best(kind, p, n, link)
            assert found.seconds == min(item.seconds for item in candidates(kind, p, n, link))
            assert found.seconds == found.terms.seconds(alpha, beta, beta / 3)


@given(st.sampled_from([AR, RS, AG, A2A, BC]), st.integers(2, 64))
def test_crossovers_name_the_best_algorithm_of_every_size(kind: CollectiveKind, p: int) -> None:
    link = Link(2e-6, 1e-10, 2e-11)
    table = crossovers(kind, p, link, 8, 1 << 26)
    assert table[0][0] == 8
    assert [size for size, _ in table] == sorted({size for size, _ in table})
    for place, (size, name) in enumerate(table):
        assert best(kind, p, size, link).name == name
        if place:
            assert best(kind, p, size - 1, link).name == table[place - 1][1]


def test_small_messages_want_few_steps_and_large_ones_few_bytes() -> None:
    link = Link(1e-5, 1e-9)
    assert best(AR, 16, 8, link).name == "recursive_doubling"
    assert best(AR, 16, 1 << 30, link).terms.wire_bytes == lower_bound(AR, 16, 1 << 30).wire_bytes
    assert best(BC, 16, 8, link).name == "binomial"
    assert best(BC, 16, 1 << 30, link).name == "scatter_all_gather"
    assert best(A2A, 16, 8, link).name == "bruck"
    assert best(A2A, 16, 1 << 30, link).name == "pairwise"


def test_a_group_of_one_costs_nothing() -> None:
    for kind in CollectiveKind:
        assert best(kind, 1, 1 << 20, Link(1e-6, 1e-9)).seconds == 0


@pytest.mark.parametrize("p", [0, -3])
def test_a_group_without_ranks_is_refused(p: int) -> None:
    with pytest.raises(ValueError, match=f"p={p}"):
        f.ring_all_reduce(p, 8)


def test_bus_bandwidth_does_not_depend_on_the_group() -> None:
    # A ring of p ranks on a link of 1 / β: algbw · factor is the link's rate for every p.
    for p in (2, 3, 8, 64):
        for kind in (AR, RS, AG):
            terms = ALGORITHMS[kind]["ring"](p, 1 << 30)
            assert isinstance(terms, Terms)
            seconds = terms.seconds(0.0, 1e-9)
            assert (1 << 30) / seconds * bus_factor(kind, p) == pytest.approx(1e9)
