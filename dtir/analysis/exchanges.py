"""Reads the collectives of a program: which axes their groups are fibres of, which dims they work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.fibres import AxisSpan, Space, factor_mesh, spans_of_groups
from dtir.analysis.transitions import Exchange
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    ReduceScatter,
    collective_kind,
)
from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import RankRange
from dtir.ir.tasks import Collective, DistributedTask

Grouped = AllReduce | ReduceScatter | AllGather | AllToAll | Broadcast


@dataclass(frozen=True, slots=True)
class Read:
    """A collective as layouts see it, or why it has no axes."""

    exchange: Exchange
    deviation: Deviation | None = None


def listed_groups(spec: Grouped) -> Sequence[Sequence[int]]:
    """The groups that a collective lists: its own, or all participants as one; none where axes say it."""
    if spec.groups:
        return spec.groups
    return () if spec.axes else (spec.participants,)


class ExchangeReader:
    """Knows the axes of every collective of a program; equal group lists are looked at once."""

    def __init__(self, program: DistributedTaskIR) -> None:
        self.mesh: LogicalMesh = program.mesh
        self._spans: dict[Any, tuple[AxisSpan, ...] | None] = {}
        self._by_identity: dict[int, tuple[AxisSpan, ...] | None] = {}
        wanted = [spans for spans in self._all_spans(program) if spans]
        self.space: Space
        self.space, self.fits = factor_mesh(program.mesh, wanted)

    def _all_spans(self, program: DistributedTaskIR) -> Iterator[tuple[AxisSpan, ...] | None]:
        for task in program.all_tasks():
            if isinstance(task.body, Collective) and not isinstance(task.body.spec, CollectivePermute):
                groups = listed_groups(task.body.spec)
                if groups:
                    yield self.spans(groups)

    def spans(self, groups: Sequence[Sequence[int]]) -> tuple[AxisSpan, ...] | None:
        """The parts of axes whose fibres some groups are; None when they are none."""
        identity = id(groups) if isinstance(groups, tuple) and len(groups) > 1 else id(groups[0]) if groups else 0
        if identity in self._by_identity:
            return self._by_identity[identity]
        key = tuple(group if isinstance(group, RankRange) else tuple(group) for group in groups)
        if key not in self._spans:
            self._spans[key] = spans_of_groups(self.mesh, groups)
        # The program keeps its groups alive, so that an identity stays theirs.
        self._by_identity[identity] = self._spans[key]
        return self._spans[key]

    def axes(self, spec: Grouped) -> tuple[str, ...] | None:
        """The factors whose fibres the groups are, major to minor; None when they are no fibres."""
        groups = listed_groups(spec)
        if not groups:
            return self.space.expand(spec.axes)
        spans = self.spans(groups)
        return None if spans is None else self.space.named(spans)

    def read(self, task: DistributedTask, spec: Grouped) -> Read | None:
        """A collective as layouts see it; None when its axes cannot be told for a reason of ours (cuts that do not fit)."""
        groups = listed_groups(spec)
        axes = self.axes(spec)
        exchange = self._exchange(task, spec, axes or ())
        if axes is None:
            if self.spans(groups) is not None:
                return None
            return Read(exchange, Deviation(Kind.GROUP_SPLIT, found=_groups_text(groups)))
        if spec.groups and spec.axes and set(axes) != set(self.space.expand(spec.axes)):
            wanted = ", ".join(spec.axes)
            return Read(exchange, Deviation(Kind.GROUP_SPLIT, axes, found=_groups_text(groups), wanted=wanted))
        return Read(exchange)

    def _exchange(self, task: DistributedTask, spec: Grouped, axes: tuple[str, ...]) -> Exchange:
        reduction = dim = split = concat = None
        match spec:
            case AllReduce():
                reduction = spec.reduction
            case ReduceScatter():
                reduction, dim = spec.reduction, spec.dim
            case AllGather():
                dim = spec.dim
            case AllToAll():
                split, concat = spec.split_dim, spec.concat_dim
            case Broadcast():
                pass
        attributes = task.attributes
        return Exchange(
            collective_kind(spec),
            axes,
            reduction,
            dim,
            split,
            concat,
            vector=attributes.get("op.vector") is True,
            trim=attributes.get("op.trim") is True,
            routed=is_routed(task),
            alone=not axes,
            listed=bool(listed_groups(spec)),
        )


_ROUTED = ("op.route", "op.send_splits", "op.recv_splits")


def is_routed(task: DistributedTask) -> bool:
    """True for an exchange whose parts are given by a route or by counts."""
    attributes = task.attributes
    return bool(attributes) and any(name in attributes for name in _ROUTED)


def _groups_text(groups: Sequence[Sequence[int]]) -> str:
    shown = [
        "{" + ", ".join(str(rank) for rank in group[:8]) + (", ..." if len(group) > 8 else "") + "}"
        for group in groups[:4]
    ]
    return ", ".join(shown) + (f", ... ({len(groups)} groups)" if len(groups) > 4 else "")
