"""The open program beside another one: what differs, and how each difference looks in both."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar, cast

from dtir.diff import Diff, diff_programs
from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.frames.differences import KINDS, ROWS, difference_frame, lines_of
from dtir_app.panels.base import Cell, Desk, Figure, Kind, Row, choice, choose
from dtir_app.selection import find_selection
from dtir_app.state import Notice
from dtir_app.store import Store

if TYPE_CHECKING:
    from dtir_app.actions.context import Context
    from dtir_app.library import Library

NAME = "diff"
KEPT = 4
"""Differences that are kept with a program."""

_LOG = logging.getLogger(__name__)
_POOL = ThreadPoolExecutor(1, thread_name_prefix="dtir-diff")


class DiffView(Element):
    """The list of differences and the pictures of one."""

    _esm: ClassVar[str] = script("picture") + script("diff")


class DiffPanel:
    """The parts of the view."""

    def __init__(self, dark: bool) -> None:
        del dark  # made of elements, which follow the page's theme
        self.element = DiffView()
        self.elements: Mapping[str, Element] = {"diff": self.element}
        self.figures: Mapping[str, Figure] = {}
        self._running: set[object] = set()

    def draw(self, desk: Desk) -> None:
        """The choice of the other program, and what differs once it is read and compared."""
        store, state = desk.store, desk.state
        if store is None:
            self.element.show({"message": "No program is open."})
            return
        key = str(choice(state, NAME, "with", ""))
        offered = {"programs": _programs(desk.library, state.program_key), "with": key}
        if not key or desk.library.entry(key) is None:
            self.element.show(offered | {"message": "Choose the program to compare this one with."})
            return
        other = desk.library.open(key)
        if not other.done():
            self.element.show(offered | {"busy": "Reading the other program …"})
            self._once(desk, ("open", key), other)
            return
        second = other.result().store if other.exception() is None else None
        if second is None:
            self.element.show(offered | {"message": "The other program could not be read."})
            return
        if choice(state, NAME, "digest", "") != second.digest:
            choose(state, NAME, digest=second.digest)  # the address names it; this draws once more
        found = store.memo.get((NAME, second.digest))
        if found is None:
            self.element.show(offered | {"busy": "Comparing …"})
            self._once(desk, ("diff", store.digest, second.digest), _POOL.submit(_compare, store, second))
            return
        diff = cast("Diff", found)
        lines = store.memo.made((f"{NAME} lines", second.digest), lambda: lines_of(diff))
        kind, row = str(choice(state, NAME, "kind", "all")), int(choice(state, NAME, "row", -1))
        most = int(choice(state, NAME, "most", ROWS))
        self.element.show(offered | difference_frame(store, second, diff, lines, kind, row, most))

    def _once(self, desk: Desk, what: object, work: Future[object]) -> None:
        """Draw again when some work is done; it is waited for once."""
        if what in self._running:
            return
        self._running.add(what)

        def done() -> None:
            self._running.discard(what)
            fault = work.exception()
            if fault is not None:
                _LOG.error("comparing two programs failed", exc_info=fault)
                text = f"The explorer itself failed to compare ({type(fault).__name__}: {fault}). Please report it."
                desk.state.notice = Notice("error", text)
            else:
                self.draw(desk)

        desk.later(work, done)


def _compare(first: Store, second: Store) -> None:
    first.memo[NAME, second.digest] = diff_programs(first.program, second.program)
    first.memo.forget_oldest(NAME, KEPT)


def _programs(library: Library, own: str) -> list[dict[str, str]]:
    """What the other program may be."""
    return [
        {"key": entry.key, "name": entry.title or entry.name, "kind": entry.kind}
        for kind in ("file", "upload", "folder", "gallery")
        for entry in library.entries(kind)
        if entry.key != own
    ]


def _with(context: Context, message: Message) -> None:
    """Compare with another program."""
    choose(
        context.state,
        NAME,
        **{"with": str(message.get("key", ""))[:500], "digest": "", "row": -1, "kind": "all", "most": ROWS},
    )


def _kind(context: Context, message: Message) -> None:
    """Narrow the list."""
    name = str(message.get("name", ""))
    if name in KINDS:
        choose(context.state, NAME, kind=name, row=-1)


def _more(context: Context, message: Message) -> None:
    """Show more of the list."""
    choose(context.state, NAME, most=int(choice(context.state, NAME, "most", ROWS)) + ROWS)


def _row(context: Context, message: Message) -> None:
    """A line of the list: its pictures, and the selection where the open program has it."""
    row = message.get("row")
    if isinstance(row, bool) or not isinstance(row, int):
        return
    choose(context.state, NAME, row=row)
    found = find_selection(context.store, str(message.get("key", "")))
    if found:
        context.select(found)


def _swap(context: Context, message: Message) -> None:
    """Open the other program, compared with this one; with what is chosen there selected."""
    state = context.state
    other, own = str(choice(state, NAME, "with", "")), state.program_key
    key, view = str(message.get("key", "")), "graph" if message.get("key") else NAME

    def opened() -> None:
        choose(state, NAME, **{"with": own})
        found = find_selection(context.store, key) if key else None
        if found:
            context.select(found, camera="go", view=view)

    if other:
        context.open_program(other, opened)  # type: ignore[call-arg]


KIND = Kind(
    name=NAME,
    label="Diff",
    help="what differs between this program and another one",
    fields=frozenset({"opened", "options"}),
    make=DiffPanel,
    rows=(Row((Cell("diff", grows=True),)),),
    actions={"diff-with": _with, "diff-kind": _kind, "diff-row": _row, "diff-more": _more, "diff-swap": _swap},
)
