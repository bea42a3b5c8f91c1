"""The difference of two programs: mesh, interface, layouts, tasks, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from dtir.analysis.summary import source_of
from dtir.diff.bytes_moved import bytes_by_kind, total_bytes
from dtir.diff.entries import Change, Match, Present
from dtir.diff.facts import axis_names, commutes, differences, mesh_facts, task_kind
from dtir.diff.matching import Matching, match_scopes, pair_inputs
from dtir.diff.scopes import Numbers, Scope, Scopes
from dtir.ir.ids import NodeId, RegionId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Branch, Call, Collective, DistributedTask, Loop, PointToPoint
from dtir.ir.values import DistributedValue


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between a program and another one.

    Args:
        added: what only the second has.
        removed: what only the first has.
        changed: fields of matched things that differ.
        bytes_before: communication of the first in all: the sum of ``message_bytes`` times executions over collectives
            and transfers; None where a number is missing (symbolic, or the data decide how often).
        bytes_after: the same of the second.
        bytes_by_kind: before and after by kind of communication, where there is a number.
        matched: pairs of tasks, by how they were found.
        tasks: the task of the second by that of the first.
        values: likewise for values.
    """

    added: tuple[Present, ...]
    removed: tuple[Present, ...]
    changed: tuple[Change, ...]
    bytes_before: int | None
    bytes_after: int | None
    bytes_by_kind: dict[str, tuple[int, int]]
    matched: dict[Match, int]
    tasks: dict[NodeId, NodeId] = field(repr=False)
    values: dict[ValueId, ValueId] = field(repr=False)

    @property
    def equal(self) -> bool:
        """True when nothing differs."""
        return not (self.added or self.removed or self.changed)

    @property
    def bytes_delta(self) -> int | None:
        """Communication of the second less that of the first, in bytes; None where one is not known."""
        if self.bytes_before is None or self.bytes_after is None:
            return None
        return self.bytes_after - self.bytes_before


def diff_programs(left: DistributedTaskIR, right: DistributedTaskIR) -> Diff:
    """Compare two programs, valid or not.

    Names, ids, order of independent tasks and metadata do not count; what the programs do, on which ranks and in which layout,
    does.
    """
    if left is right:
        return Diff((), (), (), total_bytes(left), total_bytes(right), bytes_by_kind(left, right), {}, {}, {})
    return _Differ(left, right).diff()


Changed = Callable[[str, str, str], None]


