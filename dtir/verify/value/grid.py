"""Ranks as positions on axes, and which block of a value a rank holds. Concrete sizes only.

The value-level judge has its own geometry, so that it shares no code with the rules that it checks.

>>> grid = Grid(("dp", "tp"), (2, 3))
>>> grid.coordinate(4, "tp"), grid.position(4, ("tp", "dp")), grid.fibres(("dp",))
(1, 3, ((0, 3), (1, 4), (2, 5)))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Grid:
    """A mesh: ranks are row-major, the first axis most significant."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    @cached_property
    def count(self) -> int:
        """Number of ranks."""
        return math.prod(self.sizes)

    @cached_property
    def size(self) -> dict[str, int]:
        """Axis sizes by name."""
        return dict(zip(self.axes, self.sizes, strict=True))

    @cached_property
    def stride(self) -> dict[str, int]:
        """Rank distance of one step along each axis."""
        found: dict[str, int] = {}
        step = 1
        for axis, size in zip(reversed(self.axes), reversed(self.sizes), strict=True):
            found[axis] = step
            step *= size
        return found

    def coordinate(self, rank: int, axis: str) -> int:
        """Position of a rank on one axis."""
        return rank // self.stride[axis] % self.size[axis]

    def coordinates(self, rank: int) -> dict[str, int]:
        """Position of a rank on every axis."""
        return {axis: self.coordinate(rank, axis) for axis in self.axes}

    def place(self, rank: int, axes: Iterable[str]) -> tuple[int, ...]:
        """Positions of a rank on some axes, as listed."""
        return tuple(self.coordinate(rank, axis) for axis in axes)

    def position(self, rank: int, axes: Iterable[str]) -> int:
        """Row-major position of a rank along some axes, the first most significant."""
        index = 0
        for axis in axes:
            index = index * self.size[axis] + self.coordinate(rank, axis)
        return index

    def members(self, axes: Iterable[str]) -> int:
        """Number of positions of some axes together."""
        return math.prod(self.size[axis] for axis in axes)

    def fibre(self, rank: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The ranks that differ from a rank along `axes` only, in row-major order of the axes as listed."""
        base = rank - sum(self.coordinate(rank, axis) * self.stride[axis] for axis in axes)
        steps = itertools.product(*(range(self.size[axis]) for axis in axes))
        return tuple(
            base + sum(step * self.stride[axis] for step, axis in zip(position, axes, strict=True))
            for position in steps
        )

    def fibres(self, axes: Sequence[str], within: Iterable[int] | None = None) -> tuple[tuple[int, ...], ...]:
        """The groups of ranks that differ along `axes` only; with `within`, those that lie in it completely."""
        ranks = range(self.count) if within is None else sorted(set(within))
        known = None if within is None else set(ranks)
        found: list[tuple[int, ...]] = []
        seen: set[int] = set()
        for rank in ranks:
            if rank in seen:
                continue
            group = self.fibre(rank, axes)
            seen.update(group)
            if known is None or known.issuperset(group):
                found.append(group)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Span:
    """One dim of a block: the real elements ``start .. stop`` of the whole, and how many the local array has (padding included)."""

    start: int
    stop: int
    held: int


def even_span(extent: int, count: int, index: int) -> Span:
    """Block `index` of `count`: pieces of ``ceil(extent / count)``, the last ones shorter or empty."""
    size = -(-extent // count)
    start = min(index * size, extent)
    stop = min(start + size, extent)
    return Span(start, stop, stop - start)


def listed_span(extent: int, sizes: Sequence[int], index: int) -> Span:
    """Block `index` of explicit sizes; what they have beyond the extent is padding."""
    start = sum(sizes[:index])
    return Span(min(start, extent), min(start + sizes[index], extent), sizes[index])
