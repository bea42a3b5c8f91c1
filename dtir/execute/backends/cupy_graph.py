"""A program's steps captured into one CUDA graph: issued again for the price of one launch.

What can be captured is issued without a look at data: collectives, transfers, loops with a known number of turns, and local
steps that bring nothing from the host. A program with constants, a condition, or a step that runs on the host is not.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtir.execute.backends.cupy_runtime import DeviceError, Graph
from dtir.execute.backends.cupy_session import DeviceSession
from dtir.execute.session import ExecutionError


@dataclass(frozen=True, slots=True)
class CapturedRun:
    """A run that can be repeated.

    Args:
        session: the session, whose inputs and outputs keep their places in memory; it executes nothing else any more.
        graph: its steps.
    """

    session: DeviceSession
    graph: Graph

    def launch(self) -> None:
        """Issue all steps; `session.sync` waits for them, `session.read_slot` reads what came out."""
        self.graph.launch(self.session.lane.compute)


def capture(session: DeviceSession) -> CapturedRun:
    """Run all steps once, so that their memory is there and their kernels are compiled, and capture them then.

    Args:
        session: with its inputs loaded, and without an observer, who would have to wait for every step.

    Raises:
        DeviceError: something in the program cannot be captured; the message names it. The session is of no more use.
        ExecutionError: a step fails.
    """
    lane, steps = session.lane, session.plan.main.steps
    inputs = session.held()
    for step in steps:
        session.execute(step)
    session.sync()
    if session.on_host:
        name, why = next(iter(session.on_host.items()))
        raise DeviceError(f"step {name} runs on the host ({why}) and cannot be captured")
    session.hold(inputs)
    try:
        with lane.runtime.capture(lane.compute, lane.arena) as found:
            for step in steps:
                session.execute(step)
            lane.join()
    except ExecutionError as error:
        raise DeviceError(f"step {error.step.name} cannot be captured: {error}") from error
    if session.on_host:
        name, why = next(iter(session.on_host.items()))
        raise DeviceError(f"step {name} cannot be captured: {why}")
    session.hold({**inputs, **session.held()})
    session.close_for_steps("its steps are captured in a graph")
    return CapturedRun(session, found.graph)
