"""Exchanges of rows by a route: tokens to the ranks of their experts, and back.

The route names the expert of every token, in global order; rank i of the group has experts ``i * e`` to ``(i + 1) * e - 1``.
A rank sends its rows sorted by expert (stable), cut by its row of `send_splits`; a receiver takes `recv_splits` rows of each
sender. Rows that nobody sent are zeros. Since the route is part of the program, an exchange is a list of moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, cast

from dtir.execute.exchange import Move, Moves
from dtir.execute.placement import Box, Placement, PlacementError
from dtir.ir.tasks import DistributedTask

DISPATCH, COMBINE = "moe_dispatch", "moe_combine"

Table: TypeAlias = tuple[tuple[int, ...], ...]
Rows: TypeAlias = list[tuple[int, int]]
"""For every row of a destination the rank and row it comes from."""


@dataclass(slots=True)
class Routes:
    """What is known of routes while a scope is planned, by slot.

    Args:
        routes: the route that a value went by.
        experts: the local expert of every row that a rank holds.
    """

    routes: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    experts: dict[int, Mapping[int, tuple[int, ...]]] = field(default_factory=dict[int, Mapping[int, tuple[int, ...]]])

    def of(self, task: DistributedTask, inputs: Sequence[int]) -> tuple[int, ...] | None:
        """The route of a task: its own, else that of an operand."""
        own = _naturals(task.attributes.get("op.route"))
        return own if own is not None else next((self.routes[slot] for slot in inputs if slot in self.routes), None)

    def follow(self, task: DistributedTask, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Results went by the route of their operands, row by row."""
        route = self.of(task, inputs)
        if route is not None:
            self.routes.update(dict.fromkeys(outputs, route))
        experts = self.experts.get(inputs[0]) if inputs else None
        if experts is not None:
            for slot in outputs:
                self.experts.setdefault(slot, experts)


def is_routed(task: DistributedTask) -> bool:
    """True for an exchange of rows by a route."""
    return task.operation.name in (DISPATCH, COMBINE)


def _naturals(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    items = tuple(cast("Sequence[Any]", value))
    return items if all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items) else None


def _table(task: DistributedTask, name: str, members: int) -> Table | None:
    value = task.attributes.get(f"op.{name}")
    if value is None:
        return None
    rows = tuple(_naturals(row) for row in cast("Sequence[Any]", value)) if isinstance(value, Sequence) else ()
    found = tuple(row for row in rows if row is not None and len(row) == members)
    if len(found) != members or len(rows) != members:
        raise PlacementError(f"{name} must be a table of {members} by {members} whole numbers")
    return found


def _own(route: Sequence[int], placement: Placement, rank: int) -> tuple[int, ...]:
    """The experts of the tokens that a rank holds in token order."""
    start, stop = placement.box(rank)[0]
    own = tuple(route[start:stop])
    if len(own) != stop - start:
        raise PlacementError(f"the route has {len(route)} entries, the value {placement.shape[0]} tokens")
    return own


def _sorted(experts: Sequence[int]) -> list[int]:
    return sorted(range(len(experts)), key=experts.__getitem__)


def _transposed(table: Table) -> Table:
    return tuple(zip(*table, strict=True))


def dispatch(
    task: DistributedTask,
    groups: Sequence[Sequence[int]],
    source: Placement,
    target: Placement,
    route: Sequence[int] | None,
) -> tuple[Moves, dict[int, tuple[int, ...]]]:
    """Tokens to the ranks of their experts, and the local expert of every row that arrives.

    Raises:
        PlacementError: no route, or one that does not fit; splits that are no table.
    """
    if route is None or not source.shape:
        raise PlacementError("the exchange has no route")
    picks: dict[int, Rows] = {}
    experts: dict[int, tuple[int, ...]] = {}
    for group in groups:
        members = len(group)
        each = max(1, -(-(max(route, default=0) + 1) // members))
        own = [_own(route, source, rank) for rank in group]
        order = [_sorted(item) for item in own]
        counts: Table = tuple(
            tuple(sum(expert // each == place for expert in item) for place in range(members)) for item in own
        )
        send = _table(task, "send_splits", members) or counts
        receive = _table(task, "recv_splits", members) or _transposed(send)
        for place, rank in enumerate(group):
            room = target.local_shape(rank)[0]
            rows: Rows = []
            owners: list[int] = []
            for origin in range(members):
                start = sum(send[origin][:place])
                sent = order[origin][start : start + send[origin][place]]
                taken = min(receive[place][origin], room)
                rows += _exactly([(group[origin], row) for row in sent], taken, (-1, -1))
                owners += _exactly([own[origin][row] - place * each for row in sent], taken, 0)
            picks[rank] = rows[:room]
            experts[rank] = tuple(max(0, expert) for expert in _exactly(owners, room, 0))
    return _moves(picks, source, target), experts


def combine(
    task: DistributedTask,
    groups: Sequence[Sequence[int]],
    source: Placement,
    target: Placement,
    route: Sequence[int] | None,
) -> Moves:
    """Rows back to the ranks of their tokens, in the tokens' order unless ``unpermute: false``.

    Raises:
        PlacementError: no route and no splits, or ones that do not fit.
    """
    picks: dict[int, Rows] = {}
    for group in groups:
        members = len(group)
        send = _table(task, "send_splits", members) or _counts_back(group, target, route)
        receive = _table(task, "recv_splits", members) or _transposed(send)
        starts = [list(accumulate(row, initial=0)) for row in send]
        for place, rank in enumerate(group):
            room = target.local_shape(rank)[0]
            rows: Rows = []
            for origin in range(members):
                first = starts[origin][place]
                sent = [(group[origin], first + step) for step in range(min(send[origin][place], room))]
                rows += _exactly(sent, min(receive[place][origin], room), (-1, -1))
            rows = _exactly(rows, room, (-1, -1))
            if task.attributes.get("op.unpermute") is not False and route is not None:
                back: Rows = [(-1, -1)] * room
                for row, position in zip(rows, _sorted(_own(route, target, rank)), strict=True):
                    back[position] = row
                rows = back
            picks[rank] = rows
    return _moves(picks, source, target)


def _counts_back(group: Sequence[int], target: Placement, route: Sequence[int] | None) -> Table:
    if route is None:
        raise PlacementError("the exchange has neither a route nor splits")
    each = max(1, -(-(max(route, default=0) + 1) // len(group)))
    own = [_own(route, target, rank) for rank in group]
    return tuple(tuple(sum(expert // each == place for expert in item) for item in own) for place in range(len(group)))


def _exactly(items: list[Any], count: int, filler: Any) -> list[Any]:
    return items[:count] + [filler] * (count - len(items))


def _moves(picks: Mapping[int, Rows], source: Placement, target: Placement) -> Moves:
    """Rows as blocks: neighbours that come from neighbours are one block."""
    moves: list[Move] = []
    shapes = {rank: target.local_shape(rank) for rank in picks}
    for rank, rows in picks.items():
        rest: Box = tuple((0, extent) for extent in shapes[rank][1:])
        breaks = [0, *(at for at in range(1, len(rows)) if not _next(rows[at - 1], rows[at])), len(rows)]
        for start, stop in pairwise(breaks):
            origin, first = rows[start] if start < stop else (-1, -1)
            if origin < 0 or first + stop - start > source.local_shape(origin)[0]:
                continue
            moves.append(Move(origin, rank, ((first, first + stop - start), *rest), ((start, stop), *rest)))
    return Moves(tuple(moves), shapes)


def _next(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] == other[0] and (one[0] < 0 or other[1] == one[1] + 1)