class _Differ:
    def __init__(self, left: DistributedTaskIR, right: DistributedTaskIR) -> None:
        self.left, self.right = left, right
        numbers = Numbers()
        self._inputs = pair_inputs(_inputs_of(left), _inputs_of(right))
        labels: dict[ValueId, Hashable] = {
            left.inputs[at]: ("both", number) for number, (at, _) in enumerate(self._inputs)
        }
        others: dict[ValueId, Hashable] = {
            right.inputs[at]: ("both", number) for number, (_, at) in enumerate(self._inputs)
        }
        for at, value in enumerate(left.inputs):
            labels.setdefault(value, ("first", at))
        for at, value in enumerate(right.inputs):
            others.setdefault(value, ("second", at))
        self._axis_names = axis_names(left.mesh, right.mesh)
        self._before = Scopes(left, numbers, labels, {})
        self._after = Scopes(right, numbers, others, self._axis_names)
        self._added: list[Present] = []
        self._removed: list[Present] = []
        self._changed: list[Change] = []
        self._tasks: dict[NodeId, NodeId] = {}
        self._values: dict[ValueId, ValueId] = {}
        self._how: Counter[Match] = Counter()

    def diff(self) -> Diff:
        self._mesh()
        main = [(self.left.inputs[at], self.right.inputs[other]) for at, other in self._inputs]
        done: set[RegionId] = set()
        done_after: set[RegionId] = set()
        pending: list[tuple[Scope, Scope, Sequence[tuple[ValueId, ValueId]]]] = [
            (self._before.main, self._after.main, main)
        ]
        while pending:
            before, after, inputs = pending.pop(0)
            matching = match_scopes(before, after, inputs)
            self._scope(before, after, matching)
            for region, other in self._entered(before, after, matching):
                if region in done or other in done_after:
                    continue
                done.add(region)
                done_after.add(other)
                inner, outer = self._before.regions[region], self._after.regions[other]
                pending.append((inner, outer, list(zip(inner.inputs, outer.inputs, strict=False))))
        # What no matched task enters is there on one side only; computations of reductions count with their tasks.
        entered_left = {inner for scope in self._all(self._before) for inner in _regions_of(scope.tasks)}
        entered_right = {inner for scope in self._all(self._after) for inner in _regions_of(scope.tasks)}
        for region, scope in self._before.regions.items():
            if region not in done and region in entered_left:
                self._removed += [
                    _present_task(task, home) for task, home in zip(scope.tasks, scope.homes, strict=True)
                ]
        for region, scope in self._after.regions.items():
            if region not in done_after and region in entered_right:
                self._added += [_present_task(task, home) for task, home in zip(scope.tasks, scope.homes, strict=True)]
        return Diff(
            tuple(self._added),
            tuple(self._removed),
            tuple(self._changed),
            total_bytes(self.left),
            total_bytes(self.right),
            bytes_by_kind(self.left, self.right),
            dict(self._how),
            self._tasks,
            self._values,
        )

    @staticmethod
    def _all(scopes: Scopes) -> list[Scope]:
        return [scopes.main, *scopes.regions.values()]

    def _entered(self, before: Scope, after: Scope, matching: Matching) -> Iterator[tuple[RegionId, RegionId]]:
        for at in sorted(matching.forward):
            mine = _regions_of([before.tasks[at]])
            theirs = _regions_of([after.tasks[matching.forward[at]]])
            for region, other in zip(mine, theirs, strict=False):
                if region in self._before.regions and other in self._after.regions:
                    yield region, other

    # -- mesh and interface --------------------------------------------------------------------------------------------

    def _mesh(self) -> None:
        before, after = mesh_facts(self.left.mesh), mesh_facts(self.right.mesh)
        if self._axis_names:
            self._changed.append(
                Change("mesh", "axes", "axes", "names of the axes", "names of the axes", "", "names",
                       before["axes"], after["axes"], Match.STRUCTURE)
            )  # fmt: skip
            return
        for name, size, other in differences(before, after):
            axis = name.removeprefix("axis ")
            if name == "axes" or (size and other):
                what = "order of the axes" if name == "axes" else axis
                if name == "axes" and sorted(size.split(" x ")) != sorted(other.split(" x ")):
                    continue  # said by the axes themselves
                change_field = "axes" if name == "axes" else f"size of {axis}"
                self._changed.append(
                    Change("mesh", axis, axis, what, what, "", change_field, size, other, Match.LINEAGE)
                )
            elif size:
                self._removed.append(Present("axis", axis, f"{axis}={size}"))
            else:
                self._added.append(Present("axis", axis, f"{axis}={other}"))

    def _scope(self, before: Scope, after: Scope, matching: Matching) -> None:
        self._values.update(matching.values)
        self._how.update(matching.how.values())
        self._interface(before, after, matching)
        for at, task in enumerate(before.tasks):
            other_at = matching.forward.get(at)
            if other_at is None:
                self._removed.append(_present_task(task, before.homes[at]))
                continue
            other = after.tasks[other_at]
            self._tasks[task.id] = other.id
            self._task(before, at, after, other_at, matching)
        for at, task in enumerate(after.tasks):
            if at not in matching.backward:
                self._added.append(_present_task(task, after.homes[at]))
        if before.region is None:
            self._program()

    def _interface(self, before: Scope, after: Scope, matching: Matching) -> None:
        if before.region is not None:
            for at in range(min(len(before.inputs), len(after.inputs))):
                self._value(before, before.inputs[at], after, after.inputs[at], "input", Match.ORDER)
        else:
            paired = {self.left.inputs[at] for at, _ in self._inputs}
            other_paired = {self.right.inputs[at] for _, at in self._inputs}
            for at, other in self._inputs:
                self._value(before, self.left.inputs[at], after, self.right.inputs[other], "input", Match.LINEAGE)
            self._removed += [_present_value("input", before, value) for value in before.inputs if value not in paired]
            self._added += [
                _present_value("input", after, value) for value in after.inputs if value not in other_paired
            ]
        for number in range(max(len(before.outputs), len(after.outputs))):
            if number >= len(before.outputs):
                self._added.append(_present_value("output", after, after.outputs[number]))
            elif number >= len(after.outputs):
                self._removed.append(_present_value("output", before, before.outputs[number]))
            elif matching.values.get(before.outputs[number]) != after.outputs[number]:
                left, right = _label(before, before.outputs[number]), _label(after, after.outputs[number])
                self._changed.append(
                    Change(
                        "output",
                        str(before.outputs[number]),
                        str(after.outputs[number]),
                        left,
                        right,
                        "",
                        f"output {number}",
                        left,
                        right,
                        Match.ORDER,
                        before.name,
                    )
                )

    def _program(self) -> None:
        for name in ("issue", "limits", "assume", "bindings", "strict_order"):
            before, after = getattr(self.left, name), getattr(self.right, name)
            if name == "issue":
                before, after = self._issue(self.left), self._issue(self.right)
            if before != after:
                self._changed.append(
                    Change(
                        "program", name, name, self.left.name, self.right.name, "", name, _short(before), _short(after),
                        Match.LINEAGE,
                    )
                )  # fmt: skip

    def _issue(self, program: DistributedTaskIR) -> tuple[tuple[int, tuple[tuple[NodeId, ...], ...]], ...]:
        """Issue order with tasks named as the second program names them."""
        own = self._tasks if program is self.left else {}
        return tuple(
            (entry.rank, tuple(tuple(own.get(task, task) for task in step) for step in entry.steps))
            for entry in program.issue
        )

    # -- tasks and values ------------------------------------------------------------------------------------------------

    def _task(self, before: Scope, at: int, after: Scope, other_at: int, matching: Matching) -> None:
        task, other, how = before.tasks[at], after.tasks[other_at], matching.how[at]
        name, other_name = task.name or str(task.id), other.name or str(other.id)

        def changed(field_name: str, left: str, right: str) -> None:
            self._changed.append(
                Change(
                    "task", str(task.id), str(other.id), name, other_name, task_kind(task), field_name, left, right, how,
                    before.homes[at],
                )
            )  # fmt: skip

        if how is Match.EXACT:
            return
        for found in differences(before.facts[at], after.facts[other_at]):
            if "computation #" in found[1] or "computation #" in found[2]:
                changed(found[0], "one computation" if found[1] else "", "another computation" if found[2] else "")
            else:
                changed(*found)
        self._reads(before, at, after, other_at, matching, changed)
        if len(task.outputs) != len(other.outputs):
            changed("outputs", str(len(task.outputs)), str(len(other.outputs)))
        for value, other_value in zip(before.makes[at], after.makes[other_at], strict=False):
            self._value(before, value, after, other_value, "value", how, before.homes[at])

    def _reads(self, before: Scope, at: int, after: Scope, other_at: int, matching: Matching, changed: Changed) -> None:
        """Operands that are not each other's partner; what a task that came or went stands between is said by that task."""
        mine, theirs = before.reads[at], after.reads[other_at]
        if len(mine) != len(theirs):
            changed("reads", ", ".join(_label(before, v) for v in mine), ", ".join(_label(after, v) for v in theirs))
            return
        if commutes(before.tasks[at]) and matching.values.get(mine[0]) != theirs[0]:
            theirs = tuple(reversed(theirs))
        for value, other_value in zip(mine, theirs, strict=True):
            if matching.values.get(value) == other_value:
                continue
            made, other_made = before.producer.get(value), after.producer.get(other_value)
            gone = made is not None and made[0] not in matching.forward
            came = other_made is not None and other_made[0] not in matching.backward
            if not gone and not came:
                changed("reads", _label(before, value), _label(after, other_value))

    def _value(
        self, before: Scope, value: ValueId, after: Scope, other: ValueId, what: str, how: Match, home: str = ""
    ) -> None:
        known, other_known = before.values.get(value), after.values.get(other)
        if known is None or other_known is None:
            return
        for name, left, right in differences(self._before.value_facts(known), self._after.value_facts(other_known)):
            self._changed.append(
                Change(
                    what,
                    str(value),
                    str(other),
                    _label(before, value),
                    _label(after, other),
                    known.role.value,
                    name,
                    left,
                    right,
                    how,
                    home,
                )
            )


