"""From a program to a plan: one total order, steps over slots, groups with global numbers, planned bytes, memory.

Everything that would stop a run is found here, before anything is started, and all of it in one go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from dtir.execute.communication import ExchangeMaker, Unsupported
from dtir.execute.dtypes import DtypeError, is_token, numpy_dtype
from dtir.execute.exchange import Exchange, Moves
from dtir.execute.lifetimes import last_uses, peak_bytes, scope_peak
from dtir.execute.order import total_order
from dtir.execute.placement import Placement, PlacementError
from dtir.execute.routed import Routes, is_routed
from dtir.execute.steps import (
    NOTHING_PLANNED,
    ExecPlan,
    Form,
    Planned,
    ScopePlan,
    Slot,
    Step,
    StepKind,
    is_relayout,
)
from dtir.ir.collectives import CollectivePermute
from dtir.ir.ids import RegionId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    LocalCompute,
    Loop,
    PointToPoint,
    Region,
    Reshard,
)
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import DiagnosticBag, DiagnosticSet
from dtir.schema.result import Checked, Err, Ok

MOST_RANKS = 65_536
"""Virtual ranks that one run may have."""

HLO = "hlo"
"""The dialect of HLO operations."""

LISTED = 5
"""Findings of one kind about values that are listed; the rest is counted."""

_Scope: TypeAlias = DistributedTaskIR | Region


def make_plan(program: DistributedTaskIR, *, algorithm: str = "native") -> Checked[ExecPlan]:
    """The plan of a program.

    Args:
        program: a structurally valid program.
        algorithm: how collectives are done: ``native`` or ``ordered``.

    Returns:
        `Err` with every reason why the program cannot be executed.
    """
    bag = DiagnosticBag()
    bag.extend(program.diagnostics().errors)
    if len(bag):
        return Err(DiagnosticSet(bag.report().diagnostics))
    if program.mesh.size > MOST_RANKS:
        bag.error(
            "run.too_many_ranks",
            f"the mesh has {program.mesh.size} ranks, more than the {MOST_RANKS} that one run may have",
            "mesh",
            hint="run the program on a smaller mesh",
        )
        return Err(DiagnosticSet(bag.report().diagnostics))
    return _Planner(program, algorithm, bag).plan()


@dataclass(frozen=True, slots=True)
class _Communication:
    exchange: Exchange | None = None
    moves: tuple[Moves, ...] = ()
    planned: Planned = NOTHING_PLANNED


class _Planner:
    """Plans one program; findings go into the bag."""

    def __init__(self, program: DistributedTaskIR, algorithm: str, bag: DiagnosticBag) -> None:
        self._program = program
        self._algorithm = algorithm
        self._bag = bag
        self._form = Form.UNDIVIDED if program.attributes.get("hlo.form") == "global" else Form.PER_RANK
        self._by_name = {region.name: region.id for region in program.regions}
        self._regions = {region.id: region for region in program.regions}
        self._makers = ExchangeMaker(program.mesh, self._by_name)
        self._everybody = tuple(range(program.mesh.size))
        self._index = 0
        self._dtypes: dict[str, str | None] = {}
        self._placements: dict[tuple[int, int], tuple[Placement, tuple[int, ...] | None]] = {}

    def plan(self) -> Checked[ExecPlan]:
        program = self._program
        main = self._scope(program, None, "")
        regions = {
            region.id: self._scope(region, region.id, region.name, ("regions", str(number)))
            for number, region in enumerate(program.regions)
        }
        report = self._bag.report()
        if not report.ok or main is None:
            return Err(DiagnosticSet(report.diagnostics))
        found = {name: scope for name, scope in regions.items() if scope is not None}
        peak = peak_bytes(main, found)
        digest = program.digest
        plan = ExecPlan(program, self._form, main, found, self._by_name, self._makers.numbers.groups, peak, digest)
        return Ok(plan, DiagnosticSet(report.diagnostics))

    # -- scopes --------------------------------------------------------------------------------------------------------

    def _scope(
        self, scope: _Scope, region: RegionId | None, name: str, prefix: tuple[str, ...] = ()
    ) -> ScopePlan | None:
        before = len(self._bag)
        slots = self._slots(scope.values, prefix)
        issue = scope.issue if isinstance(scope, DistributedTaskIR) else ()
        order, circle = total_order(scope.tasks, issue)
        if circle:
            names = ", ".join(scope.tasks[place].name or str(scope.tasks[place].id) for place in circle[:LISTED])
            self._bag.error(
                "run.order",
                f"{len(circle)} tasks wait for each other in a circle, so no order exists: {names}",
                *prefix,
                "issue" if issue else "tasks",
                hint="dtir verify shows the circle; issue the tasks in one order on all ranks",
                subject=tuple(str(scope.tasks[place].id) for place in circle[:LISTED]),
            )
            return None
        if slots is None:
            return None
        numbers = {value.id: number for number, value in enumerate(scope.values)}
        tasks = [scope.tasks[place] for place in order]
        outputs = tuple(numbers[item] for item in scope.outputs)
        frees = last_uses(tasks, numbers, set(outputs))
        steps: list[Step] = []
        routes = Routes()
        for place, task in zip(order, tasks, strict=True):
            step = self._step(task, numbers, slots, frees[task.id], routes, (*prefix, "tasks", str(place)))
            if step is not None:
                steps.append(step)
        if len(self._bag) > before and not self._bag.report().ok:
            return None
        inputs = tuple(numbers[item] for item in scope.inputs)
        peak = scope_peak(steps, slots, inputs)
        return ScopePlan(name, region, tuple(slots), tuple(steps), inputs, outputs, peak)

    def _slots(self, values: Sequence[DistributedValue], prefix: tuple[str, ...]) -> list[Slot] | None:
        slots: list[Slot] = []
        failures: list[tuple[str, tuple[str, ...], str]] = []
        for number, value in enumerate(values):
            problem = self._dtype_problem(value.type.dtype)
            if problem is not None:
                failures.append(("run.dtype", (*prefix, "values", str(number)), problem))
                continue
            try:
                placement, shape = self._placed(value)
            except PlacementError as error:
                failures.append(("run.placement", (*prefix, "values", str(number)), f"{_label(value)}: {error}"))
                continue
            slots.append(Slot(value, placement, shape))
        self._report_values(failures)
        return None if failures else slots

    def _report_values(self, failures: Sequence[tuple[str, tuple[str, ...], str]]) -> None:
        hints = {
            "run.dtype": "install what the message names, or change the type",
            "run.placement": "give symbols a value (bind), shards their sizes, and layouts known axes",
        }
        for code, hint in hints.items():
            messages = [(path, message) for found, path, message in failures if found == code]
            distinct = {message: path for path, message in reversed(messages)}
            for message, path in reversed(list(distinct.items())[-LISTED:]):
                self._bag.error(code, message, *path, hint=hint)
            if len(distinct) > LISTED:
                self._bag.error(code, f"{len(distinct) - LISTED} more values have such a problem", hint=hint)

    def _dtype_problem(self, dtype: str) -> str | None:
        if dtype not in self._dtypes:
            try:
                numpy_dtype(dtype)
                self._dtypes[dtype] = None
            except DtypeError as error:
                self._dtypes[dtype] = str(error)
        return self._dtypes[dtype]

    def _placed(self, value: DistributedValue) -> tuple[Placement, tuple[int, ...] | None]:
        """The placement of a value and its local shape where all ranks have the same; equal layouts share one."""
        key = (id(value.type), id(value.sharding))
        if not value.local_shapes and key in self._placements:
            return self._placements[key]
        placement = Placement.of(value, self._program.mesh, self._program.bindings)
        if self._form is Form.UNDIVIDED:
            shape: tuple[int, ...] | None = placement.shape
        else:
            shape = _common_shape(placement, value)
        found = (placement, shape)
        if not value.local_shapes:
            self._placements[key] = found
        return found

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _step(
        self,
        task: DistributedTask,
        numbers: Mapping[ValueId, int],
        slots: Sequence[Slot],
        frees: tuple[ValueId, ...],
        routes: Routes,
        path: tuple[str, ...],
    ) -> Step | None:
        inputs = tuple(numbers[item] for item in task.operand_values)
        outputs = tuple(numbers[item] for item in task.outputs)
        if isinstance(task.body, Collective) and len(inputs) != len(outputs):
            # A send takes a token beside its data; tokens order, and nothing of them is sent.
            inputs = tuple(slot for slot in inputs if not is_token(slots[slot].value.type.dtype))
        try:
            if is_relayout(self._form, task):
                found = _Communication()
            elif is_routed(task):
                found = self._routed(task, inputs, outputs, slots, routes)
            else:
                found = self._communication(task, [slots[item] for item in inputs], [slots[item] for item in outputs])
            routes.follow(task, inputs, outputs)
        except (PlacementError, Unsupported) as error:
            code = "run.unsupported" if isinstance(error, Unsupported) else "run.placement"
            self._bag.error(
                code,
                f"task {task.name or task.id}: {error}",
                *path,
                hint="dtir verify says what is wrong with it"
                if code == "run.placement"
                else "this form has to be rewritten before it can run",
                subject=(str(task.id),),
            )
            return None
        problem = self._region_problem(task)
        if problem is not None:
            self._bag.error("run.unsupported", problem, *path, hint="give the loop a condition or a trip count",
                            subject=(str(task.id),))  # fmt: skip
            return None
        step = Step(
            self._index,
            task,
            StepKind.LOCAL if is_relayout(self._form, task) else _kind(task),
            self._ranks(task),
            inputs,
            outputs,
            tuple(numbers[item] for item in frees),
            found.exchange,
            found.moves,
            self._algorithm,
            found.planned,
            routes.experts.get(inputs[0], {}) if inputs and isinstance(task.body, LocalCompute) else {},
        )
        self._index += 1
        return step

    def _routed(
        self,
        task: DistributedTask,
        inputs: Sequence[int],
        outputs: Sequence[int],
        slots: Sequence[Slot],
        routes: Routes,
    ) -> _Communication:
        if not isinstance(task.body, Collective) or len(inputs) != 1 or len(outputs) != 1:
            raise PlacementError(f"{task.operation} takes one value and gives one")
        source, target = slots[inputs[0]], slots[outputs[0]]
        moves, planned, experts = self._makers.routed(task, task.body.spec, source, target, routes.of(task, inputs))
        routes.experts[outputs[0]] = experts
        return _Communication(moves=(moves,), planned=planned)

    def _communication(self, task: DistributedTask, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> _Communication:
        match task.body:
            case Collective(spec=CollectivePermute(pairs=pairs)) if _moves_values(task):
                moved = [self._makers.permute(pairs, source, target) for source, target in _paired(inputs, outputs)]
                return _Communication(moves=tuple(moves for moves, _ in moved), planned=_sum(moved))
            case Collective(spec=spec):
                exchange, planned = self._makers.collective(task, spec, inputs, outputs)
                return _Communication(exchange, planned=planned)
            case PointToPoint(spec=transfer):
                moved = [self._makers.transfer(transfer, source, target) for source, target in _paired(inputs, outputs)]
                return _Communication(moves=tuple(moves for moves, _ in moved), planned=_sum(moved))
            case Reshard() as body:
                moved = [self._makers.reshard(body, source, target) for source, target in _paired(inputs, outputs)]
                return _Communication(moves=tuple(moves for moves, _ in moved), planned=_sum(moved))
            case LocalCompute() | Control() | Call() | Loop() | Branch():
                return _Communication()
            case _:
                assert_never(task.body)

    def _ranks(self, task: DistributedTask) -> tuple[int, ...]:
        """Who takes part: of an HLO collective everybody, for who is in no group gets zeros."""
        if isinstance(task.body, Collective) and task.operation.dialect == HLO:
            return self._everybody
        return task.ranks if isinstance(task.ranks, tuple) else tuple(task.ranks)

    def _region_problem(self, task: DistributedTask) -> str | None:
        body = task.body
        if isinstance(body, Loop) and body.condition is None and body.trip_count is None:
            return f"loop {task.name or task.id} has neither a condition nor a trip count: it would never end"
        return None


def _moves_values(task: DistributedTask) -> bool:
    """True for a permute between owners of values: who receives nothing keeps its copy. In HLO it gets zeros."""
    return (
        isinstance(task.body, Collective)
        and isinstance(task.body.spec, CollectivePermute)
        and task.operation.dialect != HLO
    )


def _kind(task: DistributedTask) -> StepKind:
    match task.body:
        case LocalCompute():
            return StepKind.LOCAL
        case Collective():
            return StepKind.MOVE if _moves_values(task) or is_routed(task) else StepKind.EXCHANGE
        case PointToPoint() | Reshard():
            return StepKind.MOVE
        case Control():
            return StepKind.LOCAL if task.outputs else StepKind.ORDER
        case Call():
            return StepKind.CALL
        case Loop():
            return StepKind.LOOP
        case Branch():
            return StepKind.BRANCH
        case _:
            assert_never(task.body)


def _paired(inputs: Sequence[Slot], outputs: Sequence[Slot]) -> Sequence[tuple[Slot, Slot]]:
    if len(inputs) != len(outputs):
        raise PlacementError(f"{len(inputs)} values go in and {len(outputs)} come out")
    return list(zip(inputs, outputs, strict=True))


def _sum(moved: Sequence[tuple[Moves, Planned]]) -> Planned:
    sent: dict[int, int] = {}
    for _, planned in moved:
        for rank, size in planned.sent_bytes.items():
            sent[rank] = sent.get(rank, 0) + size
    return Planned(
        sum(planned.message_bytes for _, planned in moved), sent, sum(planned.elements for _, planned in moved)
    )


def _label(value: DistributedValue) -> str:
    return f"value {value.name or value.id}"


def _common_shape(placement: Placement, value: DistributedValue) -> tuple[int, ...] | None:
    if not any(placement.sharding.dimension_axes) and not placement.overrides:
        return placement.local_shape(0)
    shapes: set[tuple[int, ...]] = set()
    even = not placement.sharding.sizes and not placement.overrides
    for rank in value.owners:
        shapes.add(placement.local_shape(rank))
        if even or len(shapes) > 1:
            break
    return shapes.pop() if len(shapes) == 1 else None
