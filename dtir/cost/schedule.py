"""The planned schedule of a program on a machine: every task priced, every rank's streams on the clock.

>>> from dtir.cost.presets import load_preset
>>> from dtir.ir.builder import ProgramBuilder
>>> build = ProgramBuilder("two", axes={"x": 2})
>>> x = build.input("x", (4,), "f32"); y = build.value("y", (4,), "f32"); z = build.value("z", (4,), "f32")
>>> a = build.task("demo.a", (x,), (y,)); b = build.task("demo.b", (y,), (z,))
>>> options = Options(given_s={"demo.a": 1.0, "demo.b": 2.0})
>>> made = make_schedule(build.build(), load_preset("h100-nvlink-ib"), options).or_raise()
>>> made.makespan_s
3.0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from dtir.analysis.executions import MAX_EXECUTIONS, entered
from dtir.cost.classes import RankClasses
from dtir.cost.exchange import Exchange, Exchanges
from dtir.cost.index import OrderError, ScopeIndex, communicates, index_scope
from dtir.cost.meetings import MeetingMaker, Meetings
from dtir.cost.price import FREE, Price, Pricer
from dtir.cost.profile import MachineProfile
from dtir.cost.sizes import LocalSizes
from dtir.cost.spans import Spans, TooManySpans
from dtir.cost.spread import TooMany
from dtir.cost.symmetry import rank_classes
from dtir.cost.task_work import TaskWork, is_fusion, program_dtype
from dtir.cost.timeline import LocalCost, Machine, Simulator
from dtir.cost.work import Timed, Work, timed, unknown
from dtir.ir.ids import RegionId
from dtir.ir.program import DistributedTaskIR, Scope
from dtir.ir.tasks import DistributedTask, Loop, Region
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Checked, Err, Ok

DEEPEST = 100
"""Regions that may enter each other one inside the other."""

GIVEN = "given"
"""The model of times that the caller gave."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan.

    Args:
        given_s: seconds of tasks instead of a model's, by id, name, target of a custom call, phase of a pipeline slot,
            operation (``hlo.dot``), or kind of communication (``all_reduce``, ``transfer``); the first that is there.
        bindings: values of symbols, besides the program's own.
        trips: how often loops run whose trip count the file does not tell; None: they count once.
        blocking: a collective that is not asynchronous holds the compute stream, too.
    """

    given_s: Mapping[str, float] = field(default_factory=dict[str, float])
    bindings: Mapping[str, int | float] = field(default_factory=dict[str, int | float])
    trips: int | None = None
    blocking: bool = False


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """A local task.

    Args:
        work: on the first rank that runs it.
        timed: its time there.
        by_class: seconds by class where ranks differ, else None.
    """

    work: Work
    timed: Timed
    by_class: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A program on the clock.

    Args:
        program: the program.
        profile: the machine.
        options: how it was planned.
        indexes: scopes that run, the program's own first.
        classes: ranks that do the same.
        sizes: local sizes.
        spans: what runs when.
        exchanges: communication tasks by number (`ScopeIndex.base` + position).
        meetings: their meetings.
        locals: local tasks by number.
        chosen: which branch was taken, by number of the task.
    """

    program: DistributedTaskIR
    profile: MachineProfile
    options: Options
    indexes: tuple[ScopeIndex, ...] = field(repr=False)
    classes: RankClasses = field(repr=False)
    sizes: LocalSizes = field(repr=False)
    spans: Spans = field(repr=False)
    exchanges: Mapping[int, Exchange] = field(repr=False)
    meetings: Mapping[int, Meetings] = field(repr=False)
    locals: Mapping[int, LocalPlan] = field(repr=False)
    chosen: Mapping[int, int] = field(repr=False)

    @property
    def makespan_s(self) -> float:
        """From the first start to the last end."""
        return max(self.spans.end, default=0.0)

    def numbered(self) -> Iterator[tuple[int, ScopeIndex, DistributedTask]]:
        """Every task that runs, with its number and scope."""
        for index in self.indexes:
            for place, task in enumerate(index.tasks):
                yield index.base + place, index, task

    def is_leaf(self, task: DistributedTask) -> bool:
        """Whether a task is one piece of local work."""
        return not communicates(task) and (is_fusion(task) or not list(entered(task.body)))


