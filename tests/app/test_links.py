from __future__ import annotations

import pytest
from dtir_app.filters import Filters
from dtir_app.items import Folding
from dtir_app.kinds import KINDS
from dtir_app.link_parts import PLACE, chosen_text, folding_text, parse_chosen, parse_folding, parse_place, place_text
from dtir_app.links import Link, read_link
from dtir_app.repeats import repeats
from hypothesis import given
from hypothesis import strategies as st

from tests.app.build import store_of
from tests.helpers.layered import layered

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


def test_a_link_carries_the_part_of_the_graph_and_what_is_folded() -> None:
    link = Link(
        "ab" * 20,
        "graph",
        chosen="kind:all_reduce",
        place="r3.b120",
        folding="lr.u0.s1:41",
        window="0,12.5,3,8",
        table="tasks",
    )
    assert read_link(link.query()) == link
    said = read_link("?w=nowhere&z=1,2&t=chairs").problems
    assert [text.split("=")[0] for text in said[:2]] == ["w", "z"]
    assert "there is no table 'chairs'" in said[2]


@given(st.lists(st.tuples(st.sampled_from(["region", "block"]), st.integers(0, 10**6)), max_size=5))
def test_a_place_comes_back(place: list[tuple[str, int]]) -> None:
    assert PLACE.fullmatch(place_text(tuple(place)))
    assert parse_place(place_text(tuple(place))) == tuple(place)


def test_folding_comes_back_by_the_order_of_families() -> None:
    store = store_of(layered(20, 4))
    outer, inner = repeats(store, 0).families
    for folding in (
        Folding(),
        Folding(True, True),
        Folding(False, True, frozenset({outer.key})),
        Folding(True, True, frozenset(), ((inner.key, 7),)),
    ):
        assert parse_folding(store, (), folding_text(store, (), folding)) == folding
    assert parse_folding(store, (), "lr.u9") == Folding(True, True)
    for text in ("", "x", "lr.", "lr.u", "lr.s1", "LR"):
        assert parse_folding(store, (), text) is None


@given(
    st.builds(
        Filters,
        families=st.frozensets(st.integers(0, 5)),
        kinds=st.frozensets(st.sampled_from([kind.name for kind in KINDS])),
        axes=st.frozensets(st.sampled_from(["dp", "tp"])),
        severities=st.frozensets(st.sampled_from(["error", "info"])),
        min_bytes=st.sampled_from([0.0, 64.0, 65536.0]),
        text=st.sampled_from(["", "kind:all_reduce x"]),
    )
)
def test_the_choices_of_the_filters_come_back(filters: Filters) -> None:
    assert parse_chosen(chosen_text(filters), filters.text) == filters
