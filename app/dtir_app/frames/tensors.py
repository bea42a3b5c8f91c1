"""Which shard maps the tensor view shows for a selection, and what stands above them."""

from __future__ import annotations

from collections.abc import Mapping

from dtir.ir.collectives import AllGather, AllReduce, Broadcast, ReduceScatter
from dtir.ir.tasks import Collective
from dtir_app.frames.blocks import SIGNS
from dtir_app.frames.tensor import NOTHING_KNOWN, Known, TensorFrame, pair_of, tensor_frame
from dtir_app.inferred import at_hand
from dtir_app.selection import Selection
from dtir_app.store import Store
from dtir_app.text import plural

BLOCKS_LISTED = 64

Choices = Mapping[str, int]


def shown_values(store: Store, selection: Selection, picked: Choices) -> list[tuple[str, int, list[int]]]:
    """Side, value and the values to pick from: before and after for a task, one map for a tensor."""
    if selection.value >= 0:
        return [("tensor", selection.value, [selection.value])]
    if selection.task < 0:
        return []
    before, after = pair_of(store, selection.task)
    made: list[tuple[str, int, list[int]]] = []
    for side, values in (("before", before), ("after", after)):
        if values:
            chosen = picked.get(side, values[0])
            made.append((side, chosen if chosen in values else values[0], values))
    return made


def tensor_maps(
    store: Store,
    selection: Selection,
    *,
    picked: Choices,
    dims: Mapping[int, tuple[int, int]],
    at: Mapping[int, Mapping[int, int]],
) -> list[tuple[str, int, list[int], TensorFrame]]:
    """The shard maps of a selection."""
    return [
        (
            side,
            value,
            options,
            tensor_frame(
                store,
                value,
                dims=dims.get(value),
                at=at.get(value),
                known=with_inferred(store, value, known_of(store, selection.task, side)),
            ),
        )
        for side, value, options in shown_values(store, selection, picked)
    ]


def known_of(store: Store, task: int, side: str) -> Known:
    """What a collective makes known about per-rank data before or after it; nothing for other tasks and other axes."""
    body = store.task_records[task].body if task >= 0 else None
    how = store.tasks.group_axes.get(task)
    if not isinstance(body, Collective) or how is None or not how.whole:
        return NOTHING_KNOWN
    axes = "×".join(how.axes)
    match body.spec:
        case AllReduce(reduction=reduction) | ReduceScatter(reduction=reduction) if side == "before":
            sign = SIGNS.get(reduction, reduction.value)
            return Known(
                term=f"term of {sign}", note=f"Each rank contributes a term of the {reduction.value} over {axes}."
            )
        case AllReduce() | AllGather() | Broadcast() if side == "after":
            return Known(frozenset(how.axes), note=f"After it all members of a group over {axes} hold the same.")
        case _:
            return NOTHING_KNOWN


def with_inferred(store: Store, value: int, known: Known) -> Known:
    """What is known of per-rank data, with the equal copies that follow for it."""
    found = at_hand(store)
    axes = found.replicated(value) if found is not None else frozenset()
    if not axes - known.equal or known.term:
        return known
    names = "×".join(axis for axis in store.mesh.axis_names if axis in axes)
    note = f"Inferred: all ranks along {names} hold the same."
    return Known(known.equal | axes, known.term, f"{known.note} {note}".strip())


def tensor_bar(store: Store, maps: list[tuple[str, int, list[int], TensorFrame]]) -> dict[str, object]:
    """Names, states and choices of the shown maps."""
    if not maps:
        return {
            "message": "Select a tensor, or a task that has operands and results, to see which rank holds which block."
        }
    return {"maps": [_head(store, side, value, options, frame) for side, value, options, frame in maps]}


def _states(store: Store, value: int, frame: TensorFrame) -> list[dict[str, str]]:
    """The state of every axis, with what is inferred of it."""
    found = at_hand(store)
    follows = found.of(value) if found is not None else {}
    return [
        {
            **item,
            "inferred": follows.get(item["axis"], ""),
            "why": found.reasons.get((value, item["axis"]), "") if found else "",
        }
        for item in frame.states
    ]


def _head(store: Store, side: str, value: int, options: list[int], frame: TensorFrame) -> dict[str, object]:
    tiles = frame.tiles
    count = len(tiles["x"])
    held = [
        text
        for text in (
            f"{frame.copies} equal copies of each block" if frame.copies > 1 else "",
            f"pending {frame.partial}" if frame.partial else "",
        )
        if text
    ]
    blocks = [
        [str(tiles["range"][row]) or "all", str(tiles["ranks"][row]), str(tiles["badge"][row])]
        for row in range(min(count, BLOCKS_LISTED))
    ]
    if count > BLOCKS_LISTED:
        blocks.append([f"… {count - BLOCKS_LISTED} more", "", ""])
    return {
        "side": side,
        "name": frame.name,
        "type": store.values.shape[value],
        "options": [{"value": option, "label": store.values.name[option], "on": option == value} for option in options],
        "dims": list(frame.dims),
        "choices": frame.choices,
        "states": _states(store, value, frame),
        "sliders": frame.sliders,
        "badge": ", ".join(held),
        "note": " ".join(text for text in (frame.note, frame.limits) if text),
        "count": f"{plural(count, 'block')} as text",
        "blocks": blocks,
    }
