"""The memory of a rank over its task list: layers by role, the largest values as layers of their own, the peak and the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dtir.ir.program import DistributedTaskIR
from dtir_app.frames.rows import value_link
from dtir_app.living import Block, Lives, totals
from dtir_app.store import Store
from dtir_app.text import bytes_text, count_text, plural

SAMPLES = 600
NAMED = 14
LISTED = 100
BUDGETS = ("peak_bytes", "memory_bytes", "budget_bytes")
"""Limits of a program that speak of bytes."""

ROLES = ("parameter", "optimizer_state", "state", "kv_cache", "constant", "input", "activation", "output")
"""From the bottom: what stays, then what comes and goes."""

ROLE_COLOURS = {
    "parameter": 0,
    "optimizer_state": 5,
    "state": 3,
    "kv_cache": 3,
    "constant": 6,
    "input": 1,
    "activation": 4,
    "output": 2,
    "inside": 7,
    "leak": 8,
}
"""Places in the palette of `dtir_app.views.memory`."""

Floats = npt.NDArray[np.float64]
Columns = dict[str, list[object]]


@dataclass(frozen=True, slots=True)
class Layer:
    """A band of the stack: one value, or all others of a role.

    Args:
        name: for people.
        role: decides its colour.
        value: number of the value; -1 for a band of several.
        heights: bytes at every sample.
    """

    name: str
    role: str
    value: int
    heights: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class MemoryFrame:
    """A picture.

    Args:
        samples: positions that are drawn: 0 before the first task, else one more than the place in the rank's order.
        layers: from the bottom.
        total: bytes at every sample.
        peak_at, peak_bytes, peak_task: where most is live; the task is -1 before the first.
        budgets: lines, each a name and bytes.
        length: positions in all.
        leaks: values that are never freed, by number.
        at_peak: what is live at the peak, largest first, as rows of a table.
        live_count: how many values are live then.
        areas, marks, lines, texts: what is drawn, see `dtir_app.views.memory`.
    """

    samples: npt.NDArray[np.int64] = field(repr=False)
    layers: tuple[Layer, ...] = field(repr=False)
    total: Floats = field(repr=False)
    peak_at: int
    peak_bytes: float
    peak_task: int
    budgets: tuple[tuple[str, float], ...]
    length: int
    leaks: tuple[int, ...]
    at_peak: tuple[dict[str, object], ...] = field(repr=False)
    live_count: int
    areas: Columns = field(repr=False)
    edges: Columns = field(repr=False)
    marks: Columns = field(repr=False)
    lines: Columns = field(repr=False)
    rings: Columns = field(repr=False)


def budgets_of(program: DistributedTaskIR, rank: int) -> tuple[tuple[str, float], ...]:
    """The bytes that a program allows a rank."""
    return tuple(
        (limit.name, float(limit.value))
        for limit in program.limits
        if limit.name in BUDGETS and limit.rank in (None, rank)
    )


def leaked_values(store: Store) -> tuple[int, ...]:
    """Values of tasks that allocate what is never freed, as the verifier found."""
    found: dict[int, None] = {}
    for finding in store.findings:
        if finding.code == "memory.leak":
            for task in finding.tasks:
                scope = int(store.tasks.scope[task])
                for name in store.task_records[task].outputs:
                    value = store.value_at(scope, name.value)
                    if value >= 0:
                        found[value] = None
    return tuple(found)


def memory_frame(store: Store, lives: Lives, rank: int, picked: int = -1) -> MemoryFrame:
    """The picture of a class of ranks.

    Args:
        lives: what lives when.
        rank: one of its ranks, for limits.
        picked: the selected value, or -1.
    """
    leaks = leaked_values(store)
    blocks = [
        Block(item.value, item.size_bytes, item.born, None) if item.value in leaks else item for item in lives.blocks
    ]
    length = len(lives.order) + 1
    curve = np.asarray(totals(blocks, lives.inside, len(lives.order)))
    samples = _samples(curve)
    peak_at = int(curve.argmax())
    task = lives.order[peak_at - 1] if peak_at > 0 else -1
    live = [item for item in blocks if item.size_bytes > 0 and _is_live(item, peak_at)]
    live.sort(key=lambda item: (-item.size_bytes, item.value))
    layers = _layers(store, blocks, lives, samples, live, leaks)
    budgets = budgets_of(store.program, rank)
    return MemoryFrame(
        samples=samples,
        layers=layers,
        total=curve[samples],
        peak_at=peak_at,
        peak_bytes=float(curve[peak_at]),
        peak_task=task,
        budgets=budgets,
        length=length,
        leaks=tuple(value for value in leaks if any(item.value == value for item in blocks)),
        at_peak=tuple(_row(store, item, lives, leaks) for item in live[:LISTED]),
        live_count=len(live),
        areas=_areas(samples, layers, length),
        edges=_edges(samples, layers, blocks, leaks, length),
        marks={
            "x": [peak_at + 0.5],
            "y": [float(curve[peak_at])],
            "text": [f"peak {bytes_text(float(curve[peak_at]))}"],
        },
        lines={
            "y": [bytes_ for _, bytes_ in budgets],
            "text": [f"{name} {bytes_text(bytes_)}" for name, bytes_ in budgets],
            "end": [length] * len(budgets),
        },
        rings=_rings(layers, samples, picked, length),
    )


def _samples(curve: Floats) -> npt.NDArray[np.int64]:
    """Every position, or of every stretch the one where most is live: no peak is lost."""
    count = len(curve)
    if count <= SAMPLES:
        return np.arange(count)
    edges = np.linspace(0, count, SAMPLES + 1).astype(np.int64)
    return np.array([int(a + curve[a:b].argmax()) for a, b in pairwise(edges.tolist())], dtype=np.int64)


def _is_live(block: Block, at: int) -> bool:
    return block.born + 1 <= at and (block.dies is None or at <= block.dies + 1)


def _layers(
    store: Store,
    blocks: Sequence[Block],
    lives: Lives,
    samples: npt.NDArray[np.int64],
    live: Sequence[Block],
    leaks: Sequence[int],
) -> tuple[Layer, ...]:
    named = {item.value for item in live[:NAMED]} | set(leaks)
    starts = np.array([item.born + 1 for item in blocks], dtype=np.int64)
    ends = np.array([10**15 if item.dies is None else item.dies + 1 for item in blocks], dtype=np.int64)
    sizes = np.array([item.size_bytes for item in blocks])
    single: list[Layer] = []
    rest: dict[str, Floats] = {}
    for place, item in enumerate(blocks):
        role = "leak" if item.value in leaks else store.values.role[item.value]
        if item.value in named and item.size_bytes > 0:
            heights = np.where((samples >= starts[place]) & (samples <= ends[place]), sizes[place], 0.0)
            single.append(Layer(store.values.name[item.value], role, item.value, heights))
    others: dict[str, list[int]] = {}
    for place, item in enumerate(blocks):
        if item.value not in named and item.size_bytes > 0:
            others.setdefault(store.values.role[item.value], []).append(place)
    for role, places in others.items():
        change = np.zeros(len(samples) + 1)
        np.add.at(change, np.searchsorted(samples, starts[places], side="left"), sizes[places])
        np.add.at(change, np.searchsorted(samples, ends[places], side="right"), -sizes[places])
        rest[role] = np.cumsum(change)[:-1]
    counts = {role: len(places) for role, places in others.items()}
    layers: list[Layer] = []
    for role in (*ROLES, *sorted(set(rest) - set(ROLES)), "leak"):
        layers += [layer for layer in single if layer.role == role]
        if role in rest:
            layers.append(
                Layer(f"{plural(counts[role], 'more value')}: {role.replace('_', ' ')}", role, -1, rest[role])
            )
    inside = np.array([lives.inside.get(int(at) - 1, 0.0) for at in samples.tolist()])
    if inside.any():
        layers.append(Layer("inside of regions", "inside", -1, inside))
    return tuple(layers)


def _areas(samples: npt.NDArray[np.int64], layers: Sequence[Layer], length: int) -> Columns:
    """A polygon for every stretch of a layer that is not empty; steps, since nothing is in between two tasks."""
    made: Columns = {name: [] for name in ("xs", "ys", "colour", "name", "detail", "value")}
    bottom = np.zeros(len(samples))
    left = samples.astype(np.float64)
    right = np.append(left[1:], length)
    for layer in layers:
        top = bottom + layer.heights
        on = np.flatnonzero(layer.heights > 0)
        for run in np.split(on, np.flatnonzero(np.diff(on) > 1) + 1) if len(on) else ():
            sides = np.stack([left[run], right[run]], axis=1).reshape(-1)
            up, low = np.repeat(top[run], 2), np.repeat(bottom[run], 2)
            made["xs"].append(np.concatenate([sides, sides[::-1]]).tolist())
            made["ys"].append(np.concatenate([up, low[::-1]]).tolist())
            made["colour"].append(str(ROLE_COLOURS.get(layer.role, 6)))
            made["name"].append(layer.name)
            made["detail"].append(f"{layer.role.replace('_', ' ')}, {bytes_text(float(layer.heights[run].max()))}")
            made["value"].append(layer.value)
        bottom = top
    return made


def _edges(
    samples: npt.NDArray[np.int64],
    layers: Sequence[Layer],
    blocks: Sequence[Block],
    leaks: Sequence[int],
    length: int,
) -> Columns:
    """Right edges of what is freed in sight; a value that is never freed has none."""
    dies = {item.value: item.dies for item in blocks}
    made: Columns = {name: [] for name in ("x", "y0", "y1")}
    bottom = np.zeros(len(samples))
    right = np.append(samples[1:].astype(np.float64), length)
    for layer in layers:
        top = bottom + layer.heights
        if layer.value >= 0 and dies.get(layer.value) is not None and layer.value not in leaks:
            on = np.flatnonzero(layer.heights > 0)
            if len(on) and on[-1] < len(samples) - 1:
                made["x"].append(float(right[on[-1]]))
                made["y0"].append(float(bottom[on[-1]]))
                made["y1"].append(float(top[on[-1]]))
        bottom = top
    return made


def _rings(layers: Sequence[Layer], samples: npt.NDArray[np.int64], picked: int, length: int) -> Columns:
    areas = _areas(samples, layers, length)
    kept = [place for place, value in enumerate(areas["value"]) if value == picked and picked >= 0]
    return {name: [areas[name][place] for place in kept] for name in ("xs", "ys")}


def _row(store: Store, item: Block, lives: Lives, leaks: Sequence[int]) -> dict[str, object]:
    first, last = _task(store, lives, item.born), _task(store, lives, item.dies)
    until = "never freed" if item.value in leaks else "the end" if item.dies is None else last
    return {
        **value_link(store, item.value),
        "value": item.value,
        "size": bytes_text(item.size_bytes),
        "role": store.values.role[item.value].replace("_", " "),
        "from": first or "the start",
        "until": until or "the end",
        "leak": item.value in leaks,
    }


def _task(store: Store, lives: Lives, place: int | None) -> str:
    return store.tasks.name[lives.order[place]] if place is not None and 0 <= place < len(lives.order) else ""


def pick(frame: MemoryFrame, x: float, y: float) -> tuple[int, int]:
    """The value and the position at a point: -1 for a band of several values, or for none."""
    if not len(frame.samples) or not 0 <= x < frame.length:
        return -1, -1
    place = max(0, int(np.searchsorted(frame.samples, x, side="right")) - 1)
    height = 0.0
    for layer in frame.layers:
        height += float(layer.heights[place])
        if 0 <= y <= height:
            return layer.value, int(frame.samples[place])
    return -1, int(frame.samples[place])


def legend(frame: MemoryFrame) -> list[dict[str, object]]:
    """The roles that are drawn."""
    roles = dict.fromkeys(layer.role for layer in frame.layers if layer.heights.any())
    names = {"leak": "never freed", "inside": "inside of regions"}
    return [{"colour": ROLE_COLOURS.get(role, 6), "label": names.get(role, role.replace("_", " "))} for role in roles]


def sampled_text(frame: MemoryFrame) -> str:
    """What the picture leaves out."""
    if frame.length <= len(frame.samples):
        return ""
    each = -(-frame.length // len(frame.samples))
    return f"{count_text(frame.length)} positions: of every {each} the one is drawn where most is live"


def values_by_role(layers: Sequence[Layer]) -> Mapping[str, float]:
    """The largest height of every role, for tests."""
    found: dict[str, Floats] = {}
    for layer in layers:
        found[layer.role] = found.get(layer.role, np.zeros(len(layer.heights))) + layer.heights
    return {role: float(heights.max()) for role, heights in found.items()}
