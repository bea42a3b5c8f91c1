"""Which task of one task list is which of another.

From the surest to the least sure: the same work on the same values (`EXACT`); the same id or the same origin (`LINEAGE`: name,
operation name and source line of the program it came from); neighbours of matched tasks that do the same kind of work, or the
same work with other sizes and layouts (`STRUCTURE`); the n-th of its kind (`ORDER`). A task is matched once.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from dtir.diff.entries import Match
from dtir.diff.scopes import CYCLE, Scope
from dtir.ir.ids import ValueId
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint, Reshard
from dtir.ir.values import DistributedValue

Key = Callable[[Scope, int], Hashable | None]


@dataclass(slots=True)
class Matching:
    """Pairs of two task lists.

    Args:
        forward: task of the second list by task of the first.
        backward: the other way round.
        how: by task of the first.
        values: value of the second by value of the first.
        values_back: the other way round.
    """

    forward: dict[int, int] = field(default_factory=dict[int, int])
    backward: dict[int, int] = field(default_factory=dict[int, int])
    how: dict[int, Match] = field(default_factory=dict[int, Match])
    values: dict[ValueId, ValueId] = field(default_factory=dict[ValueId, ValueId])
    values_back: dict[ValueId, ValueId] = field(default_factory=dict[ValueId, ValueId])

    def pair_values(self, left: ValueId, right: ValueId) -> None:
        """Two values are one; the first word counts."""
        if left not in self.values and right not in self.values_back:
            self.values[left] = right
            self.values_back[right] = left


def pair_inputs(left: Sequence[DistributedValue], right: Sequence[DistributedValue]) -> list[tuple[int, int]]:
    """Which input is which, as numbers: by name where names are unique and the numbers differ, then by place among the rest.

    As long as both have equally many, the place decides: a compiler calls the same parameter by another name.
    """
    if len(left) == len(right):
        return [(at, at) for at in range(len(left))]
    named = [Counter(value.name for value in side if value.name) for side in (left, right)]
    places = {value.name: at for at, value in enumerate(right) if named[1][value.name] == 1}
    pairs = [
        (at, places[value.name]) for at, value in enumerate(left) if named[0][value.name] == 1 and value.name in places
    ]
    taken, other_taken = {at for at, _ in pairs}, {other for _, other in pairs}
    rest = [at for at in range(len(left)) if at not in taken]
    other_rest = [at for at in range(len(right)) if at not in other_taken]
    return sorted([*pairs, *zip(rest, other_rest, strict=False)])


def match_scopes(left: Scope, right: Scope, inputs: Sequence[tuple[ValueId, ValueId]]) -> Matching:
    """Match the tasks of two task lists, and with them the values, from pairs of inputs on."""
    return _Matcher(left, right, inputs).matched()


class _Matcher:
    def __init__(self, left: Scope, right: Scope, inputs: Sequence[tuple[ValueId, ValueId]]) -> None:
        self.left, self.right, self.inputs = left, right, inputs
        self.found = Matching()

    def matched(self) -> Matching:
        for value, other in self.inputs:
            self.found.pair_values(value, other)
        self._by_key(_full, Match.EXACT)
        self._by_key(_same_id, Match.LINEAGE)
        self._by_key(_named, Match.LINEAGE)
        self._by_key(_origin, Match.LINEAGE, even=True)
        self._by_key(_sources, Match.LINEAGE, even=True)
        self._by_key(_loose, Match.STRUCTURE)
        self._by_neighbours()
        self._by_key(_origin, Match.LINEAGE)
        self._by_neighbours()
        self._by_key(_like, Match.ORDER)
        self._by_neighbours()
        self._undefined()
        return self.found

    # -- values that no task makes ------------------------------------------------------------------------------------

    def _undefined(self) -> None:
        """Values that are neither inputs nor made by a task: by id."""
        for value in self.left.values:
            if value in self.right.values and value not in self.left.producer and value not in self.right.producer:
                self.found.pair_values(value, value)

    # -- tasks ----------------------------------------------------------------------------------------------------------

    def _pair(self, at: int, other: int, how: Match) -> None:
        self.found.forward[at] = other
        self.found.backward[other] = at
        self.found.how[at] = how
        for value, other_value in zip(self.left.makes[at], self.right.makes[other], strict=False):
            self.found.pair_values(value, other_value)

    def _by_key(self, key: Key, how: Match, *, even: bool = False) -> None:
        """Pair what has one key: where both sides have several, those with the same name first, then in order.

        `even`: only where both sides have equally many.
        """
        others: dict[Hashable, list[int]] = defaultdict(list)
        for other in range(len(self.right.tasks)):
            if other not in self.found.backward and (name := key(self.right, other)) is not None:
                others[name].append(other)
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for at in range(len(self.left.tasks)):
            if at not in self.found.forward and (name := key(self.left, at)) is not None and name in others:
                groups[name].append(at)
        for name, mine in groups.items():
            theirs = others[name]
            if even and len(mine) != len(theirs):
                continue
            if len(mine) > 1 or len(theirs) > 1:
                by_name = {self.right.tasks[other].name: other for other in reversed(theirs)}
                for at in mine:
                    other = by_name.get(self.left.tasks[at].name)
                    if other is not None and self.left.tasks[at].name and other not in self.found.backward:
                        self._pair(at, other, how)
            rest = deque(other for other in theirs if other not in self.found.backward)
            for at in mine:
                if at not in self.found.forward and rest:
                    self._pair(at, rest.popleft(), how)

    def _by_neighbours(self) -> None:
        """Walk from matched tasks along what they read and what reads them."""
        pending = deque(self.found.forward.items())
        while pending:
            at, other = pending.popleft()
            for pair in (*self._before(at, other), *self._behind(at, other)):
                if pair[0] not in self.found.forward and pair[1] not in self.found.backward:
                    self._pair(*pair, Match.STRUCTURE)
                    pending.append(pair)

    def _before(self, at: int, other: int) -> list[tuple[int, int]]:
        mine, theirs = self.left.reads[at], self.right.reads[other]
        if len(mine) != len(theirs):
            return []
        pairs: list[tuple[int, int]] = []
        for value, other_value in zip(mine, theirs, strict=True):
            made, other_made = self.left.producer.get(value), self.right.producer.get(other_value)
            if made is None or other_made is None or made[1] != other_made[1]:
                continue
            if self._comparable(made[0], other_made[0]):
                pairs.append((made[0], other_made[0]))
        return pairs

    def _behind(self, at: int, other: int) -> list[tuple[int, int]]:
        pairs: list[tuple[int, int]] = []
        for value, other_value in zip(self.left.makes[at], self.right.makes[other], strict=False):
            mine = [reader for reader in self.left.readers.get(value, ()) if reader not in self.found.forward]
            theirs = [reader for reader in self.right.readers.get(other_value, ()) if reader not in self.found.backward]
            if len(mine) == len(theirs) == 1 and self._comparable(mine[0], theirs[0]):
                pairs.append((mine[0], theirs[0]))
                continue
            for reader in mine:
                alike = [one for one in theirs if _like(self.right, one) == _like(self.left, reader)]
                if len(alike) == 1 and sum(_like(self.left, one) == _like(self.left, reader) for one in mine) == 1:
                    pairs.append((reader, alike[0]))
        return pairs

    def _comparable(self, at: int, other: int) -> bool:
        """The same operation, or both communicate: a collective that became another one is one change."""
        task, another = self.left.tasks[at], self.right.tasks[other]
        if task.operation == another.operation:
            return True
        return _communicates(task) and _communicates(another)


def _communicates(task: DistributedTask) -> bool:
    return isinstance(task.body, Collective | PointToPoint | Reshard)


def _full(scope: Scope, at: int) -> Hashable | None:
    return None if scope.full[at] == CYCLE else scope.full[at]


def _loose(scope: Scope, at: int) -> Hashable | None:
    return None if scope.loose[at] == CYCLE else scope.loose[at]


def _text(task: DistributedTask, key: str) -> str:
    value = task.attributes.get(key)
    return value if isinstance(value, str) else ""


def _same_id(scope: Scope, at: int) -> Hashable | None:
    """An id is often made from a name that a compiler numbers through: it counts where the origin is the same too."""
    task = scope.tasks[at]
    return task.id, str(task.operation), _text(task, "op_name"), _text(task, "source")


def _named(scope: Scope, at: int) -> Hashable | None:
    task = scope.tasks[at]
    origin = _text(task, "op_name"), _text(task, "source")
    return (task.name, str(task.operation), *origin) if task.name else None


def _origin(scope: Scope, at: int) -> Hashable | None:
    task = scope.tasks[at]
    name = _text(task, "op_name")
    return (name, str(task.operation)) if name else None


def _sources(scope: Scope, at: int) -> Hashable | None:
    task = scope.tasks[at]
    return (task.lineage.sources, str(task.operation)) if task.lineage.sources else None


def _like(scope: Scope, at: int) -> Hashable | None:
    task = scope.tasks[at]
    dtypes = tuple(scope.values[output].type.dtype for output in scope.makes[at] if output in scope.values)
    return str(task.operation), scope.facts[at]["kind"], len(scope.reads[at]), dtypes
