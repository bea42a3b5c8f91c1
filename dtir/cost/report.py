"""The result of planning: everything that follows from a schedule, and what its numbers leave open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.executions import region_executions
from dtir.cost.critical import ClassTime, Exposure, Step, class_times, critical_class, critical_path
from dtir.cost.memory import Peak, memory_by_class
from dtir.cost.schedule import Schedule
from dtir.cost.sizes import is_undivided
from dtir.cost.traffic import Traffic, axes_of, by_axis, by_level, executions
from dtir.ir.tasks import Branch, Loop, Region


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that planning found; `dtir.cost.report_json` gives it as plain data."""

    made: Schedule = field(repr=False)
    path: tuple[Step, ...] = field(repr=False)
    times: tuple[ClassTime, ...] = field(repr=False)
    exposures: dict[int, Exposure] = field(repr=False)
    peaks: tuple[Peak, ...] = field(repr=False)
    counted: dict[int, int] = field(repr=False)
    executions: dict[int, int | None] = field(repr=False)
    axes: dict[int, tuple[str, ...]] = field(repr=False)
    traffic: dict[str, Traffic] = field(repr=False)
    levels: dict[str, float] = field(repr=False)
    notes: tuple[str, ...] = ()
    unknown: int = 0

    @property
    def critical(self) -> int:
        """The class of ranks that ends last."""
        return critical_class(self.made)

    @property
    def exposed_communication_s(self) -> float:
        """Makespan minus busy compute of the critical rank (SEMANTICS 3.5)."""
        if not self.times:
            return 0.0
        return max(0.0, self.made.makespan_s - self.times[self.critical].compute_s)

    @property
    def bubble_fraction(self) -> float:
        """Part of the ranks' time in which they neither compute nor send."""
        sizes, makespan = self.made.classes.sizes(), self.made.makespan_s
        if makespan <= 0:
            return 0.0
        idle = sum(mine.idle_s * size for mine, size in zip(self.times, sizes, strict=True))
        return idle / (makespan * sum(sizes))


def make_report(made: Schedule) -> Report:
    """Everything that follows from a schedule."""
    times, exposures = class_times(made)
    counted = executions(made)
    reader = ExchangeReader(made.program)
    mesh = made.program.mesh
    axes = {number: axes_of(exchange, reader, mesh) for number, exchange in made.exchanges.items()}
    regions = {region.id: region for region in made.program.regions}
    by_region = region_executions(made.program.tasks, regions)
    runs: dict[int, int | None] = {
        number: by_region[index.scope.id] if isinstance(index.scope, Region) else 1
        for number, index, _ in made.numbered()
    }
    peaks = tuple(memory_by_class(made))
    notes, unknown = _notes(made, peaks)
    return Report(
        made,
        tuple(critical_path(made)),
        tuple(times),
        exposures,
        peaks,
        counted,
        runs,
        axes,
        by_axis(made, counted, axes),
        by_level(made, counted),
        notes,
        unknown,
    )


# -- notes ----------------------------------------------------------------------------------------------------------------


def _notes(made: Schedule, peaks: Sequence[Peak]) -> tuple[tuple[str, ...], int]:
    """What the numbers leave open, and how many tasks have no known time."""
    unknown: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    for plan in made.locals.values():
        if plan.timed.seconds is None:
            unknown[plan.timed.reason] += 1
        remarks.update(plan.timed.notes)
    for exchange in made.exchanges.values():
        for price in exchange.prices:
            if price.seconds is None:
                unknown.update(price.notes or ("communication without a model",))
            else:
                remarks.update(price.notes)
    notes = [f"{count} × no known time, counted as nothing: {reason}" for reason, count in unknown.most_common()]
    notes += _control_notes(made)
    notes += [f"{count} × {text}" for text, count in remarks.most_common()]
    notes += _form_notes(made)
    limit = made.profile.rates.memory_bytes
    most = max((peak.peak_bytes for peak in peaks), default=0)
    if limit is not None and most > limit:
        notes.append(f"the peak of {most} bytes does not fit into the {limit} bytes of a rank")
    missing = max((peak.unknown for peak in peaks), default=0)
    if missing:
        notes.append(f"{missing} × size not known, left out of memory")
    return tuple(notes), sum(unknown.values())


def _control_notes(made: Schedule) -> list[str]:
    loops = branches = 0
    for _, _, task in made.numbered():
        match task.body:
            case Loop(trip_count=None):
                loops += 1
            case Branch(regions=regions) if len(regions) > 1:
                branches += 1
            case _:
                pass
    found: list[str] = []
    if loops:
        trips = made.options.trips
        counted = "counted once" if trips is None else f"counted {trips} times, as was said"
        found.append(f"{loops} × loop whose trip count the data decide: {counted} (--trips says otherwise)")
    if branches:
        found.append(f"{branches} × branch that the data choose: the dearest is counted")
    return found


def _form_notes(made: Schedule) -> list[str]:
    found: list[str] = []
    attributes = made.program.attributes
    if is_undivided(made.program):
        found.append("the module is not partitioned: times and memory are those of the whole program on every rank")
    operations = [task.operation for _, _, task in made.numbered()]
    if attributes.get("hlo.module") is not None and not any(item.name == "fusion" for item in operations):
        found.append("nothing is fused yet: memory traffic of each operation counts on its own, an upper bound")
    return found
