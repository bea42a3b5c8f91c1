"""One program executed for a check, with its values kept where they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dtir.execute.archive import Archive
from dtir.execute.data import Inputs, generate_inputs, output_leaves, read_inputs, split
from dtir.execute.dtypes import Array
from dtir.execute.fabric import LocalFabric
from dtir.execute.memory import memory_problem
from dtir.execute.plan import make_plan
from dtir.execute.ready import local_problems
from dtir.execute.session import ExecutionError, Options, Session
from dtir.execute.steps import ExecPlan, Form, ScopePlan, Slot, Step
from dtir.execute.values import Held, Slab, is_shared, rows, shared
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Checked, Err, Ok

KEPT_BYTES = 2**30
"""Values that are kept for finding where two programs part; the rest is not looked at, and that is said."""

RANDOM = frozenset({"rng"})
"""Operations whose results are not given by their operands."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One value that a step made.

    Args:
        step: the step.
        scope: the steps it belongs to.
        number: the value's slot there.
        held: what the ranks hold.
    """

    step: Step
    scope: ScopePlan = field(repr=False)
    number: int
    held: Held = field(repr=False)

    @property
    def slot(self) -> Slot:
        """The value."""
        return self.scope.slots[self.number]


class KeepingSession(Session):
    """A session that keeps what every step makes when it is done for the first time, up to `KEPT_BYTES`."""

    def __init__(self, plan: ExecPlan, options: Options) -> None:
        super().__init__(plan, LocalFabric(range(plan.ranks)), options)
        self.kept: list[Kept] = []
        self.omitted = 0
        self._seen: set[int] = set()
        self._used = 0

    def _step(self, scope: ScopePlan, step: Step, values: dict[int, Held], active: frozenset[int]) -> None:
        super()._step(scope, step, values, active)
        if step.index in self._seen:
            return
        self._seen.add(step.index)
        for number in step.outputs:
            held = values.get(number)
            if held is None:
                continue  # nothing reads it
            size = sum(part.nbytes for part in (rows(held)[:1] if _one_array(held) else rows(held)))
            if self._used + size > KEPT_BYTES:
                self.omitted += 1
                continue
            self._used += size
            self.kept.append(Kept(step, scope, number, held))


def _one_array(held: Held) -> bool:
    return isinstance(held, Slab) and is_shared(held)


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that was executed.

    Args:
        plan: its plan.
        outputs: what the ranks hold of every output.
        kept: values in the order in which they were made first, where they were kept: in a loop, those of the first trip.
        omitted: values that were not kept, since all together are too large.
    """

    plan: ExecPlan = field(repr=False)
    outputs: Sequence[Held] = field(repr=False)
    kept: Sequence[Kept] = field(default=(), repr=False)
    omitted: int = 0

    @property
    def whole(self) -> bool:
        """True when its values are undivided arrays, the same on every rank."""
        return self.plan.form is Form.UNDIVIDED


def prepare(program: DistributedTaskIR, label: str) -> Checked[ExecPlan]:
    """A plan that can run here.

    Returns:
        `Err` with every reason against it.
    """
    planned = make_plan(program)
    if isinstance(planned, Err):
        return Err(_told(label, planned.error))
    plan = planned.value
    problems = list(local_problems(plan))
    problem = memory_problem(plan, plan.ranks, None)
    if problem is not None:
        problems.append(problem)
    for scope in plan.scopes:
        for step in scope.steps:
            if step.task.operation.name in RANDOM:
                problems.append(
                    Diagnostic(
                        "check.random",
                        f"{step.name} draws random numbers",
                        ("tasks",),
                        hint="make random numbers from a key that is an input",
                        subject=(str(step.task.id),),
                    )
                )
    return Err(_told(label, problems)) if problems else Ok(plan)


def _told(label: str, problems: Sequence[Diagnostic] | DiagnosticSet) -> DiagnosticSet:
    return DiagnosticSet(
        tuple(
            Diagnostic(
                item.code, f"{label}: {item.message}", item.path, item.severity, item.hint, item.subject, item.related
            )
            for item in problems
        )
    )


# -- inputs -------------------------------------------------------------------------------------------------------------


