"""Input data: random, asymmetric, different on every rank where ranks may differ; all of it from one seed.

Shares of a pending value are random but for the last, which is the remainder, so that no share can be mistaken for the
whole. Copies that are not current hold other random data, different on every rank.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dtir.ir import ReductionKind
from dtir.ops.arithmetic import Arithmetic, Array
from dtir.ops.arithmetic import Field as PrimeField
from dtir.verify.value.case import CaseValue, Shape
from dtir.verify.value.grid import Grid

LEAST, MOST = 0.3, 1.3
"""Magnitude of float data: away from 0, so that quotients stay moderate, and within a small range, so that deep products do."""

_WHOLE_NUMBERS = re.compile(r"(?:s|u|i|int|uint)\d*")
_WHOLE_NUMBERS_BELOW = 97
_GARBAGE, _PER_RANK, _SHARE = 1, 2, 3


class Source:
    """Draws the data of one trial.

    Args:
        arithmetic: floats or a prime field.
        seed: root of all draws.
        positive: only positive floats (for square roots and logarithms); else both signs.
    """

    def __init__(self, arithmetic: Arithmetic, seed: int, positive: bool) -> None:
        self.arithmetic = arithmetic
        self.seed = seed
        self.positive = positive

    def _random(self, *key: int) -> Any:  # a numpy Generator, whose overloads say nothing more than Any
        return np.random.default_rng((self.seed, *key))

    def draw(self, shape: Shape, dtype: str, *key: int) -> Array:
        """An array of random elements of a dtype's kind."""
        random = self._random(*key)
        if isinstance(self.arithmetic, PrimeField):
            return random.integers(1, self.arithmetic.prime, size=shape, dtype=np.int64)
        kind = dtype.lower()
        if kind in ("pred", "bool", "i1"):
            return random.integers(0, 2, size=shape).astype(np.float64)
        if _WHOLE_NUMBERS.fullmatch(kind):
            return random.integers(0, _WHOLE_NUMBERS_BELOW, size=shape).astype(np.float64)
        return self.sign(random.uniform(LEAST, MOST, size=shape), random)

    def whole(self, value: CaseValue) -> Array | None:
        """The undivided input; None along per-rank axes, where there is no one logical value."""
        if value.varying or value.local_shapes:
            return None
        return self.draw(value.shape, value.dtype, value.index)

    def scatter(self, value: CaseValue, whole: Array | None, grid: Grid) -> dict[int, Array]:
        """What every owner holds of an input: its block of the scaled whole, or its share of it, or data of its own."""
        arrays: dict[int, Array] = {}
        shares: dict[tuple[int, ...], dict[tuple[int, ...], Array]] = {}
        for rank in value.owners:
            place = grid.place(rank, (*value.split, *value.varying))
            if not value.is_valid(rank):
                arrays[rank] = self.draw(value.local_shape(grid, rank), value.dtype, value.index, _GARBAGE, rank)
            elif whole is None:
                own = place if not value.local_shapes else (rank,)
                arrays[rank] = self.draw(value.local_shape(grid, rank), value.dtype, value.index, _PER_RANK, *own)
            else:
                block = self._block(value, whole, grid, rank)
                if value.folds:
                    if place not in shares:
                        shares[place] = self._shares(value, block, grid, (value.index, _SHARE, *place))
                    arrays[rank] = shares[place][grid.place(rank, value.folds)]
                else:
                    arrays[rank] = block
        return arrays

    def _block(self, value: CaseValue, whole: Array, grid: Grid, rank: int) -> Array:
        spans = value.block(grid, rank)
        block = whole[tuple(slice(span.start, span.stop) for span in spans)]
        padding = tuple((0, span.held - (span.stop - span.start)) for span in spans)
        block = np.pad(block, padding) if any(after for _, after in padding) else block
        if value.scale != 1:
            block = self.arithmetic.settle(block * self.arithmetic.number(value.scale))
        return block

    def _shares(self, value: CaseValue, block: Array, grid: Grid, key: tuple[int, ...]) -> dict[tuple[int, ...], Array]:
        """One array for every position on the pending axes."""
        found: dict[tuple[int, ...], Array] = {(): block}
        for axis, kind in value.folds.items():
            found = {
                (*place, step): share
                for place, array in found.items()
                for step, share in enumerate(
                    self._apart(array, kind, grid.size[axis], self._random(*key, len(place), *place))
                )
            }
        return found

    def _apart(self, array: Array, kind: ReductionKind, count: int, random: Any) -> list[Array]:
        """`count` arrays whose fold is `array`, none of them equal to it."""
        arithmetic = self.arithmetic
        match kind:
            case ReductionKind.SUM | ReductionKind.AVERAGE:
                total = array * count if kind is ReductionKind.AVERAGE else array
                parts = [self._like(array, random) for _ in range(count - 1)]
                rest = total
                for part in parts:
                    rest = arithmetic.settle(rest - part)
                return [*parts, arithmetic.settle(rest)]
            case ReductionKind.PRODUCT:
                parts = [self._like(array, random) for _ in range(count - 1)]
                rest = array
                for part in parts:
                    rest = arithmetic.settle(rest * self._inverse(part))
                return [*parts, rest]
            case ReductionKind.MAX | ReductionKind.MIN:
                winner = random.integers(0, count, size=array.shape)
                sign = -1.0 if kind is ReductionKind.MAX else 1.0
                distance = [random.uniform(LEAST, MOST, size=array.shape) for _ in range(count)]
                return [np.where(winner == place, array, array + sign * distance[place]) for place in range(count)]
            case ReductionKind.AND | ReductionKind.OR:
                winner = random.integers(0, count, size=array.shape)
                other = np.ones_like(array) if kind is ReductionKind.AND else np.zeros_like(array)
                return [np.where(winner == place, array, other) for place in range(count)]
            case ReductionKind.XOR:
                parts: list[Any] = [
                    random.integers(0, 2, size=array.shape).astype(array.dtype) for _ in range(count - 1)
                ]
                rest = array
                for part in parts:
                    rest = (rest != part).astype(array.dtype)
                return [*parts, rest]
            case ReductionKind.CUSTOM:
                return [array] * count

    def _like(self, array: Array, random: Any) -> Array:
        if isinstance(self.arithmetic, PrimeField):
            return random.integers(1, self.arithmetic.prime, size=array.shape, dtype=np.int64)
        return self.sign(random.uniform(LEAST, MOST, size=array.shape), random)

    def sign(self, magnitude: Array, random: Any) -> Array:
        """Magnitudes with random signs; as they are in a positive trial."""
        return magnitude if self.positive else magnitude * (2.0 * random.integers(0, 2, size=magnitude.shape) - 1.0)

    def _inverse(self, array: Array) -> Array:
        if isinstance(self.arithmetic, PrimeField):
            prime = self.arithmetic.prime
            flat = [pow(int(item), -1, prime) for item in np.ravel(array)]
            return np.array(flat, dtype=np.int64).reshape(array.shape)
        return 1.0 / array
