"""The mesh of a partition, and how fields of bins lie over it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange
from dtir.ir.sharding import Halo, HaloDim, ShardingSpec, ShardSizes
from dtir.spec.partition import DIMS, Partition, even_sizes

AXES = ("dx", "dy", "dz")
"""Mesh axes of the grid of domains along x, y and z; one that is not cut is left out."""


@dataclass(frozen=True, eq=False)
class Domains:
    """Layouts of fields ``(bins_x, bins_y, bins_z, slots)`` over a partition.

    Args:
        partition: who owns which bins; blocks of bins along x where it deals out atoms by number.
        whole: every rank holds everything.
    """

    partition: Partition
    whole: bool
    shape: tuple[int, ...] = field(init=False)
    axis_of: dict[int, str] = field(init=False)
    mesh: LogicalMesh = field(init=False)
    everyone: RankRange = field(init=False)

    def __post_init__(self) -> None:
        partition = self.partition
        cut = partition.grid if partition.sizes else (partition.ranks, 1, 1)
        used = [axis for axis in range(DIMS) if cut[axis] > 1] or [0]
        mesh = LogicalMesh("domains", tuple(MeshAxis(AXES[axis], cut[axis]) for axis in used))
        object.__setattr__(self, "shape", (*partition.system.bins, partition.system.slots))
        object.__setattr__(self, "axis_of", {axis: AXES[axis] for axis in used})
        object.__setattr__(self, "mesh", mesh)
        object.__setattr__(self, "everyone", RankRange(0, mesh.size))

    def split(self, *, halo: bool = False) -> ShardingSpec:
        """A field over the domains, with ghosts where asked for."""
        if self.whole:
            return self.replicated(len(self.shape))
        dims = (*((self.axis_of[axis],) if axis in self.axis_of else () for axis in range(DIMS)), ())
        sizes: list[ShardSizes] = []
        for axis, name in self.axis_of.items():
            parts = self.partition.sizes[axis] if self.partition.sizes else self._block_sizes()
            if len(set(parts)) > 1 or sum(parts) % self.mesh.axis_size(name):
                sizes.append(ShardSizes(axis, tuple(parts)))
        frame = [
            HaloDim(axis, layers, layers)
            for axis, layers in enumerate(self.partition.ghost_bins)
            if axis in self.axis_of and layers
        ]
        return ShardingSpec(dims, (), sizes=tuple(sizes), halo=Halo(tuple(frame)) if halo and frame else None)

    def _block_sizes(self) -> tuple[int, ...]:
        return even_sizes(self.shape[0], self.partition.ranks)

    def replicated(self, rank: int) -> ShardingSpec:
        """A tensor of `rank` dims on every rank."""
        return ShardingSpec.replicated(rank, self.mesh.axis_names)

    def largest(self, sharding: ShardingSpec) -> int:
        """Elements of the largest block of a layout."""
        count = 1
        for dim, (extent, axes) in enumerate(zip(self.shape, sharding.dimension_axes, strict=True)):
            parts = next((item.sizes for item in sharding.sizes if item.dim == dim), None)
            ranks = math.prod(self.mesh.axis_size(axis) for axis in axes)
            count *= max(parts) if parts is not None else extent // ranks
        return count
