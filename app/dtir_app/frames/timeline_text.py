"""What stands around the timeline's figure: sums, legend, limits, the names of the rows, and the bars as a table."""

from __future__ import annotations

from dtir_app.frames.clock import ratio_text, seconds_text
from dtir_app.frames.timeline import Frame
from dtir_app.frames.timeline_bars import BAND_PX, LINE_PX, ROW_PX
from dtir_app.frames.timeline_rows import ROWS
from dtir_app.kinds import FAMILY_LABELS, Family
from dtir_app.measuring import Measured
from dtir_app.planning import NotPlanned, Planned
from dtir_app.selection import Selection, task_of
from dtir_app.store import Store
from dtir_app.text import count_text, plural


def bar_without(plan: Planned | NotPlanned | None) -> dict[str, object]:
    """What is said where there is no picture."""
    if plan is None:
        return {"message": "Planning …", "busy": True}
    return {"message": "There is no planned timeline for this program, and no run of it is open."}


def bar(
    store: Store, selection: Selection, frame: Frame, plan: Planned | None, run: Measured | None
) -> dict[str, object]:
    """Sums, legend, and what the picture leaves out."""
    sums: list[dict[str, str]] = []
    if plan is not None:
        late = max(plan.classes, key=lambda one: one.times.end_s).times
        exposed = max(0.0, plan.makespan_s - late.compute_s)
        sums = [
            {
                "label": "planned",
                "value": seconds_text(plan.makespan_s),
                "note": "from the first start to the last end",
            },
            {
                "label": "exposed communication",
                "value": f"{seconds_text(exposed)} ({_share(exposed, plan.makespan_s)})",
                "note": "makespan without the busy compute of the rank that ends last",
            },
            {
                "label": "waiting",
                "value": seconds_text(max(one.times.waiting_s for one in plan.classes)),
                "note": "of the rank that waits longest for others",
            },
        ]
    if run is not None:
        sums.append({"label": "measured", "value": seconds_text(run.elapsed_s), "note": run.label})
    limits: list[str] = []
    if frame.hidden:
        limits.append(
            f"{count_text(frame.hidden)} bars are too short to be seen at this scale: columns show how much of the time they fill"
        )
    if frame.rows.pages > 1:
        limits.append(f"rows {_rows_text(frame)} of {count_text(frame.rows.total)}")
    notices: list[str] = []
    if run is not None and not frame.one_clock:
        notices.append(f"Measured is {ratio_text(1 / frame.stretch)} of planned: each side has its own axis.")
    task = task_of(store, selection)
    return {
        "sums": sums,
        "limit": "; ".join(limits),
        "notice": " ".join(notices),
        "families": _families(store),
        "waits": bool(frame.waits["left"]) or any(one.times.waiting_s > 0 for one in (plan.classes if plan else ())),
        "rounds": len(frame.rounds["left"]) > 0,
        "columns": frame.hidden > 0,
        "paired": run is not None,
        "one_clock": frame.one_clock,
        "selected": task >= 0 and frame.first_of is not None,
        "page": frame.rows.page,
        "pages": frame.rows.pages,
    }


def _families(store: Store) -> list[dict[str, object]]:
    """The families that the program has, as a legend."""
    present = set(store.tasks.family.tolist()) - {int(Family.BLOCK), int(Family.CONTROL)}
    return [
        {"family": family, "label": FAMILY_LABELS[Family(family)].removeprefix("local ")} for family in sorted(present)
    ]


def _rows_text(frame: Frame) -> str:
    first = frame.rows.page * ROWS + 1
    return f"{count_text(first)}–{count_text(first + len(frame.rows.shown) - 1)}"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole > 0 else "–"


def side(frame: Frame, paired: bool) -> dict[str, object]:
    """The names of the rows."""
    return {
        "band": BAND_PX if frame.one_clock else BAND_PX + LINE_PX,
        "row": ROW_PX,
        "axes": ["time"] if frame.one_clock else ["planned", "measured"],
        "paired": paired,
        "rows": [
            {"key": row.key, "label": row.label, "note": row.note, "opened": row.opened, "inner": "r" in row.key}
            for row in frame.rows.shown
        ],
    }


def twin(store: Store, selection: Selection, is_open: bool, frame: Frame) -> dict[str, object]:
    """The bars of the window as rows of a table."""
    shown, task = len(frame.twin), task_of(store, selection)
    hidden = frame.drawn - shown
    return {
        "open": is_open,
        "count": f"{plural(frame.drawn, 'bar')} of this window as a table",
        "rows": [{name: row[name] for name in row if name not in ("order", "task")} for row in frame.twin],
        "selected": store.tasks.id[task] if task >= 0 else "",
        "more": f"… {plural(hidden, 'more bar')}: zoom in, or open fewer rows" if frame.twin and hidden > 0 else "",
    }