def _inputs_of(program: DistributedTaskIR) -> list[DistributedValue]:
    known = {value.id: value for value in program.values}
    return [known[value] for value in program.inputs if value in known]


def _regions_of(tasks: Sequence[DistributedTask]) -> list[RegionId]:
    found: list[RegionId] = []
    for task in tasks:
        match task.body:
            case Call(region=region):
                found.append(region)
            case Loop(body=body, condition=condition):
                found += [body] if condition is None else [body, condition]
            case Branch(regions=regions):
                found += regions
            case _:
                pass
    return found


def _label(scope: Scope, value: ValueId) -> str:
    known = scope.values.get(value)
    return (known.name if known is not None else "") or str(value)


def _present_task(task: DistributedTask, region: str) -> Present:
    number: int | None = None
    if isinstance(task.body, Collective | PointToPoint) and isinstance(task.body.spec.message_bytes, int):
        number = task.body.spec.message_bytes
    return Present(
        "task",
        str(task.id),
        task.name or str(task.id),
        task_kind(task),
        str(task.operation),
        source_of(task) or "",
        number,
        region,
    )


def _present_value(what: str, scope: Scope, value: ValueId) -> Present:
    known = scope.values.get(value)
    return Present(what, str(value), _label(scope, value), known.role.value if known else "", region=scope.name)


def _short(value: object) -> str:
    return str(value)
