"""Which values and tasks reach an output, and who uses what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtir.ir.ids import ValueId
from dtir.ir.program import Scope
from dtir.ir.types import EffectKind

_VISIBLE = frozenset({EffectKind.WRITE, EffectKind.STATE, EffectKind.IO})
"""Effects by which a task matters even when nothing reads its results."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """Liveness of one scope.

    Args:
        live_values: values that reach an output, or a task whose effects are visible outside.
        live_tasks: positions of the tasks that do.
        users: positions of the tasks that read each value.
        producer: position of the task that writes each value.
    """

    live_values: frozenset[ValueId]
    live_tasks: frozenset[int]
    users: Mapping[ValueId, tuple[int, ...]]
    producer: Mapping[ValueId, int]


def liveness(scope: Scope) -> Liveness:
    """One pass forward for users, one backward for what reaches an end."""
    users: dict[ValueId, list[int]] = {}
    producer: dict[ValueId, int] = {}
    for index, task in enumerate(scope.tasks):
        for value in task.inputs:
            users.setdefault(value, []).append(index)
        for value in task.outputs:
            producer[value] = index
    live = set(scope.outputs)
    tasks: set[int] = set()
    for index in range(len(scope.tasks) - 1, -1, -1):
        task = scope.tasks[index]
        if any(value in live for value in task.outputs) or any(item.kind in _VISIBLE for item in task.effects):
            tasks.add(index)
            live.update(task.inputs)
    return Liveness(
        frozenset(live), frozenset(tasks), {value: tuple(items) for value, items in users.items()}, producer
    )
