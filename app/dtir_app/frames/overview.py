"""The opening page: what is in the program, what is wrong with it, what costs most. Every entry leads somewhere."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from dtir_app.filters import kind_counts
from dtir_app.frames import cells
from dtir_app.kinds import COMMUNICATION, KIND_INDEX, KINDS
from dtir_app.selection import of_task, selection_text
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import bytes_text, count_text, plural

STRIP_BINS = 120
TOP = 5


def overview(store: Store) -> dict[str, object]:
    """All cards as plain data."""
    return {
        "facts": _facts(store),
        "worst": _worst(store),
        "heaviest": _heaviest(store),
        "kinds": _kinds(store),
        "communication": _communication(store),
        "axes": _axes(store),
        "regions": _regions(store),
        "strip": strip(store),
    }


def communication_tasks(store: Store) -> np.ndarray:
    """Tasks that communicate, in program order."""
    return np.flatnonzero(np.isin(store.tasks.family, [int(item) for item in COMMUNICATION]))


def _facts(store: Store) -> list[dict[str, str]]:
    program = store.program
    facts = [
        ("Mesh", f"{store.mesh_text}", plural(store.mesh.size, "rank")),
        ("Tasks", count_text(len(store.tasks)), _in_regions(store)),
        (
            "Tensors",
            count_text(len(store.values)),
            f"{plural(len(program.inputs), 'input')}, {plural(len(program.outputs), 'output')}",
        ),
        ("Communication", count_text(len(communication_tasks(store))), "tasks that send"),
        ("Inputs on a rank", bytes_text(_input_bytes(store)), "largest shards"),
        ("Source", store.format, store.label),
    ]
    return [{"label": label, "value": value, "note": note} for label, value, note in facts]


def _in_regions(store: Store) -> str:
    inside = len(store.tasks) - store.scopes[0].task_count
    if not inside:
        return "one flat list"
    return f"{count_text(inside)} in {plural(len(store.scopes) - 1, 'region')}"


def _input_bytes(store: Store) -> float:
    known = [store.value_at(0, name.value) for name in store.program.inputs]
    return float(np.sum(store.values.local_bytes[[index for index in known if index >= 0]])) if known else math.nan


def _worst(store: Store) -> dict[str, object]:
    counts = store.counts()
    made: dict[str, object] = {"counts": counts, "total": len(store.findings)}
    if store.findings:
        first = min(range(len(store.findings)), key=lambda row: SEVERITIES.index(store.findings[row].severity))
        finding = store.findings[first]
        made |= {
            "row": first,
            "severity": finding.severity,
            "code": finding.code,
            "message": finding.message,
            "hint": finding.hint,
            "place": cells.finding_place(store, first),
        }
    return made


def _heaviest(store: Store) -> list[dict[str, object]]:
    """The communications with the largest message × runs, heaviest first."""
    tasks = communication_tasks(store)
    total = cells.total_bytes(store)[tasks]
    known = tasks[~np.isnan(total)]
    order = known[np.argsort(-cells.total_bytes(store)[known], kind="stable")][:TOP]
    return [
        {
            "key": selection_text(store, of_task(task)),
            "code": KINDS[store.tasks.kind[task]].code,
            "family": int(KINDS[store.tasks.kind[task]].family),
            "kind": KINDS[store.tasks.kind[task]].label,
            "name": store.tasks.name[task],
            "axis": cells.axis_cell(store, task),
            "groups": cells.groups_cell(store, task),
            "message": cells.message_cell(store, task),
            "runs": cells.runs_cell(store, task),
            "total": cells.total_cell(store, task),
        }
        for task in order.tolist()
    ]


def _kinds(store: Store) -> list[dict[str, object]]:
    total = max(1, len(store.tasks))
    return [
        {
            "kind": name,
            "label": KINDS[KIND_INDEX[name]].label,
            "code": KINDS[KIND_INDEX[name]].code,
            "family": int(KINDS[KIND_INDEX[name]].family),
            "count": count_text(count),
            "share": count / total,
        }
        for name, count in kind_counts(store)
    ]


def _sums(store: Store, group_of: dict[int, str]) -> list[tuple[str, int, float, int]]:
    """Per group: its name, number of tasks, sum of message × runs, and how many have no number."""
    total = cells.total_bytes(store)
    counts: dict[str, int] = defaultdict(int)
    sums: dict[str, float] = defaultdict(float)
    unknown: dict[str, int] = defaultdict(int)
    for task, name in group_of.items():
        counts[name] += 1
        if math.isnan(total[task]):
            unknown[name] += 1
        else:
            sums[name] += float(total[task])
    return sorted(
        ((name, counts[name], sums[name], unknown[name]) for name in counts), key=lambda row: (-row[2], -row[1], row[0])
    )


def _bars(rows: list[tuple[str, int, float, int]]) -> list[dict[str, object]]:
    largest = max((row[2] for row in rows), default=0.0)
    return [
        {
            "name": name,
            "count": count_text(count),
            "bytes": bytes_text(total) if unknown < count else "–",
            "note": f"{count_text(unknown)} without a number" if unknown else "",
            "share": total / largest if largest else 0.0,
        }
        for name, count, total, unknown in rows
    ]


def _communication(store: Store) -> list[dict[str, object]]:
    tasks = communication_tasks(store).tolist()
    rows = _sums(store, {task: KINDS[store.tasks.kind[task]].name for task in tasks})
    bars = _bars(rows)
    for bar in bars:
        kind = KINDS[KIND_INDEX[str(bar["name"])]]
        bar |= {"label": kind.label, "code": kind.code, "family": int(kind.family)}
    return bars


def _axes(store: Store) -> list[dict[str, object]]:
    """Bytes by the axes that groups span; groups that are no axes' fibres stand under "other groups"."""
    tasks = communication_tasks(store).tolist()
    bars = _bars(_sums(store, {task: cells.axis_cell(store, task) or "?" for task in tasks}))
    for bar in bars:
        bar["axes"] = [] if bar["name"] == "?" else str(bar["name"]).split("×")
        bar["label"] = "other groups" if bar["name"] == "?" else bar["name"]
    return bars


