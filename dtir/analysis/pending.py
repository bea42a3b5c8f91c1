"""What an operator does to a pending reduction (the table of SEMANTICS 2.3), one mesh axis at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from dtir.analysis.deviations import Kind
from dtir.analysis.states import EQUAL, Equal, Letter, Pending
from dtir.ir.reductions import ReductionKind
from dtir.ops import Factor, Floats, Fold, OpCall, OpClass, OpDef, Place, ScaleLaw


@dataclass(frozen=True, slots=True)
class Broken:
    """The operator does not commute with the pending reduction of an operand."""

    kind: Kind
    operand: int
    other: int | None = None


Passed: TypeAlias = Letter | Broken

_EXTREMES = (ReductionKind.MAX, ReductionKind.MIN)
_OPPOSITE = {ReductionKind.MAX: ReductionKind.MIN, ReductionKind.MIN: ReductionKind.MAX}
_FOLD_OF = {
    ReductionKind.MAX: Fold.MAX,
    ReductionKind.MIN: Fold.MIN,
    ReductionKind.PRODUCT: Fold.PRODUCT,
    ReductionKind.AND: Fold.AND,
    ReductionKind.OR: Fold.OR,
}
_ADDING_FOLDS = frozenset({Fold.SUM, Fold.MEAN})
_CHOOSING_FOLDS = frozenset({Fold.MAX, Fold.MIN})


@dataclass(frozen=True, slots=True)
class Use:
    """How one call uses its operands.

    Args:
        operator: the operator.
        call: the call.
        folds: the folds of labels that its operands contract.
        joins: True when results are made of pieces of the operands (concat, select) and not of their sums.
        law: its scale law.
    """

    operator: OpDef
    call: OpCall
    folds: frozenset[Fold]
    joins: bool
    law: ScaleLaw


def passed(use: Use, letters: Sequence[Letter]) -> Passed:
    """The letter of the result along an axis that splits no operand, from the letters of the operands.

    `letters` are `Equal` or `Pending`; per-rank data are dealt with before.
    """
    pending = [(index, letter.op) for index, letter in enumerate(letters) if isinstance(letter, Pending)]
    if not pending:
        return EQUAL
    first, op = pending[0]
    for index, _ in pending:
        if index in use.operator.nonlinear_operands:
            return Broken(Kind.NONLINEAR, index)
    for index, other in pending[1:]:
        if other is not op:
            return Broken(Kind.MIXED_OPS, index, first)
    if _ADDING_FOLDS & use.folds and op is not ReductionKind.SUM:
        return Broken(Kind.REDUCTION_COMMUTE, first)
    if op is ReductionKind.SUM:
        return _sum(use, letters, pending)
    return _order(use, letters, pending, op)


def _sum(use: Use, letters: Sequence[Letter], pending: list[tuple[int, ReductionKind]]) -> Passed:
    first = pending[0][0]
    if use.folds & _CHOOSING_FOLDS:
        return Broken(Kind.REDUCTION_COMMUTE, first)
    match use.operator.op_class:
        case OpClass.LINEAR:
            return letters[first]
        case OpClass.MULTILINEAR:
            return letters[first] if len(pending) == 1 else Broken(Kind.PRODUCT, pending[1][0], first)
        case OpClass.ADDITIVE:
            for index, letter in enumerate(letters):
                if isinstance(letter, Equal) and index not in use.operator.nonlinear_operands:
                    return Broken(Kind.ADD_REPLICATED, index, first)
            return letters[first]
        case OpClass.EXTREMUM:
            return Broken(Kind.REDUCTION_COMMUTE, first)
        case OpClass.MONOTONE | OpClass.ORDER | OpClass.NONLINEAR | OpClass.SOURCE:
            return Broken(Kind.NONLINEAR, first)


def _order(use: Use, letters: Sequence[Letter], pending: list[tuple[int, ReductionKind]], op: ReductionKind) -> Passed:
    """Pending max, min, product, and, or."""
    first = pending[0][0]
    signs = use.operator.signs(use.call)
    sign = signs[first] if first < len(signs) else 0
    match use.operator.op_class:
        case OpClass.LINEAR | OpClass.MONOTONE:
            if op in _EXTREMES:
                return _signed(op, sign, first)
            # Only what moves elements about commutes with a product or a logical fold.
            moves = use.operator.op_class is OpClass.LINEAR and sign > 0 and not use.folds
            return letters[first] if moves and not isinstance(use.law, Factor) else Broken(Kind.NONLINEAR, first)
        case OpClass.ADDITIVE:
            if use.joins:
                return letters[first] if all(signs[i] >= 0 for i, _ in pending) else Broken(Kind.NONLINEAR, first)
            if op not in _EXTREMES or len(pending) > 1:
                return Broken(Kind.NONLINEAR, pending[-1][0], first if len(pending) > 1 else None)
            return _signed(op, sign, first)
        case OpClass.ORDER:
            if op in _EXTREMES and (len(pending) == 1 or keeps(use.operator) is op):
                return letters[first]
            return Broken(Kind.NONLINEAR, pending[-1][0])
        case OpClass.EXTREMUM:
            return letters[first] if use.folds == frozenset({_FOLD_OF[op]}) else Broken(Kind.REDUCTION_COMMUTE, first)
        case OpClass.MULTILINEAR:
            if use.folds:
                return Broken(Kind.REDUCTION_COMMUTE, first)
            return Broken(Kind.NONLINEAR, first)
        case OpClass.NONLINEAR | OpClass.SOURCE:
            return Broken(Kind.NONLINEAR, first)


@cache
def keeps(operator: OpDef) -> ReductionKind | None:
    """Which of two numbers an operator of the class `ORDER` keeps, found by asking it; None when it cannot be evaluated."""
    if operator.run is None:
        return None
    import numpy as np

    call = OpCall(((), ()), ((),))
    (result,) = operator.run(Floats(np), (np.zeros(()), np.ones(())), call, Place())
    return ReductionKind.MAX if float(result) == 1.0 else ReductionKind.MIN


def _signed(op: ReductionKind, sign: int, operand: int) -> Passed:
    if sign > 0:
        return Pending(op)
    return Pending(_OPPOSITE[op]) if sign < 0 else Broken(Kind.NONLINEAR, operand)
