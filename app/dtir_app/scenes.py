"""What the graph view can show at one place: the items, how they hang together and where they stand. Made once, kept.

A place is a way down from the program: into a region (``("region", scope, caller)``) or into a folded block (``("block", task)``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dtir_app.fold import FOLD_ABOVE, Folded, fold, unfolded
from dtir_app.kinds import COMMUNICATION, KINDS, Family
from dtir_app.layout import Layout, arrange
from dtir_app.store import Store
from dtir_app.text import plural, runs_text, shorten

Ints = npt.NDArray[np.int32]
Crumb = tuple[str, int]
Place = tuple[Crumb, ...]

KEPT_SCENES = 16
_COMMUNICATION = [int(family) for family in COMMUNICATION]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The items of one place.

    Args:
        tasks: the tasks of the place, ascending.
        folded: how they are folded; items are numbered so that edges ascend.
        layout: where items stand.
        is_folded: whether local work is folded here.
        item_of: item of a task by its number.
    """

    tasks: Ints
    folded: Folded
    layout: Layout
    is_folded: bool
    order: Ints = field(repr=False)

    @property
    def count(self) -> int:
        return self.folded.count

    def item_of(self, task: int) -> int:
        """The item that a task belongs to, or -1 when it is not at this place."""
        position = int(np.searchsorted(self.tasks, task))
        if position >= len(self.tasks) or self.tasks[position] != task:
            return -1
        return int(self.folded.item[position])

    def tasks_of(self, item: int) -> Ints:
        """The tasks of an item, ascending."""
        return self.tasks[self.folded.item == item]

    def first_task(self, item: int) -> int:
        return int(self.tasks[self.folded.first[item]])


def scope_of(place: Place) -> int:
    """The scope that a place is in."""
    return next((number for what, number in reversed(place) if what == "region"), 0)


def default_folding(store: Store, place: Place) -> bool:
    """Whether a place opens folded: long lists with communication in them do."""
    if place and place[-1][0] == "block":
        return False
    span = store.scopes[scope_of(place)]
    if span.task_count <= FOLD_ABOVE:
        return False
    return bool(standing(store)[span.first_task : span.last_task].any())


def communicating_scopes(store: Store) -> npt.NDArray[np.bool_]:
    """Scopes in which something communicates, there or in a region entered from there."""

    def make() -> npt.NDArray[np.bool_]:
        found = np.zeros(len(store.scopes), dtype=bool)
        found[store.tasks.scope[np.isin(store.tasks.family, _COMMUNICATION)]] = True
        waiting = np.flatnonzero(found).tolist()
        while waiting:
            for caller in store.scopes[waiting.pop()].callers:
                outer = int(store.tasks.scope[caller])
                if not found[outer]:
                    found[outer] = True
                    waiting.append(outer)
        return found

    if "communicating" not in store.memo:
        store.memo["communicating"] = make()
    return store.memo["communicating"]  # type: ignore[return-value]


def standing(store: Store) -> npt.NDArray[np.bool_]:
    """Tasks that folding leaves as they are: all but local compute and calls, loops and branches of nothing but that.

    A fused kernel of a compiler is a call of local work, and folds with its surroundings.
    """

    def make() -> npt.NDArray[np.bool_]:
        stands = store.tasks.family != Family.LOCAL
        inside = communicating_scopes(store)
        for task, scopes in store.tasks.entered.items():
            stands[task] = any(inside[scope] for scope in scopes)
        return stands

    if "standing" not in store.memo:
        store.memo["standing"] = make()
    return store.memo["standing"]  # type: ignore[return-value]


def first_place(store: Store) -> Place:
    """Where a program opens: where something communicates; a list that only wraps one such region is passed over."""
    inside = communicating_scopes(store)
    place: list[Crumb] = []
    scope = 0
    for _ in range(8):
        span = store.scopes[scope]
        tasks = range(span.first_task, span.last_task)
        if np.isin(store.tasks.family[span.first_task : span.last_task], _COMMUNICATION).any():
            break
        ways = [
            target
            for task in tasks
            for target in store.tasks.entered.get(task, ())
            if inside[target] and target != scope
        ]
        if len(ways) != 1 or store.scopes[ways[0]].executions != 1:
            break
        scope = ways[0]
        place.append(("region", scope))
    return tuple(place)


