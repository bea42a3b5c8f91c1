"""What one writing or reading of the native form keeps: the tables of shared parts, and what has been read already.

Types, layouts, lineages, ... that occur more than once stand in a table of their own; where they are used stands their
number. Which parts go into tables, and in which order, follows from the content alone, never from which objects the
program happens to share: equal programs have equal text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtir.schema.opendata import Path, PlainError
from dtir.schema.plain_codecs import Codec

SHORTEST_ENTRY = 24
"""Shorter texts are repeated in place: a number in their stead would save nothing and say less."""

RANKS_AT_LEAST = 1 << 22
RANKS_PER_CHARACTER = 16
"""How many ranks all runs of a file may stand for together: so many in any case, more in proportion to its length."""

# A raw control character is never part of JSON text.
_MARK = re.compile("\0([0-9]+)\0")


@dataclass(slots=True)
class WriteSession:
    """The parts that may stand in tables. While the program is written, each use of one is a mark in the text."""

    _numbers: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _parts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _by_identity: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])

    def mark(self, table: str, part: Any, write: Callable[[Any, Any], str]) -> str:
        """The mark of a part; equal parts have equal marks."""
        # By identity first: the program keeps its parts alive while it is written.
        found = self._by_identity.get((table, id(part)))
        if found is None:
            entry = (table, write(part, self))
            if entry not in self._numbers:
                self._numbers[entry] = len(self._parts)
                self._parts.append(entry)
            found = self._by_identity[table, id(part)] = f"\0{self._numbers[entry]}\0"
        return found

    def finish(self, texts: dict[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
        """The texts with every mark replaced, and the tables.

        A part that is used once stands where it is used, and so does one that is short.
        """
        uses = Counter[str]()
        for text in (*texts.values(), *(text for _, text in self._parts)):
            uses.update(_MARK.findall(text))
        replaced: dict[str, str] = {}
        tables: dict[str, list[str]] = {}

        def put(match: re.Match[str]) -> str:
            return replaced[match[1]]

        # What stands inside a part was written, and numbered, before the part itself.
        for number, (table, text) in enumerate(self._parts):
            final = _MARK.sub(put, text)
            if uses[str(number)] > 1 and len(final) >= SHORTEST_ENTRY:
                entries = tables.setdefault(table, [])
                replaced[str(number)] = str(len(entries))
                entries.append(final)
            else:
                replaced[str(number)] = final
        return {key: _MARK.sub(put, text) for key, text in texts.items()}, tables


@dataclass(slots=True)
class ReadSession:
    """The raw tables of a file and what has been read of them; identifiers and rank sets that are read once.

    Args:
        tables: the raw tables by name.
        text_length: characters of the file; what its runs of ranks may stand for is bounded in proportion.
    """

    tables: dict[str, list[Any]]
    text_length: int
    ids: dict[tuple[type, str], Any] = field(default_factory=dict[tuple[type, str], Any])
    rank_sets: dict[str, Any] = field(default_factory=dict[str, Any])
    _read: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])
    _expanded: int = 0

    def entry(self, table: str, number: int, codec: Codec, path: Path) -> Any:
        """The part with a number in a table, read once."""
        key = (table, number)
        if key in self._read:
            if self._read[key] is _BEING_READ:
                raise PlainError(path, f"entry {number} of table {table!r} refers to itself")
            return self._read[key]
        entries = self.tables.get(table, [])
        if not 0 <= number < len(entries):
            raise PlainError(path, f"table {table!r} has {len(entries)} entries, there is no number {number}")
        self._read[key] = _BEING_READ
        self._read[key] = codec.read(entries[number], self, _entry_path(table, number))
        return self._read[key]

    def unused(self) -> list[Path]:
        """Where table entries stand that nothing refers to."""
        return [
            _entry_path(table, number)
            for table, entries in self.tables.items()
            for number in range(len(entries))
            if (table, number) not in self._read
        ]

    def expand(self, count: int, path: Path) -> None:
        """Count ranks that a run stands for.

        Raises:
            PlainError: all runs of the file together stand for too many.
        """
        self._expanded += count
        limit = max(RANKS_AT_LEAST, RANKS_PER_CHARACTER * self.text_length)
        if self._expanded > limit:
            raise PlainError(path, f"the runs of ranks of this file stand for more than {limit} ranks")


_BEING_READ: Any = object()


def _entry_path(table: str, number: int) -> Path:
    return ((((None, "payload"), "tables"), table), number)


class TableCodec:
    """The values of a field that may stand in a table: their number there, or the value itself."""

    def __init__(self, table: str, codec: Codec) -> None:
        self._table = table
        self._codec = codec
        self.kinds = codec.kinds | {int}

    def accepts(self, value: Any) -> bool:
        return self._codec.accepts(value)

    def write(self, value: Any, session: WriteSession) -> str:
        return session.mark(self._table, value, self._codec.write)

    def read(self, node: Any, session: ReadSession, path: Path) -> Any:
        if type(node) is int:
            return session.entry(self._table, node, self._codec, path)
        return self._codec.read(node, session, path)
