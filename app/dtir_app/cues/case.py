"""What a picture is drawn from: a finding (or a selection), and the facts that the analysis derives, made once a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dtir.analysis.abstract import Abstract
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.flow import Flow, output_deviations
from dtir.analysis.states import State, declared_state
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.verify import Context, mode_of
from dtir.verify.alternatives import redundant_findings
from dtir.verify.lanes import LaneRuns
from dtir_app.cues.verdicts import Verdicts
from dtir_app.kinds import KINDS
from dtir_app.selection import of_task, of_value, selection_text
from dtir_app.store import Finding, Store

LARGE = 5_000
"""Tasks from which on facts are derived in another thread before anything is drawn from them."""


class Known:
    """What follows for one program; computed when first asked for. Structurally broken programs have no flows."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.verdicts = Verdicts(store.program)
        self._warm = False

    @property
    def ready(self) -> bool:
        """Whether asking for facts is quick: the program is small, or they have been derived."""
        return self._warm or len(self.store.tasks) <= LARGE

    def warm(self) -> None:
        """Derive what pictures and reasons read; for large programs in another thread."""
        context = self.context
        if context is not None:
            for scope in range(len(context.flows)):
                context.liveness(scope)
            redundant_findings(context)
        self._warm = True

    @cached_property
    def lanes(self) -> LaneRuns:
        """Runs of the program's communication, for its lanes."""
        return LaneRuns(self.store.program)

    @cached_property
    def context(self) -> Context | None:
        """What the rules of the verifier read; None where the structure is broken."""
        program = self.store.program
        return Context(program, mode_of(program), "nccl") if program.diagnostics().ok else None

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """What follows for the values of every scope; none where the structure is broken."""
        return self.context.flows if self.context is not None else ()


def known_of(store: Store) -> Known:
    """The facts of a store, kept with it."""
    found = store.memo.get("known")
    if not isinstance(found, Known):
        found = store.memo["known"] = Known(store)
    return found


@dataclass(frozen=True)
class Case:
    """One picture's subject.

    Args:
        store: the program.
        finding: what was found; None for a picture of something that is right.
        tasks: the tasks it is about, by number, most specific first.
        values: the values likewise.
        options: what was chosen in the picture.
    """

    store: Store
    finding: Finding | None
    tasks: tuple[int, ...]
    values: tuple[int, ...]
    options: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def code(self) -> str:
        return self.finding.code if self.finding is not None else ""

    @cached_property
    def known(self) -> Known:
        return known_of(self.store)

    @property
    def task(self) -> int:
        """The task that it is mainly about: that of the path, the maker of the value, or -1."""
        if self.tasks:
            return self.tasks[0]
        return int(self.store.values.producer[self.values[0]]) if self.values else -1

    @property
    def names(self) -> tuple[str, ...]:
        """Axes, ranks and other names that the finding speaks of."""
        return self.finding.names if self.finding is not None else ()

    @property
    def axes(self) -> tuple[str, ...]:
        """The mesh axes (or parts of them) that the finding names."""
        context = self.known.context
        known = {axis.name for axis in self.store.mesh.axes}
        if context is not None:
            known |= set(context.around.space.axes)
        return tuple(name for name in self.names if name in known)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that the finding names."""
        found = [name.removeprefix("rank ") for name in self.names if name.startswith("rank ")]
        return tuple(int(text) for text in found if text.isdecimal())

    @cached_property
    def deviation(self) -> Deviation | None:
        """The deviation that the finding words, where it is one of layouts."""
        context = self.known.context
        if context is None or self.finding is None or self.finding.code not in _KINDS:
            return None
        if self.finding.code == Kind.OUTPUT.value:
            return next(
                (item for place, item in output_deviations(context.flows[0], context.around) if self._returns(place)),
                None,
            )
        found: list[Deviation] = []
        for flow, index, item in context.deviations(_KINDS[self.finding.code]):
            if self._speaks_of(flow, index, item):
                found.append(item)
        exact = [item for item in found if set(item.axes) == set(self.axes)]
        return (exact or found or [None])[0]

    def _returns(self, place: int) -> bool:
        """Whether the program's output at a place is the value that the finding is about."""
        value = self.store.value_at(0, self.store.program.outputs[place].value)
        return value in self.values

    def _speaks_of(self, flow: Flow, index: int, item: Deviation) -> bool:
        """Whether a deviation of a task or value is the one of the finding."""
        scope = self.store.scopes[next(number for number, other in enumerate(self.known.flows) if other is flow)]
        if self.finding is not None and not self.finding.tasks:
            return scope.first_value + index in self.values
        return scope.first_task + index in self.tasks[:1]

    # -- tasks and values ------------------------------------------------------------------------------------------------

    def record(self, task: int) -> DistributedTask:
        return self.store.task_records[task]

    def value(self, value: int) -> DistributedValue:
        return self.store.value_records[value]

    def operands(self, task: int) -> list[int]:
        """Numbers of a task's operands; those that are not in its scope are left out."""
        scope = int(self.store.tasks.scope[task])
        found = [self.store.value_at(scope, item.value) for item in self.record(task).operand_values]
        return [value for value in found if value >= 0]

    def outputs(self, task: int) -> list[int]:
        """Numbers of a task's results."""
        scope = int(self.store.tasks.scope[task])
        found = [self.store.value_at(scope, item.value) for item in self.record(task).outputs]
        return [value for value in found if value >= 0]

    def operand(self, place: int | None) -> int:
        """The operand of the main task that a deviation names by its place; -1 when there is none."""
        if self.task < 0 or place is None:
            return -1
        names = self.record(self.task).operand_values
        scope = int(self.store.tasks.scope[self.task])
        return self.store.value_at(scope, names[place].value) if place < len(names) else -1

    def state(self, value: int) -> Abstract | None:
        """What is known of a value; None where nothing is."""
        scope = int(self.store.values.scope[value])
        if scope >= len(self.known.flows):
            return None
        return self.known.flows[scope].values.get(self.value(value).id)

    def declared(self, value: int) -> State | None:
        """What a value's layout says, over the parts of the mesh's axes."""
        context = self.known.context
        return declared_state(self.value(value).sharding, context.around.space) if context is not None else None

    def task_key(self, task: int) -> str:
        return selection_text(self.store, of_task(task))

    def value_key(self, value: int) -> str:
        return selection_text(self.store, of_value(value))

    def task_name(self, task: int) -> str:
        return self.store.tasks.name[task]

    def value_name(self, value: int) -> str:
        return self.store.values.name[value]

    def task_code(self, task: int) -> str:
        """What a picture writes on a task: the code of its kind, or its operation."""
        return KINDS[int(self.store.tasks.kind[task])].code or self.record(task).operation.name

    def axis_number(self, axis: str) -> int:
        """The place of a mesh axis among the colours; parts of an axis have its colour."""
        names = [item.name for item in self.store.mesh.axes]
        context = self.known.context
        if axis not in names and context is not None:
            axis = next((name for name, parts in context.around.space.parts.items() if axis in parts), axis)
        return names.index(axis) % 6 if axis in names else 0


_KINDS = {kind.value: kind for kind in Kind}
