"""The process that a launcher starts: reads the job, runs its ranks, writes what it hands back.

Not for people: ``dtir _mpi-worker FOLDER``, where the folder is that of `launch_job`.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from dtir.execute.backends.mpi_library import MpiError
from dtir.execute.backends.mpi_world import World, world
from dtir.execute.files import write_bytes
from dtir.execute.launch import Launched, LaunchError, launched, require_size
from dtir.execute.launch_board import Board
from dtir.execute.launch_job import Failure, Job, read_inputs
from dtir.execute.launch_participant import Participant, Task
from dtir.execute.plan import make_plan
from dtir.execute.steps import ExecPlan
from dtir.ir.program import DistributedTaskIR
from dtir.ops import load_op_module

NAME = "_mpi-worker"
"""What the command is called; it is not listed."""

COULD_NOT_RUN = 2


def main(arguments: Sequence[str]) -> int:
    """Run one process of a job.

    Args:
        arguments: the folder of the job.

    Returns:
        The exit status.
    """
    job = Job.read(Path(arguments[0]))
    try:
        found = _world(job)
    except (MpiError, LaunchError) as error:
        started = launched()
        _write_failure(job, Failure(started.process if started else 0, (), "run.launch", str(error)))
        return COULD_NOT_RUN
    for name in job.op_modules:
        load_op_module(name)  # the launcher could, so this process can
    program = DistributedTaskIR.require_from_json(job.program.read_text(encoding="utf-8"))
    plan = _plan(program, job.algorithm)
    task = Task(plan, job.binding, job.seed, job.options, job.timing, job.limit_s)
    board = Board.open(job.board, job.processes)
    launcher = job.launcher if platform.node() == job.host else 0

    def report(failure: Failure | None, done: bytes) -> None:
        if failure is not None:
            _write_failure(job, failure)
        write_bytes(job.result(found.process), done)

    inputs = read_inputs(job.inputs, plan, job.binding.ranks_of(found.process), job.seed)
    Participant(found, task, board, launcher, report).run(
        inputs, lambda result: write_bytes(job.result(found.process), result)
    )
    return 0


def _world(job: Job) -> World:
    """The processes; as many as the job is for.

    Raises:
        MpiError: MPI cannot be used.
        LaunchError: there are more or fewer.
    """
    started = launched()
    found = world()
    require_size(Launched(started.launcher if started else "the launcher", job.processes, found.process), found.size)
    return found


def _plan(program: DistributedTaskIR, algorithm: str) -> ExecPlan:
    """The plan that the launcher has made as well."""
    return make_plan(program, algorithm=algorithm).or_raise()


def _write_failure(job: Job, failure: Failure) -> None:
    write_bytes(job.failure(failure.process), failure.to_json().encode())
