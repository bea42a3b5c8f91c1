"""Planned and measured: the two sides that timeline, traffic, memory and tables set against each other, and their choice.

Which profile and which run are compared is one choice for all panels: it lies in ``state.options["sides"]``. The columns of the open
program are replaced by the same with times and findings of the two sides (`dtir_app.timing`) when one of them is there.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dtir.execute.record import RecordError, RunRecord
from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.measuring import Measured, digest_of, make_measured
from dtir_app.panels.base import Desk, choice, choose
from dtir_app.planning import NotPlanned, Planned, base_of, plan_for
from dtir_app.profiles import ProfileError
from dtir_app.runs import Attached, refusal_text
from dtir_app.state import Notice
from dtir_app.store import Store
from dtir_app.timing import TwoSides, sides_of, with_sides

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

SIDES = "sides"
DROPPED = "dropped here"


class Sides(Element):
    """What is compared: a profile and a run."""

    _esm: ClassVar[str] = script("sides")


def profile_of(desk: Desk) -> str:
    """The chosen machine profile."""
    profiles = desk.library.profiles
    found = choice(desk.state, SIDES, "profile", profiles.first)
    return found if found in profiles.names else profiles.first


def run_of(desk: Desk) -> Measured | None:
    """The chosen run of the open program; None while it is being worked out, too."""
    store, key = desk.store, choice(desk.state, SIDES, "run", "")
    if store is None or not key:
        return None
    found = base_of(store).memo.get(("run", key))
    if isinstance(found, Future) and found.done() and found.exception() is None:
        measured = found.result()
        return measured if isinstance(measured, Measured) else None
    return None


def plan_of(desk: Desk) -> Planned | NotPlanned | None:
    """The planned side; None while it is being made: the panels are drawn anew when it is there."""
    store = desk.store
    if store is None:
        return None
    future: Future[Planned | NotPlanned] = plan_for(store, profile_of(desk), desk.library)
    if not future.done() or _made(store).key != _wanted(desk).key:
        desk.later(future, lambda: settle(desk))
    return future.result() if future.done() else None


def _made(store: Store) -> TwoSides:
    return sides_of(store)


def _wanted(desk: Desk) -> TwoSides:
    """The sides that are there of those that are chosen."""
    store = desk.store
    plan = None
    if store is not None:
        future = base_of(store).memo.get(("plan", profile_of(desk)))
        if isinstance(future, Future) and future.done() and future.exception() is None:
            found = future.result()
            plan = found if isinstance(found, Planned) else None
    return TwoSides(plan, run_of(desk))


def settle(desk: Desk) -> None:
    """Let everything show the sides that are there now: tables, findings, inspector, panels."""
    state, store = desk.state, desk.store
    if store is None:
        return
    state.camera = "stay"
    ready = choice(state, SIDES, "ready", 0) + 1
    options = {**state.options, SIDES: {**state.options.get(SIDES, {}), "ready": ready}}
    fresh = with_sides(store, _wanted(desk))
    changes: dict[str, object] = {"options": options}
    if fresh is not store and state.opened is not None:
        changes["opened"] = replace(state.opened, store=fresh, findings=fresh.findings)
        if state.finding >= len(fresh.findings):
            changes["finding"] = -1
    state.param.update(**changes)


def runs_here(desk: Desk) -> tuple[Attached, ...]:
    """The runs of the open program."""
    digest = choice(desk.state, SIDES, "digest", "")
    return desk.library.runs.of(digest) if digest else ()


def sides_content(
    desk: Desk, plan: Planned | NotPlanned | None, run: Measured | None, *, planned: bool = True
) -> dict[str, object]:
    """What the element shows.

    Args:
        planned: whether the panel needs a machine profile for its planned side.
    """
    if desk.store is None:
        return {}
    chosen, chosen_run = profile_of(desk), choice(desk.state, SIDES, "run", "")
    reasons = [f"{code}: {message}" for code, message in plan.reasons] if isinstance(plan, NotPlanned) else []
    return {
        "profiles": [{"name": name, "on": name == chosen} for name in desk.library.profiles.names] if planned else [],
        "planned": plan.title if isinstance(plan, Planned) else "",
        "busy": plan is None and planned,
        "reasons": reasons,
        "notes": list(plan.notes) if isinstance(plan, Planned) else [],
        "runs": [{"key": item.key, "label": item.label, "on": item.key == chosen_run} for item in runs_here(desk)],
        "measured": run.label if run is not None else "",
        "run_notes": list(run.notes) if run is not None else [],
        "can_run": desk.state.view != "run",
    }


# -- runs ---------------------------------------------------------------------------------------------------------------------------


def opened(desk: Desk) -> None:
    """Another program was opened: show its first run, where there is one."""
    store, runs = desk.store, desk.library.runs
    if store is None:
        return
    base = base_of(store)
    problems = desk.library.profiles.problems
    if problems and not desk.state.notice.tone:
        lines = tuple(("", text, "") for text in problems)
        desk.state.notice = Notice("warning", "A machine profile that was given cannot be used.", lines)
    if not runs.any:
        return

    def look() -> str:
        runs.read()
        return base.program.digest

    future = desk.library.work(look)
    desk.later(future, lambda: _known(desk, base, future.result()))


def _known(desk: Desk, base: Store, digest: str) -> None:
    store, runs = desk.store, desk.library.runs
    if store is None or base_of(store) is not base:
        return
    choose(desk.state, SIDES, digest=digest)
    mine = runs.of(digest)
    if mine:
        choose_run(desk, mine[0].key)
        return
    problems = list(runs.problems)
    problems += [refusal_text(item.record, item.label, base.name, digest) for item in runs.others(digest)[:4]]
    if problems and not desk.state.notice.tone:
        lines = tuple(("", text, "") for text in problems)
        desk.state.notice = Notice("warning", "No run record that was given belongs to this program.", lines)


def dropped(desk: Desk, name: str, content: bytes) -> None:
    """A run record was dropped: it becomes a run of the open program, or is refused with both digests."""
    store = desk.store
    if store is None:
        desk.state.notice = Notice("error", f"{name} is a run record: open its program first.")
        return
    base = base_of(store)

    def read() -> tuple[RunRecord | str, str]:
        try:
            return RunRecord.from_json(content), base.program.digest
        except RecordError as error:
            return str(error), ""

    future = desk.library.work(read)
    desk.state.busy = f"Reading {name} …"
    desk.later(future, lambda: _dropped(desk, base, name, future.result()))


def _dropped(desk: Desk, base: Store, name: str, found: tuple[RunRecord | str, str]) -> None:
    desk.state.busy = ""
    record, digest = found
    if isinstance(record, str):
        desk.state.notice = Notice("error", f"{name} could not be read: {record}")
        return
    if digest_of(record) != digest:
        desk.state.notice = Notice("error", refusal_text(record, name, base.name, digest))
        return
    attach(desk, base, record, DROPPED, name=name)


def dropped_profile(desk: Desk, name: str, content: bytes) -> None:
    """A machine profile was dropped: it is planned with from now on."""
    try:
        known = desk.library.profiles.add(name, content)
    except ProfileError as error:
        desk.state.notice = Notice("error", f"{error}.")
        return
    choose(desk.state, SIDES, profile=known)
    desk.state.notice = Notice("info", f"{desk.library.profiles.find(known).title} is what is planned with now.")


def attach(desk: Desk, base: Store, record: RunRecord, when: str, *, name: str = "") -> None:
    """Keep a run of a program, and compare with it when that program is still open."""
    kept = desk.library.runs.add(record, when, name=name)
    store = desk.store
    if store is not None and base_of(store) is base:
        choose(desk.state, SIDES, digest=digest_of(record))
        choose_run(desk, kept.key)
        desk.state.notice = Notice("info", f"{kept.label} is the measured side now.")


def choose_run(desk: Desk, key: str) -> None:
    """Compare with a run; none with an empty key."""
    store = desk.store
    if store is None:
        return
    base = base_of(store)
    choose(desk.state, SIDES, run=key)
    kept = next((item for item in runs_here(desk) if item.key == key), None)
    if kept is None:
        settle(desk)
        return
    memo_key = ("run", key)
    if memo_key not in base.memo:
        base.memo.forget_oldest("run", 4)
        base.memo[memo_key] = desk.library.work(lambda: make_measured(base, kept.record, key=key, when=kept.when))
    plan_for(base, profile_of(desk), desk.library)
    future = base.memo[memo_key]
    assert isinstance(future, Future)
    desk.later(future, lambda: settle(desk))
    desk.later(plan_for(base, profile_of(desk), desk.library), lambda: settle(desk))


# -- what a person does ----------------------------------------------------------------------------------------------------------


def choose_profile(context: Context, message: Message) -> None:
    """Plan with another profile."""
    if message.get("profile") in context.painter.desk.library.profiles.names:
        choose(context.state, SIDES, profile=message["profile"])


def pick_run(context: Context, message: Message) -> None:
    """Compare with another run, or with none."""
    choose_run(context.painter.desk, str(message.get("run", ""))[:40])


ACTIONS = {"plan-profile": choose_profile, "run-choose": pick_run}
"""Registered with the first panel; they work in all of them."""