def make_schedule(
    program: DistributedTaskIR, profile: MachineProfile, options: Options | None = None
) -> Checked[Schedule]:
    """Plan a program.

    Returns:
        `Err` with every finding when the program is structurally wrong, or cannot be put on a clock.
    """
    if not program.diagnostics().ok:
        return Err(DiagnosticSet(program.diagnostics().errors))
    try:
        return Ok(_Planner(program, profile, options or Options()).plan())
    except OrderError as error:
        names = [program.tasks[place].name or str(program.tasks[place].id) for place in error.tasks[:5]]
        more = f" and {len(error.tasks) - 5} more" if len(error.tasks) > 5 else ""
        return _refused(
            "cost.order",
            f"{len(error.tasks)} tasks wait for each other in a circle or behind one: {', '.join(names)}{more}",
            tuple(str(program.tasks[place].id) for place in error.tasks[:5]),
            ("issue",),
        )
    except (TooMany, TooManySpans, RecursionError) as error:
        return _refused("cost.too_large", f"the schedule is too large: {error}")


def _refused(code: str, message: str, subject: tuple[str, ...] = (), path: tuple[str, ...] = ()) -> Err[DiagnosticSet]:
    hints = {
        "cost.order": "dtir verify shows the circle; issue the tasks in one order on all ranks",
        "cost.too_large": "plan a smaller mesh or fewer microbatches of the same program",
    }
    return Err(DiagnosticSet.of(Diagnostic(code, message, path, hint=hints[code], subject=subject)))


