"""Run: choose how a program is run here, follow it, and compare the runs that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from dtir.execute.record import RunRecord
from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.frames.clock import seconds_text
from dtir_app.panels.base import Cell, Desk, Kind, Row, choice, choose
from dtir_app.panels.sides import SIDES, attach, run_of, runs_here
from dtir_app.planning import base_of
from dtir_app.running import (
    MOST_PROCESSES,
    MOST_REPETITIONS,
    Asked,
    Obstacle,
    Possible,
    Running,
    obstacles,
    possible_backends,
)
from dtir_app.seating import LONGEST, WAYS, Seating, seating
from dtir_app.store import Store

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

NAME = "run"
MOST_AT_ONCE = 4
"""Runs of a server at a time."""

_running: list[Running] = []


class RunBox(Element):
    """The form, the progress and the runs."""

    _esm: ClassVar[str] = script("run")


class RunPanel:
    """The parts of the view."""

    def __init__(self, dark: bool) -> None:
        self._box = RunBox()
        self.elements: dict[str, Element] = {"runbox": self._box}
        self.figures: dict[str, Any] = {}
        self.running: Running | None = None
        self.base: Store | None = None

    def draw(self, desk: Desk) -> None:
        """The form for the open program."""
        store = desk.store
        if store is None:
            self._box.show({})
            return
        base = base_of(store)
        here = self.running if self.running is not None and self.base is base else None
        known = _facts(desk, base)
        chosen = desk.state.options.get(NAME, {})
        self._box.show(_content(desk, base, chosen, known, here))

    def close(self) -> None:
        """The page is gone: nothing goes on running for it."""
        if self.running is not None:
            self.running.cancel()


def _facts(desk: Desk, base: Store) -> tuple[tuple[Possible, ...], tuple[Obstacle, ...]] | None:
    """Back ends of this machine, and what stands against the program; None while that is looked at."""
    key = ("run-facts",)
    found = base.memo.get(key)
    if not isinstance(found, Future):
        found = base.memo[key] = desk.library.work(lambda: (possible_backends(), obstacles(base.program)))
    if not found.done():
        desk.later(found, lambda: choose(desk.state, NAME, ready=choice(desk.state, NAME, "ready", 0) + 1))
    return found.result() if found.done() else None


def asked_of(chosen: Mapping[str, Any], backends: Iterable[Possible], base: Store) -> tuple[Asked, Seating | None]:
    """A run as the form has it, and where its ranks are to live; None where its back end has one process."""
    backend, ranks = chosen.get("backend", "numpy"), base.mesh.size
    several = any(item.processes for item in backends if item.name == backend)
    processes = min(ranks, chosen.get("processes") or 2)
    seats = (
        seating(backend, chosen.get("way", "blocks"), chosen.get("written", ""), ranks, processes, MOST_PROCESSES)
        if several
        else None
    )
    return Asked(
        backend,
        seats.binding.processes if seats is not None and seats.binding is not None else processes if several else None,
        chosen.get("repetitions", 5),
        chosen.get("warmup", 1),
        chosen.get("isolated", False),
        chosen.get("skip_local", False),
        binding=seats.binding.to_json() if seats is not None and seats.binding is not None else None,
    ), seats


def _content(
    desk: Desk,
    base: Store,
    form: Mapping[str, Any],
    known: tuple[tuple[Possible, ...], tuple[Obstacle, ...]] | None,
    running: Running | None,
) -> dict[str, object]:
    asked, seats = asked_of(form, known[0] if known is not None else (), base)
    backends = [] if known is None else [
        {"name": item.name, "ok": item.ok, "reason": item.reason, "on": item.name == asked.backend, "processes": item.processes}
        for item in known[0]
    ]  # fmt: skip
    chosen = choice(desk.state, SIDES, "run", "")
    measured = run_of(desk)
    active = running is not None and not running.ended
    state: dict[str, object] = {}
    if running is not None:
        state = {
            "active": active,
            "doing": running.doing,
            "done": running.done,
            "total": running.total,
            "text": _progress(running),
            "refused": [list(item) for item in running.refused] if running.ended else [],
            "cancelled": running.cancelled,
        }
    return {
        "program": base.name,
        "ranks": base.mesh.size,
        "looking": known is None,
        "backends": backends,
        "obstacles": []
        if known is None
        else [[item.code, item.message, item.hint] for item in standing(known[1], asked.skip_local)],
        "asked": {
            "processes": asked.processes or min(2, base.mesh.size),
            "repetitions": asked.repetitions,
            "warmup": asked.warmup,
            "isolated": asked.isolated,
            "skip_local": asked.skip_local,
        },
        "seats": {
            "ways": [
                {"name": name, "label": label, "on": name == form.get("way", "blocks")} for name, label in WAYS.items()
            ],
            "written": form.get("written", ""),
            "text": seats.text,
            "problem": seats.problem,
        }
        if seats is not None
        else {},
        "most": {"processes": min(MOST_PROCESSES, base.mesh.size), "repetitions": MOST_REPETITIONS},
        "running": state,
        "runs": [
            {
                "key": item.key,
                "label": item.label,
                "on": item.key == chosen,
                "elapsed": _elapsed(item.record),
                "findings": _findings(item.record),
            }
            for item in runs_here(desk)
        ],
        "shown": measured.label if measured is not None else "",
        "summary": _summary(base, measured) if measured is not None else [],
    }


def standing(against: tuple[Obstacle, ...], skip_local: bool) -> list[Obstacle]:
    """What stands against a run as it is asked for."""
    return [item for item in against if not (item.local and skip_local)]


def _progress(running: Running) -> str:
    if running.ended:
        return "cancelled" if running.cancelled else "not run" if running.refused else "done"
    return f"step {running.done:,} of {running.total:,}" if running.total else running.doing


def _elapsed(record: RunRecord) -> str:
    times = sorted(int(item) for item in record.totals.get("elapsed_ns", ()))
    return seconds_text(times[len(times) // 2] / 1e9) if times else "–"


def _findings(record: RunRecord) -> str:
    counts: dict[str, int] = {}
    for item in record.findings:
        counts[str(item.get("severity"))] = counts.get(str(item.get("severity")), 0) + 1
    return ", ".join(f"{number} {name}" for name, number in counts.items()) or "no findings"


def _summary(base: Store, measured: Any) -> list[dict[str, str]]:
    record = measured.record
    checks = [
        {
            "label": f"{check.name} against {check.source}",
            "value": "agrees" if not check.wrong else f"{check.wrong:,} of {check.elements:,} elements differ",
            "bad": "yes" if check.wrong else "",
        }
        for check in record.values[:20]
    ]
    return [*checks, *({"label": "note", "value": note, "bad": ""} for note in measured.notes)]


# -- what a person does ----------------------------------------------------------------------------------------------------------


def _whole(message: Message, name: str, low: int, high: int, default: int) -> int:
    value = message.get(name)
    return min(high, max(low, value)) if isinstance(value, int) and not isinstance(value, bool) else default


def set_choice(context: Context, message: Message) -> None:
    """Another back end or number in the form."""
    known = {item.name for item in possible_names(context)}
    changes: dict[str, object] = {}
    if message.get("backend") in known:
        changes["backend"] = message["backend"]
    if "processes" in message:
        changes["processes"] = _whole(message, "processes", 1, MOST_PROCESSES, 2)
    if "repetitions" in message:
        changes["repetitions"] = _whole(message, "repetitions", 1, MOST_REPETITIONS, 5)
    if "warmup" in message:
        changes["warmup"] = _whole(message, "warmup", 0, MOST_REPETITIONS, 1)
    for name in ("isolated", "skip_local"):
        if name in message:
            changes[name] = bool(message[name])
    if message.get("way") in WAYS:
        changes["way"] = message["way"]
    if isinstance(message.get("written"), str):
        changes["written"] = message["written"][:LONGEST]
    if changes:
        choose(context.state, NAME, **changes)


def possible_names(context: Context) -> tuple[Possible, ...]:
    """The back ends that are known by now."""
    found = base_of(context.store).memo.get(("run-facts",))
    return found.result()[0] if isinstance(found, Future) and found.done() else ()


def start(context: Context, message: Message) -> None:
    """Run the program."""
    panel = context.painter.panel(NAME)
    desk, base = context.painter.desk, base_of(context.store)
    facts = base.memo.get(("run-facts",))
    if not isinstance(panel, RunPanel) or not isinstance(facts, Future) or not facts.done():
        return
    backends, against = facts.result()
    chosen = context.state.options.get(NAME, {})
    name = chosen.get("backend", "numpy")
    busy = panel.running is not None and not panel.running.ended
    _running[:] = [item for item in _running if not item.ended]
    against = standing(against, chosen.get("skip_local", False))
    if against or busy or not any(item.ok and item.name == name for item in backends) or len(_running) >= MOST_AT_ONCE:
        return
    asked, seats = asked_of(chosen, backends, base)
    if seats is not None and seats.binding is None:
        return
    panel.base = base
    panel.running = Running(base.program, asked, partial(_told, panel, desk, base))
    _running.append(panel.running)
    choose(context.state, NAME, ready=choice(context.state, NAME, "ready", 0) + 1)


def _told(panel: RunPanel, desk: Desk, base: Store) -> None:
    """From the thread of the run: the rest is done in the event loop."""
    done: Future[None] = Future()
    done.set_result(None)
    desk.later(done, lambda: _news(panel, desk, base))


def _news(panel: RunPanel, desk: Desk, base: Store) -> None:
    running = panel.running
    if running is not None and running.ended and running.record is not None:
        record, running.record = running.record, None
        running.doing = "done"
        attach(desk, base, record, f"run here at {datetime.now():%H:%M:%S}")
    choose(desk.state, NAME, ready=choice(desk.state, NAME, "ready", 0) + 1)


def cancel(context: Context, message: Message) -> None:
    """End the run."""
    panel = context.painter.panel(NAME)
    if isinstance(panel, RunPanel) and panel.running is not None:
        panel.running.cancel()
        choose(context.state, NAME, ready=choice(context.state, NAME, "ready", 0) + 1)


KIND = Kind(
    name=NAME,
    label="Run",
    help="run the program here, and compare runs",
    fields=frozenset({"opened", "options"}),
    make=RunPanel,
    rows=(Row((Cell("runbox", grows=True),)),),
    actions={"run-set": set_choice, "run-start": start, "run-cancel": cancel},
)