def feed(plans: Sequence[ExecPlan], labels: Sequence[str], archive: Archive | None, seed: int) -> Checked[list[Inputs]]:
    """The same inputs for every plan: from an archive, or generated for the first that has undivided inputs.

    Returns:
        `Err` when an archive does not fit, or the plans do not take the same inputs.
    """
    if archive is not None:
        made: list[Inputs] = []
        problems: list[Diagnostic] = []
        for plan, label in zip(plans, labels, strict=True):
            read = read_inputs(plan, archive)
            if isinstance(read, Err):
                problems += list(_told(label, read.error))
            else:
                made.append(read.value)
        return Err(DiagnosticSet(tuple(problems))) if problems else Ok(made)
    chief = next((number for number, plan in enumerate(plans) if plan.form is Form.UNDIVIDED), 0)
    first = generate_inputs(plans[chief], seed)
    given: list[Inputs] = []
    problems = []
    for plan, label in zip(plans, labels, strict=True):
        if plan is plans[chief]:
            given.append(first)
            continue
        found = _handed(plans[chief], first, plan)
        if isinstance(found, str):
            problems.append(
                Diagnostic(
                    "check.interface", f"{label} does not take the inputs of {labels[chief]}: {found}", ("inputs",)
                )
            )
        else:
            given.append(found)
    return Err(DiagnosticSet(tuple(problems))) if problems else Ok(given)


def _handed(source: ExecPlan, inputs: Inputs, plan: ExecPlan) -> Inputs | str:
    if len(source.main.inputs) != len(plan.main.inputs):
        return f"{len(plan.main.inputs)} inputs, not {len(source.main.inputs)}"
    ranks = tuple(range(plan.ranks))
    held: dict[int, Held] = {}
    for number, slot in enumerate(plan.main.inputs):
        mine, theirs = plan.main.slots[slot], source.main.slots[source.main.inputs[number]]
        if mine.value.type.dtype != theirs.value.type.dtype:
            return f"in{number} is {mine.value.type.dtype}, not {theirs.value.type.dtype}"
        whole = inputs.whole.get(number)
        parts = inputs.held[source.main.inputs[number]]
        if whole is None:
            if plan.ranks != source.ranks or any(part.shape != mine.shape for part in rows(parts)):
                return f"in{number} is {list(mine.placement.shape)} of each rank, not {list(theirs.placement.shape)}"
            held[slot] = parts
            continue
        found = _divided(whole, mine, plan, ranks)
        if found is None:
            return f"in{number} is {list(mine.placement.shape)}, not {list(whole.shape)}"
        held[slot] = found
    return Inputs(held, inputs.whole, {}, seed=inputs.seed)


def _divided(whole: Array, slot: Slot, plan: ExecPlan, ranks: tuple[int, ...]) -> Held | None:
    if plan.form is Form.UNDIVIDED or slot.placement.sharding.varying:
        return shared(ranks, whole) if whole.shape == slot.placement.shape else None
    shape = slot.placement.shape
    if whole.shape != shape:
        # A partitioned module knows the padded extent only.
        padding = [(0, wanted - extent) for extent, wanted in zip(whole.shape, shape, strict=False)]
        if len(whole.shape) != len(shape) or any(more < 0 for _, more in padding):
            return None
        if any(
            -(-extent // slot.placement.shards(dim)) * slot.placement.shards(dim) != shape[dim]
            for dim, extent in enumerate(whole.shape)
        ):
            return None
        whole = np.pad(whole, padding)
    return split(whole, slot, ranks)


# -- running ------------------------------------------------------------------------------------------------------------


def execute(plan: ExecPlan, inputs: Inputs, seed: int, label: str, *, keep: bool = False) -> Checked[Ran]:
    """Run a plan once on numpy ranks.

    Args:
        keep: keep values, up to `KEPT_BYTES`.

    Returns:
        `Err` when a step fails.
    """
    options = Options(seed=seed)
    keeping = KeepingSession(plan, options) if keep else None
    session = keeping or Session(plan, LocalFabric(range(plan.ranks)), options)
    try:
        for slot, held in inputs.held.items():
            session.load_slot(slot, held)
        session.start()
        for step in plan.main.steps:
            session.execute(step)
        session.sync()
        outputs = tuple(session.read_slot(slot) for slot in output_leaves(plan))
    except ExecutionError as error:
        return Err(
            DiagnosticSet.of(
                Diagnostic(
                    "check.not_run",
                    f"{label}: {error.step.name} failed: {error}",
                    ("tasks",),
                    hint="compare an earlier dump of the program",
                    subject=(str(error.step.task.id),),
                )
            )
        )
    finally:
        session.close()
    if keeping is None:
        return Ok(Ran(plan, outputs))
    return Ok(Ran(plan, outputs, tuple(keeping.kept), keeping.omitted))
