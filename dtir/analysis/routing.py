"""Expert routing: who sends how many rows to whom, from the route and from the stated splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Routing:
    """What one exchange states.

    Args:
        send, recv: rows from member i of the group to member j, and to member i from member j; None when not stated.
        route: per row of the whole group the experts it goes to; None when not stated.
        drops: rows that members may drop by declaration, per member.
        experts: number of experts; None: as many as members.
        topk: experts a row goes to, where the route does not tell.
    """

    send: Matrix | None
    recv: Matrix | None
    route: tuple[tuple[int, ...], ...] | None
    drops: tuple[int, ...] | None = None
    experts: int | None = None
    topk: int = 1


def read_routing(attributes: Mapping[str, Any]) -> Routing:
    """The routing parameters of a task; what has another form counts as not stated."""
    drops = attributes.get("op.drops")
    return Routing(
        _matrix(attributes.get("op.send_splits")),
        _matrix(attributes.get("op.recv_splits")),
        _route(attributes.get("op.route")),
        (drops,) if isinstance(drops, int) and not isinstance(drops, bool) else _numbers(drops),
        _positive(attributes.get("op.experts")),
        _positive(attributes.get("op.topk")) or 1,
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, (tuple, list)):
        return None
    items = cast("Sequence[object]", value)
    return cast("tuple[int, ...]", tuple(items)) if all(_is_int(item) for item in items) else None


def _matrix(value: object) -> Matrix | None:
    if not isinstance(value, (tuple, list)):
        return None
    rows = [_numbers(row) for row in cast("Sequence[object]", value)]
    return tuple(row for row in rows if row is not None) if rows and None not in rows else None


def _route(value: object) -> tuple[tuple[int, ...], ...] | None:
    if not isinstance(value, (tuple, list)):
        return None
    found: list[tuple[int, ...]] = []
    for item in cast("Sequence[object]", value):
        row = (cast("int", item),) if _is_int(item) else _numbers(item)
        if row is None:
            return None
        found.append(row)
    return tuple(found)


def transposed(matrix: Matrix) -> Matrix | None:
    """Rows and columns exchanged; None when the rows differ in length."""
    if len({len(row) for row in matrix}) > 1:
        return None
    return tuple(zip(*matrix, strict=True))


def counts_of_route(routing: Routing, members: int, rows: Sequence[int]) -> Matrix | None:
    """Rows from member to member that the route makes; None when it does not fit the rows of the members."""
    if routing.route is None or members < 1 or sum(rows) != len(routing.route):
        return None
    experts = routing.experts or max(members, 1 + max((item for row in routing.route for item in row), default=0))
    if experts % members:
        return None
    each = experts // members
    found: list[list[int]] = []
    start = 0
    for count in rows:
        own = [0] * members
        for row in routing.route[start : start + count]:
            for expert in row:
                if not 0 <= expert < experts:
                    return None
                own[expert // each] += 1
        found.append(own)
        start += count
    return tuple(tuple(row) for row in found)
