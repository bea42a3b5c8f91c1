"""The tables: sorting, pages, downloads, the keyboard."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.helpers.explorer import Explorer
from tests.ui.looking import open_program, rows, selected

Server = Callable[..., Explorer]


def test_numbers_sort_by_size(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_64")
    page.get_by_test_id("table-tab-collectives").click()
    page.get_by_test_id("sort-message_bytes").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Message")
    expect(rows(page, "collectives").first).to_contain_text("12 KiB")
    page.get_by_test_id("sort-message_bytes").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Message")
    expect(rows(page, "collectives").first).to_contain_text("4 B")


def test_a_long_table_has_pages_and_a_selection_turns_to_its_page(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train")
    page.get_by_test_id("table-tab-tasks").click()
    expect(page.get_by_test_id("page-number")).to_have_text("page 1 of 15")
    expect(rows(page, "tasks")).to_have_count(100)
    page.get_by_test_id("page-next").click()
    expect(page.get_by_test_id("page-number")).to_have_text("page 2 of 15")
    expect(rows(page, "tasks").first).to_have_attribute("data-row", "100")
    page.keyboard.press("C")
    expect(page.get_by_test_id("page-number")).not_to_have_text("page 2 of 15")
    expect(page.locator("tr.selected")).to_be_in_viewport()


def test_what_is_shown_can_be_downloaded(page: Page, server: Server, tmp_path: Path) -> None:
    open_program(page, server(), "scan_layers")
    page.get_by_test_id("table-tab-collectives").click()
    with page.expect_download() as waiting:
        page.get_by_test_id("export-csv").click()
    waiting.value.save_as(tmp_path / "table.csv")
    assert waiting.value.suggested_filename == "jit_f.collectives.csv"
    with (tmp_path / "table.csv").open(encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert [row["executions"] for row in read].count("4") == 4
    with page.expect_download() as waiting:
        page.get_by_test_id("export-json").click()
    waiting.value.save_as(tmp_path / "table.json")
    made = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert made["total"] == len(read)


def test_rows_are_walked_and_chosen_by_key(page: Page, server: Server) -> None:
    open_program(page, server(), "faults")
    page.get_by_test_id("table-tab-tasks").click()
    rows(page, "tasks").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(selected(page)).to_have_text("down")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(selected(page)).to_have_text("act")


def test_a_table_without_rows_says_why(page: Page, server: Server) -> None:
    open_program(page, server(), "faults", more="&q=nothing-has-this-name")
    page.get_by_test_id("table-tab-tasks").click()
    expect(page.get_by_test_id("table-empty")).to_have_text("No row matches the filters.")
    page.get_by_test_id("filter-text").click()
    expect(rows(page, "tasks")).to_have_count(8)
