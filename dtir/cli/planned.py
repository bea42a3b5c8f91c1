"""The cost model's plan of a run: `dtir.cost` and `dtir.execute` do not know each other, so they meet here."""

from __future__ import annotations

import hashlib

from dtir.cost.profile import MachineProfile, Standing
from dtir.cost.profile_json import profile_json
from dtir.cost.schedule import Schedule, make_schedule
from dtir.cost.spans import Stream
from dtir.execute.forecast import Forecast, PlannedSpans, StepForecast
from dtir.execute.steps import ExecPlan
from dtir.schema.result import Checked, Err, Ok

MOST_SPANS = 200_000
"""A schedule is kept for the run record up to so many spans; its times are given all the same."""


def forecast(plan: ExecPlan, profile: MachineProfile) -> Checked[Forecast]:
    """The planned times of every step of a run.

    Returns:
        `Err` when the program cannot be put on a clock.
    """
    made = make_schedule(plan.program, profile)
    if isinstance(made, Err):
        return made
    return Ok(_Forecaster(plan, made.value).make())


class _Forecaster:
    """Finds the steps of a plan in a schedule of the same program: by scope and task."""

    def __init__(self, plan: ExecPlan, made: Schedule) -> None:
        self._made = made
        steps = {(scope.name, step.task.id): step.index for scope in plan.scopes for step in scope.steps}
        self._step_of = {
            number: steps[index.name, task.id]
            for number, index, task in made.numbered()
            if (index.name, task.id) in steps
        }

    def make(self) -> Forecast:
        """The forecast."""
        made = self._made
        notes: list[str] = []
        spans: PlannedSpans | None = None
        if len(made.spans) <= MOST_SPANS:
            spans = self._spans()
        else:
            notes.append(f"the planned schedule has {len(made.spans)} spans, more than {MOST_SPANS}: it is not kept")
        source = made.profile.source
        digest = hashlib.blake2b(profile_json(made.profile).encode(), digest_size=20).hexdigest()
        profile = {
            "id": made.profile.id,
            "standing": source.standing.value,
            "date": source.date,
            "source": source.text,
            "digest": digest,
            "library": made.profile.host.get("library") if source.standing is Standing.MEASURED else None,
        }
        return Forecast(profile, self._times(), 1e6 * made.makespan_s, tuple(notes), spans)

    def _times(self) -> dict[int, StepForecast]:
        made = self._made
        found: dict[int, StepForecast] = {}
        for number, exchange in made.exchanges.items():
            if number in self._step_of:
                price = exchange.price
                us = None if price.seconds is None else 1e6 * price.seconds
                model = f"{price.model}, {price.algorithm}" if price.algorithm else price.model
                if us is None and price.notes:
                    model = f"none: {price.notes[0]}"
                found[self._step_of[number]] = StepForecast(us, model, price.noise)
        for number, local in made.locals.items():
            if number not in self._step_of:
                continue
            seconds = local.timed.seconds
            if local.by_class is not None and seconds is not None:
                seconds = max(local.by_class)
            model = f"roofline, {local.timed.bound}" if local.timed.bound else f"none: {local.timed.reason}"
            found[self._step_of[number]] = StepForecast(None if seconds is None else 1e6 * seconds, model)
        return found

    def _spans(self) -> PlannedSpans:
        made, spans = self._made, self._made.spans
        kept = [
            place
            for place in range(len(spans))
            if spans.task[place] in self._step_of
            and not (spans.stream[place] == Stream.BOTH and spans.end[place] == spans.start[place])
        ]
        arrivals = [spans.arrivals.get(place) for place in kept]
        by_class: list[list[int]] = [[] for _ in range(made.classes.count)]
        for rank in range(made.program.mesh.size):
            by_class[made.classes.of(rank)].append(rank)
        return PlannedSpans(
            tuple(self._step_of[spans.task[place]] for place in kept),
            tuple(1e6 * spans.start[place] for place in kept),
            tuple(1e6 * spans.end[place] for place in kept),
            tuple(None if item is None else tuple(1e6 * one for one in item) for item in arrivals),
            tuple(spans.times[place] for place in kept),
            tuple(spans.classes[place] for place in kept),
            tuple(tuple(ranks) for ranks in by_class),
        )
