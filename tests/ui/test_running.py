"""Running a program from the explorer, and comparing what was measured with what was planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dtir.cli import main
from tests.helpers.browser import TIMEOUT_MS, wait_until
from tests.helpers.explorer import Explorer
from tests.ui.looking import open_program, rows, visit

Server = Callable[..., Explorer]
SLOW_MS = 3 * TIMEOUT_MS
ASSETS = Path(__file__).resolve().parents[2] / "assets" / "programs"


def test_a_run_from_the_explorer_becomes_the_measured_side(page: Page, server: Server) -> None:
    open_program(page, server(), "fsdp", "run")
    expect(page.get_by_test_id("run-start")).to_be_enabled(timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("run-backend-numpy")).to_contain_text("numpy")
    page.get_by_test_id("run-repetitions").fill("2")
    page.get_by_test_id("run-repetitions").press("Tab")
    page.get_by_test_id("run-start").click()
    expect(page.get_by_test_id("run-row")).to_have_count(1, timeout=SLOW_MS)
    expect(page.get_by_test_id("run-row")).to_contain_text("numpy in 1 process")
    expect(page.get_by_test_id("run-row")).to_have_attribute("aria-selected", "true")
    page.get_by_test_id("run-to-timeline").click()
    wait_until(page, "model('timeline-bars').data.detail.some((text) => text.includes('measured'))", timeout_ms=SLOW_MS)
    expect(page.get_by_test_id("timeline-sum-measured")).to_be_visible()
    page.get_by_test_id("table-tab-collectives").click()
    expect(page.get_by_test_id("sort-p50")).to_be_visible()
    rows(page, "collectives").first.click()
    expect(page.get_by_test_id("inspector")).to_contain_text("Planned and measured")
    page.get_by_test_id("table-tab-diagnostics").click()
    expect(rows(page, "diagnostics").filter(has_text="run.").first).to_be_visible()


def test_ranks_are_seated_on_processes_as_chosen(page: Page, server: Server) -> None:
    pytest.importorskip("mpi4py", reason="pip install 'dtir[mpi]'")
    open_program(page, server(), "halo", "run")
    mpi = page.get_by_test_id("run-backend-mpi").get_by_role("radio")
    expect(page.get_by_test_id("run-start")).to_be_enabled(timeout=TIMEOUT_MS)
    if mpi.is_disabled():
        pytest.skip(page.get_by_test_id("run-backend-mpi").inner_text())
    expect(page.get_by_test_id("run-way")).to_have_count(0)
    mpi.check()
    seats = page.get_by_test_id("run-seats")
    expect(seats).to_contain_text("process 0: ranks 0-")
    page.get_by_test_id("run-way").select_option("turns")
    expect(seats).to_contain_text("process 0: ranks 0, 2")
    page.get_by_test_id("run-way").select_option("written")
    expect(seats).to_contain_text("ranks have no process")
    expect(page.get_by_test_id("run-start")).to_be_disabled()
    page.get_by_test_id("run-written").fill("0 3 | 1-2 4-7")
    page.get_by_test_id("run-written").press("Tab")
    expect(seats).to_contain_text("process 0: ranks 0, 3 · process 1: ranks 1-2, 4-7")
    page.get_by_test_id("run-start").click()
    expect(page.get_by_test_id("run-row")).to_contain_text("2 processes", timeout=SLOW_MS)


def test_a_run_can_be_cancelled(page: Page, server: Server) -> None:
    open_program(page, server(), "transformer_train", "run")
    expect(page.get_by_test_id("run-start")).to_be_enabled(timeout=TIMEOUT_MS)
    page.get_by_test_id("run-repetitions").fill("1000")
    page.get_by_test_id("run-repetitions").press("Tab")
    page.get_by_test_id("run-start").click()
    page.get_by_test_id("run-cancel").click()
    expect(page.get_by_test_id("run-status")).to_have_text("cancelled", timeout=SLOW_MS)
    expect(page.get_by_test_id("run-start")).to_be_enabled()
    expect(page.get_by_test_id("run-row")).to_have_count(0)


def test_a_record_beside_its_program_is_compared_and_one_of_another_program_refused(
    page: Page, server: Server, tmp_path: Path
) -> None:
    program, other = ASSETS / "fsdp8_shardmap_step.spmd.hlo.gz", ASSETS / "halo_partial_2d.spmd.hlo.gz"
    run = tmp_path / "RUN.json"
    assert main(["run", str(program), "-o", str(run)]) == 0
    visit(page, server(program, run), "?v=traffic")
    expect(page.get_by_test_id("run-pick").first).to_be_attached(timeout=TIMEOUT_MS)
    page.get_by_test_id("traffic-mode-measured").click()
    expect(page.get_by_test_id("traffic-problem")).to_contain_text("one process held all ranks")
    visit(page, server(other, run), "?v=timeline")
    expect(page.get_by_text("is the record of another program")).to_be_visible(timeout=TIMEOUT_MS)
