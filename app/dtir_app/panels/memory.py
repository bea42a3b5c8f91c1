"""Memory: what lives when on a rank, by plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.frames.memory import MemoryFrame, legend, memory_frame, pick, sampled_text
from dtir_app.living import Lives, lives_of, totals
from dtir_app.panels.base import Cell, Desk, Figure, Kind, Row, choice, choose
from dtir_app.panels.sides import plan_of
from dtir_app.planning import NotPlanned, Planned, base_of
from dtir_app.selection import of_task, of_value
from dtir_app.store import Store
from dtir_app.text import bytes_text, count_text, plural, ranks_text
from dtir_app.views.memory import PALETTE, MemoryView

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

NAME = "memory"
CLASSES_LISTED = 200


class MemoryBar(Element):
    """Rank, peak, legend and limits."""

    _esm: ClassVar[str] = script("memorybar")


class MemorySide(Element):
    """What is live at the peak."""

    _esm: ClassVar[str] = script("memoryside")


class MemoryPanel:
    """The parts of the view."""

    def __init__(self, dark: bool) -> None:
        self._bar = MemoryBar(sizing_mode="stretch_width")
        self._side = MemorySide()
        self._view = MemoryView(dark)
        self.elements: dict[str, Element] = {"memorybar": self._bar, "memoryside": self._side}
        self.figures: dict[str, Figure] = {NAME: self._view}
        self.frame: MemoryFrame | None = None
        self.lives: Lives | None = None

    def draw(self, desk: Desk) -> None:
        """The memory of the chosen class of ranks."""
        store = desk.store
        plan = plan_of(desk)
        if store is None or not isinstance(plan, Planned):
            self.frame = self.lives = None
            self._bar.show({} if store is None else _without(plan))
            self._side.show({})
            desk.pen.write(NAME, self._view.blank)
            return
        one = min(max(0, choice(desk.state, NAME, "class", 0)), len(plan.classes) - 1)
        rank = plan.ranks.first_ranks()[one]
        self.lives = lives_for(store, plan, one)
        frame = memory_frame(store, self.lives, rank, desk.state.selection.value)
        self.frame = frame
        self._bar.show(_bar(store, plan, one, frame, self.lives))
        self._side.show(_side(frame, desk.state.selection.value))
        desk.pen.write(NAME, lambda: self._view.show(frame))


def lives_for(store: Store, plan: Planned, one: int) -> Lives:
    """What lives when on a class of ranks, made once a program."""
    base = base_of(store)
    base.memo.forget_oldest("lives", 16)
    return base.memo.made(("lives", plan.profile, one), lambda: lives_of(plan.made, one, plan.ranks.first_ranks()[one]))


def _without(plan: NotPlanned | None) -> dict[str, object]:
    if plan is None:
        return {"message": "Working out what lives when …", "busy": True}
    return {"message": "; ".join(f"{code}: {message}" for code, message in plan.reasons)}


def _bar(store: Store, plan: Planned, one: int, frame: MemoryFrame, lives: Lives) -> dict[str, object]:
    firsts, sizes = plan.ranks.first_ranks(), plan.ranks.sizes()
    ranks = [
        {"class": place, "label": _ranks_label(plan, place, sizes[place]), "on": place == one}
        for place in sorted(range(len(firsts)), key=lambda place: firsts[place])[:CLASSES_LISTED]
    ]
    limits = [sampled_text(frame)]
    if lives.unknown:
        limits.append(f"{plural(lives.unknown, 'value')} of unknown size left out")
    if len(firsts) > CLASSES_LISTED:
        limits.append(f"{count_text(len(firsts) - CLASSES_LISTED)} more classes of ranks are not listed")
    over = [(name, size) for name, size in frame.budgets if frame.peak_bytes > size]
    task = store.tasks.name[frame.peak_task] if frame.peak_task >= 0 else "the start"
    inputs = totals([block for block in lives.blocks if block.born < 0], {}, 0)[0]
    return {
        "ranks": ranks,
        "peak": bytes_text(frame.peak_bytes),
        "at": task,
        "at_key": f"node:{store.tasks.id[frame.peak_task]}" if frame.peak_task >= 0 else "",
        "inputs": bytes_text(inputs),
        "budgets": [f"{name} {bytes_text(size)}" for name, size in frame.budgets],
        "over": "; ".join(
            f"The peak is {bytes_text(frame.peak_bytes - size)} above the {name} of {bytes_text(size)}"
            for name, size in over
        ),
        "leaks": f"{plural(len(frame.leaks), 'value')} never freed" if frame.leaks else "",
        "legend": [{"colour": PALETTE[int(str(item["colour"]))], "label": item["label"]} for item in legend(frame)],
        "limit": "; ".join(text for text in limits if text),
        "note": "by plan, from the definition of a value to its last use on the rank; workspaces of libraries are not counted",
    }


def _ranks_label(plan: Planned, one: int, size: int) -> str:
    ranks = plan.ranks.ranks_of(one)
    return f"rank {ranks[0]}" if size == 1 else f"{plural(size, 'rank')}: {ranks_text(ranks, limit=4)}"


def _side(frame: MemoryFrame, picked: int) -> dict[str, object]:
    hidden = frame.live_count - len(frame.at_peak)
    return {
        "title": f"{plural(frame.live_count, 'value')} live at the peak",
        "rows": list(frame.at_peak),
        "picked": picked,
        "more": f"… {plural(hidden, 'smaller one')}" if hidden > 0 else "",
    }


def choose_class(context: Context, message: Message) -> None:
    """Another rank."""
    number = message.get("class")
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31:
        choose(context.state, NAME, **{"class": number})


def tapped(context: Context, message: Message) -> None:
    """A click selects the value of a layer; on a band of several values the task of the moment."""
    panel = context.painter.panel(NAME)
    x, y = message.get("x"), message.get("y")
    if not isinstance(panel, MemoryPanel) or panel.frame is None or panel.lives is None:
        return
    if not all(isinstance(item, (int, float)) and abs(item) < 1e18 for item in (x, y)):
        return
    value, position = pick(panel.frame, float(x), float(y))  # type: ignore[arg-type]
    if value >= 0:
        context.select(of_value(value))
    elif position > 0:
        context.select(of_task(panel.lives.order[position - 1]))


KIND = Kind(
    name=NAME,
    label="Memory",
    help="what lives when on a rank",
    fields=frozenset({"opened", "selection", "options"}),
    make=MemoryPanel,
    rows=(
        Row((Cell("memorybar"),)),
        Row(
            (
                Cell(
                    NAME, grows=True, label="Live bytes over the task list. The table beside it holds the peak as text."
                ),
                Cell("memoryside", width_px=330),
            )
        ),
    ),
    actions={"memory-class": choose_class, "memory-tap": tapped},
)
