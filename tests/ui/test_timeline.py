"""Journeys through the timeline: by the mouse on the canvas, by keys, and through its table."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.helpers.browser import TIMEOUT_MS, bokeh_px, column, evaluate, ranges, wait_until
from tests.helpers.explorer import Explorer
from tests.ui.looking import colours, open_program, rows, selected

Server = Callable[..., Explorer]


def wait_for_bars(page: Page) -> None:
    """Wait until the picture is drawn and the window has come to rest."""
    wait_until(
        page,
        "model('timeline-bars').data.left.length > 0 && view('timeline').frame && !model('timeline')._waits"
        " && model('timeline-camera')._done === model('timeline-camera').data.n[0] && Bokeh.documents[0].is_idle",
    )


def bar_of(page: Page, name: str) -> tuple[float, float]:
    """The middle of the first bar of a task, in the figure's coordinates."""
    place = """(name) => {
      const d = model('timeline-bars').data, at = Array.from(d.title).indexOf(name);
      return at < 0 ? null : [(d.left[at] + d.right[at]) / 2, (d.top[at] + d.bottom[at]) / 2];
    }"""
    found = evaluate(page, place, name)
    assert found is not None, f"there is no bar {name}"
    return found[0], found[1]


def test_the_key_t_shows_what_runs_when_and_a_click_selects_everywhere(page: Page, server: Server) -> None:
    open_program(page, server(), "llama_block")
    page.keyboard.press("t")
    wait_for_bars(page)
    assert colours(page, "timeline") > 3
    expect(page.get_by_test_id("plan-title")).to_contain_text("h100-nvlink-ib (published")
    expect(page.get_by_test_id("timeline-sum-planned")).to_contain_text("ms")
    name = "mlp.output_collective.forward.reduce_scatter"
    page.mouse.click(*bokeh_px(page, "timeline", *bar_of(page, name)))
    expect(selected(page)).to_have_text(name)
    expect(rows(page, "collectives").and_(page.locator("[aria-selected=true]"))).to_contain_text(name)
    wait_until(page, "model('timeline-rings').data.left.length === 1")


def test_the_window_is_moved_by_keys_and_by_the_wheel_and_the_picture_follows(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "timeline")
    wait_for_bars(page)
    whole = ranges(page, "timeline")
    expect(page.get_by_test_id("timeline-limit")).to_contain_text("too short to be seen at this scale")
    page.keyboard.press("c")
    expect(selected(page)).to_have_text("all-reduce")
    page.keyboard.press("f")
    wait_until(
        page,
        "(span) => { const r = model('timeline').x_range; return r.end - r.start < span / 10; }",
        whole[1] - whole[0],
    )
    wait_until(page, "model('timeline-labels').data.text.includes('all-reduce')")
    before = column(page, "timeline-bars", "title")
    page.mouse.move(*bokeh_px(page, "timeline", *bar_of(page, "all-reduce")))
    for _ in range(3):
        start, end, *_ = ranges(page, "timeline")
        page.mouse.wheel(0, 400)
        # A turn that came after the key below would move the picture again.
        wait_until(
            page, "(span) => model('timeline').x_range.end - model('timeline').x_range.start > span", end - start
        )
    wait_until(page, "(count) => model('timeline-bars').data.title.length > count", len(before))
    page.keyboard.press("0")
    wait_until(page, "(start) => Math.abs(model('timeline').x_range.start - start) < 1e-9", whole[0])


def test_the_table_of_bars_is_another_way_to_select(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "timeline")
    wait_for_bars(page)
    page.get_by_test_id("timeline-twin").click()
    bars = page.get_by_test_id("timeline-bar-row")
    expect(bars).to_have_count(8)
    bars.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(selected(page)).to_have_text("act")
    expect(bars.nth(1)).to_have_attribute("aria-selected", "true")


def test_rows_open_to_ranks_and_another_profile_plans_anew(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64", "timeline")
    wait_for_bars(page)
    lines = page.get_by_test_id("timeline-row")
    expect(lines).to_have_count(10)
    page.get_by_test_id("timeline-open-c0").click()
    expect(lines).to_have_count(14)
    expect(lines.nth(1)).to_contain_text("rank 0")
    planned = page.get_by_test_id("timeline-sum-planned").text_content()
    page.get_by_test_id("plan-profile").first.select_option("tpu-v5p-torus")
    expect(page.get_by_test_id("plan-title")).to_contain_text("tpu-v5p-torus", timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("timeline-sum-planned")).not_to_have_text(planned or "")


def test_a_link_shows_the_same_window_of_time(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "timeline")
    wait_for_bars(page)
    x0, x1, y0, y1 = ranges(page, "timeline")
    page.mouse.move(*bokeh_px(page, "timeline", x0 + (x1 - x0) * 0.3, (y0 + y1) / 2))
    page.mouse.wheel(0, -600)
    expect(page).to_have_url(re.compile(r"[?&]o=window:[-0-9.e]+\.\.[-0-9.e]+(&|$)"))
    link, seen = page.url, ranges(page, "timeline")[:2]
    assert seen[1] - seen[0] < x1 - x0
    page.goto("about:blank")
    page.goto(link)
    wait_for_bars(page)
    wait_until(
        page,
        """([first, last]) => {
          const {start, end} = model('timeline').x_range;
          return Math.abs(start - first) + Math.abs(end - last) < 1e-6 * (last - first); }""",
        list(seen),
    )
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("window"))
