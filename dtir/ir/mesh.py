"""The logical mesh: named axes of virtual ranks. Nothing here names a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from dtir.schema.authoring import record
from dtir.schema.refinements import NonEmptyText, PositiveInt, ValueConstraint


@record("blueprinting.ir.distributed-task.mesh-axis")
class MeshAxis:
    """One named axis of the mesh."""

    name: NonEmptyText
    size: PositiveInt


MeshAxes: TypeAlias = Annotated[tuple[MeshAxis, ...], ValueConstraint.NON_EMPTY]


@record("blueprinting.ir.distributed-task.logical-mesh")
class LogicalMesh:
    """A Cartesian space of ranks: rank numbers are row-major, the first axis is the most significant.

    A mesh holds its axes only: two thousand million ranks cost as much memory as two.

    >>> mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4)))
    >>> mesh.size, mesh.coordinates(6), mesh.rank_of((1, 2))
    (8, (1, 2), 6)

    **Constraints**: at least one axis; axis names are unique.
    """

    name: NonEmptyText
    axes: MeshAxes

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise ValueError(f"logical mesh axes must be uniquely named, got {', '.join(names)}")

    @property
    def size(self) -> int:
        """Number of ranks."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis sizes, in order."""
        return tuple(axis.size for axis in self.axes)

    def axis_size(self, name: str) -> int:
        """Size of an axis.

        Raises:
            KeyError: no such axis.
        """
        for axis in self.axes:
            if axis.name == name:
                return axis.size
        raise KeyError(name)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Position of a rank on every axis.

        Raises:
            ValueError: the rank is outside the mesh.
        """
        if not 0 <= rank < self.size:
            raise ValueError(f"rank={rank} (int) is outside a mesh of {self.size} ranks")
        found: list[int] = []
        for axis in reversed(self.axes):
            rank, coordinate = divmod(rank, axis.size)
            found.append(coordinate)
        return tuple(reversed(found))

    def rank_of(self, coordinates: Sequence[int]) -> int:
        """The rank at a position.

        Raises:
            ValueError: wrong number of coordinates, or one is outside its axis.
        """
        if len(coordinates) != len(self.axes):
            raise ValueError(f"mesh has {len(self.axes)} axes, got {len(coordinates)} coordinates")
        rank = 0
        for axis, coordinate in zip(self.axes, coordinates, strict=True):
            if not 0 <= coordinate < axis.size:
                raise ValueError(f"coordinate {coordinate} is outside axis {axis.name!r} of size {axis.size}")
            rank = rank * axis.size + coordinate
        return rank
