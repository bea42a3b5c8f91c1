"""What repeats is found by rule: by numbers in paths and names, and by structure where there are none."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from dtir_app.addressing import Part, split_text
from dtir_app.frames.cells import instance_cell
from dtir_app.frames.folded_text import family_line, folded_lines
from dtir_app.frames.inspector import inspect
from dtir_app.frames.tables import shown_columns, table_page
from dtir_app.items import Folding, Scene
from dtir_app.repeats import Family, find_repeats, repeats
from dtir_app.scenes import counterpart, scene, showing
from dtir_app.selection import of_task
from dtir_app.store import Store
from dtir_app.tandem import LEAST_PERIOD

from dtir.importers import load_path
from tests.app.build import store_of, store_of_example
from tests.helpers.layered import STEPS, layered, nameless

ALL = Folding(local=False, repeats=True)
LACKING = {79: frozenset({"gather_mlp"})}


@cache
def layers(named: bool, odd: bool = False, microbatches: int = 1, count: int = 80) -> Store:
    name = {} if named else {"name": nameless}
    return store_of(layered(count, microbatches, odd=LACKING if odd else None, **name))


def families(store: Store) -> list[Family]:
    return list(repeats(store, 0).families)


@pytest.mark.parametrize("named", [True, False])
def test_eighty_layers_are_one_family(named: bool) -> None:
    (family,) = families(layers(named))
    assert len(family.numbers) == 80
    assert family.size == len(STEPS)
    assert family.differences == {}
    assert family.noun == ("layer" if named else "block")


@pytest.mark.parametrize("named", [True, False])
def test_the_layer_that_differs_is_named_with_what_it_lacks(named: bool) -> None:
    (family,) = families(layers(named, odd=True))
    assert dict(family.differences) == {79: "1 all_gather less"}
    at = scene(layers(named, odd=True), (), ALL)
    assert folded_lines(at) == [
        f"79 of 80 {family.nouns} folded ({family.noun} 79 differs: 1 all_gather less)",
    ]


def test_what_a_layer_lacks_altogether_is_said_so() -> None:
    store = store_of(layered(30, odd={29: frozenset({"gather_in", "gather_mlp"})}))
    assert dict(families(store)[0].differences) == {29: "no all_gather"}


def test_microbatches_and_layers_are_families_in_each_other() -> None:
    outer, inner = families(layers(True, microbatches=16, count=20))
    assert (outer.label, len(outer.numbers), outer.size) == ("mb", 16, len(STEPS))
    assert (inner.label, len(inner.numbers), inner.size) == ("layers", 20, len(STEPS))
    at = scene(layers(True, microbatches=16, count=20), (), ALL)
    assert at.count == len(STEPS) + 2
    assert sorted(set(at.copies.tolist())) == [1, 320]


def test_numbers_anywhere_in_names_count() -> None:
    store = store_of(layered(12, 4, name=lambda batch, layer, step: f"s{batch}_block{layer}_{step}"))
    assert [len(family.numbers) for family in families(store)] == [4, 12]


def test_numbers_that_only_tell_tasks_apart_do_not_count() -> None:
    serial = iter(range(10_000))
    store = store_of(layered(3, name=lambda _, __, step: f"{step}.{next(serial)}"))
    assert all(family.label.startswith("block") for family in families(store))
    assert find_repeats(store_of_example("faults"), 0).families == ()


def test_an_unrolled_module_of_a_compiler_repeats_by_structure() -> None:
    found = families(store_of_example("transformer_train"))
    assert [len(family.numbers) for family in found] == [4, 4, 4]
    assert all(family.size >= LEAST_PERIOD for family in found)


def test_the_chain_of_the_upstream_project_is_blocks(shared_data: Path) -> None:
    imported = load_path(shared_data / "upstream/10-chain-1k-sparse.json.gz")
    assert imported.program is not None
    (family,) = families(store_of(imported.program))
    assert (len(family.numbers), family.size) == (12, 82)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("local", [True, False])
def test_a_folded_scene_holds_every_task_and_shows_one_of_each(named: bool, local: bool) -> None:
    store = layers(named, odd=True)
    at = scene(store, (), Folding(local, True))
    assert len(at.folded.item) == len(store.tasks)
    assert sorted(set(at.folded.item.tolist())) == list(range(at.count))
    shown = [at.tasks_of(item).tolist() for item in range(at.count)]
    assert all(shown)
    assert [len(tasks) for tasks in shown] == at.folded.size.tolist()
    assert (at.folded.source < at.folded.destination).all()
    for item in range(at.count):
        assert at.first_task(item) == shown[item][0]


def every_edge_is_somewhere(store: Store, at: Scene) -> None:
    part = store.edges.of_scope(0)
    tail, head = at.folded.item[store.edges.source[part]], at.folded.item[store.edges.destination[part]]
    drawn = set(zip(at.folded.source.tolist(), at.folded.destination.tolist(), strict=True))
    drawn |= set(zip(at.carried[0].tolist(), at.carried[1].tolist(), strict=True))
    across = {(a, b) for a, b in zip(tail.tolist(), head.tolist(), strict=True) if a != b}
    assert across <= drawn


@pytest.mark.parametrize("folding", [ALL, Folding(True, True), Folding(True, False), Folding()])
def test_no_edge_gets_lost(folding: Folding) -> None:
    for store in (layers(True, odd=True), layers(False, odd=True), store_of_example("transformer_train")):
        every_edge_is_somewhere(store, scene(store, (), folding))


def test_other_instances_take_the_same_places() -> None:
    store = layers(True, odd=True)
    first = scene(store, (), ALL)
    key = repeats(store, 0).families[0].key
    assert scene(store, (), ALL.showing({key: 41})).layout is first.layout
    last = scene(store, (), ALL.showing({key: 79}))
    assert last.absent.sum() == 1
    assert len(last.order) == last.count - 1
    assert int(np.count_nonzero(first.absent)) == 0
    names = {store.tasks.name[last.first_task(item)] for item in range(last.count) if not last.absent[item]}
    assert "mb.0.layers.79.gather_in" in names
    assert not any("layers.0." in name for name in names)


def test_a_task_shows_its_instance_and_has_counterparts() -> None:
    store = layers(True, odd=True)
    task = store.tasks.name.index("mb.0.layers.41.gather_mlp")
    folding = showing(store, (), ALL, task)
    assert scene(store, (), folding).shows(task)
    assert showing(store, (), folding, task) is folding
    key = repeats(store, 0).families[0].key
    other = counterpart(store, (), folding, task, key, 7)
    assert store.tasks.name[other] == "mb.0.layers.7.gather_mlp"
    assert counterpart(store, (), folding, task, key, 79) == -1
    assert counterpart(store, (), folding, task, "nothing", 7) == -1


def test_unfolding_one_family_leaves_the_other_folded() -> None:
    store = layers(True, microbatches=16, count=20)
    outer, inner = families(store)
    at = scene(store, (), Folding(False, True, frozenset({outer.key})))
    assert at.count == 16 * len(STEPS) + 2
    assert [item.folded for item in at.families] == [False, True]
    assert family_line(at.families[1]) == "19 of 20 identical layers folded"
    everything = scene(store, (), Folding(False, True, frozenset({outer.key, inner.key})))
    assert everything.count == len(store.tasks)


def test_text_is_split_at_its_numbers() -> None:
    assert split_text("jvp(layer_12)") == (Part("jvp(layer_#", 12), Part(")", None))
    assert split_text("x") == (Part("x", None),)
    assert split_text("a1b22") == (Part("a#", 1), Part("b#", 22))


def test_tables_and_inspector_say_which_instance() -> None:
    store = layers(True, microbatches=16, count=20)
    task = store.tasks.name.index("mb.2.layers.7.up")
    assert instance_cell(store, task) == "mb 2, layer 7"
    keys = [column.key for column in shown_columns(store, "tasks")]
    page = table_page(store, "tasks", sort="instance", page=1)
    cells = [row["cells"][keys.index("instance")] for row in page["rows"]]
    assert cells == sorted(cells, key=lambda text: int(text.split(",")[0].split()[1]) if text else 99)
    rows = [row for section in inspect(store, of_task(task))["sections"] for row in section["rows"]]
    assert {"mb": "2, one of 16", "layer": "7, one of 20"}.items() <= {
        row["label"]: row["text"] for row in rows
    }.items()
    odd = layers(True, odd=True)
    last = odd.tasks.name.index("mb.0.layers.79.up")
    rows = [row for section in inspect(odd, of_task(last))["sections"] for row in section["rows"]]
    assert next(row["note"] for row in rows if row["label"] == "layer") == "differs from most: 1 all_gather less"
    assert "instance" not in [column.key for column in shown_columns(store_of_example("faults"), "tasks")]
