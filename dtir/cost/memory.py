"""Memory of every class of ranks: live values from their definition to their last use on that rank (SEMANTICS 3.7).

Inputs are live from the start, outputs to the end; what is sent stays live until it is completed. A result that is its
operand seen in another way (a bitcast, the end of an asynchronous operation) takes no memory of its own, and an update in
place takes that of its operand where nobody else needs it. A region adds its own peak to what is live around it; a loop
carries its operands in place; of branches the largest counts.

What is not in the document is not counted: workspaces of libraries, fragmentation, communication buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dtir.cost.index import ScopeIndex
from dtir.cost.lives import lives, reused
from dtir.cost.schedule import Schedule
from dtir.cost.task_work import is_fusion
from dtir.ir.ids import RegionId
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import Branch, Call, Loop, Region

LARGEST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Held:
    """A value that is live at the peak."""

    name: str
    size_bytes: int | float
    region: str


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak of one class of ranks.

    Args:
        peak_bytes: most bytes that are live at a time.
        task: at which task, by name or id; empty before the first.
        region: where that task is; empty for the program.
        input_bytes: bytes of the program's inputs.
        largest: the largest values that are live then, at most `LARGEST_SHOWN`.
        live_values: how many are live then.
        unknown: values whose size is not known.
    """

    peak_bytes: int | float
    task: str
    region: str
    input_bytes: int | float
    largest: tuple[Held, ...] = field(default=(), repr=False)
    live_values: int = 0
    unknown: int = 0


@dataclass(slots=True)
class _Found:
    """The peak of one scope: bytes, where, and the values that are live then."""

    size: float = 0
    task: str = ""
    region: str = ""
    live: list[Held] = field(default_factory=list[Held])


def memory_by_class(made: Schedule) -> list[Peak]:
    """The peak of every class of ranks, in their order."""
    regions = {index.scope.id: index for index in made.indexes if isinstance(index.scope, Region)}
    found: list[Peak] = []
    firsts = made.classes.first_ranks()
    # Ranks that hold as much of everything have one peak, however their times differ.
    for one, rank in enumerate(firsts[:1] if _hold_the_same(made) else firsts):
        walk = _Walk(made, regions, one, rank)
        peak = walk.scope(made.indexes[0])
        main = made.indexes[0]
        inputs = sum(walk.size(main, value) for value in main.inputs)
        largest = sorted(peak.live, key=lambda item: -item.size_bytes)[:LARGEST_SHOWN]
        found.append(
            Peak(_whole(peak.size), peak.task, peak.region, _whole(inputs), tuple(largest), len(peak.live),
                 walk.unknown)
        )  # fmt: skip
    return found if len(found) == len(firsts) else found * len(firsts)


def _hold_the_same(made: Schedule) -> bool:
    """Whether all ranks run every task and hold as much of every value."""
    size = made.program.mesh.size
    return all(
        all(len(task.ranks) == size for task in index.tasks)
        and all(len(value.owners) == size and made.sizes.is_uniform(value) for value in index.scope.values)
        for index in made.indexes
    )


def _whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number


class _Walk:
    """Walks the scopes of one class."""

    def __init__(self, made: Schedule, regions: Mapping[RegionId, ScopeIndex], one: int, rank: int) -> None:
        self._made = made
        self._regions = regions
        self._one = one
        self._rank = rank
        self._peaks: dict[int, _Found] = {}
        self._owned: dict[int, bool] = {}
        self.unknown = 0

    def size(self, index: ScopeIndex, value: int) -> float:
        """Bytes of a value on the rank; 0 where it holds nothing."""
        item = index.scope.values[value]
        key = id(item.owners)
        if key not in self._owned:
            self._owned[key] = len(item.owners) == self._made.program.mesh.size or self._rank in rank_set(item.owners)
        if not self._owned[key]:
            return 0
        found = self._made.sizes.bytes_of(item, self._rank)
        if found is None:
            self.unknown += 1
            return 0
        return found

    def scope(self, index: ScopeIndex) -> _Found:
        """The peak of a scope, its inputs included."""
        if index.base in self._peaks and index.tasks:
            return self._peaks[index.base]
        order = [place for place in index.order if self._runs(index, place)]
        roots, last = lives(index, order)
        sizes = {value: self.size(index, value) for value in roots.values()}
        live = dict.fromkeys(roots[value] for value in index.inputs)
        ends: dict[int, list[int]] = {}
        for value, place in last.items():
            ends.setdefault(place, []).append(value)
        total = sum(sizes[value] for value in live)
        peak = self._held(index, live, sizes, total, "")
        for position, place in enumerate(order):
            dying = [value for value in ends.get(position, ()) if value in live]
            inner = self._inner(index, place, dying, sizes)
            for value in index.writes[place]:
                root = roots[value]
                if root not in live:
                    live[root] = None
                    total += sizes[root]
            in_place = reused(self._made.program, index, place, dying, roots, sizes)
            if total - in_place > peak.size:
                peak = self._held(index, live, sizes, total - in_place, self._name(index, place))
            if inner is not None:
                made_here = sum(sizes[roots[value]] for value in index.writes[place])
                around = total - made_here - inner[1]
                if around + inner[0].size > peak.size:
                    gone = {*dying, *(roots[value] for value in index.writes[place])} if inner[1] else set[int]()
                    outside = self._held(index, {item: None for item in live if item not in gone}, sizes, around, "")
                    peak = _Found(around + inner[0].size, inner[0].task, inner[0].region, outside.live + inner[0].live)
            for value in dying:
                del live[value]
                total -= sizes[value]
        if index.tasks:
            self._peaks[index.base] = peak
        return peak

    def _held(
        self, index: ScopeIndex, live: Mapping[int, None], sizes: Mapping[int, float], total: float, task: str
    ) -> _Found:
        values = index.scope.values
        held = [Held(values[item].name or str(values[item].id), _whole(sizes[item]), index.name) for item in live]
        return _Found(total, task, index.name, held)

    def _name(self, index: ScopeIndex, place: int) -> str:
        return index.tasks[place].name or str(index.tasks[place].id)

    def _runs(self, index: ScopeIndex, place: int) -> bool:
        ranks = index.tasks[place].ranks
        return len(ranks) == self._made.program.mesh.size or self._one in self._made.classes.of_ranks(ranks)

    # -- regions ------------------------------------------------------------------------------------------------------------

    def _inner(
        self, index: ScopeIndex, place: int, dying: Sequence[int], sizes: Mapping[int, float]
    ) -> tuple[_Found, float] | None:
        """The peak of what a task enters, and the bytes around it that are counted inside already."""
        task = index.tasks[place]
        if is_fusion(task):
            return None
        match task.body:
            case Call(region=region):
                peak = self._region(region)
                inner = self._regions[region]
                return peak, sum(self.size(inner, value) for value in inner.inputs)
            case Loop(body=region):
                # What ends here is carried inside, in place; what is read again afterwards is copied first.
                return self._region(region), sum(sizes[value] for value in dying)
            case Branch(regions=names):
                peaks = [self._region(name) for name in names]
                if not peaks:
                    return None
                largest = max(range(len(peaks)), key=lambda number: peaks[number].size)
                inner = self._regions[names[largest]]
                return peaks[largest], sum(self.size(inner, value) for value in inner.inputs)
            case _:
                return None

    def _region(self, name: RegionId) -> _Found:
        return self.scope(self._regions[name])
