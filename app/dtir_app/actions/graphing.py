"""In the graph: clicking, opening, folding, walking along the edges."""

from __future__ import annotations

from dataclasses import replace

from dtir_app.actions.context import Context, Message, whole
from dtir_app.frames.placing import Placed, pick
from dtir_app.frames.windows import Window
from dtir_app.frames.windows import whole as whole_of
from dtir_app.items import Folding, Scene
from dtir_app.repeats import repeats
from dtir_app.scenes import counterpart, entered_place, home_of, scope_of, showing
from dtir_app.selection import NOTHING, of_task, task_of
from dtir_app.state import Notice

PINS = 24


def tapped(context: Context, x: float, y: float, shift: bool = False) -> None:
    """A click into the graph picture: selects; with shift it pins besides what is selected."""
    shown = context.painter.graph
    if context.state.store is None or shown.scene is None or shown.frame is None:
        return
    if shown.frame.dense:
        nearer(context, x, y)
        return
    item = pick(shown.frame.placed, x, y)
    if item >= 0 and shift:
        pin(context, shown.scene.first_task(item))
    elif item >= 0:
        context.select(of_task(shown.scene.first_task(item)), camera="stay")
    elif context.state.selection:
        context.state.param.update(selection=NOTHING, finding=-1, camera="stay")


def opened_at(context: Context, x: float, y: float) -> None:
    """A double click into the graph picture."""
    shown = context.painter.graph
    if context.state.store is None or shown.scene is None or shown.frame is None:
        return
    item = pick(shown.frame.placed, x, y)
    target = entered_place(context.store, context.state.place, shown.scene, item) if item >= 0 else None
    if target is not None:
        context.go(target)
    else:
        tapped(context, x, y)  # two quick clicks at different places come as one double click


def open_item(context: Context, message: Message) -> None:
    """Open the selected block or region."""
    shown, state = context.painter.graph, context.state
    task = task_of(context.store, state.selection)
    item = shown.scene.item_of(task) if shown.scene is not None and task >= 0 else -1
    if shown.scene is not None and item >= 0:
        target = entered_place(context.store, state.place, shown.scene, item)
        if target is not None:
            context.go(target)


def enter_scope(context: Context, message: Message) -> None:
    """Show a region, or the program's own list."""
    number = whole(message.get("scope"))
    store = context.store
    if number == 0:
        context.go((), view="graph")
    elif 0 < number < len(store.scopes):
        span = store.scopes[number]
        outer = home_of(store, span.callers[0]) if span.callers else ()
        context.go((*outer, ("region", number)), view="graph")


def leave(context: Context, message: Message) -> None:
    """Step out to a place on the way."""
    context.go(context.state.place[: max(0, whole(message.get("depth")))])


def nearer(context: Context, x: float, y: float) -> None:
    """A click into densities: the surroundings of the point, a third as wide and high."""
    frame = context.painter.graph.frame
    if frame is None:
        return
    window = context.state.window or whole_of(frame.placed)
    dx, dy = max(window.width / 6, 3.5), max(window.height / 6, 3.0)
    context.state.param.update(window=Window(x - dx, x + dx, y - dy, y + dy), camera="box")


def moved(context: Context, window: Window) -> None:
    """The person moved the picture or zoomed; where all of it is in sight, no part is."""
    frame = context.painter.graph.frame
    if context.state.store is None or frame is None:
        return
    placed = frame.placed
    everything = window.covers(-0.45, -0.45) and window.covers(placed.width - 0.55, placed.height - 0.55)
    context.state.window = None if everything else window


def peeked(context: Context, item: int) -> None:
    """The pointer is on an item while Alt is held, or on none any more (-1)."""
    if context.state.store is not None:
        context.painter.draw_peek(item)


def fold(context: Context, message: Message) -> None:
    """Fold local work here, or show every task."""
    state = context.state
    _folded(context, replace(state.folding(), local=bool(message.get("folded"))))


def unfold_all(context: Context, message: Message) -> None:
    """Every task for itself."""
    _folded(context, Folding())


def repeat_fold(context: Context, message: Message) -> None:
    """Show one instance of a family, or all of them."""
    now, key = context.state.folding(), str(message.get("key", ""))
    if bool(message.get("folded")):
        others = {family.key for family in repeats(context.store, scope_of(context.state.place)).families}
        unfolded = now.unfolded if now.repeats else frozenset(others)
        _folded(context, replace(now, repeats=True, unfolded=unfolded - {key}))
    else:
        _folded(context, replace(now, unfolded=now.unfolded | {key}))


