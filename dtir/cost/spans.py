"""Spans: what runs from when to when, as columns; and what each waited for last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

Ready: TypeAlias = Mapping[int, int]
"""For every class the span after which something is there."""

MOST_SPANS = 5_000_000
START = -1
"""The span before all others: time 0."""


class TooManySpans(ValueError):
    """The timelines of all classes have more than `MOST_SPANS` spans."""


class Why(IntEnum):
    """What a span waited for last."""

    BEGIN = 0
    DATA = 1
    STREAM = 2
    ARRIVAL = 3
    CONTROL = 4


class Stream(IntEnum):
    """Where a span runs; `BOTH` are the marks of loops."""

    COMPUTE = 0
    COMMUNICATION = 1
    BOTH = 2


@dataclass(slots=True)
class Spans:
    """Spans as columns.

    Args:
        task: number of the task.
        stream: where it runs.
        start, end: seconds from the beginning.
        ideal: when it could end if streams were never taken.
        before: the span that it waited for last.
        why: in which way.
        times: for how many executions it stands.
        classes: who takes part; of collectives one group.
        arrivals: of collectives, when each class arrived.
        meeting: of collectives, which of the task's meetings it is.
    """

    task: list[int] = field(default_factory=list[int])
    stream: list[int] = field(default_factory=list[int])
    start: list[float] = field(default_factory=list[float])
    end: list[float] = field(default_factory=list[float])
    ideal: list[float] = field(default_factory=list[float])
    before: list[int] = field(default_factory=list[int])
    why: list[int] = field(default_factory=list[int])
    times: list[int] = field(default_factory=list[int])
    classes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    arrivals: dict[int, tuple[float, ...]] = field(default_factory=dict[int, tuple[float, ...]])
    meeting: dict[int, int] = field(default_factory=dict[int, int])

    def __len__(self) -> int:
        return len(self.task)

    def add(
        self,
        task: int,
        stream: int,
        start: float,
        end: float,
        ideal: float,
        before: int,
        why: int,
        times: int,
        classes: tuple[int, ...],
    ) -> int:
        """A span; its number."""
        number = len(self.task)
        if number >= MOST_SPANS:
            raise TooManySpans(f"more than {MOST_SPANS} spans")
        self.task.append(task)
        self.stream.append(stream)
        self.start.append(start)
        self.end.append(end)
        self.ideal.append(ideal)
        self.before.append(before)
        self.why.append(why)
        self.times.append(times)
        self.classes.append(classes)
        return number

    def cut(self, length: int) -> None:
        """Forget the spans from a number on."""
        for column in (self.task, self.stream, self.before, self.why, self.times):
            del column[length:]
        for column in (self.start, self.end, self.ideal):
            del column[length:]
        del self.classes[length:]
        for table in (self.arrivals, self.meeting):
            for number in [number for number in table if number >= length]:
                del table[number]
