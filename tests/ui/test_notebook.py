"""A real JupyterLab: views are live, linked across cells, and load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app.build import example
from tests.helpers.browser import PageWatch, bokeh_px, column, wait_until
from tests.helpers.jupyter import IDLE, READY, RUN_ALL, Jupyter, start_jupyter

pytestmark = pytest.mark.skipif(
    find_spec("jupyterlab") is None, reason="jupyterlab is not installed: pip install 'dtir[notebook]'"
)

CELL_TIMEOUT_MS = 120_000


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    running = start_jupyter(tmp_path_factory.mktemp("lab"))
    yield running
    running.stop()


def test_one_selection_across_cells(page: Page, jupyter: Jupyter, page_watch: PageWatch, tmp_path: Path) -> None:
    # Style sheets of themes that Panel asks for and does without; that they fail is why this is known to be offline.
    page_watch.allow(r"cdn\.holoviz\.org/.*\.css|ERR_FAILED|Failed to load resource")
    page.set_viewport_size({"width": 1400, "height": 2600})
    address = jupyter.notebook(
        "linked.ipynb",
        [
            "import dtir\n"
            f"program = dtir.load_path({str(example('faults').path)!r}).program\n"
            "from dtir.verify import verify\n"
            "from dtir_app.views import graph_view, mesh_view, inspector",
            "graph_view(program, height=300)",
            "mesh_view(program, height=300)",
            "verify(program)",
            "inspector(program, height=400)",
            "program",
        ],
    )
    page.goto(address)
    page.wait_for_function(READY)
    page.evaluate(RUN_ALL)
    expect(page.get_by_test_id("program-name")).to_have_text("parallel_mlp_with_faults", timeout=CELL_TIMEOUT_MS)
    page.wait_for_function(IDLE)
    title = page.get_by_test_id("inspector-title").first
    expect(title).to_have_text("parallel_mlp_with_faults")

    # The report is a table that is linked with the pictures of its program.
    page.get_by_test_id("row-diagnostics").first.click()
    expect(title).to_have_text("add_bias", timeout=CELL_TIMEOUT_MS)
    wait_until(page, "model('graph-rings').data.which.includes('selected')")

    # A click on the canvas of one cell moves the groups of another.
    place = column(page, "graph-nodes", "title").index("sum_tp")
    x, y = (column(page, "graph-nodes", name)[place] for name in ("x", "y"))
    page.mouse.click(*bokeh_px(page, "graph", x, y))
    expect(title).to_have_text("sum_tp")
    expect(page.get_by_text("all-reduce sum_tp").first).to_be_visible()
    expect(page.get_by_test_id("neighbour-here").first).to_contain_text("sum_tp")

    # The program itself is the whole explorer, with tabs that turn.
    page.get_by_test_id("view-tensor").last.click()
    expect(page.get_by_text("before").last).to_be_visible()


def test_a_run_is_set_against_the_plan_in_a_cell(page: Page, jupyter: Jupyter, page_watch: PageWatch) -> None:
    page_watch.allow(r"cdn\.holoviz\.org/.*\.css|ERR_FAILED|Failed to load resource")
    page.set_viewport_size({"width": 1400, "height": 2000})
    address = jupyter.notebook(
        "run.ipynb",
        [
            "import dtir\n"
            f"program = dtir.load_path({str(example('fsdp').path)!r}).program\n"
            "from dtir.execute import run_program\n"
            "record = run_program(program).or_raise().record\n"
            "from dtir_app.views import inspector",
            "inspector(program, height=500)",
            "record",
        ],
    )
    page.goto(address)
    page.wait_for_function(READY)
    page.evaluate(RUN_ALL)
    expect(page.get_by_test_id("inspector-title").first).to_be_visible(timeout=CELL_TIMEOUT_MS)
    expect(page.get_by_test_id("timeline-sum-measured")).to_be_visible(timeout=CELL_TIMEOUT_MS)
    wait_until(page, "model('timeline-bars').data.detail.some((text) => text.includes('measured'))")


def test_a_program_is_run_from_a_cell_and_set_against_its_plan(
    page: Page, jupyter: Jupyter, page_watch: PageWatch
) -> None:
    page_watch.allow(r"cdn\.holoviz\.org/.*\.css|ERR_FAILED|Failed to load resource")
    page.set_viewport_size({"width": 1400, "height": 2400})
    address = jupyter.notebook(
        "run_here.ipynb",
        [
            f"import dtir\nprogram = dtir.load_path({str(example('fsdp').path)!r}).program\nfrom dtir_app.views import view",
            'view(program, "run", height=700)',
        ],
    )
    page.goto(address)
    page.wait_for_function(READY)
    page.evaluate(RUN_ALL)
    start = page.get_by_test_id("run-start")
    expect(start).to_be_enabled(timeout=CELL_TIMEOUT_MS)
    page.wait_for_function(IDLE)
    start.click()
    expect(page.get_by_test_id("run-row")).to_have_count(1, timeout=CELL_TIMEOUT_MS)
    expect(page.get_by_test_id("run-row")).to_contain_text("numpy in 1 process")
    expect(page.get_by_test_id("run-summary")).to_be_visible()