def scene(store: Store, place: Place, folded: bool) -> Scene:
    """The scene of a place; a few are kept with the program."""
    key = ("scene", place, folded)
    if key not in store.memo:
        kept = [item for item in store.memo if isinstance(item, tuple) and item[0] == "scene"]
        for old in kept[: max(0, len(kept) - KEPT_SCENES + 1)]:
            store.memo.pop(old, None)
        store.memo[key] = _make(store, place, folded)
    return store.memo[key]  # type: ignore[return-value]


def _make(store: Store, place: Place, folded: bool) -> Scene:
    scope = scope_of(place)
    span = store.scopes[scope]
    part = store.edges.of_scope(scope)
    source = store.edges.source[part] - span.first_task
    destination = store.edges.destination[part] - span.first_task
    order_only = store.edges.order_only[part]
    tasks = np.arange(span.first_task, span.last_task, dtype=np.int32)
    if place and place[-1][0] == "block":
        whole = scene(store, place[:-1], True)
        item = whole.item_of(place[-1][1])
        tasks = whole.tasks_of(item) if item >= 0 else tasks[:0]
        local = np.full(span.task_count, -1, dtype=np.int32)
        local[tasks - span.first_task] = np.arange(len(tasks), dtype=np.int32)
        keep = (local[source] >= 0) & (local[destination] >= 0)
        source, destination, order_only = local[source[keep]], local[destination[keep]], order_only[keep]
    if folded:
        made = fold(len(tasks), source, destination, order_only, standing(store)[tasks])
    else:
        made = unfolded(len(tasks), source, destination, order_only)
    layout = arrange(made.count, made.source, made.destination)
    order = np.lexsort((layout.lane, layout.level)).astype(np.int32)
    return Scene(tasks, made, layout, folded, order)


def home_of(store: Store, task: int) -> Place:
    """The place whose list holds a task, by the first caller of each region on the way."""
    place: list[Crumb] = []
    seen: set[int] = set()
    scope = int(store.tasks.scope[task])
    while scope and scope not in seen:
        seen.add(scope)
        place.insert(0, ("region", scope))
        callers = store.scopes[scope].callers
        if not callers:
            break
        scope = int(store.tasks.scope[callers[0]])
    return tuple(place)


def crumbs(store: Store, place: Place) -> list[dict[str, object]]:
    """The way from the program to a place, one entry a step with the place that it leads to."""
    made: list[dict[str, object]] = [{"text": store.name, "depth": 0}]
    for depth, (what, number) in enumerate(place, start=1):
        if what == "region":
            span = store.scopes[number]
            runs = runs_text(span.executions)
            made.append({"text": f"{span.name}{f' {runs}' if runs else ''}", "depth": depth})
        else:
            inside = scene(store, place[:depth], False)
            made.append(
                {
                    "text": f"block of {plural(len(inside.tasks), 'task')} at {shorten(store.tasks.name[number], 24)}",
                    "depth": depth,
                }
            )
    return made


def valid_place(store: Store, place: Place) -> bool:
    """Whether a place exists in a program."""
    for what, number in place:
        if what == "region" and not 0 < number < len(store.scopes):
            return False
        if what == "block" and not 0 <= number < len(store.tasks):
            return False
    return True


def entered_place(store: Store, place: Place, at: Scene, item: int) -> Place | None:
    """Where opening an item leads: into the block, or into the first region of the task that has most tasks; else None."""
    if int(at.folded.size[item]) > 1:
        return (*place, ("block", at.first_task(item)))
    task = at.first_task(item)
    regions = store.tasks.entered.get(task, ())
    if not regions:
        return None
    largest = max(regions, key=lambda scope: store.scopes[scope].task_count)
    outer = tuple(crumb for crumb in place if crumb[0] == "region")
    return (*outer, ("region", largest))


def family_of_item(store: Store, at: Scene, item: int) -> Family:
    """Blocks are a family of their own; a single task has its kind's."""
    if int(at.folded.size[item]) > 1:
        return Family.BLOCK
    return KINDS[store.tasks.kind[at.first_task(item)]].family


def communication_in(store: Store, scope: int) -> int:
    """Number of communications in a region's own list."""
    span = store.scopes[scope]
    return int(np.isin(store.tasks.family[span.first_task : span.last_task], _COMMUNICATION).sum())
