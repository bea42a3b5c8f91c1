"""Making a scene: tasks become units (blocks of local work), units that correspond become items, items get their places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dtir_app.fold import Folded, fold, pairs_of
from dtir_app.items import Folding, Instances, Ints, Scene
from dtir_app.layout import Layout, arrange
from dtir_app.repeats import Family, Repeats, repeats
from dtir_app.standing import standing
from dtir_app.store import Store

Mask = npt.NDArray[np.bool_]
NO_REPEATS = Repeats((), np.zeros(0, np.int32), ())


def make_scene(store: Store, scope: int, folding: Folding, tasks: Ints) -> Scene:
    """The scene of some tasks of a scope.

    Args:
        store: the program.
        scope: the scope.
        folding: what is folded.
        tasks: the tasks, ascending; where they are not the whole scope, nothing is folded.
    """
    whole = len(tasks) == store.scopes[scope].task_count
    found = repeats(store, scope) if whole else NO_REPEATS
    units = _Units(store, scope, found, folding, len(tasks))
    chosen, absent = units.chosen([typical(family) for family in found.families])
    source, destination, order_only = _edges(store, scope, tasks)
    carried = units.carried(source, destination)
    rank = _ranks(units, chosen, absent, source[~carried], destination[~carried])
    item = rank[units.slot][units.unit]
    count = len(absent)
    tail, head = item[source], item[destination]
    carried |= tail > head
    pairs = pairs_of(item, source[~carried], destination[~carried], order_only[~carried], count)
    missing = absent[np.argsort(rank)]
    layout = _arranged(missing, pairs[0], pairs[1])
    back = np.unique(tail[carried].astype(np.int64) * max(count, 1) + head[carried])
    by_item = np.empty(count, np.int32)
    by_item[rank] = chosen
    folded = Folded(item, units.first[by_item], units.size[by_item], *pairs)
    made = Scene(
        tasks=tasks,
        folded=folded,
        layout=layout,
        folding=folding,
        order=_order(layout, missing),
        shown=units.tasks_in(chosen),
        copies=np.bincount(rank[units.slot], minlength=count).astype(np.int32),
        absent=missing,
        family=units.innermost(item, count),
        families=units.instances([typical(family) for family in found.families]),
        carried=((back // max(count, 1)).astype(np.int32), (back % max(count, 1)).astype(np.int32)),
    )
    return made if not folding.shown else other_instances(store, scope, made, folding)


def other_instances(store: Store, scope: int, at: Scene, folding: Folding) -> Scene:
    """The same scene with other instances shown: items stay where they are as long as the instances have the same ones."""
    if len(at.tasks) != store.scopes[scope].task_count:
        return replace(at, folding=folding)
    found = repeats(store, scope)
    units = _Units(store, scope, found, folding, len(at.tasks))
    wanted = dict(folding.shown)
    numbers = [
        wanted[family.key] if wanted.get(family.key) in family.numbers else typical(family) for family in found.families
    ]
    chosen, absent = units.chosen(numbers)
    item = at.folded.item[units.first[chosen]]
    first, size, missing = np.empty(at.count, np.int32), np.empty(at.count, np.int32), np.empty(at.count, bool)
    first[item], size[item], missing[item] = units.first[chosen], units.size[chosen], absent
    same = bool((missing == at.absent).all())
    layout = at.layout if same else _arranged(missing, at.folded.source, at.folded.destination)
    return replace(
        at,
        folded=replace(at.folded, first=first, size=size),
        layout=layout,
        order=at.order if same else _order(layout, missing),
        folding=folding,
        shown=units.tasks_in(chosen),
        absent=missing,
        families=units.instances(numbers),
    )


def _arranged(absent: Mask, source: Ints, destination: Ints) -> Layout:
    """Places for the items that are there; those that the shown instance lacks have none."""
    here = np.flatnonzero(~absent)
    if len(here) == len(absent):
        return arrange(len(absent), source, destination)
    number = np.full(len(absent), -1, np.int32)
    number[here] = np.arange(len(here), dtype=np.int32)
    tail, head = number[source], number[destination]
    keep = (tail >= 0) & (head >= 0)
    made = arrange(len(here), tail[keep], head[keep])
    level, lane = np.zeros(len(absent), np.int32), np.zeros(len(absent))
    level[here], lane[here] = made.level, made.lane
    return Layout(level, lane)


def _order(layout: Layout, absent: Mask) -> Ints:
    """The items that are there from left to right."""
    order = np.lexsort((layout.lane, layout.level)).astype(np.int32)
    return order[~absent[order]]


def local_blocks(store: Store, scope: int) -> Folded:
    """Local work between communications as blocks; none leaves the instance of a family that it begins in."""

    def make() -> Folded:
        count = store.scopes[scope].task_count
        first = store.scopes[scope].first_task
        source, destination, order_only = _edges(store, scope, np.arange(first, first + count, dtype=np.int32))
        group = np.zeros(count, np.int64)
        for member in repeats(store, scope).member:
            _, group = np.unique(group * (int(member.max()) + 2) + member + 1, return_inverse=True)
        return fold(count, source, destination, order_only, standing(store)[first : first + count], group)

    return store.memo.made(("local", scope), make)


def typical(family: Family) -> int:
    """The first instance that is like most."""
    return next((number for number in family.numbers if number not in family.differences), family.numbers[0])


class _Units:
    """What is drawn as one: a task, or a block of local work. Units that correspond share a slot."""

    def __init__(self, store: Store, scope: int, found: Repeats, folding: Folding, count: int) -> None:
        self.found = found
        self.folded = [folding.repeats and family.key not in folding.unfolded for family in found.families]
        whole = count == store.scopes[scope].task_count
        if folding.local and whole:
            blocks = local_blocks(store, scope)
            self.unit, self.first, self.size = blocks.item, blocks.first, blocks.size
        else:
            each = np.arange(count, dtype=np.int32)
            self.unit, self.first, self.size = each, each, np.ones(count, np.int32)
        self.slot = self._slots()

    def _slots(self) -> Ints:
        """Of every unit, the number that corresponding units share: the least slot of its tasks, and what is not folded."""
        units = len(self.first)
        if not any(self.folded):
            return np.arange(units, dtype=np.int32)
        least = np.full(units, np.iinfo(np.int32).max, np.int32)
        np.minimum.at(least, self.unit, self.found.slot)
        code = np.unique(least, return_inverse=True)[1].astype(np.int64)
        for member, is_folded in zip(self.found.member, self.folded, strict=True):
            if not is_folded:
                row = member[self.first].astype(np.int64) + 1
                code = np.unique(code * (int(row.max()) + 1) + row, return_inverse=True)[1]
        return code.astype(np.int32)

    def chosen(self, numbers: list[int]) -> tuple[Ints, Mask]:
        """Of every slot, the unit that is shown, and whether the instances that are shown have none."""
        units = len(self.first)
        fits = np.ones(units, bool)
        for member, is_folded, number in zip(self.found.member, self.folded, numbers, strict=True):
            if is_folded:
                of_unit = member[self.first]
                fits &= (of_unit < 0) | (of_unit == number)
        order = np.lexsort((self.first, ~fits, self.slot))
        heads = np.ones(units, bool)
        heads[1:] = self.slot[order][1:] != self.slot[order][:-1]
        chosen = order[heads].astype(np.int32)
        return chosen, ~fits[chosen]

    def tasks_in(self, chosen: Ints) -> Mask:
        """Which tasks are in the chosen units."""
        shown = np.zeros(len(self.first), bool)
        shown[chosen] = True
        return shown[self.unit]

    def carried(self, source: Ints, destination: Ints) -> Mask:
        """Edges from one instance of a folded family to another."""
        made = np.zeros(len(source), bool)
        for member, is_folded in zip(self.found.member, self.folded, strict=True):
            if is_folded:
                before, after = member[source], member[destination]
                made |= (before >= 0) & (after >= 0) & (before != after)
        return made

    def innermost(self, item: Ints, count: int) -> Ints:
        """The innermost folded family of every item, or -1."""
        made = np.full(count, -1, np.int32)
        for at, (member, is_folded) in enumerate(zip(self.found.member, self.folded, strict=True)):
            if is_folded:
                made[item[member >= 0]] = at
        return made

    def instances(self, numbers: list[int]) -> tuple[Instances, ...]:
        """The families with the instance that is shown."""
        return tuple(
            Instances(family, number if is_folded else -1)
            for family, is_folded, number in zip(self.found.families, self.folded, numbers, strict=True)
        )


def _edges(store: Store, scope: int, tasks: Ints) -> tuple[Ints, Ints, Mask]:
    """The edges between some tasks of a scope, told in positions among them."""
    span = store.scopes[scope]
    part = store.edges.of_scope(scope)
    source = store.edges.source[part] - span.first_task
    destination = store.edges.destination[part] - span.first_task
    order_only = store.edges.order_only[part]
    if len(tasks) == span.task_count:
        return source, destination, order_only
    local = np.full(span.task_count, -1, dtype=np.int32)
    local[tasks - span.first_task] = np.arange(len(tasks), dtype=np.int32)
    keep = (local[source] >= 0) & (local[destination] >= 0)
    return local[source[keep]], local[destination[keep]], order_only[keep]


def _ranks(units: _Units, chosen: Ints, absent: Mask, source: Ints, destination: Ints) -> Ints:
    """The order of the slots: that of the units shown. One that the shown instance lacks stands after what it waits for."""
    place = chosen.astype(float)  # units are numbered so that what one waits for has a smaller number
    late = np.flatnonzero(absent)
    if len(late):
        of_slot = np.full(len(units.first), -1)
        of_slot[chosen[late]] = late
        waiting = of_slot[units.unit[destination]] >= 0
        before: dict[int, set[int]] = {}
        for tail, head in zip(source[waiting].tolist(), destination[waiting].tolist(), strict=True):
            before.setdefault(int(of_slot[units.unit[head]]), set()).add(int(units.slot[units.unit[tail]]))
        for step, slot in enumerate(sorted(late.tolist(), key=lambda slot: chosen[slot]), start=1):
            waits = [place[tail] for tail in before.get(slot, ()) if tail != slot]
            if waits:
                place[slot] = max(waits) + step * 0.5 / (len(late) + 1)
    rank = np.empty(len(chosen), np.int32)
    rank[np.argsort(place, kind="stable")] = np.arange(len(chosen), dtype=np.int32)
    return rank
