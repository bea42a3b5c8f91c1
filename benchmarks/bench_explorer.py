"""How fast the explorer is, in a real Chromium against the real server.

    python benchmarks/bench_explorer.py [--rounds 5] [FILE ...]

For each program: from going to the address until the overview stands, until the first graph is drawn, and from a click (or key)
until inspector and ring show it. Beside it, in the same run, a bare page with one Bokeh figure: the ratio to it is what can be
compared between machines. Then the server's memory over many sessions.

Needs Chromium (see tests/README.md). Without FILE the bundled programs are measured; name the large ones you care about.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "app")]

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from tests.helpers.browser import bokeh_px, column, wait_until  # noqa: E402
from tests.helpers.chromium import launch_args, require_chromium  # noqa: E402
from tests.helpers.explorer import Explorer, start_explorer, stop_group  # noqa: E402

BARE = """
import os
os.environ["BOKEH_RESOURCES"] = "server"
import panel as pn
from bokeh.plotting import figure
def page():
    made = figure(name="bare", width=800, height=400)
    made.rect([1, 2, 3], [1, 2, 3], 0.5, 0.5)
    return pn.pane.Bokeh(made)
server = pn.serve(page, port=0, address="127.0.0.1", show=False, start=False)
print(f"http://127.0.0.1:{server.port}/", flush=True)
server.start()
server.io_loop.start()
"""
VIEWPORT = {"width": 1440, "height": 900}


@contextmanager
def bare_server() -> Iterator[str]:
    """A page with one figure, the yardstick."""
    process = subprocess.Popen([sys.executable, "-c", BARE], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout
    address = next(line.strip() for line in process.stdout if line.startswith("http"))
    yield address
    stop_group(process)


def timed(action: Callable[[], object]) -> float:
    """Milliseconds that an action takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def fresh(browser: Browser) -> Page:
    return browser.new_context(viewport=VIEWPORT, reduced_motion="reduce").new_page()


def open_bare(browser: Browser, url: str) -> float:
    page = fresh(browser)

    def go() -> None:
        page.goto(url)
        wait_until(page, "Bokeh.documents.length > 0 && Bokeh.documents[0].is_idle && view('bare')")

    took = timed(go)
    page.context.close()
    return took


def open_explorer(browser: Browser, url: str, view: str) -> tuple[float, Page]:
    page = fresh(browser)

    def go() -> None:
        page.goto(f"{url}?v={view}")
        if view == "graph":
            wait_until(
                page, "model('graph-nodes').data.x.length > 0 && view('graph').frame && Bokeh.documents[0].is_idle"
            )
        else:
            page.get_by_test_id("fact-tasks").wait_for()

    return timed(go), page


def select_by_click(page: Page) -> list[float]:
    """From a mouse click on an item until the inspector shows it."""
    titles, xs, ys = (column(page, "graph-nodes", name) for name in ("title", "x", "y"))
    families = column(page, "graph-nodes", "family")
    found = [place for place, family in enumerate(families) if family == "1"][:12] or list(range(min(12, len(xs))))
    times: list[float] = []
    for place in found:
        spot = bokeh_px(page, "graph", xs[place], ys[place])
        page.mouse.move(*spot)
        page.wait_for_timeout(350)  # else two clicks are taken for a double click
        locator = page.get_by_test_id("inspector-title").filter(has_text=titles[place])
        times.append(timed(lambda spot=spot, locator=locator: (page.mouse.click(*spot), locator.first.wait_for())))
    return times


def select_by_key(page: Page) -> list[float]:
    """From the key for the next communication until inspector and ring show it."""
    times: list[float] = []
    for _ in range(12):
        before = page.get_by_test_id("inspector-title").get_attribute("data-key")
        ring = column(page, "graph-rings", "xs")

        def go(before: str | None = before, ring: object = ring) -> None:
            page.keyboard.press("c")
            page.locator(f"[data-testid=inspector-title]:not([data-key='{before}'])").wait_for()
            wait_until(page, "(ring) => JSON.stringify(model('graph-rings').data.xs) !== JSON.stringify(ring)", ring)

        times.append(timed(go))
    return times


def memory_mb(pid: int) -> float:
    """Resident memory of a process, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def middle(times: list[float]) -> str:
    return f"{statistics.median(times):6.0f} ms (max {max(times):5.0f})" if times else "     – "


def measure(browser: Browser, path: Path | None, rounds: int, bare_ms: float) -> None:
    explorer = start_explorer([str(path)] if path else [])
    try:
        for _ in range(2):  # reading is not what is measured here
            _, page = open_explorer(browser, explorer.url, "overview")
            page.context.close()
        overview: list[float] = []
        graph: list[float] = []
        for _ in range(rounds):
            for view, into in (("overview", overview), ("graph", graph)):
                took, page = open_explorer(browser, explorer.url, view)
                into.append(took)
                page.context.close()
        _, page = open_explorer(browser, explorer.url, "graph")
        clicks, keys = select_by_click(page), select_by_key(page)
        tasks = page.get_by_test_id("program-counts").text_content()
        page.context.close()
        print(f"\n{path.name if path else 'gallery'}: {tasks}")
        print(
            f"  overview stands        {middle(overview)}   ×{statistics.median(overview) / bare_ms:.2f} of a bare figure"
        )
        print(f"  graph drawn            {middle(graph)}   ×{statistics.median(graph) / bare_ms:.2f}")
        print(f"  click → inspector      {middle(clicks)}")
        print(f"  key → inspector, ring  {middle(keys)}")
    finally:
        explorer.stop()


def sessions(browser: Browser, count: int) -> None:
    """Memory of the server over many pages that come and go."""
    explorer: Explorer = start_explorer()
    try:
        kept: list[float] = []
        for _ in range(count):
            _, page = open_explorer(browser, explorer.url, "graph")
            page.context.close()
            kept.append(memory_mb(explorer.process.pid))
        early = kept[min(7, len(kept) - 1)]
        print(f"\nserver memory over {count} sessions: {early:.0f} MB after 8, {kept[-1]:.0f} MB at the end")
    finally:
        explorer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=24)
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with sync_playwright() as playwright:
        executable = require_chromium(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=executable, args=launch_args())
        with bare_server() as address:
            open_bare(browser, address)
            bare = [open_bare(browser, address) for _ in range(options.rounds)]
        print(f"bare figure              {middle(bare)}")
        for path in options.files or [None]:
            measure(browser, path, options.rounds, statistics.median(bare))
        sessions(browser, options.sessions)
        browser.close()


if __name__ == "__main__":
    main()
