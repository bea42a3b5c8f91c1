"""How fast the explorer is, in a real Chromium against the real server.

    python benchmarks/bench_explorer.py [--rounds 5] [--sizes 1000,10000,100000] [FILE ...]

For each program: from going to the address until the overview stands, until the first graph is drawn, from a turn of the wheel until
the server's answer is drawn, and from a click (or key) until inspector and ring show it. Beside it, in the same run, a bare page with one
Bokeh figure: the ratio to it is what can be compared between machines. The budgets stand beside the times. Then the server's memory
over many sessions.

Needs Chromium (see tests/README.md). Without FILE programs of layers in microbatches are made, of the sizes asked for: folded they are a
dozen items, unfolded (which is what zooming is measured on) as many as tasks. A million tasks are opened with ``--sizes 1000000``; making
and reading that file takes minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "app")]

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from playwright.sync_api import TimeoutError as PlaywrightTimeout  # noqa: E402

from tests.helpers.browser import bokeh_px, column, evaluate, ranges, wait_until  # noqa: E402
from tests.helpers.chromium import launch_args, require_chromium  # noqa: E402
from tests.helpers.explorer import Explorer, start_explorer, stop_group  # noqa: E402
from tests.helpers.layered import layered  # noqa: E402

PICTURE_MS, ANSWER_MS = 2000.0, 150.0
"""Budgets: the first picture, and the answer to a zoom or a selection."""
READ_S = 900

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


def remember(page: Page) -> None:
    """Keep what the graph is filled with now, to tell it from what comes."""
    evaluate(page, "() => { window.filled = model('graph-nodes').data; }")


FILLED = "model('graph-nodes').data !== window.filled && Bokeh.documents[0].is_idle"


def zoom(page: Page) -> list[float]:
    """From a turn of the wheel until the server's data for what is then in sight are drawn, where it has to be asked."""
    remember(page)
    page.get_by_test_id("graph-unfold").click()
    wait_until(page, f"{FILLED} && model('graph-camera').data.kind[0] === ''", timeout_ms=120_000)
    if not evaluate(page, "() => model('graph-nodes').tags.length > 2"):
        return []  # small enough to be sent once and as a whole: nobody is asked
    times: list[float] = []
    for turn in range(12):
        x0, x1, y0, y1 = ranges(page, "graph")
        page.mouse.move(*bokeh_px(page, "graph", x0 + (x1 - x0) * 0.4, y0 + (y1 - y0) * 0.4))
        remember(page)
        start = time.perf_counter()
        if turn % 4 == 3:
            page.keyboard.press("0")  # back to everything
        else:
            page.mouse.wheel(0, -250)
        try:
            wait_until(page, FILLED, timeout_ms=2_000)
        except PlaywrightTimeout:
            continue  # what was sent is enough for this step
        times.append((time.perf_counter() - start) * 1000)
    return times


def search(page: Page) -> list[float]:
    """From the last letter typed until the hits are listed, the rest before asking (90 ms) included."""
    times: list[float] = []
    for text in ("layers.3", "kind:all_gather axis:tp", "op:dot > kind:reduce_scatter", "qkv -layers.1"):
        page.get_by_test_id("search").fill("")
        page.get_by_test_id("search-hits").wait_for(state="hidden")
        box, count = page.get_by_test_id("search"), page.get_by_test_id("search-count")
        times.append(timed(lambda box=box, count=count, text=text: (box.fill(text), count.wait_for())))
    page.get_by_test_id("search").fill("")
    return times


def against(times: list[float], budget_ms: float) -> str:
    """Whether the median keeps a budget."""
    if not times:
        return "      never asked"
    return f"budget {budget_ms:.0f} ms: {'kept' if statistics.median(times) <= budget_ms else 'MISSED'}"


def memory_mb(pid: int) -> float:
    """Resident memory of a process, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def middle(times: list[float]) -> str:
    return f"{statistics.median(times):6.0f} ms (max {max(times):5.0f})" if times else "     – "


def measure(browser: Browser, path: Path, rounds: int, bare_ms: float) -> None:
    start = time.perf_counter()
    explorer = start_explorer([str(path)])
    try:
        page = fresh(browser)
        page.goto(f"{explorer.url}?v=overview")
        page.get_by_test_id("fact-tasks").wait_for(timeout=READ_S * 1000)
        read_s = time.perf_counter() - start
        page.context.close()
        overview: list[float] = []
        graph: list[float] = []
        for _ in range(rounds):
            for view, into in (("overview", overview), ("graph", graph)):
                took, page = open_explorer(browser, explorer.url, view)
                into.append(took)
                page.context.close()
        _, page = open_explorer(browser, explorer.url, "graph")
        tasks = page.get_by_test_id("program-counts").text_content()
        notice = page.get_by_test_id("notice").locator(".strong")
        said = notice.text_content() if notice.count() else ""
        clicks, keys, found = select_by_click(page), select_by_key(page), search(page)
        zooms = zoom(page) if page.get_by_test_id("graph-unfold").count() else []
        near = select_by_key(page)
        page.context.close()
        picture = statistics.median(graph)
        print(f"\n{path.name}: {tasks}{f' ({said})' if said else ''}")
        print(f"  read, judged, laid out {read_s:6.1f} s, then {memory_mb(explorer.process.pid):.0f} MB")
        print(
            f"  overview stands        {middle(overview)}   ×{statistics.median(overview) / bare_ms:.2f} of a bare figure"
        )
        print(f"  first picture          {middle(graph)}   ×{picture / bare_ms:.2f}   {against(graph, PICTURE_MS)}")
        print(f"  zoom → drawn           {middle(zooms)}   {against(zooms, ANSWER_MS)}")
        print(f"  click → inspector      {middle(clicks)}   {against(clicks, ANSWER_MS)}")
        print(f"  key → inspector, ring  {middle(keys)}   {against(keys, ANSWER_MS)}")
        print(f"  the same, unfolded     {middle(near)}   {against(near, ANSWER_MS)}")
        print(f"  search → hits          {middle(found)}   {against(found, 300.0)}")
    finally:
        explorer.stop()


def made(folder: str, tasks: int) -> Path:
    """A file with about so many tasks: layers of ten, in up to sixteen microbatches."""
    microbatches = 16 if tasks >= 10_000 else 4
    path = Path(folder) / f"layers_{tasks}.json"
    path.write_text(layered(max(1, tasks // (10 * microbatches)), microbatches).to_json(), encoding="utf-8")
    return path


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
    parser.add_argument(
        "--sizes", default="1000,10000,100000", help="tasks of the programs to make where no FILE is named"
    )
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with sync_playwright() as playwright:
        executable = require_chromium(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=executable, args=launch_args())
        with bare_server() as address:
            open_bare(browser, address)
            bare = [open_bare(browser, address) for _ in range(options.rounds)]
        print(f"bare figure              {middle(bare)}")
        with tempfile.TemporaryDirectory() as folder:
            for path in options.files or (made(folder, int(size)) for size in options.sizes.split(",")):
                measure(browser, path, options.rounds, statistics.median(bare))
        sessions(browser, options.sessions)
        browser.close()


if __name__ == "__main__":
    main()
