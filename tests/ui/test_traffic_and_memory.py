"""Who sends what to whom, and what lives when."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.helpers.browser import TIMEOUT_MS, bokeh_px, wait_until
from tests.helpers.explorer import Explorer
from tests.ui.looking import colours, open_program, rows, selected

Server = Callable[..., Explorer]


def test_a_click_on_a_cell_lists_the_tasks_behind_it(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "traffic")
    wait_until(
        page, "model('traffic-cells').data.x.length === 16 && view('traffic').frame && model('traffic').x_range.end > 7"
    )
    assert colours(page, "traffic") > 3
    expect(page.get_by_test_id("traffic-pair")).to_have_count(16)
    page.mouse.click(*bokeh_px(page, "traffic", 1, 0))
    expect(page.get_by_test_id("traffic-cell-detail")).to_have_text("planned 27.3 KiB, not measured")
    wait_until(page, "model('traffic-rings').data.x.length === 1")
    page.get_by_test_id("traffic-task").filter(has_text="all-reduce.19").click()
    expect(selected(page)).to_have_text("all-reduce.19")
    expect(rows(page, "collectives").and_(page.locator("[aria-selected=true]"))).to_contain_text("all-reduce.19")


def test_the_square_follows_the_filters_and_says_what_was_not_measured(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "traffic")
    wait_until(page, "model('traffic-cells').data.x.length === 16")
    page.get_by_test_id("filter-axes-axis0").click()
    wait_until(page, "model('traffic-cells').data.x.length === 8")
    expect(page.get_by_test_id("traffic-limit")).to_contain_text("filtered")
    page.get_by_test_id("traffic-mode-ratio").click()
    expect(page.get_by_test_id("traffic-problem")).to_contain_text("Not measured: no run of this program is open")
    wait_until(page, "model('traffic-cells').data.x.length === 0 && model('traffic-blanks').data.x.length === 1")


def test_memory_names_the_peak_and_what_is_live_then(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64", "memory")
    expect(page.get_by_test_id("memory-peak")).to_contain_text("550 KiB", timeout=TIMEOUT_MS)
    wait_until(
        page, "model('memory-areas').data.xs.length > 5 && view('memory').frame && model('memory').x_range.end > 300"
    )
    assert colours(page, "memory") > 3
    page.get_by_test_id("memory-value").filter(has_text="while.30[2]").click()
    expect(selected(page)).to_have_text("while.30[2]")
    wait_until(page, "model('memory-rings').data.xs.length > 0")
    page.get_by_test_id("memory-at").click()
    expect(selected(page)).to_have_text("while.31")
    page.get_by_test_id("memory-class").select_option(index=1)
    expect(page.get_by_test_id("memory-peak")).to_contain_text("KiB")


def test_a_link_brings_back_what_was_chosen_in_a_view(page: Page, server: Server) -> None:
    explorer = server()
    open_program(page, explorer, "faults", "traffic")
    page.get_by_test_id("traffic-mode-measured").click()
    expect(page).to_have_url(re.compile(r"[?&]o=mode:measured(&|$)"))
    link = page.url
    page.keyboard.press("m")
    expect(page).to_have_url(re.compile(r"[?&]v=mesh(&|$)"))
    page.go_back()
    expect(page).to_have_url(link)
    expect(page.get_by_test_id("traffic-mode-measured")).to_have_attribute("aria-pressed", "true")
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_test_id("traffic-mode-measured")).to_have_attribute("aria-pressed", "true")
