"""Which part of a value each rank holds, as index ranges of the undivided value and as local shapes.

>>> from dtir.ir import LogicalMesh, MeshAxis, ShardingSpec, TensorType
>>> mesh = LogicalMesh("m", (MeshAxis("x", 2),))
>>> Placement(mesh, (6, 4), ShardingSpec((("x",), ()))).box(1)
((3, 6), (0, 4))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dtir.ir.expr import Scalar, ScalarExpr, Symbol
from dtir.ir.mesh import LogicalMesh
from dtir.ir.sharding import ShardingSpec
from dtir.ir.values import DistributedValue

Bounds: TypeAlias = tuple[int, int]
Box: TypeAlias = tuple[Bounds, ...]


class PlacementError(ValueError):
    """A value cannot be placed: a symbolic size, a dim that does not split, an axis that is not there."""


def concrete(extent: Scalar, bindings: Mapping[str, int | float]) -> int:
    """A dim size as a number.

    Raises:
        PlacementError: a symbol has no value, or the size is no whole number.
    """
    value = extent
    if isinstance(value, (Symbol, ScalarExpr)):
        symbols = value.free_symbols
        missing = [symbol.name for symbol in symbols if symbol.name not in bindings]
        if missing:
            raise PlacementError(f"the size {', '.join(sorted(set(missing)))} has no value")
        value = value.evaluate(bindings)
    if value != int(value):
        raise PlacementError(f"the size {value} is no whole number")
    return int(value)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the parts of one value are.

    Args:
        mesh: the mesh.
        shape: the undivided shape (along `sharding.varying` axes: what one rank holds).
        sharding: the layout.
        overrides: shapes that single ranks hold, where they are declared.
    """

    mesh: LogicalMesh
    shape: tuple[int, ...]
    sharding: ShardingSpec
    overrides: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    @classmethod
    def of(cls, value: DistributedValue, mesh: LogicalMesh, bindings: Mapping[str, int | float]) -> Placement:
        """The placement of a value.

        Raises:
            PlacementError: a size has no value, the layout has another number of dims, or names an unknown axis.
        """
        shape = tuple(concrete(extent, bindings) for extent in value.type.shape)
        sharding = value.sharding
        if len(sharding.dimension_axes) != len(shape):
            raise PlacementError(f"the layout speaks of {len(sharding.dimension_axes)} dims, the type has {len(shape)}")
        unknown = [axis for axis in sharding.named_axes if axis not in mesh.axis_names]
        if unknown:
            raise PlacementError(f"the mesh has no axis {unknown[0]!r}")
        return cls(mesh, shape, sharding, {item.rank: item.shape for item in value.local_shapes})

    def position(self, rank: int, axes: Sequence[str]) -> int:
        """Row-major position of a rank along some axes, major to minor."""
        if not axes:
            return 0
        coordinates = dict(zip(self.mesh.axis_names, self.mesh.coordinates(rank), strict=True))
        place = 0
        for axis in axes:
            place = place * self.mesh.axis_size(axis) + coordinates[axis]
        return place

    def sizes(self, dim: int) -> tuple[int, ...] | None:
        """Declared shard sizes of a dim."""
        return next((item.sizes for item in self.sharding.sizes if item.dim == dim), None)

    def halo(self, dim: int) -> Bounds:
        """Ghost elements of a dim, before and after the block."""
        halo = self.sharding.halo
        found = next((item for item in halo.dims if item.dim == dim), None) if halo is not None else None
        return (found.before, found.after) if found is not None else (0, 0)

    def shards(self, dim: int) -> int:
        """Number of shards of a dim."""
        return math.prod(self.mesh.axis_size(axis) for axis in self.sharding.dimension_axes[dim])

    def _span(self, rank: int, dim: int) -> Bounds:
        """The block of a dim as declared: with explicit sizes it may reach beyond the value (padding)."""
        extent, count = self.shape[dim], self.shards(dim)
        axes, sizes = self.sharding.dimension_axes[dim], self.sizes(dim)
        if not axes and sizes is None:
            return 0, extent
        place = self.position(rank, axes)
        if sizes is not None:
            if len(sizes) != count:
                raise PlacementError(f"dim {dim} has {len(sizes)} shard sizes for {count} shards")
            start = sum(sizes[:place])
            return start, start + sizes[place]
        if extent % count:
            raise PlacementError(
                f"dim {dim} of {extent} elements does not split over {count} ranks, and no sizes are declared"
            )
        step = extent // count
        return place * step, (place + 1) * step

    def box(self, rank: int) -> Box:
        """The block of the undivided value that a rank holds: without ghosts, without padding.

        Raises:
            PlacementError: a dim does not split.
        """
        found: list[Bounds] = []
        for dim, extent in enumerate(self.shape):
            start, stop = self._span(rank, dim)
            found.append((min(start, extent), min(stop, extent)))
        return tuple(found)

    def local_shape(self, rank: int) -> tuple[int, ...]:
        """The shape that a rank holds: block, padding and ghosts."""
        if rank in self.overrides:
            return self.overrides[rank]
        found: list[int] = []
        for dim in range(len(self.shape)):
            start, stop = self._span(rank, dim)
            before, after = self.halo(dim)
            found.append(stop - start + before + after)
        return tuple(found)

    def interior(self, rank: int) -> tuple[slice, ...]:
        """Where the block lies in what the rank holds: ghosts before it, padding and ghosts after it."""
        found: list[slice] = []
        for dim, (start, stop) in enumerate(self.box(rank)):
            before, _ = self.halo(dim)
            found.append(slice(before, before + stop - start))
        return tuple(found)

    @property
    def has_ghosts(self) -> bool:
        """True when ranks hold ghost elements."""
        return self.sharding.halo is not None

    @property
    def partial_axes(self) -> tuple[str, ...]:
        """Axes along which a reduction is pending."""
        return self.sharding.partial_axes

    def same_on_all(self) -> bool:
        """True when every rank holds the whole value."""
        return (
            not any(self.sharding.dimension_axes)
            and not self.sharding.varying
            and not self.sharding.partial_axes
            and not self.sharding.halo
            and not self.overrides
        )
