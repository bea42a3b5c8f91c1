"""The reference: all ranks in one process, on numpy. Needs no library and no hardware."""

from __future__ import annotations

import numpy as np

from dtir.execute.backends.base import Capabilities, Probe
from dtir.execute.binding import Binding, BindingError, require_fit, spread
from dtir.execute.fabric import LocalFabric
from dtir.execute.session import Observer, Options, Session
from dtir.execute.steps import ExecPlan
from dtir.schema.diagnostics import Diagnostic


class NumpyBackend:
    """Runs every rank of a program in this process."""

    name = "numpy"

    def probe(self) -> Probe:
        """Always there."""
        return Probe(True, f"numpy {np.__version__}", Capabilities(devices=("cpu",)))

    def default_binding(self, plan: ExecPlan, processes: int | None = None) -> Binding:
        """All ranks in one process.

        Raises:
            BindingError: several processes are asked for.
        """
        binding = spread(self.name, plan.ranks, processes or 1)
        self._require_one(binding)
        return binding

    def obstacles(self, plan: ExecPlan, binding: Binding) -> list[Diagnostic]:
        """Nothing that is not known without it."""
        del plan, binding
        return []

    def prepare(self, plan: ExecPlan, binding: Binding, options: Options, observer: Observer | None = None) -> Session:
        """A session that holds all ranks.

        Raises:
            BindingError: the binding is for another number of ranks, or spreads them over processes.
            UnknownOperation: a local step has no evaluation.
        """
        require_fit(binding, plan.ranks)
        self._require_one(binding)
        return Session(plan, LocalFabric(range(plan.ranks)), options, np, observer)

    def _require_one(self, binding: Binding) -> None:
        if binding.processes != 1:
            raise BindingError(
                f"the numpy back end runs all ranks in one process, {binding.processes} are asked for: use --backend mpi"
            )
