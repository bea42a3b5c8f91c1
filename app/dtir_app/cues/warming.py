"""Facts of large programs are derived in a thread of their own, once a program, so that the page stays alive."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from dtir_app.cues.case import known_of
from dtir_app.store import Store

BUSY = "Deriving layouts and reasons of the whole program …"

_POOL = ThreadPoolExecutor(1, thread_name_prefix="dtir-facts")


def warming(store: Store) -> Future[None] | None:
    """The work that derives a program's facts, begun when it is first asked for; None when they are at hand."""
    known = known_of(store)
    if known.ready:
        return None
    return store.memo.made("warming", lambda: _POOL.submit(known.warm))
