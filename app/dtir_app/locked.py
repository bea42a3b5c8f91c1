"""Writing raw Bokeh models only while the document is locked.

Panel dispatches messages of components without the document's lock. A raw Bokeh model that is written there now and then fails
with "_pending_writes should be non-None", and the change is lost for good. So every such write is put off to the next tick, which holds
the lock. Writes of one figure that wait for the same tick are one: the last.
"""

from __future__ import annotations

from collections.abc import Callable

from bokeh.document import Document


def _nothing() -> None:
    """A browser is told by itself."""


class Pen:
    """Puts off writes of one document."""

    def __init__(self, document: Document | None) -> None:
        self._document = document
        self.written: Callable[[], None] = _nothing
        """Called after what is written at once: a notebook has to be told (`panel.io.push_notebook`)."""
        self._waiting: dict[str, Callable[[], None]] = {}
        self._scheduled = False
        self._direct = True
        self._closed = False

    def start(self) -> None:
        """From now on put writes off; before the page is built they are done at once."""
        self._direct = self._document is None

    def write(self, what: str, action: Callable[[], None]) -> None:
        """Do `action` under the lock; another one for the same `what` that waits is dropped."""
        if self._closed:
            return
        if self._direct or self._document is None:
            action()
            self.written()
            return
        self._waiting.pop(what, None)
        self._waiting[what] = action
        if not self._scheduled:
            self._scheduled = True
            self._document.add_next_tick_callback(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        waiting, self._waiting = self._waiting, {}
        for action in waiting.values():
            action()

    def close(self) -> None:
        """Forget what waits; the session is over."""
        self._waiting.clear()
        self._document = None
        self._closed = True
