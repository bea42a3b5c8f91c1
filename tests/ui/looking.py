"""What the journeys share: opening the explorer, and waiting for what a person would see."""

from __future__ import annotations

from typing import Any

from dtir_app.gallery import examples
from playwright.sync_api import Locator, Page, expect

from tests.helpers.browser import column, wait_until
from tests.helpers.explorer import Explorer


def digest(name: str) -> str:
    """The digest of a bundled program."""
    return next(item.digest for item in examples() if item.name == name)


def visit(page: Page, explorer: Explorer, query: str = "") -> None:
    """Go to the explorer and wait until it listens."""
    page.goto(f"{explorer.url}{query}")
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    expect(page.get_by_test_id("view-overview")).to_be_attached()


def open_program(page: Page, explorer: Explorer, name: str, view: str = "overview", more: str = "") -> None:
    """Open a bundled program by its link and wait until it is shown."""
    visit(page, explorer, f"?p={digest(name)}&v={view}{more}")
    expect(page.get_by_test_id("program-digest")).to_have_text(digest(name)[:8])
    if view == "graph":
        wait_for_graph(page)


def wait_for_graph(page: Page) -> None:
    """Wait until the graph is drawn and its camera has come to rest."""
    wait_until(
        page, "model('graph-nodes').data.x.length > 0 && view('graph') && model('graph-camera').data.kind[0] === ''"
    )


def wait_for_titles(page: Page, *titles: str) -> None:
    """Wait until the graph shows items with these names."""
    wait_until(
        page, "(titles) => titles.every((title) => model('graph-nodes').data.title.includes(title))", list(titles)
    )
    wait_for_graph(page)


def node_at(page: Page, title: str) -> tuple[float, float]:
    """Where an item of the graph stands, in the figure's coordinates."""
    place = column(page, "graph-nodes", "title").index(title)
    return column(page, "graph-nodes", "x")[place], column(page, "graph-nodes", "y")[place]


def ring_at(page: Page) -> tuple[float, float] | None:
    """The middle of the ring around the selected item."""
    which = column(page, "graph-rings", "which")
    if "selected" not in which:
        return None
    place = which.index("selected")
    xs, ys = column(page, "graph-rings", "xs")[place], column(page, "graph-rings", "ys")[place]
    return (sum(xs) / len(xs), sum(ys) / len(ys))


def selected(page: Page) -> Locator:
    """The title in the inspector."""
    return page.get_by_test_id("inspector-title")


def rows(page: Page, table: str) -> Locator:
    """The rows of a table."""
    return page.get_by_test_id(f"row-{table}")


def colours(page: Page, figure: str) -> int:
    """How many different colours the canvas of a figure shows."""
    return int(
        page.evaluate(
            """(name) => {
              const model = [...Bokeh.documents[0]._all_models.values()].find((item) => item.name === name && item.type === 'Plot');
              const canvas = Bokeh.index.find_one(model).canvas_view.primary.el;
              const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
              const seen = new Set();
              for (let at = 0; at < data.length; at += 4 * 7) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
              return seen.size;
            }""",
            figure,
        )
    )


def drop(page: Page, name: str, content: bytes) -> None:
    """Give a file to the upload field, as the file dialog would."""
    payload: Any = {"name": name, "mimeType": "text/plain", "buffer": content}
    page.locator("input[type=file]").set_input_files(payload)
