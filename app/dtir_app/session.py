"""One session: state, page and what connects them. The only place that watches the state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import panel as pn
import param
from bokeh.document import Document
from tornado.ioloop import IOLoop

from dtir_app.actions import Context, graphing, handle
from dtir_app.actions.keys import KEYS_HELP
from dtir_app.addresses import Addresses
from dtir_app.components import Message
from dtir_app.frames.communication import sentence
from dtir_app.library import DroppedTraces, Library, weight_bytes
from dtir_app.locked import Pen
from dtir_app.memory import trim_soon
from dtir_app.panels import sides
from dtir_app.panels.base import Closing
from dtir_app.profiles import looks_like_profile
from dtir_app.query_text import KEYS, SIGNS_HELP
from dtir_app.refresh import ALWAYS, VIEWS, WATCHED, Painter
from dtir_app.runs import looks_like_record
from dtir_app.selection import Selection, selection_text
from dtir_app.shell import Parts, Stands, make_page, make_parts
from dtir_app.state import QUIET, Notice, State
from dtir_app.store import Opened
from dtir_app.text import bytes_text, count_text, plural

NOTICE_LINES = 8
ARRANGED = frozenset(
    (
        *("folded", "window", "table", "sort", "descending", "mesh_axes", "mesh_columns", "mesh_at"),
        *("tensor_values", "tensor_dims", "tensor_at"),
    )
)
"""Fields that an address says too, and that are no step to go back by."""
LARGE = 250_000
"""Tasks from which on it is said what opening a program means."""

_LOG = logging.getLogger(__name__)


class Session:
    """One open page.

    Args:
        library: the programs of the server.
        document: the page's Bokeh document; None where there is no browser.
        post: runs a function in the server's event loop, from any thread.
        query: the address from the question mark on.
        dark: the theme to begin with.
    """

    def __init__(
        self,
        library: Library,
        *,
        document: Document | None = None,
        post: Callable[[Callable[[], object]], object] | None = None,
        query: str = "",
        dark: bool = False,
    ) -> None:
        self._library = library
        self._traces = DroppedTraces(library.upload_bytes)
        self._document = document
        self._post = post
        self.state = State(dark=dark)
        self._parts = make_parts(dark, library.upload_bytes)
        self._stands: Stands | None = None
        self._pen = Pen(document)
        self._painter = Painter(self.state, self._parts, self._pen, library, self._later_than)
        self._context = Context(self.state, self._painter, self.open_program, self._parts.bridge.send)
        self._stale: set[str] = set(VIEWS)
        self._closed = False
        self._wanted: object = None
        self._ready = False
        self._waiting: list[Callable[[], None]] = []
        self.addresses = Addresses(
            self.state, library, self.open_program, self._context.select, self._parts.bridge.send
        )
        self._connect()
        self.addresses.start(query)
        self._watcher = self.state.param.watch(self._changed, WATCHED)  # drawing may change something, too
        self._draw(set(WATCHED))
        self._pen.start()

    @property
    def parts(self) -> Parts:
        """What is on the page; for those who draw it elsewhere."""
        return self._parts

    @property
    def painter(self) -> Painter:
        """What draws the parts."""
        return self._painter

    @property
    def pen(self) -> Pen:
        """What raw Bokeh models are written through."""
        return self._pen

    def select(self, selection: Selection) -> None:
        """Select everywhere at once, as a click does."""
        self._context.select(selection)

    @property
    def page(self) -> pn.Template:
        """The page to serve."""
        self._stands = Stands(self._parts)
        self._stands.fill(self.state.view)
        return make_page(self._parts, self._stands)

    # -- from state to page --------------------------------------------------------------------------------------------

    def _changed(self, *events: param.parameterized.Event) -> None:
        names = {event.name for event in events if event.old is not event.new}
        if not names:
            return
        self._draw(names)
        if self._ready and names & {"opened", "view", "selection", "filters", "place", "options"}:
            self.addresses.write()
        elif self._ready and names & ARRANGED:
            self.addresses.write(replace=True)
        if "selection" in names or "opened" in names:
            self._announce()

    def _draw(self, names: set[str]) -> None:
        for fields, draw in ALWAYS.values():
            if fields & names:
                draw(self._painter)
        for view, (fields, draw) in VIEWS.items():
            if fields & names:
                self._stale.add(view)
            if view == self.state.view and view in self._stale:
                self._stale.discard(view)
                if self._stands is not None:
                    self._pen.write(f"stand-{view}", partial(self._stands.fill, view))
                draw(self._painter)

    def _announce(self) -> None:
        store, selection = self.state.store, self.state.selection
        if store is None or not self._ready:
            return
        if selection.task >= 0:
            text = f"Selected {store.tasks.name[selection.task]}. {sentence(store, selection.task)}"
        elif selection.value >= 0:
            values, index = store.values, selection.value
            text = f"Selected tensor {values.name[index]}, {values.shape[index]}, {values.layout[index]}"
        else:
            text = f"{store.name} is open, nothing is selected."
        self._parts.bridge.send("announce", text=text)

    # -- from page to state --------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        for element in self._parts.elements.values():
            element.listen(self._heard)
        graph = self._parts.graph
        graph.on_tap(partial(graphing.tapped, self._context), partial(graphing.opened_at, self._context))
        graph.on_move(partial(graphing.moved, self._context))
        graph.on_peek(partial(graphing.peeked, self._context))
        self._parts.upload.param.watch(self._dropped, "value")

    def _heard(self, kind: str, message: Message) -> None:
        if self._closed:
            return
        match kind:
            case "ready":
                self._on_ready(message)
            case "address":
                self.addresses.follow(str(message.get("search", "")))
            case _:
                handle(self._context, kind, message)

    def _on_ready(self, message: Message) -> None:
        """The page is drawn: tell it what it needs to know, and take its theme where a cookie did not say it."""
        self._ready = True
        self._parts.bridge.send(
            "help",
            keys=[list(item) for item in KEYS_HELP],
            grammar=[list(item) for item in (*KEYS.items(), *SIGNS_HELP)],
        )
        if bool(message.get("dark")) != self.state.dark:
            self.state.dark = bool(message.get("dark"))
        self._tell_title()
        self.addresses.write(replace=True)
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            self._next_tick(then)

    def _tell_title(self) -> None:
        if self.state.store is not None and self._ready:
            self._parts.bridge.send("title", text=f"{self.state.store.name} – dtir explorer")

    # -- opening -------------------------------------------------------------------------------------------------------

    def open_program(self, key: str, then: Callable[[], None] | None = None) -> None:
        """Open a program of the library, now when it was read before, else when it is read."""
        entry = self._library.entry(key)
        if entry is None:
            self.state.notice = Notice("warning", "That program is no longer open on this server.")
            return
        self._wait(self._library.open(key), entry.title, key, then)

    def _wait(self, future: Future[Opened], label: str, key: str, then: Callable[[], None] | None = None) -> None:
        self._wanted = future
        if future.done():
            self._take(future, key, then)
            return
        self.state.busy = f"Reading {label} …"
        future.add_done_callback(partial(self._later, key, then))

    def _later_than(self, work: Future[Any], then: Callable[[], None]) -> None:
        """Do something in the event loop when work of another thread is done."""
        if self._post is None:
            work.exception()  # where nobody waits for a browser, the work is waited for
            then()
            return
        post = self._post
        work.add_done_callback(lambda _: post(partial(self._next_tick, then)))

    def _next_tick(self, then: Callable[[], None]) -> None:
        """Under the document's lock, and not before the page listens: what elements are told while it is being drawn gets lost."""
        if not self._ready:
            self._waiting.append(then)
        elif self._document is not None and not self._closed:
            self._document.add_next_tick_callback(lambda: None if self._closed else then())

    def _later(self, key: str, then: Callable[[], None] | None, future: Future[Opened]) -> None:
        """From the worker's thread: the rest is done in the event loop.

        The document is not touched here: a callback that another thread adds while the session is being made can get lost.
        """
        if self._post is not None:
            self._post(partial(self._take_next, future, key, then))

    def _take_next(self, future: Future[Opened], key: str, then: Callable[[], None] | None) -> None:
        if self._document is not None and not self._closed:
            self._document.add_next_tick_callback(partial(self._take, future, key, then))

    def _take(self, future: Future[Opened], key: str, then: Callable[[], None] | None) -> None:
        if self._closed or future is not self._wanted:
            return  # a later choice overtook this one
        fault = future.exception()
        if fault is not None:
            _LOG.error("opening a program failed", exc_info=fault)
            text = f"The explorer itself failed on this input ({type(fault).__name__}: {fault}). Please report it."
            self.state.param.update(busy="", notice=Notice("error", text))
            return
        opened = future.result()
        if opened.store is None:
            self.state.param.update(
                busy="", notice=refusal(opened), gallery=self.state.gallery or self.state.store is None
            )
            return
        notice = remarks(opened) if key.startswith("upload") or key == "" else large(opened)
        digest_key = key or self._library.key_of(opened.digest)
        self.state.param.update(**self.state.program_fields(opened, digest_key), notice=notice)
        sides.opened(self._painter.desk)
        if len(opened.store.tasks) < LARGE:
            self._painter.warm_up(
                opened.store
            )  # before the first click, which would have to share the processor with it
        self._tell_title()
        if then is not None:
            then()

    def _dropped(self, event: param.parameterized.Event) -> None:
        """Files were dropped: read them off the event loop. They come one after the other, also when dropped together."""
        files: dict[str, Any] = event.new or {}
        if self._closed or not files:
            return
        self._parts.upload.value = {}
        for name, data in files.items():
            self._read(name, data.encode("utf-8") if isinstance(data, str) else bytes(data))

    def _read(self, name: str, content: bytes) -> None:
        if len(content) > self._library.upload_bytes:  # the browser checks this too, and is not to be trusted
            limit = bytes_text(self._library.upload_bytes)
            self.state.notice = Notice("error", f"{name} is larger than {limit}, the most that may be dropped.")
            return
        if looks_like_record(content):
            sides.dropped(self._painter.desk, name, content)
        elif looks_like_profile(content):
            sides.dropped_profile(self._painter.desk, name, content)
        else:
            self._traces.take(name, content)
            self._wait(self._library.upload(name, content, self._traces.beside(name)), name, "")

    def close(self) -> None:
        """The browser is gone: let go of everything."""
        self._closed = True
        for panel in self._parts.panels.values():
            if isinstance(panel, Closing):
                panel.close()
        self._pen.close()
        self.state.param.unwatch(self._watcher)
        self._document = None

    def current_key(self) -> str:
        """The text of the selection."""
        return selection_text(self.state.store, self.state.selection) if self.state.store else ""


