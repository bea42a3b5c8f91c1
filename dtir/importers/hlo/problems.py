"""Findings about HLO text, with the line and column they point at.

The reader never raises for bad text: every finding is a `Problem`, in text order as far as reading goes.
The number of kept problems is bounded, and the number left out is said (`Problems.omitted`), so that a file of
noise cannot fill memory with messages.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum

MAX_PROBLEMS = 1_000
"""Problems kept per file; further ones are only counted."""


class Level(Enum):
    """How serious a problem is: an error means that the module was not fully understood."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: a stable dotted code, a terse message and a 1-based position in the text."""

    code: str
    message: str
    line: int
    column: int
    level: Level = Level.ERROR
    hint: str | None = None

    def render(self, file: str = "<hlo>") -> str:
        """`file:line:column: [code] message`."""
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"{file}:{self.line}:{self.column}: [{self.code}] {self.message}{hint}"


class Lines:
    """Offset to (line, column), both 1-based; the table of line starts is made on first use."""

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset; an offset past the end points at the end."""
        if self._starts is None:
            starts = [0]
            find = self._text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._starts = starts
        offset = min(max(offset, 0), len(self._text))
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class Problems:
    """Collects problems of one text by character offset."""

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.items: list[Problem] = []
        self.omitted = 0
        self.errors = 0

    def error(self, code: str, message: str, offset: int, hint: str | None = None) -> None:
        """Record an error at `offset`."""
        self.errors += 1
        self._add(code, message, offset, Level.ERROR, hint)

    def warning(self, code: str, message: str, offset: int, hint: str | None = None) -> None:
        """Record a warning at `offset`."""
        self._add(code, message, offset, Level.WARNING, hint)

    def _add(self, code: str, message: str, offset: int, level: Level, hint: str | None) -> None:
        if len(self.items) >= MAX_PROBLEMS:
            self.omitted += 1
            return
        line, column = self.lines.position(offset)
        self.items.append(Problem(code, message, line, column, level, hint))
