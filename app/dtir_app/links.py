"""The address of a view: ``?p=DIGEST&v=graph&s=node:...&q=SEARCH&z=0,12,0,8``. Whatever else stands there is told, never an error.

| key | says |
|---|---|
| `p` | digest of the program, or the beginning of it |
| `v`, `t` | view and table |
| `s` | selected task or tensor |
| `q`, `k` | what is kept: a search, and the choices of the filters written as one |
| `w`, `n`, `z` | of the graph: the place (``r3.b120``), what is folded (`dtir_app.link_parts`) and the part in sight |
| `o` | what is chosen in the view (`dtir_app.option_links`) |
| `d` | digest of the program to compare with |
| `f` | a file of the served folder; read only, never written |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from dtir_app.frames.windows import parse_window
from dtir_app.link_parts import PLACE
from dtir_app.selection import parse_selection
from dtir_app.state import TABLES, VIEWS

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
        other: digest of the program to compare with, or the beginning of it.
        problems: what in it was not understood.
        chosen: the choices of the filters, as a search.
        place, folding, window: of the graph, as text.
        table: one of the tables.
        options: choices of the view, as text.
    """

    digest: str = ""
    view: str = ""
    selection: str = ""
    text: str = ""
    file: str = ""
    problems: tuple[str, ...] = ()
    chosen: str = ""
    place: str = ""
    folding: str = ""
    window: str = ""
    table: str = ""
    other: str = ""
    options: str = ""

    def query(self) -> str:
        """The address from the question mark on.

        >>> Link("ab12", "graph", "", "").query()
        '?p=ab12&v=graph'
        """
        pairs = [("p", self.digest), ("v", self.view), ("s", self.selection), ("q", self.text), ("k", self.chosen)]
        pairs += [("w", self.place), ("n", self.folding), ("z", self.window), ("t", self.table), ("d", self.other)]
        pairs += [("o", self.options)]
        said = [(name, value) for name, value in pairs if value]
        return f"?{urlencode(said, safe=':,')}" if said else ""


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
    place, window, table = said.get("w", "")[:200], said.get("z", "")[:100], said.get("t", "")
    if place and not PLACE.fullmatch(place):
        problems.append(f"w={place[:48]!r} is no place of the graph (r3.b120: region 3, block of task 120)")
        place = ""
    if window and parse_window(window) is None:
        problems.append(f"z={window[:48]!r} is no part of a picture (left,right,top,bottom)")
        window = ""
    if table and table not in TABLES:
        problems.append(f"there is no table {table[:24]!r}; tables are {', '.join(TABLES)}")
        table = ""
    return Link(
        digest,
        view,
        selection,
        said.get("q", "")[:500],
        said.get("f", "")[:500],
        tuple(problems),
        said.get("k", "")[:500],
        place,
        said.get("n", "")[:300],
        window,
        table,
        other=other,
        options=said.get("o", "")[:1000],
    )
