"""A program with its planned and measured side: the same columns, and besides them times by task and the findings of the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dtir_app.findings import task_and_value_of
from dtir_app.frames.clock import ratio_text, seconds_text
from dtir_app.frames.ramps import DEAD_BAND
from dtir_app.measuring import Measured
from dtir_app.memo import Memo
from dtir_app.planning import Planned, base_of
from dtir_app.store import SEVERITIES, Finding, Floats, Store

SIDES = "sides"
SHARED = frozenset(
    (
        *("communicating", "haystacks", "implicit", "inferred", "known", "local", "placed", "repeats", "scene", "slot"),
        *("standing", "warming", "why"),
    )
)
"""Results that follow from the program alone: columns with other sides and findings take them over."""
SHARED_WITHOUT_FINDINGS = frozenset(("counts", "findings-of", "homes", "tree"))
"""Results that follow from the program and its findings: taken over where the sides bring no findings with them."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoSides:
    """What is set against each other.

    Args:
        plan, run: the two sides; None where there is none.
    """

    plan: Planned | None = field(repr=False)
    run: Measured | None = field(repr=False)

    @property
    def key(self) -> tuple[str, str]:
        """What tells two of them apart."""
        return (self.plan.profile if self.plan else "", self.run.key if self.run else "")

    def planned_s(self, task: int) -> float:
        """Planned time of one execution."""
        return float(self.plan.seconds[task]) if self.plan is not None else math.nan

    def measured_s(self, task: int) -> float:
        """Measured median of one execution."""
        return float(self.run.p50_s[task]) if self.run is not None else math.nan

    def ratios(self, count: int) -> Floats:
        """Measured over planned, of every task."""
        if self.plan is None or self.run is None:
            return np.full(count, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.run.p50_s / self.plan.seconds
        return np.where(np.isfinite(found), found, np.nan)

    def is_noise(self, task: int) -> bool:
        """Whether the difference of measured and planned says nothing: it is within the noise, and times like the planned one
        were measured at all."""
        planned, measured = self.planned_s(task), self.measured_s(task)
        if self.run is None or not (planned > 0 and measured > 0):
            return False
        seen = 0.8 * float(self.run.least_s[task]) <= planned <= 1.2 * float(self.run.p95_s[task])
        return seen and abs(measured / planned - 1) <= self.noise(task)

    def noise(self, task: int) -> float:
        """Relative difference that says nothing: 20 %, or three times the spread (`dtir.execute.compare`)."""
        if self.run is None or not self.planned_s(task) > 0:
            return 2 * DEAD_BAND
        spread = float(self.run.noise_s[task])
        return max(2 * DEAD_BAND, 3 * spread / self.planned_s(task)) if math.isfinite(spread) else 2 * DEAD_BAND


NO_SIDES = TwoSides(None, None)


def sides_of(store: Store) -> TwoSides:
    """The sides that columns come with."""
    found = store.memo.get(SIDES)
    return found if isinstance(found, TwoSides) else NO_SIDES


def with_sides(store: Store, sides: TwoSides) -> Store:
    """The columns with other sides; the columns as they were read where there is none."""
    base = base_of(store)
    if sides.key == ("", ""):
        return base
    base.memo.forget_oldest("with", 6)
    return base.memo.made(("with", *sides.key), lambda: _make(base, sides))


def _make(base: Store, sides: TwoSides) -> Store:
    found = run_findings(base, sides.run) if sides.run is not None else ()
    worst = np.array(base.tasks.worst)
    for item in found:
        for task in item.tasks:
            worst[task] = min(worst[task], SEVERITIES.index(item.severity))
    worst.setflags(write=False)
    shared = SHARED if found else SHARED | SHARED_WITHOUT_FINDINGS
    kept = {key: value for key, value in base.memo.items() if _head(key) in shared}
    memo = Memo(kept)
    memo["base"] = base
    memo[SIDES] = sides
    return replace(base, findings=(*base.findings, *found), tasks=replace(base.tasks, worst=worst), memo=memo)


def _head(key: object) -> object:
    """What a result is, without of what part."""
    return key[0] if isinstance(key, tuple) and key else key


def run_findings(store: Store, run: Measured) -> tuple[Finding, ...]:
    """The findings of a record, with what they are about resolved to numbers."""
    return tuple(_finding(store, item) for item in run.record.findings)


def _finding(store: Store, item: Mapping[str, Any]) -> Finding:
    subjects: Sequence[object] = item.get("subject") or ()
    tasks, values = task_and_value_of(store, [str(subject) for subject in subjects])
    severity = str(item.get("severity", "info"))
    return Finding(
        severity=severity if severity in SEVERITIES else "info",
        code=str(item.get("code", "run")),
        message=str(item.get("message", "")),
        hint=str(item.get("hint") or ""),
        path=".".join(str(part) for part in item.get("path") or ()),
        tasks=tasks,
        values=values,
    )


# -- cells of the table -----------------------------------------------------------------------------------------------------


def _cell(seconds: float) -> str:
    """A time; empty where there is none."""
    return "" if math.isnan(seconds) else seconds_text(seconds)


def _run_cell(store: Store, task: int, of: Callable[[Measured], Floats]) -> str:
    run = sides_of(store).run
    return "" if run is None else _cell(float(of(run)[task]))


def _run_sort(store: Store, of: Callable[[Measured], Floats]) -> Floats:
    run = sides_of(store).run
    return of(run) if run is not None else np.full(len(store.tasks), np.nan)


def planned_cell(store: Store, task: int) -> str:
    """Planned time of one execution; empty without a plan."""
    return _cell(sides_of(store).planned_s(task))


def measured_cell(store: Store, task: int) -> str:
    """Measured median; empty without a run."""
    return _cell(sides_of(store).measured_s(task))


def p95_cell(store: Store, task: int) -> str:
    """What 95 % of the executions do not exceed."""
    return _run_cell(store, task, lambda run: run.p95_s)


def ratio_cell(store: Store, task: int) -> str:
    """Measured over planned; ``≈`` where the difference is within the noise."""
    sides = sides_of(store)
    planned, measured = sides.planned_s(task), sides.measured_s(task)
    if not (planned > 0 and measured > 0):
        return ""
    ratio = measured / planned
    return f"≈ {ratio_text(ratio)}" if sides.is_noise(task) else ratio_text(ratio)


def wait_cell(store: Store, task: int) -> str:
    """Measured median wait for the last of the group; empty where it was not measured."""
    return _run_cell(store, task, lambda run: run.wait_s)


def planned_sort(store: Store) -> Floats:
    """Planned times of all tasks."""
    plan = sides_of(store).plan
    return plan.seconds if plan is not None else np.full(len(store.tasks), np.nan)


def measured_sort(store: Store) -> Floats:
    """Measured medians of all tasks."""
    return _run_sort(store, lambda run: run.p50_s)


def p95_sort(store: Store) -> Floats:
    """Measured 95 % quantiles of all tasks."""
    return _run_sort(store, lambda run: run.p95_s)


def wait_sort(store: Store) -> Floats:
    """Measured waits of all tasks."""
    return _run_sort(store, lambda run: run.wait_s)


def ratio_sort(store: Store) -> Floats:
    """Ratios of all tasks."""
    return sides_of(store).ratios(len(store.tasks))


def timing_rows(store: Store, task: int) -> list[tuple[str, str, str]]:
    """Label, text and note of what is known about the times of a task."""
    sides = sides_of(store)
    rows: list[tuple[str, str, str]] = []
    if sides.plan is not None and not math.isnan(sides.planned_s(task)):
        rows.append(("planned", seconds_text(sides.planned_s(task)), sides.plan.title))
        exposed = sides.plan.exposed.get(task, 0.0)
        if exposed > 0:
            rows.append(("exposed", seconds_text(exposed), "not hidden by compute, over all executions"))
    if sides.run is not None:
        measured = sides.measured_s(task)
        if math.isnan(measured):
            rows.append(("measured", "not measured", sides.run.label))
        else:
            count = sides.run.samples.get(task, 0)
            note = f"median of {count}, {sides.run.label}"
            rows.append(("measured", f"{seconds_text(measured)} (95 %: {p95_cell(store, task)})", note))
            if wait_cell(store, task):
                rows.append(("waited", wait_cell(store, task), "median, for the last of the group to arrive"))
            if ratio_cell(store, task):
                near = sides.is_noise(task)
                rows.append(("ratio", ratio_cell(store, task), "within the noise" if near else "measured over planned"))
    return rows
