"""One HLO operation as the evaluators see it: opcode, types, attributes, and where it runs.

Every array has a leading dim of *instances*: the ranks that execute the operation together, or the elements that a
reducer is applied to. An evaluator works on all instances at once, and never mixes them.

Semantics of the operations: the public XLA documentation (openxla.org/xla/operation_semantics) and, where that is
silent, what XLA's CPU back end computes. Denormal numbers are kept, which that back end sets to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dtir.execute.dtypes import Array, numpy_dtype

T = TypeVar("T")


class HloError(ValueError):
    """The operation cannot be evaluated as it stands: an attribute is missing or does not fit."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Element type and dims of one array, without the dim of instances; `layout` is minor to major, () when not stated."""

    dtype: str
    shape: tuple[int, ...]
    layout: tuple[int, ...] = ()

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type of its elements."""
        return numpy_dtype(self.dtype)


@dataclass(frozen=True, slots=True)
class Devices:
    """How ranks number replicas and partitions: ``rank = replica * partitions + partition``."""

    replicas: int = 1
    partitions: int = 1


Apply: TypeAlias = Callable[[str, Sequence[Array]], tuple[Array, ...]]
"""Evaluates a computation on arrays of instances (all scalars: shape ``(instances,)``)."""


def _no_apply(name: str, operands: Sequence[Array]) -> tuple[Array, ...]:
    del operands
    raise HloError(f"computation {name} is not at hand")


def _no_reducer(name: str) -> str | None:
    del name
    return None


@dataclass(frozen=True, slots=True)
class Context:
    """Where operations run.

    Args:
        xp: the array module.
        ranks: the rank of every instance.
        devices: how ranks number replicas and partitions; None inside an applied computation, which has no rank.
        apply: evaluates a called computation.
        reducer: the opcode of a computation that is one operation on its first two parameters in order, else None;
            of a comparison with its direction and, where stated, its type: ``compare.LT.TOTALORDER``.
        seed: root of all random numbers that HLO leaves to the implementation.
    """

    xp: Any = np
    ranks: Sequence[int] = (0,)
    devices: Devices | None = Devices()
    apply: Apply = _no_apply
    reducer: Callable[[str], str | None] = _no_reducer
    seed: int = 0


@dataclass(frozen=True, slots=True)
class HloCall:
    """One operation.

    Args:
        opcode: as HLO names it.
        operands: types of the operands.
        results: types of the results; a tuple is its leaves.
        attributes: attributes by their HLO names, as the values of `dtir.execute.hlo.attributes`.
        name: what to call it in messages.
    """

    opcode: str
    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    name: str = ""

    @property
    def result(self) -> ArrayType:
        """The type of the only result.

        Raises:
            HloError: there are several, or none.
        """
        if len(self.results) != 1:
            raise HloError(f"{self.opcode} gives one result, {len(self.results)} are declared")
        return self.results[0]

    def get(self, key: str, kind: type[T], default: T) -> T:
        """An attribute, or a default where it is absent.

        Raises:
            HloError: it is of another kind.
        """
        value = self.attributes.get(key, default)
        if not isinstance(value, kind):
            raise HloError(f"attribute {key} of {self.opcode} is {value!r}, not a {kind.__name__}")
        return value

    def need(self, key: str, kind: type[T]) -> T:
        """An attribute that must be there.

        Raises:
            HloError: it is absent or of another kind.
        """
        if key not in self.attributes:
            raise HloError(f"{self.opcode} lacks its attribute {key}")
        value = self.attributes[key]
        if not isinstance(value, kind):
            raise HloError(f"attribute {key} of {self.opcode} is {value!r}, not a {kind.__name__}")
        return value

    def dims(self, key: str = "dimensions", default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute that lists dims or sizes.

        Raises:
            HloError: it is absent without a default, or holds something else.
        """
        value: Any = self.attributes.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool):
            value = (value,)
        if not isinstance(value, tuple):
            raise HloError(f"{self.opcode} needs the attribute {key}, a list of ints; it is {value!r}")
        return tuple(int(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


Operands: TypeAlias = Sequence[Array]
Results: TypeAlias = tuple[Array, ...]
Evaluator: TypeAlias = Callable[[Context, HloCall, Operands], Results]
