"""Runs a prepared plan: warm-up, repetitions, times of every communication step, outputs, and the record of it all.

Timing `free` lets ranks go as they come, so that a step's time holds waiting too (told apart in the comparison); timing
`isolated` waits for all before every communication step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dtir.analysis.executions import region_executions
from dtir.execute.backends.base import Backend, Probe, Traffic
from dtir.execute.binding import Binding
from dtir.execute.data import Inputs, output_leaves
from dtir.execute.environment import environment
from dtir.execute.forecast import Forecast
from dtir.execute.rank_runs import MOST_MEMBERS
from dtir.execute.record import Columns, RunRecord, StepEntry, WireEntry
from dtir.execute.session import ExecutionError, Options, Session
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.execute.values import Held
from dtir.schema.diagnostics import Diagnostic

COMMUNICATION = frozenset({StepKind.EXCHANGE, StepKind.MOVE})

MOST_LOCAL_RECORDS = 100_000
"""Executions of local steps that a process writes down one by one; further ones only count in sums, and how many they are
is said."""

MOST_PAIRS = 10_000
"""A step's transfers are listed in the record up to so many pairs of ranks."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many of the program's steps are done, and how many there are, over all repetitions."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How often and how a program is run.

    Args:
        repetitions: measured runs, at least one.
        warmup: runs before them that are not recorded.
        isolated: wait for all ranks before every communication step.
    """

    repetitions: int = 1
    warmup: int = 0
    isolated: bool = False

    def __post_init__(self) -> None:
        if self.repetitions < 1 or self.warmup < 0:
            raise ValueError(f"repetitions={self.repetitions} must be at least 1 and warmup={self.warmup} at least 0")


class Interrupted(KeyboardInterrupt):
    """The run was interrupted; `record` holds what was done until then."""

    def __init__(self, record: RunRecord) -> None:
        super().__init__("interrupted")
        self.record = record


@dataclass(slots=True)
class Spent:
    """Time of one step over all measured repetitions."""

    executions: int = 0
    total_ns: int = 0


@dataclass(slots=True)
class Recorder:
    """Takes the times of steps while a session runs.

    Args:
        columns: records of communication steps.
        local: records of the other steps.
        local_left_out: how many of them had no more room.
        spent: time of every step, by its index.
        repetition: the one that runs now; None during warm-up.
        whole: whether the process holds all ranks, so that one record stands for all of them.
        elapsed_ns: how long every measured repetition took.
        process: the number of this process.
        wrong: elements of checked collectives that differ from the reference, by step.
        wire: bytes and messages by step and receiving process, where they can be counted.
    """

    whole: bool
    columns: Columns = field(default_factory=Columns)
    local: Columns = field(default_factory=Columns)
    local_left_out: int = 0
    spent: dict[int, Spent] = field(default_factory=dict[int, Spent])
    repetition: int | None = None
    elapsed_ns: list[int] = field(default_factory=list[int])
    process: int = 0
    wrong: dict[int, int] = field(default_factory=dict[int, int])
    wire: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict[tuple[int, int], tuple[int, int]])

    def observe(
        self, step: Step, ranks: Sequence[int], start_ns: int, end_ns: int, sent: Traffic | None = None
    ) -> None:
        """Note a step that is done; what a process sent is noted with the first of its ranks."""
        if self.repetition is None:
            return
        spent = self.spent.get(step.index)
        if spent is None:
            spent = self.spent[step.index] = Spent()
        spent.executions += 1
        spent.total_ns += end_ns - start_ns
        if step.kind in COMMUNICATION:
            self._communicated(step, ranks, start_ns, end_ns, sent)
        elif step.kind is not StepKind.ORDER:
            rows: Sequence[int | None] = (None,) if self.whole and len(ranks) == len(step.ranks) else ranks
            if len(self.local) + len(rows) > MOST_LOCAL_RECORDS:
                self.local_left_out += len(rows)
                return
            for rank in rows:
                self.local.add(step.index, rank, self.repetition, start_ns, end_ns)

    def _communicated(self, step: Step, ranks: Sequence[int], start_ns: int, end_ns: int, sent: Traffic | None) -> None:
        assert self.repetition is not None
        if self.whole and len(ranks) == len(step.ranks):
            counted = (None, None) if sent is None else (sent.sent_bytes, sent.messages)
            self.columns.add(step.index, None, self.repetition, start_ns, end_ns, *counted)
        else:
            for rank in ranks:
                counted = (None, None) if sent is None else (0, 0)
                if sent is not None and rank == ranks[0]:
                    counted = (sent.sent_bytes, sent.messages)
                self.columns.add(step.index, rank, self.repetition, start_ns, end_ns, *counted)
        for peer, size, messages in sent.peers if sent is not None else ():
            old = self.wire.get((step.index, peer), (0, 0))
            self.wire[step.index, peer] = (old[0] + size, old[1] + messages)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came out of a run.

    Args:
        outputs: what the ranks of this process hold of every output, in the order of the source.
        slots: the slots of the outputs.
        record: the record, without comparisons.
        spent: time of every step.
        remarks: what the session has to say of how the steps ran.
    """

    outputs: tuple[Held, ...] = field(repr=False)
    slots: tuple[int, ...]
    record: RunRecord
    spent: Mapping[int, Spent] = field(repr=False)
    remarks: tuple[Diagnostic, ...] = ()


