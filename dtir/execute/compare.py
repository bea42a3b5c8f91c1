"""What was measured beside what was planned: one row a collective, in nccl-tests' columns and some more.

Source of the columns: nccl-tests, doc/PERFORMANCE.md. `size` is S (SEMANTICS 3.1), algbw = size / time, busbw = algbw
times 2(n-1)/n for all_reduce, (n-1)/n for reduce_scatter, all_gather and all_to_all, 1 for the others; GB = 1e9 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from dtir.execute.binding import Binding
from dtir.execute.communication import reduction_of
from dtir.execute.forecast import Forecast, StepForecast
from dtir.execute.quantiles import Spread, error_percent
from dtir.execute.record import Columns
from dtir.execute.runner import COMMUNICATION, executions_by_scope
from dtir.execute.shares import Shares
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.ir.collectives import Broadcast, CollectiveKind, collective_kind
from dtir.ir.tasks import Collective, PointToPoint, Reshard


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
        time: of one group, from the last start to the last end, over executions and repetitions; a process that has
            members in several groups does these one after the other, and then it is their time over their number.
        in_turn: how many groups a process does one after the other.
        algbw, busbw: GB/s.
        wrong: elements that differ from the reference; None when nothing was compared.
        planned: by the cost model; None without a machine profile.
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
    time: Spread
    in_turn: int
    algbw: float | None
    busbw: float | None
    wrong: int | None
    planned: StepForecast | None
    planned_bytes: int | None
    measured_bytes: int | None
    wait_us: float | None

    @property
    def time_us(self) -> float | None:
        """The median time."""
        return self.time.p50_us

    @property
    def planned_us(self) -> float | None:
        """The planned time of one group."""
        return self.planned.us if self.planned is not None else None

    @property
    def error_percent(self) -> float | None:
        """How far the measured time is from the planned one, in percent of the plan."""
        return error_percent(self.time_us, self.planned_us)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One step of any kind.

    Args:
        step: index of the step.
        time: of one execution on one rank; a process that hosts several ranks of the step does them together, and then it
            is their time over their number. Of calls, loops and branches: with all that is inside.
        in_turn: how many ranks a process does together (1 for control flow and communication).
        planned: by the cost model; None without a machine profile.
    """

    step: int
    time: Spread
    in_turn: int
    planned: StepForecast | None

    @property
    def planned_us(self) -> float | None:
        """The planned time of one execution."""
        return self.planned.us if self.planned is not None else None

    @property
    def error_percent(self) -> float | None:
        """How far the measured time is from the planned one, in percent of the plan."""
        return error_percent(self.time.p50_us, self.planned_us)


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
    forecast: Forecast | None = None,
    planned_bytes: Mapping[int, int] | None = None,
    binding: Binding | None = None,
    wrong: Mapping[int, int] | None = None,
) -> list[CollectiveRow]:
    """One row for every communication step, in the order of the plan.

    Args:
        columns: records of a run.
        repetitions: measured repetitions.
        forecast: planned times.
        planned_bytes: bytes that one execution puts on the wire, by step index, where ranks share processes; None: what
            the ranks send each other.
        binding: which process does which rank; None: all are in one.
        wrong: elements that differ from the reference, by step index, where that was checked.
    """
    times = _times(columns)
    expected = executions_by_scope(plan)
    processes = Shares(plan, binding)
    rows: list[CollectiveRow] = []
    for scope in plan.scopes:
        for step in scope.steps:
            if step.kind in COMMUNICATION:
                found = times.get(step.index)
                sent = (planned_bytes or {}).get(step.index, step.planned.total_bytes)
                planned = forecast.steps.get(step.index) if forecast is not None else None
                turns = processes.groups_in_turn(step)
                row = _row(scope, step, found, repetitions, expected.get(scope.name), planned, sent, turns)
                rows.append(replace(row, wrong=(wrong or {}).get(step.index)))
    return rows


def task_rows(
    plan: ExecPlan,
    rows: Sequence[CollectiveRow],
    columns: Columns,
    forecast: Forecast | None = None,
    binding: Binding | None = None,
) -> list[TaskRow]:
    """One row for every step, in the order of the plan.

    Args:
        rows: of the communication steps (`collective_rows`).
        columns: records of the other steps.
        forecast, binding: as for `collective_rows`.
    """
    processes = Shares(plan, binding)
    durations: dict[int, list[float]] = {}
    for step, rank, start, end in zip(columns.step, columns.rank, columns.start_ns, columns.end_ns, strict=True):
        durations.setdefault(step, []).append(processes.share(step, rank) * (end - start) / 1000)
    communication = iter(rows)
    found: list[TaskRow] = []
    for scope in plan.scopes:
        for step in scope.steps:
            planned = forecast.steps.get(step.index) if forecast is not None else None
            if step.kind in COMMUNICATION:
                row = next(communication)
                found.append(TaskRow(step.index, row.time, row.in_turn, planned))
            else:
                spread = Spread.of(durations.get(step.index, ()))
                found.append(TaskRow(step.index, spread, processes.ranks_together(step), planned))
    return found


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
    planned: StepForecast | None,
    sent_bytes: int,
    in_turn: int,
) -> CollectiveRow:
    kind, reduction, root, sizes = _facts(step)
    members = sizes[0] if len(set(sizes)) == 1 else None
    executions = times.executions // repetitions if times is not None else expected
    spread = Spread.of([item / in_turn for item in times.durations_us] if times is not None else ())
    middle = spread.p50_us
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
        time=spread,
        in_turn=in_turn,
        algbw=algbw,
        busbw=algbw * bus_factor(kind, members) if algbw is not None and members else None,
        wrong=None,
        planned=planned,
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


def step_kinds(plan: ExecPlan) -> dict[str, int]:
    """Number of steps by kind."""
    counts: dict[str, int] = {kind.value: 0 for kind in StepKind}
    for scope in plan.scopes:
        for step in scope.steps:
            counts[step.kind.value] += 1
    return {name: number for name, number in counts.items() if number}
