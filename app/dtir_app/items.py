"""What a place of the graph holds: items, how tasks are folded into them, and where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dtir_app.fold import Folded
from dtir_app.layout import Layout
from dtir_app.repeats import Family

Ints = npt.NDArray[np.int32]
_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Folding:
    """What is folded at a place.

    Args:
        local: local work between communications is one block.
        repeats: of instances that repeat, one is shown.
        unfolded: families that are shown in full all the same, by key.
        shown: the instance that is shown of a family, where it is not the first typical one.
    """

    local: bool = False
    repeats: bool = False
    unfolded: frozenset[str] = frozenset()
    shown: tuple[tuple[str, int], ...] = ()

    def showing(self, numbers: Mapping[str, int]) -> Folding:
        """The same with other instances shown."""
        return replace(self, shown=tuple(sorted((dict(self.shown) | dict(numbers)).items())))


@dataclass(frozen=True, slots=True)
class Instances:
    """A family at a place.

    Args:
        family: what repeats.
        number: the instance that is shown; -1 where the family is unfolded.
    """

    family: Family
    number: int

    @property
    def folded(self) -> bool:
        return self.number >= 0


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The items of one place.

    Args:
        tasks: the tasks of the place, ascending.
        folded: how they are folded; items are numbered so that edges ascend.
        layout: where items stand.
        folding: what is folded here.
        order: the items that are drawn, from left to right.
        shown: per task, whether an item shows it; the others are instances that another one stands for.
        copies: per item, how many instances it stands for.
        absent: per item, whether the instance that is shown has no such task; it is not drawn then.
        family: per item, the innermost of `families` that it belongs to; -1 for none.
        families: what repeats here.
        carried: pairs of items whose edges lead from one instance to another.
    """

    tasks: Ints
    folded: Folded
    layout: Layout
    folding: Folding
    order: Ints = field(repr=False)
    shown: npt.NDArray[np.bool_] = field(repr=False)
    copies: Ints = field(repr=False)
    absent: npt.NDArray[np.bool_] = field(repr=False)
    family: Ints = field(repr=False)
    families: tuple[Instances, ...] = ()
    carried: tuple[Ints, Ints] = field(default=(_NONE, _NONE), repr=False)

    @property
    def is_folded(self) -> bool:
        """Whether local work is folded here."""
        return self.folding.local

    @property
    def count(self) -> int:
        return self.folded.count

    def item_of(self, task: int) -> int:
        """The item that a task belongs to, or -1 when it is not at this place."""
        position = int(np.searchsorted(self.tasks, task))
        if position >= len(self.tasks) or self.tasks[position] != task:
            return -1
        return int(self.folded.item[position])

    def shows(self, task: int) -> bool:
        """Whether a task is here and no other instance stands for it."""
        position = int(np.searchsorted(self.tasks, task))
        return position < len(self.tasks) and self.tasks[position] == task and bool(self.shown[position])

    def tasks_of(self, item: int) -> Ints:
        """The tasks of an item that are shown, ascending."""
        return self.tasks[(self.folded.item == item) & self.shown]

    def first_task(self, item: int) -> int:
        return int(self.tasks[self.folded.first[item]])
