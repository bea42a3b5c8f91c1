"""Bytes on the wire by mesh axis and by level of the machine, weighted by how often tasks run.

An axis (or a combination) is named by what the groups of a collective are fibres of; a transfer belongs to the axes along
which its ends differ. The bytes are what any algorithm sends at least (SEMANTICS 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtir.analysis.exchanges import ExchangeReader
from dtir.cost.exchange import Exchange
from dtir.cost.schedule import Schedule
from dtir.cost.spans import Stream
from dtir.ir.collectives import CollectivePermute
from dtir.ir.mesh import LogicalMesh
from dtir.ir.tasks import Collective, PointToPoint, Reshard

NO_AXES = "(no axes)"
"""Groups that are fibres of no axes."""

MOST_PAIRS = 65_536


@dataclass(slots=True)
class Traffic:
    """What goes over one axis.

    Args:
        total_bytes: all ranks together.
        messages: executions of collectives and transfers.
        seconds: planned time of all executions of one group.
    """

    total_bytes: float = 0.0
    messages: int = 0
    seconds: float = 0.0


def axes_of(exchange: Exchange, reader: ExchangeReader, mesh: LogicalMesh) -> tuple[str, ...]:
    """The axes that a communication task goes along; empty when there are none to name."""
    match exchange.task.body:
        case Collective(spec=CollectivePermute()) | PointToPoint():
            return _pair_axes(exchange, mesh)
        case Collective(spec=spec) if not isinstance(spec, CollectivePermute):
            return reader.axes(spec) or ()
        case Reshard():
            return mesh.axis_names
        case _:
            return ()


def _pair_axes(exchange: Exchange, mesh: LogicalMesh) -> tuple[str, ...]:
    used: set[str] = set()
    for number, pair in enumerate(exchange.groups):
        if number >= MOST_PAIRS or len(used) == len(mesh.axes):
            break
        ends = [mesh.coordinates(int(rank)) for rank in pair]
        used.update(name for name, a, b in zip(mesh.axis_names, *ends, strict=True) if a != b)
    return tuple(name for name in mesh.axis_names if name in used)


def executions(made: Schedule) -> dict[int, int]:
    """How often every task was counted on the clock, by number: on one rank of those that run it."""
    found: dict[int, dict[tuple[int, int], int]] = {}
    spans = made.spans
    for place in range(len(spans)):
        if spans.stream[place] == Stream.BOTH:
            continue
        # A rank may stand in two pairs of one permute: the groups are counted, not its parts in them.
        key = (spans.meeting[place], -1) if place in spans.meeting else (-1, spans.classes[place][0])
        counts = found.setdefault(spans.task[place], {})
        counts[key] = counts.get(key, 0) + spans.times[place]
    return {number: max(counts.values()) for number, counts in found.items()}


def by_axis(made: Schedule, counts: Mapping[int, int], axes: Mapping[int, tuple[str, ...]]) -> dict[str, Traffic]:
    """Traffic by axis, the names of several joined with ``,``; in order of first use."""
    found: dict[str, Traffic] = {}
    for number, exchange in made.exchanges.items():
        times = counts.get(number, 0)
        if not times or exchange.total_bytes is None:
            continue
        entry = found.setdefault(",".join(axes[number]) or NO_AXES, Traffic())
        entry.total_bytes += float(exchange.total_bytes) * times
        entry.messages += times
        entry.seconds += (exchange.price.seconds or 0.0) * times
    return found


def by_level(made: Schedule, counts: Mapping[int, int]) -> dict[str, float]:
    """Bytes that the busiest rank of every task sends over each level of the machine, summed over executions."""
    found: dict[str, float] = {level.name: 0.0 for level in made.profile.levels}
    for number, exchange in made.exchanges.items():
        times = counts.get(number, 0)
        most: dict[str, float] = {}
        for price in exchange.prices:
            for name, sent in price.level_bytes:
                most[name] = max(most.get(name, 0.0), sent)
        for name, sent in most.items():
            found[name] = found.get(name, 0.0) + sent * times
    return {name: sent for name, sent in found.items() if sent}
