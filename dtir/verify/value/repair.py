"""The repair search: which small change of the producing task makes a bad value right, its operands being right."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dtir.ir import ReductionKind, ValueId
from dtir.verify.value.case import CaseTask, CaseValue, Move
from dtir.verify.value.held import Held
from dtir.verify.value.locally import TooLarge
from dtir.verify.value.trial import Trial

MOST_TRIED = 1_500
"""Changes that are tried for one value."""

MOST_ELEMENTS = 200_000
"""Elements of the operands and the result, over all ranks, up to which changes are tried."""

_REDUCTIONS = (ReductionKind.SUM, ReductionKind.AVERAGE, ReductionKind.MAX, ReductionKind.MIN)


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that makes a value right.

    Args:
        action: delete, replace, insert (after the task), reduce or mask (an operand first), or scale (the result).
        task: id of the task it is about.
        text: the change in words.
        value: the operand that is reduced or masked.
        coll: the collective that is put in.
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


Judge = Callable[[CaseValue, Sequence[Trial]], bool]


def find_repairs(trials: Sequence[Trial], task: CaseTask, value: CaseValue, is_right: Judge) -> tuple[Repair, ...]:
    """Changes of a task that make one of its results right, smallest change first; all of the smallest kind that works.

    Args:
        trials: the runs; they are left as they are.
        is_right: judges the value in some runs.
    """
    sizes = [_held_elements(trials[0].held.get(item)) for item in (*task.operands, value.id)]
    if sum(sizes) > MOST_ELEMENTS or value.varying:
        return ()
    search = _Search(trials, task, value, is_right)
    for candidates in (
        search.deletions(),
        search.replacements(),
        search.scalings(),
        search.insertions(),
        search.preparations(),
    ):
        found = tuple(search.working(candidates))
        if found:
            return found
    return ()


def _held_elements(held: Held | None) -> int:
    return 0 if held is None else sum(int(array.size) for array in held.arrays.values())


class _Search:
    """Tries changes of one task on copies of the runs."""

    def __init__(self, trials: Sequence[Trial], task: CaseTask, value: CaseValue, is_right: Judge) -> None:
        self.trials, self.task, self.value, self.is_right = trials, task, value, is_right
        self.values = trials[0].case.values
        self.grid = trials[0].case.grid
        self.tried = 0

    def working(self, candidates: Iterator[tuple[Repair, Callable[[Trial], Held | None]]]) -> Iterator[Repair]:
        for repair, make in candidates:
            self.tried += 1
            if self.tried > MOST_TRIED:
                return
            if self._works(make):
                yield repair

    def _works(self, make: Callable[[Trial], Held | None]) -> bool:
        changed: list[Trial] = []
        for trial in self.trials:
            held = make(trial)
            if held is None and not trial.arithmetic.exact:
                return False
            copy = replace(trial, held=dict(trial.held))
            if held is None:
                copy.held.pop(self.value.id, None)
            else:
                copy.held[self.value.id] = held
            changed.append(copy)
        return self.is_right(self.value, changed)

    # -- (a) without the task ----------------------------------------------------------------------------------------

    def deletions(self) -> Iterator[tuple[Repair, Callable[[Trial], Held | None]]]:
        for operand in dict.fromkeys(self.task.operands):
            name = self.values[operand].name
            text = f"without {self.task.name}, {self.value.name} = {name}"
            yield Repair("delete", self.task.id, text, operand), lambda trial, operand=operand: trial.held.get(operand)

    # -- (b) another collective in its place ---------------------------------------------------------------------------

    def replacements(self) -> Iterator[tuple[Repair, Callable[[Trial], Held | None]]]:
        if self.task.kind == "local" and len(self.task.operands) != 1:
            return
        if len(self.task.operands) != len(self.task.outputs):
            return
        operand = self.task.operands[self.task.outputs.index(self.value.id)]
        source = self.values[operand]
        for move, repair in self._moves(source, "replace", f"in place of {self.task.name}"):
            yield repair, lambda trial, move=move: self._moved(trial, move, source, trial.held.get(operand))

    # -- (c) a collective after it -------------------------------------------------------------------------------------

    def insertions(self) -> Iterator[tuple[Repair, Callable[[Trial], Held | None]]]:
        for move, repair in self._moves(self.value, "insert", f"after {self.task.name}"):
            yield repair, lambda trial, move=move: self._moved(trial, move, self.value, trial.held.get(self.value.id))

    # -- (d) an operand reduced or masked first ------------------------------------------------------------------------

    def preparations(self) -> Iterator[tuple[Repair, Callable[[Trial], Held | None]]]:
        for operand in dict.fromkeys(self.task.operands):
            source = self.values[operand]
            for axes in self._axis_sets():
                for kind in _REDUCTIONS:
                    move = Move("all_reduce", self.grid.fibres(axes, source.owners), axes, kind)
                    text = f"all-reduce({kind.value}, [{', '.join(axes)}]) of {source.name} before {self.task.name}"
                    repair = Repair("reduce", self.task.id, text, operand, "all_reduce", axes, kind)
                    yield (
                        repair,
                        lambda trial, source=source, move=move: self._prepared(
                            trial, source, self._moved(trial, move, source, trial.held.get(source.id))
                        ),
                    )
                text = (
                    f"{source.name} kept on coordinate 0 of [{', '.join(axes)}] alone (a mask) before {self.task.name}"
                )
                repair = Repair("mask", self.task.id, text, operand, axes=axes)
                yield (
                    repair,
                    lambda trial, source=source, axes=axes: self._prepared(
                        trial, source, self._masked(trial, source, axes)
                    ),
                )

    def _prepared(self, trial: Trial, source: CaseValue, held: Held | None) -> Held | None:
        if held is None:
            return None
        copy = replace(trial, held={**trial.held, source.id: held})
        return self._again(copy)

    def _again(self, trial: Trial) -> Held | None:
        try:
            made, _ = trial.run(self.task)
        except TooLarge:
            return None
        return made.get(self.value.id)

    def _masked(self, trial: Trial, source: CaseValue, axes: tuple[str, ...]) -> Held | None:
        held = trial.held.get(source.id)
        if held is None:
            return None
        arrays = {
            rank: array if self.grid.position(rank, axes) == 0 else array * 0 for rank, array in held.arrays.items()
        }
        return Held(arrays, ghosts=held.ghosts)

    # -- (e) a constant factor -----------------------------------------------------------------------------------------

    def scalings(self) -> Iterator[tuple[Repair, Callable[[Trial], Held | None]]]:
        factors: dict[Fraction, str] = {}
        for axes in self._axis_sets():
            product = self.grid.members(axes)
            name = "·".join(f"|{axis}|" for axis in axes)
            factors.setdefault(Fraction(1, product), f"divide by {product} = {name}")
            factors.setdefault(Fraction(product), f"multiply by {product} = {name}")
        factors.pop(Fraction(1), None)
        for factor, words in factors.items():
            repair = Repair("scale", self.task.id, f"after {self.task.name}, {words}: this", factor=factor)
            yield repair, lambda trial, factor=factor: self._scaled(trial, factor)

    def _scaled(self, trial: Trial, factor: Fraction) -> Held | None:
        held = trial.held.get(self.value.id)
        if held is None or held.fault is not None:
            return None
        number = trial.arithmetic.number(factor)
        return Held({rank: trial.arithmetic.settle(array * number) for rank, array in held.arrays.items()})

    # -- collectives ---------------------------------------------------------------------------------------------------

    def _axis_sets(self) -> list[tuple[str, ...]]:
        axes = [axis for axis in self.grid.axes if self.grid.size[axis] > 1]
        most = len(axes) if len(axes) <= 4 else 2
        return [chosen for count in range(1, most + 1) for chosen in itertools.combinations(axes, count)]

    def _moves(self, source: CaseValue, action: str, where: str) -> Iterator[tuple[Move, Repair]]:
        ranks = {*source.owners, *self.value.owners}
        dims = range(len(source.shape))
        for axes in self._axis_sets():
            groups = self.grid.fibres(axes, ranks)
            if not groups:
                continue
            named = f"[{', '.join(axes)}]"
            for kind in _REDUCTIONS:
                yield (
                    Move("all_reduce", groups, axes, kind),
                    Repair(
                        action,
                        self.task.id,
                        f"all-reduce({kind.value}, {named}) {where}",
                        None,
                        "all_reduce",
                        axes,
                        kind,
                    ),
                )
                for dim in dims:
                    text = f"reduce-scatter({kind.value}, {named}, dim {dim}) {where}"
                    yield (
                        Move("reduce_scatter", groups, axes, kind, dim=dim),
                        Repair(action, self.task.id, text, None, "reduce_scatter", axes, kind, dim),
                    )
            for dim in dims:
                yield (
                    Move("all_gather", groups, axes, dim=dim),
                    Repair(
                        action,
                        self.task.id,
                        f"all-gather({named}, dim {dim}) {where}",
                        None,
                        "all_gather",
                        axes,
                        None,
                        dim,
                    ),
                )
                for other in dims:
                    if other != dim:
                        text = f"all-to-all({named}, split dim {dim}, concat dim {other}) {where}"
                        yield (
                            Move("all_to_all", groups, axes, split=dim, concat=other),
                            Repair(action, self.task.id, text, None, "all_to_all", axes, None, dim, other),
                        )
            for root in range(min(len(groups[0]), 8)):
                text = f"broadcast({named}, root {root}) {where}"
                yield (
                    Move("broadcast", groups, axes, roots=tuple(group[root] for group in groups)),
                    Repair(action, self.task.id, text, None, "broadcast", axes, root=root),
                )

    def _moved(self, trial: Trial, move: Move, source: CaseValue, held: Held | None) -> Held | None:
        if held is None or held.fault is not None:
            return None
        if trial.arithmetic.exact and move.reduction in (ReductionKind.MAX, ReductionKind.MIN):
            return None
        vector: Mapping[str, object] = {"vector": True} if source.sizes or self.value.sizes else {}
        task = replace(self.task, kind="move", move=move, attributes=vector, operator=None)
        copy = replace(trial, held={source.id: held})
        made, _ = copy.run(replace(task, operands=(source.id,), outputs=(self.value.id,)))
        return made.get(self.value.id)
