"""Exchanges of rows by a route: tokens to the ranks of their experts, and back.

A rank sends its rows sorted by expert (stable), cut by its row of ``send_splits``; a receiver takes ``recv_splits`` rows of
each sender. Rows that are not taken are lost; rows that nobody sent are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

import numpy as np

from dtir.ops.arithmetic import Array
from dtir.verify.value.case import CaseTask, CaseValue
from dtir.verify.value.grid import Grid


class RouteError(Exception):
    """The route or the splits of an exchange cannot be read; nothing is known of its result."""


@dataclass(slots=True)
class Rows:
    """Arrays of a group after an exchange, and the local expert of every row."""

    arrays: dict[int, Array] = field(default_factory=dict[int, Array])
    experts: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])


def read_route(value: object) -> tuple[int, ...] | None:
    """A route: the expert of every token, in global order."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    items = tuple(cast("Sequence[Any]", value))
    return items if all(isinstance(item, int) and item >= 0 for item in items) else None


def _table(task: CaseTask, name: str, count: int) -> tuple[tuple[int, ...], ...] | None:
    value = task.attributes.get(name)
    if value is None:
        return None
    rows = tuple(read_route(row) for row in cast("Sequence[Any]", value)) if isinstance(value, Sequence) else ()
    if len(rows) != count or any(row is None or len(row) != count for row in rows):
        raise RouteError(f"{name} must be a table of {count} by {count} whole numbers")
    return tuple(row for row in rows if row is not None)


def _experts_a_rank(route: Sequence[int], count: int) -> int:
    return max(1, -(-(max(route, default=0) + 1) // count))


def _own_route(route: Sequence[int], value: CaseValue, grid: Grid, rank: int, rows: int) -> list[int]:
    """The experts of the tokens that a rank holds before the dispatch (and again after the combine)."""
    span = value.block(grid, rank)[0]
    own = list(route[span.start : span.stop])
    if len(own) != rows:
        raise RouteError(f"the route has {len(own)} entries for the {rows} tokens of rank {rank}")
    return own


def dispatch(
    task: CaseTask,
    group: tuple[int, ...],
    arrays: Sequence[Array],
    source: CaseValue,
    result: CaseValue,
    grid: Grid,
    route: Sequence[int] | None,
) -> Rows:
    """Tokens to the ranks of their experts.

    Raises:
        RouteError: no route, or one that does not fit.
    """
    if route is None or not source.shape:
        raise RouteError("the exchange has no route")
    count = len(group)
    each = _experts_a_rank(route, count)
    sent, experts = _sorted_by_expert(group, arrays, source, grid, route)
    counts = tuple(tuple(sum(expert // each == place for expert in row) for place in range(count)) for row in experts)
    send = _table(task, "send_splits", count) or counts
    receive = _table(task, "recv_splits", count) or tuple(zip(*send, strict=True))
    found = Rows()
    for place, rank in enumerate(group):
        room = result.local_shape(grid, rank)[0]
        parts: list[Array] = []
        owners: list[int] = []
        for origin in range(count):
            start = sum(send[origin][:place])
            chunk = slice(start, start + send[origin][place])
            # A receive of more rows than there is room for is a misfit already; memory must not follow the number.
            taken = min(receive[place][origin], len(sent[origin]) + room + 1)
            parts.append(_exactly(sent[origin][chunk], taken))
            owners += _exactly_list([expert - place * each for expert in experts[origin][chunk]], taken)
        rows = np.concatenate(parts, axis=0)
        found.arrays[rank] = _exactly(rows, room) if len(rows) <= room else rows
        found.experts[rank] = tuple(_exactly_list(owners, max(room, len(rows))))
    return found


def _sorted_by_expert(
    group: tuple[int, ...], arrays: Sequence[Array], source: CaseValue, grid: Grid, route: Sequence[int]
) -> tuple[list[Array], list[list[int]]]:
    rows: list[Array] = []
    experts: list[list[int]] = []
    for rank, array in zip(group, arrays, strict=True):
        own = _own_route(route, source, grid, rank, array.shape[0] if array.ndim else 0)
        order = sorted(range(len(own)), key=own.__getitem__)
        rows.append(array[order])
        experts.append([own[index] for index in order])
    return rows, experts


def combine(
    task: CaseTask,
    group: tuple[int, ...],
    arrays: Sequence[Array],
    result: CaseValue,
    grid: Grid,
    route: Sequence[int] | None,
) -> dict[int, Array]:
    """Rows back to the ranks of their tokens, in the tokens' order unless ``unpermute: false``.

    Raises:
        RouteError: no route and no splits, or ones that do not fit.
    """
    count = len(group)
    send = _table(task, "send_splits", count)
    if send is None:
        send = _counts_back(group, result, grid, route)
    receive = _table(task, "recv_splits", count) or tuple(zip(*send, strict=True))
    found: dict[int, Array] = {}
    for place, rank in enumerate(group):
        parts: list[Array] = []
        wanted = result.local_shape(grid, rank)[0]
        for origin in range(count):
            start = list(accumulate(send[origin], initial=0))[place]
            rows = arrays[origin][start : start + send[origin][place]]
            parts.append(_exactly(rows, min(receive[place][origin], wanted)))
        rows = _exactly(np.concatenate(parts, axis=0), wanted)
        if task.attributes.get("unpermute") is not False and route is not None:
            own = _own_route(route, result, grid, rank, wanted)
            order = sorted(range(len(own)), key=own.__getitem__)
            back = np.empty_like(rows)
            back[order] = rows
            rows = back
        found[rank] = rows
    return found


def _counts_back(
    group: tuple[int, ...], result: CaseValue, grid: Grid, route: Sequence[int] | None
) -> tuple[tuple[int, ...], ...]:
    if route is None:
        raise RouteError("the exchange has neither a route nor splits")
    each = _experts_a_rank(route, len(group))
    rows = [_own_route(route, result, grid, rank, result.local_shape(grid, rank)[0]) for rank in group]
    return tuple(tuple(sum(expert // each == place for expert in own) for own in rows) for place in range(len(group)))


def _exactly(rows: Array, count: int) -> Array:
    """The first rows; zeros where there are fewer."""
    if len(rows) >= count:
        return rows[:count]
    return np.concatenate((rows, np.zeros((count - len(rows), *rows.shape[1:]), dtype=rows.dtype)), axis=0)


def _exactly_list(items: list[int], count: int) -> list[int]:
    return [max(0, item) for item in items[:count]] + [0] * (count - len(items))