def refusal(opened: Opened) -> Notice:
    """Why an input could not be opened."""
    lines = tuple((item.code, item.message, item.hint) for item in opened.findings[:NOTICE_LINES])
    hidden = len(opened.findings) - len(lines)
    return Notice(
        "error", f"{opened.label} could not be opened.", lines, f"… {plural(hidden, 'more finding')}" if hidden else ""
    )


def large(opened: Opened) -> Notice:
    """What opening a very large program means; nothing is said of others."""
    count = len(opened.store.tasks) if opened.store is not None else 0
    if count < LARGE:
        return QUIET
    text = f"{opened.label} has {count_text(count)} tasks and takes about {bytes_text(weight_bytes(opened))} of this server's memory."
    lines = (
        ("graph", "What repeats is drawn once; unfolded, it is drawn as densities until you zoom in.", ""),
        (
            "facts",
            "Reasons, inferred layouts and planned times are derived when they are first asked for, which takes a while.",
            "",
        ),
    )
    return Notice("info", text, lines)


def remarks(opened: Opened) -> Notice:
    """What was found in an upload that could be opened."""
    errors = [item for item in opened.findings if item.severity == "error"]
    if not errors:
        return large(opened) if large(opened).tone else Notice("info", f"{opened.label} is open.")
    return Notice("warning", f"{opened.label} is open, with {plural(len(errors), 'error')}; see Diagnostics.")


def _query(document: Document | None) -> str:
    """The address of a page from the question mark on. Not by Panel's `Location`, which takes no IPv6 address."""
    context = document.session_context if document is not None else None
    address = urlsplit(str(getattr(getattr(context, "request", None), "uri", "") or ""))
    return f"?{address.query}" if address.query else ""


def create_app(library: Library) -> Callable[[], pn.Template]:
    """What the server calls for every browser that comes: a page with a state of its own."""

    def app() -> pn.Template:
        cookies = pn.state.cookies or {}
        document = pn.state.curdoc
        session = Session(
            library,
            document=document,
            post=IOLoop.current().add_callback,
            query=_query(document),
            dark=cookies.get("dtir_theme") == "dark",
        )
        if document is not None:
            loop = IOLoop.current()

            def ended(context: object) -> None:
                session.close()
                trim_soon(loop.call_later)

            pn.state.on_session_destroyed(ended)
        return session.page

    return app
