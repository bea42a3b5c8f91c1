"""What deviates from the plan: bytes exactly, values beyond rounding, times beyond noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtir.execute.compare import CollectiveRow, TaskRow
from dtir.execute.forecast import Forecast
from dtir.execute.quantiles import Spread
from dtir.execute.record import ValueCheck
from dtir.execute.steps import ExecPlan, StepKind
from dtir.schema.diagnostics import Diagnostic, Severity

LEAST_DEVIATION = 0.2
"""Measured times within 20 % of the plan say nothing."""

NOISE_FACTOR = 3.0
"""Nor do times within three times the spread between repetitions."""


def findings(rows: Sequence[CollectiveRow], checks: Sequence[ValueCheck]) -> list[Diagnostic]:
    """What deviates: bytes exactly, values beyond rounding, times beyond noise."""
    found: list[Diagnostic] = []
    for check in checks:
        if check.wrong:
            found.append(_value_finding(check))
    for row in rows:
        if row.measured_bytes is not None and row.planned_bytes is not None and row.measured_bytes != row.planned_bytes:
            found.append(
                Diagnostic(
                    "run.bytes_differ",
                    f"{row.name}: {row.measured_bytes} bytes were sent, planned are {row.planned_bytes}",
                    ("collectives", row.name),
                    Severity.WARNING,
                    "the library's algorithm moves more than the least; choose --algorithm ordered to see the planned bytes",
                    (row.id,),
                )
            )
        if row.wrong:
            found.append(
                Diagnostic(
                    "run.values_differ",
                    f"{row.name}: {row.wrong} elements of what its ranks got differ from the reference by more than rounding",
                    ("collectives", row.name),
                    Severity.ERROR,
                    "the library's collective is wrong for this type or size: try --algorithm ordered",
                    (row.id,),
                )
            )
        slow = _slowness(row)
        if slow is not None:
            found.append(slow)
    return found


def _value_finding(check: ValueCheck) -> Diagnostic:
    what = {
        "expected": "the expected array of the input file",
        "undivided": "the undivided program",
        "copies": "its other copies",
    }[check.source]
    return Diagnostic(
        "run.values_differ",
        f"{check.name}: {check.wrong} of {check.elements} elements differ from {what}, "
        f"by up to {check.max_error:.3g} where {check.bound:.3g} is allowed",
        ("values", check.name),
        Severity.ERROR,
        "dtir verify --judge value finds the first value that is wrong, and what would mend it",
        (check.value,),
    )


def is_slower(measured: Spread, planned_us: float | None) -> bool:
    """Whether a time is above its plan beyond noise: measured/planned - 1 > max(20 %, 3 times the relative IQR).

    Without a spread, that is with one execution, nothing is said.
    """
    if planned_us is None or planned_us <= 0 or measured.p50_us is None or measured.relative is None:
        return False
    return measured.p50_us / planned_us - 1 > max(LEAST_DEVIATION, NOISE_FACTOR * measured.relative)


def _slowness(row: CollectiveRow) -> Diagnostic | None:
    if not is_slower(row.time, row.planned_us):
        return None
    assert row.planned is not None
    assert row.time.relative is not None
    return Diagnostic(
        "run.slower_than_planned",
        f"{row.name}: {row.time_us:.1f} us measured, {row.planned_us:.1f} us planned ({row.planned.model}); "
        f"noise {100 * row.time.relative:.0f} % (IQR of {row.time.samples} executions)",
        ("collectives", row.name),
        Severity.WARNING,
        "look for the last rank to arrive, or calibrate the profile on this machine",
        (row.id,),
    )


def slow_tasks(plan: ExecPlan, tasks: Sequence[TaskRow]) -> list[Diagnostic]:
    """Local steps that took longer than planned, in one finding: there may be thousands."""
    rows = {row.step: row for row in tasks if is_slower(row.time, row.planned_us)}
    slow = [step for scope in plan.scopes for step in scope.steps if step.kind is StepKind.LOCAL and step.index in rows]
    if not slow:
        return []
    # By the time that is lost, the worst first.
    slow.sort(key=lambda step: (rows[step.index].planned_us or 0.0) - (rows[step.index].time.p50_us or 0.0))
    worst = rows[slow[0].index]
    return [
        Diagnostic(
            "run.slower_than_planned",
            f"{len(slow)} local steps are slower than planned; the worst is {slow[0].name} ({slow[0].task.operation}): "
            f"{worst.time.p50_us:.1f} us a rank measured, {worst.planned_us:.1f} us planned",
            ("tasks", slow[0].name),
            Severity.WARNING,
            "small steps cost what starting them costs: calibrate the profile on this machine",
            tuple(str(step.task.id) for step in slow[:LISTED]),
        )
    ]


LISTED = 5
"""Steps that one finding names."""


def elsewhere(forecast: Forecast, backend: Mapping[str, object]) -> list[Diagnostic]:
    """A remark where planned times are not those of the machine and library that ran."""
    measured_on = forecast.profile.get("library")
    here = f"{backend.get('name')} ({backend.get('library')})"
    if measured_on is not None and measured_on == backend.get("library"):
        return []
    said = "is of no measurement" if measured_on is None else f"was measured with {measured_on}"
    return [
        Diagnostic(
            "run.profile_elsewhere",
            f"planned times are those of {forecast.profile['id']}, which {said}; the run was on {here}",
            ("profile",),
            Severity.INFO,
            "dtir calibrate measures this machine",
        )
    ]
