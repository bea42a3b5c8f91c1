"""In the graph: clicking, opening, folding, walking along the edges."""

from __future__ import annotations

from dtir_app.actions.context import Context, Message, whole
from dtir_app.frames.placing import Placed, pick
from dtir_app.scenes import Scene, entered_place, home_of, scene
from dtir_app.selection import NOTHING, of_task, task_of
from dtir_app.state import page_showing


def tapped(context: Context, x: float, y: float) -> None:
    """A click into the graph picture."""
    shown = context.painter.graph
    if context.state.store is None or shown.scene is None or shown.frame is None:
        return
    item = pick(shown.frame.placed, x, y)
    if item >= 0:
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


def fold(context: Context, message: Message) -> None:
    """Fold local work here, or show every task."""
    state, store = context.state, context.store
    folded = bool(message.get("folded"))
    task = task_of(store, state.selection)
    page = 0
    if task >= 0 and scene(store, state.place, folded).item_of(task) >= 0:
        page = page_showing(store, state.place, folded, task)
    state.param.update(folded={**state.folded, state.place: folded}, page=page, camera="go" if task >= 0 else "fit")


def graph_page(context: Context, message: Message) -> None:
    """Another part of a picture that is drawn in parts."""
    context.state.param.update(page=max(0, whole(message.get("page"))), camera="fit")


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
