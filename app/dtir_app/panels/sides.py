"""Planned and measured: the two sides that timeline, traffic, memory and tables set against each other, and their choice.

Which profile and which run are compared is one choice for all panels: it lies in ``state.options["sides"]``.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, ClassVar

from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.measuring import Measured
from dtir_app.panels.base import Desk, choice, choose
from dtir_app.planning import DEFAULT_PROFILE, PROFILES, NotPlanned, Planned, plan_for
from dtir_app.state import State

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

SIDES = "sides"


class Sides(Element):
    """What is compared: a profile and a run."""

    _esm: ClassVar[str] = script("sides")


def profile_of(state: State) -> str:
    """The chosen machine profile."""
    found = choice(state, SIDES, "profile", DEFAULT_PROFILE)
    return found if found in PROFILES else DEFAULT_PROFILE


def run_of(desk: Desk) -> Measured | None:
    """The chosen run of the open program."""
    return None


def plan_of(desk: Desk) -> Planned | NotPlanned | None:
    """The planned side; None while it is being made: the panels are drawn anew when it is there.

    Raises:
        Exception: what planning raised, which is a fault of ours.
    """
    store = desk.store
    if store is None:
        return None
    future: Future[Planned | NotPlanned] = plan_for(store, profile_of(desk.state), desk.library)
    if not future.done():
        state = desk.state
        desk.later(future, lambda: choose(state, SIDES, ready=choice(state, SIDES, "ready", 0) + 1))
    return future.result() if future.done() else None


def sides_content(
    desk: Desk, plan: Planned | NotPlanned | None, run: Measured | None, *, planned: bool = True
) -> dict[str, object]:
    """What the element shows.

    Args:
        planned: whether the panel needs a machine profile for its planned side.
    """
    if desk.store is None:
        return {}
    chosen = profile_of(desk.state)
    reasons = [f"{code}: {message}" for code, message in plan.reasons] if isinstance(plan, NotPlanned) else []
    return {
        "profiles": [{"name": name, "on": name == chosen} for name in PROFILES] if planned else [],
        "planned": plan.title if isinstance(plan, Planned) else "",
        "busy": plan is None and planned,
        "reasons": reasons,
        "notes": list(plan.notes) if isinstance(plan, Planned) else [],
        "runs": [],
        "measured": run.label if run is not None else "",
        "run_notes": list(run.notes) if run is not None else [],
    }


def choose_profile(context: Context, message: Message) -> None:
    """Plan with another profile."""
    if message.get("profile") in PROFILES:
        choose(context.state, SIDES, profile=message["profile"])


ACTIONS = {"plan-profile": choose_profile}
"""Registered with the first panel; they work in all of them."""
