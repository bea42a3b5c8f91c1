"""The address of a view: ``?p=DIGEST&v=graph&s=node:...&q=SEARCH``. Whatever else stands there is told, never an error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from dtir_app.selection import parse_selection
from dtir_app.state import VIEWS

_DIGEST = re.compile(r"[0-9a-f]{4,64}")


@dataclass(frozen=True, slots=True)
class Link:
    """What an address asks for; empty where it says nothing.

    Args:
        digest: of the program, or the beginning of it.
        view: one of the views.
        selection: text of a selection.
        text: a search whose hits alone are kept.
        file: name of a file of the served folder; read only, never written.
        problems: what in it was not understood.
        other: digest of the program to compare with, or the beginning of it.
    """

    digest: str = ""
    view: str = ""
    selection: str = ""
    text: str = ""
    file: str = ""
    problems: tuple[str, ...] = ()
    other: str = ""

    def query(self) -> str:
        """The address from the question mark on.

        >>> Link("ab12", "graph", "", "").query()
        '?p=ab12&v=graph'
        """
        pairs = [("p", self.digest), ("v", self.view), ("s", self.selection), ("q", self.text), ("d", self.other)]
        said = [(name, value) for name, value in pairs if value]
        return f"?{urlencode(said, safe=':')}" if said else ""


def read_link(query: str) -> Link:
    """Read the part of an address behind the question mark.

    >>> read_link("?v=nowhere").problems
    ("there is no view 'nowhere'; views are overview, graph, mesh, tensor",)
    """
    said: dict[str, str] = {}
    for name, value in parse_qsl(query.removeprefix("?"), max_num_fields=50):
        said.setdefault(name, value)
    problems: list[str] = []
    digest = said.get("p", "").lower()
    if digest and not _DIGEST.fullmatch(digest):
        problems.append(f"p={digest[:48]!r} is no digest")
        digest = ""
    other = said.get("d", "").lower()
    if other and not _DIGEST.fullmatch(other):
        problems.append(f"d={other[:48]!r} is no digest")
        other = ""
    view = said.get("v", "")
    if view and view not in VIEWS:
        problems.append(f"there is no view {view[:24]!r}; views are {', '.join(VIEWS)}")
        view = ""
    selection = said.get("s", "")
    if selection and parse_selection(selection) is None:
        problems.append(f"s={selection[:48]!r} names no task or tensor (node:… or value:… with 32 hexadecimal digits)")
        selection = ""
    return Link(digest, view, selection, said.get("q", "")[:500], said.get("f", "")[:500], tuple(problems), other=other)
