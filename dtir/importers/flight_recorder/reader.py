"""One rank's flight recorder dump.

The format is that of PyTorch's ``FlightRecorder`` (torch/csrc/distributed/c10d/FlightRecorder.hpp and its tutorial): keys
`version`, `pg_config`, `pg_status` and `entries`; an entry has `process_group` (name, description), `collective_seq_id`,
`profiling_name`, `input_sizes`, `output_sizes`, their dtypes, `state`, `retired`, `is_p2p` and times. What real dumps do:

- gloo leaves every `state` at ``scheduled``; what is over is `retired` then;
- gloo leaves `pg_config` empty, or fills in the default group under an empty name;
- `entries` is missing when nothing was recorded;
- a list of ranks is a text, ``"[0, 1]"``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dtir.importers.base import Source
from dtir.importers.rank_set.events import Call, CallKind, Event, Local, RankTrace, Span, Tensor, Transfer, What
from dtir.importers.rank_set.naming import program_name
from dtir.importers.rank_set.plain import (
    count_of,
    mapping,
    nanoseconds,
    parse_listed,
    ranks_of,
    sequence,
    shape_of,
    text_of,
)
from dtir.importers.rank_set.sources import settle_rank
from dtir.importers.rank_set.words import call_kind, dtype_name, transfer_side
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet
from dtir.schema.result import Err, Ok, Result

FORMAT = "flight-recorder"
DEFAULT_GROUP = "default_pg"
GROUPED = "coalesced"

_PEERS = re.compile(r"(\d{1,9})\s*(->|<-)\s*(\d{1,9})")


def read_flight_recorder(source: Source) -> Result[RankTrace, Diagnostic]:
    """The calls of one rank, in the order in which they were recorded."""
    match parse_listed(source.text or "", "the flight recorder dump", "entries"):
        case Err(error):
            return Err(error)
        case Ok((whole, damage)):
            pass
    bag = DiagnosticBag()
    bag.extend(damage)
    groups = _groups(mapping(whole.get("pg_config")))
    reader = _Entries(bag)
    entries = whole.get("entries")
    events = reader.read(sequence(entries))
    if entries is None:
        bag.info("trace.no_entries", f"{source.label} has no entries: nothing was recorded")
    rank = settle_rank(source, count_of(whole.get("rank")), bag)
    return Ok(
        RankTrace(
            FORMAT,
            source.label,
            program_name(source.name),
            source.digest(),
            rank,
            str(whole.get("version", "")),
            tuple(events),
            world=len(groups[""]) if groups.get("") else None,
            groups=groups,
            diagnostics=DiagnosticSet(tuple(bag.report())),
        )
    )


def _groups(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Process groups by name; that of all ranks has the empty name here."""
    found: dict[str, tuple[int, ...]] = {}
    for key, value in config.items():
        entry = mapping(value)
        members = ranks_of(entry.get("ranks"))
        name = text_of(entry.get("name")) or key
        if members:
            found["" if entry.get("desc") == DEFAULT_GROUP else name] = members
    return found


class _Entries:
    """Reads entries; what is wrong with them is counted and said once."""

    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._malformed = 0
        self._unknown: Counter[str] = Counter()

    def read(self, entries: Sequence[Any]) -> list[Event]:
        events = [event for place, entry in enumerate(entries) if (event := self._event(place, entry)) is not None]
        if self._malformed:
            self._bag.warning(
                "trace.malformed",
                f"{self._malformed} of {len(entries)} entries are no entries and are left out",
                "entries",
            )
        self._unknown = +self._unknown
        if self._unknown:
            shown = ", ".join(sorted(self._unknown)[:5])
            self._bag.warning(
                "trace.kind_unknown",
                f"{sum(self._unknown.values())} entries are no known collective and are shown as local work: {shown}",
                "entries",
            )
        return events

    def _event(self, place: int, value: object) -> Event | None:
        entry = mapping(value)
        name = text_of(entry.get("profiling_name"))
        if not name:
            self._malformed += 1
            return None
        number = count_of(entry.get("record_id"))
        source = f"record {place if number is None else number}"
        return Event(self._what(entry, name), name, source, span=_span(entry), finished=_finished(entry))

    def _what(self, entry: Mapping[str, Any], name: str) -> What:
        group = _group(entry)
        operand = _tensor(entry.get("input_sizes"), entry.get("input_dtypes"))
        result = _tensor(entry.get("output_sizes"), entry.get("output_dtypes"))
        side = transfer_side(name)
        if side is not None:
            # "send 0->1" names positions in the process group, the receiver's ("recv 1<-0") its own one first.
            peers = _PEERS.search(name)
            peer = int(peers[3]) if peers else None
            moved = operand if side else (result or operand)
            return Transfer(side, peer, f"group {group}" if group else "0", moved, group=group)
        kind = call_kind(name)
        if kind is None:
            # The end of a group of calls is recorded as well; the calls are entries of their own.
            self._unknown[name] += not name.rpartition(":")[2].startswith(GROUPED)
            return Local()
        sequence_id = count_of(entry.get("collective_seq_id", entry.get("seq_id")))
        if kind is CallKind.BARRIER:
            operand = result = None
        return Call(kind, group, sequence_id, operand, result)


def _group(entry: Mapping[str, Any]) -> str:
    """The name of the process group; the empty name is that of all ranks."""
    name, description = (*map(text_of, sequence(entry.get("process_group"))[:2]), "", "")[:2]
    if description == DEFAULT_GROUP:
        return ""
    number = count_of(entry.get("pg_id"))
    return name or ("" if number in (0, None) else str(number))


def _tensor(sizes: object, dtypes: object) -> Tensor | None:
    """All tensors of one side as one: the first alone as it is, several flat (they go through one call)."""
    shapes = [shape for item in sequence(sizes) if (shape := shape_of(item)) is not None]
    words = [text_of(item) for item in sequence(dtypes)]
    if not shapes or not words:
        return None
    dtype = dtype_name(words[0]) or "u8"
    if len(shapes) == 1:
        return Tensor(shapes[0], dtype)
    total = 0
    for shape in shapes:
        elements = 1
        for extent in shape:
            elements *= extent
        total += elements
    return Tensor((total,), dtype)


def _span(entry: Mapping[str, Any]) -> Span | None:
    """From when the work was seen to begin (else was issued) to when it was seen to be over."""
    start = nanoseconds(entry.get("time_discovered_started_ns")) or nanoseconds(entry.get("time_created_ns"))
    end = nanoseconds(entry.get("time_discovered_completed_ns"))
    return Span(start, end) if start and end and end >= start else None


def _finished(entry: Mapping[str, Any]) -> bool | None:
    """Whether the call was over: NCCL says so in `state`, gloo in `retired` alone."""
    if entry.get("state") == "completed" or entry.get("retired") is True:
        return True
    return False if isinstance(entry.get("retired"), bool) or text_of(entry.get("state")) else None
