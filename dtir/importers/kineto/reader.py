"""One rank's profile: its communications in the order of their issue, with times, and what lies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtir.importers.base import Source
from dtir.importers.kineto.calls import BACKENDS, FUNCTIONAL, OPERATORS, PARAMS, find_calls
from dtir.importers.kineto.metadata import group_members, group_name
from dtir.importers.kineto.slices import HOST_CATEGORIES, Slice, read_slices
from dtir.importers.rank_set.events import Event, RankTrace
from dtir.importers.rank_set.naming import program_name
from dtir.importers.rank_set.plain import count_of, mapping, nanoseconds, parse_listed, ranks_of, sequence, text_of
from dtir.importers.rank_set.sources import settle_rank
from dtir.importers.rank_set.words import call_kind
from dtir.importers.torch_calls import Gaps
from dtir.ir.ranks import Ranks
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet
from dtir.schema.result import Err, Ok, Result

FORMAT = "kineto"


def read_kineto(source: Source) -> Result[RankTrace, Diagnostic]:
    """The communications of one rank."""
    # A bare list of events is a Chrome trace, too.
    match parse_listed(source.text or "", "the trace", "traceEvents"):
        case Err(error):
            return Err(error)
        case Ok((whole, damage)):
            pass
    bag = DiagnosticBag()
    bag.extend(damage)
    events = sequence(whole.get("traceEvents"))
    slices, malformed = read_slices(events, nanoseconds(whole.get("baseTimeNanoseconds")) or 0)
    if malformed:
        bag.warning(
            "trace.malformed", f"{malformed} of {len(events)} events are no events and are left out", "traceEvents"
        )
    info = mapping(whole.get("distributedInfo"))
    groups, names = _groups(info)
    for item in slices:
        if item.name == PARAMS:
            name = group_name(item.arguments)
            members = group_members(item.arguments) if name is not None and name not in groups else None
            if name is not None and members:
                groups[name] = members
    world = count_of(info.get("world_size")) or None
    count = count_of(info.get("pg_count"))
    return Ok(
        RankTrace(
            FORMAT,
            source.label,
            program_name(source.name),
            source.digest(),
            settle_rank(source, count_of(info.get("rank")), bag),
            str(whole.get("schemaVersion", ""))[:32],
            _events(slices, names, bag),
            world=world,
            groups=groups,
            default_group="" if count == 1 else None,
            facts={"events": len(events), **({"backend": text_of(info.get("backend"))} if info else {})},
            diagnostics=DiagnosticSet(tuple(bag.report())),
        )
    )


def _groups(info: Mapping[str, Any]) -> tuple[dict[str, Ranks], dict[str, str]]:
    """Members by the name of a group here, and that name by the file's."""
    found: dict[str, Ranks] = {}
    names: dict[str, str] = {"0": ""}
    for value in sequence(info.get("pg_config")):
        entry = mapping(value)
        stated = entry.get("pg_name", entry.get("pg_id"))
        if not isinstance(stated, (str, int)):
            continue
        name = "" if entry.get("pg_desc") == "default_pg" else str(stated)
        names[str(stated)] = name
        members = ranks_of(entry.get("ranks"))
        if members:
            found[name] = members
    return found, names


def _events(slices: Sequence[Slice], names: Mapping[str, str], bag: DiagnosticBag) -> tuple[Event, ...]:
    calls = {item.slice.place: item for item in find_calls(slices, names)}
    gaps = Gaps()
    for item in slices:
        found = calls.get(item.place)
        if found is not None:
            gaps.communication(Event(found.call, found.name, item.source, span=found.span))
        elif item.category in HOST_CATEGORIES and not _is_view(item):
            gaps.operation(item.name, item.source, item.span)
    return gaps.finish(bag)


def _is_view(item: Slice) -> bool:
    """Whether a slice is one more view of a communication, or a bracket around other work."""
    if item.category == "user_annotation":
        return True
    return (
        item.name == PARAMS
        or item.name.startswith((*BACKENDS, FUNCTIONAL))
        or (item.name.startswith(OPERATORS) and call_kind(item.name) is not None)
    )
