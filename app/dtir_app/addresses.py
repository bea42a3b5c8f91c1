"""The address bar: opens what a link names, says what it could not, follows the back button, and is kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced

from dtir_app.frames.windows import parse_window
from dtir_app.library import Library
from dtir_app.link_parts import chosen_text, folding_text, parse_chosen, parse_folding, parse_place, place_text
from dtir_app.links import Link, read_link
from dtir_app.option_links import applied, options_text, read_options
from dtir_app.panels.base import choice, choose
from dtir_app.scenes import first_place, valid_place
from dtir_app.selection import NOTHING, Selection, find_selection, selection_text
from dtir_app.state import Notice, State, default_table
from dtir_app.store import Store


class Addresses:
    """The link of one session.

    Args:
        state: what the link speaks of.
        library: where programs are found by digest.
        open_program: opens a program and calls when it is there.
        select: selects something.
        tell: sends a message to the page's bridge.
    """

    def __init__(
        self,
        state: State,
        library: Library,
        open_program: Callable[..., None],
        select: Callable[..., None],
        tell: Callable[..., None],
    ) -> None:
        self._state, self._library = state, library
        self._open, self._select, self._tell = open_program, select, tell
        self._written = ""
        self._last = Link()
        self._waiting: Link | None = None

    def start(self, query: str) -> None:
        """Open what the first address names; without a program in it, the library's first."""
        link = read_link(query)
        key = self._key(link)
        problems = list(link.problems)
        if link.digest and not key:
            problems.append(
                f"the program {link.digest[:12]} is not open on this server: "
                "start the explorer with its file, or drop the file onto the page"
            )
        if link.file and not key:
            problems.append(f"there is no file {link.file!r} in the served folder")
        bare = not link.digest and not link.file and not self._library.entries("file")
        self._go(replaced(link, digest=""), key or self._library.first, problems, gallery=bare and not link.view)

    def follow(self, query: str) -> None:
        """The person went back or forward."""
        link = read_link(query)
        key = self._key(link)
        self._written, self._last = query, replaced(link, problems=())
        if key and key != self._state.program_key:
            self._go(link, key, list(link.problems))
        else:
            self._apply(link, list(link.problems))

    def _key(self, link: Link) -> str:
        if link.file and self._library.entry(f"folder:{link.file}") is not None:
            return f"folder:{link.file}"
        if not link.digest:
            return ""
        exact = self._library.key_of(link.digest)
        return exact or self._library.key_starting(link.digest)

    def _go(self, link: Link, key: str, problems: list[str], gallery: bool = False) -> None:
        if not key:
            self._state.gallery = True
            self._say(problems)
            return
        self._waiting = link
        self._open(key, lambda: self._opened(link, problems, gallery))

    def _opened(self, link: Link, problems: list[str], gallery: bool) -> None:
        self._waiting = None
        self._apply(link, problems)
        if gallery:
            self._state.gallery = True

    def _apply(self, link: Link, problems: list[str]) -> None:
        state, store = self._state, self._state.store
        changes: dict[str, object] = {"filters": parse_chosen(link.chosen, link.text)}
        if link.view or link.selection:
            changes["view"] = link.view or "graph"
        if link.table:
            changes["table"] = link.table
        if link.other:
            self._compare(link.other, problems)
        found: Selection = NOTHING
        if link.selection and store is not None:
            found = find_selection(store, link.selection)
            if not found:
                problems.append(f"{link.selection[:16]}… is not in this program")
        if store is not None:
            changes |= self._place(store, link, problems)
        if not found:
            changes |= {"selection": NOTHING, "finding": -1}
        state.param.update(**changes)
        if found:
            self._select(found, camera="go")
        if store is not None:
            options, unknown = read_options(store, state.view, link.options)
            problems.extend(unknown)
            state.param.update(**applied(state, options))  # selecting something starts some of them anew
        window = parse_window(link.window) if link.window else None
        if window is not None:
            state.param.update(window=window, camera="box")
        self._say(problems)

    def _place(self, store: Store, link: Link, problems: list[str]) -> dict[str, object]:
        """The place of the graph that a link names, and what is folded there; where a program opens when it names none."""
        place = parse_place(link.place) if link.place else first_place(store)
        if not valid_place(store, place):
            problems.append(f"the place {link.place[:24]} is not in this program")
            place = first_place(store)
        changes: dict[str, object] = (
            {} if place == self._state.place else {"place": place, "camera": "fit", "window": None}
        )
        if link.folding:
            folding = parse_folding(store, place, link.folding)
            if folding is None:
                problems.append(f"n={link.folding[:24]!r} says nothing about folding")
            else:
                changes["folded"] = {**self._state.folded, place: folding}
        elif place in self._state.folded:
            changes["folded"] = {at: folding for at, folding in self._state.folded.items() if at != place}
        return changes

    def _compare(self, digest: str, problems: list[str]) -> None:
        """Compare with the program that a link names."""
        key = self._library.key_of(digest) or self._library.key_starting(digest)
        if key:
            choose(self._state, "diff", **{"with": key})
        else:
            problems.append(f"the program {digest[:12]} to compare with is not open on this server")

    def _other(self) -> str:
        """The digest of the program that is compared with, where the diff is in sight and knows it."""
        return str(choice(self._state, "diff", "digest", "")) if self._state.view == "diff" else ""

    def _say(self, problems: list[str]) -> None:
        if problems:
            text = "The link could not be followed in full: " + "; ".join(problems) + "."
            self._state.notice = Notice("warning", text)

    def write(self, *, replace: bool = False) -> None:
        """Put the state into the address; a new entry of the history for another program, view, place or selection."""
        state = self._state
        if state.store is None or self._waiting is not None:
            return
        store = state.store
        graph = state.view == "graph"
        link = Link(
            store.digest,
            state.view,
            selection_text(store, state.selection),
            state.filters.text,
            chosen=chosen_text(state.filters),
            place=place_text(state.place) if graph and state.place != first_place(store) else "",
            folding=folding_text(store, state.place, state.folded[state.place])
            if graph and state.place in state.folded
            else "",
            window=state.window.text if graph and state.window is not None else "",
            table=state.table if state.table != default_table(store) else "",
            other=self._other(),
            options=options_text(state),
        )
        query = link.query()
        if query != self._written:
            # What is chosen within a view is no step that a person would go back by.
            same = replaced(link, options="") == replaced(self._last, options="")
            self._written, self._last = query, link
            self._tell("address", query=query, replace=replace or same)
