"""Parts of an address as text and back: a place of the graph, what is folded there, the choices of the filters.

>>> place_text((("region", 3), ("block", 120)))
'r3.b120'
>>> parse_place("r3.b120")
(('region', 3), ('block', 120))
"""

from __future__ import annotations

import re

from dtir_app.filters import Filters
from dtir_app.items import Folding
from dtir_app.kinds import KINDS, Family
from dtir_app.query_text import Condition, parse
from dtir_app.repeats import repeats
from dtir_app.scenes import Place, scope_of
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import parse_bytes

PLACE = re.compile(r"0|[rb]\d{1,9}(?:\.[rb]\d{1,9}){0,39}")
_FOLDING = re.compile(r"([l-])([r-])((?:\.u\d{1,3}|\.s\d{1,3}:\d{1,9})*)")
_WORDS = {"r": "region", "b": "block"}


def place_text(place: Place) -> str:
    """A place as text; ``0`` for the program's own list."""
    return ".".join(f"{what[0]}{number}" for what, number in place) or "0"


def parse_place(text: str) -> Place:
    """The place that a text of `PLACE` names."""
    return () if text == "0" else tuple((_WORDS[part[0]], int(part[1:])) for part in text.split("."))


def folding_text(store: Store, place: Place, folding: Folding) -> str:
    """What is folded as text: ``lr.u0.s1:41`` is local work and repeats, all of family 0, instance 41 of family 1."""
    families = [family.key for family in repeats(store, scope_of(place)).families]
    made = f"{'l' if folding.local else '-'}{'r' if folding.repeats else '-'}"
    made += "".join(f".u{at}" for at, key in enumerate(families) if key in folding.unfolded)
    shown = dict(folding.shown)
    return made + "".join(f".s{at}:{shown[key]}" for at, key in enumerate(families) if key in shown)


def parse_folding(store: Store, place: Place, text: str) -> Folding | None:
    """The folding that a text names; None where it is none. Families that the program does not have are left out."""
    match = _FOLDING.fullmatch(text)
    if match is None:
        return None
    families = [family.key for family in repeats(store, scope_of(place)).families]
    unfolded: set[str] = set()
    shown: dict[str, int] = {}
    for part in match.group(3).split(".")[1:]:
        at, _, number = part[1:].partition(":")
        if int(at) < len(families):
            if number:
                shown[families[int(at)]] = int(number)
            else:
                unfolded.add(families[int(at)])
    return Folding(match.group(1) == "l", match.group(2) == "r", frozenset(unfolded), tuple(sorted(shown.items())))


def chosen_text(filters: Filters) -> str:
    """The choices of the filters as a search: ``kind:all_reduce axis:tp bytes>=65536``."""
    families = sorted(Family(number).name.lower() for number in filters.families)
    groups = (
        ("in", families),
        ("kind", sorted(filters.kinds)),
        ("axis", sorted(filters.axes)),
        ("severity", sorted(filters.severities)),
    )
    said = [f"{key}:{','.join(names)}" for key, names in groups if names]
    return " ".join([*said, *([f"bytes>={filters.min_bytes:.0f}"] if filters.min_bytes > 0 else [])])


def parse_chosen(text: str, kept: str = "") -> Filters:
    """The filters that a text of `chosen_text` names, with a search besides; what is not understood is left out."""
    chosen: dict[str, frozenset[str]] = {}
    least = 0.0
    for term in parse(text).terms:
        if isinstance(term, Condition):
            if term.key == "bytes":
                least = parse_bytes(term.value) or 0.0
            chosen[term.key] = frozenset(term.value.split(","))
    families = {family.name.lower(): int(family) for family in Family}
    return Filters(
        families=frozenset(families[name] for name in chosen.get("in", ()) if name in families),
        kinds=chosen.get("kind", frozenset()) & {kind.name for kind in KINDS},
        axes=chosen.get("axis", frozenset()),
        severities=chosen.get("severity", frozenset()) & set(SEVERITIES),
        min_bytes=least,
        text=kept,
    )
