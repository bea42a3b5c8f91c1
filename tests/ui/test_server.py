"""What people and pages may do to a server: markup in names, a view in a frame, links into a folder, two sessions."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from dtir_app.state import VIEWS
from playwright.sync_api import Browser, Page, expect

from tests.app.build import HOSTILE, example, hostile_program
from tests.helpers.browser import PageWatch
from tests.helpers.explorer import Explorer
from tests.ui.conftest import VIEWPORT
from tests.ui.looking import open_program, selected, visit, wait_for_graph

Server = Callable[..., Explorer]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs, beside one that is not served."""
    outside = tmp_path_factory.mktemp("folders")
    folder = outside / "served"
    (folder / "inner").mkdir(parents=True)
    shutil.copy(example("faults").path, folder / "inner" / "faults.dtir.yaml")
    shutil.copy(example("fsdp").path, outside / "secret.hlo.gz")
    (folder / "link.hlo.gz").symlink_to(outside / "secret.hlo.gz")
    (folder / "<img src=x onerror=window.hit=9>.json").write_text(hostile_program().to_json(), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def explorer(server: Server, served: Path) -> Explorer:
    return server(args=("--root", str(served)))


def test_names_are_text_in_every_view(page: Page, explorer: Explorer) -> None:
    visit(page, explorer, f"?f={quote('<img src=x onerror=window.hit=9>.json')}")
    expect(page.get_by_test_id("program-name")).to_have_text(HOSTILE[0])
    for view in VIEWS:
        page.get_by_test_id(f"view-{view}").click()
        expect(page.get_by_test_id(f"view-{view}")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("]")
        page.keyboard.press("c")
    page.get_by_test_id("search").fill("window")
    expect(page.get_by_test_id("search-hit").first).to_be_visible()
    page.get_by_test_id("view-graph").click()
    wait_for_graph(page)
    box = page.locator(".view-graph .fill").bounding_box()
    assert box
    for step in range(1, 8):  # tooltips of the canvas are elements too
        page.mouse.move(box["x"] + box["width"] * step / 8, box["y"] + box["height"] / 2)
    page.get_by_test_id("program-menu").click()
    expect(page.get_by_test_id("gallery")).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize(
    "name", ["../secret.hlo.gz", "link.hlo.gz", "/etc/hostname", "inner/../../secret.hlo.gz", "%2e%2e/secret.hlo.gz"]
)
def test_no_link_leads_out_of_the_folder(page: Page, explorer: Explorer, name: str) -> None:
    visit(page, explorer, f"?f={quote(name, safe='')}")
    expect(page.get_by_test_id("notice")).to_contain_text("there is no file")
    expect(page.get_by_test_id("program-name")).not_to_contain_text("fsdp")


def test_a_view_alone_for_a_frame(page: Page, explorer: Explorer) -> None:
    visit(page, explorer, "?f=inner/faults.dtir.yaml&v=mesh&embed=1")
    expect(page.locator(".view-mesh")).to_be_visible()
    for part in ("#topbar", "#rail", "#side", "#drawer", "#main > .tabs"):
        expect(page.locator(part)).to_be_hidden()
    page.wait_for_function("location.search.includes('embed=1') && location.search.includes('p=')")
    page.reload()
    expect(page.locator(".view-mesh")).to_be_visible()
    expect(page.locator("#topbar")).to_be_hidden()


def test_sessions_do_not_see_each_other(
    page: Page, browser: Browser, explorer: Explorer, page_watch: PageWatch
) -> None:
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")
    page_watch.attach(context)
    other = context.new_page()
    visit(page, explorer, "?f=inner/faults.dtir.yaml")
    visit(other, explorer, "?f=inner/faults.dtir.yaml")
    page.get_by_test_id("worst-show").click()
    expect(selected(page)).to_have_text("add_bias")
    other.get_by_test_id("view-mesh").click()
    expect(other.get_by_test_id("view-mesh")).to_have_attribute("aria-selected", "true")
    expect(selected(other)).to_have_text("parallel_mlp_with_faults")
    expect(page.get_by_test_id("view-graph")).to_have_attribute("aria-selected", "true")
    context.close()


def test_nothing_is_asked_from_elsewhere(page: Page, explorer: Explorer) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    open_program(page, explorer, "faults", view="graph")
    page.get_by_test_id("view-tensor").click()
    assert len(asked) > 5
    local = explorer.url.removeprefix("http")
    assert [
        url for url in asked if not url.removeprefix("http").removeprefix("ws").startswith((local, "blob:", "data:"))
    ] == []
