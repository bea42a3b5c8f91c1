"""Traffic: who sends how much to whom, planned and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.frames.flows import Flows, Units, planned_flows, process_units, rank_units
from dtir_app.frames.traffic import (
    MODES,
    TrafficFrame,
    detail,
    left_out_text,
    measured_behind,
    pairs,
    square_of,
    sums,
    tasks_behind,
    traffic_frame,
    units_text,
)
from dtir_app.measuring import Measured
from dtir_app.panels.base import Cell, Desk, Figure, Kind, Row, choice, choose
from dtir_app.panels.sides import Sides, run_of, sides_content
from dtir_app.planning import base_of
from dtir_app.selection import task_of
from dtir_app.store import Store
from dtir_app.text import bytes_text, plural
from dtir_app.views.traffic import TrafficView

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

NAME = "traffic"


class TrafficBar(Element):
    """Mode, scale and sums."""

    _esm: ClassVar[str] = script("trafficbar")


class TrafficSide(Element):
    """The picked cell, and the pairs as a table."""

    _esm: ClassVar[str] = script("trafficside")


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the square shows."""

    frame: TrafficFrame
    flows: Flows
    mask: npt.NDArray[np.bool_]


class TrafficPanel:
    """The parts of the view."""

    def __init__(self, dark: bool) -> None:
        wide = {"sizing_mode": "stretch_width"}
        self._sides = Sides(**wide)
        self._bar = TrafficBar(**wide)
        self._side = TrafficSide()
        self._view = TrafficView(dark)
        self.elements: dict[str, Element] = {
            "trafficsides": self._sides,
            "trafficbar": self._bar,
            "trafficside": self._side,
        }
        self.figures: dict[str, Figure] = {NAME: self._view}

    def draw(self, desk: Desk) -> None:
        """The square of the tasks that the filters keep."""
        store = desk.store
        if store is None:
            for element in self.elements.values():
                element.show({})
            desk.pen.write(NAME, self._view.blank)
            return
        run = run_of(desk)
        mode = choice(desk.state, NAME, "mode", "planned")
        only = bool(choice(desk.state, NAME, "only", False))
        task = task_of(store, desk.state.selection)
        mask = desk.mask(store)
        if only and task >= 0:
            mask = np.arange(len(store.tasks)) == task
        flows = flows_of(store, units_of(store, run, mode))
        steps = steps_of(store, run)
        square = square_of(flows, mask, run, steps)
        picked = choice(desk.state, NAME, "cell", None)
        picked = picked if picked is not None and max(picked) < flows.units.count else None
        frame = traffic_frame(square, mode, picked)
        self._sides.show(sides_content(desk, None, run, planned=False))
        self._bar.show(_bar(store, frame, flows, run, only, task, desk.state.filters.active))
        self._side.show(_side(store, frame, flows, mask, run, steps, picked))
        desk.pen.write(NAME, lambda: self._view.show(frame))


def units_of(store: Store, run: Measured | None, mode: str) -> Units:
    """Ranks; processes where bytes were counted between them, and that is what is asked for."""
    if mode != "planned" and run is not None and run.processes > 1:
        return process_units(run.process_of)
    return rank_units(store.mesh.size)


def flows_of(store: Store, units: Units) -> Flows:
    """What every task sends, made once a program."""
    base = base_of(store)
    key = ("flows", units.noun, units.of_rank.tobytes() if units.noun == "process" else b"")
    base.memo.forget_oldest("flows", 3)
    return base.memo.made(key, lambda: planned_flows(base, units))


def steps_of(store: Store, run: Measured | None) -> dict[int, int]:
    """Task by index of a step of the run."""
    return {} if run is None else {step: task for step, task in run.tasks_of_steps.items() if task < len(store.tasks)}


def _bar(
    store: Store, frame: TrafficFrame, flows: Flows, run: Measured | None, only: bool, task: int, filtered: bool
) -> dict[str, object]:
    senders = sum(1 for flow in flows.flows)
    notes = [units_text(flows.units), "collectives as rings in member order" if frame.mode != "measured" else ""]
    limit = "; ".join(text for text in (left_out_text(flows), "tasks are filtered" if filtered else "") if text)
    problem = ""
    if frame.problem:
        problem = _not_measured(run)
    return {
        "modes": [{"name": name, "on": name == frame.mode} for name in MODES],
        "scale": [{"colour": colour, "text": text} for colour, text in frame.scale],
        "total": bytes_text(frame.total_bytes) if not frame.problem else "–",
        "note": "; ".join(note for note in notes if note),
        "limit": limit,
        "problem": problem,
        "only": only,
        "selected": store.tasks.name[task] if task >= 0 else "",
        "senders": plural(senders, "task"),
    }


def _not_measured(run: Measured | None) -> str:
    if run is None:
        return "Not measured: no run of this program is open. Open a run record, or run it."
    if run.processes < 2:
        return "Not measured: one process held all ranks, so that nothing crossed a wire."
    return "Not measured: this back end cannot count bytes on the wire."


def _side(
    store: Store,
    frame: TrafficFrame,
    flows: Flows,
    mask: npt.NDArray[np.bool_],
    run: Measured | None,
    steps: dict[int, int],
    picked: tuple[int, int] | None,
) -> dict[str, object]:
    content: dict[str, object] = {
        "noun": flows.units.noun,
        "pairs": pairs(frame.square),
        "sums": sums(frame.square),
        "picked": list(picked) if picked else None,
    }
    if picked is not None:
        one, other = picked
        counted = [item for item in measured_behind(flows.units, run, steps, one, other) if mask[item[0]]]
        found = tasks_behind(store, flows, mask, one, other, counted)
        content["cell"] = {
            "title": f"{flows.units.noun} {flows.units.label(one)} → {flows.units.label(other)}",
            "detail": detail(frame.square, one, other),
            "tasks": found,
            "count": plural(len(found), "task"),
        }
    return content


def set_mode(context: Context, message: Message) -> None:
    """Planned, measured or their ratio."""
    if message.get("mode") in MODES:
        choose(context.state, NAME, mode=message["mode"], cell=None)


def pick_cell(context: Context, message: Message) -> None:
    """A click on a cell lists the tasks behind it."""
    one, other = message.get("one"), message.get("other")
    known = all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in (one, other))
    choose(context.state, NAME, cell=(one, other) if known else None)


def only_selected(context: Context, message: Message) -> None:
    """The selected task alone, or all that the filters keep."""
    choose(context.state, NAME, only=bool(message.get("on")))


KIND = Kind(
    name=NAME,
    label="Traffic",
    help="who sends how many bytes to whom, planned and measured",
    fields=frozenset({"opened", "selection", "filters", "options"}),
    make=TrafficPanel,
    rows=(
        Row((Cell("trafficsides"),)),
        Row((Cell("trafficbar"),)),
        Row(
            (
                Cell(NAME, grows=True, label="Bytes from rank to rank. The tables beside it hold the same."),
                Cell("trafficside", width_px=300),
            )
        ),
    ),
    actions={"traffic-mode": set_mode, "traffic-cell": pick_cell, "traffic-only": only_selected},
)
