"""Symbolic sizes as text: ``B``, ``2 * B``, ``ceil(B / 4)``, ``max(B, 8)``.

The grammar: sums and differences of products and quotients of numbers, names, brackets, and ``ceil(a / b)``, ``max(...)``,
``min(...)``. A name may carry the axis that binds it, ``workload.B``; without one it is a workload symbol.

>>> write_scalar(parse_scalar("2 * B + 1", {}))
'(2 * workload.B) + 1'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from dtir.ir.expr import (
    BindingAxis,
    ExprOp,
    Scalar,
    ScalarExpr,
    Symbol,
    ceil_div,
    expression,
    maximum,
    minimum,
    operands,
    operation_of,
)

MOST_CHARACTERS = 2000
MOST_DEPTH = 40

_TOKEN = re.compile(r"\s*(?:(\d+\.\d+|\d+)|((?:[A-Za-z]+\.)?\w+)|([-+*/(),]))")
_AXES = {axis.value: axis for axis in BindingAxis}


class ScalarError(ValueError):
    """The text is no scalar."""


@dataclass(slots=True)
class _Parser:
    tokens: list[str]
    symbols: Mapping[str, Symbol]
    at: int = 0
    depth: int = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str) -> None:
        if self.next != wanted:
            raise ScalarError(f"expected {wanted!r}, found {self.next or 'the end'!r}")
        self.at += 1

    def sum(self) -> Scalar:
        return self.chain(("+", "-"), ExprOp.ADD, ExprOp.SUB, self.product)

    def product(self) -> Scalar:
        return self.chain(("*", "/"), ExprOp.MUL, ExprOp.DIV, self.atom)

    def chain(self, signs: tuple[str, str], many: ExprOp, two: ExprOp, part: Callable[[], Scalar]) -> Scalar:
        """``a + b + c`` is one sum of three; every ``-`` makes a difference of what stands before and after it."""
        terms = [part()]
        while self.next in signs:
            sign = self.next
            self.at += 1
            if sign == signs[0]:
                terms.append(part())
            else:
                left = expression(many, *terms) if len(terms) > 1 else terms[0]
                terms = [expression(two, left, part())]
        return expression(many, *terms) if len(terms) > 1 else terms[0]

    def atom(self) -> Scalar:
        token = self.next
        self.at += 1
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise ScalarError(f"it nests deeper than {MOST_DEPTH} levels")
        if token == "(":
            value = self.sum()
            self.take(")")
        elif token in ("ceil", "max", "min") and self.next == "(":
            value = self.call(token)
        elif re.fullmatch(r"\d+\.\d+", token):
            value = float(token)
        elif token.isascii() and token.isdigit():
            value = int(token)
        elif re.fullmatch(r"(?:[A-Za-z]+\.)?\w+", token):
            value = self.symbol(token)
        else:
            raise ScalarError(f"unexpected {token or 'end'!r}")
        self.depth -= 1
        return value

    def call(self, name: str) -> Scalar:
        self.take("(")
        if name == "ceil":
            numerator = self.atom()
            self.take("/")
            value = ceil_div(numerator, self.atom())
        else:
            values = [self.sum()]
            while self.next == ",":
                self.at += 1
                values.append(self.sum())
            if len(values) < 2:
                raise ScalarError(f"{name} takes at least two values")
            value = maximum(*values) if name == "max" else minimum(*values)
        self.take(")")
        return value

    def symbol(self, token: str) -> Symbol:
        axis, dot, name = token.partition(".")
        if not dot:
            axis, name = BindingAxis.WORKLOAD.value, token
        if axis not in _AXES:
            raise ScalarError(f"{axis!r} is no binding axis (known: {', '.join(_AXES)})")
        return self.symbols.get(f"{axis}.{name}") or Symbol(name, _AXES[axis])


def write_scalar(scalar: Scalar) -> str:
    """A scalar as text that `parse_scalar` reads as the same scalar, nested parts in brackets.

    >>> write_scalar(parse_scalar("ceil(B / 4) * 2", {}))
    'ceil(workload.B / 4) * 2'
    """
    done: list[str] = []
    pending: list[tuple[Scalar, bool]] = [(scalar, False)]
    while pending:  # own stack: an expression may be deeper than the interpreter's
        item, visited = pending.pop()
        if isinstance(item, Symbol):
            done.append(f"{item.axis.value}.{item.name}")
        elif not isinstance(item, ScalarExpr):
            done.append(repr(item))
        elif not visited:
            pending.append((item, True))
            pending.extend((part, False) for part in reversed(operands(item)))
        else:
            count = len(operands(item))
            texts = done[-count:]
            del done[-count:]
            done.append(_joined(operation_of(item), texts, outermost=not pending))
    return done[0]


def _joined(operation: ExprOp, texts: list[str], outermost: bool) -> str:
    match operation:
        case ExprOp.CEIL_DIV:
            return f"ceil({texts[0]} / {texts[1]})"
        case ExprOp.MAX | ExprOp.MIN:
            return f"{'max' if operation is ExprOp.MAX else 'min'}({', '.join(texts)})"
        case ExprOp.ADD | ExprOp.SUB | ExprOp.MUL | ExprOp.DIV:
            sign = {ExprOp.ADD: "+", ExprOp.SUB: "-", ExprOp.MUL: "*", ExprOp.DIV: "/"}[operation]
            joined = f" {sign} ".join(texts)
            return joined if outermost else f"({joined})"
        case _:
            assert_never(operation)


def parse_scalar(text: str, symbols: Mapping[str, Symbol]) -> Scalar:
    """The scalar that a text says.

    Args:
        symbols: symbols that are declared with more than a name, by ``axis.name``.

    Raises:
        ScalarError: it is none; the message says where.
    """
    if len(text) > MOST_CHARACTERS:
        raise ScalarError(f"it has {len(text)} characters, more than {MOST_CHARACTERS}")
    tokens: list[str] = []
    at = 0
    stripped = text.strip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise ScalarError(f"unexpected {stripped[at : at + 10]!r}")
        tokens.append(match[1] or match[2] or match[3])
        at = match.end()
    parser = _Parser(tokens, symbols)
    value = parser.sum()
    if parser.next:
        raise ScalarError(f"unexpected {parser.next!r}")
    return value
