"""How deep the brackets of JSON text nest, found in one pass over its bytes before anything parses it.

A parser recurses or keeps a stack per open bracket; 200 MB of ``[`` must cost neither. The bytes are fed in pieces, so
that such a file is refused after its first piece.

>>> guard = JsonDepth(limit=3)
>>> guard.feed(b'{"a": ["]]", ['), guard.open
(True, 3)
>>> guard.feed(b"[")
False
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_ESCAPE_PAIR = re.compile(rb"\\.", re.DOTALL)
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


def _steps() -> np.ndarray:
    steps = np.zeros(256, dtype=np.int8)
    steps[[ord("["), ord("{")]] = 1
    steps[[ord("]"), ord("}")]] = -1
    return steps


_STEPS = _steps()


@dataclass(slots=True)
class JsonDepth:
    """Counts open brackets outside strings.

    Args:
        limit: how many may be open at once.

    Attributes:
        open: brackets open after the bytes seen so far (below 0 when more were closed than opened).
        in_string: whether the bytes seen so far end inside a string.
    """

    limit: int
    open: int = 0
    in_string: bool = False
    _escaped: bool = False

    @property
    def complete(self) -> bool:
        """True when no bracket and no string is open."""
        return self.open == 0 and not self.in_string

    def feed(self, piece: bytes) -> bool:
        """Take the next bytes; False when more than `limit` brackets are open at some point in them."""
        if not piece:
            return True
        # Escapes go first, so that every quote left opens or closes a string. A backslash at the end of a piece
        # waits for its partner. (Outside strings a backslash is no JSON at all; any answer will do there.)
        if self._escaped:
            piece = piece[1:]
            self._escaped = False
        if _BACKSLASH in piece:
            piece = _ESCAPE_PAIR.sub(b"", piece)
            if piece.endswith(b"\\"):
                self._escaped = True
                piece = piece[:-1]
        codes = np.frombuffer(piece, dtype=np.uint8)
        steps = _STEPS[codes]
        quotes = codes == _QUOTE
        marks = np.flatnonzero((steps != 0) | quotes)
        if not len(marks):
            return True
        inside = np.logical_xor.accumulate(quotes[marks]) ^ self.in_string
        levels = np.cumsum(np.where(inside, 0, steps[marks]), dtype=np.int64) + self.open
        self.open = int(levels[-1])
        self.in_string = bool(inside[-1])
        return int(levels.max()) <= self.limit
