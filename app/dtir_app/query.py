"""The search language: free words and ``key:value`` conditions, all of which must hold.

``kind:all_reduce axis:tp bytes>64MiB attention`` finds the all-reduces over tp that send more than 64 MiB and whose name, operation,
source or path says "attention". Quotes keep blanks together. Commas are "or": ``kind:all_gather,reduce_scatter``.

>>> parse("kind:all_reduce bytes>=1KiB softmax").words
('softmax',)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir_app.kinds import FAMILY_LABELS, KINDS
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import parse_bytes

Mask = npt.NDArray[np.bool_]

_TOKEN = re.compile(r'[^\s"]*"[^"]*"?|\S+')
_CONDITION = re.compile(r"([a-z]+)(>=|<=|[:=<>])(.*)", re.IGNORECASE)
_COMPARE: dict[str, Callable[[object, object], object]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    ":": operator.eq,
    "=": operator.eq,
}
KEYS = {
    "kind": "kind of task: all_reduce, all_gather, local_compute, … or a family: collective",
    "axis": "a mesh axis that a collective's groups span",
    "bytes": "message size: bytes>64MiB",
    "runs": "executions: runs>1",
    "rank": "a rank that takes part: rank:3",
    "severity": "worst finding: error, warning, info",
    "op": "operation: op:dot",
    "dtype": "element type of an input or output",
    "in": "name of a region or scope",
}
"""What may stand before ``:``, and what it means."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One ``key:value`` of a query."""

    key: str
    compare: str
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    Args:
        words: free words in lower case.
        conditions: what must hold besides.
        problem: what is wrong with the text; empty when nothing is.
    """

    words: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    problem: str = ""

    @property
    def empty(self) -> bool:
        return not self.words and not self.conditions


def parse(text: str) -> Query:
    """Read a query; an unknown key or a bad number is said in `problem` and finds nothing."""
    words: list[str] = []
    conditions: list[Condition] = []
    problem = ""
    for token in _TOKEN.findall(text):
        match = _CONDITION.fullmatch(token)
        if not match or (token.startswith('"')):
            words.append(token.strip('"').lower())
            continue
        key, compare, value = match.group(1).lower(), match.group(2), match.group(3).strip('"').lower()
        if key not in KEYS:
            if compare == ":" and not problem:
                problem = f"unknown key {key!r}; known: {', '.join(KEYS)}"
            elif compare != ":":
                words.append(token.lower())
            continue
        if not value:
            problem = problem or f"{key}{compare} needs a value"
            continue
        problem = problem or _problem_of(key, compare, value)
        conditions.append(Condition(key, compare, value))
    return Query(tuple(word for word in words if word), tuple(conditions), problem)


def _problem_of(key: str, compare: str, value: str) -> str:
    if key == "bytes" and parse_bytes(value) is None:
        return f"{value!r} is no size; write 64KiB, 1.5MiB"
    if key in ("runs", "rank") and not value.isdecimal():
        return f"{value!r} is no whole number"
    if key not in ("bytes", "runs") and compare not in (":", "="):
        return f"{key} takes ':', not {compare!r}"
    if key == "severity" and any(part not in SEVERITIES for part in value.split(",")):
        return f"severity is one of {', '.join(SEVERITIES)}"
    return ""


def haystacks(store: Store) -> tuple[str, ...]:
    """Per task, the lower-case text that free words are looked up in; made once a program."""

    def make() -> tuple[str, ...]:
        tasks = store.tasks
        return tuple(
            f"{name}\n{operation}\n{'/'.join(path)}\n{source}\n{identity}".lower()
            for name, operation, path, source, identity in zip(
                tasks.name, tasks.operation, tasks.path, tasks.source, tasks.id, strict=True
            )
        )

    return store.memo.made("haystacks", make)


def task_mask(store: Store, query: Query) -> Mask:
    """Which tasks a query finds; none where the query has a problem, all where it is empty."""
    if query.problem:
        return np.zeros(len(store.tasks), dtype=bool)
    mask = np.ones(len(store.tasks), dtype=bool)
    for condition in query.conditions:
        mask &= _condition_mask(store, condition)
    if query.words:
        texts = haystacks(store)
        for index in np.flatnonzero(mask).tolist():
            text = texts[index]
            if not all(word in text for word in query.words):
                mask[index] = False
    return mask


def kinds_named(name: str) -> tuple[int, ...]:
    """The kinds that a name means: a kind, its code, its label, or a family."""
    plain = name.replace("-", "_").replace(" ", "_").lower()
    return tuple(
        position
        for position, kind in enumerate(KINDS)
        if plain
        in (kind.name, kind.code.lower(), kind.label.replace("-", "_"), FAMILY_LABELS[kind.family].replace(" ", "_"))
    )


def _condition_mask(store: Store, condition: Condition) -> Mask:
    tasks = store.tasks
    parts = [part for part in condition.value.split(",") if part]
    match condition.key:
        case "kind":
            wanted = [kind for part in parts for kind in kinds_named(part)]
            return np.isin(tasks.kind, wanted)
        case "axis":
            names = [axis.name.lower() for axis in store.mesh.axes]
            bits = sum(1 << position for position, name in enumerate(names) if name in parts and position < 62)
            return (tasks.axes & bits) != 0
        case "bytes":
            limit = parse_bytes(condition.value)
            with np.errstate(invalid="ignore"):
                return np.asarray(_COMPARE[condition.compare](tasks.message_bytes, limit), dtype=bool)
        case "runs":
            with np.errstate(invalid="ignore"):
                return np.asarray(_COMPARE[condition.compare](tasks.executions, int(condition.value)), dtype=bool)
        case "severity":
            return np.isin(tasks.worst, [SEVERITIES.index(part) for part in parts])
        case "rank":
            rank = int(condition.value)
            return np.fromiter((rank in record.ranks for record in store.task_records), dtype=bool)
        case "op":
            return np.fromiter((any(part in name.lower() for part in parts) for name in tasks.operation), dtype=bool)
        case "dtype":
            return _dtype_mask(store, parts)
        case "in":
            names_by_scope = [scope.name.lower() for scope in store.scopes]
            return np.fromiter(
                (
                    any(part in names_by_scope[scope] or any(part in item.lower() for item in path) for part in parts)
                    for scope, path in zip(tasks.scope.tolist(), tasks.path, strict=True)
                ),
                dtype=bool,
            )
        case _:
            raise ValueError(f"condition.key={condition.key!r} (str) is not one of {', '.join(KEYS)}")


def _dtype_mask(store: Store, dtypes: list[str]) -> Mask:
    mask = np.zeros(len(store.tasks), dtype=bool)
    for index, record in enumerate(store.task_records):
        scope = int(store.tasks.scope[index])
        for name in (*record.inputs, *record.outputs):
            value = store.value_at(scope, name.value)
            if value >= 0 and store.values.dtype[value].lower() in dtypes:
                mask[index] = True
                break
    return mask
