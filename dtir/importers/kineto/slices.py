"""Events of a Chrome trace that have a beginning and a length, in order of time.

The format is Chromium's Trace Event Format; `ts` and `dur` are microseconds, as numbers or text. PyTorch adds `args` and, from
2.1 on, `baseTimeNanoseconds`, to which times are relative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.importers.rank_set.events import Span
from dtir.importers.rank_set.plain import LARGEST, count_of, mapping, nanoseconds, text_of

KERNEL_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
HOST_CATEGORIES = frozenset({"cpu_op", "user_annotation", "operator"})


@dataclass(frozen=True, slots=True)
class Slice:
    """One complete event.

    Args:
        place: its number in the file.
        name, category: as written.
        thread: process and thread.
        span: when it ran; None when its times make no sense.
        arguments: what else is said of it.
        number: PyTorch's number of the recorded function, which grows with time; else None.
    """

    place: int
    name: str
    category: str
    thread: tuple[str, str]
    span: Span | None
    arguments: Mapping[str, Any] = field(repr=False)
    number: int | None = None

    @property
    def source(self) -> str:
        return f"event {self.place}"

    @property
    def external_id(self) -> int | None:
        """What ties a kernel to the call that launched it."""
        return count_of(self.arguments.get("External id", self.arguments.get("external id")))


def read_slices(events: Sequence[Any], base_ns: int) -> tuple[list[Slice], int]:
    """Complete events in order of their beginning, and how many entries are no events."""
    found: list[Slice] = []
    malformed = 0
    for place, value in enumerate(events):
        if not isinstance(value, dict):
            malformed += 1
            continue
        item = mapping(events[place])
        if item.get("ph", "X") != "X":
            continue
        name = item.get("name")
        if not isinstance(name, str):
            malformed += 1
            continue
        arguments = mapping(item.get("args"))
        found.append(
            Slice(
                place,
                name,
                text_of(item.get("cat")).lower(),
                (str(item.get("pid"))[:32], str(item.get("tid"))[:32]),
                _span(item, base_ns),
                arguments,
                count_of(arguments.get("Record function id")),
            )
        )
    found.sort(key=lambda item: (item.span.start_ns if item.span is not None else 0, item.place))
    return found, malformed


def _span(item: Mapping[str, Any], base_ns: int) -> Span | None:
    start, length = nanoseconds(item.get("ts"), 1000), nanoseconds(item.get("dur"), 1000)
    if start is None or length is None or length < 0 or not 0 <= base_ns + start + length <= LARGEST:
        return None
    return Span(base_ns + start, base_ns + start + length)
