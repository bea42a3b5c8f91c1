"""What every rule reads: the program, the facts derived from it, and helpers that word places and values alike.

Facts are computed when a rule first asks for them, once for all rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar, cast

from dtir.analysis.abstract import Surroundings
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.divisibility import read_facts
from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.flow import Flow, Walker
from dtir.analysis.happens import Order, happens_before
from dtir.analysis.liveness import Liveness, liveness
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from dtir.verify.severities import SEVERITIES

Mode: TypeAlias = Literal["check", "infer"]
Strictness: TypeAlias = Literal["mpi", "nccl", "gpu-p2p"]

T = TypeVar("T")

Found: TypeAlias = tuple[Flow, int, Deviation]


class Context:
    """The facts of one run.

    Args:
        program: a structurally valid program.
        mode: whether layouts are checked as stated or pending reductions are inferred.
        strictness: which orders a runtime tolerates.
    """

    def __init__(self, program: DistributedTaskIR, mode: Mode, strictness: Strictness) -> None:
        self.program = program
        self.mode: Mode = mode
        self.strictness: Strictness = strictness
        self.reader = ExchangeReader(program)
        sizes = {axis.name: axis.size for axis in program.mesh.axes}
        facts = read_facts(program.assume, sizes)
        self.around = Surroundings(self.reader.space, facts, program.bindings, mode == "infer")
        self._remembered: dict[str, object] = {}

    def remember(self, key: str, compute: Callable[[], T]) -> T:
        """The value of ``compute()``, computed at most once in this run."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        return cast("T", self._remembered[key])

    # -- facts ---------------------------------------------------------------------------------------------------------

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """What follows for the values of every scope."""
        walker = Walker(self.program, self.around, self.reader)
        return tuple(walker.walk(scope, path) for path, scope in self.program.scopes())

    def liveness(self, scope: int) -> Liveness:
        """Who makes and who reads the values of a scope, and what reaches its outputs; by the scope's number."""
        return self.remember(f"liveness {scope}", lambda: liveness(self.flows[scope].scope))

    @cached_property
    def _by_kind(self) -> dict[Kind, list[Found]]:
        found: dict[Kind, list[Found]] = {}
        for flow in self.flows:
            for item in flow.of_values:
                found.setdefault(item.deviation.kind, []).append((flow, item.index, item.deviation))
            for item in flow.of_tasks:
                found.setdefault(item.deviation.kind, []).append((flow, item.index, item.deviation))
        return found

    def deviations(self, *kinds: Kind) -> Iterator[Found]:
        """Deviations of some kinds, in the order of the program."""
        found = [item for kind in kinds for item in self._by_kind.get(kind, ())]
        if len(kinds) > 1:
            places = {id(flow): number for number, flow in enumerate(self.flows)}
            found.sort(key=lambda item: (places[id(item[0])], item[1]))
        yield from found

    @cached_property
    def faulty_tasks(self) -> frozenset[tuple[int, int]]:
        """Tasks with an error of layout, as (scope number, task number): what follows from them is not reported again."""
        return frozenset(
            (number, item.index)
            for number, flow in enumerate(self.flows)
            for item in flow.of_tasks
            if item.deviation.kind not in _MINOR
        )

    @cached_property
    def order(self) -> Order:
        """Happens-before among the tasks of the program's own list."""
        return happens_before(self.program)

    # -- words ---------------------------------------------------------------------------------------------------------

    def axes_text(self, axes: Sequence[str]) -> str:
        """Axes with their sizes: ``tp (2)``."""
        return ", ".join(f"{axis} ({self.around.space.sizes[axis]})" for axis in axes)

    def axes_text_declared(self, axes: Sequence[str]) -> str:
        """Axes of the declared mesh with their sizes."""
        return ", ".join(f"{axis} ({self.program.mesh.axis_size(axis)})" for axis in axes)


_MINOR = frozenset({Kind.REDUNDANT, Kind.CORRELATED_RANDOM, Kind.SCALE_FACTOR, Kind.SCALE_MIXED})


def task_name(task: DistributedTask) -> str:
    """What a message calls a task."""
    return task.name or f"{task.operation} {task.id.value[:8]}"


def value_name(value: DistributedValue) -> str:
    """What a message calls a value."""
    return value.name or f"value {value.id.value[:8]}"


def task_path(flow: Flow, index: int, *more: str) -> tuple[str, ...]:
    """Where a task stands."""
    return (*flow.path, "tasks", str(index), *more)


def value_path(flow: Flow, index: int, *more: str) -> tuple[str, ...]:
    """Where a value stands."""
    return (*flow.path, "values", str(index), *more)


def finding(
    code: str,
    message: str,
    path: tuple[str, ...],
    *,
    hint: str,
    subject: Sequence[str],
    related: Sequence[Related] = (),
    severity: Severity | None = None,
) -> Diagnostic:
    """A diagnostic with the severity that its code has."""
    return Diagnostic(
        code, message, path, severity or SEVERITIES[code], hint, tuple(dict.fromkeys(subject)), tuple(related)
    )


def listed(items: Sequence[object], most: int = 8) -> str:
    """A list for a message, cut at `most` with the number left out."""
    shown = ", ".join(str(item) for item in items[:most])
    return f"{shown}, ... ({len(items)} in all)" if len(items) > most else shown
