"""What a search finds: the tasks that fulfil it, as a mask. The language is that of `dtir_app.query_text`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import assert_never

import numpy as np
import numpy.typing as npt

from dtir_app.implicit import implicit_mask
from dtir_app.layouts import axis_states
from dtir_app.query_text import KEYS, KIND_NAMES, Condition, Query, Step, Term, Word, parse
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import parse_bytes

__all__ = ["KEYS", "Query", "haystacks", "kinds_named", "parse", "task_mask"]

Mask = npt.NDArray[np.bool_]

_COMPARE: dict[str, Callable[[object, object], object]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    ":": operator.eq,
    "=": operator.eq,
}


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
    """Which tasks a search finds; none where it has a problem, all where it is empty. Of a path, all tasks that its terms name."""
    if query.problem:
        return np.zeros(len(store.tasks), dtype=bool)
    if not query.steps:
        return np.ones(len(store.tasks), dtype=bool)
    masks = [step_mask(store, step) for step in query.steps]
    if len(masks) == 1:
        return masks[0]
    links = [step.far for step in query.steps[1:]]
    for at, far in enumerate(links):
        masks[at + 1] &= _moved(store, masks[at], far, onwards=True)
    for at in range(len(links) - 1, -1, -1):
        masks[at] &= _moved(store, masks[at + 1], links[at], onwards=False)
    named = [mask for mask, step in zip(masks, query.steps, strict=True) if step.terms]
    return np.logical_or.reduce(named or masks)


def step_mask(store: Store, step: Step) -> Mask:
    """Which tasks fulfil all terms of a step."""
    mask = np.ones(len(store.tasks), dtype=bool)
    words = [term for term in step.terms if isinstance(term, Word)]
    for term in step.terms:
        if isinstance(term, Condition):
            mask &= term_mask(store, term)
    if words:
        texts = haystacks(store)
        wanted = [(word.text, not word.negated) for word in words]
        for index in np.flatnonzero(mask).tolist():
            text = texts[index]
            if not all((word in text) is expected for word, expected in wanted):
                mask[index] = False
    return mask


def term_mask(store: Store, term: Term) -> Mask:
    """Which tasks fulfil one term."""
    match term:
        case Word():
            found = np.fromiter((term.text in text for text in haystacks(store)), dtype=bool, count=len(store.tasks))
        case Condition():
            found = _condition_mask(store, term)
        case _:
            assert_never(term)
    return ~found if term.negated else found


def _moved(store: Store, mask: Mask, far: bool, *, onwards: bool) -> Mask:
    """The tasks one edge further on, or any number of edges, from those of a mask; or back."""
    source, destination = store.edges.source, store.edges.destination
    tail, head = (source, destination) if onwards else (destination, source)
    made = np.zeros(len(mask), dtype=bool)
    if not far:
        made[head[mask[tail]]] = True
        return made
    # Edges are sorted by their destination within a scope, so one pass nearly always does; another finds nothing new and ends it.
    reached = mask.tolist()
    found = made.tolist()
    pairs = list(zip(tail.tolist(), head.tolist(), strict=True))
    if not onwards:
        pairs.sort(key=lambda pair: -pair[0])
    changed = True
    while changed:
        changed = False
        for before, after in pairs:
            if (reached[before] or found[before]) and not found[after]:
                found[after] = changed = True
    return np.array(found, dtype=bool)


def kinds_named(name: str) -> tuple[int, ...]:
    """The kinds that a name means: a kind, its code, its label, or a family."""
    plain = name.replace("-", "_").replace(" ", "_").lower()
    return tuple(position for position, names in enumerate(KIND_NAMES) if plain in names)


def _condition_mask(store: Store, condition: Condition) -> Mask:
    tasks = store.tasks
    parts = [part for part in condition.value.split(",") if part]
    match condition.key:
        case "kind":
            return np.isin(tasks.kind, [kind for part in parts for kind in kinds_named(part)])
        case "axis":
            names = [axis.name.lower() for axis in store.mesh.axes]
            bits = sum(1 << position for position, name in enumerate(names) if name in parts and position < 62)
            return (tasks.axes & bits) != 0
        case "bytes":
            limit = parse_bytes(condition.value)
            with np.errstate(invalid="ignore"):
                return np.asarray(_COMPARE[condition.compare](tasks.message_bytes, limit), dtype=bool)
        case "runs":
            return _numbers(tasks.executions, condition.compare, parts)
        case "stage" | "microbatch":
            return _numbers(_slot_numbers(store, condition.key), condition.compare, parts)
        case "implicit":
            wanted = {part == "yes" for part in parts}
            implicit, known = implicit_mask(store)
            return known & (implicit if wanted == {True} else ~implicit if wanted == {False} else True)
        case "severity":
            return np.isin(tasks.worst, [SEVERITIES.index(part) for part in parts])
        case "rank":
            return _rank_mask(store, [int(part) for part in parts])
        case "op":
            return _any_text(tasks.operation, parts)
        case "source":
            return _any_text(tasks.source, parts)
        case "state":
            return _value_mask(store, frozenset(_values_in_state(store, parts)))
        case "dtype":
            wanted_types = frozenset(at for at, dtype in enumerate(store.values.dtype) if dtype.lower() in parts)
            return _value_mask(store, wanted_types)
        case "in":
            names_by_scope = [scope.name.lower() for scope in store.scopes]
            known_paths: dict[tuple[str, ...], bool] = {}
            for path in set(tasks.path):
                known_paths[path] = any(part in item.lower() for item in path for part in parts)
            scopes = [any(part in name for part in parts) for name in names_by_scope]
            return np.fromiter(
                (
                    scopes[scope] or known_paths[path]
                    for scope, path in zip(tasks.scope.tolist(), tasks.path, strict=True)
                ),
                dtype=bool,
                count=len(tasks),
            )
        case _:
            raise ValueError(f"condition.key={condition.key!r} (str) is not one of {', '.join(KEYS)}")


def _any_text(texts: Iterable[str], parts: list[str]) -> Mask:
    known: dict[str, bool] = {}
    made: list[bool] = []
    for text in texts:
        if text not in known:
            known[text] = any(part in text.lower() for part in parts)
        made.append(known[text])
    return np.array(made, dtype=bool)


def _numbers(column: npt.NDArray[np.float64], compare: str, parts: list[str]) -> Mask:
    with np.errstate(invalid="ignore"):
        if compare in (":", "="):
            return np.isin(column, [float(part) for part in parts])
        return np.asarray(_COMPARE[compare](column, float(parts[0])), dtype=bool)


def _slot_numbers(store: Store, which: str) -> npt.NDArray[np.float64]:
    """Stage or microbatch of every task, NaN where it has none."""

    def make() -> npt.NDArray[np.float64]:
        return np.array(
            [
                float("nan") if record.pipeline is None else float(getattr(record.pipeline, which))
                for record in store.task_records
            ]
        )

    return store.memo.made(("slot", which), make)


def _rank_mask(store: Store, ranks: list[int]) -> Mask:
    known: dict[int, bool] = {}
    made: list[bool] = []
    for record in store.task_records:
        # Rank sets are shared between tasks; the record keeps each alive, so its identity names it.
        identity = id(record.ranks)
        if identity not in known:
            known[identity] = any(rank in record.ranks for rank in ranks)
        made.append(known[identity])
    return np.array(made, dtype=bool)


def _values_in_state(store: Store, parts: list[str]) -> Iterable[int]:
    """The values of which some axis, or the named one, is in one of the states."""
    wanted = [part.replace("_", " ").replace("-", " ").partition("@")[::2] for part in parts]
    sizes = {axis.name: axis.size for axis in store.mesh.axes}
    known: dict[int, bool] = {}
    for at, record in enumerate(store.value_records):
        identity = id(record.sharding)
        if identity not in known:
            states = axis_states(record.sharding, store.mesh)
            known[identity] = any(
                state.startswith(name) and (axis.lower() == which if which else sizes[axis] > 1 or name != "replicated")
                for name, which in wanted
                for axis, state in states.items()
            )
        if known[identity]:
            yield at


def _value_mask(store: Store, wanted: frozenset[int]) -> Mask:
    """The tasks that read or make one of some values."""
    mask = np.zeros(len(store.tasks), dtype=bool)
    if not wanted:
        return mask
    for index, record in enumerate(store.task_records):
        scope = int(store.tasks.scope[index])
        mask[index] = any(store.value_at(scope, name.value) in wanted for name in (*record.inputs, *record.outputs))
    return mask
