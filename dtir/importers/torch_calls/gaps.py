"""What a rank does between two communications: one piece of local work with its operations counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dtir.importers.rank_set.events import Event, Local, Span, fact
from dtir.schema.diagnostics import DiagnosticBag
from dtir.schema.frozen import FrozenDict

MOST_NAMES = 8
"""Most frequent operations that are named."""


@dataclass(slots=True)
class Gaps:
    """Collects operations, and communications between them, in order.

    Attributes:
        events: what was collected.
        operations: how many operations were joined.
        pieces: into how many pieces.
    """

    events: list[Event] = field(default_factory=list[Event])
    operations: int = 0
    pieces: int = 0
    _names: Counter[str] = field(default_factory=Counter[str])
    _source: str = ""
    _start_ns: int | None = None
    _end_ns: int | None = None

    def operation(self, name: str, source: str, span: Span | None = None) -> None:
        """One operation of the host."""
        if not self._names:
            self._source = source
        self._names[name] += 1
        if span is not None:
            self._start_ns = span.start_ns if self._start_ns is None else min(self._start_ns, span.start_ns)
            self._end_ns = span.end_ns if self._end_ns is None else max(self._end_ns, span.end_ns)

    def communication(self, event: Event) -> None:
        """One communication; what stands before it is closed."""
        self._close(event.span.start_ns if event.span is not None else None)
        self.events.append(event)

    def finish(self, bag: DiagnosticBag) -> tuple[Event, ...]:
        """Everything, with the last piece closed."""
        self._close(None)
        if self.operations:
            bag.info(
                "trace.operations_joined",
                f"{self.operations} operations of the host are shown as {self.pieces} pieces of local work between the "
                "communications",
            )
        return tuple(self.events)

    def _close(self, until_ns: int | None) -> None:
        count = self._names.total()
        if not count:
            return
        span = None
        if self._start_ns is not None and self._end_ns is not None:
            # An operation that makes the call lasts beyond its beginning: the piece ends there.
            end = self._end_ns if until_ns is None else min(self._end_ns, until_ns)
            span = Span(self._start_ns, end) if end >= self._start_ns else None
        most = FrozenDict(dict(self._names.most_common(MOST_NAMES)))
        name = next(iter(most)) if count == 1 else "local work"
        self.events.append(Event(Local(count, {fact("most_frequent"): most}), name, self._source, span=span))
        self.operations += count
        self.pieces += 1
        self._names = Counter()
        self._start_ns = self._end_ns = None
