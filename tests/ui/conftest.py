"""Fixtures of the browser tests: a Chromium, the real server, and a page that is watched.

```python
def test_overview_names_the_program(page, server):
    page.goto(server("program.json").url)
    wait_idle(page)
    expect(page.get_by_test_id("program-name")).to_have_text("mlp")
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.helpers.browser import TIMEOUT_MS, PageWatch
from tests.helpers.chromium import NoBrowser, launch_args, require_chromium
from tests.helpers.explorer import Explorer, start_explorer
from tests.helpers.shared import ROOT

CI = os.environ.get("CI") == "true"
ARTIFACTS = ROOT / "test-artifacts"
VIEWPORT = {"width": 1440, "height": 900}

_failed = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.ui)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    if report.when == "call":
        item.stash[_failed] = report.failed
    return report


# Package scope: Playwright's synchronous interface keeps an event loop running in this thread, and tests of other folders
# want to start their own.
@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A headless Chromium; without one the tests skip and say why, and fail where CI=true."""
    try:
        executable = require_chromium(playwright.chromium.executable_path)
    except NoBrowser as reason:
        if CI:
            pytest.fail(str(reason), pytrace=False)
        pytest.skip(str(reason))
    running = playwright.chromium.launch(executable_path=executable, args=launch_args())
    yield running
    running.close()


@pytest.fixture
def page_watch() -> PageWatch:
    """What the page of this test did wrong; `page_watch.allow(pattern)` for what a test provokes on purpose."""
    return PageWatch()


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Browser, page_watch: PageWatch) -> Iterator[Page]:
    """A fresh page that reaches 127.0.0.1 alone; the test fails on any console error, exception or foreign request."""
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce", locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(TIMEOUT_MS)
    page_watch.attach(context)
    if CI:
        context.tracing.start(snapshots=True, screenshots=False)
    opened = context.new_page()
    yield opened
    failed = request.node.stash.get(_failed, False) or bool(page_watch.problems)
    if failed:
        ARTIFACTS.mkdir(exist_ok=True)
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in request.node.name)[:100]
        opened.screenshot(path=ARTIFACTS / f"{stem}.png")
        if CI:
            context.tracing.stop(path=ARTIFACTS / f"{stem}.zip")
    context.close()
    assert not page_watch.problems, "the page misbehaved:\n" + "\n".join(page_watch.problems)


@pytest.fixture(scope="package")
def server() -> Iterator[Callable[..., Explorer]]:
    """`server(*files, args=(), fresh=False)` gives a running `dtir explore`.

    Servers are kept for the tests of this folder: one with the same arguments is used again unless `fresh` is asked for.
    """
    kept: dict[tuple[str, ...], Explorer] = {}
    started: list[Explorer] = []

    def get(
        *files: object, args: tuple[str, ...] = (), fresh: bool = False, env: dict[str, str] | None = None
    ) -> Explorer:
        key = (*args, *map(str, files))
        if not fresh and not env and key in kept and kept[key].alive:
            return kept[key]
        explorer = start_explorer(key, env=env)
        started.append(explorer)
        if not fresh and not env:
            kept[key] = explorer
        return explorer

    yield get
    for explorer in started:
        explorer.stop()
