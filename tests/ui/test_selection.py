"""One selection in every view: picked on the canvas, in tables, in the outline, in the inspector."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.helpers.browser import bokeh_px, click_at, column, poll, ranges, wait_until
from tests.helpers.explorer import Explorer
from tests.ui.looking import (
    colours,
    node_at,
    open_program,
    ring_at,
    rows,
    selected,
    wait_for_graph,
    wait_for_titles,
)

Server = Callable[..., Explorer]


def test_a_click_on_the_canvas_echoes_in_every_view(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    click_at(page, "graph", *node_at(page, "sum_tp"))
    expect(selected(page)).to_have_text("sum_tp")
    expect(page.get_by_test_id("inspector-sentence")).to_have_text(
        "All-reduce (sum) over tp: 2 × 4 ranks, 2 KiB a group."
    )
    expect(page.get_by_test_id("outline-task").filter(has_text="sum_tp")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("neighbour-here")).to_contain_text("sum_tp")
    expect(page.get_by_test_id("announce")).to_contain_text("Selected sum_tp.")
    expect(page).to_have_url(re.compile(r"[?&]s=node:[0-9a-f]{32}"))
    page.get_by_test_id("table-tab-tasks").click()
    expect(page.locator("tr.selected")).to_contain_text("sum_tp")
    page.get_by_test_id("view-mesh").click()
    expect(page.get_by_test_id("mesh-title")).to_have_text("all-reduce sum_tp")
    wait_until(page, "model('mesh-cells').data.group.join() === '0,0,0,0,1,1,1,1'")
    page.get_by_test_id("view-tensor").click()
    expect(page.get_by_test_id("tensor-name-before")).to_have_text("biased")
    expect(page.get_by_test_id("tensor-name-after")).to_have_text("y")


def test_a_click_beside_everything_clears(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    click_at(page, "graph", *node_at(page, "sum_tp"))
    expect(selected(page)).to_have_text("sum_tp")
    x0, _, y0, _ = ranges(page, "graph")
    click_at(page, "graph", x0 + 0.2, y0 - 0.5)
    expect(selected(page)).to_have_text("parallel_mlp_with_faults")


def test_a_double_click_opens_a_block_and_the_way_leads_back(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "graph")
    expect(page.get_by_test_id("graph-limit")).to_have_text(
        "Showing 32 of 1,311 tasks and 35 blocks — 9 of 12 instances of 3 families folded, 3 differ; "
        "30 items that only other instances have not drawn; 453 local tasks folded into 35 blocks."
    )
    everything = len(column(page, "graph-nodes", "x"))
    assert everything == 67
    x, y, size = (column(page, "graph-nodes", name)[0] for name in ("x", "y", "code"))
    page.mouse.dblclick(*bokeh_px(page, "graph", x, y))
    expect(page.get_by_test_id("crumb-here")).to_contain_text(f"block of {size} tasks")
    wait_until(page, f"model('graph-nodes').data.x.length === {size}")
    page.get_by_test_id("crumb").click()
    wait_until(page, f"model('graph-nodes').data.x.length === {everything}")


def test_all_tasks_can_be_shown_and_folded_again(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "graph")
    page.get_by_test_id("graph-unfold").click()
    wait_until(page, "model('graph-nodes').data.x.length === 1311")
    expect(page.get_by_test_id("graph-limit")).to_have_count(0)
    page.get_by_test_id("graph-fold").click()
    page.keyboard.press("r")
    wait_until(page, "model('graph-nodes').data.x.length === 67")


def test_a_diagnostics_row_recentres_the_graph(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64", "graph")
    x0, x1, y0, y1 = ranges(page, "graph")
    px = bokeh_px(page, "graph", x0 + (x1 - x0) * 0.9, y0 + (y1 - y0) * 0.9)
    page.mouse.move(*px)
    for _ in range(4):
        page.mouse.wheel(0, -300)
    wait_until(page, f"Math.abs(model('graph').x_range.end - model('graph').x_range.start) < {(x1 - x0) * 0.7}")
    page.get_by_test_id("table-tab-diagnostics").click()
    rows(page, "diagnostics").filter(has_text="redundant.repeated").first.click()
    expect(page.locator("tr.selected")).to_contain_text("redundant.repeated")
    wait_until(page, "model('graph-rings').data.which.includes('selected')")
    wait_for_graph(page)
    middle = ring_at(page)
    assert middle is not None
    x0, x1, y0, y1 = ranges(page, "graph")
    assert abs((x0 + x1) / 2 - middle[0]) < 0.01
    assert abs((y0 + y1) / 2 - middle[1]) < 0.01


def test_a_row_of_the_communication_table_goes_into_the_loop(page: Page, server: Server) -> None:
    open_program(page, server(), "scan_layers", "graph")
    page.get_by_test_id("table-tab-collectives").click()
    rows(page, "collectives").filter(has_text="256 B").first.click()
    expect(page.get_by_test_id("crumb-here")).to_contain_text("×4")
    expect(page.get_by_test_id("inspector-sentence")).to_contain_text("×4.")
    title = selected(page).inner_text()
    wait_until(page, "model('graph-rings').data.which.includes('selected')")
    assert ring_at(page) is not None
    wait_for_titles(page, title)


def test_a_picture_that_is_wholly_in_sight_stays_where_it_is(page: Page, server: Server) -> None:
    open_program(page, server(), "llama_block", "graph")
    before = ranges(page, "graph")
    for title in (
        "attention.input_collective.forward.all_gather",
        "attention.output_collective.forward.reduce_scatter",
    ):
        page.keyboard.press("c")
        expect(selected(page)).to_have_text(title)
    wait_until(page, "model('graph-rings').data.which.includes('selected')")
    wait_for_graph(page)
    assert ranges(page, "graph") == before


def test_links_of_the_inspector_and_the_neighbours_select(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    click_at(page, "graph", *node_at(page, "act"))
    expect(selected(page)).to_have_text("act")
    page.get_by_test_id("neighbour-before").click()
    expect(selected(page)).to_have_text("up")
    page.get_by_test_id("inspector-link").filter(has_text="w1").click()
    expect(selected(page)).to_have_text("w1")
    expect(page.get_by_test_id("inspector-sentence")).to_have_text("f32[64,128], [·, tp] dp: replicated")
    page.get_by_test_id("view-tensor").click()
    expect(page.get_by_test_id("tensor-name-tensor")).to_have_text("w1")


def test_the_outline_selects_and_unfolds(page: Page, server: Server) -> None:
    open_program(page, server(), "llama_block")
    page.get_by_test_id("outline-group").filter(has_text="forward").click()
    page.get_by_test_id("outline-group").filter(has_text="mlp").click()
    page.get_by_test_id("outline-task").filter(has_text="mlp.gelu.forward").click()
    expect(selected(page)).to_have_text("mlp.gelu.forward")


def test_the_overview_names_the_worst_and_the_heaviest_one_click_away(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    expect(page.get_by_test_id("worst-show")).to_contain_text("partial.add_replicated")
    page.get_by_test_id("worst-show").click()
    expect(selected(page)).to_have_text("add_bias")
    wait_for_graph(page)
    assert ring_at(page) is not None
    page.get_by_test_id("view-overview").click()
    page.get_by_test_id("heaviest-show").click()
    expect(selected(page)).to_have_text("gather_act")
    page.get_by_test_id("view-overview").click()
    page.get_by_test_id("comm-all_reduce").click()
    expect(rows(page, "collectives")).to_have_count(1)
    expect(page.get_by_test_id("filter-kinds-all_reduce")).to_have_attribute("aria-pressed", "true")


def test_the_legend_filters_and_says_how_many_are_left(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    page.get_by_test_id("legend-1").click()
    expect(page.get_by_test_id("graph-limit")).to_contain_text("2 of 8 tasks match the filters, others faded")
    wait_until(page, "model('graph-nodes').data.alpha.filter((alpha) => alpha === 1).length === 2")
    expect(page.get_by_test_id("filter-count")).to_have_text("2 of 8 tasks")
    page.get_by_test_id("filter-clear").click()
    wait_until(page, "model('graph-nodes').data.alpha.every((alpha) => alpha === 1)")


def test_no_view_is_blank(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64", "graph")
    for view, figure in (("graph", "graph"), ("mesh", "mesh")):
        page.get_by_test_id(f"view-{view}").click()
        wait_until(page, "(name) => view(name).frame && model(name).inner_width > 100", figure)
        page.wait_for_function("(name) => document.documentElement.dataset.view === name", arg=view)
        poll(page, lambda figure=figure: colours(page, figure) > 4)
    page.keyboard.press("c")
    page.get_by_test_id("view-tensor").click()
    wait_until(page, "model('tensor-before-tiles').data.x.length > 0 && model('tensor-before').inner_width > 100")
    poll(page, lambda: colours(page, "tensor-before") > 4)


def test_alt_over_an_item_shows_its_neighbours_and_selects_nothing(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    page.keyboard.down("Alt")
    page.mouse.move(*bokeh_px(page, "graph", *node_at(page, "sum_tp")))
    wait_until(page, "model('graph-near').data.xs.length >= 2 && model('graph-near-lines').data.x0.length >= 1")
    middles = {
        (round(sum(xs) / 4, 3), round(sum(ys) / 4, 3))
        for xs, ys in zip(column(page, "graph-near", "xs"), column(page, "graph-near", "ys"), strict=True)
    }
    assert tuple(round(at, 3) for at in node_at(page, "sum_tp")) in middles
    assert column(page, "graph-rings", "xs") == []
    page.keyboard.up("Alt")
    wait_until(page, "model('graph-near').data.xs.length === 0 && model('graph-near-lines').data.x0.length === 0")


def test_the_inspector_shows_the_ranks_of_a_collective_in_their_groups(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    page.keyboard.press("c")
    cells = page.get_by_test_id("rank-strip").locator("li")
    expect(cells).to_have_count(8)
    expect(cells.nth(5)).to_have_attribute("aria-label", "rank 5 · dp=1, tp=1 · tp group @ dp=1")


def test_a_click_is_not_lost_when_what_is_clicked_is_drawn_anew_meanwhile(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "graph")
    click_at(page, "graph", *node_at(page, "act"))
    expect(selected(page)).to_have_text("act")
    after = page.get_by_test_id("neighbour-after").first
    name = after.inner_text().strip()
    box = after.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.keyboard.press("p")  # pins the task, which the line of neighbours shows
    wait_until(page, "model('graph-rings').data.which.includes('pinned')")
    expect(page.get_by_test_id("pinned")).to_have_count(0)
    page.mouse.up()
    expect(selected(page)).to_have_text(name)
    expect(page.get_by_test_id("pinned")).to_contain_text("act")
