"""Text for a terminal: what may be printed, columns that line up, colours that only a terminal gets.

Names in a program are untrusted text. A name with escape sequences could clear the screen or write into the title of
the window, so every character that is not printable is shown as an escape.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from dtir.schema.diagnostics import Severity


def printable(text: str) -> str:
    r"""The text with everything unprintable (control characters, direction marks, lone surrogates) as an escape.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def width(text: str) -> int:
    """Columns that printable text takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


@dataclass(frozen=True, slots=True)
class Style:
    """Colours, or none.

    Args:
        on: whether escape sequences are written.
    """

    on: bool = False

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def severity(self, severity: Severity, text: str) -> str:
        """The text in the colour of a severity."""
        return self._wrap(_SEVERITY_COLOURS[severity], text)

    def good(self, text: str) -> str:
        return self._wrap("32", text)


_SEVERITY_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "33", Severity.INFO: "36"}

PLAIN = Style()


def style_for(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Style:
    """Colours when the stream is a terminal that shows them and NO_COLOR is not set."""
    wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return Style(wanted and stream.isatty())


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = (), style: Style = PLAIN
) -> list[str]:
    """Lines of a table; columns that are empty in every row are left out.

    Args:
        header: column titles.
        rows: cells, as many as titles in each.
        right: positions of columns that are aligned to the right (numbers).
        style: colours for the header.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    shown = [column for column in range(len(header)) if any(row[column] for row in cells)]
    rights = set(right)
    widths = {column: max(width(header[column]), *(width(row[column]) for row in cells)) for column in shown}

    def line(row: Sequence[str]) -> str:
        parts: list[str] = []
        for column in shown:
            space = " " * (widths[column] - width(row[column]))
            parts.append(space + row[column] if column in rights else row[column] + space)
        return "  ".join(parts).rstrip()

    return [style.dim(line(header)), *(line(row) for row in cells)]


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 task``, ``12,345 tasks``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size_text(size_bytes: float) -> str:
    """A number of bytes with a binary unit, exact where it is a whole number of that unit.

    >>> size_text(2048), size_text(1500), size_text(7)
    ('2 KiB', '1.46 KiB', '7 B')
    """
    unit = 0
    size = size_bytes
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:,.0f} {_UNITS[unit]}" if size == int(size) else f"{size:,.2f} {_UNITS[unit]}"
