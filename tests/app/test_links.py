from __future__ import annotations

import pytest
from dtir_app.links import Link, read_link
from hypothesis import given
from hypothesis import strategies as st

TASK = "node:" + "0f" * 16


def test_a_link_reads_back() -> None:
    link = Link("ab" * 20, "mesh", TASK, "kind:all_reduce axis:tp bytes>64KiB")
    assert read_link(link.query()) == link


def test_nothing_is_an_empty_link() -> None:
    assert read_link("") == read_link("?") == Link()
    assert Link().query() == ""


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?p=nothex", "is no digest"),
        ("?p=" + "a" * 65, "is no digest"),
        ("?v=nowhere", "there is no view 'nowhere'"),
        ("?s=task-7", "names no task or tensor"),
        ("?s=node:12", "names no task or tensor"),
        ("?s=node:" + "Z" * 32, "names no task or tensor"),
    ],
)
def test_what_is_not_understood_is_told_and_left_out(query: str, told: str) -> None:
    link = read_link(query)
    assert len(link.problems) == 1
    assert told in link.problems[0]
    assert (link.digest, link.view, link.selection) == ("", "", "")


def test_every_problem_is_told() -> None:
    assert len(read_link("?p=x&v=y&s=z").problems) == 3


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    link = read_link(text)
    assert len(link.text) <= 500
    assert read_link(link.query()).problems == ()
