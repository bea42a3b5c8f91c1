"""What ``dtir run`` prints: tables for an engineer, and the JSON that scripts rely on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtir.cli import render_json, render_text
from dtir.cli.terminal import PLAIN, Style, count, printable, size_text, table

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
    for scope in run.plan.scopes:
        for step in scope.steps:
            spent = run.spent.get(step.index)
            found.append(
                {
                    "id": str(step.task.id),
                    "name": step.name,
                    "region": scope.name or None,
                    "kind": step.kind.value,
                    "operation": str(step.task.operation),
                    "ranks": len(step.ranks),
                    "executions": spent.executions if spent is not None else 0,
                    "time_us": spent.total_ns / 1000 / spent.executions if spent is not None else None,
                }
            )
    return found


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
        "time_us": row.time_us,
        "least_us": row.least_us,
        "noise_us": row.noise_us,
        "algbw": row.algbw,
        "busbw": row.busbw,
        "wrong": row.wrong,
        "planned_us": row.planned_us,
        "error_percent": row.error_percent,
        "planned_bytes": row.planned_bytes,
        "measured_bytes": row.measured_bytes,
        "wait_us": row.wait_us,
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
    repetitions = max(1, len(elapsed))
    executions = [row.executions for row in run.collectives]
    return {
        "tasks": sum(len(scope.steps) for scope in run.plan.scopes),
        "collectives": len(run.collectives),
        "collective_executions": sum(item for item in executions if item is not None)
        if None not in executions
        else None,
        "repetitions": len(elapsed),
        "elapsed_us": sorted(elapsed)[len(elapsed) // 2] / 1000 if elapsed else None,
        "local_us": whole.get("local_ns", 0) / 1000 / repetitions if whole else None,
        "communication_us": whole.get("communication_ns", 0) / 1000 / repetitions if whole else None,
        "planned_bytes": sum(item for item in planned if item is not None) if None not in planned else None,
        "measured_bytes": sum(item for item in measured if item is not None)
        if measured and None not in measured
        else None,
        "peak_bytes_per_rank": run.plan.peak_bytes,
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
            f"{_time(sums['elapsed_us'])} a repetition: local {_time(sums['local_us'])}, "
            f"communication {_time(sums['communication_us'])}; "
            f"peak {size_text(run.plan.peak_bytes)} a rank by plan"
        )
    found += _collective_lines(run.collectives, show_all, style)
    found += _value_lines(run, show_all, style)
    found.append("")
    found.append(render_text.finding_counts(tuple(run.findings), style))
    found += render_text.findings(tuple(run.findings), limit=None if show_all else ROWS_SHOWN, style=style)
    return found


_HEADER = (
    "collective", "groups", "n", "size(B)", "count", "type", "redop", "root", "time(us)", "algbw(GB/s)", "busbw(GB/s)",
    "#wrong", "planned us", "err %", "planned tx", "measured tx", "wait us", "noise us",
)  # fmt: skip
_RIGHT = (1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)


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
            _float(row.noise_us),
        )
        for row in shown
    ]
    found = ["", *table(_HEADER, cells, right=_RIGHT, style=style)]
    if len(rows) > len(shown):
        found.append(style.dim(f"... {count(len(rows) - len(shown), 'more collective')}; --all shows them"))
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
