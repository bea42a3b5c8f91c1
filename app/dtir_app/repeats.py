"""Repetition in a task list: families of instances (layers, microbatches, steps) whose tasks correspond.

What repeats is found by rule, in two ways. Where tasks have an address (the path of their source and their name), instances are what
differs in one number of it: ``layers.#.mlp``, ``stage # / microbatch #``. What has no such number is found by its structure: blocks of
equal tasks that follow each other (`dtir_app.tandem`), in the order of the list or of the levels, whichever explains more.

Tasks that correspond have one *slot*. Instances need not be equal: `Family.differences` says where one is not like most.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dtir_app.addressing import Part, addresses
from dtir_app.layout import levels
from dtir_app.likeness import Likeness, likeness_of
from dtir_app.store import Store
from dtir_app.tandem import ALIGNED_LIMIT, Run, aligned, tandem_runs

Ints = npt.NDArray[np.int32]

LEAST_SAVED = 12
"""Tasks that folding must take out of sight for a family to be one."""
ALIKE = 0.6
FAMILY_LIMIT = 60


@dataclass(frozen=True, slots=True)
class Family:
    """Instances of one thing.

    Args:
        key: stable name within the list.
        label: what an instance is called: ``layers``; ``block`` where the source has no name for it.
        numbers: its instances, ascending.
        size: tasks of a typical instance, families in it folded.
        differences: by instance, how it is not like most.
    """

    key: str
    label: str
    numbers: tuple[int, ...]
    size: int
    differences: Mapping[int, str] = field(default_factory=dict[int, str])

    @property
    def alike(self) -> int:
        """Number of instances without a difference."""
        return len(self.numbers) - len(self.differences)

    @property
    def noun(self) -> str:
        """What stands before the number of an instance: ``layer``, ``block``; ``instance`` where there are several blocks."""
        if self.label.startswith("block "):
            return "instance"
        return self.label[:-1] if self.label.endswith("s") and not self.label.endswith("ss") else self.label

    @property
    def nouns(self) -> str:
        """All of them: ``layers``, ``blocks``, ``instances of block A``."""
        if self.label.startswith("block "):
            return f"instances of {self.label}"
        return self.label if self.label.endswith("s") else f"{self.label}s"


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """The families of a task list.

    Args:
        families: outermost and largest first.
        slot: of every task, a number that corresponding tasks share.
        member: of every family, the instance that each task belongs to; -1 for none.
    """

    families: tuple[Family, ...]
    slot: Ints
    member: tuple[Ints, ...]

    def position(self, key: str) -> int:
        """Which family a key names, or -1."""
        return next((at for at, family in enumerate(self.families) if family.key == key), -1)


def repeats(store: Store, scope: int) -> Repeats:
    """The repetition of a scope's task list; found once a program."""
    return store.memo.made(("repeats", scope), lambda: find_repeats(store, scope))


def instances_of(store: Store, task: int) -> list[tuple[Family, int]]:
    """The families that a task belongs to with the instance that it is in, outermost first."""
    scope = int(store.tasks.scope[task])
    found, here = repeats(store, scope), task - store.scopes[scope].first_task
    return [
        (family, int(member[here]))
        for family, member in zip(found.families, found.member, strict=True)
        if member[here] >= 0
    ]


def find_repeats(store: Store, scope: int) -> Repeats:
    """Look for repetition in a scope's task list."""
    span = store.scopes[scope]
    count = span.task_count
    same = likeness_of(store, scope)
    finder = _Finder(same, addresses(store, scope))
    finder.descend(list(range(count)), 0, ())
    _structural(store, scope, same, finder)
    best = sorted(finder.found, key=lambda item: -item.saved)[:FAMILY_LIMIT]
    kept = sorted(best, key=lambda item: (item.depth, int(np.flatnonzero(item.member >= 0)[0])))
    # The dropped ones keep their tasks apart: their numbers go back into the slots.
    dropped = [item for item in finder.found if item not in kept]
    keys: dict[object, int] = {}
    slot = np.empty(count, np.int32)
    literal = {id(item): item.member for item in dropped}
    for task in range(count):
        apart = tuple(int(member[task]) for member in literal.values())
        slot[task] = keys.setdefault((*finder.slot[task], *apart), len(keys))
    families = tuple(replace(item.family, size=_shown_size(item, slot)) for item in kept)
    return Repeats(families, slot, tuple(item.member for item in kept))


def _shown_size(item: _Found, slot: Ints) -> int:
    """Tasks of a typical instance when everything in it is folded too."""
    family = item.family
    typical = next((number for number in family.numbers if number not in family.differences), family.numbers[0])
    return len(np.unique(slot[item.member == typical]))


