"""Several forms of one program, executed on the same inputs and compared with the first.

A module before partitioning runs undivided, a partitioned one on numpy ranks. The outputs decide; only when they differ are all
values kept and the first one looked for that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from dtir.check.agreement import Agreement, blocks_of, parts_alike
from dtir.check.parting import Parting, find_parting, place_of, whole_and_parts
from dtir.check.runs import Ran, execute, feed, prepare
from dtir.execute.archive import Archive
from dtir.execute.data import Inputs, output_leaves
from dtir.execute.inferred import Inferred, infer_layouts
from dtir.execute.steps import ExecPlan
from dtir.execute.steps import Form as PlanForm
from dtir.execute.values import rows
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Err

Progress = Callable[[str], None]


class Verdict(Enum):
    """What a check ends with."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, slots=True)
class Form:
    """One form of the program.

    Args:
        label: what to call it: the file.
        program: the program.
    """

    label: str
    program: DistributedTaskIR = field(repr=False)


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """One output compared.

    Args:
        number: its number.
        name: what people call the value.
        agreement: how the two are apart; None when they cannot be compared.
        layout: how the parts of ranks were put together: ``parts`` (rank by rank), ``stated``, ``inferred``, ``shape`` or
            ``undivided``; empty when they cannot be compared.
    """

    number: int
    name: str
    agreement: Agreement | None
    layout: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One form compared with the one it is measured by.

    Args:
        label: the form.
        against: the form it was compared with.
        verdict: what came of it.
        outputs: every output.
        problems: why it could not be compared, or what differs.
        parting: the first value that differs.
    """

    label: str
    against: str
    verdict: Verdict
    outputs: tuple[OutputCheck, ...] = ()
    problems: DiagnosticSet = field(default_factory=DiagnosticSet)
    parting: Parting | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The whole check.

    Args:
        reference: the first form.
        steps: every further form.
        guilty: of a sequence, the first form that differs from the reference while the one before it does not.
    """

    reference: str
    steps: tuple[Step, ...]
    guilty: Step | None = None

    @property
    def verdict(self) -> Verdict:
        """Different when any form is; else not comparable when any could not be compared."""
        found = {step.verdict for step in self.steps}
        for verdict in (Verdict.DIFFERENT, Verdict.NOT_COMPARABLE):
            if verdict in found:
                return verdict
        return Verdict.EQUAL

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Everything found, form by form."""
        return tuple(item for step in self.steps for item in step.problems)


def check_programs(
    forms: Sequence[Form], *, inputs: Archive | None = None, seed: int = 0, progress: Progress | None = None
) -> Checked:
    """Compare every form with the first.

    Args:
        forms: at least two, in the order of the passes that made them.
        inputs: an archive of undivided inputs; None: generated from the seed, the same for all.
        progress: told what is done next.

    Raises:
        ValueError: fewer than two forms.
    """
    if len(forms) < 2:
        raise ValueError(f"{len(forms)} forms of a program; a check takes two or more")
    tell = progress or _silent
    reference = forms[0]
    tell(f"running {reference.label}")
    base = _run(reference, inputs, seed, None)
    if isinstance(base, DiagnosticSet):
        ended = Step(forms[1].label, reference.label, Verdict.NOT_COMPARABLE, problems=base)
        return Checked(reference.label, (ended,))
    steps: list[Step] = []
    guilty: Step | None = None
    last_good = reference
    for form in forms[1:]:
        tell(f"running {form.label}")
        step = _compared(reference, base, form, inputs, seed)
        if step.verdict is Verdict.DIFFERENT and guilty is None:
            tell(f"looking for the first value that differs in {form.label}")
            step = _located(step, last_good, form, inputs, seed)
            guilty = step
        elif step.verdict is Verdict.EQUAL:
            last_good = form
        steps.append(step)
    return Checked(reference.label, tuple(steps), guilty)


def _silent(_: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class _Base:
    ran: Ran
    inputs: Inputs = field(repr=False)


def _run(form: Form, archive: Archive | None, seed: int, base: _Base | None) -> _Base | DiagnosticSet:
    """A form executed; on the inputs of the base where there is one and no archive."""
    plan = prepare(form.program, form.label)
    if isinstance(plan, Err):
        return plan.error
    fed = feed([plan.value], [form.label], archive, seed)
    if isinstance(fed, Err):
        return fed.error
    given = fed.value[0]
    ran = execute(plan.value, given, seed, form.label)
    return ran.error if isinstance(ran, Err) else _Base(ran.value, given)


def _compared(reference: Form, base: _Base, form: Form, archive: Archive | None, seed: int) -> Step:
    def ended(problems: DiagnosticSet) -> Step:
        return Step(form.label, reference.label, Verdict.NOT_COMPARABLE, problems=problems)

    plan = prepare(form.program, form.label)
    if isinstance(plan, Err):
        return ended(plan.error)
    fed = feed([base.ran.plan, plan.value], [reference.label, form.label], archive, seed)
    if isinstance(fed, Err):
        return ended(fed.error)
    first = base.ran
    if archive is None and not first.whole and plan.value.form is not first.plan.form:
        # Inputs are made for the undivided form; the reference has not run on these yet.
        again = execute(first.plan, fed.value[0], seed, reference.label)
        if isinstance(again, Err):
            return ended(again.error)
        first = again.value
    ran = execute(plan.value, fed.value[1], seed, form.label)
    if isinstance(ran, Err):
        return ended(ran.error)
    problem = _interface(first.plan, reference.label, ran.value.plan, form.label)
    if problem is not None:
        return ended(DiagnosticSet.of(problem))
    outputs = _outputs(first, ran.value)
    wrong = [item for item in outputs if item.agreement is not None and not item.agreement.equal]
    unknown = [item for item in outputs if item.agreement is None]
    if wrong:
        found = [_difference(item, reference.label, form.label) for item in wrong]
        return Step(form.label, reference.label, Verdict.DIFFERENT, outputs, DiagnosticSet(tuple(found)))
    if unknown:
        names = ", ".join(f"out{item.number} ({item.name})" for item in unknown)
        problem = Diagnostic(
            "check.layout",
            f"{form.label}: how the parts of {names} belong together is not known",
            ("outputs",),
            hint="name the dump just before partitioning first: it states the layout of every output",
        )
        return Step(form.label, reference.label, Verdict.NOT_COMPARABLE, outputs, DiagnosticSet.of(problem))
    return Step(form.label, reference.label, Verdict.EQUAL, outputs)


def _interface(first: ExecPlan, label: str, second: ExecPlan, other: str) -> Diagnostic | None:
    mine, theirs = output_leaves(first), output_leaves(second)
    reason = ""
    undivided = [plan for plan in (first, second) if plan.form is PlanForm.UNDIVIDED]
    # An undivided program without a mesh may have been divided for any number of ranks.
    if len(undivided) < 2 and first.ranks != second.ranks and not any(plan.ranks == 1 for plan in undivided):
        reason = f"it is for {second.ranks} ranks, not {first.ranks}"
    if len(mine) != len(theirs):
        reason = f"{len(theirs)} outputs, not {len(mine)}"
    for number, (slot, other_slot) in enumerate(zip(mine, theirs, strict=False)):
        one, two = first.main.slots[slot].value.type, second.main.slots[other_slot].value.type
        if not reason and (one.dtype != two.dtype or len(one.shape) != len(two.shape)):
            reason = f"out{number} is {two.dtype} with {len(two.shape)} dims, not {one.dtype} with {len(one.shape)}"
    if not reason:
        return None
    return Diagnostic("check.interface", f"{other} does not give the outputs of {label}: {reason}", ("outputs",))


def _difference(item: OutputCheck, label: str, other: str) -> Diagnostic:
    agreement = item.agreement
    assert agreement is not None
    return Diagnostic(
        "check.different",
        f"out{item.number} ({item.name}) of {other} differs from {label}: {agreement.wrong} of {agreement.size} elements, "
        f"by {agreement.max_error:.6g} at most (rounding: {agreement.bound:.3g})",
        ("outputs", str(item.number)),
    )


# -- outputs ------------------------------------------------------------------------------------------------------------


def _outputs(first: Ran, second: Ran) -> tuple[OutputCheck, ...]:
    inferred = _inferred(second if first.whole else first) if first.whole != second.whole else None
    found: list[OutputCheck] = []
    mine, theirs = output_leaves(first.plan), output_leaves(second.plan)
    for number, (slot, other) in enumerate(zip(mine, theirs, strict=True)):
        name = first.plan.main.slots[slot].name
        agreement, layout = _output(first, slot, second, other, number, inferred)
        found.append(OutputCheck(number, name, agreement, layout))
    return tuple(found)


def _inferred(divided: Ran) -> Inferred | None:
    if divided.plan.attribute("hlo.form") is None:
        return None
    return infer_layouts(divided.plan, output_leaves(divided.plan))


def _output(
    first: Ran, slot: int, second: Ran, other: int, number: int, inferred: Inferred | None
) -> tuple[Agreement | None, str]:
    mine, theirs = first.outputs[number], second.outputs[number]
    if first.whole == second.whole:
        return parts_alike(theirs, mine), "undivided" if first.whole else "parts"
    undivided, divided = (first, second) if first.whole else (second, first)
    whole, parts = (rows(mine)[0], theirs) if first.whole else (rows(theirs)[0], mine)
    placement = undivided.plan.main.slots[slot if first.whole else other].placement
    if any(placement.sharding.dimension_axes):
        # What the program states decides: blocks on other ranks would be a wrong layout.
        stated = blocks_of(placement, divided.plan.ranks)
        agreement = whole_and_parts(whole, parts, stated, only_stated=True) if stated is not None else None
        if agreement is not None:
            return agreement, "stated"
    own = divided.plan.main.slots[other if first.whole else slot].placement
    likely = None if own.sharding.varying else blocks_of(own, divided.plan.ranks)
    if likely is None and inferred is not None and number in inferred.layouts:
        likely = blocks_of(inferred.layouts[number], divided.plan.ranks)
    return whole_and_parts(whole, parts, likely), "inferred" if likely is not None else "shape"


# -- where --------------------------------------------------------------------------------------------------------------


def _located(step: Step, before: Form, form: Form, archive: Archive | None, seed: int) -> Step:
    """The first value that differs from the last form that was right."""
    plans: list[ExecPlan] = []
    for one in (before, form):
        plan = prepare(one.program, one.label)
        if isinstance(plan, Err):
            return step
        plans.append(plan.value)
    fed = feed(plans, [before.label, form.label], archive, seed)
    if isinstance(fed, Err):
        return step
    ran: list[Ran] = []
    for plan, given, one in zip(plans, fed.value, (before, form), strict=True):
        done = execute(plan, given, seed, one.label, keep=True)
        if isinstance(done, Err):
            return step
        ran.append(done.value)
    leaves = output_leaves(ran[0].plan)
    wrong = [leaves[item.number] for item in step.outputs if item.agreement is not None and not item.agreement.equal]
    parting = find_parting(ran[0], ran[1], wrong) or _at_output(step, ran[0], ran[1])
    return Step(step.label, before.label, step.verdict, step.outputs, step.problems, parting)


def _at_output(step: Step, before: Ran, after: Ran) -> Parting | None:
    """The instructions that make the first output that differs."""
    wrong = next((item for item in step.outputs if item.agreement is not None and not item.agreement.equal), None)
    if wrong is None or wrong.agreement is None:
        return None
    tasks: list[DistributedTask] = []
    for one in (before, after):
        slot = output_leaves(one.plan)[wrong.number]
        made = next((item.task for item in one.plan.main.steps if slot in item.outputs), None)
        if made is None:
            return None  # an input that is passed through
        tasks.append(made)
    return Parting(place_of(tasks[0]), place_of(tasks[1]), wrong.agreement, 0, outputs_only=True)
