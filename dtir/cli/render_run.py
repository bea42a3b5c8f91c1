"""What ``dtir run`` prints: tables for an engineer, and the JSON that scripts rely on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from dtir.cli import render_json, render_text
from dtir.cli.terminal import PLAIN, Style, count, printable, size_text, table
from dtir.execute.deviations import is_slower
from dtir.execute.quantiles import NOTHING, Spread
from dtir.execute.steps import StepKind

if TYPE_CHECKING:
    from dtir.execute.compare import CollectiveRow
    from dtir.execute.record import ValueCheck
    from dtir.execute.run import Report

ROWS_SHOWN = 20
NOT_MEASURED = "not measured"

JSON = dict[str, Any]


def report(run: Report) -> JSON:
    """The result of ``run``."""
    return {
        "backend": run.backend,
        "ranks": run.plan.ranks,
        "tasks": _tasks(run),
        "collectives": [_collective(row) for row in run.collectives],
        "values": _values(run),
        "totals": totals(run),
        "findings": [render_json.diagnostic(item) for item in run.findings],
    }


def _tasks(run: Report) -> list[JSON]:
    found: list[JSON] = []
    rows = {row.step: row for row in run.tasks}
    for scope in run.plan.scopes:
        for step in scope.steps:
            spent = run.spent.get(step.index)
            row = rows.get(step.index)
            found.append(
                {
                    "id": str(step.task.id),
                    "name": step.name,
                    "region": scope.name or None,
                    "kind": step.kind.value,
                    "operation": str(step.task.operation),
                    "ranks": len(step.ranks),
                    "executions": spent.executions if spent is not None else 0,
                    **_spread(row.time if row is not None else NOTHING),
                    "in_turn": row.in_turn if row is not None else None,
                    "planned_us": row.planned_us if row is not None else None,
                    "planned_model": row.planned.model if row is not None and row.planned is not None else None,
                    "error_percent": row.error_percent if row is not None else None,
                }
            )
    return found


def _spread(time: Spread) -> JSON:
    """Measured times; `time_us` is the median, `noise_us` the distance of the quartiles."""
    relative = time.relative
    return {
        "time_us": time.p50_us,
        "samples": time.samples,
        "p50_us": time.p50_us,
        "p95_us": time.p95_us,
        "min_us": time.min_us,
        "noise_us": time.iqr_us,
        "noise_percent": None if relative is None else 100 * relative,
    }


def _collective(row: CollectiveRow) -> JSON:
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "region": row.region or None,
        "groups": row.group_count,
        "group_size": row.group_size,
        "executions": row.executions,
        "size_bytes": row.size_bytes,
        "count": row.elements,
        "type": row.dtype,
        "redop": row.reduction,
        "root": row.root,
        **_spread(row.time),
        "in_turn": row.in_turn,
        "algbw": row.algbw,
        "busbw": row.busbw,
        "wrong": row.wrong,
        "planned_us": row.planned_us,
        "planned_model": row.planned.model if row.planned is not None else None,
        "error_percent": row.error_percent,
        "planned_bytes": row.planned_bytes,
        "measured_bytes": row.measured_bytes,
        "wait_us": row.wait_us,
        "transfer_us": row.time_us,
    }


def _values(run: Report) -> list[JSON]:
    checks = {check.name.split(" ")[0]: check for check in run.checks}
    found: list[JSON] = []
    for output in run.outputs:
        check = checks.get(output.name) or checks.get(f"out{output.number}")
        array = output.array if output.array is not None else next(iter(output.parts.values()))
        found.append(
            {
                "name": f"out{output.number}",
                "value": output.name,
                "shape": [int(extent) for extent in array.shape],
                "dtype": array.dtype.name,
                "layout": output.source.value,
                "compared_with": check.source if check is not None else None,
                "max_error": _number(check.max_error) if check is not None else None,
                "bound": _number(check.bound) if check is not None else None,
                "wrong": check.wrong if check is not None else None,
                "elements": int(array.size),
            }
        )
    return found


def totals(run: Report) -> JSON:
    """Sums over the run; times of one repetition."""
    measured = [row.measured_bytes for row in run.collectives]
    planned = [row.planned_bytes for row in run.collectives]
    whole: Mapping[str, Any] = run.record.totals if run.record is not None else {}
    elapsed: Sequence[int] = whole.get("elapsed_ns", ())
    whole_run = Spread.of([item / 1000 for item in elapsed])
    repetitions = max(1, len(elapsed))
    executions = [row.executions for row in run.collectives]
    return {
        "tasks": sum(len(scope.steps) for scope in run.plan.scopes),
        "collectives": len(run.collectives),
        "collective_executions": sum(item for item in executions if item is not None)
        if None not in executions
        else None,
        "repetitions": len(elapsed),
        "elapsed_us": whole_run.p50_us,
        "elapsed_p95_us": whole_run.p95_us,
        "elapsed_min_us": whole_run.min_us,
        "elapsed_noise_us": whole_run.iqr_us,
        "planned_us": run.forecast.makespan_us if run.forecast is not None else None,
        "planned_with": dict(run.forecast.profile) if run.forecast is not None else None,
        "prediction": _prediction(run),
        "local_us": whole.get("local_ns", 0) / 1000 / repetitions if whole else None,
        "communication_us": whole.get("communication_ns", 0) / 1000 / repetitions if whole else None,
        "planned_bytes": sum(item for item in planned if item is not None) if None not in planned else None,
        "measured_bytes": sum(item for item in measured if item is not None)
        if measured and None not in measured
        else None,
        "peak_bytes_per_rank": run.plan.peak_bytes,
    }


def _prediction(run: Report) -> JSON | None:
    """How well the plan fits the collectives that were measured; None without a plan."""
    if run.forecast is None:
        return None
    known = [row for row in run.collectives if row.error_percent is not None]
    errors = [row.error_percent for row in known if row.error_percent is not None]
    noise = [100 * row.time.relative for row in known if row.time.relative is not None]
    return {
        "collectives": len(known),
        "median_error_percent": median(errors) if errors else None,
        "median_absolute_error_percent": median(map(abs, errors)) if errors else None,
        "median_noise_percent": median(noise) if noise else None,
        "slower_than_planned": sum(is_slower(row.time, row.planned_us) for row in known),
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# -- text -------------------------------------------------------------------------------------------------------------------


def lines(run: Report, *, label: str, how: str, show_all: bool, style: Style = PLAIN) -> list[str]:
    """The report as text.

    Args:
        label: what to call the program.
        how: data and repetitions, in words.
    """
    sums = totals(run)
    head = (
        f"{style.bold(printable(label))}: {count(run.plan.ranks, 'rank')} on {run.backend} ({run.probe.reason}), {how}"
    )
    found = [head]
    if sums["elapsed_us"] is not None:
        found.append(
            f"{_time(sums['elapsed_us'])} a repetition{_range(sums)}: local {_time(sums['local_us'])}, "
            f"communication {_time(sums['communication_us'])}; "
            f"peak {size_text(run.plan.peak_bytes)} a rank by plan"
        )
    found += _plan_lines(run, sums)
    found += _collective_lines(run.collectives, show_all, style)
    found += _task_lines(run, show_all, style)
    found += _value_lines(run, show_all, style)
    found.append("")
    found.append(render_text.finding_counts(tuple(run.findings), style))
    found += render_text.findings(tuple(run.findings), limit=None if show_all else ROWS_SHOWN, style=style)
    return found


def _range(sums: JSON) -> str:
    if sums["elapsed_noise_us"] is None:
        return ""
    return (
        f" (median of {sums['repetitions']}; least {_time(sums['elapsed_min_us'])}, p95 {_time(sums['elapsed_p95_us'])}, "
        f"IQR {_time(sums['elapsed_noise_us'])})"
    )


def _plan_lines(run: Report, sums: JSON) -> list[str]:
    """What was planned, apart from what was measured."""
    if run.forecast is None:
        return []
    profile, fits = run.forecast.profile, sums["prediction"]
    found = [
        f"planned on {printable(str(profile['id']))} ({profile['standing']}, {profile['date']}): "
        f"{_time(run.forecast.makespan_us)} in all"
    ]
    if fits["median_absolute_error_percent"] is not None:
        noise = fits["median_noise_percent"]
        found[0] += (
            f"; {count(fits['collectives'], 'collective')} off by {fits['median_absolute_error_percent']:.0f} % in the median, "
            f"{fits['slower_than_planned']} slower beyond noise"
            + ("" if noise is None else f" (median noise {noise:.0f} %)")
        )
    turns = max((row.in_turn for row in run.collectives), default=1)
    if turns > 1:
        found.append(
            f"a process does up to {turns} groups of a collective one after the other: times are those of one group"
        )
    found += [printable(note) for note in run.forecast.notes]
    return found


_HEADER = (
    "collective", "groups", "n", "size(B)", "count", "type", "redop", "root", "time(us)", "algbw(GB/s)", "busbw(GB/s)",
    "#wrong", "planned us", "err %", "planned tx", "measured tx", "wait us", "min us", "p95 us", "noise us",
)  # fmt: skip
_RIGHT = (1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)


def _collective_lines(rows: Sequence[CollectiveRow], show_all: bool, style: Style) -> list[str]:
    if not rows:
        return ["", "no communication"]
    shown = rows if show_all else rows[:ROWS_SHOWN]
    cells = [
        (
            f"{row.kind} {row.name}" + (f" in {row.region}" if row.region else ""),
            f"{row.group_count}×{row.group_size}" if row.group_size is not None else str(row.group_count),
            "?" if row.executions is None else str(row.executions),
            str(row.size_bytes),
            str(row.elements),
            row.dtype,
            row.reduction or "none",
            "-1" if row.root is None else str(row.root),
            _float(row.time_us),
            _float(row.algbw),
            _float(row.busbw),
            "N/A" if row.wrong is None else str(row.wrong),
            _float(row.planned_us),
            _float(row.error_percent),
            "-" if row.planned_bytes is None else str(row.planned_bytes),
            NOT_MEASURED if row.measured_bytes is None else str(row.measured_bytes),
            _float(row.wait_us),
            _float(row.time.min_us),
            _float(row.time.p95_us),
            _float(row.time.iqr_us),
        )
        for row in shown
    ]
    found = ["", *table(_HEADER, cells, right=_RIGHT, style=style)]
    if len(rows) > len(shown):
        found.append(style.dim(f"... {count(len(rows) - len(shown), 'more collective')}; --all shows them"))
    return found


TASKS_SHOWN = 8


def _task_lines(run: Report, show_all: bool, style: Style) -> list[str]:
    """Local steps beside their plan, those that took longest first; only where there is a plan."""
    steps = {step.index: step for scope in run.plan.scopes for step in scope.steps if step.kind is StepKind.LOCAL}
    rows = [row for row in run.tasks if row.step in steps and row.time.p50_us is not None]
    if run.forecast is None or not rows:
        return []
    rows.sort(key=lambda row: -(row.time.p50_us or 0.0) * row.time.samples)
    shown = rows if show_all else rows[:TASKS_SHOWN]
    cells = [
        (
            steps[row.step].name,
            str(steps[row.step].task.operation),
            str(row.time.samples),
            str(row.in_turn),
            _float(row.time.p50_us),
            _float(row.planned_us),
            _float(row.error_percent),
            _float(row.time.min_us),
            _float(row.time.p95_us),
            _float(row.time.iqr_us),
        )
        for row in shown
    ]
    header = (
        "local step", "operation", "samples", "ranks together", "time(us) of a rank", "planned us", "err %", "min us",
        "p95 us", "noise us",
    )  # fmt: skip
    found = ["", *table(header, cells, right=tuple(range(2, 10)), style=style)]
    if len(rows) > len(shown):
        found.append(style.dim(f"... {count(len(rows) - len(shown), 'more local step')}; --all shows them"))
    return found


def _value_lines(run: Report, show_all: bool, style: Style) -> list[str]:
    entries = _values(run)
    if not entries:
        return []
    shown = entries if show_all else entries[:ROWS_SHOWN]
    cells = [
        (
            str(entry["name"]),
            str(entry["value"]),
            f"{entry['dtype']}{entry['shape']}".replace(" ", ""),
            _LAYOUTS[str(entry["layout"])],
            _COMPARED.get(str(entry["compared_with"]), "-"),
            "-" if entry["max_error"] is None else _number_text(entry["max_error"]),
            "-" if entry["bound"] is None else _number_text(entry["bound"]),
            "-" if entry["wrong"] is None else str(entry["wrong"]),
        )
        for entry in shown
    ]
    header = ("output", "value", "type", "layout", "compared with", "max error", "bound", "#wrong")
    found = ["", *table(header, cells, right=(5, 6, 7), style=style)]
    if len(entries) > len(shown):
        found.append(style.dim(f"... {count(len(entries) - len(shown), 'more output')}; --all shows them"))
    return found


_LAYOUTS = {
    "program": "as stated",
    "stated": "from --layouts",
    "inferred": "inferred",
    "shape": "by shape",
    "equal": "same on all ranks",
    "unknown": "rank by rank",
}
_COMPARED = {"expected": "expected array", "undivided": "undivided program", "copies": "its copies"}


def _number_text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _float(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"


def _time(us: float) -> str:
    return f"{us:.0f} us" if us < 1000 else f"{us / 1000:.1f} ms" if us < 1e6 else f"{us / 1e6:.2f} s"


def checked(checks: Sequence[ValueCheck]) -> int:
    """Number of outputs that were compared with something."""
    return sum(check.source != "copies" for check in checks)
