"""One task list read for matching: who makes and reads what, and classes of tasks that do the same.

A region that is called from one place is read where it is called: whether a compiler outlines or fuses is no difference.

Two tasks are of one *full* class when they do the same with the same, all the way back to the inputs; of one *loose* class when
that holds for operations and element types only. Classes are numbers that both programs share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from dtir.analysis.executions import entered
from dtir.diff.facts import PROVENANCE, Facts, commutes, task_facts, task_kind, value_facts
from dtir.ir.ids import RegionId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Call, DistributedTask, Region
from dtir.ir.values import DistributedValue

CYCLE = -1
"""Class of what depends on itself; such a program is reported by the verifier, and is compared task by task all the same."""


class Numbers:
    """Gives equal things one number; shared by the two programs."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, thing: Hashable) -> int:
        """The number of a thing."""
        return self._known.setdefault(thing, len(self._known))


@dataclass(slots=True)
class Scope:
    """The program's own task list or a region, with what matching looks at.

    Args:
        name: of the region; empty for the program.
        region: None for the program itself.
        inputs, outputs: its interface.
        tasks: as they stand, with those of inlined regions where they are called.
        homes: name of the region that holds each task; empty for the program itself.
        reads, makes: operands and results of every task.
        values: every value.
        facts: of every task.
        producer: task and position that make a value.
        readers: tasks that read a value, each once.
        full, loose: class of every task.
        input_at: position of every input.
    """

    name: str
    region: RegionId | None
    inputs: Sequence[ValueId]
    outputs: Sequence[ValueId]
    tasks: list[DistributedTask] = field(default_factory=list[DistributedTask], repr=False)
    homes: list[str] = field(default_factory=list[str], repr=False)
    reads: list[tuple[ValueId, ...]] = field(default_factory=list[tuple[ValueId, ...]], repr=False)
    makes: list[tuple[ValueId, ...]] = field(default_factory=list[tuple[ValueId, ...]], repr=False)
    values: dict[ValueId, DistributedValue] = field(default_factory=dict[ValueId, DistributedValue], repr=False)
    facts: list[Facts] = field(default_factory=list[Facts], repr=False)
    producer: dict[ValueId, tuple[int, int]] = field(default_factory=dict[ValueId, tuple[int, int]], repr=False)
    readers: dict[ValueId, list[int]] = field(default_factory=dict[ValueId, list[int]], repr=False)
    full: list[int] = field(default_factory=list[int], repr=False)
    loose: list[int] = field(default_factory=list[int], repr=False)
    input_at: dict[ValueId, int] = field(default_factory=dict[ValueId, int], repr=False)


