"""Numbers and rank sets as short text: units always, thousands grouped, runs folded.

>>> bytes_text(65536), count_text(43552), ranks_text([0, 1, 2, 3, 8])
('64 KiB', '43,552', '0–3, 8')
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from dtir.ir.ranks import RankRange

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?i?b?)\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}


def count_text(number: float) -> str:
    """A count with its thousands grouped."""
    return f"{int(number):,}"


def bytes_text(size_bytes: float | None) -> str:
    """Bytes in binary units, three digits at most; a dash where there is no number.

    >>> bytes_text(1536), bytes_text(0), bytes_text(1023)
    ('1.5 KiB', '0 B', '1,023 B')
    """
    if size_bytes is None or math.isnan(size_bytes):
        return "–"
    if math.isinf(size_bytes):
        return "∞"
    power = 0
    shown = float(size_bytes)
    while abs(shown) >= 1024 and power < len(_UNITS) - 1:
        shown /= 1024
        power += 1
    if power == 0:
        return f"{count_text(shown)} B" if shown == int(shown) else f"{shown:,.1f} B"
    digits = f"{shown:.1f}" if shown < 100 else f"{shown:,.0f}"
    return f"{digits.removesuffix('.0')} {_UNITS[power]}"


def exact_bytes_text(size_bytes: float | None) -> str:
    """Bytes in binary units and, where that rounds, in full."""
    short = bytes_text(size_bytes)
    if size_bytes is None or math.isnan(size_bytes) or math.isinf(size_bytes) or size_bytes < 1024:
        return short
    return f"{short} ({count_text(size_bytes)} B)"


def parse_bytes(text: str) -> float | None:
    """The number of bytes that a person wrote: ``64MiB``, ``64 mb``, ``1e`` is 1 EiB; None when it is no size.

    Units are binary, with or without the ``i``.

    >>> parse_bytes("64KiB"), parse_bytes("1.5k"), parse_bytes("many")
    (65536.0, 1536.0, None)
    """
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    letter = match.group(2).lower().removesuffix("b").removesuffix("i")
    return float(match.group(1)) * 1024.0 ** _POWERS[letter] if letter in _POWERS else None


def runs_text(executions: int | None) -> str:
    """How often something runs: ``×4``, empty for once, ``×?`` when the data decide."""
    if executions is None:
        return "×?"
    return "" if executions == 1 else f"×{count_text(executions)}" if executions < 10**12 else f"×{executions:.1e}"


def ranks_text(ranks: Sequence[int], *, limit: int = 12) -> str:
    """A rank set with runs folded and, beyond `limit` runs, the number that is left out.

    >>> ranks_text((0, 2, 4, 6)), ranks_text((3,))
    ('0, 2, 4, 6', '3')
    """
    if isinstance(ranks, RankRange):
        return _range_text(ranks)
    pieces: list[str] = []
    shown = position = 0
    total = len(ranks)
    while position < total and len(pieces) < limit:
        end = position
        while end + 1 < total and ranks[end + 1] == ranks[end] + 1:
            end += 1
        if end - position < 2:
            end = position
        pieces.append(str(ranks[position]) if end == position else f"{ranks[position]}–{ranks[end]}")
        position = end + 1
        shown = position
    if shown < total:
        pieces.append(f"… {count_text(total - shown)} more")
    return ", ".join(pieces)


def _range_text(ranks: RankRange) -> str:
    if len(ranks) <= 4:
        return ", ".join(str(rank) for rank in ranks) if ranks.step > 1 or len(ranks) < 3 else f"{ranks[0]}–{ranks[-1]}"
    if ranks.step == 1:
        return f"{ranks[0]}–{ranks[-1]}"
    return f"{ranks[0]}, {ranks[1]}, … {ranks[-1]} (every {ranks.step})"


def shape_text(dtype: str, shape: Sequence[object]) -> str:
    """A tensor type as HLO writes it: ``f32[8,16]``."""
    return f"{dtype}[{','.join(str(dim) for dim in shape)}]"


def plural(number: int, noun: str, plural_noun: str | None = None) -> str:
    """``1 task``, ``2 tasks``, ``1,783 tasks``."""
    return f"{count_text(number)} {noun if number == 1 else plural_noun or noun + 's'}"


def shorten(text: str, limit: int) -> str:
    """Text cut in the middle, so that the end of a long name stays readable."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"
