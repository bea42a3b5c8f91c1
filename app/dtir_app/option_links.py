"""What is chosen in a view as the part ``o`` of an address, and back: ``o=mode:ratio,only:yes``.

| view | options |
|---|---|
| all | `profile` of the planned side; `sort` of the table, with ``-`` in front for descending |
| mesh | `groups`: axes whose groups are shown; `across`: axes along columns; `at`: coordinates of axes shown at one only |
| tensor | `pick`: which operand or result is shown; `dims`: down and across; `at`: blocks of the other dims; all by value number |
| timeline | `window` in seconds; `open`: rows that show their ranks; `page`; `clock`: one or two; `table`: open |
| traffic | `mode`; `only`: the selected task alone; `cell`: from and to |
| memory | `rank`: number of the class of ranks |
| diff | `kind` of differences |

An option that an address does not name is at its default, as on a fresh page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dtir_app.frames.differences import KINDS
from dtir_app.frames.table_columns import TABLES
from dtir_app.frames.traffic import MODES
from dtir_app.state import State
from dtir_app.store import Store

Changes = dict[str, Any]
SIDES = "sides"
_NAME = re.compile(r"[\w.()-]+(?: [\w.()-]+)*")
_ROW = re.compile(r"[\w.-]{1,40}")
_LEAST_S = 1e-12


@dataclass(frozen=True, slots=True)
class Option:
    """One choice.

    Args:
        name: in addresses.
        write: its text in a state; empty at the default.
        read: what a text changes in the state, for an open program; None where the text is not understood.
        default: what an address without it changes.
    """

    name: str
    write: Callable[[State], str]
    read: Callable[[Store, str], Changes | None]
    default: Changes = field(default_factory=dict[str, Any])


def _panel(panel: str, key: str, default: object) -> tuple[Callable[[State], Any], Callable[[object], Changes]]:
    """Reading and changing a choice of a panel; changes of panels are ``{"options": {panel: {key: value}}}``."""

    def read(state: State) -> Any:
        return state.options.get(panel, {}).get(key, default)

    return read, lambda value: {"options": {panel: {key: value}}}


def _flag(name: str, panel: str, key: str, yes: str = "yes") -> Option:
    now, change = _panel(panel, key, False)
    return Option(
        name,
        lambda state: yes if now(state) else "",
        lambda store, text: change(True) if text == yes else None,
        change(False),
    )


def _one_of(name: str, panel: str, key: str, known: Iterable[str], default: str) -> Option:
    now, change = _panel(panel, key, default)
    names = frozenset(known)
    return Option(
        name,
        lambda state: "" if now(state) == default else str(now(state)),
        lambda store, text: change(text) if text in names else None,
        change(default),
    )


def _number(name: str, panel: str, key: str) -> Option:
    now, change = _panel(panel, key, 0)
    return Option(
        name,
        lambda state: str(now(state)) if now(state) else "",
        lambda store, text: change(int(text)) if re.fullmatch(r"\d{1,9}", text) else None,
        change(0),
    )


# -- the mesh --------------------------------------------------------------------------------------------------------------


def _axes_text(names: Iterable[str] | None) -> str:
    if names is None:
        return ""
    return "+".join(sorted(names)) or "none"


def _read_axes(key: str) -> Callable[[Store, str], Changes | None]:
    def read(store: Store, text: str) -> Changes | None:
        names = frozenset() if text == "none" else frozenset(text.split("+"))
        return {key: names} if names <= set(store.mesh.axis_names) else None

    return read


def _read_places(store: Store, text: str) -> Changes | None:
    made: dict[str, int] = {}
    for part in text.split("+"):
        name, _, number = part.partition("=")
        if name not in store.mesh.axis_names or not re.fullmatch(r"\d{1,9}", number):
            return None
        made[name] = min(int(number), store.mesh.axis_size(name) - 1)
    return {"mesh_at": made}


# -- shard maps ------------------------------------------------------------------------------------------------------------


def _numbers(text: str, pattern: str) -> list[tuple[int, ...]] | None:
    """The numbers of parts joined by ``+``; None where a part is not of the pattern."""
    made: list[tuple[int, ...]] = []
    for part in text.split("+"):
        found = re.fullmatch(pattern, part)
        if found is None:
            return None
        made.append(tuple(int(number) for number in found.groups()))
    return made


def _write_picks(state: State) -> str:
    return "+".join(f"{side}={value}" for side, value in sorted(state.tensor_values.items()) if value >= 0)


def _read_picks(store: Store, text: str) -> Changes | None:
    made: dict[str, int] = {}
    for part in text.split("+"):
        found = re.fullmatch(r"(before|after)=(\d{1,9})", part)
        if found is None or int(found[2]) >= len(store.values):
            return None
        made[found[1]] = int(found[2])
    return {"tensor_values": made}


def _read_dims(store: Store, text: str) -> Changes | None:
    found = _numbers(text, r"(\d{1,9})=(-?\d{1,3})x(-?\d{1,3})")
    if found is None or any(value >= len(store.values) for value, _, _ in found):
        return None
    return {"tensor_dims": {value: (down, across) for value, down, across in found}}


def _read_blocks(store: Store, text: str) -> Changes | None:
    found = _numbers(text, r"(\d{1,9})=(\d{1,3})x(\d{1,9})")
    if found is None or any(value >= len(store.values) for value, _, _ in found):
        return None
    made: dict[int, dict[int, int]] = {}
    for value, dim, block in found:
        made.setdefault(value, {})[dim] = block
    return {"tensor_at": made}


# -- timeline and traffic --------------------------------------------------------------------------------------------------


def _write_window(state: State) -> str:
    chosen = state.options.get("timeline", {})
    asked = chosen.get("asked")
    if asked is not None:  # there is no picture yet
        return "" if asked == "whole" else f"{asked[0]:.9g}..{asked[1]:.9g}"
    found = chosen.get("window") if chosen.get("zoomed") else None
    return f"{found[0]:.9g}..{found[1]:.9g}" if found else ""


def _read_window(store: Store, text: str) -> Changes | None:
    try:
        first, last = (float(part) for part in text.split(".."))
    except ValueError:
        return None
    if not (abs(first) < 1e9 and abs(last) < 1e9 and last - first > _LEAST_S):
        return None
    return {"options": {"timeline": {"asked": (first, last)}}}


def _write_rows(state: State) -> str:
    rows = sorted(state.options.get("timeline", {}).get("opened", frozenset()))
    return "+".join(row for row in rows if _ROW.fullmatch(row))


def _read_rows(store: Store, text: str) -> Changes | None:
    rows = text.split("+")[:64]
    known = all(_ROW.fullmatch(row) for row in rows)
    return {"options": {"timeline": {"opened": frozenset(rows)}}} if known else None


def _write_clock(state: State) -> str:
    one = state.options.get("timeline", {}).get("one_clock")
    return "" if one is None else "one" if one else "two"


def _read_clock(store: Store, text: str) -> Changes | None:
    return {"options": {"timeline": {"one_clock": text == "one"}}} if text in ("one", "two") else None


def _write_cell(state: State) -> str:
    cell = state.options.get("traffic", {}).get("cell")
    return f"{cell[0]}-{cell[1]}" if cell else ""


def _read_cell(store: Store, text: str) -> Changes | None:
    found = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text)
    return {"options": {"traffic": {"cell": (int(found[1]), int(found[2]))}}} if found else None


# -- everywhere ------------------------------------------------------------------------------------------------------------


def _write_profile(state: State) -> str:
    name = str(state.options.get(SIDES, {}).get("profile", ""))
    return name if _NAME.fullmatch(name) else ""


def _read_profile(store: Store, text: str) -> Changes | None:
    return {"options": {SIDES: {"profile": text}}} if _NAME.fullmatch(text) else None


def _write_sort(state: State) -> str:
    return f"{'-' if state.descending else ''}{state.sort}" if state.sort else ""


def _read_sort(store: Store, text: str) -> Changes | None:
    column = text.removeprefix("-")
    if column not in {one.key for columns in TABLES.values() for one in columns}:
        return None
    return {"sort": column, "descending": text.startswith("-")}


EVERYWHERE = (
    Option("profile", _write_profile, _read_profile),
    Option("sort", _write_sort, _read_sort, {"sort": "", "descending": False}),
)

OF_VIEW: Mapping[str, tuple[Option, ...]] = {
    "mesh": (
        Option(
            "groups",
            lambda state: _axes_text(state.mesh_axes) if state.mesh_axes else "",
            _read_axes("mesh_axes"),
            {"mesh_axes": frozenset()},
        ),
        Option(
            "across",
            lambda state: _axes_text(state.mesh_columns),
            _read_axes("mesh_columns"),
            {"mesh_columns": None},
        ),
        Option(
            "at",
            lambda state: "+".join(f"{name}={at}" for name, at in sorted(state.mesh_at.items())),
            _read_places,
            {"mesh_at": {}},
        ),
    ),
    "tensor": (
        Option("pick", _write_picks, _read_picks, {"tensor_values": {}}),
        Option(
            "dims",
            lambda state: "+".join(f"{value}={a}x{b}" for value, (a, b) in sorted(state.tensor_dims.items())),
            _read_dims,
            {"tensor_dims": {}},
        ),
        Option(
            "at",
            lambda state: "+".join(
                f"{value}={dim}x{block}"
                for value, blocks in sorted(state.tensor_at.items())
                for dim, block in sorted(blocks.items())
            ),
            _read_blocks,
            {"tensor_at": {}},
        ),
    ),
    "timeline": (
        Option("window", _write_window, _read_window, {"options": {"timeline": {"asked": "whole"}}}),
        Option("open", _write_rows, _read_rows, {"options": {"timeline": {"opened": frozenset()}}}),
        _number("page", "timeline", "page"),
        Option("clock", _write_clock, _read_clock, {"options": {"timeline": {"one_clock": None}}}),
        _flag("table", "timeline", "twin", "open"),
    ),
    "traffic": (
        _one_of("mode", "traffic", "mode", MODES, "planned"),
        _flag("only", "traffic", "only"),
        Option("cell", _write_cell, _read_cell, {"options": {"traffic": {"cell": None}}}),
    ),
    "memory": (_number("rank", "memory", "class"),),
    "diff": (_one_of("kind", "diff", "kind", KINDS, "all"),),
}


def options_text(state: State) -> str:
    """The choices of the view in sight and those of all views."""
    pairs = [(option.name, option.write(state)) for option in _options(state.view)]
    return ",".join(f"{name}:{text}" for name, text in pairs if text)


def read_options(store: Store, view: str, text: str) -> tuple[Changes, list[str]]:
    """What the choices of an address change, defaults for what it does not name included; and what was not understood."""
    said: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition(":")
        said.setdefault(name, value)
    changes: Changes = {}
    problems: list[str] = []
    for option in _options(view):
        value = said.pop(option.name, None)
        found = option.read(store, value) if value is not None else option.default
        if found is None:
            problems.append(f"o={option.name}:{(value or '')[:24]} says nothing here")
        _merge(changes, found if found is not None else option.default)
    problems += [f"there is no option {name[:24]!r} in {view}" for name in said]
    return changes, problems


def applied(state: State, changes: Changes) -> Changes:
    """The changes with those of panels put into the options that there are."""
    panels = changes.get("options", {})
    if not panels:
        return changes
    options = {panel: dict(chosen) for panel, chosen in state.options.items()}
    for panel, chosen in panels.items():
        options[panel] = {**options.get(panel, {}), **chosen}
    return {**changes, "options": options}


def _options(view: str) -> tuple[Option, ...]:
    return (*EVERYWHERE, *OF_VIEW.get(view, ()))


def _merge(into: Changes, more: Changes) -> None:
    for key, value in more.items():
        if key == "options":
            panels = into.setdefault("options", {})
            for panel, chosen in value.items():
                panels[panel] = {**panels.get(panel, {}), **chosen}
        else:
            into[key] = value
