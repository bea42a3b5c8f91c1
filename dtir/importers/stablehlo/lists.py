"""Splitting MLIR text at commas outside of brackets, strings and angle brackets."""

from __future__ import annotations

import re

from dtir.importers.hlo.lexing import unescape

STRING = r'"(?:[^"\\\n]|\\.)*+"'
_SPLIT = re.compile(rf"{STRING}|->|[(){{}}\[\]<>,]")
_DEEP = re.compile(r"[(){}\[\]<>\"]")
_ENTRY = re.compile(rf"\s*(?:([A-Za-z_][\w.$\-]*)|({STRING}))\s*(?:=\s*)?", re.ASCII | re.DOTALL)


def split(text: str) -> list[str]:
    """The parts of a comma-separated list, stripped; empty text has none.

    >>> split("a<b, c>, (d) -> e, f")
    ['a<b, c>', '(d) -> e', 'f']
    """
    if not text or text.isspace():
        return []
    if _DEEP.search(text) is None:
        return [part.strip() for part in text.split(",")]
    parts: list[str] = []
    depth = start = 0
    for match in _SPLIT.finditer(text):
        token = match.group()
        if token == ",":
            if depth == 0:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        elif token in "([{<":
            depth += 1
        elif token in ")]}>":
            depth -= 1
    parts.append(text[start:].strip())
    return parts


def closing(text: str, pos: int) -> int:
    """The offset after the bracket that closes the one at `pos`; the end of the text where none does.

    >>> closing("<(a) -> b>, c", 0)
    10
    """
    depth = 0
    for match in _SPLIT.finditer(text, pos):
        token = match.group()
        if token in ("(", "[", "{", "<"):
            depth += 1
        elif token in (")", "]", "}", ">"):
            depth -= 1
            if depth <= 0:
                return match.end()
    return len(text)


def entries(text: str) -> dict[str, str]:
    """A dictionary's entries, braces left out: name to the text of the value, empty for a unit attribute.

    >>> entries('a = 1 : i64, "b.c" = [1, 2], d')
    {'a': '1 : i64', 'b.c': '[1, 2]', 'd': ''}
    """
    found: dict[str, str] = {}
    for part in split(text):
        match = _ENTRY.match(part)
        if match is not None:
            name = match.group(1) or unescape(match.group(2))
            found[name] = part[match.end() :]
    return found


def inside(text: str) -> str:
    """The text in the outermost brackets of a value such as ``[1, 2]`` or ``{a}``; the text itself without any."""
    stripped = text.strip()
    return stripped[1:-1] if stripped[:1] in ("[", "{", "(", "<") and len(stripped) > 1 else stripped
