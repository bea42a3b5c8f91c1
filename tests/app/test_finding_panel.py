"""The views of findings and differences in a session without a browser: messages in, what is drawn out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dtir_app.gallery import examples
from dtir_app.library import Library
from dtir_app.selection import of_task
from dtir_app.session import Session

from tests.app.build import example


class Page:
    """A session that looks at a panel of one bundled program."""

    def __init__(self, view: str, name: str = "faults") -> None:
        self.library = Library((), [example(name), *(item for item in examples() if item.name != name)])
        self.library.open(f"gallery:{name}").result()
        self.session = Session(self.library, query=f"?p={example(name).digest}&v={view}")
        self.send("ready", dark=False)

    def send(self, kind: str, **message: object) -> None:
        self.session._heard(kind, message)

    def shown(self, name: str) -> Any:
        return json.loads(self.session._parts.panels[name].elements[name].payload)


@pytest.fixture
def page() -> Page:
    return Page("finding")


def test_the_worst_finding_is_shown_before_anything_is_chosen(page: Page) -> None:
    shown = page.shown("finding")
    assert shown["head"]["severity"] == "error"
    assert shown["head"]["count"].startswith("1 of ")
    assert shown["picture"]["cue"] == "pending"


def test_keys_go_through_the_findings_and_their_pictures(page: Page) -> None:
    page.send("key", key="]")
    first = page.shown("finding")
    page.send("key", key="]")
    assert page.shown("finding")["head"]["message"] != first["head"]["message"]
    page.send("key", key="[")
    assert page.shown("finding") == first


def test_a_selection_without_findings_shows_what_is_right(page: Page) -> None:
    store = page.session.state.store
    assert store is not None
    page.session._context.select(of_task(store.tasks.name.index("up")))
    shown = page.shown("finding")
    assert (shown["head"]["code"], shown["head"]["severity"]) == ("up", "")
    assert shown["picture"]["marks"]


def test_choices_belong_to_their_finding(page: Page) -> None:
    page.send("finding-choose", name="picture", value="value")
    assert page.shown("finding")["picture"]["cue"] == "value"
    page.send("key", key="]")
    page.send("key", key="]")
    assert page.shown("finding")["picture"]["cue"] != "value"


def test_repairs_are_tried_kept_and_taken_back(page: Page) -> None:
    page.send("finding-choose", name="picture", value="value")
    repairs = page.shown("finding")["picture"]["buttons"]
    page.send("finding-repair", name=repairs[0]["name"])
    tried = page.shown("finding")["picture"]["buttons"][0]
    assert tried["state"] == "good"
    page.send("finding-repair", name=repairs[0]["name"].replace("try:", "keep:"))
    kept = page.shown("finding")["picture"]
    assert kept["buttons"][0]["name"] == "over"
    assert [fact["text"] for fact in kept["facts"] if fact["label"] == "made so far"] == [repairs[0]["label"]]
    page.send("finding-repair", name="over")
    assert page.shown("finding")["picture"]["buttons"] == repairs


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("finding-choose", {}),
        ("finding-choose", {"name": "picture", "value": "nothing"}),
        ("finding-choose", {"name": "sends", "value": ["a"]}),
        ("finding-repair", {}),
        ("finding-repair", {"name": "burn:everything"}),
        ("finding-repair", {"name": 3}),
    ],
)
def test_messages_that_ask_for_nothing_known_change_nothing_that_is_drawn(
    page: Page, kind: str, message: dict[str, object]
) -> None:
    before = page.shown("finding")
    page.send(kind, **message)
    assert page.shown("finding") == before


@pytest.mark.parametrize("name", ["keep:paint it blue", "try:paint it blue"])
def test_a_repair_that_nobody_proposed_is_not_made(page: Page, name: str) -> None:
    page.send("finding-choose", name="picture", value="value")
    before = page.shown("finding")
    page.send("finding-repair", name=name)
    assert page.shown("finding") == before


def test_two_programs_are_compared_and_swapped() -> None:
    page = Page("diff")
    assert "Choose" in page.shown("diff")["message"]
    page.send("diff-with", key="gallery:halo")
    shown = page.shown("diff")
    assert shown["rows"]
    assert shown["second"]["digest"] == example("halo").digest[:8]
    page.send("diff-kind", name="removed")
    assert {row["sign"] for row in page.shown("diff")["rows"]} == {"−"}
    page.send("diff-swap")
    assert page.session.state.program_key == "gallery:halo"
    assert page.shown("diff")["second"]["digest"] == example("faults").digest[:8]


def test_a_long_list_says_what_is_left_and_shows_it_when_asked() -> None:
    page = Page("diff", "transformer_train")
    page.send("diff-with", key="gallery:transformer_64")
    first = page.shown("diff")
    assert len(first["rows"]) == 300
    assert first["more"].endswith("more differences")
    page.send("diff-more")
    assert len(page.shown("diff")["rows"]) == 600


def test_a_program_to_compare_with_that_is_not_there_is_asked_for_again() -> None:
    page = Page("diff")
    page.send("diff-with", key="gallery:nothing")
    assert "Choose" in page.shown("diff")["message"]
    page.send("diff-row", row="three")
    page.send("diff-row", row=10**9)
    assert "Choose" in page.shown("diff")["message"]
