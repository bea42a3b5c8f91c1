"""Rank sets: runs behave as the tuples they stand for and are never walked."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.ir import RankRange, all_ranks
from dtir.ir.ranks import (
    EXPANDED_RANKS_LIMIT,
    LONGEST_RUN,
    groups_partition,
    has_repeats,
    highest_rank,
    rank_set,
    rank_text,
    same_ranks,
    set_of_range,
)
from dtir.schema.frozen import exact_equal, exact_key

runs = st.builds(RankRange, st.integers(0, 20), st.integers(0, 40), st.integers(1, 5))
rank_lists = st.lists(st.integers(0, 12), max_size=8).map(tuple)
HUGE = RankRange(0, 2_000_000_000)


@given(runs)
def test_a_run_is_its_tuple(run: RankRange) -> None:
    ranks = tuple(range(run.start, run.stop, run.step))
    assert tuple(run) == ranks
    assert len(run) == len(ranks)
    assert run == ranks
    assert ranks == run
    assert hash(run) == hash(ranks)
    assert exact_equal(run, ranks)
    assert exact_equal(ranks, run)
    assert exact_key(run) == exact_key(ranks)
    assert [run[index] for index in range(len(run))] == list(ranks)
    assert run[1:3] == ranks[1:3]
    assert all(rank in run for rank in ranks)


@given(runs, runs)
def test_equality_of_runs_is_that_of_their_ranks(left: RankRange, right: RankRange) -> None:
    assert (left == right) == (tuple(left) == tuple(right))
    if left == right:
        assert hash(left) == hash(right)


@given(runs, rank_lists)
def test_equality_with_any_tuple(run: RankRange, ranks: tuple[int, ...]) -> None:
    assert (run == ranks) == (tuple(run) == ranks)


def test_kinds_are_kept_apart() -> None:
    assert RankRange(0, 2) != (False, True)
    assert RankRange(0, 2) != (0.0, 1.0)
    assert RankRange(0, 2) != [0, 1]
    assert True not in RankRange(0, 2)
    assert "0" not in RankRange(0, 2)
    with pytest.raises(IndexError):
        RankRange(0, 2)[2]


def test_a_long_tuple_is_no_run() -> None:
    # Equal things have equal hashes, and the hash of a long run is not that of the tuple.
    count = EXPANDED_RANKS_LIMIT + 1
    assert RankRange(0, count) != tuple(range(count))
    assert RankRange(0, EXPANDED_RANKS_LIMIT) == tuple(range(EXPANDED_RANKS_LIMIT))
    assert RankRange(0, count, 1) == RankRange(0, count)
    assert exact_key(RankRange(0, count)) == exact_key(RankRange(0, count))


def test_all_ranks() -> None:
    assert all_ranks(3) == (0, 1, 2)
    assert type(all_ranks(EXPANDED_RANKS_LIMIT)) is tuple
    assert type(all_ranks(EXPANDED_RANKS_LIMIT + 1)) is RankRange


def test_a_run_has_a_length() -> None:
    assert len(RankRange(0, LONGEST_RUN)) == LONGEST_RUN
    with pytest.raises(ValueError, match="holds at most"):
        RankRange(0, LONGEST_RUN + 1)
    with pytest.raises(ValueError, match="holds at most"):
        RankRange(5, 10**40, 3)
    assert len(RankRange(0, 10**40, 10**30)) == 10**10
    with pytest.raises(TypeError, match=r"RankRange\.step must match"):
        RankRange(0, 4, 0)


sets = st.one_of(runs, rank_lists)


@given(sets, sets)
def test_same_ranks_compares_sets(left: Any, right: Any) -> None:
    assert same_ranks(left, right) == (set(left) == set(right))
    assert same_ranks(right, left) == same_ranks(left, right)
    assert same_ranks(left, left)


@given(rank_lists)
def test_facts_of_lists(ranks: tuple[int, ...]) -> None:
    assert has_repeats(ranks) == (len(set(ranks)) < len(ranks))
    assert set(rank_set(ranks)) == set(ranks)
    if ranks:
        assert highest_rank(ranks) == max(ranks)


def test_facts_of_runs() -> None:
    assert highest_rank(RankRange(1, 9, 3)) == 7
    assert not has_repeats(RankRange(0, 3))
    assert rank_set(HUGE) is HUGE
    assert set_of_range(HUGE) == range(2_000_000_000)


def test_a_number_for_a_message_is_short() -> None:
    assert rank_text(7) == "7"
    assert rank_text(10**5000) == "of about 2**16609"


# -- partitions --------------------------------------------------------------------------------------------------


@given(st.lists(rank_lists, max_size=4).map(tuple), rank_lists.map(set).map(tuple))
def test_a_partition_names_every_member_once(groups: tuple[tuple[int, ...], ...], members: tuple[int, ...]) -> None:
    named = sorted(rank for group in groups for rank in group)
    assert groups_partition(groups, members) == (named == sorted(members))


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 7))
def test_huge_groups_are_compared_without_walking(half: int, more: int, count: int) -> None:
    size = 2_000_000 + half
    everyone = RankRange(0, size * count)
    contiguous = [RankRange(index * size, (index + 1) * size) for index in range(count)]
    strided = [RankRange(index, size * count, count) for index in range(count)]
    for groups in (contiguous, strided):
        assert groups_partition(groups, everyone)
        assert not groups_partition(groups[1:], everyone)
        moved = [*groups[:-1], RankRange(groups[-1].start + more, groups[-1].stop + more, groups[-1].step)]
        assert not groups_partition(moved, everyone)
    if count > 1:
        assert not groups_partition([contiguous[0]] * count, everyone)
    # Tuples and runs together, in any order.
    mixed = [RankRange(3, size * count), (2, 0, 1)]
    assert groups_partition(mixed, everyone)
    assert not groups_partition([RankRange(3, size * count), (2, 0, 3)], everyone)


def test_nothing_here_costs_memory() -> None:
    tracemalloc.start()
    try:
        assert same_ranks(HUGE, RankRange(0, 2_000_000_000))
        assert not same_ranks(HUGE, (0, 1))
        assert not same_ranks((0, 1), HUGE)
        assert groups_partition((RankRange(0, 10**9), RankRange(10**9, 2 * 10**9)), HUGE)
        assert hash(HUGE) == hash(RankRange(0, 2_000_000_000))
        assert highest_rank(HUGE) == 1_999_999_999
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
