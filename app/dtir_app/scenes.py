"""What the graph view can show at one place: the items, how they hang together and where they stand. Made once, kept.

A place is a way down from the program: into a region (``("region", scope, caller)``) or into a folded block (``("block", task)``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dtir_app.assembling import local_blocks, make_scene, other_instances, typical
from dtir_app.fold import FOLD_ABOVE
from dtir_app.items import Folding, Scene
from dtir_app.kinds import COMMUNICATION, KINDS, Family
from dtir_app.repeats import repeats
from dtir_app.standing import communicating_scopes, standing
from dtir_app.store import Store
from dtir_app.text import plural, runs_text, shorten

Ints = npt.NDArray[np.int32]
Crumb = tuple[str, int]
Place = tuple[Crumb, ...]

KEPT_SCENES = 16
_COMMUNICATION = [int(family) for family in COMMUNICATION]


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


def default_folds(store: Store, place: Place) -> Folding:
    """What is folded at a place when it is opened."""
    if place and place[-1][0] == "block":
        return Folding()
    long = store.scopes[scope_of(place)].task_count > FOLD_ABOVE
    return Folding(default_folding(store, place), long)


def scene(store: Store, place: Place, folding: Folding | bool) -> Scene:
    """The scene of a place; a few are kept with the program. A mere truth value says whether local work is folded."""
    if isinstance(folding, bool):
        folding = Folding(folding)

    def make() -> Scene:
        if not folding.shown:
            scope = scope_of(place)
            return make_scene(store, scope, folding, _tasks_at(store, place))
        return other_instances(store, scope_of(place), scene(store, place, replace(folding, shown=())), folding)

    made = store.memo.made(("scene", place, folding), make)
    store.memo.forget_oldest("scene", KEPT_SCENES)
    return made


def _tasks_at(store: Store, place: Place) -> Ints:
    """The tasks of a place: of a whole scope, or of a block in it."""
    span = store.scopes[scope_of(place)]
    if not place or place[-1][0] != "block":
        return np.arange(span.first_task, span.last_task, dtype=np.int32)
    task = place[-1][1]
    if not span.first_task <= task < span.last_task:
        return np.zeros(0, np.int32)
    item = local_blocks(store, span.index).item
    return np.flatnonzero(item == item[task - span.first_task]).astype(np.int32) + span.first_task


def showing(store: Store, place: Place, folding: Folding, task: int) -> Folding:
    """The folding with those instances shown that a task belongs to."""
    span = store.scopes[scope_of(place)]
    if not folding.repeats or not span.first_task <= task < span.last_task:
        return folding
    found = repeats(store, span.index)
    numbers = {
        family.key: int(member[task - span.first_task])
        for family, member in zip(found.families, found.member, strict=True)
        if member[task - span.first_task] >= 0 and family.key not in folding.unfolded
    }
    now = {family.key: typical(family) for family in found.families} | dict(folding.shown)
    changed = {key: number for key, number in numbers.items() if now.get(key) != number}
    return folding.showing(changed) if changed else folding


def counterpart(store: Store, place: Place, folding: Folding, task: int, key: str, number: int) -> int:
    """The task that corresponds to a task in another instance of a family; -1 when that instance has none."""
    span = store.scopes[scope_of(place)]
    found = repeats(store, span.index)
    which, here = found.position(key), task - span.first_task
    if which < 0 or not 0 <= here < span.task_count:
        return -1
    same = (found.slot == found.slot[here]) & (found.member[which] == number)
    for at, member in enumerate(found.member):
        if at != which:
            same &= member == member[here]
    hits = np.flatnonzero(same)
    return int(hits[0]) + span.first_task if len(hits) else -1


def has_scene(store: Store, place: Place, folding: Folding) -> bool:
    """Whether a scene is at hand, so that showing it takes no time."""
    return ("scene", place, folding) in store.memo or ("scene", place, replace(folding, shown=())) in store.memo


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


def families_of_items(store: Store, at: Scene) -> Ints:
    """The family of every item."""
    made = store.tasks.family[at.tasks[at.folded.first]].astype(np.int32)
    return np.where(at.folded.size > 1, int(Family.BLOCK), made).astype(np.int32)


def communication_in(store: Store, scope: int) -> int:
    """Number of communications in a region's own list."""
    span = store.scopes[scope]
    return int(np.isin(store.tasks.family[span.first_task : span.last_task], _COMMUNICATION).sum())
