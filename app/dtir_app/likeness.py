"""When two tasks are the same but for where they stand, and how to say in what two instances differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir_app.kinds import COMMUNICATION, KINDS
from dtir_app.store import Store
from dtir_app.text import bytes_text, plural

_SAID = 3
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """Of every task of a scope: `role` is equal for tasks of one kind and operation, `exact` for those alike in axes, message and
    types of their results too. `first` is the scope's first task."""

    store: Store
    first: int
    role: Ints
    exact: npt.NDArray[np.int64]

    def differences(self, instances: Mapping[int, Sequence[tuple[object, int]]]) -> dict[int, str]:
        """How instances are not like most of them.

        Args:
            instances: the tasks of each with the place that they have in it; None for a place that only this one has.
        """
        shapes = {
            number: Counter((place, int(self.exact[task])) for place, task in tasks)
            for number, tasks in instances.items()
        }
        usual = Counter(frozenset(shape.items()) for shape in shapes.values()).most_common(1)[0][0]
        typical = next(number for number, shape in shapes.items() if frozenset(shape.items()) == usual)
        said: dict[int, str] = {}
        for number, shape in shapes.items():
            if shape != shapes[typical]:
                said[number] = difference_text(self, instances[typical], instances[number])
        return said

    def what(self, task: int) -> str:
        """A task in a few words: ``all_gather``, ``dot``."""
        index = self.first + task
        kind = KINDS[self.store.tasks.kind[index]]
        if int(kind.family) in COMMUNICATION:
            return kind.name
        return self.store.tasks.operation[index].rsplit(".", 1)[-1]

    def communicates(self, task: int) -> bool:
        return int(self.store.tasks.family[self.first + task]) in COMMUNICATION

    def size(self, task: int) -> str:
        """The message in words, else the type of the first result."""
        index = self.first + task
        number = float(self.store.tasks.message_bytes[index])
        if math.isfinite(number):
            return bytes_text(number)
        outputs = self.store.task_records[index].outputs
        scope = int(self.store.tasks.scope[index])
        value = self.store.value_at(scope, outputs[0].value) if outputs else -1
        return self.store.values.shape[value] if value >= 0 else ""


def likeness_of(store: Store, scope: int) -> Likeness:
    """The likeness of a scope's tasks."""
    span, tasks = store.scopes[scope], store.tasks
    roles: dict[object, int] = {}
    exact: dict[object, int] = {}
    role = np.empty(span.task_count, np.int32)
    full = np.empty(span.task_count, np.int64)
    kinds, axes, messages = tasks.kind.tolist(), tasks.axes.tolist(), tasks.message_bytes.tolist()
    for task in range(span.task_count):
        index = span.first_task + task
        here = (kinds[index], tasks.operation[index])
        record = store.task_records[index]
        results = tuple(
            (store.values.shape[value], store.values.layout[value])
            for name in record.outputs
            if (value := store.value_at(scope, name.value)) >= 0
        )
        message = messages[index]
        role[task] = roles.setdefault(here, len(roles))
        full[task] = exact.setdefault(
            (here, axes[index], message if message == message else None, results, len(record.inputs)), len(exact)
        )
    return Likeness(store, span.first_task, role, full)


def difference_text(same: Likeness, usual: Sequence[tuple[object, int]], other: Sequence[tuple[object, int]]) -> str:
    """What an instance lacks, has besides, or has in another size; communication first.

    ``no all_gather, 2 more dots, all_reduce 4 MiB instead of 2 MiB``
    """
    by_place = {place: task for place, task in usual if place is not None}
    have = Counter(same.what(task) for _, task in other)
    want = Counter(same.what(task) for _, task in usual)
    loud = {same.what(task) for _, task in (*usual, *other) if same.communicates(task)}
    said: list[tuple[bool, str]] = []
    for name, count in (want - have).items():
        said.append((name not in loud, f"no {name}" if not have[name] else f"{plural(count, name)} less"))
    for name, count in (have - want).items():
        said.append((name not in loud, f"{name} besides" if not want[name] else f"{count} more {name}"))
    for place, task in other:
        match = by_place.get(place) if place is not None else None
        if match is None or same.exact[match] == same.exact[task] or same.role[match] != same.role[task]:
            continue
        size, usually = same.size(task), same.size(match)
        text = f"{size} instead of {usually}" if size != usually else "in another layout"
        said.append((not same.communicates(task), f"{same.what(task)} {text}"))
    words = [text for _, text in sorted(dict.fromkeys(said))]
    if not words:
        return "in another order"
    return ", ".join(words[:_SAID]) + (
        f", {plural(len(words) - _SAID, 'more difference', 'more differences')}" if len(words) > _SAID else ""
    )
