"""Where a finding points: in a text by line and column, in a program by a path of keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A place in a text, counted from 1; column None when only the line is known."""

    line: int
    column: int | None = None


def text_place(path: Sequence[str]) -> TextPlace | None:
    """The place in a text that a path names (``line, N`` and maybe ``column, M``); None for a path into a program.

    >>> text_place(("line", "3", "column", "14"))
    TextPlace(line=3, column=14)
    >>> text_place(("tasks", "3")) is None
    True
    """
    match tuple(path):
        case ("line", line) if line.isdecimal():
            return TextPlace(int(line))
        case ("line", line, "column", column) if line.isdecimal() and column.isdecimal():
            return TextPlace(int(line), int(column))
        case _:
            return None


def place_text(path: Sequence[str]) -> str:
    """A path for a sentence: ``line 3, column 14`` or ``tasks.0.ranks``; empty for the whole."""
    place = text_place(path)
    if place is None:
        return ".".join(path)
    return f"line {place.line}" + (f", column {place.column}" if place.column is not None else "")
