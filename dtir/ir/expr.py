"""Scalars: numbers, symbols and expressions over them (sizes and byte counts that are not known yet).

Only light folding happens: numbers are evaluated, ``+ 0`` and ``* 1`` vanish, a factor 0 gives 0; nothing is flattened
or reordered, so that equal source gives equal digests. All walks keep their own stack: an expression may be as deep as
memory allows.

>>> b = Symbol("b", BindingAxis.WORKLOAD, positive=True)
>>> (b * 32).evaluate({"b": 4})
128
>>> ceil_div(10**18 + 1, 2)
500000000000000001
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, TypeAlias, cast

from dtir.ir.errors import BindingError
from dtir.schema.authoring import adt, enum, record, seal_adt, variant
from dtir.schema.refinements import FiniteFloat, SymbolName, ValueConstraint


@enum("blueprinting.binding.axis")
class BindingAxis(Enum):
    """Who decides a symbol's value."""

    WORKLOAD = "workload"
    STRATEGY = "strategy"
    TARGET = "target"
    DEPLOYMENT = "deployment"
    CALIBRATION = "calibration"


class ExprOp(Enum):
    """The operations of scalar expressions."""

    ADD = "add"
    SUB = "subtract"
    MUL = "multiply"
    DIV = "divide"
    CEIL_DIV = "ceil_divide"
    MAX = "maximum"
    MIN = "minimum"


Bindings: TypeAlias = "Mapping[Symbol, int | float] | Mapping[str, int | float] | Mapping[Any, int | float]"


class _Arithmetic:
    """Operators shared by symbols and expressions: ``+ - * /`` only."""

    __slots__ = ()

    def __add__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.ADD, cast("Scalar", self), other)

    def __radd__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.ADD, other, cast("Scalar", self))

    def __sub__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.SUB, cast("Scalar", self), other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.SUB, other, cast("Scalar", self))

    def __mul__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.MUL, cast("Scalar", self), other)

    def __rmul__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.MUL, other, cast("Scalar", self))

    def __truediv__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.DIV, cast("Scalar", self), other)

    def __rtruediv__(self, other: Scalar) -> Scalar:
        return expression(ExprOp.DIV, other, cast("Scalar", self))

    @property
    def free_symbols(self) -> tuple[Symbol, ...]:
        """Symbols that occur, sorted by axis value and name."""
        return free_symbols(cast("Scalar", self))

    def subs(self, bindings: Bindings) -> Scalar:
        """The expression with bound symbols replaced and folded."""
        return substitute(cast("Scalar", self), bindings)

    def evaluate(self, bindings: Bindings | None = None) -> int | float:
        """The number that the expression has under `bindings`.

        Raises:
            BindingError: a symbol stays unbound or is bound to a value that it cannot take.
            ZeroDivisionError: a divisor is zero.
            OverflowError: a result is beyond the range of floats.
        """
        result = substitute(cast("Scalar", self), bindings or {})
        if isinstance(result, (int, float)):
            return result
        names = ", ".join(f"{symbol.axis.value}.{symbol.name}" for symbol in free_symbols(result))
        raise BindingError(f"expression still has unbound symbols: {names}")


@record("blueprinting.expression.symbol")
class Symbol(_Arithmetic):
    """A named quantity that a binding gives a value: looked up as the symbol itself, ``axis.name``, then ``name``."""

    name: SymbolName
    axis: BindingAxis
    integer: bool = True
    positive: bool = False


@adt(wire="blueprinting.expression.scalar")
class ScalarExpr(_Arithmetic):
    """A scalar expression; its operands are scalars."""


# The family stands for its variants here, since they refer to one another.
ScalarOperand: TypeAlias = int | FiniteFloat | Symbol | ScalarExpr
ScalarOperands: TypeAlias = Annotated[tuple[ScalarOperand, ...], ValueConstraint.AT_LEAST_TWO_ITEMS]


@variant("add")
class Add(ScalarExpr):
    """The sum of the terms."""

    terms: ScalarOperands


@variant("subtract")
class Subtract(ScalarExpr):
    """``left - right``."""

    left: ScalarOperand
    right: ScalarOperand


