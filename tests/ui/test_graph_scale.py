"""Large programs in the graph: what repeats is folded with a stepper, what is far away is a density, and links lead back to both."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import bokeh_px, click_at, column, ranges, wait_until
from tests.helpers.explorer import Explorer
from tests.helpers.layered import layered, nameless
from tests.ui.looking import node_at, open_program, selected, visit, wait_for_graph

Server = Callable[..., Explorer]


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty layers, the last of which gathers once less."""
    path = tmp_path_factory.mktemp("scale") / "layers80.json"
    path.write_text(layered(80, odd={79: frozenset({"gather_mlp"})}).to_json(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4,002 tasks: more than are drawn at once."""
    path = tmp_path_factory.mktemp("scale") / "crowd.json"
    path.write_text(layered(100, 4, name=nameless).to_json(), encoding="utf-8")
    return path


def shown(page: Page, count: int) -> None:
    wait_until(page, f"model('graph-nodes').data.x.length === {count}")


def test_eighty_layers_are_one_with_a_stepper(page: Page, server: Server, layers: Path) -> None:
    visit(page, server(layers), "?v=graph")
    wait_for_graph(page)
    shown(page, 8)
    expect(page.get_by_test_id("graph-limit")).to_have_text(
        "Showing 6 of 801 tasks and 2 blocks — 79 of 80 layers folded (layer 79 differs: 1 all_gather less); "
        "6 local tasks folded into 2 blocks."
    )
    assert column(page, "graph-borders", "label")[0] == "×80 layers: layer 0 shown"
    expect(page.get_by_test_id("repeat-position")).to_have_text("1 of 80")
    page.get_by_test_id("repeat-next").click()
    expect(page.get_by_test_id("repeat-position")).to_have_text("2 of 80")
    wait_until(page, "model('graph-borders').data.label[0] === '×80 layers: layer 1 shown'")
    page.get_by_test_id("repeat-different").select_option("79")
    expect(page.get_by_test_id("repeat-note")).to_have_text("layer 79 differs: 1 all_gather less")
    shown(page, 7)
    expect(page.get_by_test_id("graph-limit")).to_contain_text("1 item that only other instances have not drawn")
    page.get_by_test_id("graph-why").click()
    expect(page.get_by_test_id("graph-reasons")).to_contain_text("the instance that is shown has no such task")


def test_the_selection_goes_along_and_a_search_goes_into_the_fold(page: Page, server: Server, layers: Path) -> None:
    visit(page, server(layers), "?v=graph")
    wait_for_graph(page)
    click_at(page, "graph", *node_at(page, "mb.0.layers.0.gather_in"))
    expect(selected(page)).to_have_text("mb.0.layers.0.gather_in")
    page.keyboard.press(".")
    expect(selected(page)).to_have_text("mb.0.layers.1.gather_in")
    page.keyboard.press(",")
    expect(selected(page)).to_have_text("mb.0.layers.0.gather_in")
    page.get_by_test_id("search").fill("layers.42.scatter_in")
    expect(page.get_by_test_id("search-hidden")).to_contain_text("1 in folded instances")
    page.get_by_test_id("search-hit").first.click()
    expect(selected(page)).to_have_text("mb.0.layers.42.scatter_in")
    expect(page.get_by_test_id("repeat-position")).to_have_text("43 of 80")
    wait_until(page, "model('graph-rings').data.which.includes('selected')")


def test_a_family_unfolds_and_folds_again(page: Page, server: Server, layers: Path) -> None:
    visit(page, server(layers), "?v=graph")
    wait_for_graph(page)
    page.get_by_test_id("repeat-fold").click()
    expect(page.get_by_test_id("repeat-fold")).to_have_text("fold")
    shown(page, 80 * 6 - 1 + 2)
    expect(page.get_by_test_id("graph-limit")).to_contain_text("480 local tasks folded into 160 blocks")
    page.get_by_test_id("repeat-fold").click()
    shown(page, 8)


def test_far_away_is_a_density_and_near_are_tasks(page: Page, server: Server, crowd: Path) -> None:
    visit(page, server(crowd), "?v=graph")
    wait_for_graph(page)
    page.get_by_test_id("graph-unfold").click()
    limit = page.get_by_test_id("graph-limit")
    expect(limit).to_have_text(
        "Showing 0 of 4,002 tasks — 4,002 items drawn as densities: zoom in to see each, with its edges."
    )
    wait_until(page, "model('graph-nodes').tags[1] === true && model('graph-camera').data.kind[0] === ''")
    assert 0 < len(column(page, "graph-pieces", "left")) <= 3000
    assert column(page, "graph-nodes", "x") == []
    assert column(page, "graph-edges", "x0") == []
    x0, x1, y0, y1 = ranges(page, "graph")
    page.mouse.move(*bokeh_px(page, "graph", x0 + (x1 - x0) * 0.4, y0 + (y1 - y0) * 0.4))
    for _ in range(3):
        page.mouse.wheel(0, -400)
    wait_until(
        page, "model('graph-nodes').tags[1] === false && model('graph-nodes').data.item.every((item) => item >= 0)"
    )
    assert len(column(page, "graph-edges", "x0")) > 0
    expect(limit).to_contain_text("of 4,002 items are in sight or near")
    page.keyboard.press("0")
    wait_until(page, "model('graph-nodes').tags[1] === true")
    expect(limit).to_contain_text("drawn as densities")


def test_a_link_with_a_part_of_the_picture_shows_it_again(page: Page, server: Server, layers: Path) -> None:
    explorer = server(layers)
    visit(page, explorer, "?v=graph")
    wait_for_graph(page)
    x0, x1, y0, y1 = ranges(page, "graph")
    page.mouse.move(*bokeh_px(page, "graph", (x0 + x1) / 2, (y0 + y1) / 2))
    page.mouse.wheel(0, -400)
    expect(page).to_have_url(re.compile(r"[?&]z=[-0-9.,]+"))
    page.keyboard.press(".")
    expect(page).to_have_url(re.compile(r"[?&]n=lr\.s0:1"))
    seen = ranges(page, "graph")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    wait_for_graph(page)
    expect(page.get_by_test_id("repeat-position")).to_have_text("2 of 80")
    wait_until(page, "(seen) => Math.abs(model('graph').x_range.start - seen[0]) < 0.02", list(seen))
    assert ranges(page, "graph") == pytest.approx(seen, abs=0.02)


def test_the_back_button_steps_out_of_a_block(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "graph")
    everything = len(column(page, "graph-nodes", "x"))
    page.mouse.dblclick(
        *bokeh_px(page, "graph", column(page, "graph-nodes", "x")[0], column(page, "graph-nodes", "y")[0])
    )
    expect(page.get_by_test_id("crumb-here")).to_contain_text("block of")
    expect(page).to_have_url(re.compile(r"[?&]w=b\d+"))
    page.go_back()
    expect(page.get_by_test_id("crumb")).to_have_count(0)
    shown(page, everything)
    page.go_forward()
    expect(page.get_by_test_id("crumb-here")).to_contain_text("block of")


def test_folds_are_reached_by_keyboard_alone(page: Page, server: Server, layers: Path) -> None:
    visit(page, server(layers), "?v=graph")
    wait_for_graph(page)
    page.keyboard.press("c")
    expect(selected(page)).to_have_text("mb.0.layers.0.gather_in")
    for _ in range(3):
        page.keyboard.press(".")
    expect(selected(page)).to_have_text("mb.0.layers.3.gather_in")
    expect(page.get_by_test_id("announce")).to_contain_text("mb.0.layers.3.gather_in")
    page.keyboard.press("p")
    expect(page.get_by_test_id("pinned")).to_contain_text("gather_in")
    page.keyboard.press("r")
    expect(page.get_by_test_id("repeat-fold")).to_have_text("fold")
    page.keyboard.press("r")
    expect(page.get_by_test_id("repeat-position")).to_have_text("4 of 80")
    page.keyboard.press("b")
    expect(page.get_by_test_id("graph-box")).to_have_attribute("aria-pressed", "true")
    wait_until(page, "model('graph-box-zoom').active === true")
    page.keyboard.press("?")
    expect(page.get_by_test_id("help-dialog")).to_contain_text("previous, next instance of what repeats")
    expect(page.get_by_test_id("help-dialog")).to_contain_text("any number of tasks between")


def test_a_second_page_answers_while_a_large_file_is_read(
    page: Page, server: Server, layers: Path, tmp_path: Path
) -> None:
    """Reading, judging and laying out 15,000 tasks takes seconds, and holds nobody else up."""
    big = tmp_path / "big.json"
    big.write_text(layered(94, 16).to_json(), encoding="utf-8")
    explorer = server(layers, big, fresh=True)
    visit(page, explorer, "?v=graph")
    wait_for_graph(page)
    other = page.context.new_page()
    visit(other, explorer)
    other.get_by_test_id("program-menu").click()
    other.get_by_test_id("program-big.json").click()
    expect(other.get_by_test_id("gallery-busy")).to_contain_text("Reading big.json")
    for name in ("mb.0.layers.0.gather_in", "mb.0.layers.0.scatter_in", "mb.0.layers.0.gather_mlp"):
        page.keyboard.press("c")
        expect(selected(page)).to_have_text(name)
    expect(other.get_by_test_id("gallery-busy")).to_contain_text("Reading big.json")
    expect(other.get_by_test_id("program-counts")).to_contain_text("15,042 tasks", timeout=120_000)
    other.get_by_role("tab", name="Graph").click()
    wait_for_graph(other)


def test_all_views_are_reached_on_a_narrow_page(page: Page, server: Server, layers: Path) -> None:
    page.set_viewport_size({"width": 420, "height": 760})
    visit(page, server(layers), "?v=graph")
    wait_for_graph(page)
    tabs = page.locator(".main-tabs [role=tab]")
    last = tabs.last
    last.evaluate("(tab) => tab.click()")
    expect(last).to_have_attribute("aria-selected", "true")
    expect(last).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    last.press("Home")
    expect(tabs.first).to_be_focused()
    tabs.first.press("Enter")
    expect(tabs.first).to_have_attribute("aria-selected", "true")
    expect(tabs.first).to_be_in_viewport()


def test_a_click_with_shift_pins(page: Page, server: Server, layers: Path) -> None:
    visit(page, server(layers), "?v=graph")
    wait_for_graph(page)
    page.keyboard.down("Shift")
    click_at(page, "graph", *node_at(page, "mb.0.layers.0.scatter_in"))
    page.keyboard.up("Shift")
    expect(page.get_by_test_id("pinned")).to_contain_text("scatter_in")
    wait_until(page, "model('graph-rings').data.which.includes('pinned')")
    click_at(page, "graph", *node_at(page, "mb.0.layers.0.gather_in"))
    expect(selected(page)).to_have_text("mb.0.layers.0.gather_in")
    wait_until(
        page,
        "model('graph-rings').data.which.includes('pinned') && model('graph-rings').data.which.includes('selected')",
    )
    page.get_by_test_id("unpin").click()
    expect(page.get_by_test_id("pinned")).to_have_count(0)


@pytest.mark.parametrize("view", ["graph", "timeline"])
def test_a_view_that_is_asked_for_while_its_file_is_read_is_drawn(
    page: Page, server: Server, tmp_path: Path, view: str
) -> None:
    """Its figure is put on the page when the program is there: before the data that are drawn in it."""
    big = tmp_path / "big.json"
    big.write_text(layered(94, 8).to_json(), encoding="utf-8")
    explorer = server(big, fresh=True)
    page.goto(f"{explorer.url}?v={view}")
    expect(page.get_by_test_id("program-counts")).to_contain_text("7,522 tasks", timeout=120_000)
    if view == "graph":
        wait_for_graph(page)
    else:
        wait_until(page, "model('timeline-bars').data.left.length > 0 && view('timeline').frame")
