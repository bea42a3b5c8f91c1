"""Groups on the mesh and shard maps."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.helpers.browser import click_at, column, wait_until
from tests.helpers.explorer import Explorer
from tests.ui.looking import open_program, rows, selected

Server = Callable[..., Explorer]


def test_groups_of_a_collective_as_colours_and_as_text(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64", "mesh")
    page.get_by_test_id("table-tab-collectives").click()
    rows(page, "collectives").filter(has_text="all-gather.11").click()
    expect(page.get_by_test_id("mesh-title")).to_have_text("all-gather all-gather.11")
    expect(page.get_by_test_id("mesh-group")).to_have_count(16)
    expect(page.get_by_test_id("mesh-group").first).to_contain_text("axis0 group @ axis1=0, axis2=0")
    expect(page.get_by_test_id("mesh-group").first).to_contain_text("0, 16, 32, 48")
    wait_until(page, "new Set(model('mesh-cells').data.group).size === 16")
    group, rank = column(page, "mesh-cells", "group"), column(page, "mesh-cells", "rank")
    assert [name for name, number in zip(rank, group, strict=True) if number == 0] == ["0", "16", "32", "48"]


def test_the_next_collective_by_key_changes_the_groups(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "mesh")
    page.keyboard.press("c")
    expect(page.get_by_test_id("mesh-title")).to_have_text("all-reduce all-reduce")
    page.keyboard.press("c")
    expect(page.get_by_test_id("mesh-title")).to_have_text("all-reduce all-reduce.1")
    page.keyboard.press("C")
    expect(page.get_by_test_id("mesh-title")).to_have_text("all-reduce all-reduce")


def test_a_permute_is_drawn_with_arrows(page: Page, server: Server) -> None:
    open_program(page, server(), "ring_attention", "mesh")
    page.get_by_test_id("table-tab-collectives").click()
    rows(page, "collectives").first.click()
    wait_until(page, "model('mesh-arrows').data.x0.length === 8")
    expect(page.get_by_test_id("mesh-group").first).to_contain_text("0 → 1")


def test_axes_can_be_turned_and_groups_chosen(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "mesh")
    expect(page.get_by_test_id("mesh-title")).to_have_text("tp groups")
    page.get_by_test_id("mesh-group-dp").click()
    expect(page.get_by_test_id("mesh-title")).to_have_text("dp×tp groups")
    before = column(page, "mesh-cells", "x")
    page.get_by_test_id("mesh-place-tp").click()
    wait_until(page, "(before) => model('mesh-cells').data.x.join() !== before.join()", before)
    click_at(page, "mesh", 0, 0)
    expect(page.get_by_test_id("mesh-title")).to_have_text("dp×tp groups")


def test_a_shard_map_says_who_holds_what(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", "tensor")
    expect(page.get_by_test_id("tensor-empty")).to_be_visible()
    page.get_by_test_id("table-tab-tensors").click()
    page.locator('tr[data-row="6"]').click()
    expect(page.get_by_test_id("tensor-name-tensor")).to_have_text("part")
    expect(page.get_by_test_id("tensor-state-tensor")).to_have_text(["dp split 0", "tp partial sum"])
    wait_until(page, "model('tensor-before-tiles').data.label.join() === '0–3,4–7'")
    assert set(column(page, "tensor-before-tiles", "badge")) == {"Σ tp"}
    page.get_by_text("2 blocks as text").click()
    expect(page.get_by_test_id("tensor-blocks-tensor").locator("tbody tr").first).to_contain_text("dim 0 [0, 8)")


def test_before_and_after_a_collective_on_per_rank_data(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "tensor")
    page.keyboard.press("c")
    expect(page.get_by_test_id("tensor-name-after")).to_have_text("all-reduce")
    wait_until(page, "new Set(model('tensor-after-tiles').data.badge).has('= in group')")
    assert set(column(page, "tensor-before-tiles", "badge")) == {"term of Σ"}
    expect(page.get_by_test_id("tensor-note-after")).to_contain_text("all members of a group over axis1 hold the same")


def test_dims_can_be_picked(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64", "tensor")
    page.get_by_test_id("table-tab-tensors").click()
    rows(page, "tensors").filter(has_text="[8,").first.click()
    down = page.get_by_test_id("tensor-dim-tensor-down")
    expect(down).to_be_visible()
    down.select_option("0")
    expect(down).to_have_value("0")
    expect(selected(page)).to_be_visible()
