"""Two programs compared in the explorer: the list, its order, and pictures in both."""

from __future__ import annotations

from pathlib import Path

import pytest
from dtir_app.frames.differences import KINDS, difference_frame, lines_of
from dtir_app.links import read_link
from dtir_app.store import Store

from dtir.diff import diff_programs
from tests.app.corpus import corpus_store, corpus_stores


def frame(first: Store, second: Store, *, kind: str = "all", row: int = -1) -> dict[str, object]:
    diff = diff_programs(first.program, second.program)
    return difference_frame(first, second, diff, lines_of(diff), kind, row)


def test_communication_that_came_and_went_stands_first_with_its_bytes(shared_data: Path) -> None:
    made = frame(corpus_store(shared_data, "C012"), corpus_store(shared_data, "C012", fixed=True))
    assert made["summary"] == (
        "1 changed, 1 only in the second, 1 only in the first; communication 48 B → 96 B (+48 B, +100 %)."
    )
    assert [(row["sign"], row["kind"]) for row in made["rows"]][:2] == [("+", "all_gather"), ("−", "all_reduce")]  # type: ignore[attr-defined]
    before, after = made["pictures"]  # type: ignore[misc]
    assert before["picture"]["says"] == "not there"
    assert after["picture"]["marks"]


def test_a_program_differs_in_nothing_from_itself(shared_data: Path) -> None:
    store = corpus_store(shared_data, "C012")
    made = frame(store, store)
    assert made["rows"] == []
    assert str(made["summary"]).startswith("Nothing differs")


@pytest.mark.parametrize("kind", KINDS)
def test_every_difference_of_the_corpus_can_be_looked_at(shared_data: Path, kind: str) -> None:
    fixed = corpus_stores(shared_data, fixed=True)
    for name, store in corpus_stores(shared_data).items():
        diff = diff_programs(store.program, fixed[name].program)
        lines = lines_of(diff)
        for row in range(min(len(lines), 3)):
            made = difference_frame(store, fixed[name], diff, lines, kind, row)
            assert made["row"] == row
            assert len(made["pictures"]) == 2  # type: ignore[arg-type]


def test_a_link_names_the_program_to_compare_with() -> None:
    link = read_link("?p=ab12&v=diff&d=cd34")
    assert (link.view, link.other) == ("diff", "cd34")
    assert link.query() == "?p=ab12&v=diff&d=cd34"
    assert read_link("?d=no+digest").problems == ("d='no digest' is no digest",)
