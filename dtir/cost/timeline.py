"""The simulation: when every task starts and ends on every class of ranks.

Each rank has one compute and one communication stream; each stream runs its tasks in the rank's own order (SEMANTICS 3.5):

    start = max(end of what it waits for, stream free);   end = start + cost

and a collective starts when its *last* participant arrives. A span is one task on one class of ranks, or one group of a
collective; for each the simulation knows what it waited for last, which is what the critical path follows.

Calls run in place. Loops run as often as their trip count says, but are walked once, or twice where ranks differ (the
second round is steady); `times` of a span says for how many rounds it stands. Of branches the dearest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dtir.cost.index import ScopeIndex, communicates
from dtir.cost.meetings import Meeting, Meetings
from dtir.cost.spans import START, Ready, Spans, Stream, Why
from dtir.ir.ids import NodeId, RegionId
from dtir.ir.tasks import Branch, Call, Loop

LocalCost: TypeAlias = "float | tuple[float, ...] | None"
"""Seconds of a local task: for all classes, by class, or None for no work at all (it takes no place on the stream)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the simulation asks.

    Args:
        local: seconds of a local task by scope and position.
        meetings: who meets whom in a communication task, by scope and position.
        classes_of: classes among the ranks of a task.
        trips: how often a loop runs.
        is_leaf: whether a task is one piece of work (a fusion is, though it is a call).
    """

    local: Callable[[ScopeIndex, int], LocalCost]
    meetings: Callable[[ScopeIndex, int], Meetings]
    classes_of: Callable[[ScopeIndex, int], tuple[int, ...]]
    trips: Callable[[ScopeIndex, int], int]
    is_leaf: Callable[[ScopeIndex, int], bool]


class Simulator:
    """Runs a program on the clock.

    Args:
        regions: the regions by id.
        machine: costs and classes.
        classes: number of rank classes.
        blocking: whether a collective that is not asynchronous holds the compute stream, too.

    After `run`, `chosen` holds for every branch (by number of the task) which region was taken.
    """

    def __init__(
        self, regions: Mapping[RegionId, ScopeIndex], machine: Machine, classes: int, *, blocking: bool = False
    ) -> None:
        self.spans = Spans()
        self._regions = regions
        self._machine = machine
        self._classes = classes
        self._blocking = blocking
        self._last = ([START] * classes, [START] * classes)
        self._ideal = [0.0] * classes
        self._awaited: dict[int, frozenset[NodeId]] = {}
        self.chosen: dict[int, int] = {}

    def run(self, main: ScopeIndex) -> Spans:
        """Run the program.

        Raises:
            TooManySpans: see `MOST_SPANS`.
        """
        self._scope(main, [None] * len(main.inputs), None, 1)
        return self.spans

    # -- looking at what is ready ---------------------------------------------------------------------------------------

    def _end(self, span: int) -> float:
        return 0.0 if span < 0 else self.spans.end[span]

    def _ready(self, sources: Sequence[Ready], number: int) -> tuple[float, int, float]:
        """When everything is there for a class: the time, the span that was last, and the time without streams."""
        time, span, ideal = 0.0, START, 0.0
        end, ideals = self.spans.end, self.spans.ideal
        for source in sources:
            found = source.get(number)
            if found is None:
                # It was made on other ranks only: nothing but the whole of it can be waited for.
                for other in source.values():
                    if other >= 0:
                        ideal = max(ideal, ideals[other])
                        if end[other] > time:
                            time, span = end[other], other
                continue
            if found >= 0:
                if end[found] > time or span < 0:
                    time, span = end[found], found
                if ideals[found] > ideal:
                    ideal = ideals[found]
        return time, span, ideal

    def _through(self, sources: Sequence[Ready], classes: tuple[int, ...]) -> Ready:
        """What is there at once when all sources are."""
        if len(sources) == 1 and all(number in sources[0] for number in classes):
            return sources[0]
        return {number: self._ready(sources, number)[1] for number in classes}

    # -- scopes -----------------------------------------------------------------------------------------------------------

    def _scope(
        self, index: ScopeIndex, inputs: Sequence[Ready | None], floor: Ready | None, times: int
    ) -> list[Ready | None]:
        values: list[Ready | None] = [None] * len(index.scope.values)
        for place, ready in zip(index.inputs, inputs, strict=True):
            values[place] = ready
        done: list[Ready | None] = [None] * len(index.tasks)
        for place in index.order:
            data = [ready for value in index.reads[place] if (ready := values[value])]
            waits = [ready for task in index.after[place] if (ready := done[task])]
            if floor is not None:
                waits.append(floor)
            body = index.tasks[place].body
            if isinstance(body, (Call, Loop, Branch)) and not self._machine.is_leaf(index, place):
                results, done[place] = self._enter(index, place, body, values, data, waits, times)
                for value, ready in zip(index.writes[place], results, strict=False):
                    values[value] = ready
                continue
            ready = self._task(index, place, [*data, *waits], times)
            done[place] = ready
            for value in index.writes[place]:
                values[value] = ready
        return [values[place] for place in index.outputs]

    def _task(self, index: ScopeIndex, place: int, sources: Sequence[Ready], times: int) -> Ready:
        task = index.tasks[place]
        classes = self._machine.classes_of(index, place)
        if communicates(task):
            meetings = self._machine.meetings(index, place)
            return self._exchange(index, place, meetings, sources, classes, times)
        cost = self._machine.local(index, place)
        if cost is None:
            return self._through(sources, classes)
        spans, last, number = self.spans, self._last[Stream.COMPUTE], index.base + place
        found: dict[int, int] = {}
        for one in classes:
            time, span, ideal = self._ready(sources, one)
            why = Why.DATA if span >= 0 else Why.BEGIN
            free = last[one]
            if free >= 0 and spans.end[free] > time:
                time, span, why = spans.end[free], free, Why.STREAM
            seconds = cost[one] if isinstance(cost, tuple) else cost
            made = spans.add(number, Stream.COMPUTE, time, time + seconds, ideal + seconds, span, why, times, (one,))
            if ideal + seconds > self._ideal[one]:
                self._ideal[one] = ideal + seconds
            last[one] = found[one] = made
        return found

    # -- communication ------------------------------------------------------------------------------------------------

    def _exchange(
        self,
        index: ScopeIndex,
        place: int,
        meetings: Meetings,
        sources: Sequence[Ready],
        classes: tuple[int, ...],
        times: int,
    ) -> Ready:
        spans, last = self.spans, self._last[Stream.COMMUNICATION]
        holds = self._blocking and not self._is_awaited(index, place)
        arrival: dict[int, tuple[float, int, int, float]] = {}
        found: dict[int, int] = {}
        # What is made on other participants only, they wait for themselves: this one arrives without it.
        shared = {id(source) for source in sources if any(one in source for one in classes)}
        for one in classes:
            mine = [source for source in sources if one in source or id(source) not in shared]
            time, span, ideal = self._ready(mine, one)
            found[one] = span  # who takes part in no group goes on as it came
            why = Why.DATA if span >= 0 else Why.BEGIN
            for free in (last[one], self._last[Stream.COMPUTE][one] if holds else START):
                if free >= 0 and spans.end[free] > time:
                    time, span, why = spans.end[free], free, Why.STREAM
            arrival[one] = (time, span, why, ideal)
        took_part: set[int] = set()
        for number, meeting in enumerate(meetings.all):
            made = self._meet(index.base + place, number, meeting, arrival, times)
            for one in meeting.classes:
                if one not in took_part or spans.end[made] > spans.end[found[one]]:
                    found[one] = made
                    took_part.add(one)
        for one in took_part:
            made = found[one]
            last[one] = made
            if holds:
                self._last[Stream.COMPUTE][one] = made
            self._ideal[one] = max(self._ideal[one], spans.ideal[made])
        return found

    def _meet(
        self,
        task: int,
        number: int,
        meeting: Meeting,
        arrival: Mapping[int, tuple[float, int, int, float]],
        times: int,
    ) -> int:
        """One group: it starts when the last of its classes has arrived."""
        late = max(meeting.classes, key=lambda one: arrival[one][0])
        time, span, why, _ = arrival[late]
        ideal = max(arrival[one][3] for one in meeting.classes) + meeting.seconds
        if len(meeting.classes) > 1 and span >= 0:
            why = Why.ARRIVAL
        made = self.spans.add(
            task, Stream.COMMUNICATION, time, time + meeting.seconds, ideal, span, why, times, meeting.classes
        )
        self.spans.arrivals[made] = tuple(arrival[one][0] for one in meeting.classes)
        self.spans.meeting[made] = number
        return made

    def _is_awaited(self, index: ScopeIndex, place: int) -> bool:
        """Whether some task waits for this one explicitly: then it was only started here."""
        key = index.base
        if key not in self._awaited:
            self._awaited[key] = frozenset(item for task in index.tasks for item in task.completes)
        return index.tasks[place].id in self._awaited[key]

    # -- regions --------------------------------------------------------------------------------------------------------

    def _enter(
        self,
        index: ScopeIndex,
        place: int,
        body: Call | Loop | Branch,
        values: Sequence[Ready | None],
        data: Sequence[Ready],
        waits: Sequence[Ready],
        times: int,
    ) -> tuple[list[Ready | None], Ready]:
        """The results of a task that enters regions, and after which span it is done."""
        task = index.tasks[place]
        reads = index.reads[place]
        operands = [values[reads[position]] for position in (task.operands or range(len(reads)))]
        classes = self._machine.classes_of(index, place)
        match body:
            case Call(region=region):
                # What reads nothing inside may run before the operands are there, but not before what the call waits for.
                floor = self._through(waits, classes) if waits else None
                results = self._scope(self._regions[region], operands, floor, times)
                known = [ready for ready in results if ready]
                return results, self._through(known or waits, classes)
            case Loop():
                return self._loop(index, place, body, operands, [*data, *waits], times)
            case Branch():
                return self._branch(index, place, body, operands, [*data, *waits], times)

    def _enter_mark(self, task: int, classes: tuple[int, ...], sources: Sequence[Ready], times: int) -> dict[int, int]:
        """Where control enters: everything is there, and the compute stream is free."""
        found: dict[int, int] = {}
        spans, last = self.spans, self._last[Stream.COMPUTE]
        for one in classes:
            time, span, ideal = self._ready(sources, one)
            if last[one] >= 0 and spans.end[last[one]] > time:
                time, span = spans.end[last[one]], last[one]
            found[one] = spans.add(task, Stream.BOTH, time, time, ideal, span, Why.CONTROL, times, (one,))
        return found

    def _leave_mark(self, task: int, classes: tuple[int, ...], begun: Ready, first: int, times: int) -> dict[int, int]:
        """Where control leaves: all that was begun inside (spans from `first` on) has ended."""
        found: dict[int, int] = {}
        spans = self.spans
        for one in classes:
            span = begun[one]
            for stream in self._last:
                if stream[one] >= first and spans.end[stream[one]] > spans.end[span]:
                    span = stream[one]
            ideal = max(self._ideal[one], spans.ideal[begun[one]])
            end = spans.end[span]
            found[one] = spans.add(task, Stream.BOTH, end, end, ideal, span, Why.CONTROL, times, (one,))
        return found

    def _loop(
        self,
        index: ScopeIndex,
        place: int,
        body: Loop,
        operands: Sequence[Ready | None],
        sources: Sequence[Ready],
        times: int,
    ) -> tuple[list[Ready | None], Ready]:
        trips = self._machine.trips(index, place)
        classes = self._machine.classes_of(index, place)
        task = index.base + place
        begun = self._enter_mark(task, classes, sources, times)
        if trips == 0:
            return list(operands), begun
        before = list(self._ideal)
        for one in classes:
            self._ideal[one] = self.spans.ideal[begun[one]]
        state: list[Ready | None] = list(operands)
        for count in self._rounds(trips, classes, begun):
            first = len(self.spans)
            if body.condition is not None:
                self._scope(self._regions[body.condition], state, begun, times * count)
            state = self._scope(self._regions[body.body], state, begun, times * count)
            ended = self._leave_mark(task, classes, begun, first, times)
            if count > 1:
                ended = self._repeat(task, classes, begun, ended, count, times)
            for one in classes:
                for stream in self._last:
                    if self._end(stream[one]) <= self.spans.end[ended[one]]:
                        stream[one] = ended[one]
                self._ideal[one] = self.spans.ideal[ended[one]]
            begun = ended
        for one in classes:
            self._ideal[one] = max(before[one], self._ideal[one])
        return [begun] * len(operands), begun

    def _rounds(self, trips: int, classes: tuple[int, ...], begun: Ready) -> list[int]:
        """How many rounds each walk stands for. One walk does where every round takes as long as the first: all ranks do the
        same, and nothing from before the loop is still being sent. Else the second walk is the steady one."""
        sending = any(self._end(self._last[Stream.COMMUNICATION][one]) > self.spans.end[begun[one]] for one in classes)
        return [trips] if trips == 1 or (self._classes == 1 and not sending) else [1, trips - 1]

    def _repeat(
        self, task: int, classes: tuple[int, ...], begun: Ready, ended: Ready, count: int, times: int
    ) -> dict[int, int]:
        """The further rounds of a loop, each as long as the one from `begun` to `ended`."""
        found: dict[int, int] = {}
        spans = self.spans
        for one in classes:
            first, last = begun[one], ended[one]
            more = (count - 1) * (spans.end[last] - spans.end[first])
            ideal = spans.ideal[last] + (count - 1) * max(0.0, spans.ideal[last] - spans.ideal[first])
            found[one] = spans.add(
                task, Stream.BOTH, spans.end[last], spans.end[last] + more, ideal, last, Why.CONTROL, times, (one,)
            )
        return found

    def _branch(
        self,
        index: ScopeIndex,
        place: int,
        body: Branch,
        operands: Sequence[Ready | None],
        sources: Sequence[Ready],
        times: int,
    ) -> tuple[list[Ready | None], Ready]:
        """The dearest branch: each is tried from the same state, and the one that ends last stays."""
        classes = self._machine.classes_of(index, place)
        task = index.base + place
        entry = self._enter_mark(task, classes, sources, times)
        length, last, ideal = len(self.spans), [list(stream) for stream in self._last], list(self._ideal)
        firsts = [1]
        for count in body.operand_counts:
            firsts.append(firsts[-1] + count)

        def attempt(number: int) -> tuple[list[Ready | None], Ready]:
            self.spans.cut(length)
            for stream, saved in zip(self._last, last, strict=True):
                stream[:] = saved
            self._ideal[:] = ideal
            given = operands[firsts[number] : firsts[number + 1]]
            results = self._scope(self._regions[body.regions[number]], given, entry, times)
            return results, self._leave_mark(task, classes, entry, length, times)

        ends: list[float] = []
        found: tuple[list[Ready | None], Ready] = ([], entry)
        for number in range(len(body.regions)):
            found = attempt(number)
            ends.append(max(self._end(span) for span in found[1].values()))
        dearest = max(range(len(ends)), key=lambda number: ends[number], default=0)
        if dearest < len(ends) - 1:
            found = attempt(dearest)
        self.chosen[task] = dearest
        return found
