"""The text of an MLIR file: comments blanked out, cut into the programs that lit tests keep in one file."""

from __future__ import annotations

import re

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*+')
_SPLIT = re.compile(r"^[ \t]*// -----.*$", re.MULTILINE)


def without_comments(text: str) -> str:
    """The text with every comment replaced by as many spaces, so that offsets stay.

    >>> without_comments('a // b\\n"// c"')
    'a     \\n"// c"'
    """
    if "//" not in text:
        return text
    return _COMMENT.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return found if found[0] == '"' else " " * len(found)


def parts(text: str) -> list[tuple[int, int]]:
    """Start and end of every part of a text with its comments: what stands between ``// -----`` lines.

    >>> parts("a\\n// -----\\nb")
    [(0, 2), (10, 12)]
    """
    marks = [match.span() for match in _SPLIT.finditer(text)] if "// -----" in text else []
    starts = [0, *(end for _, end in marks)]
    ends = [*(start for start, _ in marks), len(text)]
    return list(zip(starts, ends, strict=True))
