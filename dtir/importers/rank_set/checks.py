"""What a reader of a joined program should know: who is missing, whose sizes disagree, what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping

from dtir.importers.rank_set.events import Call, CallKind, Order, RankTrace, Transfer
from dtir.importers.rank_set.groups import Groups
from dtir.importers.rank_set.matching import Matched, Meeting, Passage
from dtir.importers.rank_set.sizes import transfer_bytes
from dtir.importers.rank_set.specs import Assumed
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, Severity

MOST_NAMED = 32


def note_world(by_rank: Mapping[int, RankTrace], groups: Groups, bag: DiagnosticBag) -> None:
    """Ranks without a file, and files that state different numbers of ranks."""
    stated: dict[int, str] = {}
    for trace in by_rank.values():
        if trace.world:
            stated.setdefault(trace.world, trace.label)
    if len(stated) > 1:
        shown = ", ".join(f"{world} ({label})" for world, label in sorted(stated.items()))
        bag.warning(
            "trace.world_conflict",
            f"the files state different numbers of ranks: {shown}",
            "files",
            hint="open files of one run only",
        )
    absent = groups.world - len(by_rank)
    if not absent:
        return
    if len(by_rank) == 1:
        bag.info(
            "trace.one_rank",
            f"this is what rank {next(iter(by_rank))} of {groups.world} ranks did; what the others issue is unknown",
            hint="open the files of all ranks together",
        )
        return
    missing = [rank for rank in range(min(groups.world, len(by_rank) + MOST_NAMED)) if rank not in by_rank][:MOST_NAMED]
    shown = ", ".join(map(str, missing[:8])) + (f", ... ({absent})" if absent > 8 else "")
    bag.warning(
        "trace.rank_missing",
        f"files of {len(by_rank)} of {groups.world} ranks are here; missing: rank {shown}",
        "files",
        hint="open the files of all ranks together",
        subject=tuple(f"rank {rank}" for rank in missing),
    )


def note_sizes(matched: Matched, bag: DiagnosticBag) -> None:
    """Sizes and splits about which ranks disagree: faults of the program, which was understood all the same."""
    torn: list[str] = []
    split: list[str] = []
    ranks: dict[int, None] = {}
    for thing in matched.things:
        if isinstance(thing, Passage):
            if message := _ends_disagree(matched, thing):
                torn.append(message)
                ranks.update(dict.fromkeys(thing.parts))
        elif isinstance(thing, Meeting):
            if thing.kind is CallKind.ALL_TO_ALL and (message := _splits_disagree(matched, thing)):
                split.append(message)
            elif message := _sizes_disagree(matched, thing):
                torn.append(message)
                ranks.update(dict.fromkeys(thing.parts))
    if torn:
        bag.warning(
            "trace.size_mismatch",
            f"{torn[0]}{f' (and {len(torn) - 1} more)' if len(torn) > 1 else ''}",
            "events",
            hint="derive the size on both sides from one value",
            subject=tuple(f"rank {rank}" for rank in list(ranks)[:MOST_NAMED]),
        )
    if split:
        bag.warning(
            "trace.split_mismatch",
            f"{split[0]}{f' (and {len(split) - 1} more)' if len(split) > 1 else ''}",
            "events",
            hint="exchange the counts first",
        )


def _ends_disagree(matched: Matched, passage: Passage) -> str:
    sizes: dict[int, int] = {}
    names: dict[int, str] = {}
    for rank, position in passage.parts.items():
        event = matched.traces[rank].events[position]
        if isinstance(event.what, Transfer) and (event.what.tensor is not None or event.what.size_bytes is not None):
            sizes[rank] = transfer_bytes(event.what)
            names[rank] = event.name
    if len(set(sizes.values())) < 2:
        return ""
    sent, received = sizes[passage.source], sizes[passage.destination]
    return (
        f"rank {passage.source} sends {sent} bytes to rank {passage.destination} ({names[passage.source]}), which receives "
        f"{received} ({names[passage.destination]})"
    )


def _sizes_disagree(matched: Matched, meeting: Meeting) -> str:
    """Sizes that files state as a number; shapes that differ are the verifier's, which sees them in the program."""
    stated: dict[int, int] = {}
    name = ""
    for rank, position in meeting.parts.items():
        event = matched.traces[rank].events[position]
        if isinstance(event.what, Call) and event.what.size_bytes is not None:
            stated.setdefault(event.what.size_bytes, rank)
            name = event.name
    if len(stated) < 2:
        return ""
    return f"{name}: " + ", ".join(f"rank {rank} states {size} bytes" for size, rank in list(stated.items())[:4])


def _splits_disagree(matched: Matched, meeting: Meeting) -> str:
    """Counts that one member sends and the other does not expect; lists of even exchanges are empty."""
    whats = {rank: matched.traces[rank].events[position].what for rank, position in meeting.parts.items()}
    size = len(meeting.members)
    if not any(isinstance(what, Call) and size == len(what.send_splits) for what in whats.values()):
        return ""
    place = {rank: position for position, rank in enumerate(meeting.members)}
    calls = {rank: what for rank, what in whats.items() if isinstance(what, Call) and rank in place}
    for sender, sent in calls.items():
        if len(sent.send_splits) != len(place):
            continue
        for receiver, got in calls.items():
            if len(got.recv_splits) != len(place):
                continue
            out, into = sent.send_splits[place[receiver]], got.recv_splits[place[sender]]
            if out != into:
                name = matched.traces[sender].events[meeting.parts[sender]].name
                return f"{name}: rank {sender} sends {out} to rank {receiver}, which expects {into}"
    return ""


def note_assumed(matched: Matched, assumed: Assumed, bag: DiagnosticBag) -> None:
    """What no file says and had to be put in."""
    traces = matched.traces.values()
    if any(trace.order is Order.ISSUED and any(isinstance(e.what, Transfer) for e in trace.events) for trace in traces):
        bag.info(
            "trace.waits_unrecorded",
            "when a rank waits for its sends and receives is not recorded; they are taken to be waited for at the end",
        )
    if assumed.reductions:
        bag.info(
            "trace.reduction_unknown",
            f"{assumed.reductions} collectives do not say how values are combined; a sum is assumed",
        )
    if assumed.roots:
        bag.info(
            "trace.root_unknown",
            f"{assumed.roots} collectives do not say their root; the first member is shown as the root",
        )
    if assumed.rooted:
        shown = ", ".join(f"{count} {name}" for name, count in sorted(assumed.rooted.items()))
        bag.info("trace.shown_as", f"{shown}: the IR has no such collective; trace.kind says what they are")
    unfinished = [
        (rank, event.name)
        for rank, trace in sorted(matched.traces.items())
        for event in trace.events
        if event.finished is False
    ]
    if unfinished:
        shown = ", ".join(f"{name} on rank {rank}" for rank, name in unfinished[:4])
        more = f", ... ({len(unfinished)})" if len(unfinished) > 4 else ""
        bag.add(
            Diagnostic(
                "trace.unfinished",
                f"not over when the file was written: {shown}{more}",
                ("events",),
                Severity.INFO,
                subject=tuple(dict.fromkeys(f"rank {rank}" for rank, _ in unfinished[:MOST_NAMED])),
            )
        )
    if not any(isinstance(event.what, (Call, Transfer)) for trace in traces for event in trace.events):
        bag.info("trace.no_communication", "no collective and no transfer stands in the files")
