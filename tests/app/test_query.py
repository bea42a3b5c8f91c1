from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from dtir_app.filters import Filters, filter_mask, kind_counts
from dtir_app.frames.hits import search_hits
from dtir_app.frames.why import why_of
from dtir_app.implicit import implicit_mask
from dtir_app.items import Folding
from dtir_app.kinds import KIND_INDEX, KINDS
from dtir_app.query import KEYS, parse, task_mask
from dtir_app.scenes import scene
from dtir_app.selection import NOTHING, of_task
from dtir_app.store import Store
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.presets.pipeline import PipelineKind, pipeline_program
from dtir.verify.asked import Asked
from tests.app.build import store_of, store_of_example
from tests.helpers.layered import layered, nameless


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
        ("colour:1", "there is no key 'colour'; keys are"),
        ("knid:all_reduce", "did you mean kind:?"),
        ("kind:all_redcue", "did you mean all_reduce?"),
        ("state:halved", "there is no state 'halved'"),
        ("implicit:maybe", "implicit is one of yes, no"),
        ('"open', "this quote has no end"),
        ("stage:x", "no whole number"),
        ("> a", "needs a task before it"),
        ("a >", "needs a task behind it"),
        ("a > **", "needs '>' and a task behind it"),
        ("** > a", "stands alone between two '>'"),
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
    values = {
        "bytes": "1KiB",
        "runs": "1",
        "rank": "0",
        "severity": "info",
        "kind": "AR",
        "stage": "0",
        "microbatch": "0",
    }
    values |= {"implicit": "yes", "state": "partial"}
    for key in KEYS:
        query = parse(f"{key}:{values.get(key, 'x')}")
        assert query.problem == ""
        task_mask(store, query)


@given(st.text(max_size=60))
def test_any_text_can_be_searched_for(text: str) -> None:
    mask = task_mask(store_of_example("faults"), parse(text))
    assert len(mask) == 8


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("matmul knid:AR x", "knid"),
        ("a bytes>many", "many"),
        ('x -"open end', '"open end'),
        ("a > state:odd", "odd"),
        ("x >", ">"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, wrong: str) -> None:
    query = parse(text)
    assert query.problem
    assert text[query.start : query.stop] == wrong


def test_axes_are_checked_against_the_mesh() -> None:
    assert parse("axis:tp", ("dp", "tp")).problem == ""
    assert parse("axis:tpp", ("dp", "tp")).problem == "there is no axis 'tpp'; did you mean tp?"
    assert parse("state:partial@x", ("dp", "tp")).problem == "there is no axis 'x'; axis is one of dp, tp"
    assert parse("axis:anything").problem == ""


def test_a_minus_turns_round(store: Store) -> None:
    every = names(store, "kind:AR")
    assert sorted(names(store, "kind:AR gather") + names(store, "kind:AR -gather")) == sorted(every)
    assert len(names(store, "-kind:AR")) == len(store.tasks) - len(every)
    assert names(store, "!kind:AR") == names(store, "-kind:AR")
    assert names(store, '-"all-reduce" kind:AR') == []


def test_states_and_sources_and_implicit(store: Store) -> None:
    assert len(names(store, "state:per_rank")) > 0
    assert names(store, "state:per_rank@axis0 -state:per_rank") == []
    assert names(store, "source:programs.py:637 kind:AR") == ["all-reduce", "all-reduce.23"]
    faults = store_of_example("faults")
    assert set(names(faults, "state:partial@tp")) <= set(names(faults, "state:partial"))
    assert names(faults, "state:partial@tp") != []
    implicit, explicit = names(store, "implicit:yes"), names(store, "implicit:no")
    assert sorted(implicit + explicit) == sorted(names(store, "kind:AR"))
    assert len(implicit) > 0
    assert names(store, "implicit:yes,no") == names(store, "kind:AR")
    assert names(store_of_example("fsdp"), "implicit:yes") == []  # a shard_map asks for all that it does


