"""What a program lets us assume about its symbols, and what follows about divisibility.

Facts are text, as the authoring form writes them: ``B % 4 == 0``, ``S % (2 * tp) == 0``, ``H == 64``. A name of a mesh
axis on the right stands for its size.

>>> facts = read_facts(("B % 4 == 0",), {})
>>> from dtir.ir.expr import BindingAxis, Symbol
>>> b = Symbol("B", BindingAxis.WORKLOAD)
>>> facts.divides(4, b * 3), facts.divides(8, b)
(True, False)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dtir.ir.expr import (
    Add,
    CeilDivide,
    Divide,
    ExprOp,
    Maximum,
    Minimum,
    Multiply,
    Scalar,
    ScalarExpr,
    Subtract,
    Symbol,
    expression,
    operands,
    substitute,
)

_MULTIPLE = re.compile(r"\s*(?P<left>[^%=]+?)\s*%\s*\(?(?P<right>[^%=()]+)\)?\s*==\s*0\s*")
_EQUAL = re.compile(r"\s*(?P<left>[A-Za-z_]\w*)\s*==\s*(?P<right>[^%=()]+)\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")
MAX_FACTS = 10_000
"""Facts beyond this number are not read; nobody writes so many by hand."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be assumed about symbols.

    Args:
        multiples: symbol name to the greatest number it is known to be a multiple of.
        values: symbol name to its only possible value.
        products: sorted names of a product to the number that the product is a multiple of.
        unread: facts in a form that is not understood.
    """

    multiples: Mapping[str, int] = field(default_factory=dict[str, int])
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    products: Mapping[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    unread: tuple[str, ...] = ()

    def known_multiple(self, extent: Scalar) -> int:
        """The greatest number that `extent` is known to be a multiple of; 0 for the number 0, else at least 1."""
        done: list[int] = []
        stack: list[tuple[Scalar, bool]] = [(extent, False)]
        while stack:
            item, ready = stack.pop()
            if not isinstance(item, ScalarExpr):
                done.append(self._of_leaf(item))
                continue
            parts = operands(item)
            if not ready:
                stack.append((item, True))
                stack.extend((part, False) for part in reversed(parts))
                continue
            found = done[-len(parts) :]
            del done[-len(parts) :]
            done.append(self._of_node(item, parts, found))
        return done[0]

    def divides(self, divisor: int, extent: Scalar) -> bool:
        """True when `extent` is known to be a multiple of `divisor`."""
        return divisor == 1 or self.known_multiple(extent) % divisor == 0

    def _of_leaf(self, item: Scalar) -> int:
        if isinstance(item, Symbol):
            if item.name in self.values:
                return abs(self.values[item.name])
            return self.multiples.get(item.name, 1)
        if isinstance(item, float):
            return abs(int(item)) if item.is_integer() else 1
        return abs(item) if isinstance(item, int) else 1

    def _of_node(self, item: Scalar, parts: Sequence[Scalar], found: list[int]) -> int:
        match item:
            case Add() | Subtract():
                return math.gcd(*found)
            case Multiply():
                return self._of_product(parts, found)
            case Divide():
                number, divisor = found[0], parts[1]
                if isinstance(divisor, int) and divisor and number % divisor == 0:
                    return abs(number // divisor)
                return 1
            case Maximum() | Minimum():
                return math.gcd(*found)
            case CeilDivide():
                return 1
            case _:
                return 1

    def _of_product(self, parts: Sequence[Scalar], found: list[int]) -> int:
        whole = math.prod(found)
        names = tuple(sorted(part.name for part in parts if isinstance(part, Symbol)))
        stated = self.products.get(names, 1)
        numbers = math.prod(part for part in parts if isinstance(part, int))
        return math.lcm(whole, stated * abs(numbers)) if whole else 0


def read_facts(assume: Sequence[str], axis_sizes: Mapping[str, int]) -> Facts:
    """The facts of a program's `assume` list; `axis_sizes` gives names of mesh axes their number."""
    multiples: dict[str, int] = {}
    values: dict[str, int] = {}
    products: dict[tuple[str, ...], int] = {}
    unread: list[str] = list(assume[MAX_FACTS:])
    for text in assume[:MAX_FACTS]:
        if match := _MULTIPLE.fullmatch(text):
            names = [part.strip() for part in match["left"].strip("() ").split("*")]
            number = _number(match["right"], axis_sizes)
            if number and all(_NAME.fullmatch(name) for name in names):
                if len(names) == 1:
                    multiples[names[0]] = math.lcm(multiples.get(names[0], 1), number)
                else:
                    key = tuple(sorted(names))
                    products[key] = math.lcm(products.get(key, 1), number)
                continue
        elif match := _EQUAL.fullmatch(text):
            number = _number(match["right"], axis_sizes)
            if number is not None:
                values[match["left"]] = number
                continue
        unread.append(text)
    return Facts(multiples, values, products, tuple(unread))


def _number(text: str, axis_sizes: Mapping[str, int]) -> int | None:
    """A product of numbers and axis names; None when it is something else."""
    product = 1
    for part in text.split("*"):
        word = part.strip()
        # Longer numbers than any extent are refused: a file may hold digits without end.
        if word.isdecimal() and len(word) <= 18:
            product *= int(word)
        elif word in axis_sizes:
            product *= axis_sizes[word]
        else:
            return None
    return product


def bound(extent: Scalar, bindings: Mapping[str, int | float]) -> Scalar:
    """The extent with the program's bindings put in; unchanged where a binding does not fit the symbol."""
    if not bindings or not isinstance(extent, (Symbol, ScalarExpr)):
        return extent
    try:
        return substitute(extent, bindings)
    except (ValueError, ArithmeticError):
        return extent


def whole_number(extent: Scalar, bindings: Mapping[str, int | float]) -> int | None:
    """The extent as an int, bindings put in; None while it is symbolic or has a fraction."""
    if isinstance(extent, int):
        return extent
    value = bound(extent, bindings)
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def divided(extent: Scalar, count: int) -> Scalar:
    """The extent of one of `count` equal parts; an extent beyond all floats stays as it is."""
    if count == 1:
        return extent
    if isinstance(extent, int) and extent % count == 0:
        return extent // count
    try:
        return expression(ExprOp.DIV, extent, count)
    except ArithmeticError:
        return extent
