"""What was measured beside what was planned: one row a collective, in nccl-tests' columns and some more.

Source of the columns: nccl-tests, doc/PERFORMANCE.md. `size` is S (SEMANTICS 3.1), algbw = size / time, busbw = algbw
times 2(n-1)/n for all_reduce, (n-1)/n for reduce_scatter, all_gather and all_to_all, 1 for the others; GB = 1e9 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from dtir.execute.assemble import Output
from dtir.execute.communication import reduction_of
from dtir.execute.data import Inputs
from dtir.execute.dtypes import Array, numpy_dtype, unit_roundoff
from dtir.execute.oracle import Undivided, tolerance
from dtir.execute.record import Columns, ValueCheck
from dtir.execute.runner import COMMUNICATION, executions_by_scope
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.ir.collectives import Broadcast, CollectiveKind, collective_kind
from dtir.ir.tasks import Collective, PointToPoint, Reshard
from dtir.schema.diagnostics import Diagnostic, Severity

LEAST_DEVIATION = 0.2
"""Measured times within 20 % of the plan say nothing."""

NOISE_FACTOR = 3.0
"""Nor do times within three times the spread between repetitions."""

EXPECTED_RELATIVE = 2e-5
"""Relative to the greatest element: how far float32 results of two correct programs may be apart (other orders of sums)."""

EXPECTED_RELATIVE_DOUBLE = 2e-11
"""The same for float64."""

NARROW_ROUNDINGS = 4
"""Roundings that results of narrower types may be apart: 1.6 % of the greatest element for bfloat16, 0.2 % for float16."""


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One communication step.

    Args:
        id: display id of the task.
        name: what people call it.
        kind: ``all_reduce``, ...; ``peer_transfer``, ``reshard`` or ``halo_exchange`` for steps that are no collectives.
        region: the region that holds it, empty for the program's own list.
        group_size: members of a group; None when groups differ.
        group_count: number of groups (of pairs for a permute).
        size_bytes: S of one group.
        elements: elements of S.
        dtype: element type.
        reduction: ``sum``, ..., None where nothing is reduced.
        root: of a broadcast; None elsewhere.
        executions: how often it ran in one repetition.
        time_us: median over executions and repetitions, from the last start to the last end.
        least_us: the shortest.
        noise_us: distance of the quartiles; None with fewer than two executions.
        algbw, busbw: GB/s.
        wrong: elements that differ from the reference; None when nothing was compared.
        planned_us: by the cost model; None without a machine profile.
        planned_bytes: bytes that all ranks send in one repetition, by plan; None when it is not known how often it runs.
        measured_bytes: the same as counted on the wire; None where it cannot be counted.
        wait_us: median over ranks from their own start to the last start; None where all ranks start together.
    """

    id: str
    name: str
    kind: str
    region: str
    group_size: int | None
    group_count: int
    size_bytes: int
    elements: int
    dtype: str
    reduction: str | None
    root: int | None
    executions: int | None
    time_us: float | None
    least_us: float | None
    noise_us: float | None
    algbw: float | None
    busbw: float | None
    wrong: int | None
    planned_us: float | None
    planned_bytes: int | None
    measured_bytes: int | None
    wait_us: float | None

    @property
    def error_percent(self) -> float | None:
        """How far the measured time is from the planned one, in percent of the plan."""
        if self.planned_us is None or self.time_us is None or self.planned_us <= 0:
            return None
        return 100 * (self.time_us - self.planned_us) / self.planned_us


@dataclass(frozen=True, slots=True)
class _Times:
    """What records say of one step."""

    executions: int
    durations_us: list[float] = field(default_factory=list[float])
    waits_us: list[float] = field(default_factory=list[float])
    sent_bytes: int | None = None


def bus_factor(kind: str, members: int) -> float:
    """busbw over algbw (see the module)."""
    match kind:
        case "all_reduce":
            return 2 * (members - 1) / members
        case "reduce_scatter" | "all_gather" | "all_to_all":
            return (members - 1) / members
        case _:
            return 1.0


