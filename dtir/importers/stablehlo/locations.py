"""Where an operation came from: ``loc(...)`` behind it, and the ``#loc`` aliases.

>>> Locations({"#loc1": 'loc("f.py":3:8)'}).of('loc("jit(f)/add"(#loc1))')
('jit(f)/add', 'f.py', 3)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from dtir.importers.hlo.lexing import unescape
from dtir.importers.stablehlo.lists import STRING

Place: TypeAlias = tuple[str, str, int]
"""Name of the operation in the framework, file, line; empty and 0 where they are not said."""

NOWHERE: Place = ("", "", 0)
_MAX_STEPS = 40
_FILE = re.compile(rf"({STRING}):(\d{{1,9}}):\d{{1,9}}")
_NAMED = re.compile(rf"({STRING})\s*(\(?)(?!:\d)")
_ALIAS = re.compile(r"#[\w.\-$]+")


class Locations:
    """Resolves locations; equal texts are resolved once."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[str, Place] = {}

    def of(self, text: str) -> Place:
        """The place that ``loc(...)`` or an alias says."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._resolve(text)
        return found

    def _resolve(self, text: str) -> Place:
        name = ""
        for _ in range(_MAX_STEPS):
            text = text.strip()
            if text.startswith("loc(") and text.endswith(")"):
                text = text[4:-1].strip()
                continue
            if text.startswith(("callsite(", "fused")):
                # The innermost place of a call, the first of fused ones.
                text = re.sub(r"^(?:callsite\(|fused(?:<[^<>]*>)?\[)", "", text)
                continue
            file = _FILE.match(text)
            if file is not None:
                return name, unescape(file.group(1)), int(file.group(2))
            named = _NAMED.match(text)
            if named is not None:
                name = name or unescape(named.group(1))
                if not named.group(2):
                    return name, "", 0
                text = text[named.end() :].removesuffix(")")
                continue
            alias = _ALIAS.match(text)
            if alias is None or alias.group() not in self._aliases:
                return name, "", 0
            text = self._aliases[alias.group()]
        return name, "", 0
