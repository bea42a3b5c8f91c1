"""One process of a run: runs its ranks under a watchdog, and says why where it ends before its time."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from dtir.execute.backends.base import Capabilities, Probe
from dtir.execute.backends.mpi import MpiBackend
from dtir.execute.backends.mpi_world import World
from dtir.execute.binding import Binding
from dtir.execute.data import Inputs
from dtir.execute.launch_board import Board, Doing
from dtir.execute.launch_job import Failure, pack_result
from dtir.execute.runner import Recorder, RunResult, Timing, make_record, run_plan
from dtir.execute.session import ExecutionError, Options
from dtir.execute.steps import ExecPlan
from dtir.execute.watchdog import Stall, Watchdog, Why, is_alive

FAILED = 70
"""Exit status of a process in which a step failed (`EX_SOFTWARE` of sysexits.h)."""

GRACE_S = 1.0
"""The other processes get so long to write down what they have, when one has failed."""


@dataclass(frozen=True, slots=True)
class Task:
    """What all processes of a run are told alike.

    Args:
        plan: the plan.
        binding: which process hosts which rank.
        seed: what the data came from; None: a file.
        options: how sessions run.
        timing: repetitions.
        limit_s: how long a communication step may wait.
    """

    plan: ExecPlan
    binding: Binding
    seed: int | None
    options: Options
    timing: Timing
    limit_s: float


class Participant:
    """One process of a run.

    Args:
        world: the processes.
        task: what is to be run.
        board: what every process does.
        launcher: process id of the launcher, where it is on this host; 0: nobody to look after.
        report: told of a failure, and given what is done so far, before the process ends; called in the main thread or in
            the watchdog's.
    """

    def __init__(
        self, world: World, task: Task, board: Board, launcher: int, report: Callable[[Failure | None, bytes], None]
    ) -> None:
        self._world = world
        self._task = task
        self._board = board
        self._report = report
        self._ranks = task.binding.ranks_of(world.process)
        self._recorder = Recorder(whole=task.binding.processes == 1, process=world.process)
        self._watchdog = Watchdog(board, world.process, task.limit_s, self._ended, launcher)
        self._backend = MpiBackend(self._watchdog)
        measured = world.counter is not None
        library = world.library if measured else f"{world.library}; bytes {world.unmeasured}"
        self._probe = Probe(
            True, library, Capabilities(wire_bytes=measured, clock="perf_counter (of the host)", processes=True)
        )

    def run(self, inputs: Inputs, deliver: Callable[[bytes], None]) -> None:
        """Run, and hand the result over; a failure ends the process, and with it the whole run.

        Only then is the process done: one that fails waits for the others before it ends them all, and would not wait for
        a result that is still on its way.
        """
        self._watchdog.start()
        with _Failing(self):
            result = self._run(inputs)
            deliver(pack_result(result.record, result.spent, result.outputs))
        self._watchdog.finish()

    def _run(self, inputs: Inputs) -> RunResult:
        task = self._task
        return run_plan(
            task.plan,
            self._backend,
            task.binding,
            inputs,
            timing=task.timing,
            options=task.options,
            probe=self._probe,
            progress=lambda done, total: self._watchdog.done(done),
            recorder=self._recorder,
        )

    def partial(self) -> bytes:
        """What was recorded so far."""
        task = self._task
        record = make_record(
            task.plan,
            self._backend,
            task.binding,
            self._recorder,
            task.seed,
            task.timing,
            task.options,
            self._probe,
            complete=False,
        )
        return pack_result(record, self._recorder.spent)

    def _ended(self, stall: Stall) -> None:
        """The watchdog ends the process."""
        failure = None
        if stall.why is Why.STALLED:
            failure = Failure(
                self._world.process,
                self._ranks,
                "run.stalled",
                f"waited {stall.seconds:.1f} s",
                stall.step,
                stall.group,
                time.perf_counter_ns(),
            )
        self._report(failure, self.partial())

    def fail(self, code: str, message: str, step: int) -> None:
        """Say why, let the others write down what they have, and end the run."""
        row = self._board.read(self._world.process)
        now = time.perf_counter_ns()
        self._watchdog.stand_down()
        self._report(Failure(self._world.process, self._ranks, code, message, step, row.group, now), self.partial())
        # Not before: another process that fails too ends them all as soon as everybody is done.
        self._watchdog.finish(failed=True)
        self._board.stop()
        self._wait_for_others()
        self._world.abort(FAILED)

    def _wait_for_others(self) -> None:
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            rows = [row for number, row in enumerate(self._board.rows()) if number != self._world.process and row.pid]
            if all(row.doing in (Doing.FINISHED, Doing.FAILED) or not is_alive(row.pid) for row in rows):
                return
            time.sleep(0.02)


class _Failing:
    """Whatever goes wrong inside is reported, and ends the run: the others would wait for this process for ever."""

    def __init__(self, participant: Participant) -> None:
        self._participant = participant

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, ExecutionError):
            self._participant.fail(error.code, str(error), error.step.index)
            return
        traceback.print_exception(error, file=sys.stderr)
        frames = traceback.extract_tb(trace)
        where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
        self._participant.fail("run.crashed", f"{type(error).__name__}: {error}{where}", -1)
