"""Runs a plan in several processes: starts them, or takes part where they were started from outside.

It does what `runner.run_plan` does in one process, with the same result, so that nothing after it needs to know.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dtir.execute.backends.base import Backend, Probe
from dtir.execute.binding import Binding
from dtir.execute.data import Inputs, output_leaves
from dtir.execute.launch import Launched, LaunchError, find_launcher, launched, require_size
from dtir.execute.launch_board import Board
from dtir.execute.launch_failure import Explainer, RunFailed
from dtir.execute.launch_job import Failure, Job, Returned, own_inputs, unpack_result, write_inputs
from dtir.execute.launch_merge import join_records, join_results
from dtir.execute.launch_parts import Parts
from dtir.execute.launch_processes import Cause, Ended, Processes
from dtir.execute.record import RunRecord
from dtir.execute.runner import Interrupted, Progress, Recorder, RunResult, Timing, make_record
from dtir.execute.session import Options
from dtir.execute.steps import ExecPlan
from dtir.execute.watchdog import stall_limit_s
from dtir.ops import loaded_op_modules
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet

if TYPE_CHECKING:
    from dtir.execute.backends.mpi_world import World


def run_processes(
    plan: ExecPlan,
    backend: Backend,
    binding: Binding,
    inputs: Inputs,
    *,
    timing: Timing | None = None,
    options: Options | None = None,
    probe: Probe | None = None,
    progress: Progress | None = None,
    limit_s: float | None = None,
    timeout_s: float | None = None,
    partial: str | None = None,
) -> RunResult:
    """Run a plan in several processes and record it.

    Args:
        limit_s: how long a communication step may wait before it counts as a hang; None: 30 s.
        timeout_s: how long the run may take in all; None: for ever.
        partial: where processes that were started from outside leave their records when they fail; None: nowhere.

    Returns:
        What all ranks hold of the outputs, and the record of all processes.

    Raises:
        LaunchError: the processes cannot be started.
        RunFailed: they did not come to their end; with the findings and what was recorded.
        Interrupted: from the keyboard; the record says how far the run came.
        SystemExit: in a process that was started from outside and is not the first: the first one reports.
    """
    timing, options = timing or Timing(), replace(options or Options(), barriers=(timing or Timing()).isolated)
    limit = stall_limit_s() if limit_s is None else limit_s
    started = launched()
    if started is not None:
        return _take_part(plan, binding, inputs, timing, options, limit, started, partial)
    folder = Path(tempfile.mkdtemp(prefix="dtir-mpi-"))
    try:
        job = Job(
            folder, binding, _algorithm(plan), inputs.seed, options, timing, limit, os.getpid(), platform.node(),
            loaded_op_modules(),
        )  # fmt: skip
        run = _Launched(plan, backend, job, probe)
        return run.run(inputs, progress, timeout_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _algorithm(plan: ExecPlan) -> str:
    return next((step.algorithm for scope in plan.scopes for step in scope.steps), "native")


class _Launched:
    """A run whose processes are started here."""

    def __init__(self, plan: ExecPlan, backend: Backend, job: Job, probe: Probe | None) -> None:
        self._plan = plan
        self._backend = backend
        self._job = job
        self._probe = probe
        self._slots = output_leaves(plan)

    def run(self, inputs: Inputs, progress: Progress | None, timeout_s: float | None) -> RunResult:
        job, plan = self._job, self._plan
        launcher = find_launcher()
        job.program.write_text(plan.program.to_json(), encoding="utf-8")
        write_inputs(job.inputs, inputs)
        job.write()
        board = Board.create(job.processes, job.board)
        total = len(plan.main.steps) * (job.options.check + job.timing.warmup + job.timing.repetitions)

        def note(done: int) -> None:
            if progress is not None:
                progress(done, total)

        ended = Processes(job, launcher, board).follow(note, timeout_s)
        returned = self._returned()
        complete = len(returned) == job.processes and all(item.record.complete for item in returned)
        if ended.cause is Cause.ENDED and ended.status == 0 and complete:
            return join_results(plan, self._slots, returned)
        record = join_records([item.record for item in returned]) if returned else None
        if record is not None:
            record = replace(record, complete=False)
        if ended.cause is Cause.INTERRUPTED:
            raise Interrupted(record or self._nothing(inputs))
        raise self._failed(ended, board, record)

    def _returned(self) -> list[Returned]:
        found: list[Returned] = []
        for process in range(self._job.processes):
            path = self._job.result(process)
            if path.exists():
                ranks = self._job.binding.ranks_of(process)
                found.append(unpack_result(path.read_bytes(), self._plan, self._slots, ranks))
        return found

    def _failed(self, ended: Ended, board: Board, record: RunRecord | None) -> RunFailed | LaunchError:
        findings = self._findings(ended, board)
        for item in findings:
            if item.code == "run.launch":
                return LaunchError(item.message)
        return RunFailed(findings, record)

    def _findings(self, ended: Ended, board: Board) -> DiagnosticSet:
        failures = [
            Failure.from_json(path.read_text(encoding="utf-8"))
            for path in map(self._job.failure, range(self._job.processes))
            if path.exists()
        ]
        return Explainer(self._plan, self._job.binding, board.rows()).explain(ended, failures)

    def _nothing(self, inputs: Inputs) -> RunRecord:
        """The record of a run that was interrupted before anything was done."""
        job = self._job
        return make_record(
            self._plan, self._backend, job.binding, Recorder(whole=False), inputs.seed, job.timing, job.options,
            self._probe, complete=False,
        )  # fmt: skip


# -- started from outside -------------------------------------------------------------------------------------------------


def _common_board(found: World) -> Board:
    """A board of all processes where they are on one host; else each has its own, and knows only of itself."""
    if not found.one_host:
        return Board.create(found.size)
    folder = Path(tempfile.mkdtemp(prefix="dtir-mpi-")) if found.process == 0 else None
    path = Path(found.tell_all(str(folder / "board") if folder is not None else ""))
    if folder is not None:
        Board.create(found.size, path)
    found.comm.Barrier()
    board = Board.open(path, found.size)
    found.comm.Barrier()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)  # the memory stays as long as somebody uses it
    return board


def _common_parts(found: World, record: str | None, plan: ExecPlan, binding: Binding, board: Board) -> Parts | None:
    """Where processes of one host put down what they have when the run fails; over several hosts each has no part."""
    if record is None or not found.one_host:
        return None
    folder = tempfile.mkdtemp(prefix="dtir-parts-") if found.process == 0 else ""
    return Parts(Path(found.tell_all(folder)), record, plan, binding, board)


def _take_part(
    plan: ExecPlan,
    binding: Binding,
    inputs: Inputs,
    timing: Timing,
    options: Options,
    limit_s: float,
    started: Launched,
    partial: str | None,
) -> RunResult:
    """Run as one of several processes; the first one gets the results of all."""
    from dtir.execute.backends.mpi_world import world  # MPI is initialised by this
    from dtir.execute.launch_participant import Participant, Task

    found = world()
    require_size(started, found.size)
    slots = output_leaves(plan)
    board = _common_board(found)

    parts = _common_parts(found, partial, plan, binding, board)

    def report(failure: Failure | None, done: bytes) -> None:
        findings: tuple[Diagnostic, ...] = ()
        if failure is not None:
            ended = Ended(Cause.ENDED, 1, None, 0.0, ())
            findings = tuple(Explainer(plan, binding, board.rows()).explain(ended, [failure]))
            for item in findings:
                sys.stderr.write(f"dtir: {item.render()}\n")
        if parts is not None:
            try:
                parts.put(found.process, done, findings)
            except OSError as error:
                sys.stderr.write(f"dtir: {parts.record} cannot be written: {error}\n")
        sys.stderr.flush()

    task = Task(plan, binding, inputs.seed, options, timing, limit_s)
    participant = Participant(found, task, board, 0, report)
    handed: list[list[bytes] | None] = []
    participant.run(
        own_inputs(inputs, binding.ranks_of(found.process)), lambda data: handed.append(found.gather_bytes(data))
    )
    (gathered,) = handed
    if parts is not None and found.process == 0:
        shutil.rmtree(parts.folder, ignore_errors=True)
    if gathered is None:
        raise SystemExit(0)
    returned = [unpack_result(item, plan, slots, binding.ranks_of(process)) for process, item in enumerate(gathered)]
    return join_results(plan, slots, returned)
