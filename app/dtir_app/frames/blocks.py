"""How a tensor is cut into blocks, and which ranks hold a block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dtir.analysis.scalars import scalar_text
from dtir.ir.reductions import ReductionKind
from dtir.ir.values import DistributedValue
from dtir_app.numbers import number_of
from dtir_app.store import Store
from dtir_app.text import count_text

BLOCK_LIMIT = 1024
"""Blocks of one dim; a dim with more is drawn as one."""

SIGNS = {ReductionKind.SUM: "Σ", ReductionKind.MAX: "max", ReductionKind.MIN: "min", ReductionKind.PRODUCT: "Π"}


@dataclass(frozen=True, slots=True)
class DimBlocks:
    """The blocks of one dim.

    Args:
        dim: its number.
        extent: its size; None while symbolic.
        label: size as text.
        axes: axes that split it, major to minor.
        bounds: start and stop of every block, in elements (in blocks while the size is symbolic).
        problem: why the bounds are not certain; empty when they are.
    """

    dim: int
    extent: int | None
    label: str
    axes: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    problem: str = ""

    @property
    def count(self) -> int:
        return len(self.bounds)

    @property
    def extent_drawn(self) -> float:
        """Where the last block ends, padding included; 1 for a dim of size 0."""
        return self.bounds[-1][1] or 1.0

    @property
    def largest(self) -> float:
        """Size of the largest block."""
        return max(stop - start for start, stop in self.bounds)


WHOLE = DimBlocks(-1, 1, "1", (), ((0.0, 1.0),))
"""Stands for the dim that a tensor does not have."""


def dim_blocks(
    value: DistributedValue, dim: int, sizes: Mapping[str, int], bindings: Mapping[str, int | float]
) -> DimBlocks:
    """How one dim is cut.

    An extent that the shards do not divide, without explicit sizes, is drawn with equal parts rounded up, and says so.
    """
    spec = value.sharding
    extent_scalar = value.type.shape[dim]
    number = number_of(extent_scalar, bindings)
    extent = int(number) if math.isfinite(number) and number == int(number) else None
    label = count_text(extent) if extent is not None else scalar_text(extent_scalar)
    axes = spec.dimension_axes[dim] if dim < len(spec.dimension_axes) else ()
    parts = math.prod(sizes.get(axis, 1) for axis in axes)
    explicit = next((item.sizes for item in spec.sizes if item.dim == dim), None)
    if parts > BLOCK_LIMIT:
        return DimBlocks(
            dim, extent, label, axes, ((0.0, float(extent or 1)),), f"{count_text(parts)} blocks drawn as one"
        )
    if explicit is not None:
        stops = list(accumulate(explicit))
        bounds = tuple(zip([0, *stops[:-1]], stops, strict=True))
        problem = "" if len(explicit) == parts else f"{len(explicit)} sizes for {parts} shards"
        return DimBlocks(dim, extent, label, axes, tuple((float(a), float(b)) for a, b in bounds), problem)
    if extent is None:
        return DimBlocks(
            dim,
            None,
            label,
            axes,
            tuple((float(i), float(i + 1)) for i in range(parts)),
            "size not known yet" if parts > 1 else "",
        )
    step = -(-extent // parts) if parts else extent
    bounds = tuple((float(min(i * step, extent)), float(min((i + 1) * step, extent))) for i in range(parts))
    return DimBlocks(
        dim, extent, label, axes, bounds, "" if extent % parts == 0 else f"{extent} does not divide by {parts}"
    )


class Holders:
    """Which ranks hold a block, from the block's coordinates along the splitting and the per-rank axes.

    Attributes:
        copies: equal copies of each block.
        partial: axes along which a reduction is pending.
        sign: the pending reduction as text: ``Σ tp``.
        varying: axes along which each rank has data of its own.
        total: holders of one block.
    """

    def __init__(self, store: Store, value: DistributedValue, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        spec = value.sharding
        self._mesh = store.mesh
        self._strides: dict[str, int] = {}
        stride = 1
        for axis in reversed(store.mesh.axes):
            self._strides[axis.name] = stride
            stride *= axis.size
        self._fixed = {item.axis: item.coordinate for item in spec.at if item.axis in self._strides}
        self._split = set(spec.split_axes)
        self._owners = (
            frozenset(value.owners) if len(value.owners) < store.mesh.size and len(value.owners) <= 65_536 else None
        )
        self.partial = tuple(name for name in spec.partial_axes if name in self._strides)
        self.sign = (
            f"{SIGNS.get(spec.partial.op, spec.partial.op.value)} {'×'.join(self.partial)}"
            if spec.partial and self.partial
            else ""
        )
        self.varying = tuple(name for name in spec.varying if name in self._strides)
        taken = self._split | set(self._fixed) | set(self.varying)
        self._free = [name for name in store.mesh.axis_names if name not in taken]
        same = [name for name in self._free if name not in self.partial]
        self.copies = math.prod(self._sizes[name] for name in same)
        self.total = math.prod(self._sizes[name] for name in self._free)

    def ranks(self, coordinates: Mapping[str, int], limit: int = 512) -> tuple[list[int], bool]:
        """Ranks that hold a block, ascending, and whether some were left out."""
        base = sum(
            self._strides[name] * place
            for name, place in (*self._fixed.items(), *coordinates.items())
            if name in self._strides
        )
        found = [base]
        cut = False
        for name in self._free:
            if len(found) * self._sizes[name] > limit:
                cut = True
                found = found[: max(1, limit // self._sizes[name])]
            found = [rank + place * self._strides[name] for rank in found for place in range(self._sizes[name])]
        found = sorted(rank for rank in found if self._owners is None or rank in self._owners)
        return found, cut

    def coordinates(self, axes: Sequence[str], block: int) -> dict[str, int]:
        """Coordinates along the axes of one dim from the number of its block."""
        made: dict[str, int] = {}
        for name in reversed(axes):
            block, made[name] = divmod(block, self._sizes.get(name, 1))
        return made
