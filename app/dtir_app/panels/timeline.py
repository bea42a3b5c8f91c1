"""The timeline: what runs when on which rank, planned and measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.frames import timeline_text
from dtir_app.frames.timeline import Frame, View, pick, timeline_frame
from dtir_app.measuring import Measured
from dtir_app.panels.base import Cell, Desk, Figure, Kind, Row, choice, choose
from dtir_app.panels.sides import ACTIONS, SIDES, Sides, plan_of, profile_of, run_of, sides_content
from dtir_app.planning import Planned, base_of
from dtir_app.selection import NOTHING, of_task, task_of
from dtir_app.views.timeline import TimelineView

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

NAME = "timeline"
EDGE = 0.02
CLOSEST_S = 1e-9


class TimelineBar(Element):
    """Sums, legend and limits."""

    _esm: ClassVar[str] = script("timelinebar")


class TimelineSide(Element):
    """The rows beside the figure."""

    _esm: ClassVar[str] = script("timelineside")


class TimelineTwin(Element):
    """The bars as a table."""

    _esm: ClassVar[str] = script("timelinetwin")


@dataclass(frozen=True, slots=True)
class Shown:
    """What is on the picture, for clicks into it."""

    key: tuple[object, ...]
    frame: Frame
    run: Measured | None


class TimelinePanel:
    """The parts of the view."""

    def __init__(self, dark: bool) -> None:
        wide = {"sizing_mode": "stretch_width"}
        self._sides = Sides(**wide)
        self._bar = TimelineBar(**wide)
        self._side = TimelineSide()
        self._twin = TimelineTwin(**wide)
        self._view = TimelineView(dark)
        self.elements: dict[str, Element] = {
            "timelinesides": self._sides,
            "timelinebar": self._bar,
            "timelineside": self._side,
            "timelinetwin": self._twin,
        }
        self.figures: dict[str, Figure] = {NAME: self._view}
        self.shown: Shown | None = None
        self._looked = 0
        self._moved = False

    def draw(self, desk: Desk) -> None:
        """The window that is looked at."""
        store = desk.store
        plan, run = plan_of(desk), run_of(desk)
        self._sides.show(sides_content(desk, plan, run))
        made = plan if isinstance(plan, Planned) else None
        if store is None or (made is None and run is None):
            self.shown = None
            self._bar.show(timeline_text.bar_without(plan) if store is not None else {})
            self._side.show({})
            self._twin.show({})
            desk.pen.write(NAME, self._view.blank)
            return
        key = (
            id(base_of(store)),
            profile_of(desk),
            run.key if run else "",
            choice(desk.state, NAME, "one_clock", None),
        )
        frame = timeline_frame(store, made, run, view_of(desk, key))
        if self._follow(desk, key, frame):
            return  # which drew once more
        self._moved |= self.shown is None or self.shown.key != key
        self.shown = Shown(key, frame, run)
        # Where the browser was last told to go: a window that it reports meanwhile is an older one.
        look = choice(desk.state, NAME, "look", (0, 0.0, 0.0))
        whole = (-EDGE * frame.end_s, frame.end_s * (1 + EDGE))
        self._bar.show(timeline_text.bar(store, desk.state.selection, frame, made, run))
        is_open = bool(choice(desk.state, NAME, "twin", False))
        self._side.show(timeline_text.side(frame, run is not None))
        self._twin.show(timeline_text.twin(store, desk.state.selection, is_open, frame))

        def write() -> None:
            self._view.show(frame)
            if look[0] and look[0] != self._looked:
                self._view.look(look[1], look[2])
            elif self._moved:
                self._view.look(*whole)
            self._moved = False
            self._looked = look[0]

        desk.pen.write(NAME, write)

    def _follow(self, desk: Desk, key: tuple[object, ...], frame: Frame) -> bool:
        """Go where an address asks to, once there is a picture."""
        asked = choice(desk.state, NAME, "asked", None)
        if asked is None:
            return False
        whole = (-EDGE * frame.end_s, frame.end_s * (1 + EDGE))
        first, last = whole if asked == "whole" else asked
        number = choice(desk.state, NAME, "look", (0, 0.0, 0.0))[0] + 1
        zoomed = asked != "whole"
        choose(desk.state, NAME, asked=None, window=(first, last), zoomed=zoomed, key=key, look=(number, first, last))
        return True


def is_part(frame: Frame, first: float, last: float) -> bool:
    """Whether a window shows less, or something else, than everything."""
    slack = 0.002 * frame.end_s
    return abs(first + EDGE * frame.end_s) > slack or abs(last - frame.end_s * (1 + EDGE)) > slack


def view_of(desk: Desk, key: tuple[object, ...]) -> View:
    """What is looked at: the window belongs to one program, profile and run, and is whole for another."""
    chosen = desk.state.options.get(NAME, {})
    first, last = chosen.get("window", (None, None)) if chosen.get("key") == key else (None, None)
    store = desk.store
    return View(
        first,
        last,
        chosen.get("width", 900.0),
        chosen.get("height", 420.0),
        chosen.get("opened", frozenset()),
        chosen.get("page", 0),
        chosen.get("one_clock"),
        task_of(store, desk.state.selection) if store is not None else -1,
        chosen.get("twin", False),
    )


# -- what a person does ----------------------------------------------------------------------------------------------------------


def _panel(context: Context) -> TimelinePanel | None:
    panel = context.painter.panel(NAME)
    return panel if isinstance(panel, TimelinePanel) and panel.shown is not None else None


def _number(value: object) -> float:
    return (
        float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15
        else math.nan
    )


def window(context: Context, message: Message) -> None:
    """The browser shows another window."""
    panel = _panel(context)
    first, last = _number(message.get("x0")), _number(message.get("x1"))
    width, height = _number(message.get("width")), _number(message.get("height"))
    if panel is None or not last - first > 0 or not (0 < width < 20_000 and 0 < height < 20_000):
        return
    assert panel.shown is not None
    zoomed = is_part(panel.shown.frame, first, last)
    choose(context.state, NAME, window=(first, last), zoomed=zoomed, width=width, height=height, key=panel.shown.key)


def _go(context: Context, first: float, last: float) -> None:
    """Show a window, and tell the browser."""
    panel = _panel(context)
    if panel is None or not last - first >= CLOSEST_S:
        return
    assert panel.shown is not None
    number = choice(context.state, NAME, "look", (0, 0.0, 0.0))[0] + 1
    zoomed = is_part(panel.shown.frame, first, last)
    choose(context.state, NAME, window=(first, last), zoomed=zoomed, key=panel.shown.key, look=(number, first, last))


def fit(context: Context, message: Message) -> None:
    """Everything."""
    panel = _panel(context)
    if panel is not None and panel.shown is not None:
        end = panel.shown.frame.end_s
        _go(context, -EDGE * end, end * (1 + EDGE))


def focus(context: Context, message: Message) -> None:
    """The selected task, with something around it."""
    panel = _panel(context)
    if panel is None or panel.shown is None or panel.shown.frame.first_of is None:
        return
    first, last = panel.shown.frame.first_of
    around = max(last - first, panel.shown.frame.end_s * 1e-4, CLOSEST_S) * 3
    _go(context, first - around, last + around)


def move(context: Context, message: Message) -> None:
    """In, out, left or right, by a button or a key."""
    panel = _panel(context)
    if panel is None or panel.shown is None:
        return
    first, last = panel.shown.frame.window
    span, middle = last - first, (first + last) / 2
    match message.get("way"):
        case "in":
            _go(context, middle - span / 4, middle + span / 4)
        case "out":
            _go(context, middle - span, middle + span)
        case "left":
            _go(context, first - span / 3, last - span / 3)
        case "right":
            _go(context, first + span / 3, last + span / 3)
        case _:
            return


def _at(context: Context, message: Message) -> int:
    panel = _panel(context)
    x, y, px = (_number(message.get(name)) for name in ("x", "y", "px"))
    if panel is None or panel.shown is None or math.isnan(x + y + px):
        return -1
    return pick(panel.shown.frame, panel.shown.run, x, y, px)


def tapped(context: Context, message: Message) -> None:
    """A click into the picture selects the task everywhere."""
    task = _at(context, message)
    if task >= 0:
        context.select(of_task(task))
    elif context.state.selection:
        context.state.param.update(selection=NOTHING, finding=-1, camera="stay")


def zoomed(context: Context, message: Message) -> None:
    """A double click goes to the bar."""
    task = _at(context, message)
    if task >= 0:
        context.select(of_task(task))
        x, panel = _number(message.get("x")), _panel(context)
        assert panel is not None
        assert panel.shown is not None
        first, last = panel.shown.frame.window
        span = (last - first) / 8
        _go(context, x - span / 2, x + span / 2)


def row(context: Context, message: Message) -> None:
    """Show the ranks of a row one by one, or fold them."""
    key = str(message.get("key", ""))[:40]
    opened = choice(context.state, NAME, "opened", frozenset())
    choose(context.state, NAME, opened=opened ^ {key})


def page(context: Context, message: Message) -> None:
    """Other rows."""
    number = message.get("page")
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31:
        choose(context.state, NAME, page=number)


def clock(context: Context, message: Message) -> None:
    """One axis for both sides, or one each."""
    choose(context.state, NAME, one_clock=bool(message.get("one")))


def twin(context: Context, message: Message) -> None:
    """The table of bars is opened or closed."""
    choose(context.state, NAME, twin=bool(message.get("open")))


KIND = Kind(
    name=NAME,
    label="Timeline",
    help="what runs when on which rank, planned and measured",
    fields=frozenset({"opened", "selection", "options"}),
    make=TimelinePanel,
    rows=(
        Row((Cell("timelinesides"),)),
        Row((Cell("timelinebar"),)),
        Row(
            (
                Cell("timelineside", width_px=158),
                Cell(NAME, grows=True, label="The timeline. The table below holds the bars of the window as rows."),
            )
        ),
        Row((Cell("timelinetwin"),)),
    ),
    actions={
        **ACTIONS,
        "timeline-window": window,
        "timeline-tap": tapped,
        "timeline-zoom": zoomed,
        "timeline-fit": fit,
        "timeline-focus": focus,
        "timeline-move": move,
        "timeline-row": row,
        "timeline-page": page,
        "timeline-clock": clock,
        "timeline-twin": twin,
    },
)

__all__ = ["KIND", "SIDES", "TimelinePanel"]
