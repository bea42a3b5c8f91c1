"""Accesses of a named resource along the program, and the order that two of them lack (``race.*``)."""

from __future__ import annotations

from dtir.ir.ranks import rank_set
from dtir.ir.types import EffectKind
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture, listed
from dtir_app.text import ranks_text

LEFT, TOP, HIGH, ROW, COLUMN, WIDE = 10.0, 52.0, 40.0, 66.0, 150.0, 120.0
MOST = 10
_WRITES = frozenset({EffectKind.WRITE, EffectKind.STATE, EffectKind.IO, EffectKind.ALLOC, EffectKind.FREE})


def draw(case: Case) -> Picture:
    """The resource as a lane: what is ordered stands in sequence, what is not above each other."""
    picture = Picture("race")
    program = case.store.program
    resource = next((name for name in case.names if any(_touches(case, task, name) for task in case.tasks)), "")
    if not resource and case.tasks:
        resource = next((effect.resource for effect in case.record(case.tasks[0]).effects), "")
    touching = [
        index for index, task in enumerate(program.tasks) if any(item.resource == resource for item in task.effects)
    ]
    pair = [task for task in case.tasks[:2] if task in touching]
    shown = sorted({*pair, *touching[:MOST]})
    context = case.known.context
    if not shown or context is None:
        return picture
    order = context.order
    column: dict[int, int] = {}
    row: dict[int, int] = {}
    pairs = [(other, task) for task in shown for other in shown if other < task]
    follows = {pair for pair, known in zip(pairs, order.ordered(pairs), strict=True) if known}
    for task in shown:
        before = [other for other in column if (other, task) in follows]
        column[task] = max((column[other] + 1 for other in before), default=0)
        taken = {row[other] for other in column if other != task and column[other] == column[task] and other in row}
        row[task] = next(number for number in range(len(shown) + 1) if number not in taken)
    rows = max(row.values()) + 1
    red = pair if case.finding is not None else []
    wide = COLUMN * (max(column.values()) + 1)
    picture.text(LEFT, 8, f"resource {resource}", bold=True, mono=True)
    picture.text(LEFT, 28, "time →, as far as the program orders it", tone="muted", size=11)
    picture.rect(LEFT, TOP - 10, wide + 10, rows * ROW, fill="raised", stroke="muted", round=4)
    where: dict[int, tuple[float, float]] = {}
    for task in shown:
        x, y = LEFT + 14 + column[task] * COLUMN, TOP + row[task] * ROW
        where[task] = (x, y)
        kinds = sorted({effect.kind.value for effect in case.record(task).effects if effect.resource == resource})
        writes = any(effect.kind in _WRITES for effect in case.record(task).effects if effect.resource == resource)
        picture.rect(
            x, y, WIDE, HIGH, fill="axis-4" if writes else "axis-1", stroke="bad" if task in red else "muted",
            thick=3 if task in red else 1.2, round=3, key=case.task_key(task), says=f"{case.task_name(task)}: {listed(kinds)}",
        )  # fmt: skip
        tone = "on-axis-4" if writes else "on-axis-1"
        picture.text(x + WIDE / 2, y + 13, listed(kinds), anchor="middle", bold=True, tone=tone, most=WIDE - 8)
        picture.text(
            x + WIDE / 2, y + 28, case.task_name(task), anchor="middle", mono=True, size=11, tone=tone, most=WIDE - 8
        )
        picture.fact(
            case.task_name(task),
            f"{listed(kinds)} on ranks {ranks_text(case.record(task).ranks)}",
            case.task_key(task),
            "bad" if task in pair and case.finding else "",
        )
    if len(pair) == 2 and case.finding is not None:
        (x0, y0), (x1, y1) = where[pair[0]], where[pair[1]]
        side = max(x0, x1) + WIDE
        start, end = (x0 + WIDE, y0 + HIGH / 2), (x1 + WIDE, y1 + HIGH / 2)
        picture.line(
            [start, (side + 46, start[1]), (side + 46, end[1]), end],
            tone="bad",
            thick=2.4,
            dashed=True,
            curve=True,
            says="no order",
        )
        picture.text(side + 42, (start[1] + end[1]) / 2, "missing order", tone="bad", bold=True, size=11)
        common = [rank for rank in case.record(pair[1]).ranks[:4096] if rank in rank_set(case.record(pair[0]).ranks)]
        picture.fact("meet on", f"ranks {listed(common)}")
    picture.explain("box", "axis-4", "writes")
    picture.explain("box", "axis-1", "reads")
    picture.says = (
        f"Two accesses of {resource} stand above each other: nothing says which comes first."
        if case.finding is not None
        else f"All accesses of {resource} follow each other."
    )
    return picture


def _touches(case: Case, task: int, name: str) -> bool:
    return any(effect.resource == name for effect in case.record(task).effects)
