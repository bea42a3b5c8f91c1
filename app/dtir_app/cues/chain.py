"""Values and tasks of a neighbourhood, left to right: tiles for values, shapes of families for tasks, arrows between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dtir.analysis.states import State
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.layout import arrange

TILE_W, TILE_H, NODE_W, NODE_H = 104.0, 50.0, 100.0, 36.0
COLUMN, ROW = 138.0, 82.0
TOP = 16.0


@dataclass(frozen=True, slots=True)
class Ghost:
    """A proposed task on the way from a value to a task, or from a task to a value.

    Args:
        code: what a picture writes on it.
        text: below the code.
        value: the value that it takes (before) or makes (after).
        task: the task that follows, or that precedes; -1 for none (behind an output).
        before: whether it stands between the value and the task.
    """

    code: str
    text: str
    value: int
    task: int
    before: bool


@dataclass(slots=True)
class Chain:
    """A neighbourhood laid out.

    Args:
        values, tasks: the middle of every tile and shape, by number.
        ghosts: the middle of every ghost.
        edges: drawn arrows as (from value or task, to task or value) with their ends.
    """

    values: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])
    tasks: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])
    ghosts: list[tuple[Ghost, tuple[float, float]]] = field(default_factory=list[tuple[Ghost, tuple[float, float]]])


def lay_out(case: Case, tasks: Iterable[int], ghosts: Sequence[Ghost] = (), extra: Iterable[int] = ()) -> Chain:
    """Places for tasks with all that they read and make; `extra` values stand for themselves."""
    chosen = sorted(set(tasks))
    items: list[tuple[str, int]] = []
    number: dict[tuple[str, int], int] = {}

    def add(kind: str, which: int) -> int:
        if (kind, which) not in number:
            number[kind, which] = len(items)
            items.append((kind, which))
        return number[kind, which]

    edges: list[tuple[int, int]] = []
    by_edge = {(ghost.value, ghost.task, ghost.before): at for at, ghost in enumerate(ghosts)}

    def join(first: tuple[str, int], second: tuple[str, int], edge: tuple[int, int, bool]) -> None:
        start = add(*first)
        if edge in by_edge:
            middle = add("ghost", by_edge[edge])
            edges.append((start, middle))
            start = middle
        edges.append((start, add(*second)))

    for value in extra:
        add("value", value)
    for task in chosen:
        for value in dict.fromkeys(case.operands(task)):
            join(("value", value), ("task", task), (value, task, True))
        add("task", task)
        for value in dict.fromkeys(case.outputs(task)):
            join(("task", task), ("value", value), (value, task, False))
    for at, ghost in enumerate(ghosts):
        if ("ghost", at) not in number and ("value", ghost.value) in number:
            start = number["value", ghost.value]
            edges.append((start, add("ghost", at)))
    # The layout wants items listed in an order in which they may run.
    order = _topological(len(items), edges)
    place = {item: at for at, item in enumerate(order)}
    source = np.array([place[a] for a, _ in edges], dtype=np.int64)
    destination = np.array([place[b] for _, b in edges], dtype=np.int64)
    layout = arrange(len(items), source, destination)
    chain = Chain()
    for item, (kind, which) in enumerate(items):
        at = place[item]
        x = COLUMN * float(layout.level[at]) + TILE_W / 2
        y = TOP + ROW * float(layout.lane[at]) + TILE_H / 2
        if kind == "value":
            chain.values[which] = (x, y)
        elif kind == "task":
            chain.tasks[which] = (x, y)
        else:
            chain.ghosts.append((ghosts[which], (x, y)))
    return chain


def _topological(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    after: dict[int, list[int]] = {}
    waiting = [0] * count
    for a, b in edges:
        after.setdefault(a, []).append(b)
        waiting[b] += 1
    ready = [item for item in range(count) if not waiting[item]]
    found: list[int] = []
    while ready:
        item = ready.pop(0)
        found.append(item)
        for other in after.get(item, ()):
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return found + [item for item in range(count) if item not in set(found)]


def draw_arrows(
    case: Case,
    picture: Picture,
    chain: Chain,
    *,
    wrong: Iterable[tuple[int, int, bool]] = (),
    faded: Iterable[int] = (),
) -> None:
    """Arrows between tiles and shapes; `wrong` are red ones as (value, task, before the task)."""
    red, pale = set(wrong), set(faded)
    through = {(ghost.value, ghost.task, ghost.before): place for ghost, place in chain.ghosts}
    for task, (x, y) in chain.tasks.items():
        pairs = [(value, True) for value in dict.fromkeys(case.operands(task))]
        pairs += [(value, False) for value in dict.fromkeys(case.outputs(task))]
        for value, before in pairs:
            if value not in chain.values:
                continue
            vx, vy = chain.values[value]
            start = (vx + TILE_W / 2, vy) if before else (x + NODE_W / 2, y)
            end = (x - NODE_W / 2, y) if before else (vx - TILE_W / 2, vy)
            edge = (value, task, before)
            stops = [start, end]
            if edge in through:
                gx, gy = through[edge]
                picture.line([start, (gx - NODE_W / 2, gy)], tone="accent", dashed=True, arrow=True)
                stops = [(gx + NODE_W / 2, gy), end]
            tone = "bad" if edge in red else "accent" if edge in through else "muted"
            _arrow(picture, stops[0], stops[1], tone, dashed=edge in through and edge not in red, faded=task in pale)
    for ghost, (gx, gy) in chain.ghosts:
        if ghost.task < 0 and ghost.value in chain.values:
            vx, vy = chain.values[ghost.value]
            _arrow(picture, (vx + TILE_W / 2, vy), (gx - NODE_W / 2, gy), "accent", dashed=True)


def _arrow(
    picture: Picture,
    start: tuple[float, float],
    end: tuple[float, float],
    tone: str,
    *,
    dashed: bool = False,
    faded: bool = False,
) -> None:
    thick = 3 if tone == "bad" else 1.5
    if abs(start[1] - end[1]) < 1:
        picture.line([start, end], tone=tone, thick=thick, dashed=dashed, arrow=True, faded=faded)
        return
    bend = max(10.0, min(34.0, (end[0] - start[0]) * 0.6))
    points = [start, (start[0] + bend, start[1]), (end[0] - bend, end[1]), end]
    picture.line(points, tone=tone, thick=thick, dashed=dashed, arrow=True, curve=True, faded=faded)


def draw_tasks(
    case: Case,
    picture: Picture,
    chain: Chain,
    *,
    wrong: Iterable[int] = (),
    good: Iterable[int] = (),
    faded: Iterable[int] = (),
) -> None:
    """Tasks in the shapes of their families, and the proposed ones."""
    red, green, pale = set(wrong), set(good), set(faded)
    for task, (x, y) in chain.tasks.items():
        picture.node(
            x - NODE_W / 2,
            y - NODE_H / 2,
            NODE_W,
            NODE_H,
            family=int(case.store.tasks.family[task]),
            code=case.task_code(task),
            text=case.task_name(task),
            key=case.task_key(task),
            faded=task in pale,
            tone="bad" if task in red else "good" if task in green else "",
            note=case.task_name(task),
        )
    for ghost, (x, y) in chain.ghosts:
        picture.node(
            x - NODE_W / 2, y - NODE_H / 2, NODE_W, NODE_H, family=1, code=ghost.code, text=ghost.text, ghost=True,
            note=f"proposed: {ghost.code} {ghost.text}",
        )  # fmt: skip
    if chain.ghosts:
        picture.explain("dashed", "accent", "proposed")


def draw_tiles(
    case: Case,
    picture: Picture,
    chain: Chain,
    states: dict[int, State] | None = None,
    *,
    wrong: Iterable[int] = (),
    faded: Iterable[int] = (),
) -> None:
    """Values as tiles: hatched along every axis over which a reduction is pending, cut where an axis splits them."""
    red, pale = set(wrong), set(faded)
    for value, (x, y) in chain.values.items():
        state = (states or {}).get(value) or shown_state(case, value)
        tile(case, picture, value, x - TILE_W / 2, y - TILE_H / 2, state, wrong=value in red, faded=value in pale)


def shown_state(case: Case, value: int) -> State | None:
    """The state that is known of a value, else the declared one."""
    known = case.state(value)
    return known.state if known is not None else case.declared(value)


def tile(
    case: Case,
    picture: Picture,
    value: int,
    x: float,
    y: float,
    state: State | None,
    *,
    wrong: bool = False,
    faded: bool = False,
) -> None:
    """One value."""
    name, shape = case.value_name(value), case.store.values.shape[value]
    layout = state_words(state)
    picture.rect(
        x, y, TILE_W, TILE_H, fill="plain", stroke="bad" if wrong else "muted", thick=3 if wrong else 1.2, round=4,
        faded=faded, says=f"{name} {shape}: {layout}", key=case.value_key(value),
    )  # fmt: skip
    if state is not None:
        for number, axis in enumerate(state.partial):
            tone = f"axis-{case.axis_number(axis)}"
            picture.rect(x + 1, y + 1, TILE_W - 2, TILE_H - 2, stroke="none", hatch=tone, turn=number % 4, faded=faded)
        for number, axis in enumerate(state.partial):
            tone = f"axis-{case.axis_number(axis)}"
            op = state.op.value if state.op is not None else "sum"
            sign = "Σ" if op == "sum" else op
            picture.badge(
                x + TILE_W - 20 - 44 * number, y + 1, f"{sign} {axis}", tone=tone, says=f"pending {op} over {axis}"
            )
            picture.explain("hatch", tone, f"pending {op} over {axis}")
    back = bool(state is not None and state.partial)
    if back:
        picture.rect(x + 7, y + 10, TILE_W - 14, 31, fill="plain", stroke="none", faded=faded)
    picture.text(x + TILE_W / 2, y + 18, name, anchor="middle", mono=True, bold=True, most=TILE_W - 14, faded=faded)
    picture.text(x + TILE_W / 2, y + 34, layout, anchor="middle", tone="muted", size=10, most=TILE_W - 12, faded=faded)


def state_words(state: State | None) -> str:
    """A state in a few words: ``[dp, ·]``, ``replicated``."""
    if state is None:
        return "layout unknown"
    parts: list[str] = []
    if any(state.dims):
        parts.append(f"[{', '.join('+'.join(axes) or '·' for axes in state.dims)}]")
    if state.op is not None:
        parts.append(f"pending {state.op.value}")
    if state.varying:
        parts.append("per rank")
    if state.at:
        parts.append("at " + ", ".join(f"{axis}={place}" for axis, place in state.at))
    return " ".join(parts) or "replicated"