def repeat_step(context: Context, message: Message) -> None:
    """Show another instance of a family: the next or previous one, or the one with a number. The selection goes along."""
    shown, state = context.painter.graph.scene, context.state
    key = str(message.get("key", ""))
    here = next((item for item in shown.families if item.family.key == key and item.folded), None) if shown else None
    if here is None:
        return
    numbers = here.family.numbers
    wanted = message.get("number")
    step = whole(message.get("step"))
    number = (
        whole(wanted)
        if wanted is not None
        else numbers[max(0, min(len(numbers) - 1, numbers.index(here.number) + step))]
    )
    if number not in numbers:
        return
    folding = state.folding().showing({key: number})
    changes: dict[str, object] = {"folded": {**state.folded, state.place: folding}, "camera": "stay"}
    task = task_of(context.store, state.selection)
    if task >= 0 and shown is not None and shown.shows(task):
        other = counterpart(context.store, state.place, folding, task, key, number)
        if other >= 0:
            context.select(of_task(other), camera="stay")
            return
        if shown.family[shown.item_of(task)] >= 0:
            name = context.store.tasks.name[task]
            changes |= {"selection": NOTHING, "notice": Notice("info", f"{here.family.noun} {number} has no {name}.")}
    state.param.update(**changes)


def step_instance(context: Context, step: int) -> None:
    """The next or previous instance of the family of what is selected; of the innermost one where nothing is."""
    shown = context.painter.graph.scene
    folded = [item for item in shown.families if item.folded] if shown is not None else []
    if shown is None or not folded:
        return
    task = task_of(context.store, context.state.selection)
    item = shown.item_of(task) if task >= 0 else -1
    own = int(shown.family[item]) if item >= 0 else -1
    family = shown.families[own] if own >= 0 and shown.families[own].folded else folded[-1]
    repeat_step(context, {"key": family.family.key, "step": step})


def toggle_repeats(context: Context) -> None:
    """All instances, or one of each family again."""
    now = context.state.folding()
    if not repeats(context.store, scope_of(context.state.place)).families:
        context.state.notice = Notice("info", "Nothing repeats here.")
        return
    _folded(context, replace(now, repeats=not now.repeats or bool(now.unfolded), unfolded=frozenset()))


def pin(context: Context, task: int = -1) -> None:
    """Keep a task marked, the selected one unless another is given; once more lets it go."""
    state = context.state
    task = task_of(context.store, state.selection) if task < 0 else task
    if task >= 0:
        kept = tuple(other for other in state.pinned if other != task)
        state.pinned = kept if task in state.pinned else (*kept, task)[-PINS:]


def unpin(context: Context, message: Message) -> None:
    """Let go of all pinned tasks."""
    context.state.pinned = ()


def _folded(context: Context, folding: Folding) -> None:
    """Another folding here; the selection stays in sight."""
    state = context.state
    task = task_of(context.store, state.selection)
    folding = showing(context.store, state.place, folding, task)
    state.param.update(folded={**state.folded, state.place: folding}, window=None, camera="go" if task >= 0 else "fit")


def fit(context: Context, message: Message) -> None:
    """The whole picture."""
    context.state.camera = "fit"
    context.painter.draw_graph_selection()


def focus(context: Context, message: Message) -> None:
    """The selected task in the middle."""
    context.state.camera = "centre"
    context.painter.draw_graph_selection()


def walk(context: Context, key: str) -> None:
    """Along the edges: left to what is waited for, right to what waits, up and down within the level."""
    store, shown = context.store, context.painter.graph
    task = task_of(store, context.state.selection)
    if shown.scene is None or shown.frame is None:
        return
    placed = shown.frame.placed
    item = shown.scene.item_of(task) if task >= 0 else -1
    position = placed.position(item) if item >= 0 else -1
    if position < 0:
        if len(placed.items):
            context.select(of_task(shown.scene.first_task(int(placed.items[0]))))
        return
    near = _along(shown.scene, placed, item, key) if key in ("ArrowLeft", "ArrowRight") else _within(placed, item, key)
    if near >= 0:
        context.select(of_task(shown.scene.first_task(near)))


def _along(at: Scene, placed: Placed, item: int, key: str) -> int:
    """The nearest neighbour on the picture in a direction, so that the main line is followed and not a constant; -1 for none."""
    edges = at.folded
    near = edges.source[edges.destination == item] if key == "ArrowLeft" else edges.destination[edges.source == item]
    here = placed.position(item)
    spots = [
        (abs(float(placed.y[there] - placed.y[here])) + abs(float(placed.x[there] - placed.x[here])), other)
        for other in near.tolist()
        if (there := placed.position(other)) >= 0
    ]
    return min(spots)[1] if spots else -1


def _within(placed: Placed, item: int, key: str) -> int:
    """The item above or below in the same level; -1 at its end."""
    here = placed.position(item)
    same = [
        (float(placed.y[there]), other)
        for there, other in enumerate(placed.items.tolist())
        if placed.x[there] == placed.x[here] and placed.row[there] == placed.row[here]
    ]
    same.sort()
    at = [other for _, other in same].index(item) + (1 if key == "ArrowDown" else -1)
    return same[at][1] if 0 <= at < len(same) else -1
