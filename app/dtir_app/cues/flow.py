"""Rows that members of an exchange send each other, beside what the receivers expect (``moe.*``)."""

from __future__ import annotations

from dtir.analysis.groups import groups_of
from dtir.analysis.routing import Matrix, counts_of_route, read_routing, transposed
from dtir.ir.tasks import Collective
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture

CELL, MOST = 46.0, 12


def draw(case: Case) -> Picture:
    """Matrices of rows, sender by receiver, with sums; cells that disagree red."""
    task = case.task
    routing = read_routing(case.record(task).attributes) if task >= 0 else None
    if routing is None or (routing.send is None and routing.recv is None and routing.route is None):
        picture = place.draw(case)
        picture.cue = "flow"
        if case.code == "moe.combine_order":
            picture.says = "The rows come back in the order of experts, not in that of tokens."
        return picture
    picture = Picture("flow")
    expected = transposed(routing.recv) if routing.recv is not None else None
    rows = _rows(case, task)
    route = counts_of_route(routing, len(rows), rows) if rows else None
    other = expected if expected is not None else route
    x = 0.0
    if routing.send is not None:
        x = _matrix(picture, x, routing.send, "rows sent", other)
    if expected is not None:
        x = _matrix(picture, x, expected, "rows expected", routing.send)
    if route is not None:
        x = _matrix(picture, x, route, "by the route", routing.send)
    send = routing.send or route or ()
    for number, row in enumerate(send[:MOST]):
        want = (
            sum(route[number])
            if route is not None and number < len(route)
            else rows[number] * routing.topk
            if number < len(rows)
            else None
        )
        lost = want - sum(row) if want is not None else 0
        picture.fact(
            f"member {number}",
            f"sends {sum(row)} rows{f' of {want}' if want is not None else ''}",
            tone="bad" if lost else "",
        )
        for drop in range(min(max(lost, 0), 12)):
            picture.dot(
                12 + drop * 11,
                58 + len(send) * CELL + 26 + number * 4,
                3.5,
                fill="bad",
                stroke="bad",
                says=f"lost row of member {number}",
            )
            picture.explain("box", "bad", "dots: rows that are lost")
    picture.explain("box", "plain", "agrees")
    picture.explain("hatch", "bad", "disagrees")
    name = case.task_name(task)
    picture.says = {
        "moe.token_loss": f"{name} sends other rows than the route says: some are lost.",
        "moe.split_mismatch": f"What members of {name} send is not what their receivers expect.",
        "moe.combine_order": f"{name} returns rows in the order of experts, not in that of tokens.",
    }.get(case.code, f"What members of {name} send is what their receivers expect.")
    return picture


def _rows(case: Case, task: int) -> tuple[int, ...]:
    """Rows that each member holds, along the first dim."""
    context = case.known.context
    body = case.record(task).body
    groups = groups_of(body.spec, case.store.mesh) if isinstance(body, Collective) else None
    operands = case.operands(task)
    if context is None or not groups or not operands:
        return ()
    value = case.value(operands[0])
    members = len(groups[0])
    state = case.declared(operands[0])
    if state is None or not value.type.shape or not state.dims or not state.dims[0]:
        return ()
    sizes = state.size_of(0)
    extent = context.around.number(value.type.shape[0])
    if sizes is not None:
        return sizes if len(sizes) == members else ()
    return (extent // members,) * members if extent is not None and members and extent % members == 0 else ()


def _matrix(picture: Picture, left: float, matrix: Matrix, title: str, other: Matrix | None) -> float:
    top = 58.0
    shown = matrix[:MOST]
    columns = max((len(row) for row in shown), default=0)
    picture.text(left, 10, title, bold=True)
    picture.text(left, 27, "from ↓ to →", tone="muted", size=10)
    for column in range(min(columns, MOST)):
        picture.text(left + 26 + (column + 0.5) * CELL, top - 12, str(column), anchor="middle", tone="muted", size=10)
    for number, row in enumerate(shown):
        picture.text(left + 16, top + (number + 0.5) * CELL, str(number), anchor="end", tone="muted", size=10)
        for column, count in enumerate(row[:MOST]):
            same = other is None or (
                number < len(other) and column < len(other[number]) and other[number][column] == count
            )
            x, y = left + 26 + column * CELL, top + number * CELL
            picture.rect(
                x,
                y,
                CELL - 3,
                CELL - 3,
                fill="plain",
                stroke="muted" if same else "bad",
                hatch="" if same else "bad",
                thick=1 if same else 2,
                round=3,
                says=f"{number} → {column}: {count} rows",
            )
            picture.badge(x + CELL / 2 - 1.5, y + CELL / 2 - 1.5, str(count), tone="raised" if same else "bad")
        picture.text(left + 30 + columns * CELL, top + (number + 0.5) * CELL, f"Σ {sum(row)}", size=11, tone="muted")
    for column in range(min(columns, MOST)):
        total = sum(row[column] for row in matrix if column < len(row))
        picture.text(
            left + 26 + (column + 0.5) * CELL,
            top + len(shown) * CELL + 8,
            f"Σ {total}",
            anchor="middle",
            size=11,
            tone="muted",
        )
    return left + 26 + columns * CELL + 74
