"""The exported page, opened from the disk with the network off: what it says works does, and nothing reaches out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dtir_app.exporting.page import offline_page
from dtir_app.library import open_program
from playwright.sync_api import Page, expect

from dtir.importers import load_path
from tests.app.build import HOSTILE, example, hostile_import, store_of_example

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exported")
    for name in ("faults", "scan_layers"):
        text = offline_page(open_program(load_path(example(name).path)))
        (made / f"{name}.html").write_text(text, encoding="utf-8")
    return made


@pytest.fixture
def open_page(page: Page, folder: Path) -> Open:
    """`open_page("faults", "#v=graph")` gives the page, drawn, with the network off."""

    def go(name: str = "faults", address: str = "") -> Page:
        page.context.set_offline(True)
        page.goto(f"{(folder / f'{name}.html').as_uri()}{address}")
        page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
        return page

    return go


def key(name: str, program: str = "faults") -> str:
    tasks = store_of_example(program).tasks
    return f"node:{tasks.id[tasks.name.index(name)]}"


def title(page: Page) -> object:
    return page.get_by_test_id("inspector-title")


def test_it_opens_on_the_overview_and_says_what_works(open_page: Open) -> None:
    page = open_page()
    expect(page.get_by_test_id("program-name")).to_have_text("parallel_mlp_with_faults")
    expect(page.get_by_test_id("card-worst")).to_contain_text("partial.add_replicated")
    expect(page.get_by_test_id("notice")).to_contain_text("complete without a server")
    page.get_by_test_id("notice-close").click()
    page.get_by_test_id("help").click()
    about = page.get_by_role("dialog", name="About this file")
    expect(about).to_contain_text("Needs the explorer")
    about.get_by_role("button", name="Close").click()
    expect(about).to_be_hidden()


def test_one_selection_in_all_views(open_page: Open) -> None:
    page = open_page()
    page.get_by_test_id("worst-show").click()
    expect(title(page)).to_have_text("add_bias")
    expect(page.locator("[data-figure=graph] .selected")).to_have_attribute("data-task", "3")
    page.locator("[data-figure=graph] [data-task='4']").click()
    expect(title(page)).to_have_text("sum_tp")
    expect(page.get_by_test_id("neighbour-here")).to_contain_text("sum_tp")
    page.get_by_test_id("view-mesh").click()
    expect(page.locator("[data-figure=mesh] rect")).to_have_count(8)
    expect(page.get_by_test_id("mesh-group").first).to_contain_text("tp group @ dp=0")
    page.get_by_test_id("view-tensor").click()
    expect(page.locator("[data-figure='tensor-before'] rect").first).to_be_visible()
    page.get_by_test_id("table-tab-tasks").click()
    expect(page.locator("tr.selected")).to_contain_text("sum_tp")
    page.get_by_test_id("row-tasks").first.click()
    expect(title(page)).to_have_text("up")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(title(page)).to_have_text("parallel_mlp_with_faults")


def test_links_and_the_way_back(open_page: Open) -> None:
    page = open_page("faults", f"#v=graph&s={key('sum_tp')}")
    expect(title(page)).to_have_text("sum_tp")
    page.get_by_test_id("view-mesh").click()
    page.wait_for_function("location.hash.startsWith('#v=mesh')")
    page.go_back()
    expect(page.get_by_test_id("view-graph")).to_have_attribute("aria-selected", "true")
    page.goto(f"{page.url.split('#')[0]}#v=nowhere&s=<img src=x onerror=alert(1)>")
    expect(page.get_by_test_id("program-name")).to_have_text("parallel_mlp_with_faults")


def test_search_sort_filter_and_download(open_page: Open) -> None:
    page = open_page("scan_layers")
    page.get_by_test_id("table-tab-collectives").click()
    before = page.get_by_test_id("row-collectives").count()
    tasks = store_of_example("scan_layers").tasks
    largest = int(max(size for size in tasks.message_bytes.tolist() if size == size))
    page.keyboard.press("/")
    page.keyboard.type(f"kind:collective bytes>={largest}")
    expect(page.get_by_test_id("search-count")).to_contain_text("hit")
    page.get_by_test_id("search-keep").click()
    expect(page.get_by_test_id("table-count")).to_contain_text("rows match")
    assert 0 < page.get_by_test_id("row-collectives").count() < before
    page.keyboard.press("Escape")
    page.get_by_test_id("view-graph").click()
    page.get_by_test_id("legend-1").click()
    expect(page.locator("[data-figure=graph] .faded").first).to_be_attached()
    page.get_by_test_id("legend-1").click()
    page.get_by_test_id("search").fill("")
    page.get_by_test_id("search").fill("rank:3")
    expect(page.get_by_test_id("search-problem")).to_contain_text("in the explorer only")
    page.get_by_test_id("search").fill("")
    page.get_by_test_id("table-tab-tasks").click()
    for press, first in ((1, "ascending"), (2, "descending")):
        page.get_by_test_id("sort-name").click()
        expect(page.locator("th[aria-sort]:not([aria-sort=none])")).to_have_attribute("aria-sort", first)
        names = page.locator("td:nth-child(3)").all_inner_texts()
        assert names == sorted(names, reverse=press == 2)
    with page.expect_download() as started:
        page.get_by_test_id("export-json").click()
    rows = json.loads(Path(started.value.path()).read_text(encoding="utf-8"))["rows"]
    assert len(rows) == len(store_of_example("scan_layers").tasks)
    assert rows[0]["id"].startswith("node:")


def test_zooming_dragging_and_keys(open_page: Open) -> None:
    page = open_page("scan_layers", "#v=graph")
    figure = page.locator("[data-figure=graph]")
    whole = figure.get_attribute("viewBox")
    assert whole
    box = figure.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -300)
    page.wait_for_function(
        "(whole) => document.querySelector('[data-figure=graph]').getAttribute('viewBox') !== whole", arg=whole
    )
    closer = figure.get_attribute("viewBox")
    assert closer
    assert float(closer.split()[2]) < float(whole.split()[2])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 80, box["y"] + box["height"] / 2 + 10, steps=3)
    page.mouse.up()
    assert figure.get_attribute("viewBox") != closer
    page.keyboard.press("0")
    assert figure.get_attribute("viewBox") == whole
    page.keyboard.press("c")
    expect(figure.locator(".selected").first).to_be_attached()
    page.get_by_test_id("theme").click()
    dark = page.evaluate("[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]")
    assert dark == ["dark", "rgb(17, 20, 24)"]


def test_regions_open_and_what_needs_the_explorer_says_so(open_page: Open) -> None:
    page = open_page("scan_layers", "#v=graph")
    page.get_by_test_id("inspector-enter").or_(page.locator("[data-figure=graph] [data-task]")).first.wait_for()
    loop = next(task for task, scopes in store_of_example("scan_layers").tasks.entered.items() if scopes)
    page.locator(f"[data-figure=graph] [data-task='{loop}']").first.dblclick()
    expect(page.get_by_test_id("crumb-here")).not_to_have_text("program")
    page.get_by_test_id("view-mesh").click()
    page.locator("[data-element=meshbar] button").first.click()
    expect(page.get_by_test_id("notice")).to_contain_text("dtir explore")


def test_labels_are_text_whatever_they_say(page: Page, tmp_path: Path) -> None:
    target = tmp_path / "hostile.html"
    target.write_text(offline_page(open_program(hostile_import())), encoding="utf-8")
    for view in ("overview", "graph", "mesh", "tensor", "finding"):
        page.goto(f"{target.as_uri()}#v={view}")
        page.reload()
        page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
        page.keyboard.press("]")
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.querySelectorAll('img, iframe, object').length") == 0
    expect(page.get_by_test_id("program-name")).to_have_text(HOSTILE[0])
