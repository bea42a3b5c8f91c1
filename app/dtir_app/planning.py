"""The planned side of a program: its schedule on a machine profile, as lanes that pictures are made of.

Planned once a program and profile, in a worker, and kept with the program's columns. Ranks that do the same are one class of the
cost model, so that a thousand ranks cost what their classes do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dtir.cost.classes import RankClasses
from dtir.cost.critical import ClassTime, class_times
from dtir.cost.presets import load_preset
from dtir.cost.profile import MachineProfile
from dtir.cost.schedule import Schedule, make_schedule
from dtir.cost.spans import Stream
from dtir.ir.tasks import Loop, Region
from dtir.schema.result import Err
from dtir_app.frames.lanes import EMPTY, Floats, Ints, Lane, exposed, joined, make_lane
from dtir_app.store import Store

if TYPE_CHECKING:
    from dtir_app.library import Library

MOST_REPEATED = 20_000
"""Bars of further rounds of one loop that are drawn one by one."""

MOST_BARS = 500_000
"""No rounds are drawn one by one beyond so many bars of a class."""

Stretches = tuple[Floats, Floats]
"""Starts and ends, ascending."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassPlan:
    """What the ranks of one class do by plan.

    Args:
        compute, communication: their streams.
        exposed: when they communicate and compute nothing.
        critical: when they are on the critical path, by stream.
        times: sums.
    """

    compute: Lane
    communication: Lane
    exposed: Stretches
    critical: tuple[Stretches, Stretches]
    times: ClassTime


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A program on a machine.

    Args:
        profile: name of the profile.
        title: what it says of itself.
        made: the schedule.
        classes: of ranks, in the order of the cost model.
        makespan_s: from the first start to the last end.
        seconds: planned time of one execution of every task; NaN where there is none.
        waits: by task the longest wait for others, over all executions.
        exposed: by task what it costs beyond what hides it, over all executions.
        number: number of the schedule by task; -1 where it does not run.
        notes: what the times leave open.
    """

    profile: str
    title: str
    made: Schedule = field(repr=False)
    classes: tuple[ClassPlan, ...] = field(repr=False)
    makespan_s: float
    seconds: Floats = field(repr=False)
    waits: Mapping[int, float] = field(repr=False)
    exposed: Mapping[int, float] = field(repr=False)
    number: Ints = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> RankClasses:
        """Which ranks are of which class."""
        return self.made.classes


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """Why a program has no planned side."""

    profile: str
    reasons: tuple[tuple[str, str], ...]


def base_of(store: Store) -> Store:
    """The columns as they were read; those with a measured side share what was worked out for them."""
    base = store.memo.get("base")
    return base if isinstance(base, Store) else store


def plan_for(store: Store, profile: str, library: Library) -> Future[Planned | NotPlanned]:
    """The planned side, being made or made."""
    base = base_of(store)
    key = ("plan", profile)
    found = base.memo.get(key)
    if not isinstance(found, Future):
        found = base.memo[key] = library.work(lambda: make_planned(base, profile, library.profiles.find(profile)))
    return found  # type: ignore[return-value]


def make_planned(store: Store, profile: str, machine: MachineProfile | None = None) -> Planned | NotPlanned:
    """Plan a program; every reason when it cannot be put on a clock.

    Args:
        store: the program.
        profile: what the profile is called here.
        machine: the profile; the preset of that name when None.

    Raises:
        KeyError: there is no such preset.
    """
    checked = make_schedule(store.program, load_preset(profile) if machine is None else machine)
    if isinstance(checked, Err):
        return NotPlanned(profile, tuple((item.code, item.message) for item in checked.error))
    made = checked.value
    number = _numbers(store, made)
    back = np.full(int(number.max(initial=-1)) + 1, -1, dtype=np.int64)
    runs = np.flatnonzero(number >= 0)
    back[number[runs]] = runs
    times, exposures = class_times(made)
    seconds = np.full(len(store.tasks), np.nan)
    for place, exchange in made.exchanges.items():
        known = exchange.price.seconds
        if known is not None and back[place] >= 0:
            seconds[back[place]] = known
    for place, local in made.locals.items():
        if local.timed.seconds is not None and back[place] >= 0:
            seconds[back[place]] = local.timed.seconds
    return Planned(
        profile=profile,
        title=made.profile.title,
        made=made,
        classes=tuple(_classes(made, back, times)),
        makespan_s=made.makespan_s,
        seconds=seconds,
        waits={int(back[place]): item.waiting_s for place, item in exposures.items()},
        exposed={int(back[place]): item.exposed_s for place, item in exposures.items()},
        number=number,
        notes=_notes(made),
    )


def _numbers(store: Store, made: Schedule) -> Ints:
    """Number of the schedule by task of the store."""
    first = {region.id: store.scopes[place + 1].first_task for place, region in enumerate(store.program.regions)}
    number = np.full(len(store.tasks), -1, dtype=np.int64)
    for index in made.indexes:
        begin = first[index.scope.id] if isinstance(index.scope, Region) else 0
        number[begin : begin + len(index.tasks)] = np.arange(index.base, index.base + len(index.tasks))
    return number


def _notes(made: Schedule) -> tuple[str, ...]:
    unknown = sum(plan.timed.seconds is None and not plan.work.free for plan in made.locals.values())
    unknown += sum(exchange.price.seconds is None for exchange in made.exchanges.values())
    return (f"{unknown:,} tasks have no known time and are drawn as nothing",) if unknown else ()


@dataclass(slots=True)
class _Columns:
    """A lane in the making."""

    start: list[float] = field(default_factory=list[float])
    end: list[float] = field(default_factory=list[float])
    task: list[int] = field(default_factory=list[int])
    arrived: list[float] = field(default_factory=list[float])
    times: list[float] = field(default_factory=list[float])
    rounds: list[bool] = field(default_factory=list[bool])
    critical: list[bool] = field(default_factory=list[bool])

    def add(
        self, start: float, end: float, task: int, arrived: float, times: int, rounds: bool, critical: bool
    ) -> None:
        self.start.append(start)
        self.end.append(end)
        self.task.append(task)
        self.arrived.append(arrived)
        self.times.append(float(min(times, 10**300)))
        self.rounds.append(rounds)
        self.critical.append(critical)

    def repeat(self, begin: float, end: float, rounds: int) -> bool:
        """Draw what lies between two moments so many more times behind them; not where that would be too much."""
        first = len(self.start)
        slack = (end - begin) * 1e-9
        while first and self.start[first - 1] >= begin - slack:
            first -= 1
        last = len(self.start)
        if (last - first) * rounds > MOST_REPEATED:
            return False
        length = end - begin
        for place in range(first, last):
            self.times[place] /= rounds + 1
        for turn in range(1, rounds + 1):
            shift = turn * length
            for place in range(first, last):
                self.start.append(self.start[place] + shift)
                self.end.append(self.end[place] + shift)
                self.arrived.append(self.arrived[place] + shift)
                self.task.append(self.task[place])
                self.times.append(self.times[place])
                self.rounds.append(self.rounds[place])
                self.critical.append(self.critical[place])
        return True

    def stretches(self) -> Stretches:
        """When the critical path is here."""
        kept = [(start, end) for start, end, on in zip(self.start, self.end, self.critical, strict=True) if on]
        flat = np.array(sorted(kept), dtype=np.float64).reshape(-1, 2)
        return joined(flat[:, 0], flat[:, 1])

    def lane(self) -> Lane:
        if not self.start:
            return EMPTY
        return make_lane(self.start, self.end, self.task, self.arrived, self.times, self.rounds)


def _classes(made: Schedule, back: npt.NDArray[np.int64], times: Sequence[ClassTime]) -> list[ClassPlan]:
    spans = made.spans
    tasks = back.tolist()
    streams = [(_Columns(), _Columns()) for _ in range(made.classes.count)]
    marks: dict[tuple[int, int], list[float]] = {}
    critical = _critical(made)
    for place in range(len(spans)):
        stream = spans.stream[place]
        start, end = spans.start[place], spans.end[place]
        if stream == Stream.BOTH:
            for one in spans.classes[place]:
                if end > start:
                    _further_rounds(made, streams[one], marks, place, one, tasks, place in critical)
                marks.setdefault((spans.task[place], one), []).append(end)
            continue
        arrivals = spans.arrivals.get(place)
        for position, one in enumerate(spans.classes[place]):
            arrived = start if arrivals is None else arrivals[position]
            streams[one][stream].add(
                start, end, tasks[spans.task[place]], arrived, spans.times[place], False, place in critical
            )
    found: list[ClassPlan] = []
    for one, (compute, communication) in enumerate(streams):
        lanes = compute.lane(), communication.lane()
        paths = compute.stretches(), communication.stretches()
        found.append(ClassPlan(*lanes, exposed(lanes[1], lanes[0]), paths, times[one]))
    return found


def _further_rounds(
    made: Schedule,
    streams: tuple[_Columns, _Columns],
    marks: Mapping[tuple[int, int], Sequence[float]],
    place: int,
    one: int,
    tasks: Sequence[int],
    critical: bool,
) -> None:
    """The rounds of a loop that the schedule knows by their length alone: each as the last one before them, which is steady.

    Where there are too many of them, or their begin is not found, one bar stands for all.
    """
    spans = made.spans
    start, end, task = spans.start[place], spans.end[place], spans.task[place]
    begin, rounds = _round_before(made, marks.get((task, one), ()), task, start, end)
    if rounds and (sum(len(columns.start) for columns in streams) < MOST_BARS):
        drawn = [columns.repeat(begin, start, rounds) for columns in streams]
        if all(drawn):
            return
        streams = tuple(columns for columns, done in zip(streams, drawn, strict=True) if not done)  # type: ignore[assignment]
    for columns in streams:
        columns.add(start, end, tasks[task], start, spans.times[place], True, critical)


def _round_before(made: Schedule, marks: Sequence[float], number: int, start: float, end: float) -> tuple[float, int]:
    """Where the steady round begins, and how many like it follow; 0 when that is not known."""
    index = next(item for item in reversed(made.indexes) if item.base <= number)
    body = index.tasks[number - index.base].body
    trips = body.trip_count if isinstance(body, Loop) else None
    trips = made.options.trips if trips is None else trips
    for rounds in (trips - 1, trips - 2) if trips is not None and trips <= MOST_REPEATED else ():
        if rounds > 0:
            length = (end - start) / rounds
            if any(abs(mark - (start - length)) <= 1e-6 * length for mark in reversed(marks)):
                return start - length, rounds
    return 0.0, 0


def _critical(made: Schedule) -> frozenset[int]:
    """The spans of the critical path: from the one that ends last, each after the one that it waited for last."""
    spans = made.spans
    place = max(range(len(spans)), key=lambda number: spans.end[number], default=-1)
    found: set[int] = set()
    while place >= 0:
        found.add(place)
        place = spans.before[place]
    return frozenset(found)
