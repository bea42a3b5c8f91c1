"""Memory of a server: what stays is not gone through again and again, and what sessions leave behind goes back to the system.

Python's cycle collector stops everything while it walks all objects there are: 0.3 s with a program of 100,000 tasks open, now and then
in the middle of a click. Programs have no cycles to speak of and stay, so they are set aside (`gc.freeze`) when they are read. The C
library for its part keeps what was freed, as if it were still needed.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable

REST_S = 5.0
"""Seconds after a session ended before memory is given back: its models are let go of a little later than it is."""

EVERY = 8
"""Sessions after whose end everything is gone through, what was set aside too: sessions that were open then, programs let go of since."""

_waiting = False
_ended = 0


def set_aside() -> None:
    """Spare the cycle collector what there is now; see `EVERY` for when it is gone through all the same."""
    gc.freeze()


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
        gc.unfreeze()
        gc.collect()
        set_aside()
    else:
        gc.collect()
    trim()