@variant("multiply")
class Multiply(ScalarExpr):
    """The product of the factors."""

    factors: ScalarOperands


@variant("divide")
class Divide(ScalarExpr):
    """``numerator / denominator``, not rounded."""

    numerator: ScalarOperand
    denominator: ScalarOperand


@variant("ceil-divide")
class CeilDivide(ScalarExpr):
    """``ceil(numerator / denominator)``."""

    numerator: ScalarOperand
    denominator: ScalarOperand


@variant("maximum")
class Maximum(ScalarExpr):
    """The largest of the values."""

    values: ScalarOperands


@variant("minimum")
class Minimum(ScalarExpr):
    """The smallest of the values."""

    values: ScalarOperands


ScalarExprVariant: TypeAlias = Add | Subtract | Multiply | Divide | CeilDivide | Maximum | Minimum
seal_adt(ScalarExpr, ScalarExprVariant)

Scalar: TypeAlias = int | FiniteFloat | Symbol | Add | Subtract | Multiply | Divide | CeilDivide | Maximum | Minimum


def operands(value: ScalarExpr) -> tuple[Scalar, ...]:
    """The direct operands of an expression, left to right."""
    match cast("ScalarExprVariant", value):
        case Add(terms=items) | Multiply(factors=items) | Maximum(values=items) | Minimum(values=items):
            return cast("tuple[Scalar, ...]", items)
        case Subtract(left=first, right=second):
            return cast("tuple[Scalar, ...]", (first, second))
        case Divide(numerator=first, denominator=second) | CeilDivide(numerator=first, denominator=second):
            return cast("tuple[Scalar, ...]", (first, second))


def operation_of(value: ScalarExpr) -> ExprOp:
    """Which operation an expression is."""
    return _OP_OF[type(value)]


_OP_OF: dict[type, ExprOp] = {
    Add: ExprOp.ADD,
    Subtract: ExprOp.SUB,
    Multiply: ExprOp.MUL,
    Divide: ExprOp.DIV,
    CeilDivide: ExprOp.CEIL_DIV,
    Maximum: ExprOp.MAX,
    Minimum: ExprOp.MIN,
}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _require_scalar(value: object) -> None:
    if not (_is_number(value) or isinstance(value, (Symbol, ScalarExpr))):
        raise TypeError(f"unsupported scalar operand: {value!r} ({type(value).__name__})")