@dataclass(slots=True, eq=False)
class _Found:
    family: Family
    member: Ints
    saved: int
    depth: int = 0


class _Finder:
    """Goes down the addresses; a number that tells instances apart becomes a family, any other stays what it is."""

    def __init__(self, same: Likeness, parts: Sequence[tuple[Part, ...]]) -> None:
        self.same, self.parts = same, parts
        self.role: list[int] = same.role.tolist()
        self.tails = _tails(parts)
        self.found: list[_Found] = []
        self.slot: list[tuple[object, ...]] = [("task", task) for task in range(len(parts))]
        self.in_family = np.zeros(len(parts), bool)

    def descend(self, tasks: list[int], depth: int, prefix: tuple[str, ...], folded: bool = False) -> None:
        """The families among tasks whose addresses agree up to a depth, but for the numbers of families."""
        ends: list[int] = []
        below: dict[str, list[int]] = defaultdict(list)
        for task in tasks:
            if depth < len(self.parts[task]):
                below[self.parts[task][depth].text].append(task)
            else:
                ends.append(task)
        if folded:
            self._number(ends, depth, prefix)
        for text, group in below.items():
            numbers = {self.parts[task][depth].number for task in group}
            way = (*prefix, text)
            if len(numbers) > 1 and None not in numbers:
                rest = self._family(group, depth, way)
                inside = [task for task in group if task not in rest]
                if inside:
                    self.descend(inside, depth + 1, way, True)
                group = sorted(rest)
            by_number: dict[int | None, list[int]] = defaultdict(list)
            for task in group:
                by_number[self.parts[task][depth].number].append(task)
            for number, some in by_number.items():
                if len(some) > 1 or folded:
                    self.descend(some, depth + 1, (*way, "" if number is None else str(number)), folded)

    def _number(self, tasks: list[int], depth: int, prefix: tuple[str, ...]) -> None:
        """Slots of tasks with the same address but for their instance: by role, in list order within an instance."""
        seen: Counter[object] = Counter()
        for task in tasks:
            role = self.role[task]
            here = (self.tails[task][0], role)
            self.slot[task] = ("named", prefix, role, seen[here])
            seen[here] += 1

    def _family(self, group: list[int], depth: int, way: tuple[str, ...]) -> set[int]:
        """Make a family of the instances in a group when most are alike; the tasks that stay outside of it."""
        by_number: dict[int, list[int]] = defaultdict(list)
        for task in group:
            number = self.parts[task][depth].number
            assert number is not None
            by_number[number].append(task)
        tails, role = self.tails, self.role
        shapes = {
            number: Counter([(tails[task][depth + 1], role[task]) for task in some])
            for number, some in by_number.items()
        }
        typical = _typical(shapes)
        size = sum(typical.values())
        members = [
            number
            for number, shape in shapes.items()
            if sum((shape & typical).values()) >= ALIKE * max(size, sum(shape.values()))
        ]
        total = sum(len(by_number[number]) for number in members)
        saved = total - size
        if len(members) < 2 or 2 * len(members) < len(shapes) or size < 2 or saved < LEAST_SAVED:
            return set(group)
        member = np.full(len(self.parts), -1, np.int32)
        for number in members:
            member[by_number[number]] = number
        self.in_family[member >= 0] = True
        instances = {number: by_number[number] for number in members}
        named = {number: [(tails[task][depth + 1], task) for task in some] for number, some in instances.items()}
        different = self.same.differences(named)
        label = way[-1].strip(" ._-#/()[]{}") or (way[-2].strip(" ._-#/()[]{}") if len(way) > 1 else "") or "instance"
        family = Family(
            "/".join(way), label.rsplit("(", 1)[-1].rsplit("/", 1)[-1], tuple(sorted(members)), size, different
        )
        self.found.append(_Found(family, member, saved, depth))
        inside = set().union(*instances.values())
        return set(group) - inside


def _tails(parts: Sequence[tuple[Part, ...]]) -> list[list[int]]:
    """Of every address, numbers of its ends: ``[d]`` is equal for addresses that agree from part d on."""
    known: dict[object, int] = {}
    seen: dict[tuple[Part, ...], list[int]] = {}
    made: list[list[int]] = []
    for address in parts:
        if address not in seen:
            tail = [0]
            for part in reversed(address):
                tail.append(known.setdefault((part, tail[-1]), len(known) + 1))
            seen[address] = tail[::-1]
        made.append(seen[address])
    return made


