"""Ranks spread over processes that communicate by MPI: real processes, real messages, the same plan.

`dtir run --backend mpi -n 4` starts the processes itself (`dtir.execute.launch`). Inside them this back end makes the
sessions: local steps are those of the numpy back end, communication goes through `MpiFabric`.
"""

from __future__ import annotations

import numpy as np

from dtir.execute.backends.base import Capabilities, Probe
from dtir.execute.backends.mpi_library import binding_version, missing
from dtir.execute.binding import Binding, BindingError, require_fit, spread
from dtir.execute.launch import LaunchError, find_launcher, launched, processors
from dtir.execute.session import Observer, Options, Session
from dtir.execute.steps import ExecPlan
from dtir.execute.watchdog import Unwatched, Watch
from dtir.schema.diagnostics import Diagnostic

FEWEST = 8
"""Ranks that get a process each even on a machine with fewer processors."""


class MpiBackend:
    """Runs the ranks of a program in several processes.

    Args:
        watch: told what this process does; None: nobody watches.
        measured: count what crosses the wire, where the library can.
    """

    name = "mpi"

    def __init__(self, watch: Watch | None = None, *, measured: bool = True) -> None:
        self._watch = watch or Unwatched()
        self._measured = measured

    def probe(self) -> Probe:
        """Whether MPI can be used here: mpi4py, and a launcher or processes that were launched already.

        Nothing is loaded: the process that asks need not be one of those that run.
        """
        reason = missing()
        if reason is not None:
            return Probe(False, reason)
        if launched() is not None:
            return Probe(True, f"mpi4py {binding_version()}, started from outside", _capabilities(wire_bytes=False))
        try:
            launcher = find_launcher()
        except LaunchError as error:
            return Probe(False, str(error))
        counts = launcher.vendor == "Open MPI"
        return Probe(True, f"{launcher.version}, mpi4py {binding_version()}", _capabilities(wire_bytes=counts))

    def default_binding(self, plan: ExecPlan, processes: int | None = None) -> Binding:
        """Ranks in order over processes; one process a rank, for programs of many ranks one a processor.

        Raises:
            BindingError: more processes than ranks, or another number than was started from outside.
        """
        started = launched()
        if started is not None:
            if processes is not None and processes != started.size:
                raise BindingError(
                    f"{started.launcher} has started {started.size} processes, -n says {processes}: leave -n out"
                )
            processes = started.size
        if processes is None:
            processes = min(plan.ranks, max(FEWEST, processors()))
        return spread(self.name, plan.ranks, processes)

    def obstacles(self, plan: ExecPlan, binding: Binding) -> list[Diagnostic]:
        """Collectives that are not done over several processes."""
        found: list[Diagnostic] = []
        if binding.processes == 1:
            return found
        for scope in plan.scopes:
            for step in scope.steps:
                if step.exchange is not None and (step.exchange.ragged or step.exchange.slices):
                    found.append(
                        Diagnostic(
                            "run.unsupported",
                            f"task {step.name}: {step.task.operation.name} with offsets as operands is not executed "
                            "over several processes",
                            ("tasks", step.name),
                            hint="run it with --backend numpy",
                            subject=(str(step.task.id),),
                        )
                    )
        return found

    def prepare(self, plan: ExecPlan, binding: Binding, options: Options, observer: Observer | None = None) -> Session:
        """A session for the ranks of this process; all processes of the run do this together.

        Raises:
            BindingError: the binding is for another number of ranks or processes.
            MpiError: MPI cannot be used, or keeps too few communicators.
            UnknownOperation: a local step has no evaluation.
        """
        from dtir.execute.backends.mpi_fabric import MpiFabric
        from dtir.execute.backends.mpi_world import world

        require_fit(binding, plan.ranks)
        found = world()
        if binding.processes != found.size:
            raise BindingError(f"the binding is for {binding.processes} processes, {found.size} run")
        counter = found.counter if self._measured else None
        fabric = MpiFabric(found, plan, binding, self._watch, counter)
        return Session(plan, fabric, options, np, observer)


def _capabilities(*, wire_bytes: bool) -> Capabilities:
    return Capabilities(wire_bytes=wire_bytes, clock="perf_counter (monotonic, common to a host)", processes=True)
