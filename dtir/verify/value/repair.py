"""The repair search: which small change of the producing task makes a bad value right, its operands being right.

Changes are tried from the smallest on: leave the task out, change a parameter, put another collective in its place, multiply
by a constant, put a collective behind it, reduce, mask, broadcast or reshard an operand before it. Only changes that the
declared layouts allow are tried, since the operands are what they declare. All changes of the first kind that works are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dtir.ir import ReductionKind, ValueId
from dtir.ops.arithmetic import Array
from dtir.verify.value.case import CaseTask, CaseValue, Move
from dtir.verify.value.held import Held
from dtir.verify.value.locally import TooLarge
from dtir.verify.value.trial import Trial

MOST_TRIED = 1_000
"""Changes that are tried for one value."""

MOST_ELEMENTS = 200_000
"""Elements of the operands and the result, over all ranks, up to which changes are tried."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that makes a value right.

    Args:
        action: delete, parameter, replace, scale, insert (behind the task), reduce, mask, broadcast or reshard (an operand first).
        task: id of the task it is about.
        text: the change in words.
        value: the operand that is changed first.
        coll: the collective (or ``shard``) that is put in.
        axes: its axes.
        reduction: its reduction.
        dim: its dim (the dim that is cut, for an all_to_all).
        concat: the dim that an all_to_all joins.
        root: position of a broadcast's root in its group.
        factor: what the result is multiplied by.
    """

    action: str
    task: str
    text: str
    value: ValueId | None = None
    coll: str | None = None
    axes: tuple[str, ...] = ()
    reduction: ReductionKind | None = None
    dim: int | None = None
    concat: int | None = None
    root: int | None = None
    factor: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """A change of one operand: a collective, zeros but on coordinate 0 of some axes, or the specification in another layout."""

    move: Move | None = None
    mask: tuple[str, ...] = ()
    layout: CaseValue | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What is tried.

    Args:
        repair: how it is told.
        task: the task that runs; None: the operand `source` is the result.
        source: see `task`, and the operand of a collective in the task's place.
        values: layouts that differ while it runs (ghost widths, the result's pending axes).
        before: changes of operands first.
        after: a collective behind the task.
        factor: a constant on the result.
    """

    repair: Repair
    task: CaseTask | None
    source: ValueId | None = None
    values: Mapping[ValueId, CaseValue] = field(default_factory=dict[ValueId, CaseValue])
    before: Mapping[ValueId, Before] = field(default_factory=dict[ValueId, Before])
    after: Move | None = None
    factor: Fraction | None = None


Judge = Callable[[CaseValue, Sequence[Trial]], bool]


def find_repairs(trials: Sequence[Trial], task: CaseTask, value: CaseValue, is_right: Judge) -> tuple[Repair, ...]:
    """Changes of a task that make one of its results right, all of the first kind that works.

    Args:
        trials: the runs; they are left as they are.
        is_right: judges a value in some runs.
    """
    from dtir.verify.value.candidates import kinds_of_change

    sizes = [_held_elements(trials[0].held.get(item)) for item in (*task.operands, value.id)]
    case = trials[0].case
    unfit = any(case.values[item].fits(case.grid) is not None for item in (*task.operands, value.id))
    if sum(sizes) > MOST_ELEMENTS or value.varying or unfit:
        return ()
    tried = 0
    for changes in kinds_of_change(trials[0].case, task, value):
        found: list[Repair] = []
        for change in changes:
            tried += 1
            if tried > MOST_TRIED:
                return tuple(found)
            if _works(change, trials, value, is_right):
                found.append(change.repair)
        if found:
            return tuple(found)
    return ()


def apply_repair(repair: Repair, trials: Sequence[Trial], task: CaseTask, value: CaseValue) -> CaseValue | None:
    """Make a proposed change in some runs: what ranks hold of the result is then what it gives.

    Returns:
        The result with its layout under the change; None when the change is none of those for this result.
    """
    from dtir.verify.value.candidates import kinds_of_change

    case = trials[0].case
    changes = (item for kind in kinds_of_change(case, task, value) for item in kind)
    change = next((item for item in changes if item.repair == repair), None)
    if change is None:
        return None
    for trial in trials:
        made = _tried(change, trial, value)
        trial.held.pop(value.id, None)
        if made is not None and value.id in made.held:
            trial.held[value.id] = made.held[value.id]
    return change.values.get(value.id, value)


def _held_elements(held: Held | None) -> int:
    return 0 if held is None else sum(int(array.size) for array in held.arrays.values())


def _works(change: Change, trials: Sequence[Trial], value: CaseValue, is_right: Judge) -> bool:
    changed: list[Trial] = []
    for trial in trials:
        copy = _tried(change, trial, value)
        if copy is None:
            return False
        changed.append(copy)
    return is_right(changed[0].case.values[value.id], changed)


def _tried(change: Change, trial: Trial, value: CaseValue) -> Trial | None:
    """A run with the change made; None when it cannot be made in floats (exact runs may go without the result)."""
    case = replace(trial.case, values={**trial.case.values, **change.values}) if change.values else trial.case
    copy = replace(trial, case=case, held=dict(trial.held), routes=dict(trial.routes))
    try:
        held = _apply(change, copy, value)
    except (TooLarge, ZeroDivisionError):
        held = None
    if held is None and not trial.arithmetic.exact:
        return None
    copy.held.pop(value.id, None)
    if held is not None:
        copy.held[value.id] = held
    return copy


def _apply(change: Change, trial: Trial, value: CaseValue) -> Held | None:
    for identifier, before in change.before.items():
        held = _changed_operand(before, trial, identifier)
        if held is None:
            return None
        trial.held[identifier] = held
    if change.task is None:
        assert change.source is not None
        held = trial.held.get(change.source)
    elif change.after is None and change.factor is None:
        held = trial.run(change.task)[0].get(value.id)
    else:
        held = trial.held.get(value.id)  # as it is: what is tried comes behind
    if held is None or (change.after is None and change.factor is None):
        return held
    if change.factor is not None:
        number = trial.arithmetic.number(change.factor)
        return Held({rank: trial.arithmetic.settle(array * number) for rank, array in held.arrays.items()})
    assert change.after is not None
    return run_collective(change.after, trial, value.id, value.id, held)


def _changed_operand(before: Before, trial: Trial, identifier: ValueId) -> Held | None:
    held = trial.held.get(identifier)
    if held is None:
        return None
    if before.mask:
        return Held(_masked(held.arrays, before.mask, trial), ghosts=held.ghosts)
    if before.layout is not None:
        whole = trial.whole.get(identifier)
        if whole is None or before.layout.folds:
            return None
        return Held(trial.source.scatter(before.layout, whole, trial.case.grid))
    assert before.move is not None
    return run_collective(before.move, trial, identifier, identifier, held)


def _masked(arrays: Mapping[int, Array], axes: Iterable[str], trial: Trial) -> dict[int, Array]:
    kept = tuple(axes)
    return {rank: array if trial.case.grid.position(rank, kept) == 0 else array * 0 for rank, array in arrays.items()}


def run_collective(move: Move, trial: Trial, source: ValueId, result: ValueId, held: Held) -> Held | None:
    """What ranks hold of `result` after a collective of what they hold of `source`."""
    values = trial.case.values
    vector: Mapping[str, object] = {"vector": True} if values[source].sizes or values[result].sizes else {}
    task = CaseTask("", "", 0, "move", None, move.kind, vector, (), (source,), (result,), move)
    copy = replace(trial, held={source: held})
    return copy.run(task)[0].get(result)