def collective_rows(
    plan: ExecPlan,
    columns: Columns,
    repetitions: int,
    planned_us: Mapping[int, float] | None = None,
    planned_bytes: Mapping[int, int] | None = None,
) -> list[CollectiveRow]:
    """One row for every communication step, in the order of the plan.

    Args:
        columns: records of a run.
        repetitions: measured repetitions.
        planned_us: time of one execution by step index, of a cost model.
        planned_bytes: bytes that one execution puts on the wire, by step index, where ranks share processes; None: what
            the ranks send each other.
    """
    times = _times(columns)
    expected = executions_by_scope(plan)
    rows: list[CollectiveRow] = []
    for scope in plan.scopes:
        for step in scope.steps:
            if step.kind in COMMUNICATION:
                found = times.get(step.index)
                sent = (planned_bytes or {}).get(step.index, step.planned.total_bytes)
                rows.append(_row(scope, step, found, repetitions, expected.get(scope.name), planned_us or {}, sent))
    return rows


def _times(columns: Columns) -> dict[int, _Times]:
    """Records by step; records of several ranks belong together in the order in which each rank has them."""
    by_step: dict[int, dict[int | None, list[int]]] = {}
    for place, (step, rank) in enumerate(zip(columns.step, columns.rank, strict=True)):
        by_step.setdefault(step, {}).setdefault(rank, []).append(place)
    found: dict[int, _Times] = {}
    for step, by_rank in by_step.items():
        durations: list[float] = []
        waits: list[float] = []
        ranks: list[list[int]] = list(by_rank.values())
        for turn in range(min(len(places) for places in ranks)):
            places = [own[turn] for own in ranks]
            starts = [columns.start_ns[place] for place in places]
            last = max(starts)
            durations.append((max(columns.end_ns[place] for place in places) - last) / 1000)
            if len(places) > 1:
                waits.append(median((last - start) / 1000 for start in starts))
        sent = [columns.sent_bytes[place] for places in by_rank.values() for place in places]
        counted = [item for item in sent if item is not None]
        executions = max(len(places) for places in by_rank.values())
        found[step] = _Times(executions, durations, waits, sum(counted) if len(counted) == len(sent) else None)
    return found


def _row(
    scope: ScopePlan,
    step: Step,
    times: _Times | None,
    repetitions: int,
    expected: int | None,
    planned_us: Mapping[int, float],
    sent_bytes: int,
) -> CollectiveRow:
    kind, reduction, root, sizes = _facts(step)
    members = sizes[0] if len(set(sizes)) == 1 else None
    executions = times.executions // repetitions if times is not None else expected
    durations = times.durations_us if times is not None else []
    middle = median(durations) if durations else None
    size = step.planned.message_bytes
    algbw = size / (middle * 1000) if middle else None
    return CollectiveRow(
        id=str(step.task.id),
        name=step.name,
        kind=kind,
        region=scope.name,
        group_size=members,
        group_count=len(sizes),
        size_bytes=size,
        elements=step.planned.elements,
        dtype=", ".join(dict.fromkeys(scope.slots[number].value.type.dtype for number in step.inputs)),
        reduction=reduction,
        root=root,
        executions=executions,
        time_us=middle,
        least_us=min(durations, default=None),
        noise_us=_spread(durations),
        algbw=algbw,
        busbw=algbw * bus_factor(kind, members) if algbw is not None and members else None,
        wrong=None,
        planned_us=planned_us.get(step.index),
        planned_bytes=sent_bytes * executions if executions is not None else None,
        measured_bytes=times.sent_bytes // repetitions if times is not None and times.sent_bytes is not None else None,
        wait_us=median(times.waits_us) if times is not None and times.waits_us else None,
    )


def _facts(step: Step) -> tuple[str, str | None, int | None, list[int]]:
    """Kind, reduction, root and group sizes of a communication step."""
    body = step.task.body
    if isinstance(body, Collective):
        kind = collective_kind(body.spec)
        reduction = reduction_of(body.spec)
        root = body.spec.root if isinstance(body.spec, Broadcast) else None
        groups = step.exchange.groups if step.exchange is not None else ()
        sizes = [len(group) for group in groups]
        if kind is CollectiveKind.COLLECTIVE_PERMUTE:
            pairs = step.exchange.pairs if step.exchange is not None else step.moves[0].moves
            sizes = [2] * len(pairs)
        return kind.value, reduction.value if reduction is not None else None, root, sizes
    if isinstance(body, PointToPoint):
        return "peer_transfer", None, None, [2]
    kind = "halo_exchange" if isinstance(body, Reshard) and body.kind.value == "halo" else "reshard"
    return kind, None, None, [len(step.ranks)]


