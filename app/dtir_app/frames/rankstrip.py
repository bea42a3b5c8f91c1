"""The ranks of one task as a strip: a cell each, in the colour of its group, and how long it waited and took in the measured run."""

from __future__ import annotations

import math

from dtir_app.frames.clock import seconds_text
from dtir_app.frames.mesh import cast_of, mesh_frame
from dtir_app.frames.rows import Section, row, section
from dtir_app.kinds import COMMUNICATION, Family
from dtir_app.measuring import Measured
from dtir_app.selection import of_task
from dtir_app.store import Store
from dtir_app.text import count_text, plural
from dtir_app.timing import sides_of

STRIP_LIMIT = 64
"""Ranks shown one by one; the mesh shows all."""


def rank_section(store: Store, index: int) -> list[Section]:
    """The strip of a task that communicates, runs on some ranks only, or was measured rank by rank; none for others."""
    run = sides_of(store).run
    times = _times(store, index, run) if run is not None and not run.whole else {}
    record = store.task_records[index]
    communicates = Family(int(store.tasks.family[index])) in COMMUNICATION
    if store.mesh.size < 2 or not (communicates or times or len(record.ranks) < store.mesh.size):
        return []
    selection = of_task(index)
    frame = mesh_frame(store, selection, columns=(), limit=STRIP_LIMIT)
    order = sorted(range(len(frame.cells["rank"])), key=lambda at: int(str(frame.cells["rank"][at])))
    routes = _routes(store, index)
    longest = max((wait + took for wait, took in times.values()), default=0.0)
    cells: list[dict[str, object]] = []
    for at in order:
        rank, name = int(str(frame.cells["rank"][at])), str(frame.cells["name"][at])
        said = [f"rank {rank}", str(frame.cells["place"][at]), routes.get(rank, "") or name or "does not take part"]
        cell: dict[str, object] = {"rank": rank, "colour": frame.cells["colour"][at], "hatch": frame.cells["hatch"][at]}
        if rank in times:
            wait, took = times[rank]
            said.append(f"waited {seconds_text(wait)}, then {seconds_text(took)}" if wait else seconds_text(took))
            cell |= {"wait": wait / longest if longest else 0.0, "took": took / longest if longest else 0.0}
        cells.append(cell | {"text": " · ".join(text for text in said if text)})
    text, late = _spread(times) if times else ("", "")
    rows = [row("measured", text, note=late)] if times else []
    note = (
        ""
        if frame.shown == frame.total
        else f"{count_text(frame.shown)} of {plural(frame.total, 'rank')}; see the mesh"
    )
    groups = plural(frame.group_total, "pair" if routes else "group")
    title = f"Ranks: {groups}" if communicates else "Ranks"
    return [section(title, rows) | {"strip": cells, "strip_note": note}]


def _spread(times: dict[int, tuple[float, float]]) -> tuple[str, str]:
    """Which rank waited longest, or took longest, and how the ranks lie apart."""
    slowest = max(times, key=lambda rank: (times[rank][1], -rank))
    late = max(times, key=lambda rank: (times[rank][0], -rank))
    took = [took for _, took in times.values()]
    text = f"{seconds_text(min(took))} to {seconds_text(max(took))}, longest on rank {slowest}"
    wait = f"rank {late} waited longest, {seconds_text(times[late][0])}" if times[late][0] > 0 else ""
    return text, wait


def _times(store: Store, index: int, run: Measured) -> dict[int, tuple[float, float]]:
    """Seconds that every rank waited and took in the repetition that is shown, all executions together."""
    made: dict[int, tuple[float, float]] = {}
    stream = int(Family(int(store.tasks.family[index])) in COMMUNICATION)
    lanes = run.communication if stream else run.compute
    for rank, lane in lanes.items():
        own = lane.task == index
        if own.any():
            wait = float((lane.start_s[own] - lane.arrived_s[own]).clip(min=0).sum())
            took = float((lane.end_s[own] - lane.start_s[own]).sum())
            if math.isfinite(wait + took):
                made[rank] = (wait, took)
    return made


def _routes(store: Store, index: int) -> dict[int, str]:
    """Of a permute or transfer: whom a rank sends to, and whom it receives from."""
    cast = cast_of(store, of_task(index), ())
    if not cast.pairs or len(cast.groups) > 4096:
        return {}
    to: dict[int, list[str]] = {}
    source: dict[int, list[str]] = {}
    for here, there in cast.groups:
        to.setdefault(here, []).append(str(there))
        source.setdefault(there, []).append(str(here))
    return {
        rank: ", ".join(
            text
            for text in (
                f"sends to {', '.join(to[rank])}" if rank in to else "",
                f"receives from {', '.join(source[rank])}" if rank in source else "",
            )
            if text
        )
        for rank in sorted({*to, *source})
    }
