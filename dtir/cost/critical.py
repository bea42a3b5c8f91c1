"""What follows from the spans: the critical path, what every class of ranks does with its time, and what is exposed."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from dtir.cost.schedule import Schedule
from dtir.cost.spans import Spans, Stream, Why

BECAUSE = {
    Why.BEGIN: "nothing before it",
    Why.DATA: "needs its result",
    Why.STREAM: "stream was taken",
    Why.ARRIVAL: "last to arrive",
    Why.CONTROL: "control flow",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One span of the critical path.

    Args:
        task: number of the task.
        classes: who takes part.
        stream: where it runs.
        start_s: of the first execution.
        seconds: of one execution.
        times: for how many executions the step stands.
        because: why it could not start earlier.
    """

    task: int
    classes: tuple[int, ...]
    stream: int
    start_s: float
    seconds: float
    times: int
    because: str


@dataclass(slots=True)
class ClassTime:
    """What one class of ranks does from the first start to the last end; `idle_s` is neither computing nor sending."""

    compute_s: float = 0.0
    communication_s: float = 0.0
    exposed_s: float = 0.0
    waiting_s: float = 0.0
    end_s: float = 0.0
    idle_s: float = 0.0


@dataclass(slots=True)
class Exposure:
    """What one communication task costs beyond what hides it, over all executions, on the rank where it is most."""

    exposed_s: float = 0.0
    waiting_s: float = 0.0
    last: int | None = None
    by_class: dict[int, float] = field(default_factory=dict[int, float])


def critical_path(made: Schedule) -> list[Step]:
    """From the first start to the last end, each step waiting for the one before. Marks of loops are left out: the steps
    inside stand for all their rounds (`times`)."""
    spans = made.spans
    if not len(spans):
        return []
    place = max(range(len(spans)), key=lambda number: spans.end[number])
    found: list[Step] = []
    while place >= 0:
        if spans.stream[place] != Stream.BOTH:
            found.append(
                Step(
                    spans.task[place],
                    spans.classes[place],
                    spans.stream[place],
                    spans.start[place],
                    spans.end[place] - spans.start[place],
                    spans.times[place],
                    BECAUSE[Why(spans.why[place])],
                )
            )
        place = spans.before[place]
    return found[::-1]


def longest_path_s(made: Schedule) -> float:
    """The makespan if streams were never taken: what dependencies alone need."""
    return max(made.spans.ideal, default=0.0)


def critical_class(made: Schedule) -> int:
    """The class that ends last."""
    spans = made.spans
    if not len(spans):
        return 0
    return spans.classes[max(range(len(spans)), key=lambda number: spans.end[number])][0]


def class_times(made: Schedule) -> tuple[list[ClassTime], dict[int, Exposure]]:
    """Times of every class, and the exposure of every communication task by number."""
    spans = made.spans
    times = [ClassTime() for _ in range(made.classes.count)]
    computing = _compute_intervals(spans, len(times))
    exposures: dict[int, Exposure] = {}
    for place in range(len(spans)):
        seconds, weight = spans.end[place] - spans.start[place], spans.times[place]
        for position, one in enumerate(spans.classes[place]):
            mine = times[one]
            mine.end_s = max(mine.end_s, spans.end[place])
            if spans.stream[place] == Stream.COMPUTE:
                mine.compute_s += seconds * weight
            elif spans.stream[place] == Stream.COMMUNICATION:
                exposed = seconds - _overlap(computing[one], spans.start[place], spans.end[place])
                exposed = exposed if exposed > 1e-9 * seconds else 0.0  # what is left of rounding
                waiting = spans.start[place] - spans.arrivals[place][position]
                mine.communication_s += seconds * weight
                mine.exposed_s += exposed * weight
                mine.waiting_s += waiting * weight
                _note(exposures.setdefault(spans.task[place], Exposure()), made, place, one, exposed, waiting)
    makespan = made.makespan_s
    for mine in times:
        # What is left of rounding is no idle time.
        idle = makespan - mine.compute_s - mine.exposed_s
        mine.idle_s = idle if idle > 1e-12 * makespan else 0.0
    for exposure in exposures.values():
        exposure.exposed_s = max(exposure.by_class.values(), default=0.0)
    return times, exposures


def _note(exposure: Exposure, made: Schedule, place: int, one: int, exposed: float, waiting: float) -> None:
    spans = made.spans
    weight = spans.times[place]
    exposure.by_class[one] = exposure.by_class.get(one, 0.0) + exposed * weight
    if waiting * weight > exposure.waiting_s:
        exposure.waiting_s = waiting * weight
        arrivals = spans.arrivals[place]
        late = max(range(len(arrivals)), key=lambda position: arrivals[position])
        meeting = made.meetings[spans.task[place]].all[spans.meeting[place]]
        exposure.last = meeting.ranks[late]


def _compute_intervals(spans: Spans, classes: int) -> list[tuple[list[float], list[float], list[float]]]:
    """Starts, ends and running sums of the compute spans of every class, in time order."""
    starts: list[list[float]] = [[] for _ in range(classes)]
    ends: list[list[float]] = [[] for _ in range(classes)]
    sums: list[list[float]] = [[0.0] for _ in range(classes)]
    for place in range(len(spans)):
        if spans.stream[place] == Stream.COMPUTE:
            (one,) = spans.classes[place]
            starts[one].append(spans.start[place])
            ends[one].append(spans.end[place])
            sums[one].append(sums[one][-1] + spans.end[place] - spans.start[place])
    return list(zip(starts, ends, sums, strict=True))


def _overlap(intervals: tuple[list[float], list[float], list[float]], start: float, end: float) -> float:
    """How much of an interval is covered by intervals that follow each other in time."""
    starts, ends, sums = intervals
    first, last = bisect_right(ends, start), bisect_right(starts, end)
    if first >= last:
        return 0.0
    covered = sums[last] - sums[first]
    covered -= max(0.0, start - starts[first])
    covered -= max(0.0, ends[last - 1] - end)
    return min(max(0.0, covered), end - start)
