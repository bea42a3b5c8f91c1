"""Bytes from rank to rank: which pairs a communication task uses, summed into a square of at most 64 × 64 cells.

What a collective sends is the least that any algorithm sends (SEMANTICS 3.1), laid on the pairs of a common algorithm: a ring in
member order for all-reduce, reduce-scatter and all-gather, a chain from the root for broadcast, every pair alike for
all-to-all. Transfers and permutes have their own pairs. A reshard or ghost exchange sends what each destination lacks, from whom
the numpy back end takes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import Groups, groups_of
from dtir.analysis.volume import wire_bytes
from dtir.cost.classes import pattern_of
from dtir.cost.spread import TooMany
from dtir.execute.moves import reshard_moves
from dtir.execute.placement import Placement, PlacementError
from dtir.ir.collectives import AllToAll, Broadcast, CollectiveKind, CollectivePermute, collective_kind
from dtir.ir.tasks import Collective, PointToPoint, Reshard
from dtir.ir.types import dtype_bits
from dtir.ir.values import DistributedValue
from dtir_app.store import Store

SIDE = 64
"""More ranks are shown in blocks."""

MOST_RESHARD_PAIRS = 65_536
"""Holders times receivers of a reshard that is looked at rank by rank: 256 ranks."""

MOST_PAIRS = 4_000_000
"""Pairs of one collective that are looked at; an all-to-all of 2,000 ranks has as many."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Units:
    """The rows and columns of the square.

    Args:
        of_rank: unit of every rank.
        count: how many there are.
        ranks_each: ranks of a unit; 1 when a unit is a rank.
        noun: ``rank``, ``block`` or ``process``.
    """

    of_rank: Ints = field(repr=False)
    count: int
    ranks_each: int
    noun: str

    def label(self, unit: int) -> str:
        """A unit as an axis names it."""
        if self.noun != "block":
            return str(unit)
        last = min((unit + 1) * self.ranks_each, len(self.of_rank)) - 1
        return f"{unit * self.ranks_each}–{last}"


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """What one task sends in one run of the program.

    Args:
        task: the task.
        cells: source unit times the number of units, plus destination unit; ascending.
        sent_bytes: bytes of each.
    """

    task: int
    cells: Ints = field(repr=False)
    sent_bytes: Floats = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """What all tasks send.

    Args:
        units: rows and columns.
        flows: one a task that sends.
        left_out: why tasks are not among them, with their number.
    """

    units: Units
    flows: tuple[Flow, ...] = field(repr=False)
    left_out: tuple[tuple[str, int], ...] = ()


