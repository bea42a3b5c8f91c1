"""Talking to a page that shows Bokeh figures: wait for conditions, read sources, find pixels; and watch what it does.

Canvas content has no elements. A figure is found by its `name` among the models of all documents of the page (in a
notebook every output is a document of its own), and its scales turn data coordinates into page pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

TIMEOUT_MS = 30_000

_MODEL = """
const model = (name) => {
  for (const document of Bokeh.documents)
    for (const found of document._all_models.values())
      if (found.name === name) return found;
  throw new Error(`no Bokeh model is named ${name}`);
};
const view = (name) => {
  const found = Bokeh.index.find_one(model(name));
  if (!found) throw new Error(`${name} is not drawn`);
  return found;
};
"""


class Page(Protocol):
    """The part of Playwright's `Page` that is used here."""

    @property
    def mouse(self) -> Any: ...
    def evaluate(self, expression: str, arg: Any = None) -> Any: ...
    def wait_for_function(self, expression: str, *, arg: Any = None, timeout: float | None = None) -> Any: ...


def wait_until(page: Page, expression: str, arg: object = None, *, timeout_ms: float = TIMEOUT_MS) -> None:
    """Wait until a JavaScript expression or function of `arg` is true; `model(name)` and `view(name)` may be used in it.

    A model that is not there yet counts as false.
    """
    body = f"""(arg) => {{ {_MODEL}
      try {{ const f = ({expression}); return typeof f === 'function' ? f(arg) : f; }} catch {{ return false; }} }}"""
    page.wait_for_function(body, arg=arg, timeout=timeout_ms)


def wait_idle(page: Page, *, timeout_ms: float = TIMEOUT_MS) -> None:
    """Wait until Bokeh has drawn every document. Too early for React content alone: add a condition on what you need."""
    wait_until(page, "Bokeh.documents.length > 0 && Bokeh.documents.every((d) => d.is_idle)", timeout_ms=timeout_ms)


def column(page: Page, source: str, name: str) -> list[Any]:
    """A column of the column data source called `source`, as the browser has it."""
    return page.evaluate(
        f"([source, name]) => {{ {_MODEL} const data = model(source).data; return Array.from(data.get ? data.get(name) : data[name]); }}",
        [source, name],
    )


def evaluate(page: Page, expression: str, arg: object = None) -> Any:
    """What a JavaScript function of `arg` gives at one moment; `model(name)` and `view(name)` may be used in it."""
    return page.evaluate(f"(arg) => {{ {_MODEL} return ({expression})(arg); }}", arg)


def ranges(page: Page, figure: str) -> tuple[float, float, float, float]:
    """(x start, x end, y start, y end) of a figure."""
    start_end = page.evaluate(
        f"(name) => {{ {_MODEL} const f = model(name); return [f.x_range.start, f.x_range.end, f.y_range.start, f.y_range.end]; }}",
        figure,
    )
    return tuple(start_end)


def bokeh_px(page: Page, figure: str, x: object, y: object) -> tuple[float, float]:
    """Page pixels of a point in a figure's data coordinates (numbers, or factors of a categorical axis)."""
    left_top = page.evaluate(
        f"""([name, x, y]) => {{ {_MODEL}
          const shown = view(name), box = shown.canvas_view.el.getBoundingClientRect();
          return [box.x + shown.frame.x_scale.compute(x), box.y + shown.frame.y_scale.compute(y)]; }}""",
        [figure, x, y],
    )
    return (float(left_top[0]), float(left_top[1]))


def click_at(page: Page, figure: str, x: object, y: object) -> None:
    """Click the mouse on a point in a figure's data coordinates."""
    wait_idle(page)
    page.mouse.click(*bokeh_px(page, figure, x, y))


LOCAL = re.compile(r"^(?:https?|wss?)://127\.0\.0\.1(?::\d+)?(?:/|$)|^(?:data|blob|about|file):")


@dataclass
class PageWatch:
    """Everything a page did that it must not do: foreign requests (aborted), console errors, uncaught exceptions.

    Use `allow` in a test that provokes an error on purpose; `problems` is what a test fails for.
    """

    seen: list[str] = field(default_factory=list)
    _allowed: list[re.Pattern[str]] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """Do not count what matches."""
        self._allowed.append(re.compile(pattern))

    @property
    def problems(self) -> list[str]:
        return [item for item in self.seen if not any(pattern.search(item) for pattern in self._allowed)]

    def attach(self, context: Any) -> None:
        """Watch every page of a Playwright browser context, also those that open later."""
        context.route(lambda url: not LOCAL.match(url), self._abort)
        context.route_web_socket(re.compile(r"^wss?://(?!127\.0\.0\.1[:/])"), self._refuse_socket)
        context.on("console", self._console)
        context.on("weberror", lambda failure: self.seen.append(f"uncaught: {failure.error}"))

    def _abort(self, route: Any) -> None:
        self.seen.append(f"foreign request: {route.request.url}")
        route.abort()

    def _refuse_socket(self, socket: Any) -> None:
        self.seen.append(f"foreign websocket: {socket.url}")
        socket.close()

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.seen.append(f"console error: {message.text} ({message.location.get('url', '')})")


def poll(page: Any, condition: Callable[[], object], *, timeout_ms: float = TIMEOUT_MS, step_ms: float = 20) -> None:
    """Wait until a Python condition holds, letting the page work in between.

    Raises:
        TimeoutError: it does not hold in time.
    """
    waited = 0.0
    while not condition():
        if waited >= timeout_ms:
            raise TimeoutError(f"the condition did not hold within {timeout_ms:.0f} ms")
        page.wait_for_timeout(step_ms)
        waited += step_ms
