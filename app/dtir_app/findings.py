"""Diagnostics as the explorer shows them: with the tasks and values they are about, found by id or by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtir.schema.diagnostics import Diagnostic
from dtir_app.store import Finding, Store

Places = tuple[Mapping[str, int], Mapping[str, int], list[tuple[int, int]]]
"""Tasks by hex id, values by hex id, and the first task and value of each scope."""


def resolve(diagnostic: Diagnostic, places: Places | None) -> Finding:
    """A finding with its subjects as numbers; without a program nothing is resolved."""
    tasks: dict[int, None] = {}
    values: dict[int, None] = {}
    if places is not None:
        _by_path(diagnostic.path, places, tasks, values)
        for subject in diagnostic.subject:
            _by_id(subject, places, tasks, values)
        for related in diagnostic.related:
            _by_path(related.path, places, tasks, values)
    return Finding(
        severity=diagnostic.severity.value,
        code=diagnostic.code,
        message=diagnostic.message,
        hint=diagnostic.hint or "",
        path=".".join(diagnostic.path),
        tasks=tuple(tasks),
        values=tuple(values),
        related=tuple((item.label, ".".join(item.path)) for item in diagnostic.related),
        names=tuple(subject for subject in diagnostic.subject if ":" not in subject),
    )


def _by_id(subject: str, places: Places, tasks: dict[int, None], values: dict[int, None]) -> None:
    prefix, separator, hexadecimal = subject.partition(":")
    if not separator:
        return
    if prefix in ("node", "task") and hexadecimal in places[0]:
        tasks.setdefault(places[0][hexadecimal])
    elif prefix == "value" and hexadecimal in places[1]:
        values.setdefault(places[1][hexadecimal])


def _by_path(path: tuple[str, ...], places: Places, tasks: dict[int, None], values: dict[int, None]) -> None:
    scope, rest = 0, path
    if len(path) >= 2 and path[0] == "regions" and path[1].isdecimal():
        scope, rest = int(path[1]) + 1, path[2:]
    if len(rest) < 2 or not rest[1].isdecimal() or scope >= len(places[2]) or len(rest[1]) > 9:
        return
    first_task, first_value = places[2][scope]
    position = int(rest[1])
    if rest[0] == "tasks" and first_task + position < len(places[0]):
        tasks.setdefault(first_task + position)
    elif rest[0] == "values" and first_value + position < len(places[1]):
        values.setdefault(first_value + position)


def task_and_value_of(store: Store, subjects: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tasks and values that ids name, by number."""
    tasks: dict[int, None] = {}
    values: dict[int, None] = {}
    for subject in subjects:
        _by_id(subject, (store.task_index, store.value_index, []), tasks, values)
    return tuple(tasks), tuple(values)