def run_plan(
    plan: ExecPlan,
    backend: Backend,
    binding: Binding,
    inputs: Inputs,
    *,
    timing: Timing | None = None,
    options: Options | None = None,
    probe: Probe | None = None,
    progress: Progress | None = None,
    recorder: Recorder | None = None,
) -> RunResult:
    """Run a plan and record it.

    Args:
        recorder: takes the times; for who wants to see them before the run is over. None: one is made.

    Raises:
        ExecutionError: a step failed; with the record of what was done until then.
        Interrupted: the run was interrupted from the keyboard; the record says how far it came.
        UnknownOperation: a local step has no evaluation.
    """
    timing = timing or Timing()
    options = replace(options or Options(), barriers=timing.isolated)
    recorder = recorder or Recorder(whole=binding.processes == 1)
    session = backend.prepare(plan, binding, options, recorder.observe)
    try:
        before = timing.warmup + options.check
        total = len(plan.main.steps) * (before + timing.repetitions)
        done = 0
        for number in range(before + timing.repetitions):
            measured = number - before
            session.checker = session.make_checker() if options.check and number == 0 else None
            recorder.repetition = measured if measured >= 0 else None
            _load(session, inputs)
            session.start()
            begun = time.perf_counter_ns()
            for step in plan.main.steps:
                session.execute(step)
                done += 1
                if progress is not None:
                    progress(done, total)
            session.sync()
            if session.checker is not None:
                recorder.wrong = session.checker.wrong
            if measured >= 0:
                recorder.elapsed_ns.append(time.perf_counter_ns() - begun)
        slots = output_leaves(plan)
        outputs = tuple(session.read_slot(slot) for slot in slots)
    except KeyboardInterrupt:
        raise Interrupted(
            make_record(plan, backend, binding, recorder, inputs.seed, timing, options, probe, complete=False)
        ) from None
    except ExecutionError as error:
        error.record = make_record(
            plan, backend, binding, recorder, inputs.seed, timing, options, probe, complete=False
        )
        raise
    finally:
        session.close()
    record = make_record(plan, backend, binding, recorder, inputs.seed, timing, options, probe)
    return RunResult(outputs, slots, record, recorder.spent, session.remarks())


def _load(session: Session, inputs: Inputs) -> None:
    session.reset()
    for slot, held in inputs.held.items():
        session.load_slot(slot, held)


def make_record(
    plan: ExecPlan,
    backend: Backend,
    binding: Binding,
    recorder: Recorder,
    seed: int | None,
    timing: Timing,
    options: Options,
    probe: Probe | None = None,
    *,
    complete: bool = True,
) -> RunRecord:
    """The record of what a recorder has seen so far.

    Args:
        seed: what the data came from; None: a file.
        probe: what the back end says of itself; None: it is asked.
        complete: whether the run came to its end.
    """
    kinds = {step.index: step.kind for scope in plan.scopes for step in scope.steps}
    sets = _Sets()
    local = sum(spent.total_ns for index, spent in recorder.spent.items() if kinds[index] is StepKind.LOCAL)
    sent = sum(spent.total_ns for index, spent in recorder.spent.items() if kinds[index] in COMMUNICATION)
    found = probe or backend.probe()
    return RunRecord(
        program={"name": plan.program.name, "digest": plan.digest, "ranks": plan.ranks},
        backend={
            "name": backend.name,
            "library": found.reason,
            "clock": found.capabilities.clock,
            "wire_bytes": found.capabilities.wire_bytes,
        },
        options={
            "seed": seed,
            "repetitions": timing.repetitions,
            "warmup": timing.warmup,
            "timing": "isolated" if timing.isolated else "free",
            "algorithm": plan.main.steps[0].algorithm if plan.main.steps else "native",
            "skip_local": options.skip_local,
            "check": options.check,
        },
        environment=environment(),
        binding=_binding(binding),
        steps=tuple(_entry(scope, step, sets, recorder.wrong) for scope in plan.scopes for step in scope.steps),
        records=recorder.columns,
        totals={
            "elapsed_ns": list(recorder.elapsed_ns),
            "local_ns": local,
            "communication_ns": sent,
            "local_left_out": recorder.local_left_out,
        },
        complete=complete,
        wire=tuple(
            WireEntry(step, recorder.process, peer, size, messages)
            for (step, peer), (size, messages) in sorted(recorder.wire.items())
        ),
        local_records=recorder.local,
        rank_sets=tuple(sets.ranks),
        group_sets=tuple(sets.groups),
    )


