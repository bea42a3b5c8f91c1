"""Giving memory back to the system when sessions end: the C library keeps what was freed, as if it were still needed."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable

REST_S = 5.0
"""Seconds after a session ended before memory is given back: its models are let go of a little later than it is."""

EVERY = 8
"""Sessions after whose end everything is gone through for models that refer to each other in circles. That takes 0.4 s of a CPU with
100,000 tasks open, so it is not done after each."""

_waiting = False
_ended = 0


def trim() -> bool:
    """Give freed memory back; False where the C library has no such call (only glibc's has)."""
    if not sys.platform.startswith("linux"):
        return False
    give_back: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return give_back is not None and give_back(0) >= 0


def trim_soon(later: Callable[[float, Callable[[], None]], object]) -> None:
    """Give memory back after a rest, once for all sessions that end meanwhile.

    Args:
        later: calls a function in the event loop after some seconds.
    """
    global _waiting, _ended
    _ended += 1
    if not _waiting:
        _waiting = True
        later(REST_S, _rested)


def _rested() -> None:
    global _waiting, _ended
    _waiting = False
    if _ended >= EVERY:
        _ended = 0
        gc.collect()
    else:
        gc.collect(1)
    trim()