def rank_units(ranks: int) -> Units:
    """Ranks one by one, or in blocks where they are many."""
    each = max(1, -(-ranks // SIDE))
    count = -(-ranks // each)
    return Units(
        np.arange(min(ranks, MOST_PAIRS), dtype=np.int64) // each, count, each, "rank" if each == 1 else "block"
    )


def process_units(process_of: Sequence[int]) -> Units:
    """Processes."""
    of_rank = np.asarray(process_of, dtype=np.int64)
    return Units(of_rank, int(of_rank.max(initial=0)) + 1, 1, "process")


def planned_flows(store: Store, units: Units) -> Flows:
    """What every communication task sends by plan."""
    patterns: dict[object, tuple[Ints, Floats] | str] = {}
    flows: list[Flow] = []
    left_out: dict[str, int] = {}
    for task, record in enumerate(store.task_records):
        body = record.body
        if not isinstance(body, (Collective, PointToPoint, Reshard)):
            continue
        size, runs = float(store.tasks.message_bytes[task]), float(store.tasks.executions[task])
        pattern: tuple[Ints, Floats] | str
        if isinstance(body, Reshard):
            size, pattern = 1.0, _resharded(store, task, body, units, patterns)
        elif not np.isfinite(size):
            pattern = "the size of the message is symbolic"
        else:
            key = _key(body)
            if key not in patterns:
                patterns[key] = _pattern(store, body, units)
            pattern = patterns[key]
        if isinstance(pattern, str):
            left_out[pattern] = left_out.get(pattern, 0) + 1
            continue
        cells, parts = pattern
        times = runs if np.isfinite(runs) else 1.0  # how often is not known: once is counted
        flows.append(Flow(task, cells, parts * size * times))
    return Flows(units, tuple(flows), tuple(left_out.items()))


def _resharded(
    store: Store, task: int, body: Reshard, units: Units, patterns: dict[object, tuple[Ints, Floats] | str]
) -> tuple[Ints, Floats] | str:
    """Cells of a reshard and their bytes; a reason where they are not known. Reshards of the same layouts are looked at once."""
    record, scope = store.task_records[task], int(store.tasks.scope[task])
    if len(record.inputs) != len(record.outputs):
        return "a reshard with other numbers of inputs and outputs"
    found = np.zeros(0, dtype=np.int64), np.zeros(0)
    for one, other in zip(record.inputs, record.outputs, strict=True):
        ends = store.value_at(scope, one.value), store.value_at(scope, other.value)
        if min(ends) < 0:
            return "a reshard of values that are not there"
        source, target = (store.value_records[end] for end in ends)
        key = (
            body.kind,
            body.regions,
            *((item.type, item.sharding, item.owners, item.local_shapes) for item in (source, target)),
        )
        if key not in patterns:
            patterns[key] = _moved(store, body, source, target, units)
        pattern = patterns[key]
        if isinstance(pattern, str):
            return pattern
        found = _joined(found, pattern)
    return found


def _moved(
    store: Store, body: Reshard, source: DistributedValue, target: DistributedValue, units: Units
) -> tuple[Ints, Floats] | str:
    if len(source.owners) * len(target.owners) > MOST_RESHARD_PAIRS:
        return "a reshard among more ranks than are looked at one by one"
    bits = dtype_bits(target.type.dtype)
    if bits is None:
        return "a reshard of elements whose size is not known"
    mesh, bindings = store.mesh, store.program.bindings
    try:
        placements = [Placement.of(value, mesh, bindings) for value in (source, target)]
        moves = reshard_moves(body, placements[0], tuple(source.owners), placements[1], tuple(target.owners)).moves
    except PlacementError as error:
        return f"a reshard that cannot be placed: {error}"
    sent = [move for move in moves if move.source != move.destination]
    sizes = [math.prod(stop - start for start, stop in move.source_box) * bits / 8 for move in sent]
    source_ranks = np.array([move.source for move in sent], dtype=np.int64)
    return _summed(source_ranks, np.array([move.destination for move in sent], dtype=np.int64), np.array(sizes), units)


def _joined(one: tuple[Ints, Floats], other: tuple[Ints, Floats]) -> tuple[Ints, Floats]:
    cells, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    return cells, np.bincount(place, weights=np.concatenate([one[1], other[1]]), minlength=len(cells))


def _key(body: Collective | PointToPoint) -> object:
    if isinstance(body, PointToPoint):
        return body.spec.source_rank, body.spec.destination_rank
    spec = body.spec
    members = (
        getattr(spec, "pairs", ()) or getattr(spec, "groups", ()) or getattr(spec, "axes", ()) or spec.participants
    )
    return type(spec), members, getattr(spec, "root", None), getattr(spec, "roots", ())


def _pattern(store: Store, body: Collective | PointToPoint, units: Units) -> tuple[Ints, Floats] | str:
    """Cells, and for each the messages of size S that go through it; a reason where there are too many."""
    if isinstance(body, PointToPoint):
        ends = np.array([[body.spec.source_rank, body.spec.destination_rank]], dtype=np.int64)
        return _summed(ends[:, 0], ends[:, 1], np.ones(1), units)
    spec = body.spec
    if isinstance(spec, CollectivePermute):
        pairs = np.array([pair for pair in spec.pairs if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)
        return _summed(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)), units)
    groups = groups_of(spec, store.mesh) or ()
    try:
        source, destination, weight = _group_pairs(groups, spec, collective_kind(spec))
    except TooMany:
        return "more ranks than are looked at one by one"
    return _summed(source, destination, weight, units)


def _group_pairs(groups: Groups, spec: object, kind: CollectiveKind) -> tuple[Ints, Ints, Floats]:
    """Source, destination and share of S of every pair.

    Raises:
        TooMany: more ranks or pairs than are looked at.
    """
    if not len(groups):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    flat = pattern_of(groups, None)
    lengths = np.diff(np.append(flat.starts, len(flat.members)))
    group = np.repeat(np.arange(len(lengths)), lengths)
    first, length = flat.starts[group], lengths[group]
    place = np.arange(len(flat.members)) - first
    totals = {int(count): float(wire_bytes(kind, int(count), 1)) for count in np.unique(lengths)}
    total = np.array([totals[int(count)] for count in length.tolist()])
    if isinstance(spec, AllToAll):
        if int((lengths * lengths).sum()) > MOST_PAIRS:
            raise TooMany("pairs of an all-to-all")
        counts = length
        source = np.repeat(np.arange(len(flat.members)), counts)
        other = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        destination = np.repeat(first, counts) + other
        kept = source != destination
        share = np.repeat(total / np.maximum(1, length * (length - 1)), counts)
        return flat.members[source[kept]], flat.members[destination[kept]], share[kept]
    if isinstance(spec, Broadcast):
        root = _root_places(flat.members, flat.starts, spec)[group]
        after = first + (root + (place + 1)) % length
        here = first + (root + place) % length
        kept = place < length - 1
        return flat.members[here[kept]], flat.members[after[kept]], (total / np.maximum(1, length - 1))[kept]
    after = first + (place + 1) % length
    kept = length > 1
    return flat.members[kept], flat.members[after[kept]], (total / length)[kept]


def _root_places(members: Ints, starts: Ints, spec: Broadcast) -> Ints:
    """Place of the root within every group; a group without a stated one takes the place that the first one has."""
    roots = spec.roots or (spec.root,)
    places = np.zeros(len(starts), dtype=np.int64)
    found = np.flatnonzero(np.isin(members, roots))
    if len(found):
        group = np.searchsorted(starts, found, side="right") - 1
        places[:] = found[0] - starts[group[0]]
        places[group] = found - starts[group]
    return places


def _summed(source: Ints, destination: Ints, weight: Floats, units: Units) -> tuple[Ints, Floats]:
    if len(source) and max(int(source.max()), int(destination.max())) >= len(units.of_rank):
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    one, other = units.of_rank[source], units.of_rank[destination]
    if units.noun == "process":  # within a process nothing is sent
        kept = one != other
        one, other, weight = one[kept], other[kept], weight[kept]
    cells, place = np.unique(one * units.count + other, return_inverse=True)
    return cells, np.bincount(place.reshape(-1), weights=weight, minlength=len(cells))
