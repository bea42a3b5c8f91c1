"""The bar above the graph: the place, what repeats there, the legend, and what is not drawn, as plain data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtir_app.filters import Filters
from dtir_app.frames.folded_text import family_line
from dtir_app.frames.graph import GraphFrame
from dtir_app.frames.hits import hidden_text
from dtir_app.items import Instances, Scene
from dtir_app.kinds import FAMILY_LABELS, KINDS, Family
from dtir_app.scenes import Place, crumbs, entered_place
from dtir_app.selection import Selection, task_of
from dtir_app.store import Store
from dtir_app.text import count_text, plural

DIFFERENT_SHOWN = 8


def graph_bar(
    store: Store,
    place: Place,
    at: Scene,
    frame: GraphFrame,
    filters: Filters,
    selection: Selection,
    mask: npt.NDArray[np.bool_],
) -> dict[str, object]:
    """Where the graph is, what repeats, its legend, and what of it is not drawn."""
    counts = (
        np.bincount(store.tasks.family[at.tasks], minlength=len(Family))
        if len(at.tasks)
        else np.zeros(len(Family), int)
    )
    task = task_of(store, selection)
    item = at.item_of(task) if task >= 0 else -1
    target = entered_place(store, place, at, item) if item >= 0 else None
    said = list(frame.lines)
    if filters.active:
        said.append(_filtered(store, at, mask))
    return {
        "crumbs": crumbs(store, place),
        "can_open": "" if target is None else "Open block" if target[-1][0] == "block" else "Open region",
        "selected": item >= 0,
        "families": [family_entry(instances) for instances in at.families],
        "legend": legend(store, at, counts, filters),
        "limit": f"Showing {shown_text(at, frame)} — {'; '.join(said)}." if said else "",
        "why": why(at, frame),
        "can_unfold": at.is_folded or any(instances.folded for instances in at.families),
        "fold": _fold(place, at, counts),
    }


def shown_text(at: Scene, frame: GraphFrame) -> str:
    """``105 of 1,311 tasks``: those that stand alone for themselves on the picture."""
    alone = int(np.count_nonzero((at.folded.size == 1) & ~at.absent))
    if frame.window is not None:
        alone = min(alone, frame.drawn)
    blocks = int(np.count_nonzero((at.folded.size > 1) & ~at.absent))
    tail = f" and {plural(blocks, 'block')}" if blocks and frame.window is None else ""
    return f"{count_text(alone)} of {plural(frame.total_tasks, 'task')}{tail}"


def _filtered(store: Store, at: Scene, mask: npt.NDArray[np.bool_]) -> str:
    """How many tasks the filters keep, and how many of them folding hides here."""
    kept = int(mask.sum())
    text = f"{count_text(kept)} of {plural(len(mask), 'task')} match the filters, others faded"
    hidden = hidden_text(mask, at)
    return f"{text}; of these {hidden}" if hidden else text


def why(at: Scene, frame: GraphFrame) -> list[str]:
    """Why something is not drawn, a sentence each."""
    made: list[str] = []
    for instances in at.families:
        if instances.folded:
            made.append(
                f"{family_line(instances, full=True)}: their tasks correspond one to one in kind, operation and place"
                + (", and in axes, messages and types" if not instances.family.differences else "")
                + ". One instance is drawn with a card behind every item; the others can be stepped to."
            )
    if at.is_folded and (at.folded.size > 1).any():
        made.append("Local work between two communications is one block, so that the communication can be seen.")
    if at.absent.any():
        missing = plural(int(np.count_nonzero(at.absent)), "item")
        made.append(
            f"{missing} not drawn: the instance that is shown has no such task, another one has. Step to it to see it."
        )
    if len(at.carried[0]):
        made.append(
            f"{plural(len(at.carried[0]), 'edge')} from one instance to the next drawn as stubs: select an end to see them."
        )
    if frame.dense:
        made.append(
            "More items are in sight than can be told apart. A bar stands for a piece of the program: its height for the tasks in it, "
            "its colours for their kinds. Zoom in, click a bar or drag a box (b) to see tasks."
        )
    return made


def family_entry(instances: Instances) -> dict[str, object]:
    """One family as the bar shows it: stepper, what differs, and the switch."""
    family = instances.family
    at = family.numbers.index(instances.number) if instances.folded else -1
    return {
        "key": family.key,
        "label": f"×{count_text(len(family.numbers))} {family.nouns.removeprefix('instances of ')}",
        "noun": family.noun,
        "folded": instances.folded,
        "number": instances.number,
        "position": f"{count_text(at + 1)} of {count_text(len(family.numbers))}",
        "first": at <= 0,
        "last": at == len(family.numbers) - 1,
        "size": plural(family.size, "task"),
        "note": f"{family.noun} {instances.number} differs: {family.differences[instances.number]}"
        if instances.number in family.differences
        else "",
        "different": [
            {"number": number, "text": f"{number}: {family.differences[number]}"}
            for number in sorted(family.differences)[:DIFFERENT_SHOWN]
        ],
        "different_more": max(0, len(family.differences) - DIFFERENT_SHOWN),
    }


def _fold(place: Place, at: Scene, counts: npt.NDArray[np.int64]) -> dict[str, object] | None:
    if at.is_folded:
        return {"label": "Unfold local work", "folded": False}
    if (
        len(at.tasks) > 40
        and not (place and place[-1][0] == "block")
        and counts[Family.LOCAL]
        and counts[Family.LOCAL] < len(at.tasks)
    ):
        return {"label": "Fold local work", "folded": True}
    return None


def legend(store: Store, at: Scene, counts: npt.NDArray[np.int64], filters: Filters) -> list[dict[str, object]]:
    """One entry a family, with the codes that its kinds have."""
    codes = {family: " ".join(kind.code for kind in KINDS if kind.family is family and kind.code) for family in Family}
    blocks = int(np.count_nonzero(at.folded.size > 1)) + int(counts[Family.BLOCK])
    made: list[dict[str, object]] = []
    for family in Family:
        count = blocks if family is Family.BLOCK else int(counts[family])
        if family is Family.BLOCK and not blocks:
            continue
        made.append(
            {
                "family": int(family),
                "label": FAMILY_LABELS[family] if family is not Family.BLOCK else "block (opens)",
                "count": count_text(count),
                "on": int(family) in filters.families,
                "help": f"{FAMILY_LABELS[family]}: {codes[family]}" if codes[family] else FAMILY_LABELS[family],
            }
        )
    return made
