"""The picture of a finding, repairs that are tried, and reasons of communication, as a person meets them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dtir.verify.catalogue import document, entry_of
from tests.helpers.browser import click_at
from tests.helpers.explorer import Explorer
from tests.ui.looking import node_at, open_program, rows, selected, visit

Server = Callable[..., Explorer]


@pytest.fixture(scope="module")
def deadlock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose ranks wait for each other in a circle."""
    path = tmp_path_factory.mktemp("programs") / "circle.dtir.yaml"
    path.write_text(document(entry_of("deadlock.cycle").bad), encoding="utf-8")
    return path


def test_a_row_of_the_diagnostics_leads_to_its_picture(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    page.get_by_test_id("table-tab-diagnostics").click()
    rows(page, "diagnostics").filter(has_text="add_bias adds bias").click()
    page.get_by_test_id("show-picture").click()
    expect(page.get_by_test_id("view-finding")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("finding-code")).to_have_text("partial.add_replicated")
    expect(page.get_by_test_id("picture")).to_have_attribute("data-cue", "pending")
    expect(page.get_by_test_id("picture-says")).to_contain_text("it is counted 4 times")
    expect(page.get_by_test_id("picture-fix")).to_contain_text("Fix: Insert all_reduce(sum) over tp")
    page.keyboard.press("]")
    expect(page.get_by_test_id("finding-number")).to_contain_text("2 of")
    expect(page.get_by_test_id("finding-message")).not_to_contain_text("add_bias adds bias")
    page.keyboard.press("[")
    expect(page.get_by_test_id("finding-message")).to_contain_text("add_bias adds bias")


def test_the_inspector_leads_to_the_picture_and_its_marks_select(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    click_at(page, "graph", *node_at(page, "add_bias"))
    page.get_by_test_id("inspector-picture").first.click()
    expect(page.get_by_test_id("picture")).to_be_visible()
    mark = page.get_by_test_id("picture-mark").filter(has_text="down").first
    mark.focus()
    page.keyboard.press("Enter")
    expect(selected(page)).to_have_text("down")
    expect(page).to_have_url(re.compile(r"v=finding"))


def test_a_deadlock_is_a_closed_circle_with_words(page: Page, server: Server, deadlock: Path) -> None:
    visit(page, server(deadlock), "?v=finding")
    expect(page.get_by_test_id("finding-code")).to_have_text("deadlock.cycle")
    picture = page.get_by_test_id("picture")
    expect(picture).to_have_attribute("data-cue", "lane")
    expect(picture.locator("text").filter(has_text="waits for rank")).to_have_count(2)
    expect(page.get_by_test_id("picture-facts")).to_contain_text("waits in")
    expect(page.get_by_test_id("picture-says")).to_contain_text("2 ranks wait for each other in a circle")
    page.get_by_test_id("choice-sends-rendezvous").click()
    expect(page.get_by_test_id("choice-sends-rendezvous")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("picture-says")).to_contain_text("With sends that wait for their receivers")


def test_a_repair_is_tried_by_the_judge(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "finding")
    page.get_by_test_id("choice-picture-value").click()
    repair = page.get_by_test_id("repair").first
    expect(repair).to_be_visible()
    expect(repair).to_have_attribute("data-state", "new")
    repair.click()
    expect(page.get_by_test_id("repair-note").first).to_contain_text("is right")
    expect(page.get_by_test_id("repair").first).to_have_attribute("data-state", "good")


def test_what_is_right_is_drawn_with_the_same_marks(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "finding")
    page.keyboard.press("c")
    expect(page.get_by_test_id("finding-code")).to_have_text("all-reduce")
    expect(page.get_by_test_id("picture")).to_be_visible()
    page.get_by_test_id("choice-picture-group").click()
    expect(page.get_by_test_id("picture")).to_have_attribute("data-cue", "group")


def test_the_inspector_says_why_a_collective_is_there(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "graph")
    page.keyboard.press("c")
    page.keyboard.press("c")
    expect(selected(page)).to_have_text("all-reduce.1")
    reason = page.get_by_test_id("inspector-why")
    expect(reason).to_contain_text("contracts a dim that is split over axis1 (4)")
    expect(reason).to_contain_text("the partitioner put it in")
    expect(reason).to_contain_text("1.5 KiB (1,536 B) at least")
    reason.get_by_test_id("inspector-link").filter(has_text="dot.3").click()
    expect(selected(page)).to_have_text("dot.3")


def test_names_of_a_program_stay_text_in_pictures(page: Page, server: Server, tmp_path: Path) -> None:
    path = tmp_path / "markup.dtir.yaml"
    text = document(entry_of("partial.dropped").bad).replace("gw", "'<img src=x onerror=alert(1)>'")
    path.write_text(text, encoding="utf-8")
    visit(page, server(path), "?v=finding")
    expect(page.get_by_test_id("picture")).to_have_attribute("data-cue", "pending")
    expect(page.get_by_test_id("finding-message")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.get_by_test_id("picture").locator("title").filter(has_text="<img src=x").first).to_be_attached()
    expect(page.locator("img[src=x]")).to_have_count(0)


def test_the_overview_leads_to_the_picture_of_the_worst(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    page.get_by_test_id("worst-picture").click()
    expect(page.get_by_test_id("finding-code")).to_have_text("partial.add_replicated")
    expect(page.get_by_test_id("picture")).to_be_visible()