def with_forecast(record: RunRecord, forecast: Forecast) -> RunRecord:
    """The record with what was planned beside it."""
    steps: list[StepEntry] = []
    for entry in record.steps:
        found = forecast.steps.get(entry.index)
        steps.append(entry if found is None else replace(entry, planned_us=found.us, model=found.model))
    profile = {**forecast.profile, "makespan_us": forecast.makespan_us, "notes": list(forecast.notes)}
    return replace(record, steps=tuple(steps), profile=profile, planned=forecast.spans)


def _binding(binding: Binding) -> dict[str, Any]:
    return {
        "backend": binding.backend,
        "processes": binding.processes,
        "ranks": [
            {"rank": rank, "process": seat.process, "device": seat.device} for rank, seat in enumerate(binding.seats)
        ],
    }


class _Sets:
    """Sets of ranks and of groups, each once."""

    def __init__(self) -> None:
        self.ranks: dict[tuple[int, ...], int] = {}
        self.groups: dict[tuple[tuple[int, ...], ...], int] = {}
        self._members = 0
        # By identity: most steps share theirs, and the plan keeps them alive.
        self._known: dict[int, int] = {}

    def of_ranks(self, ranks: Sequence[int]) -> int:
        """The place of a set; -1 when all sets together would be more than a record may hold."""
        if id(ranks) not in self._known:
            if self._members + len(ranks) > MOST_MEMBERS:
                return -1
            self._members += len(ranks)
            self._known[id(ranks)] = self.ranks.setdefault(tuple(ranks), len(self.ranks))
        return self._known[id(ranks)]

    def of_groups(self, groups: tuple[tuple[int, ...], ...]) -> int:
        """The place of a list of groups; -1 for none."""
        if not groups:
            return -1
        if id(groups) not in self._known:
            self._known[id(groups)] = self.groups.setdefault(groups, len(self.groups))
        return self._known[id(groups)]

    def of_pairs(self, pairs: tuple[tuple[int, ...], ...]) -> int:
        """The place of a list that nobody keeps; -1 for none."""
        return self.groups.setdefault(pairs, len(self.groups)) if pairs else -1


def groups_of(step: Step) -> tuple[tuple[int, ...], ...]:
    """The groups of a communication step; of transfers the pairs (source, destination) that differ."""
    if step.exchange is not None:
        return step.exchange.groups or step.exchange.pairs
    pairs = dict.fromkeys((move.source, move.destination) for moves in step.moves for move in moves.moves)
    return tuple(pair for pair in pairs if pair[0] != pair[1])


def _entry(scope: ScopePlan, step: Step, sets: _Sets, wrong: Mapping[int, int]) -> StepEntry:
    # Pairs of transfers are made here and would not stay alive: they are looked up by what they are.
    groups = groups_of(step)
    listed = groups if len(groups) <= MOST_PAIRS or step.exchange is not None else ()
    place = sets.of_groups(listed) if step.exchange is not None else sets.of_pairs(listed)
    return StepEntry(
        step.index,
        str(step.task.id),
        step.name,
        scope.name,
        step.kind.value,
        str(step.task.operation),
        step.planned.message_bytes,
        step.planned.total_bytes,
        ranks=sets.of_ranks(step.ranks),
        groups=place,
        wrong=wrong.get(step.index),
    )


def executions_by_scope(plan: ExecPlan) -> dict[str, int | None]:
    """How often every scope runs by plan: by the name of its region, the program's own list under the empty name."""
    counts = region_executions(plan.program.tasks, {region.id: region for region in plan.program.regions})
    return {"": 1, **{scope.name: counts.get(name) for name, scope in plan.regions.items()}}
