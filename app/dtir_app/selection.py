"""What may be selected, and how a link writes it: ``node:hex`` for a task, ``value:hex`` for a value.

>>> parse_selection("node:" + "0" * 32).kind
'task'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtir_app.store import Store

_TEXT = re.compile(r"(node|value):([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Selection:
    """A task or a value of a store by its number, or nothing (`kind` empty, `index` -1)."""

    kind: str = ""
    index: int = -1

    def __bool__(self) -> bool:
        return self.index >= 0

    @property
    def task(self) -> int:
        """The selected task, or -1."""
        return self.index if self.kind == "task" else -1

    @property
    def value(self) -> int:
        """The selected value, or -1."""
        return self.index if self.kind == "value" else -1


NOTHING = Selection()


def of_task(index: int) -> Selection:
    """The selection of a task."""
    return Selection("task", index)


def of_value(index: int) -> Selection:
    """The selection of a value."""
    return Selection("value", index)


def parse_selection(text: str) -> Selection | None:
    """The kind that a text names, with index 0; None when it is not well formed."""
    match = _TEXT.fullmatch(text)
    return Selection("task" if match.group(1) == "node" else "value", 0) if match else None


def find_selection(store: Store, text: str) -> Selection:
    """The selection that a text names in a store; nothing when it is not there."""
    match = _TEXT.fullmatch(text)
    if not match:
        return NOTHING
    if match.group(1) == "node":
        index = store.task_index.get(match.group(2), -1)
        return of_task(index) if index >= 0 else NOTHING
    index = store.value_index.get(match.group(2), -1)
    return of_value(index) if index >= 0 else NOTHING


def selection_text(store: Store, selection: Selection) -> str:
    """The text that a link carries."""
    if selection.task >= 0:
        return f"node:{store.tasks.id[selection.index]}"
    if selection.value >= 0:
        return f"value:{store.values.id[selection.index]}"
    return ""


def task_of(store: Store, selection: Selection) -> int:
    """The task that a selection is about: itself, or the task that makes the value; -1 when there is none."""
    if selection.value >= 0:
        return int(store.values.producer[selection.value])
    return selection.task