@pytest.mark.parametrize("name", ["transformer_train", "fsdp", "faults", "llama_block", "scan_layers"])
def test_implicit_is_what_the_inspector_says(name: str) -> None:
    store = store_of_example(name)
    implicit, communicates = implicit_mask(store)
    for task in np.flatnonzero(communicates).tolist():
        reason = why_of(store, task)
        assert reason is None or (reason.asked is Asked.IMPLICIT) == implicit[task]
    assert not implicit[~communicates].any()


def test_stages_and_microbatches() -> None:
    program = pipeline_program(PipelineKind.ONE_F_ONE_B, stages=2, microbatches=3)
    store = store_of(program)
    assert sorted(names(store, "stage:1 microbatch:2 -send")) == ["B1.2", "F1.2"]
    assert set(names(store, "microbatch>=1")) == {
        name for name in store.tasks.name if "send" not in name and not name.endswith(".0")
    }


CHAIN = layered(2, name=nameless)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("qkv > attend", ["qkv", "attend"] * 2),
        ("qkv > out", []),
        ("qkv > * > out", ["qkv", "out"] * 2),
        ("op:dot > kind:reduce_scatter", ["out", "scatter_in", "down", "scatter_mlp"] * 2),
        ("embed > ** > loss", ["embed", "loss"]),
        ("loss > ** > embed", []),
        ("embed > gather_in > ** > kind:RS > loss", ["embed", "gather_in", "scatter_mlp", "loss"]),
        ("qkv > *", ["qkv"] * 2),
        ("* > qkv > -attend", []),
    ],
)
def test_paths_follow_the_edges(text: str, found: list[str]) -> None:
    assert names(store_of(CHAIN), text) == found


def walks(store: Store, masks: list[np.ndarray], far: list[bool]) -> set[int]:
    """All tasks of all ways, one way after the other."""
    graph = nx.DiGraph(zip(store.edges.source.tolist(), store.edges.destination.tolist(), strict=True))
    graph.add_nodes_from(range(len(store.tasks)))
    ways = [[task] for task in np.flatnonzero(masks[0]).tolist()]
    for mask, leap in zip(masks[1:], far, strict=True):
        ways = [
            [*way, after]
            for way in ways
            for after in (nx.descendants(graph, way[-1]) if leap else graph.successors(way[-1]))
            if mask[after]
        ]
    return {task for way in ways for task in way}


@given(
    st.lists(
        st.tuples(st.sampled_from(["op:hlo.dot", "kind:AR", "add", "op:divide"]), st.booleans()), min_size=2, max_size=3
    )
)
@settings(max_examples=15, deadline=None)
def test_paths_agree_with_walking_every_way(steps: list[tuple[str, bool]]) -> None:
    store = store_of_example("faults")
    terms = ["kind:local_compute" if index % 2 else text.replace("hlo.", "") for index, (text, _) in enumerate(steps)]
    text = terms[0] + "".join(
        f" > {'** > ' if far else ''}{term}" for term, (_, far) in zip(terms[1:], steps[1:], strict=True)
    )
    masks = [task_mask(store, parse(term)) for term in terms]
    assert set(np.flatnonzero(task_mask(store, parse(text))).tolist()) == walks(
        store, masks, [far for _, far in steps[1:]]
    )


def test_hits_that_folding_hides_are_counted() -> None:
    store = store_of(layered(80))
    at = scene(store, (), Folding(True, True))
    found = search_hits(store, "kind:all_gather", at, NOTHING)
    assert found is not None
    assert (found["total"], found["hidden"]) == (160, "158 in folded instances")
    found = search_hits(store, "layers.0.attend", at, of_task(3))
    assert found is not None
    assert (found["hidden"], found["position"]) == ("1 in blocks of local work", "1 of 1")
    unfolded = search_hits(store, "kind:all_gather", scene(store, (), Folding()), NOTHING)
    assert unfolded is not None
    assert unfolded["hidden"] == ""


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
