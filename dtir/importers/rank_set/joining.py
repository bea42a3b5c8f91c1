"""Files of ranks to one program: who is whose file, what is missing, and everything that was found on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dtir.importers.base import DIGEST_SIZE_BYTES, Imported
from dtir.importers.rank_set.checks import note_assumed, note_sizes, note_world
from dtir.importers.rank_set.events import MOST_RANKS, RankTrace, Transfer, fact
from dtir.importers.rank_set.groups import Groups
from dtir.importers.rank_set.matching import match
from dtir.importers.rank_set.ordering import order
from dtir.importers.rank_set.pattern import note_pattern
from dtir.importers.rank_set.program import build
from dtir.ir.ranks import Ranks, highest_rank
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet, Severity


def join(
    traces: Sequence[RankTrace],
    *,
    table: Mapping[str, Ranks] | None = None,
    table_name: str = "",
    before: Sequence[Diagnostic] = (),
) -> Imported:
    """One program of the files of one or several ranks.

    Args:
        traces: the files, at least one.
        table: process groups that a file of their own lists.
        table_name: that file.
        before: findings about the files that were read before.

    Returns:
        The program with its times; what is wrong with the set is among the findings, and what could be read is shown.
    """
    bag = DiagnosticBag()
    bag.extend(before)
    bag.extend(traces[0].diagnostics if len(traces) == 1 else _gathered(traces))
    if table_name:
        bag.info("trace.groups_from", f"process groups are those of {table_name}")
    by_rank = _by_rank([_bounded(trace, bag) for trace in traces], bag)
    first = by_rank[min(by_rank)]
    _note_versions(by_rank, bag)
    groups = Groups(by_rank, _bounded_groups(table or {}, bag), bag)
    note_world(by_rank, groups, bag)
    matched = match(by_rank, groups, bag)
    ordered = order(matched, bag)
    digest = _digest(list(by_rank.values()))
    attributes: dict[str, Any] = {
        fact("format"): first.format,
        fact("schema"): tuple(dict.fromkeys(trace.schema for trace in by_rank.values())),
        fact("files"): tuple((rank, trace.label) for rank, trace in sorted(by_rank.items())[:1024]),
        **{fact(key): value for key, value in first.facts.items()},
    }
    built = build(matched, ordered, name=first.name, digest=digest, attributes=attributes)
    note_sizes(matched, bag)
    note_pattern(matched, ordered, bag)
    note_assumed(matched, built.assumed, bag)
    label = traces[0].label if len(traces) == 1 else f"{first.name} ({len(by_rank)} ranks)"
    findings = DiagnosticSet(tuple(bag.report()))
    return Imported(built.program, findings, first.format, digest, label, times=built.times)


def _gathered(traces: Sequence[RankTrace]) -> list[Diagnostic]:
    """Findings of several files, each saying of which it speaks; a remark that many files give stands once."""
    found: list[Diagnostic] = []
    remarks: dict[str, tuple[Diagnostic, int]] = {}
    for trace in traces:
        for item in trace.diagnostics:
            named = replace(
                item.prefixed("files", trace.label),
                message=item.message if trace.label in item.message else f"{trace.label}: {item.message}",
            )
            if item.severity is not Severity.INFO:
                found.append(named)
                continue
            first, count = remarks.get(item.code, (named, 0))
            remarks[item.code] = first, count + 1
    for first, count in remarks.values():
        found.append(first if count == 1 else replace(first, message=f"{first.message} ({count} files)"))
    return found


def _digest(traces: Sequence[RankTrace]) -> str:
    """That of the file; of several files that of their digests in order of rank."""
    if len(traces) == 1:
        return traces[0].digest
    joined = "\n".join(trace.digest for trace in sorted(traces, key=lambda trace: trace.rank or 0))
    return hashlib.blake2b(joined.encode(), digest_size=DIGEST_SIZE_BYTES).hexdigest()


def _by_rank(traces: Sequence[RankTrace], bag: DiagnosticBag) -> dict[int, RankTrace]:
    found: dict[int, RankTrace] = {}
    for trace in traces:
        if trace.rank is None:
            continue
        other = found.setdefault(trace.rank, trace)
        if other is not trace:
            same = ", with the same content" if other.digest == trace.digest else ""
            bag.error(
                "trace.rank_duplicate",
                f"{other.label} and {trace.label} are both of rank {trace.rank}{same}; the second is left out",
                "files",
                trace.label,
                hint="open files of one run only, each rank once",
                subject=(f"rank {trace.rank}",),
            )
    free = 0
    for trace in traces:
        if trace.rank is not None:
            continue
        while free in found:
            free += 1
        found[free] = trace
        bag.warning(
            "trace.rank_unknown",
            f"neither {trace.label} nor its content says whose it is; it is shown as rank {free}",
            hint="name the file after its rank: x.rank3.json, x.3.et",
        )
    return dict(sorted(found.items()))


def _bounded(trace: RankTrace, bag: DiagnosticBag) -> RankTrace:
    """The trace without rank numbers that no machine has."""
    wrong = [number for number in (trace.rank, trace.world and trace.world - 1) if number and number >= MOST_RANKS]
    groups = _bounded_groups(trace.groups, bag)
    rank = trace.rank if trace.rank is None or trace.rank < MOST_RANKS else None
    world = trace.world if trace.world is None or 0 < trace.world <= MOST_RANKS else None
    events = list(trace.events)
    for position, event in enumerate(events):
        what = event.what
        if isinstance(what, Transfer) and what.peer is not None and what.peer >= MOST_RANKS:
            wrong.append(what.peer)
            events[position] = replace(event, what=replace(what, peer=None))
    if wrong:
        _out_of_range(bag, f"{trace.label}: {len(wrong)} numbers", wrong[0])
    if not wrong and groups is trace.groups:
        return trace
    return replace(trace, rank=rank, world=world, groups=groups, events=tuple(events))


def _bounded_groups(groups: Mapping[str, Ranks], bag: DiagnosticBag) -> Mapping[str, Ranks]:
    wrong = {name: members for name, members in groups.items() if members and highest_rank(members) >= MOST_RANKS}
    if not wrong:
        return groups
    name, members = next(iter(wrong.items()))
    _out_of_range(bag, f"{len(wrong)} process groups, {name!r} first,", highest_rank(members))
    return {name: members for name, members in groups.items() if name not in wrong}


def _out_of_range(bag: DiagnosticBag, what: str, number: int) -> None:
    bag.error(
        "trace.rank_range",
        f"{what} name rank {number}; ranks are read up to {MOST_RANKS - 1}, larger numbers are left out",
        hint="check what wrote the file",
    )


def _note_versions(by_rank: Mapping[int, RankTrace], bag: DiagnosticBag) -> None:
    versions: dict[str, int] = {}
    for rank, trace in by_rank.items():
        versions.setdefault(trace.schema, rank)
    if len(versions) > 1:
        shown = ", ".join(f"{version or 'none'} (rank {rank} first)" for version, rank in versions.items())
        bag.add(
            Diagnostic(
                "trace.mixed_versions",
                f"the files have {len(versions)} schema versions: {shown}",
                ("files",),
                Severity.WARNING,
                "record all ranks with one version",
            )
        )
