"""The two number systems in which operators are evaluated: floats, and integers modulo a prime.

Modulo a prime, sums and products are exact, so that two ways to compute a polynomial agree in every digit or are
different (Schwartz and Zippel). Elements stay below 2**20, products below 2**40, so that 64-bit sums of products stay
exact up to 2**23 terms.

>>> import numpy as np
>>> Field(np, 1_048_573).number(Fraction(1, 2))
524287
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

Array: TypeAlias = Any
"""An array of the module in use (numpy, cupy)."""


class Arithmetic(Protocol):
    """A number system over an array module."""

    @property
    def xp(self) -> Any:
        """The array module."""
        ...

    @property
    def exact(self) -> bool:
        """True modulo a prime."""
        ...

    def number(self, value: Fraction) -> int | float:
        """A rational constant as an element."""
        ...

    def settle(self, array: Array) -> Array:
        """The array with every element in its normal form; called after each sum of products."""
        ...


@dataclass(frozen=True, slots=True)
class Floats:
    """Ordinary floating point numbers of an array module."""

    xp: Any
    exact: bool = field(default=False, init=False)

    def number(self, value: Fraction) -> int | float:
        return value.numerator / value.denominator

    def settle(self, array: Array) -> Array:
        return array


@dataclass(frozen=True, slots=True)
class Field:
    """Integers modulo a prime below 2**20, in 64-bit arrays.

    Raises:
        ZeroDivisionError: from `number`, when the denominator is a multiple of the prime.
    """

    xp: Any
    prime: int
    exact: bool = field(default=True, init=False)

    def number(self, value: Fraction) -> int | float:
        denominator = value.denominator % self.prime
        if denominator == 0:
            raise ZeroDivisionError(f"{value} has no value modulo {self.prime}")
        return value.numerator * pow(denominator, -1, self.prime) % self.prime

    def settle(self, array: Array) -> Array:
        return array % self.prime


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call runs: what an operator may know beyond its operands.

    Args:
        rank: the rank, or None for the undivided program.
        offsets: per result the global index of its first element along every dim.
        coordinates: position of the rank on every mesh axis; empty for the undivided program.
        sizes: sizes of the mesh axes.
        seed: root of all random numbers of the run.
    """

    rank: int | None = None
    offsets: tuple[tuple[int, ...], ...] = ()
    coordinates: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0
