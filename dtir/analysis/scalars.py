"""Scalars as text: ``4 * workload.b + 2``, with brackets only where they are needed."""

from __future__ import annotations

from dtir.ir.expr import (
    Add,
    CeilDivide,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Scalar,
    ScalarExpr,
    Subtract,
    Symbol,
    operands,
)

_ATOM, _PRODUCT, _SUM = 2, 1, 0


def scalar_text(scalar: Scalar) -> str:
    """A scalar as a person writes it; symbols with the axis that binds them.

    The walk keeps its own stack: an expression may be deeper than the interpreter's.

    >>> from dtir.ir.expr import BindingAxis, Symbol
    >>> b = Symbol("b", BindingAxis.WORKLOAD)
    >>> scalar_text((b + 1) * 32)
    '(workload.b + 1) * 32'
    """
    done: list[tuple[str, int]] = []
    pending: list[tuple[Scalar, bool]] = [(scalar, False)]
    while pending:
        item, visited = pending.pop()
        if not isinstance(item, ScalarExpr):
            done.append((f"{item.axis.value}.{item.name}" if isinstance(item, Symbol) else repr(item), _ATOM))
            continue
        parts = operands(item)
        if not visited:
            pending.append((item, True))
            pending.extend((part, False) for part in reversed(parts))
            continue
        texts = done[-len(parts) :]
        del done[-len(parts) :]
        done.append(_joined(item, texts))
    return done[0][0]


def _joined(item: ScalarExpr, texts: list[tuple[str, int]]) -> tuple[str, int]:
    match item:
        case Add():
            return " + ".join(_in(text, _SUM) for text in texts), _SUM
        case Subtract():
            return f"{_in(texts[0], _SUM)} - {_in(texts[1], _PRODUCT)}", _SUM
        case Multiply():
            return " * ".join(_in(text, _PRODUCT) for text in texts), _PRODUCT
        case Divide():
            return f"{_in(texts[0], _PRODUCT)} / {_in(texts[1], _ATOM)}", _PRODUCT
        case CeilDivide():
            return f"ceil({_in(texts[0], _PRODUCT)} / {_in(texts[1], _ATOM)})", _ATOM
        case Maximum():
            return f"max({', '.join(text for text, _ in texts)})", _ATOM
        case Minimum():
            return f"min({', '.join(text for text, _ in texts)})", _ATOM
        case _:
            raise TypeError(f"item={item!r} ({type(item).__name__}) is no scalar expression")


def _in(text: tuple[str, int], needed: int) -> str:
    return text[0] if text[1] >= needed else f"({text[0]})"