class _Planner:
    """Plans one program."""

    def __init__(self, program: DistributedTaskIR, profile: MachineProfile, options: Options) -> None:
        self._program = program
        self._profile = profile
        self._options = options
        self._bindings = {**program.bindings, **options.bindings}
        self._sizes = LocalSizes(program, self._bindings)
        self._work = TaskWork(program, self._sizes)
        self._regions: dict[RegionId, Region] = {region.id: region for region in program.regions}
        self._locals: dict[int, LocalPlan] = {}
        self._costs: dict[int, LocalCost] = {}
        self._exchanges: dict[int, Exchange] = {}
        self._meetings: dict[int, Meetings] = {}
        self._classes_of: dict[int, tuple[int, ...]] = {}

    def plan(self) -> Schedule:
        scopes = self._reached()
        indexes: list[ScopeIndex] = []
        base = 0
        for name, scope in scopes:
            indexes.append(index_scope(self._program, scope, name, base))
            base += len(scope.tasks)
        self._price(indexes)
        self._classes = rank_classes(self._program, [scope for _, scope in scopes], self._exchanges, self._sizes)
        self._firsts = self._classes.first_ranks()
        self._maker = MeetingMaker(self._classes)
        by_id = {index.scope.id: index for index in indexes if isinstance(index.scope, Region)}
        machine = Machine(self._local, self._meet, self._ranks, self._trips, self._is_leaf)
        simulator = Simulator(by_id, machine, self._classes.count, blocking=self._options.blocking)
        spans = simulator.run(indexes[0])
        return Schedule(
            self._program,
            self._profile,
            self._options,
            tuple(indexes),
            self._classes,
            self._sizes,
            spans,
            self._exchanges,
            self._meetings,
            self._locals,
            simulator.chosen,
        )

    # -- what runs ------------------------------------------------------------------------------------------------------

    def _reached(self) -> list[tuple[str, Scope]]:
        """The program and the regions that control enters (not those that are fused or applied), in file order.

        Raises:
            TooManySpans: regions nest too deep.
        """
        entries: dict[RegionId | None, list[RegionId]] = {None: self._entries(self._program)}
        seen: dict[RegionId, None] = {}
        depth: dict[RegionId, int] = {}
        level = entries[None]
        for number in range(1, DEEPEST + 2):
            if not level:
                break
            if number > DEEPEST:
                raise TooManySpans(f"regions enter each other more than {DEEPEST} deep")
            following: dict[RegionId, None] = {}
            for name in level:
                seen[name] = None
                depth[name] = number
                if name not in entries:
                    entries[name] = self._entries(self._regions[name])
                following.update(dict.fromkeys(entries[name]))
            level = list(following)
        return [
            ("", self._program),
            *((region.name, region) for region in self._program.regions if region.id in seen),
        ]

    def _entries(self, scope: Scope) -> list[RegionId]:
        return list(
            dict.fromkeys(name for task in scope.tasks if not is_fusion(task) for name, _ in entered(task.body))
        )

    def _price(self, indexes: list[ScopeIndex]) -> None:
        pricer = Pricer(self._profile)
        exchanges = Exchanges(self._program.mesh, pricer, self._bindings, program_dtype(self._program))
        for index in indexes:
            values = self._work.values_of(index.scope)
            for place, task in enumerate(index.tasks):
                found = exchanges.of(task, values)
                if found is not None:
                    given = self._given(task, found.kind)
                    if given is not None:
                        prices = tuple(item if item == FREE else Price(given, GIVEN, GIVEN) for item in found.prices)
                        found = replace(found, prices=prices)
                    self._exchanges[index.base + place] = found

    def _given(self, task: DistributedTask, kind: str = "") -> float | None:
        table = self._options.given_s
        if not table:
            return None
        target = task.attributes.get("hlo.custom_call_target")
        phase = task.pipeline.phase if task.pipeline is not None else None
        for key in (str(task.id), task.name, target, phase, str(task.operation), kind):
            if isinstance(key, str) and key in table:
                return table[key]
        return None

    # -- what the simulation asks -----------------------------------------------------------------------------------------

    def _ranks(self, index: ScopeIndex, place: int) -> tuple[int, ...]:
        ranks = index.tasks[place].ranks
        key = id(ranks)
        if key not in self._classes_of:
            self._classes_of[key] = self._classes.of_ranks(ranks)
        return self._classes_of[key]

    def _is_leaf(self, index: ScopeIndex, place: int) -> bool:
        return is_fusion(index.tasks[place])

    def _trips(self, index: ScopeIndex, place: int) -> int:
        body = index.tasks[place].body
        assert isinstance(body, Loop)
        trips = body.trip_count if body.trip_count is not None else self._options.trips
        if trips is not None and trips > MAX_EXECUTIONS:
            raise TooManySpans("a loop runs more than 10**100 times")
        return 1 if trips is None else trips

    def _meet(self, index: ScopeIndex, place: int) -> Meetings:
        number = index.base + place
        if number not in self._meetings:
            self._meetings[number] = self._maker.of(self._exchanges[number])
        return self._meetings[number]

    def _local(self, index: ScopeIndex, place: int) -> LocalCost:
        number = index.base + place
        if number not in self._costs:
            plan = self._plan_local(index, place)
            self._locals[number] = plan
            self._costs[number] = (
                None if plan.work.free else plan.by_class if plan.by_class is not None else plan.timed.seconds or 0.0
            )
        return self._costs[number]

    def _plan_local(self, index: ScopeIndex, place: int) -> LocalPlan:
        task = index.tasks[place]
        given = self._given(task)
        if given is not None:
            work = Work(moved_bytes=None, source=GIVEN)
            return LocalPlan(work, Timed(given, GIVEN))
        values = index.scope.values
        inputs = [values[item] for item in index.reads[place]]
        outputs = [values[item] for item in index.writes[place]]
        operands = [inputs[position] for position in task.operands] if task.operands else inputs
        classes = self._ranks(index, place)
        first_rank = self._firsts[classes[0]] if classes else 0
        work = self._work.of(task, operands, outputs, first_rank) if classes else unknown("no rank runs it")
        first = timed(work, self._profile.rates)
        if len(classes) <= 1 or work.free or all(self._sizes.is_uniform(value) for value in (*inputs, *outputs)):
            return LocalPlan(work, first)
        seconds = [0.0] * self._classes.count
        for one in classes:
            mine = timed(self._work.of(task, operands, outputs, self._firsts[one]), self._profile.rates)
            seconds[one] = mine.seconds or 0.0
        return LocalPlan(work, first, tuple(seconds))
