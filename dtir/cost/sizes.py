"""What one rank holds of a value: local shapes and bytes, uneven shards and ghost layers included.

A dim that does not divide and has no stated sizes counts with its largest shard. A program that is not partitioned
(an HLO module before partitioning) counts with whole tensors: every rank stands for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from dtir.analysis.divisibility import bound
from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR
from dtir.ir.types import dtype_bits
from dtir.ir.values import DistributedValue

Number: TypeAlias = int | float
LocalExtents: TypeAlias = tuple[Number, ...]

UNDIVIDED = "global"
"""The form of an HLO module that is not partitioned (`hlo.form`)."""


def is_undivided(program: DistributedTaskIR) -> bool:
    """Whether shapes are those of whole tensors on every rank."""
    return program.attributes.get("hlo.form") == UNDIVIDED


class LocalSizes:
    """Local shapes of one program; equal layouts are looked at once."""

    def __init__(self, program: DistributedTaskIR, bindings: Mapping[str, int | float]) -> None:
        self._mesh: LogicalMesh = program.mesh
        self._bindings = bindings
        self._whole = is_undivided(program)
        self._strides: dict[str, int] = {}
        self._axis_sizes = {axis.name: axis.size for axis in program.mesh.axes}
        stride = 1
        for axis in reversed(program.mesh.axes):
            self._strides[axis.name] = stride
            stride *= axis.size
        # By identity of type and layout: the program keeps both alive.
        self._even: dict[tuple[int, int], LocalExtents | None] = {}
        self._uneven: dict[int, bool] = {}

    def is_uniform(self, value: DistributedValue) -> bool:
        """Whether all ranks hold as much."""
        if self._whole:
            return True
        return not value.local_shapes and not self._has_sizes(value)

    def _has_sizes(self, value: DistributedValue) -> bool:
        key = id(value.sharding)
        if key not in self._uneven:
            self._uneven[key] = any(len(set(item.sizes)) > 1 for item in value.sharding.sizes)
        return self._uneven[key]

    def shape(self, value: DistributedValue, rank: int = 0) -> LocalExtents | None:
        """The local shape on a rank, without ghosts; None while an extent is symbolic."""
        for item in value.local_shapes if not self._whole else ():
            if item.rank == rank:
                return item.shape
        key = (id(value.type), id(value.sharding))
        if key not in self._even:
            self._even[key] = self._largest(value)
        shape = self._even[key]
        if shape is None or self._whole or not self._has_sizes(value):
            return shape
        extents = list(shape)
        for item in value.sharding.sizes:
            if item.dim < len(extents):
                place = self._block(value, item.dim, rank)
                extents[item.dim] = item.sizes[place] if place < len(item.sizes) else 0
        return tuple(extents)

    def _block(self, value: DistributedValue, dim: int, rank: int) -> int:
        place = 0
        for axis in value.sharding.dimension_axes[dim] if dim < len(value.sharding.dimension_axes) else ():
            size = self._axis_sizes.get(axis, 1)
            place = place * size + rank // self._strides.get(axis, 1) % size
        return place

    def _largest(self, value: DistributedValue) -> LocalExtents | None:
        sizes = {item.dim: item.sizes for item in value.sharding.sizes}
        found: list[Number] = []
        for dim, extent in enumerate(value.type.shape):
            number = bound(extent, self._bindings)
            if not isinstance(number, (int, float)):
                return None
            axes = value.sharding.dimension_axes[dim] if dim < len(value.sharding.dimension_axes) else ()
            count = 1 if self._whole else math.prod(self._axis_sizes.get(axis, 1) for axis in axes)
            if dim in sizes and not self._whole:
                found.append(max(sizes[dim]))
            elif isinstance(number, int):
                found.append(-(-number // count))
            else:
                found.append(number / count)
        return tuple(found)

    def elements_bytes(self, extents: LocalExtents, dtype: str) -> Number | None:
        """Bytes of a dense array, narrow types packed; None when the dtype is not known."""
        bits = dtype_bits(dtype)
        if bits is None:
            return None
        count = math.prod(extents)
        return -(-count * bits // 8) if isinstance(count, int) else count * bits / 8

    def bytes_of(self, value: DistributedValue, rank: int = 0, *, ghosts: bool = True) -> Number | None:
        """Bytes that a rank holds of a value; None while symbolic or of an unknown dtype."""
        shape = self.shape(value, rank)
        if shape is None:
            return None
        halo = value.sharding.halo
        if ghosts and halo is not None:
            extents = list(shape)
            for item in halo.dims:
                if item.dim < len(extents):
                    extents[item.dim] += item.before + item.after
            shape = tuple(extents)
        return self.elements_bytes(shape, value.type.dtype)
