"""What a local task makes of the states of its operands (SEMANTICS 2.3), from the operator's own answers.

`local_step` is a function of the call alone: the same operator, operands and results give the same answer, so that a
program of many equal layers is judged once for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dtir.analysis.abstract import Abstract, Declared, Fill, Ghosts, Surroundings, fills_of, given
from dtir.analysis.alignment import Alignment, align, as_one_rank, letters_along, take_per_rank
from dtir.analysis.blocks import is_even
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.ghosts import ghosts_of
from dtir.analysis.pending import Broken, Use, passed
from dtir.analysis.regroup import Kept, reshaped
from dtir.analysis.scale import scale_of
from dtir.analysis.settle import settle
from dtir.analysis.sources import known_axes, random_deviations, source_step
from dtir.analysis.states import EQUAL, Equal, Pending, State, letter_text
from dtir.ir.expr import Scalar
from dtir.ir.reductions import ReductionKind
from dtir.ops import Fold, Labels, MaskAxes, OpCall, OpDef, OpError, Regroup, SliceAxes, SourceKind
from dtir.ops.opdef import Degrees


@dataclass(frozen=True, slots=True)
class Step:
    """What a task makes of its operands: one value for each output, and where it deviates."""

    results: tuple[Abstract, ...]
    deviations: tuple[Deviation, ...] = ()


_PENDING_OF = {
    Fold.SUM: ReductionKind.SUM,
    Fold.MEAN: ReductionKind.SUM,
    Fold.MAX: ReductionKind.MAX,
    Fold.MIN: ReductionKind.MIN,
    Fold.PRODUCT: ReductionKind.PRODUCT,
    Fold.AND: ReductionKind.AND,
    Fold.OR: ReductionKind.OR,
}


def unknown_step(results: Sequence[Declared], around: Surroundings, *deviations: Deviation) -> Step:
    """Nothing is known of the results."""
    return Step(tuple(given(item, around, known=False) for item in results), deviations)


def local_step(
    operator: OpDef | None,
    attributes: Mapping[str, Any],
    operands: Sequence[Abstract],
    results: Sequence[Declared],
    around: Surroundings,
) -> Step:
    """Judge one call.

    Args:
        operator: the operator; None when it is not known.
        attributes: its parameters by plain names, as `OpCall.attributes`.
        operands: what is known of the operands, in operand order.
        results: what the program declares of the results.
        around: space, facts and mode.
    """
    if any(not value.known for value in operands):
        return unknown_step(results, around)
    if operator is None:
        return _unknown_operator(operands, results, around)
    try:
        return _Call(operator, attributes, operands, results, around).step()
    except OpError as error:
        # A per-rank shape beside an undivided one: the two are not meant to fit the label rule.
        if len({item.state.varying for item in (*operands, *results)}) > 1:
            return unknown_step(results, around)
        return unknown_step(results, around, Deviation(Kind.BAD_CALL, found=str(error)))


def _unknown_operator(operands: Sequence[Abstract], results: Sequence[Declared], around: Surroundings) -> Step:
    found = [Deviation(Kind.UNKNOWN_OP)]
    if not around.infer:
        for index, value in enumerate(operands):
            if value.state.partial:
                letter = letter_text(value.state.letter(value.state.partial[0]))
                found.append(
                    Deviation(Kind.NONLINEAR, value.state.partial, index, found=letter, note="unknown operator")
                )
                break
    return unknown_step(results, around, *found)


class _Call:
    """One call; collects deviations on the way. The only mutable thing here."""

    def __init__(
        self,
        operator: OpDef,
        attributes: Mapping[str, Any],
        operands: Sequence[Abstract],
        results: Sequence[Declared],
        around: Surroundings,
    ) -> None:
        operator.check_arity(len(operands))
        if not results:
            raise OpError(f"{operator.name} has no result")
        self.operator = operator
        self.around = around
        self.declared = tuple(results)
        self.operands, self.per_rank = take_per_rank(operands, around)
        self.original = tuple(operands)
        shapes = tuple(value.shape for value in self.operands)
        self.call = OpCall(shapes, tuple(self._result_shape(item) for item in results), attributes)
        self.found: list[Deviation] = []

    def _result_shape(self, declared: Declared) -> tuple[Scalar, ...]:
        axes = tuple(axis for axis in self.per_rank if axis not in declared.state.varying)
        return as_one_rank(declared.shape, declared.state, axes, self.around)[0] if axes else declared.shape

    def step(self) -> Step:
        """The results and the deviations."""
        if self.operator.source is not None and not self.operands:
            return self._source()
        change = self.operator.transition(self.call)
        match change:
            case SliceAxes():
                return self._sliced(change)
            case MaskAxes():
                return self._masked(change)
            case None:
                pass
        rule = self.operator.labels(self.call)
        match rule:
            case Labels():
                _check_fit(rule, self.call)
                return self._labelled(rule)
            case Regroup():
                if len(self.declared) != 1:
                    raise OpError(f"{self.operator.name} has one result, {len(self.declared)} are declared")
                return self._regrouped(rule)

    # -- steps by kind of rule ---------------------------------------------------------------------------------

    def _source(self) -> Step:
        results: list[Abstract] = []
        for index, declared in enumerate(self.declared):
            state, found = source_step(self.operator, self.call, declared, self.around, index)
            self.found += found
            results.append(replace(given(declared, self.around), state=state, scale=Fraction(1)))
        return Step(tuple(results), tuple(self.found))

    def _axes(self, names: Iterable[str]) -> tuple[str, ...]:
        """Axes that a parameter names, as factors."""
        return self.around.space.expand(known_axes(names, self.around))

    def _labelled(self, rule: Labels) -> Step:
        if self.operator.source is SourceKind.RANDOM:
            for index, declared in enumerate(self.declared):
                self.found += random_deviations(self.call, declared.state, self.around, index)
        alignment = align(rule, self.operands)
        self.found += alignment.deviations
        pending = self._pending(rule, alignment)
        if not self.found:
            self._check_padding(rule, alignment)
        ghosts, found = ghosts_of(self.operator, self.call, self.operands, rule, alignment.axes, self.around)
        if not self.found:
            self.found += found
        averaged = self._averaged(rule, alignment)
        results: list[Abstract] = []
        for index in range(len(self.declared)):
            results.append(self._result(index, rule, alignment, pending, ghosts[index], averaged))
        return Step(tuple(results), tuple(self.found))

    def _result(
        self,
        index: int,
        rule: Labels,
        alignment: Alignment,
        pending: dict[str, ReductionKind],
        ghosts: tuple[Ghosts, bool],
        averaged: int,
    ) -> Abstract:
        declared, labels = self.declared[index], rule.results[index]
        known = {label for operand in rule.operands for label in operand}
        dims: list[tuple[str, ...]] = []
        sizes: list[tuple[int, ...] | None] = []
        taken = {axis for label in labels if label is not None for axis in alignment.axes.get(label, ())}
        for dim, label in enumerate(labels):
            free = label is None or label not in known
            wanted = declared.state.dims[dim]
            if free and not taken & set(wanted) and not set(wanted) & set(pending):
                # A dim that comes from no operand: every rank makes its own part of it.
                dims.append(tuple(axis for axis in wanted if axis not in self.per_rank))
                sizes.append(declared.state.size_of(dim))
            else:
                dims.append(alignment.axes.get(label or "", ()))
                sizes.append(alignment.sizes.get(label or ""))
        inferred = State(
            tuple(dims),
            self.around.space.ordered(pending),
            next(iter(pending.values()), None),
            self.per_rank,
            (),
            tuple(sizes) if any(item is not None for item in sizes) else (),
        )
        fills = self._fills(rule, alignment, index)
        return self._settled(index, inferred, fills, ghosts, averaged)

    def _settled(
        self, index: int, inferred: State, fills: tuple[Fill, ...], ghosts: tuple[Ghosts, bool], averaged: int = 1
    ) -> Abstract:
        declared = self.declared[index]
        weighted = self._weighted()
        scale, mixed = scale_of(self.operator.scale(self.call), [value.scale for value in self.operands])
        if scale is not None:
            scale *= averaged
        if mixed is not None:
            self.found.append(replace(mixed, result=index))
        base = replace(given(declared, self.around), scale=scale, weighted=weighted)
        if any(item.kind not in _HARMLESS for item in self.found):
            return base
        # Per-rank shapes have no blocks: only what the other axes say can be compared.
        settled = settle(inferred, declared.state, self.around, index, weighted=weighted)
        self.found += settled.deviations
        if settled.deviations:
            return base
        valid, corners = ghosts
        if stale := _stale(valid, declared, inferred, index):
            self.found.append(stale)
            valid = declared.ghosts
        kept = tuple((min(a, c), min(b, d)) for (a, b), (c, d) in zip(valid, declared.ghosts, strict=False))
        return replace(base, state=settled.state, fills=fills, ghosts=kept, corners=corners and declared.corners)

    def _regrouped(self, rule: Regroup) -> Step:
        value, declared = self.operands[0], self.declared[0]
        found = reshaped(rule, value.shape, value.state, self.call.results[0], self.around)
        if not isinstance(found, Kept):
            note = "shards" if found.leads else "inner"
            self.found.append(Deviation(Kind.RESHAPE, found.axes, 0, 0, (found.dim,), note=note))
            return Step((self._settled(0, declared.state, (), ((), True)),), tuple(self.found))
        letters = {axis: letters_along(axis, self.operands) for axis in value.state.partial}
        pending: dict[str, ReductionKind] = {}
        for axis, each in letters.items():
            self._pass(axis, each, Labels((), ()), pending)
        inferred = State(
            found.dims, self.around.space.ordered(pending), next(iter(pending.values()), None), self.per_rank, (), found.sizes
        )  # fmt: skip
        fills = fills_of(declared.shape, inferred, Fill.OTHER if Fill.OTHER in value.fills else Fill.ZERO, self.around)
        return Step((self._settled(0, inferred, fills, ((), True)),), tuple(self.found))

    def _one_to_one(self) -> tuple[Abstract, Declared]:
        value, declared = self.operands[0], self.declared[0]
        if len(self.declared) != 1 or len(value.state.dims) != len(declared.state.dims):
            raise OpError(f"{self.operator.name} has one result of the operand's rank")
        return value, declared

    def _sliced(self, change: SliceAxes) -> Step:
        value, declared = self._one_to_one()
        axes = self._axes(change.axes)
        state = value.state
        if lost := [axis for axis in axes if isinstance(state.letter(axis), Pending)]:
            self.found.append(Deviation(Kind.DROPPED, tuple(lost), 0, 0, (change.dim,), note="slice"))
        elif wrong := [axis for axis in axes if state.letter(axis) != EQUAL]:
            letter = letter_text(state.letter(wrong[0]))
            self.found.append(Deviation(Kind.OPERANDS, tuple(wrong), 0, 0, (change.dim,), letter, note="slice"))
        if self.found or not 0 <= change.dim < len(state.dims):
            return Step((self._settled(0, declared.state, (), ((), True)),), tuple(self.found))
        sizes = declared.state.size_of(change.dim)
        inferred = state.with_dim(change.dim, (*state.dims[change.dim], *axes), sizes)
        inferred = replace(inferred, varying=self.per_rank)
        fills = fills_of(declared.shape, inferred, Fill.ZERO, self.around)
        return Step((self._settled(0, inferred, fills, (declared.ghosts, declared.corners)),), tuple(self.found))

    def _masked(self, change: MaskAxes) -> Step:
        value, _ = self._one_to_one()
        axes = self._axes(change.axes)
        state = value.state
        wrong = [axis for axis in axes if state.letter(axis) != EQUAL]
        if wrong:
            letter = state.letter(wrong[0])
            kind = Kind.NONLINEAR if isinstance(letter, Pending) else Kind.OPERANDS
            self.found.append(Deviation(kind, tuple(wrong), 0, 0, (), letter_text(letter), note="mask"))
        elif state.op not in (None, ReductionKind.SUM):
            self.found.append(Deviation(Kind.MIXED_OPS, axes, 0, 0, (), letter_text(Pending(state.op)), note="mask"))
        inferred = replace(
            state,
            partial=self.around.space.ordered((*state.partial, *axes)),
            op=ReductionKind.SUM if axes or state.op else None,
            varying=self.per_rank,
        )
        return Step((self._settled(0, inferred, value.fills, (value.ghosts, value.corners)),), tuple(self.found))

    # -- pending reductions, means, padding ----------------------------------------------------------------------

    def _pending(self, rule: Labels, alignment: Alignment) -> dict[str, ReductionKind]:
        """The operator pending along each axis of the results."""
        pending: dict[str, ReductionKind] = {}
        for label, fold in rule.folds.items():
            for axis in alignment.axes.get(label, ()):
                pending[axis] = _PENDING_OF[fold]
        if not self.found:
            split = {axis for value in self.operands for axis in value.state.split}
            for axis in self.around.space.axes:
                if axis not in split and any(axis in value.state.partial for value in self.operands):
                    self._pass(axis, letters_along(axis, self.operands), rule, pending)
        kinds = sorted({op.value for op in pending.values()})
        if len(kinds) > 1:
            if not self.found:
                self.found.append(
                    Deviation(Kind.MIXED_OPS, self.around.space.ordered(pending), None, 0, (), " and ".join(kinds))
                )
            return {}
        return pending

    def _pass(
        self, axis: str, letters: Sequence[Equal | Pending], rule: Labels, pending: dict[str, ReductionKind]
    ) -> None:
        use = Use(
            self.operator,
            self.call,
            frozenset(rule.folds.values()),
            bool(rule.whole) or bool(self.operator.nonlinear_operands),
            self.operator.scale(self.call),
        )
        result = passed(use, letters)
        if isinstance(result, Broken):
            letter = letter_text(letters[result.operand])
            other = "" if result.other is None else str(result.other)
            known = [item for item in self.found if item.kind is result.kind and item.operand == result.operand]
            if known:
                self.found[self.found.index(known[0])] = replace(known[0], axes=(*known[0].axes, axis))
            else:
                self.found.append(Deviation(result.kind, (axis,), result.operand, 0, (), letter, note=other))
        elif isinstance(result, Pending):
            pending[axis] = result.op

    def _averaged(self, rule: Labels, alignment: Alignment) -> int:
        """By what the sum of local means exceeds the mean; reports means of unequal parts."""
        factor = 1
        for label, fold in rule.folds.items():
            axes = alignment.axes.get(label, ())
            if fold is not Fold.MEAN or not axes:
                continue
            factor *= self.around.space.count(axes)
            sizes = alignment.sizes.get(label)
            if sizes is None:
                continue
            operand, dim = _place(rule, label)
            extent = self.around.number(self.call.operands[operand][dim])
            if not is_even(extent, len(sizes), sizes) and not self.found:
                shown = ", ".join(map(str, sizes[:16]))
                self.found.append(Deviation(Kind.UNEVEN_MEAN, axes, operand, 0, (dim,), shown))
        return factor

    def _check_padding(self, rule: Labels, alignment: Alignment) -> None:
        for label, fill in alignment.fills.items():
            fold = rule.folds.get(label)
            reads = label in rule.whole or (fold is not None and not (fold is Fold.SUM and fill is Fill.ZERO))
            if fold is Fold.MEAN and not is_even(None, 0, alignment.sizes.get(label, ())):
                continue  # unequal parts are the graver finding
            if reads:
                operand, dim = _place(rule, label)
                wanted = fold.value if fold is not None else self.operator.name
                self.found.append(
                    Deviation(Kind.PADDING, alignment.axes.get(label, ()), operand, 0, (dim,), fill.value, wanted)
                )
                return

    def _fills(self, rule: Labels, alignment: Alignment, index: int) -> tuple[Fill, ...]:
        if not alignment.fills:
            return ()
        keeps = self.operator.keeps_zero
        return tuple(
            Fill.NONE
            if label is None or label not in alignment.fills
            else alignment.fills[label]
            if keeps
            else Fill.OTHER
            for label in rule.results[index]
        )

    def _weighted(self) -> tuple[str, ...]:
        """Axes along which the result is weighted: a divisor that is per rank there, or an operand that already was."""
        axes = {axis for value in self.operands for axis in value.weighted}
        law = self.operator.scale(self.call)
        if isinstance(law, Degrees):
            for value, degree in zip(self.original, law.degrees, strict=False):
                if degree < 0:
                    axes.update(value.state.varying)
        return self.around.space.ordered(axes)


def _check_fit(rule: Labels, call: OpCall) -> None:
    """A rule that answers for the first result alone does not fit a task that declares more, or of another rank."""
    for what, labels, shapes in (("operand", rule.operands, call.operands), ("result", rule.results, call.results)):
        if len(labels) != len(shapes):
            raise OpError(f"{len(labels)} {what}s are known, the task has {len(shapes)}")
        for number, (one, shape) in enumerate(zip(labels, shapes, strict=True)):
            if len(one) != len(shape):
                raise OpError(f"{what} {number} has {len(one)} dims, declared {len(shape)}")


_HARMLESS = frozenset({Kind.SCALE_MIXED, Kind.CORRELATED_RANDOM})
"""Deviations that leave the layout of the result in no doubt."""


def _place(rule: Labels, label: str) -> tuple[int, int]:
    """The first operand and dim that carry a label."""
    return next((index, labels.index(label)) for index, labels in enumerate(rule.operands) if label in labels)


def _stale(valid: Ghosts, declared: Declared, inferred: State, index: int) -> Deviation | None:
    """Ghost layers that the result declares and that nothing has brought up to date."""
    for dim, wanted in enumerate(declared.ghosts):
        have = valid[dim] if dim < len(valid) else (0, 0)
        axes = inferred.dims[dim] if dim < len(inferred.dims) else ()
        if axes and (have[0] < wanted[0] or have[1] < wanted[1]):
            return Deviation(Kind.HALO_STALE, axes, None, index, (dim,), str(min(have)), str(max(wanted)))
    return None
