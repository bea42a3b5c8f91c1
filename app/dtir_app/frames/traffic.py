"""The square of who sends how much to whom: planned, measured, or their ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dtir_app.frames.clock import ratio_text
from dtir_app.frames.flows import Flows, Units
from dtir_app.frames.ramps import DEAD_BAND, amount_colour, ratio_colour, text_on
from dtir_app.frames.rows import task_link
from dtir_app.measuring import Measured
from dtir_app.store import Store
from dtir_app.text import bytes_text, count_text, plural

MODES = ("planned", "measured", "ratio")
LISTED = 60
TEXT_UNITS = 16
"""Cells hold their numbers up to so many rows."""

Floats = npt.NDArray[np.float64]
Columns = dict[str, list[object]]


@dataclass(frozen=True, slots=True)
class Square:
    """Amounts by unit and unit.

    Args:
        units: rows (senders) and columns (receivers).
        planned: bytes by plan.
        measured: bytes of one repetition, counted on the wire; None where nothing was counted.
    """

    units: Units
    planned: Floats = field(repr=False)
    measured: Floats | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class TrafficFrame:
    """A picture.

    Args:
        square: the amounts.
        mode: which are shown.
        cells: one a pair of units that something is sent between, see `dtir_app.views.traffic`.
        blanks: pairs of which the mode says nothing, hatched.
        ticks: names of rows and columns, and their sums.
        rings: the picked cell.
        scale: begin, middle and end of the ramp, with colours.
        largest_bytes, total_bytes: of the mode.
        problem: why the mode shows nothing; empty when it does.
    """

    square: Square
    mode: str
    cells: Columns = field(repr=False)
    blanks: Columns = field(repr=False)
    ticks: Columns = field(repr=False)
    rings: Columns = field(repr=False)
    scale: tuple[tuple[str, str], ...]
    total_bytes: float
    problem: str = ""


def square_of(
    flows: Flows, mask: npt.NDArray[np.bool_], run: Measured | None, tasks_of_steps: dict[int, int]
) -> Square:
    """The amounts of the tasks that a mask keeps."""
    count = flows.units.count
    flat = np.zeros(count * count)
    for flow in flows.flows:
        if mask[flow.task]:
            flat[flow.cells] += flow.sent_bytes
    return Square(flows.units, flat.reshape(count, count), _measured(flows.units, mask, run, tasks_of_steps))


def _measured(
    units: Units, mask: npt.NDArray[np.bool_], run: Measured | None, tasks_of_steps: dict[int, int]
) -> Floats | None:
    """Bytes of one repetition between processes."""
    if run is None or units.noun != "process" or not run.record.backend.get("wire_bytes") or run.processes < 2:
        return None
    repetitions = run.record.options.get("repetitions", 1)
    times = repetitions if isinstance(repetitions, int) and repetitions > 0 else 1
    made = np.zeros((units.count, units.count))
    for entry in run.record.wire:
        task = tasks_of_steps.get(entry.step, -1)
        if task >= 0 and mask[task] and max(entry.process, entry.peer) < units.count:
            made[entry.process, entry.peer] += entry.sent_bytes / times
    return made


def traffic_frame(square: Square, mode: str, picked: tuple[int, int] | None) -> TrafficFrame:
    """The picture of a mode."""
    count, planned, measured = square.units.count, square.planned, square.measured
    problem = ""
    if mode != "planned" and measured is None:
        problem = "not measured"
    amounts = planned if mode == "planned" or measured is None else measured
    cells: dict[str, list[object]] = {name: [] for name in ("x", "y", "colour", "ink", "text", "title", "detail")}
    blanks: Columns = {"x": [], "y": []}
    positive = amounts[amounts > 0]
    smallest, largest = (float(positive.min()), float(positive.max())) if len(positive) else (0.0, 0.0)
    for one, other in np.argwhere((planned > 0) | (measured > 0 if measured is not None else False)).tolist():
        colour = _colour(square, mode, one, other, smallest, largest)
        if colour is None:
            blanks["x"].append(other)
            blanks["y"].append(one)
            continue
        cells["x"].append(other)
        cells["y"].append(one)
        cells["colour"].append(colour)
        cells["ink"].append(text_on(colour))
        cells["text"].append(_text(square, mode, one, other) if count <= TEXT_UNITS else "")
        cells["title"].append(f"{square.units.noun} {square.units.label(one)} → {square.units.label(other)}")
        cells["detail"].append(detail(square, one, other))
    if problem:
        blanks = {"x": [(count - 1) / 2], "y": [(count - 1) / 2]}
    rings: Columns = {"x": [], "y": []}
    if picked is not None and max(picked) < count:
        rings = {"x": [picked[1]], "y": [picked[0]]}
    return TrafficFrame(
        square,
        mode,
        cells if not problem else {name: [] for name in cells},
        blanks | {"size": [count if problem else 1] * len(blanks["x"])},
        _ticks(square.units, amounts, bool(problem)),
        rings,
        _scale(mode, smallest, largest),
        float(amounts.sum()) if not problem else 0.0,
        problem,
    )


def _colour(square: Square, mode: str, one: int, other: int, smallest: float, largest: float) -> str | None:
    planned = float(square.planned[one, other])
    measured = float(square.measured[one, other]) if square.measured is not None else None
    match mode:
        case "planned":
            return amount_colour(planned, largest, smallest) if planned > 0 else None
        case "measured":
            return amount_colour(measured, largest, smallest) if measured else None
        case _:
            return None if measured is None else ratio_colour(measured / planned if planned > 0 else float("inf"))


def _text(square: Square, mode: str, one: int, other: int) -> str:
    planned = float(square.planned[one, other])
    measured = float(square.measured[one, other]) if square.measured is not None else 0.0
    if mode == "ratio":
        return ratio_text(measured / planned) if planned > 0 else "new"
    return bytes_text(planned if mode == "planned" else measured)


def detail(square: Square, one: int, other: int) -> str:
    """Everything about a cell in words."""
    planned = float(square.planned[one, other])
    text = f"planned {bytes_text(planned)}"
    if square.measured is None:
        return f"{text}, not measured"
    measured = float(square.measured[one, other])
    text += f", measured {bytes_text(measured)}"
    if planned > 0:
        ratio = measured / planned
        text += f", {ratio_text(ratio)}" if abs(ratio - 1) > DEAD_BAND else ", as planned"
    return text


def _ticks(units: Units, amounts: Floats, blank: bool) -> Columns:
    made: list[tuple[float, float, str, str, str, str]] = []
    count = units.count
    step = max(1, -(-count // 32))
    across = max(1, -(-count // (16 if units.noun != "block" else 6)))  # names stand side by side there
    for unit in range(0, count, step):
        made.append((-0.7, unit, units.label(unit), "right", "middle", "name"))
    for unit in range(0, count, across):
        made.append((unit, -0.7, units.label(unit), "center", "bottom", "name"))
    if not blank:
        sent, received = amounts.sum(axis=1), amounts.sum(axis=0)
        for unit in range(0, count, step):
            made.append((count - 0.3, unit, bytes_text(float(sent[unit])), "left", "middle", "sum"))
        for unit in range(0, count, max(1, -(-count // 8))):
            made.append((unit, count - 0.3, bytes_text(float(received[unit])), "center", "top", "sum"))
    names = ("x", "y", "text", "align", "baseline", "look")
    return {name: [item[at] for item in made] for at, name in enumerate(names)}


def _scale(mode: str, smallest: float, largest: float) -> tuple[tuple[str, str], ...]:
    if mode == "ratio":
        steps = ((1 / 8, "÷8"), (1 / 2, "÷2"), (1.0, f"±{DEAD_BAND:.0%}"), (2.0, "×2"), (8.0, "×8"))
        return tuple((ratio_colour(ratio), text) for ratio, text in steps)
    if not smallest < largest:
        return ((amount_colour(1, 0, 0), bytes_text(largest)),) if largest > 0 else ()
    middle = (smallest * largest) ** 0.5
    return tuple((amount_colour(size, largest, smallest), bytes_text(size)) for size in (smallest, middle, largest))


def pairs(square: Square, limit: int = LISTED) -> list[dict[str, object]]:
    """The pairs that most is sent between, as rows of a table."""
    amounts = square.planned if square.measured is None else np.maximum(square.planned, square.measured)
    order = np.argsort(-amounts, axis=None, kind="stable")[:limit]
    found: list[dict[str, object]] = []
    for cell in order.tolist():
        one, other = divmod(int(cell), square.units.count)
        if amounts[one, other] <= 0:
            break
        planned = float(square.planned[one, other])
        measured = float(square.measured[one, other]) if square.measured is not None else None
        found.append(
            {
                "from": square.units.label(one),
                "to": square.units.label(other),
                "one": one,
                "other": other,
                "planned": bytes_text(planned),
                "measured": "not measured" if measured is None else bytes_text(measured),
                "ratio": "" if measured is None or not planned else ratio_text(measured / planned),
            }
        )
    return found


def sums(square: Square, limit: int = 64) -> list[dict[str, str]]:
    """What every unit sends and receives, planned and measured."""
    made: list[dict[str, str]] = []
    for unit in range(min(square.units.count, limit)):
        row = {
            "unit": square.units.label(unit),
            "sent": bytes_text(float(square.planned[unit].sum())),
            "received": bytes_text(float(square.planned[:, unit].sum())),
        }
        if square.measured is not None:
            row["measured_sent"] = bytes_text(float(square.measured[unit].sum()))
            row["measured_received"] = bytes_text(float(square.measured[:, unit].sum()))
        made.append(row)
    return made


def tasks_behind(
    store: Store,
    flows: Flows,
    mask: npt.NDArray[np.bool_],
    one: int,
    other: int,
    measured: Sequence[tuple[int, float]] = (),
) -> list[dict[str, object]]:
    """The tasks that send through a cell, most first, as links with bytes."""
    cell = one * flows.units.count + other
    found: dict[int, float] = {}
    for flow in flows.flows:
        if mask[flow.task]:
            place = int(np.searchsorted(flow.cells, cell))
            if place < len(flow.cells) and int(flow.cells[place]) == cell:
                found[flow.task] = float(flow.sent_bytes[place])
    counted = dict(measured)
    order = sorted({*found, *counted}, key=lambda task: -max(found.get(task, 0.0), counted.get(task, 0.0)))
    return [
        {
            **task_link(store, task),
            "planned": bytes_text(found.get(task, 0.0)),
            "measured": bytes_text(counted[task]) if task in counted else "",
        }
        for task in order[:LISTED]
    ]


def measured_behind(
    units: Units, run: Measured | None, tasks_of_steps: dict[int, int], one: int, other: int
) -> list[tuple[int, float]]:
    """What tasks were counted to send through a cell, in one repetition."""
    if run is None or units.noun != "process":
        return []
    times = max(1, int(run.record.options.get("repetitions", 1)))
    found: dict[int, float] = {}
    for entry in run.record.wire:
        if (entry.process, entry.peer) == (one, other) and entry.step in tasks_of_steps:
            task = tasks_of_steps[entry.step]
            found[task] = found.get(task, 0.0) + entry.sent_bytes / times
    return list(found.items())


def left_out_text(flows: Flows) -> str:
    """Tasks that the square lacks, with the reason."""
    return "; ".join(f"{plural(number, 'task')} left out: {reason}" for reason, number in flows.left_out)


def units_text(units: Units) -> str:
    """What a row stands for."""
    if units.noun == "block":
        return f"rows and columns are blocks of {count_text(units.ranks_each)} ranks"
    return f"rows send, columns receive; one a {units.noun}"
