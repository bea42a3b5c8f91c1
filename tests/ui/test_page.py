"""The page itself: start, links, keys, theme, narrow windows, sessions, nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import PageWatch, click_at, poll, wait_until
from tests.helpers.explorer import Explorer
from tests.ui.looking import digest, node_at, open_program, rows, selected, visit, wait_for_graph

Server = Callable[..., Explorer]


def test_the_start_is_the_gallery_over_an_open_program(page: Page, server: Server) -> None:
    visit(page, server())
    expect(page.get_by_test_id("gallery")).to_be_visible()
    assert page.get_by_test_id(re.compile("^program-(?!menu|name|digest|mesh|counts)")).count() >= 6
    page.get_by_test_id("program-ulysses").click()
    expect(page.get_by_test_id("gallery")).to_be_hidden()
    expect(page.get_by_test_id("program-digest")).to_have_text(digest("ulysses")[:8])
    expect(page.get_by_test_id("fact-tasks")).to_have_text("47")
    page.get_by_test_id("program-menu").click()
    expect(page.get_by_test_id("program-ulysses")).to_contain_text("open")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("gallery")).to_be_hidden()


def test_a_file_given_at_the_start_is_opened(page: Page, server: Server, tmp_path: object) -> None:
    from dtir_app.gallery import examples

    path = next(item.path for item in examples() if item.name == "fsdp")
    visit(page, server(path))
    expect(page.get_by_test_id("gallery")).to_be_hidden()
    expect(page.get_by_test_id("program-digest")).to_have_text(digest("fsdp")[:8])
    expect(page).to_have_title("jit_local – dtir explorer")


def test_a_link_and_a_reload_keep_view_and_selection(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    click_at(page, "graph", *node_at(page, "update"))
    expect(selected(page)).to_have_text("update")
    expect(page).to_have_url(re.compile(r"s=node:"))
    page.reload()
    expect(selected(page)).to_have_text("update")
    wait_for_graph(page)
    wait_until(page, "model('graph-rings').data.which.includes('selected')")
    page.get_by_test_id("view-mesh").click()
    expect(page).to_have_url(re.compile(r"v=mesh"))
    page.go_back()
    wait_until(page, "document.documentElement.dataset.view === 'graph'")
    expect(selected(page)).to_have_text("update")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?p=" + "0" * 40, "is not open on this server"),
        ("?p=<b>x</b>", "is no digest"),
        ("?v=nowhere", "there is no view"),
        ("?s=node:" + "0" * 32, "is not in this program"),
        ("?s=node:xyz&v=3", "names no task or tensor"),
    ],
)
def test_a_bad_link_is_a_message(page: Page, server: Server, query: str, told: str) -> None:
    visit(page, server(), query)
    expect(page.get_by_test_id("notice")).to_contain_text(told)
    page.get_by_test_id("notice-close").click()
    expect(page.get_by_test_id("notice")).to_have_count(0)
    expect(selected(page)).to_be_attached()


def test_everything_by_keyboard(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    page.keyboard.press("2")
    wait_for_graph(page)
    page.keyboard.press("]")
    expect(selected(page)).to_have_text("add_bias")
    page.keyboard.press("ArrowRight")
    expect(selected(page)).to_have_text("sum_tp")
    page.keyboard.press("ArrowLeft")
    expect(selected(page)).to_have_text("add_bias")
    page.keyboard.press("/")
    page.keyboard.type("kind:all_gather")
    expect(page.get_by_test_id("search-count")).to_have_text("1 hit")
    page.keyboard.press("Enter")
    expect(selected(page)).to_have_text("gather_act")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_test_id("help-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help-dialog")).to_be_hidden()
    page.get_by_test_id("search").blur()
    page.keyboard.press("Escape")
    expect(selected(page)).to_have_text("parallel_mlp_with_faults")
    page.get_by_role("tree", name="Outline").focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(selected(page)).to_have_text("act")


def test_keys_are_off_while_typing(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    page.get_by_test_id("search").focus()
    page.keyboard.type("c]24m?")
    expect(page.get_by_test_id("search")).to_have_value("c]24m?")
    expect(selected(page)).to_have_text("parallel_mlp_with_faults")
    expect(page.get_by_test_id("help-dialog")).to_be_hidden()
    assert page.evaluate("document.documentElement.dataset.view") == "overview"


def test_hits_are_stepped_through_and_paths_are_found(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "graph")
    page.keyboard.press("/")
    page.get_by_test_id("search").fill("op:dot > kind:all_reduce")
    expect(page.get_by_test_id("search-count")).to_contain_text("hits")
    expect(page.get_by_test_id("search-hidden")).to_contain_text("in folded instances")
    page.get_by_test_id("search-next").click()
    first = page.get_by_test_id("inspector-title")
    expect(page.get_by_test_id("search-position")).to_contain_text("1 of ")
    expect(first).not_to_have_text("jit_step")
    title = first.inner_text()
    page.get_by_test_id("search").blur()
    page.keyboard.press("n")
    expect(first).not_to_have_text(title)
    page.keyboard.press("N")
    expect(first).to_have_text(title)


def test_search_says_what_it_does_not_understand(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    page.get_by_test_id("search").fill("colour:red")
    expect(page.get_by_test_id("search-problem")).to_contain_text("there is no key 'colour'")
    expect(page.get_by_test_id("search-wrong")).to_have_text("colour")
    page.get_by_test_id("search").fill("axis:tp")
    expect(page.get_by_test_id("search-hit")).to_have_count(2)
    page.get_by_test_id("search-keep").click()
    expect(page.get_by_test_id("filter-count")).to_have_text("2 of 8 tasks")


def test_dark_is_kept_and_reaches_the_canvas(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    page.get_by_test_id("theme").click()
    wait_until(
        page, "document.documentElement.dataset.theme === 'dark' && model('graph').background_fill_color === '#181C22'"
    )
    page.reload()
    wait_for_graph(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    wait_until(page, "model('graph').background_fill_color === '#181C22'")
    corner = """() => { const model = [...Bokeh.documents[0]._all_models.values()].find((item) => item.name === 'graph');
      const canvas = Bokeh.index.find_one(model).canvas_view.primary.el;
      return [...canvas.getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3).join(); }"""
    poll(page, lambda: page.evaluate(corner) == "24,28,34")
    page.get_by_test_id("theme").click()
    wait_until(page, "model('graph').background_fill_color === '#FFFFFF'")


def test_a_dark_system_starts_dark(browser: Browser, server: Server, page_watch: PageWatch) -> None:
    context = browser.new_context(color_scheme="dark")
    page_watch.attach(context)
    page = context.new_page()
    open_program(page, server(), "faults", "graph")
    wait_until(
        page, "document.documentElement.dataset.theme === 'dark' && model('graph').background_fill_color === '#181C22'"
    )
    context.close()
    assert page_watch.problems == []


def test_a_narrow_window_has_panes(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 820, "height": 900})
    open_program(page, server(), "faults", "graph")
    assert page.evaluate("model => document.documentElement.scrollWidth <= innerWidth", None)
    expect(selected(page)).to_be_hidden()
    click_at(page, "graph", *node_at(page, "sum_tp"))
    page.get_by_test_id("pane-side").click()
    expect(selected(page)).to_have_text("sum_tp")
    page.get_by_test_id("pane-rail").click()
    expect(page.get_by_test_id("outline")).to_be_visible()
    expect(selected(page)).to_be_hidden()


def test_two_sessions_do_not_see_each_other(
    page: Page, browser: Browser, server: Server, page_watch: PageWatch
) -> None:
    explorer = server()
    open_program(page, explorer, "faults", "graph")
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page_watch.attach(context)
    other = context.new_page()
    open_program(other, explorer, "faults", "graph")
    click_at(page, "graph", *node_at(page, "update"))
    expect(selected(page)).to_have_text("update")
    click_at(other, "graph", *node_at(other, "down"))
    expect(selected(other)).to_have_text("down")
    other.get_by_test_id("legend-1").click()
    expect(other.get_by_test_id("filter-count")).to_have_text("2 of 8 tasks")
    expect(selected(page)).to_have_text("update")
    expect(page.get_by_test_id("filter-count")).to_have_count(0)
    context.close()


def test_no_setting_makes_the_page_load_from_elsewhere(page: Page, server: Server) -> None:
    # The watched page reaches this machine alone: a script from a CDN would leave it blank and fail the test.
    explorer = server(env={"BOKEH_RESOURCES": "cdn"})
    open_program(page, explorer, "faults", "graph")
    assert len(node_at(page, "sum_tp")) == 2


def test_roles_and_names_for_those_who_do_not_see_the_canvas(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    expect(page.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tree", name="Outline")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("The program as a graph"))).to_be_attached()
    expect(page.get_by_role("grid", name="diagnostics")).to_be_visible()
    expect(page.get_by_role("combobox", name="Search tasks")).to_be_visible()
    expect(page.get_by_role("group", name="Neighbours of the selected task")).to_be_visible()
    unnamed = page.evaluate(
        """() => { const found = []; const walk = (root) => { for (const node of root.querySelectorAll('*')) {
          if (node.shadowRoot) walk(node.shadowRoot);
          if (node.tagName === 'BUTTON' && !(node.getAttribute('aria-label') || node.textContent.trim()) && node.getClientRects().length)
            found.push(node.outerHTML.slice(0, 80)); } }; walk(document); return found; }"""
    )
    assert unnamed == []


def test_a_wide_program_opens_its_rows_in_place(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train")
    more = page.get_by_test_id("outline-more")
    page.get_by_test_id("outline-group").filter(has_text="jit(step)").first.click()
    page.get_by_role("tree", name="Outline").focus()
    page.keyboard.press("End")
    expect(page.get_by_test_id("outline-task").last).to_be_visible()
    assert more.count() <= 1
    expect(rows(page, "collectives").first).to_be_visible()
