"""How a value is laid out over the mesh: per axis split, replicated, pending (partial), per-rank (varying) or confined.

`dimension_axes[d]` lists the axes that split dim d, major to minor (upstream has only these and `replicated_axes`). The
other fields are dtir's own; DTensor calls `partial` "Partial", Shardy "unreduced".
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from dtir.ir.reductions import ReductionKind
from dtir.schema.authoring import extension, record
from dtir.schema.refinements import NonEmptyText, NonNegativeInt, ValueConstraint

AxisNames: TypeAlias = Annotated[tuple[NonEmptyText, ...], ValueConstraint.NON_EMPTY, ValueConstraint.UNIQUE_ITEMS]


@record("dtir.ir.partial")
class Partial:
    """A pending reduction: the true value is the `op`-fold of the local arrays along `axes`."""

    axes: AxisNames
    op: ReductionKind


@record("dtir.ir.axis-coordinate")
class AxisCoordinate:
    """One position on one axis: where a confined value lives."""

    axis: NonEmptyText
    coordinate: NonNegativeInt


@record("dtir.ir.shard-sizes")
class ShardSizes:
    """Explicit sizes, in elements, of the shards of one dim, in block order (uneven or padded splits)."""

    dim: NonNegativeInt
    sizes: Annotated[tuple[NonNegativeInt, ...], ValueConstraint.NON_EMPTY]


@record("dtir.ir.halo-dim")
class HaloDim:
    """Ghost layers of one dim, in elements, below and above the owned block."""

    dim: NonNegativeInt
    before: NonNegativeInt
    after: NonNegativeInt


@record("dtir.ir.halo")
class Halo:
    """Ghost frame of a split value; `corners` says whether the diagonal ghosts are filled too."""

    dims: Annotated[tuple[HaloDim, ...], ValueConstraint.NON_EMPTY]
    corners: bool = True


@record("blueprinting.ir.distributed-task.sharding")
class ShardingSpec:
    """Mapping from tensor dims to mesh axes, and the state of every other axis.

    >>> ShardingSpec(((), ("tp",)), replicated_axes=("dp",)).split_axes
    ('tp',)
    """

    dimension_axes: tuple[tuple[NonEmptyText, ...], ...]
    replicated_axes: tuple[NonEmptyText, ...] = ()
    partial: Partial | None = extension(default=None)
    varying: tuple[NonEmptyText, ...] = extension(default=())
    at: tuple[AxisCoordinate, ...] = extension(default=())
    sizes: tuple[ShardSizes, ...] = extension(default=())
    halo: Halo | None = extension(default=None)

    @classmethod
    def replicated(cls, rank: int, axes: tuple[str, ...]) -> ShardingSpec:
        """Equal copies along `axes`, no dim split."""
        return cls(tuple(() for _ in range(rank)), axes)

    @property
    def split_axes(self) -> tuple[str, ...]:
        """Axes that split some dim, by dim, major to minor."""
        return tuple(axis for axes in self.dimension_axes for axis in axes)

    @property
    def partial_axes(self) -> tuple[str, ...]:
        """Axes along which a reduction is pending."""
        return self.partial.axes if self.partial is not None else ()

    @property
    def named_axes(self) -> tuple[str, ...]:
        """Every axis that the layout speaks of, repetitions included."""
        return (
            *self.split_axes,
            *self.replicated_axes,
            *self.partial_axes,
            *self.varying,
            *(item.axis for item in self.at),
        )
