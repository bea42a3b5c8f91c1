"""The watch over a page is itself tested to fail: a page that misbehaves must be seen."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.helpers.browser import PageWatch, poll

QUIET = "<!doctype html><link rel='icon' href='data:,'><title>quiet</title>"


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Serve one page on 127.0.0.1 and give its address."""
    handler = partial(_Silent, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()

        def put(html: str) -> str:
            (tmp_path / "index.html").write_text(html)
            return f"http://127.0.0.1:{running.server_address[1]}/index.html"

        yield put
        running.shutdown()


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("console.error('broken')", "console error: broken"),
        ("setTimeout(() => { throw new Error('loose') })", "uncaught: loose"),
        ("fetch('http://192.0.2.1/x.js').catch(() => 0)", "foreign request: http://192.0.2.1/x.js"),
        (
            "new Image().src = 'https://example.invalid/font.woff2'",
            "foreign request: https://example.invalid/font.woff2",
        ),
        ("new WebSocket('ws://192.0.2.1/ws')", "foreign websocket: ws://192.0.2.1/ws"),
        (
            "fetch('http://127.0.0.1.example.invalid/').catch(() => 0)",
            "foreign request: http://127.0.0.1.example.invalid/",
        ),
    ],
)
def test_a_page_that_misbehaves_is_seen(browser: Browser, serve: Callable[[str], str], script: str, seen: str) -> None:
    watch = PageWatch()
    context = browser.new_context()
    watch.attach(context)
    page = context.new_page()
    page.goto(serve(f"{QUIET}<script>{script}</script>"))
    poll(page, lambda: any(item.startswith(seen) for item in watch.problems))
    watch.allow(".")
    assert watch.problems == []
    context.close()


def test_a_quiet_page_has_no_problems(page: Page, page_watch: PageWatch, serve: Callable[[str], str]) -> None:
    page.goto(serve(QUIET))
    assert page.title() == "quiet"
    assert page_watch.problems == []


def test_a_condition_that_never_holds_ends_with_an_error(page: Page) -> None:
    with pytest.raises(TimeoutError, match="within 60 ms"):
        poll(page, lambda: False, timeout_ms=60)
