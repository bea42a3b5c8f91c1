"""What is chosen in a view comes back by its address."""

from __future__ import annotations

import pytest
from dtir_app.option_links import EVERYWHERE, OF_VIEW, options_text, read_options
from dtir_app.selection import of_task
from dtir_app.state import VIEWS
from hypothesis import given
from hypothesis import strategies as st

from tests.app.build import example, store_of_example
from tests.app.test_session import Page

STORE = store_of_example("faults")


def address(page: Page) -> str:
    """The last address that the page was told."""
    return str([message for message in page.sent if message["type"] == "address"][-1]["query"])


def arrange(page: Page, view: str) -> None:
    """Choose something of everything that a view lets one choose."""
    page.session._context.select(of_task(4))
    page.send("view", view=view)
    page.send("table", table="tasks")
    page.send("sort", column="name")
    page.send("plan-profile", profile="tpu-v5p-torus")
    match view:
        case "mesh":
            page.send("mesh-group", axis="dp")
            page.send("mesh-place", axis="dp")
            page.send("mesh-at", axis="dp", value=1)
        case "tensor":
            page.send("tensor-dim", side="before", which=0, dim=1)
            page.send("tensor-at", side="before", dim=1, value=1)
        case "timeline":
            page.send("timeline-row", key="c0")
            page.send("timeline-clock", one=True)
            page.send("timeline-twin", open=True)
            page.send("timeline-move", way="in")
        case "traffic":
            page.send("traffic-mode", mode="ratio")
            page.send("traffic-only", on=True)
            page.send("traffic-cell", one=3, other=2)
        case "memory":
            page.send("memory-class", **{"class": 1})
        case "diff":
            page.send("diff-kind", name="layouts")


@pytest.mark.parametrize("view", VIEWS)
def test_the_choices_of_a_view_come_back(view: str) -> None:
    first = Page()
    arrange(first, view)
    link = address(first)
    if view in OF_VIEW:
        said = options_text(first.state).split(",")
        wanted = {option.name for option in (*OF_VIEW[view], *EVERYWHERE)} - {"pick", "page"}
        assert {text.partition(":")[0] for text in said} == wanted
    second = Page(query=link)
    assert second.state.notice.text == ""
    assert options_text(second.state) == options_text(first.state)
    assert address(second) == link


def test_the_window_of_the_timeline_is_where_the_link_says() -> None:
    page = Page(query=f"?p={example('faults').digest}&v=timeline&o=window:1e-6..3e-6")
    first, last = page.session.painter.panel("timeline").shown.frame.window
    assert (first, last) == pytest.approx((1e-6, 3e-6))
    camera = page.parts.panels["timeline"].figures["timeline"].camera.data
    assert (camera["x0"], camera["x1"]) == ([1e-6], [3e-6])
    assert "window:1e-06..3e-06" in options_text(page.state)
    page.send("timeline-fit")
    assert "window" not in options_text(page.state), "everything is what a link without a window shows"


def test_a_link_to_a_view_that_is_not_drawn_yet_says_what_it_asked_for() -> None:
    page = Page(query=f"?p={example('faults').digest}&v=timeline")
    assert options_text(page.state) == ""
    for asked, text in (("whole", ""), ((1e-6, 2e-6), "window:1e-06..2e-06")):
        page.state.view = "mesh"
        page.state.options = {"timeline": {"asked": asked}}
        assert OF_VIEW["timeline"][0].write(page.state) == text.removeprefix("window:")


def test_choosing_within_a_view_is_no_step_back_and_another_view_is() -> None:
    page = Page()
    page.send("view", view="traffic")
    page.send("traffic-mode", mode="measured")
    page.send("view", view="memory")
    told = [(message["query"], message["replace"]) for message in page.sent if message["type"] == "address"]
    digest = example("faults").digest
    assert told[-3:] == [
        (f"?p={digest}&v=traffic", False),
        (f"?p={digest}&v=traffic&o=mode:measured", True),
        (f"?p={digest}&v=memory", False),
    ]


def test_going_back_brings_the_choices_of_then() -> None:
    page = Page()
    page.send("view", view="traffic")
    page.send("traffic-mode", mode="measured")
    digest = example("faults").digest
    page.send("address", search=f"?p={digest}&v=traffic")
    assert page.state.options["traffic"]["mode"] == "planned"
    page.send("address", search=f"?p={digest}&v=traffic&o=mode:ratio,only:yes")
    assert (page.state.options["traffic"]["mode"], page.state.options["traffic"]["only"]) == ("ratio", True)


@pytest.mark.parametrize(
    ("view", "text"),
    [
        ("mesh", "groups:nowhere"),
        ("mesh", "at:dp"),
        ("mesh", "at:dp=x"),
        ("tensor", "pick:before=99999"),
        ("tensor", "dims:1=2"),
        ("tensor", "at:99999=0x0"),
        ("timeline", "window:5..3"),
        ("timeline", "window:nan..3"),
        ("timeline", "open:<b>"),
        ("timeline", "clock:three"),
        ("timeline", "page:-1"),
        ("traffic", "mode:guessed"),
        ("traffic", "cell:1"),
        ("traffic", "only:maybe"),
        ("memory", "rank:1e9"),
        ("diff", "kind:nothing"),
        ("graph", "sort:nothing"),
        ("graph", "mode:ratio"),
        ("overview", "profile:<script>"),
    ],
)
def test_what_is_not_understood_is_told_and_left_at_its_default(view: str, text: str) -> None:
    changes, problems = read_options(STORE, view, text)
    assert len(problems) == 1
    assert changes == read_options(STORE, view, "")[0]


@given(st.sampled_from(VIEWS), st.text(alphabet="abwindowgroupsat:,=+-.x0129 ", max_size=80))
def test_any_text_is_read(view: str, text: str) -> None:
    changes, problems = read_options(STORE, view, text)
    assert isinstance(changes, dict)
    assert all(isinstance(problem, str) for problem in problems)