def _typical(shapes: Mapping[int, Counter[tuple[int, int]]]) -> Counter[tuple[int, int]]:
    """The shape that most instances have; the first of several."""
    counts = Counter(frozenset(shape.items()) for shape in shapes.values())
    most = counts.most_common(1)[0][0]
    return Counter(dict(most))


def _structural(store: Store, scope: int, same: Likeness, finder: _Finder) -> None:
    """Families of what has no numbers: runs of equal blocks."""
    count = len(same.exact)
    if count - int(finder.in_family.sum()) < 2 * LEAST_SAVED:
        return
    free = ~finder.in_family
    tokens = np.where(free, same.exact, -1 - np.arange(count))
    by_list = tandem_runs(tokens, least_saved=LEAST_SAVED)
    in_order = [(run, np.arange(count)) for run in by_list]
    part = store.edges.of_scope(scope)
    first = store.scopes[scope].first_task
    level = levels(count, store.edges.source[part] - first, store.edges.destination[part] - first)
    order = np.lexsort((same.exact, level))
    start = np.searchsorted(level[order], np.arange(int(level.max()) + 2 if count else 1))
    by_level = _level_runs(tokens[order], start)
    saved_by_list = sum(run.saved for run in by_list)
    saved_by_level = sum(run.saved for run in by_level)
    if saved_by_level > saved_by_list:
        in_order = [(run, order) for run in by_level]
    in_order.sort(key=lambda pair: int(pair[1][pair[0].starts[0]]))
    for number, (run, tasks) in enumerate(in_order):
        _make_block(finder, same, run, tasks, number, len(in_order))


def _level_runs(tokens: npt.NDArray[np.int64], start: npt.NDArray[np.int64]) -> list[Run]:
    """Runs of equal levels, told in tasks sorted by level."""
    seen: dict[bytes, int] = {}
    rows = np.array(
        [
            seen.setdefault(tokens[first:last].tobytes(), len(seen))
            for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    made: list[Run] = []
    for run in tandem_runs(rows, least_saved=LEAST_SAVED, weight=np.diff(start)):
        starts = tuple(int(start[at]) for at in run.starts)
        stops = tuple(int(start[at]) for at in run.stops)
        sizes = Counter(last - first for first, last in zip(starts, stops, strict=True))
        made.append(Run(sizes.most_common(1)[0][0], starts, stops))
    return made


def _make_block(
    finder: _Finder, same: Likeness, run: Run, tasks: npt.NDArray[np.int64], number: int, blocks: int
) -> None:
    copies = [tasks[first:last] for first, last in zip(run.starts, run.stops, strict=True)]
    tokens = [same.exact[copy] for copy in copies]
    typical = next((at for at, copy in enumerate(copies) if len(copy) == run.period), 0)
    block = tokens[typical]
    member = np.full(len(same.exact), -1, np.int32)
    named: dict[int, list[tuple[object, int]]] = {}
    for instance, (copy, row) in enumerate(zip(copies, tokens, strict=True)):
        member[copy] = instance
        if len(row) == len(block) and (row == block).all():
            places: list[object] = list(range(len(row)))
        else:
            places = _places(block, row, same.role[copies[typical]], same.role[copy], instance)
        for place, task in zip(places, copy.tolist(), strict=True):
            finder.slot[task] = ("block", number, place)
        named[instance] = [
            (place if isinstance(place, int) else None, int(task)) for place, task in zip(places, copy, strict=True)
        ]
    finder.in_family[member >= 0] = True
    label = "block" if blocks == 1 else f"block {_letter(number)}"
    family = Family(f"~{number}", label, tuple(range(len(copies))), len(block), same.differences(named))
    finder.found.append(_Found(family, member, run.saved))


def _places(block: Tokens, row: Tokens, block_roles: Ints, row_roles: Ints, instance: int) -> list[object]:
    """Where the tasks of a copy with differences stand in the block; names of their own for those that do not."""
    places: list[object] = [("only", instance, at) for at in range(len(row))]
    if max(len(block), len(row)) > ALIGNED_LIMIT:
        return places
    # What is equal first; between that roles, since an all_gather of another size is still that all_gather, and said to differ.
    left = right = 0
    for left_end, right_end in [*aligned(block, row), (len(block), len(row))]:
        gap = aligned(block_roles[left:left_end], row_roles[right:right_end])
        for near, far in gap:
            places[right + far] = left + near
        if right_end < len(row):
            places[right_end] = left_end
        left, right = left_end + 1, right_end + 1
    return places


Tokens = npt.NDArray[np.int64]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)
