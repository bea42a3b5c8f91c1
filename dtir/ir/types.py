"""Tensor types, operation names and effects."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Any, TypeAlias

from dtir.ir.expr import (
    Add,
    CeilDivide,
    Divide,
    ExprOp,
    Maximum,
    Minimum,
    Multiply,
    Scalar,
    Subtract,
    Symbol,
    ceil_div,
    expression,
)
from dtir.schema.authoring import enum, record
from dtir.schema.frozen import EMPTY_MAP, FrozenDict
from dtir.schema.refinements import (
    NonEmptyText,
    NonNegativeInt,
    StableName,
    ValueConstraint,
)

TensorDimension: TypeAlias = (
    NonNegativeInt
    | Annotated[float, ValueConstraint.FINITE, ValueConstraint.POSITIVE]
    | Symbol
    | Add
    | Subtract
    | Multiply
    | Divide
    | CeilDivide
    | Maximum
    | Minimum
)

_KNOWN_TARGET_DIALECTS = frozenset({"cuda", "lpu", "nccl", "rccl", "rocm"})


@record("blueprinting.ir.tensor-type")
class TensorType:
    """Shape, element type and layout of a tensor.

    **Shapes**: `shape` is the global shape, unless the value's sharding says `varying` (then what one rank holds).
    **Constraints**: dims are non-negative integers, positive floats or symbolic scalars (an empty tensor is a fact of
    real programs; the upstream format has no 0); `layout` is a permutation of the dims, minor to major.
    """

    shape: tuple[TensorDimension, ...]
    dtype: StableName
    layout: tuple[int, ...] | None = None
    attributes: FrozenDict[Any] = EMPTY_MAP

    def __post_init__(self) -> None:
        if self.layout is not None and sorted(self.layout) != list(range(len(self.shape))):
            raise ValueError(f"layout must be a permutation of range({len(self.shape)}), got {self.layout}")

    def upstream_obstacle(self) -> str | None:
        """Why the upstream format cannot hold this type, or None."""
        if any(isinstance(dim, int) and dim == 0 for dim in self.shape):
            return f"TensorType.shape must match positive dimensions, got {self.shape}"
        return None

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """True when every dim is an integer."""
        return all(isinstance(dim, int) for dim in self.shape)


@record("blueprinting.ir.operation-name", order=True)
class OperationName:
    """``dialect.name`` of what a task does, for example ``hlo.dot``."""

    dialect: StableName
    name: StableName

    def __str__(self) -> str:
        return f"{self.dialect}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> OperationName:
        """Read ``dialect.name``; everything after the first dot is the name."""
        dialect, _, name = text.partition(".")
        return cls(dialect, name)


def is_known_target_dialect(operation: OperationName) -> bool:
    """True when the dialect names a device library: such operations are lowered code, not a distributed program."""
    return operation.dialect.lower() in _KNOWN_TARGET_DIALECTS


@enum("blueprinting.ir.effect-kind", extensions=("ALLOC", "FREE"))
class EffectKind(Enum):
    """What a task does to a named resource besides its values."""

    READ = "read"
    WRITE = "write"
    STATE = "state"
    RANDOM = "random"
    IO = "io"
    ALLOC = "alloc"
    FREE = "free"


@record("blueprinting.ir.effect")
class Effect:
    """One effect on one resource."""

    kind: EffectKind
    resource: NonEmptyText


_BIT_WIDTH = re.compile(r"[a-z]+?(\d+)")
_NAMED_BITS = {
    "pred": 8,
    "bool": 8,
    "token": 0,
    "opaque": 0,
    "half": 16,
    "float": 32,
    "double": 64,
    "int": 32,
    "long": 64,
    "bfloat16": 16,
    "c64": 64,
    "c128": 128,
    "complex64": 64,
    "complex128": 128,
}


def dtype_bits(dtype: str) -> int | None:
    """Bits of one element by the dtype's name; None when the name is not known.

    For example ``f32`` 32, ``s4`` 4, ``f8e4m3fn`` 8, ``bf16`` 16, ``float32`` 32.
    """
    lowered = dtype.lower()
    if lowered in _NAMED_BITS:
        return _NAMED_BITS[lowered]
    match = _BIT_WIDTH.match(lowered)
    return int(match.group(1)) if match else None


def elements_bytes(elements: Scalar, dtype: str) -> Scalar | None:
    """Bytes of a number of elements: ``ceil(elements * bits / 8)``; None when the dtype is not known."""
    bits = dtype_bits(dtype)
    if bits is None:
        return None
    if bits % 8 == 0:
        return expression(ExprOp.MUL, elements, bits // 8)
    return ceil_div(expression(ExprOp.MUL, elements, bits), 8)
