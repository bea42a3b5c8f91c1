"""Two programs compared, as a person does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dtir.verify.catalogue import document, entry_of
from tests.helpers.explorer import Explorer
from tests.ui.looking import selected, visit

Server = Callable[..., Explorer]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A program with a forgotten reduction, and the same put right."""
    folder = tmp_path_factory.mktemp("programs")
    entry = entry_of("collective.reduce_sharded")
    faulty, right = folder / "faulty.dtir.yaml", folder / "right.dtir.yaml"
    faulty.write_text(document(entry.bad, "faulty"), encoding="utf-8")
    right.write_text(document(entry.good, "right"), encoding="utf-8")
    return faulty, right


def test_a_program_is_compared_with_another_one(page: Page, server: Server, two: tuple[Path, Path]) -> None:
    visit(page, server(*two), "?v=diff")
    expect(page.get_by_test_id("diff-message")).to_contain_text("Choose the program")
    page.get_by_test_id("diff-with").select_option(label="right.dtir.yaml")
    expect(page.get_by_test_id("diff-summary")).to_contain_text("changed")
    expect(page).to_have_url(re.compile(r"[?&]d=[0-9a-f]{8}"))
    address = page.url
    first = page.get_by_test_id("diff-row").first
    first.click()
    expect(first).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("diff-pictures").locator("section")).to_have_count(2)
    page.goto(address)
    expect(page.get_by_test_id("diff-summary")).to_contain_text("changed")
    page.get_by_test_id("diff-swap").click()
    expect(page.get_by_test_id("program-name")).to_have_text("right")
    expect(page.get_by_test_id("diff-with").locator("option:checked")).to_have_text("faulty.dtir.yaml")


def test_a_difference_leads_to_its_task_in_both_programs(page: Page, server: Server, two: tuple[Path, Path]) -> None:
    visit(page, server(*two), "?v=diff")
    page.get_by_test_id("diff-with").select_option(label="right.dtir.yaml")
    page.get_by_test_id("diff-kind-communication").click()
    row = page.get_by_test_id("diff-row").first
    row.click()
    page.get_by_test_id("diff-kind-added").click()
    expect(page.get_by_test_id("diff-kind-added")).to_have_attribute("aria-pressed", "true")
    jump = page.get_by_test_id("diff-jump-after")
    expect(jump).to_be_visible()
    jump.click()
    expect(page.get_by_test_id("program-name")).to_have_text("right")
    expect(selected(page)).not_to_have_text("right")
