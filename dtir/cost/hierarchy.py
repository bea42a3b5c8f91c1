"""Collectives over levels of unequal links: g ranks of a node, N nodes (and racks, pods, ... above).

A hierarchical algorithm does on every level what that level is good at: all_reduce scatters inside the node, reduces the
shares across nodes, gathers inside the node. Its bytes a rank add up to those of the flat ring, but only
``2(S/g)(N−1)/N`` of them use the slow link (SEMANTICS 3.3).

>>> fast, slow = Link(1e-6, 1e-11), Link(1e-5, 1e-9)
>>> [(phase.level, phase.kind.value, phase.members) for phase in phases(CollectiveKind.ALL_REDUCE, (8, 4), 1 << 20)]
[(0, 'reduce_scatter', 8), (1, 'all_reduce', 4), (0, 'all_gather', 8)]
>>> plan = hierarchical(CollectiveKind.ALL_REDUCE, (8, 4), 1 << 20, (fast, slow))
>>> plan.wire_bytes[1] == 2 * (1 << 17) * 3 / 4
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from dtir.cost.algorithms import Choice, Link, best
from dtir.cost.formulas import Number, share
from dtir.ir.collectives import CollectiveKind


@dataclass(frozen=True, slots=True)
class Phase:
    """One collective on one level.

    Args:
        level: 0 is the innermost.
        kind: what it does there.
        members: ranks of a group on this level.
        size_bytes: its own S.
    """

    level: int
    kind: CollectiveKind
    members: int
    size_bytes: Number


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """A collective as phases, one after the other.

    Args:
        phases: what is done.
        choices: the algorithm of every phase.
        seconds: all of them together.
        wire_bytes: bytes that a rank sends on every level, innermost first.
    """

    phases: tuple[Phase, ...]
    choices: tuple[Choice, ...]
    seconds: float
    wire_bytes: tuple[Number, ...]

    @property
    def name(self) -> str:
        """The algorithms of the phases: ``ring+rabenseifner+ring``."""
        return "+".join(choice.name for choice in self.choices)


def phases(kind: CollectiveKind, sizes: Sequence[int], n: Number) -> list[Phase]:
    """What is done on which level, in order.

    Args:
        kind: the collective.
        sizes: members a unit of every level, innermost first; their product is the group.
        n: S of the whole collective.
    """
    found: list[Phase] = []
    outer: list[Phase] = []
    match kind:
        case CollectiveKind.ALL_REDUCE:
            for level, size in enumerate(sizes[:-1]):
                found.append(Phase(level, CollectiveKind.REDUCE_SCATTER, size, n))
                outer.append(Phase(level, CollectiveKind.ALL_GATHER, size, n))
                n = share(n, 1, size)
            found.append(Phase(len(sizes) - 1, kind, sizes[-1], n))
        case CollectiveKind.REDUCE_SCATTER:
            for level, size in enumerate(sizes):
                found.append(Phase(level, kind, size, n))
                n = share(n, 1, size)
        case CollectiveKind.ALL_GATHER:
            for level, size in enumerate(sizes):
                outer.append(Phase(level, kind, size, n))
                n = share(n, 1, size)
        case CollectiveKind.ALL_TO_ALL:
            # Blocks for other nodes are collected at the right local rank first.
            found = [Phase(level, kind, size, n) for level, size in enumerate(sizes)]
        case CollectiveKind.BROADCAST:
            found = [Phase(level, kind, size, n) for level, size in reversed(list(enumerate(sizes)))]
        case CollectiveKind.COLLECTIVE_PERMUTE:
            found = [Phase(len(sizes) - 1, kind, sizes[-1], n)]
        case _:
            assert_never(kind)
    return [phase for phase in (*found, *reversed(outer)) if phase.members > 1]


def hierarchical(kind: CollectiveKind, sizes: Sequence[int], n: Number, links: Sequence[Link]) -> Hierarchical:
    """A collective over levels, the cheapest algorithm on each.

    Args:
        kind: the collective.
        sizes: members a unit of every level, innermost first.
        n: S.
        links: the link of every level.

    Raises:
        ValueError: not one link a level, or no level.
    """
    if len(sizes) != len(links) or not sizes:
        raise ValueError(f"sizes={tuple(sizes)}, links={len(links)}: wanted one link a level, at least one level")
    steps = phases(kind, sizes, n)
    choices = [best(step.kind, step.members, step.size_bytes, links[step.level]) for step in steps]
    wire: list[Number] = [0] * len(sizes)
    for step, choice in zip(steps, choices, strict=True):
        wire[step.level] += choice.terms.wire_bytes
    return Hierarchical(tuple(steps), tuple(choices), sum(choice.seconds for choice in choices), tuple(wire))
