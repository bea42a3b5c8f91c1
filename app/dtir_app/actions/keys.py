"""The keys: what each does, and how the help dialog lists them."""

from __future__ import annotations

from collections.abc import Callable

from dtir_app.actions import graphing, selecting
from dtir_app.actions.context import Context
from dtir_app.actions.paging import copy_link, set_view, toggle_gallery
from dtir_app.panels import timeline
from dtir_app.panels.base import Action
from dtir_app.state import VIEWS


def arrow(context: Context, key: str) -> None:
    """Walk along the edges, where the graph is in sight."""
    if context.state.view == "graph":
        graphing.walk(context, key)


def _view(name: str) -> Callable[[Context], None]:
    return lambda context: set_view(context, {"view": name})


def _camera(context: Context, in_time: Action, in_graph: Action) -> None:
    """Of the picture that is in sight."""
    (in_time if context.state.view == timeline.NAME else in_graph)(context, {})


def _step_out(context: Context) -> None:
    if context.state.place:
        context.go(context.state.place[:-1])


KEYS: dict[str, Callable[[Context], None]] = {
    "]": lambda context: selecting.next_finding(context, 1),
    "[": lambda context: selecting.next_finding(context, -1),
    "c": lambda context: selecting.next_communication(context, 1),
    "C": lambda context: selecting.next_communication(context, -1),
    "f": lambda context: _camera(context, timeline.focus, graphing.focus),
    "0": lambda context: _camera(context, timeline.fit, graphing.fit),
    **{str(number): _view(name) for number, name in enumerate(VIEWS[:9], 1)},
    "g": _view("graph"),
    "m": _view("mesh"),
    "t": _view("timeline"),
    "o": lambda context: toggle_gallery(context, {}),
    "e": lambda context: graphing.open_item(context, {}),
    "x": _step_out,
    ",": lambda context: graphing.step_instance(context, -1),
    ".": lambda context: graphing.step_instance(context, 1),
    "r": lambda context: graphing.toggle_repeats(context),
    "p": lambda context: graphing.pin(context),
    "n": lambda context: selecting.next_hit(context, 1),
    "N": lambda context: selecting.next_hit(context, -1),
    "u": lambda context: copy_link(context, {}),
    "Escape": lambda context: selecting.clear(context, {}),
}
KEYS_HELP = (
    ("/", "search"),
    ("?", "this help"),
    (" ".join(str(number) for number in range(1, len(VIEWS[:9]) + 1)), ", ".join(VIEWS[:9])),
    ("] [", "next, previous finding"),
    ("c C", "next, previous communication"),
    ("n N", "next, previous hit of the search"),
    ("← →", "to what the task waits for, to what waits for it"),
    ("↑ ↓", "within the level"),
    ("e x", "open the block, step out"),
    (", .", "previous, next instance of what repeats"),
    ("r", "all instances of what repeats, one again"),
    ("p Shift-click", "pin the selected task, the clicked one; let it go"),
    ("Alt-hover", "neighbours of what is under the pointer, as selecting it shows them"),
    ("b", "drag a box to zoom into, once more to move"),
    ("f 0", "selected task, whole picture"),
    ("g m t", "graph, mesh, timeline"),
    ("o", "open another program"),
    ("u", "copy a link"),
    ("Esc", "close, clear, step out"),
)
"""The keys as the help dialog lists them."""