def _spread(durations: Sequence[float]) -> float | None:
    if len(durations) < 2:
        return None
    low, high = np.percentile(durations, [25, 75])
    return float(high - low)


# -- values -----------------------------------------------------------------------------------------------------------------


def check_outputs(
    plan: ExecPlan, outputs: Sequence[Output], inputs: Inputs, undivided: Undivided | None
) -> list[ValueCheck]:
    """Every output compared with what is known of it: expected arrays, the undivided program, its own copies."""
    checks: list[ValueCheck] = []
    leaves = _leaf_values(plan)
    terms = _longest_fold(plan)
    for output in outputs:
        slot = plan.main.slots[leaves[output.number]]
        name = slot.name if plan.attribute("hlo.form") is None else f"out{output.number} ({slot.name})"
        if output.array is None:
            continue
        expected = inputs.expected.get(output.number)
        if expected is not None and expected.shape == output.array.shape:
            bound = _expected_bound(expected, slot.value.type.dtype)
            checks.append(_check(str(slot.value.id), name, "expected", output.array, expected, bound))
        elif undivided is not None and slot.value.id in undivided.values:
            whole = undivided.values[slot.value.id]
            if whole.shape != output.array.shape:
                continue
            scale = slot.value.scale
            if scale.numerator != scale.denominator:
                whole = (whole.astype(np.float64) * scale.numerator / scale.denominator).astype(whole.dtype)
            bound = tolerance(slot.value, undivided.steps[slot.value.id] + len(plan.main.steps), terms, whole)
            checks.append(_check(str(slot.value.id), name, "undivided", output.array, whole, bound))
        elif output.difference or plan.ranks > 1:
            bound = 0.0
            wrong = int(output.difference > bound)
            checks.append(
                ValueCheck(str(slot.value.id), name, "copies", output.difference, bound, wrong, int(output.array.size))
            )
    return checks


def _leaf_values(plan: ExecPlan) -> Sequence[int]:
    from dtir.execute.data import output_leaves

    return output_leaves(plan)


def _longest_fold(plan: ExecPlan) -> int:
    """Most elements of any value: no sum of the program has more terms."""
    return max((math.prod(slot.placement.shape) for slot in plan.main.slots), default=1)


def _expected_bound(expected: Array, dtype: str) -> float:
    roundoff = unit_roundoff(numpy_dtype(dtype))
    if roundoff == 0.0:
        return 0.0
    finite = np.abs(np.nan_to_num(np.asarray(expected, np.complex128), nan=0.0, posinf=0.0, neginf=0.0))
    narrowed = EXPECTED_RELATIVE if roundoff >= unit_roundoff(np.dtype(np.float32)) else EXPECTED_RELATIVE_DOUBLE
    return max(narrowed, NARROW_ROUNDINGS * roundoff) * float(finite.max(initial=0.0))


def _check(value: str, name: str, source: str, found: Array, wanted: Array, bound: float) -> ValueCheck:
    a, b = np.asarray(found, np.complex128), np.asarray(wanted, np.complex128)
    if found.dtype.kind in "iu" and found.dtype.itemsize == 8:
        apart = (found != wanted).astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            apart = np.abs(a - b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
    return ValueCheck(
        value, name, source, float(apart.max(initial=0.0)), bound, int((apart > bound).sum()), int(found.size)
    )


# -- findings ---------------------------------------------------------------------------------------------------------------


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


def _slowness(row: CollectiveRow) -> Diagnostic | None:
    if row.planned_us is None or row.time_us is None:
        return None
    allowed = max(LEAST_DEVIATION * row.planned_us, NOISE_FACTOR * (row.noise_us or 0.0))
    if row.time_us - row.planned_us <= allowed:
        return None
    return Diagnostic(
        "run.slower_than_planned",
        f"{row.name}: {row.time_us:.1f} us measured, {row.planned_us:.1f} us planned (noise {row.noise_us or 0.0:.1f} us)",
        ("collectives", row.name),
        Severity.WARNING,
        "look for the last rank to arrive, or calibrate the profile on this machine",
        (row.id,),
    )


def step_kinds(plan: ExecPlan) -> dict[str, int]:
    """Number of steps by kind."""
    counts: dict[str, int] = {kind.value: 0 for kind in StepKind}
    for scope in plan.scopes:
        for step in scope.steps:
            counts[step.kind.value] += 1
    return {name: number for name, number in counts.items() if number}
