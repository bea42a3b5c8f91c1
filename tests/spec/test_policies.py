"""Storage policies: what ranks store, read, add to, and give back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.spec import (
    GraphParallelPolicy,
    HaloPolicy,
    LocalPolicy,
    RefreshHaloPolicy,
    RowLayout,
    ShardPolicy,
    SpecError,
    StoragePolicy,
    policy_from_dict,
    register_policy_kind,
)
from dtir.spec.policy_json import merged_policy, policy_kinds

POLICIES = [LocalPolicy(), ShardPolicy(), GraphParallelPolicy(), HaloPolicy(), RefreshHaloPolicy()]


@st.composite
def layouts(draw: st.DrawFn) -> RowLayout:
    """Rows dealt out at random, ranks without any included, and random ghosts."""
    ranks, rows = draw(st.integers(1, 5)), draw(st.integers(0, 12))
    owners = np.array(draw(st.lists(st.integers(0, ranks - 1), min_size=rows, max_size=rows)), dtype=np.int64)
    owned = tuple(np.flatnonzero(owners == rank) for rank in range(ranks))
    ghosts = []
    for rank in range(ranks):
        others = np.flatnonzero(owners != rank)
        keep = draw(st.lists(st.booleans(), min_size=len(others), max_size=len(others)))
        ghosts.append(draw(st.permutations(others[np.array(keep, dtype=bool)].tolist())))
    return RowLayout(owned, tuple(np.array(ids, dtype=np.int64) for ids in ghosts))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.kind)
@given(layout=layouts())
def test_what_is_stored_is_the_whole_again(policy: StoragePolicy, layout: RowLayout) -> None:
    full = np.arange(layout.rows * 2, dtype=np.float64).reshape(layout.rows, 2)
    stored = policy.place_from_full(full, layout)
    np.testing.assert_array_equal(policy.full_tensor(stored), full)
    again = policy.place_from_local([full[ids] for ids in layout.owned], layout)
    np.testing.assert_array_equal(policy.full_tensor(again), full)
    for rank in range(layout.ranks):
        np.testing.assert_array_equal(policy.to_local(again, rank), policy.to_local(stored, rank))


@given(layout=layouts(), seed=st.integers(0, 1000))
def test_a_corrected_scatter_is_the_undivided_one(layout: RowLayout, seed: int) -> None:
    """Whatever ranks add to rows they hold, owned or borrowed, the whole gets all of it, and ghosts show it."""
    rng = np.random.default_rng(seed)
    full = rng.integers(-5, 5, (layout.rows, 3)).astype(np.float64)
    expected = full.copy()
    index, source = [], []
    for rank in range(layout.ranks):
        held = layout.held(rank)
        places = rng.integers(0, len(held), 4) if len(held) else np.empty(0, np.int64)
        rows = rng.integers(-5, 5, (len(places), 3)).astype(np.float64)
        np.add.at(expected, held[places], rows)
        index.append(places)
        source.append(rows)
    policy = HaloPolicy()
    done = policy.scatter(policy.place_from_full(full, layout), index, source)
    np.testing.assert_array_equal(policy.full_tensor(done), expected)
    for rank in range(layout.ranks):
        np.testing.assert_array_equal(done.parts[rank], expected[layout.held(rank)])


def test_a_local_scatter_keeps_what_was_added_to_ghosts() -> None:
    layout = RowLayout((np.array([0, 1]), np.array([2])), (np.array([2]), np.array([0])))
    policy = HaloPolicy(scatter_mode="local")
    stored = policy.place_from_full(np.zeros((3, 1)), layout)
    done = policy.scatter(stored, [np.array([2]), np.array([0])], [np.ones((1, 1)), np.ones((1, 1))])
    assert policy.full_tensor(done).ravel().tolist() == [0.0, 0.0, 1.0]
    assert done.parts[0].ravel().tolist() == [0.0, 0.0, 1.0]


def test_ghosts_are_refreshed_before_they_are_read_where_the_mode_says_so() -> None:
    layout = RowLayout((np.array([0]), np.array([1])), (np.array([1]), np.array([0])))
    stored = HaloPolicy().place_from_full(np.array([[1.0], [2.0]]), layout)
    stale = type(stored)(layout, (stored.parts[0], np.array([[5.0], [1.0]])))
    places = [np.array([1]), np.array([1])]
    assert HaloPolicy().gather(stale, places)[0].tolist() == [[5.0]]
    assert HaloPolicy(gather_mode="local").gather(stale, places)[0].tolist() == [[2.0]]


@given(layout=layouts(), seed=st.integers(0, 1000))
def test_graph_parallel_adds_by_id_and_keeps_owned_rows(layout: RowLayout, seed: int) -> None:
    rng = np.random.default_rng(seed)
    full = rng.integers(-5, 5, (layout.rows, 2)).astype(np.float64)
    policy = GraphParallelPolicy()
    stored = policy.place_from_full(full, layout)
    size = 3 if layout.rows else 0
    index = [rng.integers(0, max(1, layout.rows), size) for _ in range(layout.ranks)]
    source = [rng.integers(-5, 5, (size, 2)).astype(np.float64) for _ in range(layout.ranks)]
    expected = full.copy()
    for places, rows in zip(index, source, strict=True):
        np.add.at(expected, places, rows)
    np.testing.assert_array_equal(policy.full_tensor(policy.scatter(stored, index, source)), expected)
    for seen, places in zip(policy.gather(stored, index), index, strict=True):
        np.testing.assert_array_equal(seen, full[places])


def test_a_plain_shard_has_no_way_to_other_rows() -> None:
    layout = RowLayout.contiguous((2, 2))
    stored = ShardPolicy().place_from_full(np.zeros((4, 1)), layout)
    with pytest.raises(SpecError, match="rank 1 asks for row 2 and owns 2"):
        ShardPolicy().gather(stored, [np.array([0]), np.array([2])])


def test_a_refresh_only_halo_never_sends_back() -> None:
    layout = RowLayout((np.array([0]), np.array([1])), (np.array([1]), np.array([0])))
    policy = RefreshHaloPolicy()
    done = policy.fold([np.array([[1.0], [9.0]]), np.array([[2.0], [9.0]])], layout)
    assert policy.full_tensor(done).ravel().tolist() == [1.0, 2.0]
    assert done.parts[0].ravel().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("owned", "ghosts", "said"),
    [
        ([[0, 1], [1]], [[], []], "row 1 of 3 has 2 owners"),
        ([[0], [2]], [[], []], "row 1 of 2 has 0 owners"),
        ([[0], [1]], [[0], []], "rank 0 borrows row 0, which it owns"),
        ([[0], [1]], [[1, 1], []], "rank 0 borrows a row twice"),
        ([[0], [1]], [[7], []], "rank 0 borrows row 7 of 2"),
    ],
)
def test_layouts_that_cannot_be(owned: list[list[int]], ghosts: list[list[int]], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        RowLayout(tuple(map(np.array, owned)), tuple(np.array(ids, dtype=np.int64) for ids in ghosts))


def test_routes_name_every_ghost_once() -> None:
    layout = RowLayout((np.array([0, 3]), np.array([1, 2])), (np.array([2, 1]), np.array([3])))
    assert {pair: ids.tolist() for pair, ids in layout.routes().items()} == {(0, 1): [3], (1, 0): [2, 1]}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.kind)
def test_json_forms_come_back(policy: StoragePolicy) -> None:
    assert policy_from_dict(policy.to_dict()) == policy
    assert isinstance(policy, StoragePolicy)


@pytest.mark.parametrize(
    ("given_form", "said"),
    [
        ({"kind": "sharded"}, "unknown kind 'sharded'"),
        ({}, "unknown kind None"),
        ({"kind": ["halo"]}, "unknown kind"),
        ({"kind": "halo", "scatter_mode": "always"}, "scatter_mode is 'always'"),
        ({"kind": "halo", "width": 2}, "has no field 'width'"),
        ({"kind": "shard", "scatter_mode": "local"}, "has no field 'scatter_mode'"),
    ],
)
def test_json_forms_that_are_none(given_form: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=re_escape(said)):
        policy_from_dict(given_form)


def re_escape(text: str) -> str:
    """Brackets and quotes as they stand."""
    import re

    return re.escape(text)


def test_further_kinds_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtir.spec.policy_json._KINDS", dict.fromkeys(policy_kinds(), lambda _: LocalPolicy()))
    register_policy_kind("mirror", lambda _: LocalPolicy())
    assert policy_from_dict({"kind": "mirror"}) == LocalPolicy()


def test_merging_takes_the_stronger() -> None:
    weak, strong = HaloPolicy("local", "halo_read"), HaloPolicy("halo_correction", "local")
    assert merged_policy(weak, strong) == HaloPolicy("halo_correction", "halo_read")
    assert merged_policy(LocalPolicy(), weak) is weak
    assert merged_policy(weak, LocalPolicy()) is weak
    with pytest.raises(SpecError, match="halo and graph_parallel cannot be merged"):
        merged_policy(weak, GraphParallelPolicy())
