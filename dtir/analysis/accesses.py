"""Which tasks touch a named resource, and which pairs of them must be ordered so that all are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dtir.analysis.holders import meet
from dtir.ir.ranks import RankRange
from dtir.ir.tasks import DistributedTask
from dtir.ir.types import EffectKind

MOST_CLASSES = 256
"""Classes of ranks that are kept apart for one resource."""


@dataclass(frozen=True, slots=True)
class Access:
    """What one task does to one resource.

    Args:
        task: position of the task.
        resource: the resource's name.
        kinds: what it does, each once.
        ranks: where.
    """

    task: int
    resource: str
    kinds: frozenset[EffectKind]
    ranks: Sequence[int]

    def writes(self, kinds: Collection[EffectKind]) -> bool:
        return any(kind in kinds for kind in self.kinds)


def accesses(tasks: Sequence[DistributedTask], kinds: Collection[EffectKind]) -> Iterator[list[Access]]:
    """Per resource the tasks that touch it in one of some ways, in task order; resources that one task alone touches are left out."""
    found: dict[str, list[Access]] = {}
    for index, task in enumerate(tasks):
        if not task.effects:
            continue
        own: dict[str, set[EffectKind]] = {}
        for effect in task.effects:
            if effect.kind in kinds:
                own.setdefault(effect.resource, set()).add(effect.kind)
        for resource, does in own.items():
            found.setdefault(resource, []).append(Access(index, resource, frozenset(does), task.ranks))
    for group in found.values():
        if len(group) > 1:
            yield group


def by_ranks(group: Sequence[Access]) -> list[list[Access]]:
    """The accesses as single ranks see them: one list for each class of ranks that sees the same of them."""
    sets = {id(item.ranks): item.ranks for item in group}
    if len(sets) == 1 or len({_key(ranks) for ranks in sets.values()}) == 1:
        return [list(group)]
    seen: dict[tuple[int, ...], None] = {}
    members = {name: ranks if isinstance(ranks, RankRange) else frozenset(ranks) for name, ranks in sets.items()}
    for ranks in sets.values():
        for rank in ranks[:65_536]:
            seen.setdefault(tuple(index for index, item in enumerate(group) if rank in members[id(item.ranks)]))
            if len(seen) >= MOST_CLASSES:
                break
    return [[group[index] for index in indices] for indices in seen if len(indices) > 1]


def _key(ranks: Sequence[int]) -> tuple[int, ...] | RankRange:
    return ranks if isinstance(ranks, RankRange) else tuple(sorted(ranks))


def neighbours(group: Sequence[Access], writing: Collection[EffectKind]) -> list[tuple[Access, Access]]:
    """Pairs whose order implies that of all conflicting pairs: every access with the write before it, every write with the reads since."""
    pairs: dict[tuple[int, int], tuple[Access, Access]] = {}
    for chain in by_ranks(group):
        write: Access | None = None
        reads: list[Access] = []
        for item in chain:
            before = reads if item.writes(writing) and reads else [write] if write is not None else []
            for other in before:
                if other.task != item.task and meet(other.ranks, item.ranks):
                    pairs.setdefault((other.task, item.task), (other, item))
            if item.writes(writing):
                write, reads = item, []
            else:
                reads.append(item)
    return list(pairs.values())