def _regions(store: Store) -> list[dict[str, object]]:
    """Regions that run: those with communication first, then by size. Reducers of collectives, say, are entered by nothing."""
    communicating = np.bincount(store.tasks.scope[communication_tasks(store)], minlength=len(store.scopes))
    order = sorted(store.scopes[1:], key=lambda scope: (-int(communicating[scope.index]), -scope.task_count))
    return [
        {
            "scope": scope.index,
            "name": scope.name,
            "tasks": count_text(scope.task_count),
            "communication": count_text(int(communicating[scope.index])),
            "runs": "?" if scope.executions is None else count_text(scope.executions),
        }
        for scope in [item for item in order if item.task_count and item.executions != 0][:8]
    ]


def strip(store: Store, bins: int = STRIP_BINS) -> dict[str, object]:
    """Where in program order the bytes are sent: message × runs by bin and kind, with the heaviest task of each bin.

    Returns:
        ``bins`` (each a list of ``[kind code, family, bytes]``), ``keys`` (selection of the heaviest task of the bin), ``labels``.
    """
    tasks = communication_tasks(store)
    count = min(bins, max(1, len(store.tasks)))
    total = np.nan_to_num(cells.total_bytes(store)[tasks], nan=0.0, posinf=0.0)
    place = tasks * count // max(1, len(store.tasks))
    made: list[dict[str, object]] = []
    for number in np.unique(place).tolist():
        inside = tasks[place == number]
        weights = total[place == number]
        heaviest = int(inside[int(np.argmax(weights))])
        parts: dict[int, float] = defaultdict(float)
        for task, weight in zip(inside.tolist(), weights.tolist(), strict=True):
            parts[int(store.tasks.kind[task])] += weight
        made.append(
            {
                "bin": number,
                "key": selection_text(store, of_task(heaviest)),
                "parts": [
                    [KINDS[kind].code, int(KINDS[kind].family), weight] for kind, weight in sorted(parts.items())
                ],
                "total": float(weights.sum()),
                "label": f"{plural(len(inside), 'communication')}, {bytes_text(float(weights.sum()))}; heaviest: "
                f"{KINDS[store.tasks.kind[heaviest]].label} {store.tasks.name[heaviest]}",
            }
        )
    return {"count": count, "bins": made, "max": bytes_text(max((float(item["total"]) for item in made), default=0.0))}  # type: ignore[arg-type]