class Scopes:
    """All task lists of one program.

    Args:
        program: the program; need not be valid.
        numbers: shared with the other program.
        labels: what the program's own inputs are called in both programs; regions are entered by position.
        axis_names: how the other program calls axes that have another name here.
    """

    def __init__(
        self,
        program: DistributedTaskIR,
        numbers: Numbers,
        labels: Mapping[ValueId, Hashable],
        axis_names: Mapping[str, str],
    ) -> None:
        self.program = program
        self._axis_names = axis_names
        self._labels = labels
        self._numbers = numbers
        self._regions: dict[RegionId, Region] = {region.id: region for region in program.regions}
        self._by_name = {region.name: region.id for region in program.regions}
        self._class_of: dict[RegionId, tuple[int, int]] = {}
        self._inlined = self._called_once()
        self.regions: dict[RegionId, Scope] = {}
        for region in self._inner_first():
            if region.id in self._inlined:
                continue
            made = self._read(region.name, region.id, region)
            self.regions[region.id] = made
            self._class_of[region.id] = self._region_class(made)
        self.main = self._read("", None, program)

    def _inner_first(self) -> list[Region]:
        """Regions before those that enter them; a region that enters itself comes where it is met."""
        done: set[RegionId] = set()
        order: list[Region] = []
        for first in self._regions.values():
            pending: list[tuple[Region, bool]] = [(first, False)]
            while pending:
                region, left = pending.pop()
                if left:
                    order.append(region)
                    continue
                if region.id in done:
                    continue
                done.add(region.id)
                pending.append((region, True))
                pending += [(self._regions[inner], False) for inner in self._inside(region) if inner in self._regions]
        return order

    def _inside(self, region: Region) -> list[RegionId]:
        named = [
            self._by_name[value]
            for task in region.tasks
            for key, value in task.attributes.items()
            if isinstance(value, str) and value in self._by_name and key not in PROVENANCE
        ]
        return [*(inner for task in region.tasks for inner, _ in entered(task.body)), *named]

    def _called_once(self) -> set[RegionId]:
        """Regions that one call enters, and nothing else: no loop, no reduction, no call that something waits for later."""
        entries: Counter[RegionId] = Counter()
        plain: set[RegionId] = set()
        waited = {task for one in self.program.all_tasks() for task in one.completes}
        for task in self.program.all_tasks():
            for inner, _ in entered(task.body):
                entries[inner] += 1
                region = self._regions.get(inner)
                if (
                    isinstance(task.body, Call)
                    and task.id not in waited
                    and not task.completes
                    and region is not None
                    and len(region.inputs) == len(task.operand_values)
                    and len(region.outputs) == len(task.outputs)
                ):
                    plain.add(inner)
            for key, value in task.attributes.items():
                if isinstance(value, str) and value in self._by_name and key not in PROVENANCE:
                    entries[self._by_name[value]] += 1
        return {region for region in plain if entries[region] == 1 and not self._enters_itself(region)}

    def _enters_itself(self, region: RegionId) -> bool:
        seen: set[RegionId] = set()
        pending = [region]
        while pending:
            for inner in self._inside(self._regions[pending.pop()]):
                if inner == region:
                    return True
                if inner in self._regions and inner not in seen:
                    seen.add(inner)
                    pending.append(inner)
        return False

    def _read(self, name: str, region: RegionId | None, scope: DistributedTaskIR | Region) -> Scope:
        # What a value of an inlined region, or a result of its call, is called outside.
        alias: dict[ValueId, ValueId] = {}

        def outside(value: ValueId) -> ValueId:
            while value in alias:
                value = alias[value]
            return value

        made = Scope(name, region, scope.inputs, ())
        made.input_at = {value: at for at, value in enumerate(scope.inputs)}
        pending: list[tuple[DistributedTask, str]] = [(task, name) for task in reversed(scope.tasks)]
        made.values.update((value.id, value) for value in scope.values)
        while pending:
            task, home = pending.pop()
            body = task.body
            if isinstance(body, Call) and body.region in self._inlined:
                inner = self._regions[body.region]
                made.values.update((value.id, value) for value in inner.values)
                for value, operand in zip(inner.inputs, task.operand_values, strict=True):
                    if value != operand:
                        alias[value] = operand
                for value, output in zip(task.outputs, inner.outputs, strict=True):
                    if value != output:
                        alias[value] = output
                pending += [(one, inner.name) for one in reversed(inner.tasks)]
                continue
            made.tasks.append(task)
            made.homes.append(home)
        for at, task in enumerate(made.tasks):
            made.facts.append(self._facts(task))
            made.reads.append(tuple(outside(value) for value in task.operand_values))
            made.makes.append(tuple(outside(value) for value in task.outputs))
            for place, output in enumerate(made.makes[at]):
                made.producer.setdefault(output, (at, place))
            for value in dict.fromkeys(made.reads[at]):
                made.readers.setdefault(value, []).append(at)
        made.outputs = tuple(outside(value) for value in scope.outputs)
        self._classify(made)
        return made

    def _facts(self, task: DistributedTask) -> Facts:
        """Facts of a task; a computation that an attribute names counts by what it does, not by its name."""
        facts = task_facts(task, self.program, self._axis_names)
        for key, value in task.attributes.items():
            if isinstance(value, str) and value in self._by_name and key not in PROVENANCE:
                number = self._class_of.get(self._by_name[value], (CYCLE, CYCLE))[0]
                facts[f"attributes.{key}"] = f"computation #{number}"
        return facts

    def _classify(self, scope: Scope) -> None:
        scope.full = [CYCLE] * len(scope.tasks)
        scope.loose = [CYCLE] * len(scope.tasks)
        for at in _inputs_first(scope):
            task, facts = scope.tasks[at], scope.facts[at]
            entered_full = [self._class_of.get(inner, (CYCLE, CYCLE)) for inner, _ in entered(task.body)]
            operands = [self.value_class(scope, value) for value in scope.reads[at]]
            if commutes(task):
                operands.sort()
            made = [scope.values[output] for output in scope.makes[at] if output in scope.values]
            full = (
                tuple(sorted(facts.items())),
                tuple(number for number, _ in operands),
                tuple(number for number, _ in entered_full),
                tuple(tuple(self.value_facts(value).items()) for value in made),
            )
            loose = (
                facts["operation"],
                task_kind(task),
                tuple(number for _, number in operands),
                tuple(number for _, number in entered_full),
                tuple(value.type.dtype for value in made),
            )
            scope.full[at] = self._numbers.of(("full", full))
            scope.loose[at] = self._numbers.of(("loose", loose))

    def value_facts(self, value: DistributedValue) -> Facts:
        """Facts of a value, with the axis names of the other program."""
        return value_facts(value, self._axis_names)

    def value_class(self, scope: Scope, value: ValueId) -> tuple[int, int]:
        """Full and loose class of a value."""
        made = scope.producer.get(value)
        if made is not None:
            at, place = made
            return self._numbers.of((scope.full[at], place)), self._numbers.of((scope.loose[at], place))
        known = scope.values.get(value)
        facts = tuple(self.value_facts(known).items()) if known is not None else ()
        at: Hashable = scope.input_at.get(value, CYCLE)
        if scope.region is None:
            at = self._labels.get(value, at)
        dtype = known.type.dtype if known is not None else ""
        return self._numbers.of(("in", at, facts)), self._numbers.of(("in", at, dtype))

    def _region_class(self, scope: Scope) -> tuple[int, int]:
        outputs = [self.value_class(scope, value) for value in scope.outputs]
        full = (
            len(scope.inputs),
            tuple(number for number, _ in outputs),
            frozenset(Counter(scope.full).items()),
        )
        loose = (len(scope.inputs), tuple(number for _, number in outputs))
        return self._numbers.of(("region", full)), self._numbers.of(("region loose", loose))


def _inputs_first(scope: Scope) -> list[int]:
    """Tasks after those that make what they read; those on a cycle come last."""
    waits = [
        sum(1 for value in set(reads) if value in scope.producer and scope.producer[value][0] != at)
        for at, reads in enumerate(scope.reads)
    ]
    ready = [at for at in reversed(range(len(scope.tasks))) if waits[at] == 0]
    order: list[int] = []
    while ready:
        at = ready.pop()
        order.append(at)
        for output in scope.makes[at]:
            if scope.producer.get(output, (CYCLE, 0))[0] != at:
                continue
            for reader in scope.readers.get(output, ()):
                if reader == at:
                    continue
                waits[reader] -= 1
                if waits[reader] == 0:
                    ready.append(reader)
    if len(order) < len(scope.tasks):
        known = set(order)
        order += [at for at in range(len(scope.tasks)) if at not in known]
    return order
