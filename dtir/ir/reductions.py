"""Reduction operators of collectives and pending values."""

from __future__ import annotations

from enum import Enum

from dtir.schema.authoring import enum


@enum("blueprinting.ir.distributed-task.reduction-kind", extensions=("AVERAGE", "AND", "OR", "XOR", "CUSTOM"))
class ReductionKind(Enum):
    """An associative reduction; `CUSTOM` is a reducer computation that is none of the others.

    The upstream format has the first four.
    """

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"
    AVERAGE = "avg"
    AND = "and"
    OR = "or"
    XOR = "xor"
    CUSTOM = "custom"
