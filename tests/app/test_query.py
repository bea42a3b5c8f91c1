from __future__ import annotations

import numpy as np
import pytest
from dtir_app.filters import Filters, filter_mask, kind_counts
from dtir_app.kinds import KIND_INDEX, KINDS
from dtir_app.query import KEYS, parse, task_mask
from dtir_app.store import Store
from hypothesis import given
from hypothesis import strategies as st

from tests.app.build import store_of_example


@pytest.fixture(scope="module")
def store() -> Store:
    return store_of_example("transformer_train")


def names(store: Store, text: str) -> list[str]:
    return [store.tasks.name[row] for row in np.flatnonzero(task_mask(store, parse(text)))]


def test_words_and_conditions_must_all_hold(store: Store) -> None:
    found = names(store, "kind:all_reduce axis:axis1 bytes>=1KiB gather")
    assert found == ["all-reduce"]


def test_a_kind_goes_by_name_code_label_and_family(store: Store) -> None:
    wanted = names(store, "kind:all_reduce")
    assert len(wanted) == 49
    for text in ("kind:AR", "kind:all-reduce", "kind:collective", "kind:all_gather,all_reduce"):
        assert names(store, text) == wanted
    assert names(store, "kind:nonsense") == []


def test_sizes_compare(store: Store) -> None:
    every = names(store, "kind:AR")
    assert sorted(names(store, "bytes<1KiB") + names(store, "bytes>=1KiB")) == sorted(every)
    assert names(store, "bytes:1KiB") == names(store, "bytes=1024")


def test_quotes_keep_blanks_together(store: Store) -> None:
    assert parse('"a b" c').words == ("a b", "c")
    assert names(store, '"no such thing"') == []


def test_ranks_runs_dtypes_regions(store: Store) -> None:
    assert len(names(store, "rank:7")) == len(store.tasks)
    assert names(store, "rank:8") == []
    assert len(names(store, "dtype:pred")) > 0
    assert len(names(store, "runs:0")) == 130
    scan = store_of_example("scan_layers")
    assert names(scan, "in:region_0.1 kind:AR") == ["all-reduce"]
    assert len(names(scan, "runs:4 kind:AR")) == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stage:1", "unknown key 'stage'"),
        ("bytes>many", "is no size"),
        ("kind>all_reduce", "takes ':'"),
        ("rank:first", "no whole number"),
        ("severity:bad", "severity is one of"),
        ("kind:", "needs a value"),
    ],
)
def test_a_mistake_is_said_and_finds_nothing(store: Store, text: str, problem: str) -> None:
    query = parse(text)
    assert problem in query.problem
    assert not task_mask(store, query).any()


def test_every_key_is_explained_and_understood(store: Store) -> None:
    values = {"bytes": "1KiB", "runs": "1", "rank": "0", "severity": "info", "kind": "AR"}
    for key in KEYS:
        query = parse(f"{key}:{values.get(key, 'x')}")
        assert query.problem == ""
        task_mask(store, query)


@given(st.text(max_size=60))
def test_any_text_can_be_searched_for(text: str) -> None:
    mask = task_mask(store_of_example("faults"), parse(text))
    assert len(mask) == 8


def test_an_empty_query_finds_everything(store: Store) -> None:
    assert parse("  ").empty
    assert task_mask(store, parse("")).all()


def test_filters_narrow(store: Store) -> None:
    assert filter_mask(store, Filters()).all()
    by_axis = filter_mask(store, Filters(axes=frozenset({"axis0"})))
    assert by_axis.sum() == 28
    both = filter_mask(store, Filters(axes=frozenset({"axis0", "axis1"}), kinds=frozenset({"all_reduce"})))
    assert both.sum() == 49
    assert filter_mask(store, Filters(min_bytes=1024)).sum() < 49
    assert filter_mask(store, Filters(text="no-such-name")).sum() == 0
    assert filter_mask(store, Filters(severities=frozenset({"info"}))).sum() == (store.tasks.worst == 2).sum()


def test_a_choice_switches_and_is_counted() -> None:
    filters = Filters().toggled("kinds", "all_reduce").toggled("axes", "tp")
    assert filters.active_count == 2
    assert filters.toggled("kinds", "all_reduce").toggled("axes", "tp") == Filters()
    with pytest.raises(ValueError, match="group='colour'"):
        filters.toggled("colour", "red")


def test_kinds_are_counted(store: Store) -> None:
    counted = dict(kind_counts(store))
    assert counted == {"all_reduce": 49, "local_compute": len(store.tasks) - 49}
    assert all(KINDS[KIND_INDEX[name]].name == name for name in counted)
