"""Scalars as numbers, where they are."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dtir.ir.errors import BindingError
from dtir.ir.expr import Scalar, ScalarExpr, Symbol
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint


def number_of(scalar: Scalar | None, bindings: Mapping[str, int | float]) -> float:
    """A scalar as a number under the program's own bindings; NaN where a symbol stays open."""
    if scalar is None:
        return math.nan
    if isinstance(scalar, (Symbol, ScalarExpr)):
        try:
            return float(scalar.evaluate(bindings))
        except (BindingError, ZeroDivisionError, OverflowError):
            return math.nan
    try:
        return float(scalar)
    except OverflowError:
        return math.inf


def message_of(task: DistributedTask) -> Scalar | None:
    """The size of the message that a communication task names."""
    return task.body.spec.message_bytes if isinstance(task.body, (Collective, PointToPoint)) else None
