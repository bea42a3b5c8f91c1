"""The inspector's reasons of a communication."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from dtir_app.cues import case
from dtir_app.cues.warming import warming
from dtir_app.frames.inspector import inspect
from dtir_app.frames.why import why_section
from dtir_app.memo import Memo
from dtir_app.selection import of_task
from dtir_app.store import Store

from tests.app.build import store_of_example
from tests.app.corpus import corpus_store


def task(store: Store, name: str) -> int:
    return store.tasks.name.index(name)


def rows(store: Store, name: str) -> dict[str, dict[str, object]]:
    (section,) = why_section(store, task(store, name))
    found: dict[str, dict[str, object]] = {}
    for item in section["rows"]:  # type: ignore[attr-defined]
        found.setdefault(str(item["label"]), item)
    return found


def test_a_collective_of_a_dump_says_who_asked_and_what_forced_it() -> None:
    found = rows(store_of_example("transformer_train"), "all-reduce.1")
    assert str(found["forced by"]["text"]).startswith("dot.3 (dot) contracts a dim that is split over axis1 (4)")
    assert found["axis1"]["text"] == "share of a sum → replicated"
    assert found["a rank sends"]["text"] == "1.5 KiB (1,536 B) at least"
    assert str(found["implicit"]["text"]).endswith("the partitioner put it in")
    assert found["cheaper"]["text"] == "no rule knows anything cheaper"


def test_something_cheaper_comes_with_what_it_costs() -> None:
    found = rows(store_of_example("transformer_64"), "all-reduce.19")
    assert str(found["cheaper"]["text"]).startswith("reduce_scatter in place of all-reduce.19")
    assert found["cheaper"]["note"] == "a rank sends 6 KiB instead of 12 KiB in one run"


def test_local_tasks_have_no_such_section(shared_data: Path) -> None:
    store = corpus_store(shared_data, "C001")
    assert why_section(store, task(store, "t1")) == []
    titles = [section["title"] for section in inspect(store, of_task(task(store, "t3")))["sections"]]  # type: ignore[attr-defined]
    assert "Why is it here" in titles


def test_a_large_program_says_that_its_facts_are_being_derived(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = dataclasses.replace(corpus_store(shared_data, "C001"), memo=Memo())
    monkeypatch.setattr(case, "LARGE", 1)
    (waiting,) = why_section(store, task(store, "t3"))
    assert waiting["waits"]
    work = warming(store)
    assert work is not None
    work.result(timeout=60)
    assert warming(store) is None
    assert str(rows(store, "t3")["forced by"]["text"]).startswith("t1 (sum) reduces over a dim")
