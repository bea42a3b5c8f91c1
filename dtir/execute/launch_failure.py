"""What a run in several processes died of, as findings: who, in which task, of which group, and where the others were."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from dtir.execute.binding import Binding
from dtir.execute.launch_board import Doing, Row
from dtir.execute.launch_job import Failure
from dtir.execute.launch_processes import Cause, Ended
from dtir.execute.record import RunRecord
from dtir.execute.steps import ExecPlan, Step
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet

SHOWN = 4
"""Processes whose place a message tells; the others are counted."""


class RunFailed(RuntimeError):
    """A run in several processes did not come to its end.

    Args:
        findings: why.
        record: what was recorded until then; None: nothing.
    """

    def __init__(self, findings: DiagnosticSet, record: RunRecord | None = None) -> None:
        super().__init__("; ".join(item.message for item in findings))
        self.findings = findings
        self.record = record


class Explainer:
    """Puts together what is known of the end of a run.

    Args:
        plan: the plan.
        binding: which process hosts which rank.
        rows: what every process did last.
    """

    def __init__(self, plan: ExecPlan, binding: Binding, rows: Sequence[Row]) -> None:
        self._plan = plan
        self._binding = binding
        self._rows = rows
        self._steps = {step.index: step for scope in plan.scopes for step in scope.steps}

    def explain(self, ended: Ended, failures: Sequence[Failure]) -> DiagnosticSet:
        """The findings: what failed first; when nobody said why, who was gone first."""
        if ended.cause is Cause.TIMEOUT:
            return DiagnosticSet.of(
                Diagnostic(
                    "run.timeout",
                    f"the run was ended after {ended.seconds:.1f} s, as --timeout says; {self._places()}",
                    hint="allow more time, or run fewer repetitions",
                )
            )
        by_time = sorted(failures, key=lambda failure: failure.when_ns)
        # Who waits in vain is the victim: a process that says what went wrong is the better witness.
        witnesses = [failure for failure in by_time if failure.code != "run.stalled"] or by_time
        if witnesses:
            return DiagnosticSet.of(self._failure(witnesses[0], ended))
        return DiagnosticSet.of(self._lost(ended))

    def _failure(self, failure: Failure, ended: Ended) -> Diagnostic:
        who = self._who(failure.process)
        match failure.code:
            case "run.stalled":
                message = (
                    f"{who} {failure.message} in {self._task(failure.step)}{self._group(failure.group)} and was ended by "
                    f"the watchdog; {self._places(failure.process)}"
                )
                hint = "a rank never entered it, or hangs; --stall-after SECONDS sets how long a step may wait"
            case "run.launch":
                message, hint = failure.message, "see python -m mpi4py --mpi-library and DTIR_MPIEXEC"
            case "run.crashed":
                message = (
                    f"{who} ended with an error in {self._task(self._row(failure.process).step)}: {failure.message}"
                )
                hint = "report it, with the program and this message"
            case "run.deadlock":
                message = f"task {self._task(failure.step)}: {failure.message}"
                hint = "dtir verify shows who waits for whom"
            case _:
                message = f"task {self._task(failure.step)}: {who}: {failure.message}"
                hint = "look at the task's operands and attributes; dtir verify may say more"
        return Diagnostic(
            failure.code, message, self._path(failure.step), hint=hint, subject=self._subject(failure.step)
        )

    def _lost(self, ended: Ended) -> Diagnostic:
        process, how = gone(ended)
        process = ended.first_gone if process is None else process
        if process is None or not 0 <= process < len(self._rows):
            said = " | ".join(ended.log[-SHOWN:]) or "the launcher printed nothing"
            began = any(row.pid for row in self._rows)
            return Diagnostic(
                "run.killed" if began else "run.launch",
                f"the processes ended with status {ended.status}"
                + (f"; {self._places()}" if began else " before they began")
                + f": {said}",
                hint="see python -m mpi4py --mpi-library and DTIR_MPIEXEC" if not began else "look at the system's log",
            )
        row = self._row(process)
        return Diagnostic(
            "run.killed",
            f"{self._who(process)} {how} in {self._task(row.step)}{self._group(row.group)}; {self._places(process)}",
            self._path(row.step),
            hint="look at the system's log; out of memory is the most frequent reason",
            subject=self._subject(row.step),
        )

    # -- words ------------------------------------------------------------------------------------------------------------

    def _row(self, process: int) -> Row:
        return self._rows[process]

    def _who(self, process: int) -> str:
        ranks = self._binding.ranks_of(process) if process < self._binding.processes else ()
        if ranks == (process,):
            return f"rank {process}"
        return f"process {process} ({_ranks(ranks)})"

    def _step(self, index: int) -> Step | None:
        return self._steps.get(index)

    def _task(self, index: int) -> str:
        step = self._step(index)
        return f"{step.name} ({step.task.operation})" if step is not None else "no task (before the first)"

    def _group(self, number: int) -> str:
        if not 0 <= number < len(self._plan.groups):
            return ""
        return f", group {number} ({_ranks(self._plan.groups[number])}),"

    def _places(self, without: int | None = None) -> str:
        """Where the processes are, those first that are not in communication."""
        others = [process for process in range(len(self._rows)) if process != without]
        others.sort(key=lambda process: (self._row(process).doing is Doing.COMMUNICATING, process))
        said = [f"{self._who(process)} {self._place(process)}" for process in others[:SHOWN]]
        more = f"; {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        return "; ".join(said) + more if said else "there is no other process"

    def _place(self, process: int) -> str:
        row = self._row(process)
        match row.doing:
            case Doing.STARTING:
                return "had not begun"
            case Doing.COMPUTING:
                return f"was at {self._task(row.step)}"
            case Doing.COMMUNICATING:
                return f"was waiting in {self._task(row.step)}"
            case Doing.FINISHED:
                return "was done"
            case Doing.FAILED:
                return "had failed"

    def _path(self, index: int) -> tuple[str, ...]:
        step = self._step(index)
        return ("tasks", step.name) if step is not None else ()

    def _subject(self, index: int) -> tuple[str, ...]:
        step = self._step(index)
        return (str(step.task.id),) if step is not None else ()


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(str(rank) for rank in ranks[:8]) + (", ..." if len(ranks) > 8 else "")
    return f"ranks {shown}"


_SIGNALLED = re.compile(r"rank (\d+).{0,200}?on\s+signal\s+(\d+)", re.DOTALL)
"""Open MPI: "prterun noticed that process rank 1 with PID 7811 on node n exited on signal 9 (Killed)"."""

_HYDRA = re.compile(r"RANK (\d+) PID.{0,200}?KILLED BY SIGNAL:\s*(\d+)", re.DOTALL)
"""MPICH's and Intel's hydra."""


def gone(ended: Ended) -> tuple[int | None, str]:
    """Who was ended by a signal, as the launcher program tells it, and how."""
    text = "\n".join(ended.log)
    found = _SIGNALLED.search(text) or _HYDRA.search(text)
    if found is not None:
        return int(found.group(1)), f"was killed by {signal_name(int(found.group(2)))}"
    if ended.status > 128:
        return None, f"was killed by {signal_name(ended.status - 128)}"
    return None, f"ended by itself (status {ended.status})"


def signal_name(number: int) -> str:
    """A signal for people.

    >>> signal_name(9)
    'signal 9 (SIGKILL)'
    """
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
