"""Filters: which tasks, values and findings are of interest. They fade in pictures and leave out in tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dtir_app.kinds import FAMILY_OF_KIND, KINDS, Family
from dtir_app.query import parse, task_mask
from dtir_app.store import SEVERITIES, Store

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filters:
    """What is kept; an empty set keeps everything.

    Args:
        families: families of kinds, as numbers.
        kinds: names of kinds.
        axes: names of mesh axes that a communication spans.
        severities: worst finding of a task.
        min_bytes: messages of at least so many bytes; 0 keeps all tasks.
        text: a query (`dtir_app.query`) whose hits alone are kept; empty keeps everything.
    """

    families: frozenset[int] = frozenset()
    kinds: frozenset[str] = frozenset()
    axes: frozenset[str] = frozenset()
    severities: frozenset[str] = frozenset()
    min_bytes: float = 0.0
    text: str = ""

    @property
    def active(self) -> bool:
        return self != Filters()

    @property
    def active_count(self) -> int:
        """Number of choices made."""
        chosen = len(self.families) + len(self.kinds) + len(self.axes) + len(self.severities)
        return chosen + (self.min_bytes > 0) + bool(self.text)

    def toggled(self, group: str, item: object) -> Filters:
        """The filters with one choice of a set switched.

        Raises:
            ValueError: no such group.
        """
        if group not in ("families", "kinds", "axes", "severities"):
            raise ValueError(f"group={group!r} (str) is not one of families, kinds, axes, severities")
        chosen: frozenset[object] = getattr(self, group)
        return replace(self, **{group: chosen ^ {item}})  # type: ignore[arg-type]


def filter_mask(store: Store, filters: Filters) -> Mask:
    """Which tasks the filters keep."""
    tasks = store.tasks
    mask = np.ones(len(tasks), dtype=bool)
    if filters.families:
        mask &= np.isin(tasks.family, list(filters.families))
    if filters.kinds:
        mask &= np.isin(tasks.kind, [position for position, kind in enumerate(KINDS) if kind.name in filters.kinds])
    if filters.axes:
        bits = sum(1 << bit for bit, axis in enumerate(store.mesh.axes[:62]) if axis.name in filters.axes)
        mask &= (tasks.axes & bits) != 0
    if filters.severities:
        mask &= np.isin(tasks.worst, [SEVERITIES.index(name) for name in filters.severities])
    if filters.min_bytes > 0:
        with np.errstate(invalid="ignore"):
            mask &= tasks.message_bytes >= filters.min_bytes
    if filters.text:
        mask &= task_mask(store, parse(filters.text, store.mesh.axis_names))
    return mask


def family_counts(store: Store) -> dict[Family, int]:
    """Number of tasks of every family."""
    counts = np.bincount(store.tasks.family, minlength=len(Family))
    return {family: int(counts[family]) for family in Family}


def kind_counts(store: Store) -> list[tuple[str, int]]:
    """Kinds that occur, most frequent first within communication, local compute last."""
    counts = np.bincount(store.tasks.kind, minlength=len(KINDS))
    present = [(kind.name, int(counts[position])) for position, kind in enumerate(KINDS) if counts[position]]
    return sorted(
        present, key=lambda pair: (FAMILY_OF_KIND[[k.name for k in KINDS].index(pair[0])] is Family.LOCAL, -pair[1])
    )
