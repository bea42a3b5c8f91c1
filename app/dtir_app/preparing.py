"""What is made of a program before anybody looks at it, by the worker that opened it: the first picture, search texts, the outline, what is
found where."""

from __future__ import annotations

from dtir_app.frames.graph import placed_of
from dtir_app.frames.outline import reveal
from dtir_app.inferred import inferred
from dtir_app.items import Folding
from dtir_app.query import haystacks
from dtir_app.scenes import Place, default_folds, first_place, scene
from dtir_app.store import Opened, Store

INFER_AT_ONCE = 20_000
"""Values of a program whose layouts are inferred while it is opened; of larger ones when a tensor is first looked at."""


def prepare(opened: Opened) -> Opened:
    """Make what the first page needs; opening takes longer by it, and no session waits for it in the event loop."""
    store = opened.store
    if store is not None:
        place = first_place(store)
        prepare_scene(store, place, default_folds(store, place))
        haystacks(store)
        if len(store.tasks):
            reveal(store, 0)
            store.findings_of("task", 0)
        if len(store.values) <= INFER_AT_ONCE:
            inferred(store)
    return opened


def prepare_scene(store: Store, place: Place, folding: Folding) -> None:
    """Make a scene and its places."""
    placed_of(store, place, scene(store, place, folding))
