"""What a search found: the first hits, how many there are, where the selection stands among them, and which of them folding hides."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dtir_app.items import Scene
from dtir_app.kinds import KINDS
from dtir_app.query import parse, task_mask
from dtir_app.selection import Selection, of_task, selection_text
from dtir_app.store import Store
from dtir_app.text import bytes_text, count_text, plural

HITS = 60


def found_mask(store: Store, text: str) -> npt.NDArray[np.bool_]:
    """The hits of a search; of the last few the masks are kept."""
    made = store.memo.made(("found", text), lambda: task_mask(store, parse(text, store.mesh.axis_names)))
    store.memo.forget_oldest("found", 8)
    return made


def search_hits(store: Store, text: str, at: Scene | None, selection: Selection) -> dict[str, object] | None:
    """The hits of a search.

    Args:
        store: the program.
        text: what a person wrote.
        at: what the graph shows, for the hits hidden in it; None where it shows nothing yet.
        selection: what is selected, for its place among the hits.
    """
    if not text.strip():
        return None
    query = parse(text, store.mesh.axis_names)
    mask = found_mask(store, text) if not query.empty else np.zeros(len(store.tasks), dtype=bool)
    hits = np.flatnonzero(mask)
    shown = f", first {HITS} listed" if len(hits) > HITS else ""
    return {
        "text": text,
        "problem": query.problem,
        "start": query.start,
        "stop": query.stop,
        "total": len(hits),
        "count": f"{plural(len(hits), 'hit')}{shown}",
        "position": _position(hits, selection),
        "hidden": hidden_text(mask, at) if at is not None and len(hits) else "",
        "items": [_hit(store, index) for index in hits[:HITS].tolist()],
    }


def _position(hits: npt.NDArray[np.int64], selection: Selection) -> str:
    place = int(np.searchsorted(hits, selection.task)) if selection.task >= 0 else len(hits)
    if place >= len(hits) or hits[place] != selection.task:
        return ""
    return f"{count_text(place + 1)} of {count_text(len(hits))}"


def hidden_text(mask: npt.NDArray[np.bool_], at: Scene) -> str:
    """How many of some tasks the graph does not show one by one, and where they are."""
    here = mask[at.tasks]
    folded = int(np.count_nonzero(here & ~at.shown))
    blocks = int(np.count_nonzero(here & at.shown & (at.folded.size[at.folded.item] > 1)))
    elsewhere = int(np.count_nonzero(mask)) - int(np.count_nonzero(here))
    parts = [
        f"{count_text(folded)} in folded instances" if folded else "",
        f"{count_text(blocks)} in blocks of local work" if blocks else "",
        f"{count_text(elsewhere)} in other regions" if elsewhere else "",
    ]
    return ", ".join(part for part in parts if part)


def _hit(store: Store, index: int) -> dict[str, object]:
    kind = KINDS[store.tasks.kind[index]]
    scope = int(store.tasks.scope[index])
    size = float(store.tasks.message_bytes[index])
    return {
        "key": selection_text(store, of_task(index)),
        "name": store.tasks.name[index],
        "code": kind.code,
        "family": int(kind.family),
        "note": bytes_text(size) if not math.isnan(size) else store.scopes[scope].name if scope else "",
    }
