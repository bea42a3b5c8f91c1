"""What lives when in the memory of a rank: blocks over the program's own task list, as `dtir.cost.memory` counts them.

A block is a value and all that share its memory. It lives from the task that makes it to the last that uses it on that rank; inputs
live from the start, outputs to the end. What happens inside of a region counts at the task that enters it.
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

HLO = "hlo"
BEFORE = -1
"""The position before the first task."""


@dataclass(frozen=True, slots=True)
class Block:
    """Memory of one value of the program's own list.

    Args:
        value: its position.
        size_bytes: on the rank.
        born: position of the task that makes it, in the order of the rank; `BEFORE` for inputs.
        dies: position of the last task that needs it; None: it is there at the end.
    """

    value: int
    size_bytes: float
    born: int
    dies: int | None


@dataclass(frozen=True, slots=True)
class Lives:
    """The memory of one class of ranks.

    Args:
        order: positions of tasks, in the order of the rank.
        blocks: by birth.
        inside: bytes that regions need at the task that enters them, by place in `order`.
        unknown: values whose size is not known.
    """

    order: tuple[int, ...] = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)
    inside: Mapping[int, float] = field(repr=False)
    unknown: int = 0


def lives_of(made: Schedule, one: int, rank: int) -> Lives:
    """The memory of a class of ranks.

    Args:
        made: a schedule; its times do not matter.
        one: the class.
        rank: one of its ranks.
    """
    walk = _Walk(made, one, rank)
    return walk.main(made.indexes[0])


class _Walk:
    """Walks the scopes of one class."""

    def __init__(self, made: Schedule, one: int, rank: int) -> None:
        self._made, self._one, self._rank = made, one, rank
        self._regions = {index.scope.id: index for index in made.indexes if isinstance(index.scope, Region)}
        self._peaks: dict[int, float] = {}
        self._owned: dict[int, bool] = {}
        self._unknown: set[tuple[int, int]] = set()

    def size(self, index: ScopeIndex, value: int) -> float:
        """Bytes of a value on the rank; 0 where it holds nothing or the size is not known."""
        item = index.scope.values[value]
        key = id(item.owners)
        if key not in self._owned:
            self._owned[key] = len(item.owners) == self._made.program.mesh.size or self._rank in rank_set(item.owners)
        if not self._owned[key]:
            return 0.0
        found = self._made.sizes.bytes_of(item, self._rank)
        if found is None:
            self._unknown.add((index.base, value))
            return 0.0
        return float(found)

    def main(self, index: ScopeIndex) -> Lives:
        blocks, inside, order = self._walk(index)
        return Lives(tuple(order), tuple(blocks), inside, len(self._unknown))

    def peak(self, index: ScopeIndex) -> float:
        """The peak of a scope."""
        if index.base not in self._peaks or not index.tasks:
            blocks, inside, order = self._walk(index)
            self._peaks[index.base] = max(totals(blocks, inside, len(order)), default=0.0)
        return self._peaks[index.base]

    def _walk(self, index: ScopeIndex) -> tuple[list[Block], dict[int, float], list[int]]:
        size = self._made.program.mesh.size
        order = [
            place
            for place in index.order
            if len(index.tasks[place].ranks) == size
            or self._one in self._made.classes.of_ranks(index.tasks[place].ranks)
        ]
        roots, last = lives(index, order)
        born: dict[int, int] = dict.fromkeys((roots[value] for value in index.inputs), BEFORE)
        live: dict[int, float] = {value: self.size(index, value) for value in born}
        ends: dict[int, list[int]] = {}
        for value, place in last.items():
            ends.setdefault(place, []).append(value)
        inside: dict[int, float] = {}
        blocks: list[Block] = []
        total = sum(live.values())
        for at, place in enumerate(order):
            dying = [value for value in ends.get(at, ()) if value in live]
            sizes = {value: live[value] for value in dying}
            made_here = list(dict.fromkeys(roots[value] for value in index.writes[place]))
            fresh = {value: self.size(index, value) for value in made_here if value not in live}
            taken = reused(
                self._made.program,
                index,
                place,
                dying,
                roots,
                sizes | fresh | {v: live[v] for v in made_here if v in live},
            )
            for value, bytes_of_value in fresh.items():
                live[value] = bytes_of_value
                born[value] = at + 1 if taken else at  # what takes the place of an operand begins when that ends
            total += sum(fresh.values())
            inner = self._inner(index, place, sizes)
            if taken or inner is not None:
                needed = total - taken
                if inner is not None:
                    needed = max(needed, total - sum(live[value] for value in made_here) - inner[1] + inner[0])
                drawn = total - (sum(fresh.values()) if taken else 0.0)
                if needed > drawn:
                    inside[at] = needed - drawn
            for value in dying:
                total -= live[value]
                blocks.append(Block(value, live.pop(value), born[value], at))
        blocks += [Block(value, bytes_of_value, born[value], None) for value, bytes_of_value in live.items()]
        blocks.sort(key=lambda item: (item.born, item.value))
        return blocks, inside, order

    def _inner(self, index: ScopeIndex, place: int, dying: Mapping[int, float]) -> tuple[float, float] | None:
        """The peak of what a task enters, and the bytes around it that are counted inside already."""
        task = index.tasks[place]
        if is_fusion(task):
            return None
        match task.body:
            case Call(region=region):
                return self._region(region), self._inputs(region)
            case Loop(body=region):
                return self._region(region), sum(dying.values())
            case Branch(regions=names) if names:
                largest = max(names, key=self._region)
                return self._region(largest), self._inputs(largest)
            case _:
                return None

    def _region(self, name: RegionId) -> float:
        return self.peak(self._regions[name])

    def _inputs(self, name: RegionId) -> float:
        index = self._regions[name]
        return sum(self.size(index, value) for value in index.inputs)


def totals(blocks: Sequence[Block], inside: Mapping[int, float], length: int) -> list[float]:
    """Bytes that are live before the first task, and at each."""
    change = [0.0] * (length + 2)
    for block in blocks:
        begin = block.born + 1
        change[min(begin, length + 1)] += block.size_bytes
        if block.dies is not None and block.dies + 2 <= length + 1:
            change[block.dies + 2] -= block.size_bytes
    found: list[float] = []
    total = 0.0
    for at in range(length + 1):
        total += change[at]
        found.append(total + inside.get(at - 1, 0.0))
    return found
