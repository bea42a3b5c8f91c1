"""Tasks and values of a program and all its regions, numbered through."""

from __future__ import annotations

from dataclasses import dataclass, field

from dtir.ir.program import DistributedTaskIR
from dtir.ir.program import Scope as ProgramScope
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir_app.findings import Places


@dataclass(slots=True)
class Numbering:
    """Where everything of a program stands when it is numbered through."""

    scopes: list[tuple[ProgramScope, int, int]] = field(default_factory=list)
    tasks: list[DistributedTask] = field(default_factory=list)
    values: list[DistributedValue] = field(default_factory=list)
    task_scope: list[int] = field(default_factory=list)
    value_scope: list[int] = field(default_factory=list)
    task_index: dict[str, int] = field(default_factory=dict)
    value_index: dict[str, int] = field(default_factory=dict)
    scoped_values: dict[tuple[int, str], int] = field(default_factory=dict)
    scoped_tasks: dict[tuple[int, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, program: DistributedTaskIR) -> Numbering:
        made = cls()
        for number, (_, scope) in enumerate(program.scopes()):
            made.scopes.append((scope, len(made.tasks), len(made.values)))
            for task in scope.tasks:
                made.task_index.setdefault(task.id.value, len(made.tasks))
                made.scoped_tasks.setdefault((number, task.id.value), len(made.tasks))
                made.tasks.append(task)
                made.task_scope.append(number)
            for value in scope.values:
                made.value_index.setdefault(value.id.value, len(made.values))
                made.scoped_values.setdefault((number, value.id.value), len(made.values))
                made.values.append(value)
                made.value_scope.append(number)
        return made

    @property
    def places(self) -> Places:
        """What resolving a diagnostic needs."""
        starts = [(first_task, first_value) for _, first_task, first_value in self.scopes]
        return self.task_index, self.value_index, starts
