"""Who belongs to which process group: as files say, as a table beside them says, or as the calls themselves show.

Membership is only inferred where nothing else is possible: a group whose size is that of the whole job has all ranks; a
group whose callers are as many as its size has these. What stays unknown is said (``trace.group_unknown``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtir.importers.rank_set.events import Call, RankTrace, Transfer
from dtir.ir.ranks import Ranks, all_ranks, highest_rank, rank_set
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, Severity


class Groups:
    """The groups of a set of files.

    Args:
        traces: the files, by rank.
        table: groups from a file of their own (``comm_group.json``).
        bag: takes what is found.

    Attributes:
        world: ranks of the job, as far as the files know them.
        world_known: whether a file states that number, or there is nothing that speaks of more.
    """

    def __init__(self, traces: Mapping[int, RankTrace], table: Mapping[str, Ranks], bag: DiagnosticBag) -> None:
        self._ranks = sorted(traces)
        self._stated: dict[str, Ranks] = dict(table)
        self._sizes: dict[str, int] = {}
        # Groups of one kind may have one name on all ranks (the tensor parallel group of each): told apart by members.
        self._alias: dict[tuple[int | None, str], str] = {}
        for trace in traces.values():
            self._take(trace, bag)
        stated = [trace.world for trace in traces.values() if trace.world]
        seen = max([*self._ranks, *(highest_rank(members) for members in self._stated.values() if members)], default=0)
        peers = [
            peer
            for trace in traces.values()
            for event in trace.events
            if isinstance(event.what, Transfer)
            and (peer := self.rank_of(trace, event.what.group, event.what.peer)) is not None
        ]
        self.world = max([*stated, seen + 1, *(peer + 1 for peer in peers)])
        self._everyone = all_ranks(self.world)
        self.world_known = bool(stated or table or len(traces) > 1)

    def _take(self, trace: RankTrace, bag: DiagnosticBag) -> None:
        for name, members in trace.groups.items():
            if not members:
                continue
            known = self._stated.setdefault(name, members)
            if known is members or known == members:
                continue
            if set(known).isdisjoint(members):
                own = f"{name} of {', '.join(map(str, members[:8]))}{', ...' if len(members) > 8 else ''}"
                self._stated[own] = members
                self._alias[trace.rank, name] = own
            else:
                bag.add(
                    Diagnostic(
                        "trace.group_conflict",
                        f"{trace.label} says that process group {name!r} is {_shown(members)}, another file says "
                        f"{_shown(known)}; the latter is used",
                        ("groups", name or "default"),
                        Severity.WARNING,
                        "open files of one run only",
                    )
                )
        for name, size in trace.group_sizes.items():
            self._sizes.setdefault(name, size)

    def name_of(self, trace: RankTrace, call: Call) -> str | None:
        """The group of a call; that of all ranks where the file names none and there is such a group."""
        name = call.group if call.group is not None else trace.default_group
        return None if name is None else self._alias.get((trace.rank, name), name)

    def rank_of(self, trace: RankTrace, group: str | None, position: int | None) -> int | None:
        """The rank at a position of a group; without a group the position is the rank."""
        if position is None or position < 0 or group is None:
            return position if position is None or position >= 0 else None
        members = self._stated.get(self._alias.get((trace.rank, group), group))
        if members is None:
            return position
        return members[position] if position < len(members) else None

    def members(self, name: str | None, callers: Sequence[int], hint: int | None, bag: DiagnosticBag) -> Ranks:
        """The members of a group, in group order.

        Args:
            name: its name; None for calls of an unknown group.
            callers: the ranks whose files hold calls of it.
            hint: its size as the calls tell.
            bag: takes what stays unknown.
        """
        stated = self._stated.get(name) if name is not None else None
        if stated:
            known = rank_set(stated)
            missing = [rank for rank in callers if rank not in known]
            if missing:
                bag.add(
                    Diagnostic(
                        "trace.group_conflict",
                        f"process group {name!r} is {_shown(stated)}, but rank {missing[0]} calls it too",
                        ("groups", name or "default"),
                        Severity.WARNING,
                        "open files of one run only, with their own table of groups",
                        tuple(f"rank {rank}" for rank in missing[:32]),
                    )
                )
            return (*stated, *missing) if missing else stated
        size = self._sizes.get(name or "", hint) or hint
        everybody = self._everyone
        if (size == self.world and name is not None) or (name == "" and self.world_known):
            return everybody
        complete = len(self._ranks) == self.world and self.world_known
        if name is None:
            self._unknown(name, size, callers, bag, "taken to be all ranks" if self.world_known else "")
            return everybody if self.world_known else tuple(callers)
        if len(callers) == size or (size is None and complete):
            bag.add(
                Diagnostic(
                    "trace.group_inferred",
                    f"no file lists the members of process group {name!r}; ranks {_shown(callers)} call it",
                    ("groups", name or "default"),
                    Severity.INFO,
                    "open the table of groups (comm_group.json) with the files",
                )
            )
            return tuple(callers)
        self._unknown(name, size, callers, bag, "")
        return tuple(callers)

    def _unknown(
        self, name: str | None, size: int | None, callers: Sequence[int], bag: DiagnosticBag, done: str
    ) -> None:
        what = f"the members of process group {name!r}" if name else "the members of the group of all ranks"
        has = f", which has {size}," if size and name else ""
        if name is None:
            what = "the process groups of some calls"
        shown = done or f"shown are only those whose files are here: {_shown(callers)}"
        bag.add(
            Diagnostic(
                "trace.group_unknown",
                f"{what}{has} stand in no file; {shown}",
                ("groups", name or "default"),
                Severity.WARNING,
                "open the files of all ranks together, and the table of groups (comm_group.json) if there is one",
                tuple(f"rank {rank}" for rank in callers[:32]),
            )
        )


def _shown(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (f", ... ({len(ranks)})" if len(ranks) > 8 else "")
