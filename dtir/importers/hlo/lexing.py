"""Low-level scanning of HLO text: white space, comments, names, strings and balanced brackets.

All patterns are possessive or linear, so scanning time is proportional to the characters passed over.
Source of the token rules: the public HLO lexer (openxla/xla, xla/hlo/parser/hlo_lexer.cc).
"""

from __future__ import annotations

import re

COMMENT = r"//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
SPACE = re.compile(rf"(?:[ \t\r\n\f\v]++|{COMMENT})*+")
IDENTIFIER = r"[A-Za-z_][\w.\-]*+"
NAME = re.compile(rf"%?({IDENTIFIER})", re.ASCII)
STRING = re.compile(r'"(?:[^"\\]|\\.)*+"|' + r"'(?:[^'\\]|\\.)*+'", re.DOTALL)
_BRACKETS = re.compile(
    r'"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\]|\\.)*+'" + rf"|{COMMENT}" + r"""|[(){}\[\]"']""", re.DOTALL
)
_COMMENTS = re.compile(rf'"(?:[^"\\]|\\.)*+"|({COMMENT})', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([nrtabfv0'\"\\?])|x([0-9A-Fa-f]{2})|([0-7]{3}))")
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class HloSyntaxError(Exception):
    """Internal: text that cannot be read, at a character offset. The reader turns it into a `Problem`."""

    def __init__(self, message: str, offset: int, code: str = "hlo.syntax", scanned: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.code = code
        self.scanned = offset if scanned is None else scanned


def skip_space(text: str, pos: int) -> int:
    """The offset of the next character that is neither white space nor comment."""
    match = SPACE.match(text, pos)
    assert match is not None  # the pattern matches the empty string
    return match.end()


def balanced_end(text: str, pos: int) -> int:
    """The offset after the bracket that closes the one at `pos`; strings and comments are passed over.

    Raises `HloSyntaxError` where brackets cross, a string is open or the text ends first.
    """
    opened = [pos]
    for match in _BRACKETS.finditer(text, pos + 1):
        token = match.group()
        if token in _CLOSER:
            opened.append(match.start())
        elif token in ")]}":
            last = opened.pop()
            if token != _CLOSER[text[last]]:
                at = _on_line(text, [*opened, last])
                raise HloSyntaxError(f"'{text[at]}' is not closed before '{token}'", at, scanned=match.start())
            if not opened:
                return match.end()
        elif len(token) == 1:
            raise HloSyntaxError("string is not closed", match.start(), scanned=len(text))
    at = _on_line(text, opened)
    raise HloSyntaxError(f"'{text[at]}' is never closed", at, scanned=len(text))


def _on_line(text: str, opened: list[int]) -> int:
    """Of brackets left open the last on the line of the first: what follows on later lines is only swallowed."""
    line_end = text.find("\n", opened[0])
    return opened[-1] if line_end < 0 else next(at for at in reversed(opened) if at < line_end)


def strip_comments(text: str) -> str:
    """`text` without comments; strings keep theirs."""
    if "/" not in text:
        return text
    return _COMMENTS.sub(lambda match: " " if match.group(1) else match.group(), text)


def unescape(quoted: str) -> str:
    """The value of a quoted string (quotes included in `quoted`), with C-style escapes undone."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    return _ESCAPE.sub(_unescape_one, body)


def _unescape_one(match: re.Match[str]) -> str:
    simple, hexadecimal, octal = match.groups()
    if simple is not None:
        return _SIMPLE_ESCAPES.get(simple, simple)
    return chr(int(hexadecimal, 16) if hexadecimal is not None else int(octal, 8))


def split_top_level(text: str, separator: str = ",") -> list[tuple[str, int]]:
    """Parts of `text` between separators that stand outside brackets and strings, each with its offset.

    >>> split_top_level("a={1,2}, b")
    [('a={1,2}', 0), (' b', 8)]
    """
    parts: list[tuple[str, int]] = []
    depth = 0
    start = 0
    pattern = _SPLITTERS[separator]
    for match in pattern.finditer(text):
        token = match.group()
        if token == separator:
            if depth == 0:
                parts.append((text[start : match.start()], start))
                start = match.end()
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
    parts.append((text[start:], start))
    return parts


_SPLITTERS = {
    mark: re.compile(r'"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\]|\\.)*+'" + rf"|[(){{}}\[\]{re.escape(mark)}]", re.DOTALL)
    for mark in (",", " ")
}
