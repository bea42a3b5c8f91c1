"""The value-level judge: run the undivided program and the ranks on random data, and compare every value.

Every value is judged in definition order: shape, completeness, equal copies, meaning (declared scale times the
specification). Nothing is judged that depends on a value found wrong, so that one cause gives one place.

Example: ``gw = einsum(x, gy, "sh,sh->h")`` with s split over tp and gw declared replicated. Rank 0 holds one share, rank 1
the other: ``value.replica_divergence`` and ``value.mismatch`` at gw, and "all-reduce(sum, [tp]) after t1 makes it right".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dtir.ir import DistributedTaskIR, ValueId
from dtir.ops import Fold, Labels, OpCall, OpClass, OpError
from dtir.ops.arithmetic import Field as PrimeField
from dtir.ops.arithmetic import Floats
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet, Related, Severity
from dtir.verify.value.build import NotConcrete
from dtir.verify.value.case import Case, CaseTask, CaseValue
from dtir.verify.value.classify import Likeness, classify
from dtir.verify.value.compare import Fault, Finding, Meaning, check_complete, check_copies, check_shape, meanings
from dtir.verify.value.data import Source
from dtir.verify.value.differences import RankDifference, differences
from dtir.verify.value.locally import TooLarge
from dtir.verify.value.repair import Repair, apply_repair, find_repairs
from dtir.verify.value.sizes import choose_case
from dtir.verify.value.trial import Trial
from dtir.verify.value.verdict import BadValue, ValueVerdict

PRIMES = (1_048_573, 1_048_571)
"""The largest primes below 2**20: two ways to compute a polynomial of degree d agree by chance with probability d / p for each."""


def judge_values(program: DistributedTaskIR, *, seed: int = 0, repairs: Sequence[Repair] = ()) -> ValueVerdict:
    """Judge a structurally valid program by its values.

    Args:
        seed: root of all random data; the verdict is the same for the same seed.
        repairs: changes that an earlier verdict on this program proposed; the program is judged as if they were made.
    """
    structure = program.diagnostics()
    if not structure.ok:
        return ValueVerdict(DiagnosticSet.of(_skipped(f"the program has {len(structure.errors)} structural errors")))
    try:
        case = choose_case(program)
    except (NotConcrete, TooLarge) as error:
        return ValueVerdict(DiagnosticSet.of(_skipped(str(error))))
    return _Judge(case, seed, repairs).run()


def _skipped(reason: str) -> Diagnostic:
    return Diagnostic(
        "value.skipped",
        f"the values were not compared: {reason}",
        severity=Severity.INFO,
        hint="bind the symbols, or judge a smaller program of the same shape",
    )


def _reduced(how: str) -> Diagnostic:
    return Diagnostic(
        "value.reduced",
        f"the values were compared in a smaller run of the same form: {how}",
        severity=Severity.INFO,
        hint="the verdict is a test of that run; for the sizes as written, the static judge speaks",
    )


class _Judge:
    """One judgement of one case."""

    def __init__(self, case: Case, seed: int, repairs: Sequence[Repair] = ()) -> None:
        self.case = case
        self.repairs = repairs
        # Floats first: they run whatever can run, and say what a wrong value looks like.
        self.floats = [Trial(case, Source(Floats(np), seed, positive)) for positive in (False, True)]
        self.exact = [Trial(case, Source(PrimeField(np, prime), seed, False)) for prime in PRIMES]
        self.tainted: set[ValueId] = set()
        self.bad: list[BadValue] = []
        self.diagnostics: list[Diagnostic] = []
        self.judged: list[str] = []
        self.unjudged: dict[str, str] = {}
        self.reasons: dict[str, int] = {}
        self.mean_axes: dict[ValueId, frozenset[str]] = {}

    @property
    def trials(self) -> list[Trial]:
        return [*self.floats, *self.exact]

    def run(self) -> ValueVerdict:
        for trial in self.trials:
            trial.start()
        for identifier in self.case.inputs:
            self._judge(self.case.values[identifier], None)
        for task in self.case.tasks:
            try:
                self._step(task)
            except TooLarge as error:
                self.diagnostics.append(_skipped(f"from {task.name} on: {error}"))
                break
        self._say_reasons()
        if self.case.reduced:
            self.diagnostics.append(_reduced(self.case.reduced))
        return ValueVerdict(
            DiagnosticSet(tuple(self.diagnostics)),
            tuple(self.bad),
            tuple(self.judged),
            self.unjudged,
            self.case.reduced,
        )

    def _step(self, task: CaseTask) -> None:
        reason = None
        for trial in self.trials:
            why = trial.step(task)
            # What only the exact runs cannot do is no loss: the floats judge it.
            reason = reason or (why if trial in self.floats else None)
        wrong = any(operand in self.tainted for operand in task.operands)
        if not wrong:
            self._repair(task)
        self._carry_mean(task)
        for output in task.outputs:
            value = self.case.values[output]
            if wrong:
                self._drop(output)
                continue
            if all(output not in trial.held for trial in self.floats):
                self.unjudged[value.name] = reason or "it depends on a value that is not known"
                if reason:
                    self.reasons.setdefault(reason, value.index)
                continue
            self._judge(value, task)

    def _repair(self, task: CaseTask) -> None:
        """Make the changes that are asked for at a task."""
        for repair in self.repairs:
            for output in task.outputs if repair.task == task.id else ():
                changed = apply_repair(repair, self.trials, task, self.case.values[output])
                if changed is not None:
                    self.case = replace(self.case, values={**self.case.values, output: changed})
                    for trial in self.trials:
                        trial.case = self.case

    def _drop(self, identifier: ValueId) -> None:
        """Nothing is concluded from a value that is wrong."""
        self.tainted.add(identifier)
        for trial in self.trials:
            trial.held.pop(identifier, None)

    # -- one value ---------------------------------------------------------------------------------------------------

    def _judge(self, value: CaseValue, task: CaseTask | None) -> None:
        findings, likeness = self._findings(value, task)
        if not findings:
            return
        repairs = find_repairs(self.trials, task, value, self.is_right) if task is not None else ()
        apart = self._differences(value)
        self.bad.append(BadValue(value.id, value.name, task.name if task else None, findings, likeness, repairs, apart))
        for finding in findings:
            self.diagnostics.append(self._diagnostic(value, task, finding, repairs))
        self._drop(value.id)

    def _differences(self, value: CaseValue) -> tuple[RankDifference, ...]:
        """By how much a value is wrong, from the first run in floats that has it; nothing for what has no numbers."""
        if value.fits(self.case.grid) is not None or value.varying:
            return ()
        for trial in self.floats:
            held = trial.held.get(value.id)
            if held is None or value.id not in trial.whole:
                continue
            if check_shape(value, held, self.case.grid) or check_complete(value, held, self.case.grid):
                return ()
            found = self._compared(value, trial, value.scale)
            if any(not item.right for item in found):
                return differences(value, found, self.case.grid)
        return ()

    def _findings(self, value: CaseValue, task: CaseTask | None) -> tuple[tuple[Finding, ...], Likeness | None]:
        grid = self.case.grid
        unfit = value.fits(grid)
        if unfit is not None:
            return (Finding(Fault.SHAPE, value.owners, unfit),), None
        first = next((trial for trial in self.floats if value.id in trial.held), None)
        if first is None:
            return (), None
        held = first.held[value.id]
        early = check_shape(value, held, grid) or check_complete(value, held, grid)
        if early is not None:
            return (early,), None
        judges = self._judges(value)
        found: list[Finding] = []
        for trial in judges:
            copies = check_copies(value, trial.held[value.id], grid, trial.arithmetic)
            if copies is not None:
                found.append(copies)
                break
        likeness = self._meaning(value, task, judges, found)
        return tuple(found), likeness

    def _judges(self, value: CaseValue) -> list[Trial]:
        """The runs that decide: the exact ones where they have the value and its specification, else the floats."""
        exact = [trial for trial in self.exact if value.id in trial.held and value.id in trial.whole]
        if exact and all(trial.held[value.id].fault is None for trial in exact):
            return exact
        return [trial for trial in self.floats if value.id in trial.held]

    def _meaning(
        self, value: CaseValue, task: CaseTask | None, judges: Sequence[Trial], found: list[Finding]
    ) -> Likeness | None:
        if value.varying:
            self.unjudged[value.name] = "it is per-rank data, without one meaning"
            return None
        if task is not None and task.operator is not None and task.operator.source is not None and found:
            return None  # what was drawn is its own specification: copies that differ are the whole finding
        known = [trial for trial in judges if value.id in trial.whole]
        if not known:
            self.unjudged[value.name] = "the undivided program says nothing of it"
            return None
        if not any(_has_numbers(trial, value) for trial in known):
            self.unjudged[value.name] = "the specification has no finite element for the data drawn"
            return None
        wrong = self._wrong(value, known)
        self.judged.append(value.name)
        if wrong is None:
            for trial in self.trials:
                trial.right.add(value.id)
            return None
        likeness = self._likeness(value, wrong)
        ranks = tuple(sorted(rank for item in wrong for rank in item.ranks))
        found.append(Finding(Fault.MISMATCH, ranks, likeness.text))
        return likeness

    def _wrong(self, value: CaseValue, known: Sequence[Trial]) -> list[Meaning] | None:
        """The meanings of the first run in which the value is wrong under every scale that it may have."""
        for trial in known:
            wrong: list[Meaning] | None = None
            for scale in self._scales(value):
                found = self._compared(value, trial, scale)
                bad = [item for item in found if not item.right]
                if not bad:
                    wrong = None
                    break
                wrong = wrong or bad
            if wrong is not None:
                return wrong
        return None

    def _compared(self, value: CaseValue, trial: Trial, scale: Fraction) -> list[Meaning]:
        held, whole = trial.held[value.id], trial.whole[value.id]
        return meanings(value, held, whole, self.case.grid, trial.arithmetic, scale)

    def _likeness(self, value: CaseValue, wrong: Sequence[Meaning]) -> Likeness:
        for trial in self.floats:
            if value.id in trial.whole and value.id in trial.held:
                found = self._compared(value, trial, value.scale)
                if any(not item.right for item in found):
                    return classify(value, trial.held[value.id], found, self.case.grid, trial.arithmetic)
        return Likeness("other", f"the value is not the specification on {len(wrong)} replicas")

    def is_right(self, value: CaseValue, trials: Sequence[Trial]) -> bool:
        """Whether a value is right in every one of some runs that have its specification, exact ones where they decide."""
        grid = self.case.grid
        exact = [
            trial for trial in trials if trial.arithmetic.exact and value.id in trial.held and value.id in trial.whole
        ]
        chosen = exact or [trial for trial in trials if not trial.arithmetic.exact]
        for trial in chosen:
            held = trial.held.get(value.id)
            if held is None or value.id not in trial.whole:
                return False
            if check_shape(value, held, grid) or check_complete(value, held, grid):
                return False
            if check_copies(value, held, grid, trial.arithmetic):
                return False
            found = self._compared(value, trial, value.scale)
            if not found or any(not item.right for item in found):
                return False
        return bool(chosen)

    # -- means over split dims -----------------------------------------------------------------------------------------

    def _scales(self, value: CaseValue) -> list[Fraction]:
        """The declared scale; for pending means of parts also the number of parts, as long as the average is still to come."""
        axes = [axis for axis in self.mean_axes.get(value.id, ()) if axis in value.folds]
        if value.scale == 1 and axes:
            return [value.scale, Fraction(self.case.grid.members(axes))]
        return [value.scale]

    def _carry_mean(self, task: CaseTask) -> None:
        """Along which axes a value is a sum of local means, which an average makes one mean later."""
        carried = [self.mean_axes.get(operand, frozenset[str]()) for operand in task.operands]
        axes = frozenset(axis for found in carried for axis in found)
        if task.kind == "local" and task.operator is not None and task.operands:
            if task.operator.op_class not in _LINEAR:
                axes = frozenset[str]()
            axes |= self._mean_over(task)
        elif task.move is not None and task.move.reduction is not None:
            axes -= set(task.move.axes)
        if axes:
            self.mean_axes.update(dict.fromkeys(task.outputs, axes))

    def _mean_over(self, task: CaseTask) -> frozenset[str]:
        operands = [self.case.values[operand] for operand in task.operands]
        results = tuple(self.case.values[output].shape for output in task.outputs)
        assert task.operator is not None
        try:
            rule = task.operator.labels(OpCall(tuple(value.shape for value in operands), results, task.attributes))
        except OpError:
            return frozenset()
        if not isinstance(rule, Labels):
            return frozenset()
        return frozenset(
            axis
            for value, labels in zip(operands, rule.operands, strict=True)
            for axes, label in zip(value.dims, labels, strict=True)
            if label is not None and rule.folds.get(label) is Fold.MEAN
            for axis in axes
        )

    # -- words -----------------------------------------------------------------------------------------------------------

    def _diagnostic(
        self, value: CaseValue, task: CaseTask | None, finding: Finding, repairs: Sequence[Repair]
    ) -> Diagnostic:
        first = f" (rank {finding.ranks[0]} first)" if finding.ranks and finding.fault is not Fault.UNDEFINED else ""
        made = f" of {task.name}" if task is not None else ", an input"
        hint = f"{repairs[0].text} makes it right" if repairs else _HINTS[finding.fault]
        return Diagnostic(
            finding.fault.value,
            f"value {value.name}{made}{first}: {finding.text}",
            ("values", str(value.index)),
            hint=hint,
            subject=(str(value.id), *((task.id,) if task is not None else ())),
            related=(Related(f"made by {task.name}", ("tasks", str(task.index))),) if task is not None else (),
        )

    def _say_reasons(self) -> None:
        for reason, index in self.reasons.items():
            count = sum(why == reason for why in self.unjudged.values())
            more = f" ({count} values)" if count > 1 else ""
            self.diagnostics.append(
                Diagnostic(
                    "value.unknown",
                    f"nothing is concluded about {self._name_at(index)}{more} and what depends on it: {reason}",
                    ("values", str(index)),
                    Severity.INFO,
                    "register the operator, or mend its parameters",
                )
            )

    def _name_at(self, index: int) -> str:
        return next(value.name for value in self.case.values.values() if value.index == index)


_LINEAR = (OpClass.LINEAR, OpClass.MULTILINEAR, OpClass.ADDITIVE)

_HINTS = {
    Fault.SHAPE: "see the static finding at the same task; declare the layout that the task makes",
    Fault.UNDEFINED: "fill the missing part, or shrink the owner set",
    Fault.DIVERGENCE: "find what the producing task reads that differs between the copies",
    Fault.MISMATCH: "see the static finding at the same task; compare the task with the undivided program",
}


def _has_numbers(trial: Trial, value: CaseValue) -> bool:
    whole = trial.whole[value.id]
    return trial.arithmetic.exact or not whole.size or bool(np.isfinite(whole).any())