def _ceil_quotient(numerator: float, denominator: float) -> int:
    if isinstance(numerator, int) and isinstance(denominator, int):
        # Exact for integers of any size; a float quotient would round above 2**53.
        return -(-numerator // denominator)
    return math.ceil(numerator / denominator)


def _fold_numbers(op: ExprOp, args: tuple[Any, ...]) -> int | float | None:
    """The value of an operation on numbers; None where it must stay unevaluated.

    That is a division by zero, and a result beyond the range of floats.
    """
    if op in (ExprOp.DIV, ExprOp.CEIL_DIV) and args[1] == 0:
        return None
    try:
        value = _apply(op, args)
    except OverflowError:
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _apply(op: ExprOp, args: tuple[Any, ...]) -> int | float:
    match op:
        case ExprOp.ADD:
            return sum(args[1:], args[0])
        case ExprOp.SUB:
            return args[0] - args[1]
        case ExprOp.MUL:
            return math.prod(args[1:], start=args[0])
        case ExprOp.DIV:
            return args[0] / args[1]
        case ExprOp.CEIL_DIV:
            return _ceil_quotient(args[0], args[1])
        case ExprOp.MAX:
            return max(args)
        case ExprOp.MIN:
            return min(args)


_BUILD: dict[ExprOp, Callable[..., Scalar]] = {
    ExprOp.ADD: lambda *args: Add(args),
    ExprOp.SUB: Subtract,
    ExprOp.MUL: lambda *args: Multiply(args),
    ExprOp.DIV: Divide,
    ExprOp.CEIL_DIV: CeilDivide,
    ExprOp.MAX: lambda *args: Maximum(args),
    ExprOp.MIN: lambda *args: Minimum(args),
}
_BINARY = frozenset({ExprOp.SUB, ExprOp.DIV, ExprOp.CEIL_DIV})


def expression(op: ExprOp, *args: Scalar) -> Scalar:
    """Build an operation with light folding.

    Raises:
        TypeError: an operand is not a scalar, or their number does not fit the operation.
    """
    for argument in args:
        _require_scalar(argument)
    if (op in _BINARY and len(args) != 2) or not args:
        raise TypeError(f"{op.value} takes {'2' if op in _BINARY else 'at least 1'} operands, got {len(args)}")
    if all(_is_number(argument) for argument in args):
        folded = _fold_numbers(op, args)
        if folded is not None:
            return folded
    kept = args
    if op is ExprOp.ADD:
        kept = tuple(item for item in args if not (_is_number(item) and item == 0))
    elif op is ExprOp.MUL:
        if any(_is_number(item) and item == 0 for item in args):
            return 0
        kept = tuple(item for item in args if not (_is_number(item) and item == 1))
    elif op is ExprOp.SUB and _is_number(args[1]) and args[1] == 0:
        return args[0]
    if op not in _BINARY and len(kept) == 1:
        return kept[0]
    return _BUILD[op](*kept)


def ceil_div(numerator: Scalar, denominator: Scalar) -> Scalar:
    """``ceil(numerator / denominator)``, exact for integers of any size."""
    return expression(ExprOp.CEIL_DIV, numerator, denominator)


def maximum(*values: Scalar) -> Scalar:
    """The largest of the values, folded when all are numbers."""
    return expression(ExprOp.MAX, *values)


def minimum(*values: Scalar) -> Scalar:
    """The smallest of the values, folded when all are numbers."""
    return expression(ExprOp.MIN, *values)


def free_symbols(value: Scalar) -> tuple[Symbol, ...]:
    """Symbols that occur in a scalar, sorted by axis value and name."""
    found: set[Symbol] = set()
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Symbol):
            found.add(item)
        elif isinstance(item, ScalarExpr):
            stack.extend(operands(item))
    return tuple(sorted(found, key=lambda symbol: (symbol.axis.value, symbol.name, symbol.integer, symbol.positive)))


def _bound(symbol: Symbol, bindings: Mapping[Any, Any]) -> Any:
    for key in (symbol, f"{symbol.axis.value}.{symbol.name}", symbol.name):
        if key in bindings:
            return _checked_binding(symbol, bindings[key])
    return symbol


def _checked_binding(symbol: Symbol, value: Any) -> int | float:
    label = f"{symbol.axis.value}.{symbol.name}"
    if not _is_number(value):
        raise BindingError(f"symbol {label} must be bound to a number, got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise BindingError(f"symbol {label} must be bound to a finite number, got {value!r}")
    if symbol.integer:
        if value != int(value):
            raise BindingError(f"symbol {label} must be an integer, got {value!r}")
        value = int(value)
    if symbol.positive and value <= 0:
        raise BindingError(f"symbol {label} must be positive, got {value!r}")
    return value


def substitute(value: Scalar, bindings: Mapping[Any, Any]) -> Scalar:
    """Replace bound symbols and fold; unbound symbols stay.

    Raises:
        BindingError: a symbol is bound to a value that it cannot take.
        ZeroDivisionError: a divisor becomes zero.
        OverflowError: a result is beyond the range of floats.
    """
    done: list[Any] = []
    # (item, None): still to visit. (operation, n): combine the last n results.
    stack: list[tuple[Any, int | None]] = [(value, None)]
    while stack:
        item, count = stack.pop()
        if count is not None:
            args = tuple(done[-count:])
            del done[-count:]
            if item in (ExprOp.DIV, ExprOp.CEIL_DIV) and _is_number(args[1]) and args[1] == 0:
                raise ZeroDivisionError("division by zero in a scalar expression")
            made = expression(item, *args)
            if isinstance(made, ScalarExpr) and all(_is_number(argument) for argument in args):
                raise OverflowError(f"{item.value} in a scalar expression is beyond the range of floats")
            done.append(made)
        elif isinstance(item, ScalarExpr):
            parts = operands(item)
            stack.append((operation_of(item), len(parts)))
            stack.extend((part, None) for part in reversed(parts))
        else:
            done.append(_bound(item, bindings) if isinstance(item, Symbol) else item)
    return done[0]
