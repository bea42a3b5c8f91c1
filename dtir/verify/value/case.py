"""A program with concrete sizes: what the value-level judge runs.

Made from the IR once, with every extent a number, every group and root a list of ranks; the judge then never looks back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, assert_never

from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Branch,
    Broadcast,
    Call,
    Collective,
    CollectivePermute,
    CollectiveSpecVariant,
    Control,
    DistributedTask,
    DistributedValue,
    LocalCompute,
    Loop,
    PointToPoint,
    ReduceScatter,
    ReductionKind,
    Reshard,
    ReshardKind,
    ValueId,
)
from dtir.ops import OpDef, op_attributes
from dtir.verify.value.grid import Grid, Span, even_span, listed_span

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CaseValue:
    """A value: concrete shape and layout. See `dtir.ir.DistributedValue` for the meaning of the fields."""

    id: ValueId
    name: str
    index: int
    shape: Shape
    dtype: str
    dims: tuple[tuple[str, ...], ...]
    folds: Mapping[str, ReductionKind]
    varying: tuple[str, ...]
    at: Mapping[str, int]
    owners: tuple[int, ...]
    sizes: Mapping[int, tuple[int, ...]]
    halo: Mapping[int, tuple[int, int]]
    corners: bool
    scale: Fraction
    valid: frozenset[int] | None
    local_shapes: Mapping[int, Shape]

    @property
    def split(self) -> tuple[str, ...]:
        """Axes that split some dim."""
        return tuple(axis for axes in self.dims for axis in axes)

    def block(self, grid: Grid, rank: int) -> tuple[Span, ...]:
        """The block of the whole that a rank holds, without ghosts."""
        return tuple(self._span(grid, rank, dim, extent) for dim, extent in enumerate(self.shape))

    def _span(self, grid: Grid, rank: int, dim: int, extent: int) -> Span:
        axes = self.dims[dim]
        if dim in self.sizes:
            return listed_span(extent, self.sizes[dim], grid.position(rank, axes))
        return even_span(extent, grid.members(axes), grid.position(rank, axes))

    def local_shape(self, grid: Grid, rank: int) -> Shape:
        """Shape of the array that a rank holds, padding included, ghosts not."""
        own = self.local_shapes.get(rank)
        return own if own is not None else tuple(span.held for span in self.block(grid, rank))

    def is_valid(self, rank: int) -> bool:
        """True when the copy of a rank is current."""
        return self.valid is None or rank in self.valid

    def fits(self, grid: Grid) -> str | None:
        """Why the layout cannot be laid out at all, or None."""
        for dim, sizes in self.sizes.items():
            if dim >= len(self.shape):
                return f"sizes are given for dim {dim} of {len(self.shape)}"
            if len(sizes) != grid.members(self.dims[dim]):
                return f"dim {dim} has {len(sizes)} shard sizes for {grid.members(self.dims[dim])} shards"
        return None

    def replica_key(self, grid: Grid, rank: int) -> tuple[int, ...]:
        """What tells copies apart: equal for ranks that should hold equal arrays."""
        return grid.place(rank, (*self.split, *self.folds, *self.varying, *self.at))

    def copied(self, grid: Grid) -> tuple[str, ...]:
        """The axes along which copies are equal."""
        other = {*self.split, *self.folds, *self.varying, *self.at}
        return tuple(axis for axis in grid.axes if axis not in other)


@dataclass(frozen=True, slots=True)
class Move:
    """A communication: its kind, ordered groups, and what only some kinds have."""

    kind: str
    groups: tuple[tuple[int, ...], ...]
    axes: tuple[str, ...] = ()
    reduction: ReductionKind | None = None
    dim: int | None = None
    split: int | None = None
    concat: int | None = None
    roots: tuple[int | None, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    fills_zero: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """A block of the destination of a reshard, and the block of the source it is filled from."""

    box: tuple[tuple[int, int], ...]
    source: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CaseTask:
    """A task. `kind` is local, move, reshard, halo, control or opaque (structured control flow, which is not entered)."""

    id: str
    name: str
    index: int
    kind: str
    operator: OpDef | None
    operation: str
    attributes: Mapping[str, Any]
    ranks: tuple[int, ...]
    operands: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    move: Move | None = None
    regions: tuple[Region, ...] = ()

    @property
    def introduced(self) -> bool:
        """True when the undivided program has the identity in its place."""
        return self.attributes.get("intro") is True


@dataclass(frozen=True)
class Case:
    """A program with concrete sizes."""

    grid: Grid
    values: Mapping[ValueId, CaseValue]
    tasks: tuple[CaseTask, ...]
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    oracle: tuple[CaseTask, ...] | None
    oracle_shapes: Mapping[ValueId, Shape] = field(default_factory=dict[ValueId, Shape])
    reduced: str = ""

    def elements(self) -> int:
        """Elements of all values: undivided and on every owner."""
        total = 0
        for value in self.values.values():
            total += math.prod(value.shape)
            total += _held(value, self.grid)
        return total


def _held(value: CaseValue, grid: Grid) -> int:
    if value.local_shapes or value.sizes:
        return sum(math.prod(value.local_shape(grid, rank)) for rank in value.owners)
    largest = math.prod(-(-extent // grid.members(axes)) for extent, axes in zip(value.shape, value.dims, strict=True))
    return largest * len(value.owners)


def case_value(value: DistributedValue, index: int, shape: Shape, owners: tuple[int, ...]) -> CaseValue:
    """A value of the IR with a concrete shape."""
    sharding = value.sharding
    mixed = value.attributes.get("partial")
    folds: dict[str, ReductionKind] = {}
    if sharding.partial is not None:
        folds = dict.fromkeys(sharding.partial.axes, sharding.partial.op)
        if isinstance(mixed, Mapping):
            folds = {axis: ReductionKind(mixed.get(axis, kind.value)) for axis, kind in folds.items()}  # pyright: ignore[reportUnknownMemberType] - open data
    halo = sharding.halo
    return CaseValue(
        id=value.id,
        name=value.name or str(value.id),
        index=index,
        shape=shape,
        dtype=value.type.dtype,
        dims=sharding.dimension_axes,
        folds=folds,
        varying=sharding.varying,
        at={item.axis: item.coordinate for item in sharding.at},
        owners=owners,
        sizes={item.dim: item.sizes for item in sharding.sizes},
        halo={item.dim: (item.before, item.after) for item in halo.dims} if halo is not None else {},
        corners=halo.corners if halo is not None else True,
        scale=Fraction(value.scale.numerator, value.scale.denominator),
        valid=frozenset(value.valid_on) if value.valid_on is not None else None,
        local_shapes={item.rank: item.shape for item in value.local_shapes},
    )


def case_task(
    task: DistributedTask, index: int, grid: Grid, operator: OpDef | None, ranks: tuple[int, ...]
) -> CaseTask:
    """A task of the IR with its groups as lists."""
    kind, move, regions = "local", None, ()
    match task.body:
        case LocalCompute():
            pass
        case Collective(spec=spec):
            kind, move = "move", _collective(spec, task, grid, ranks)
        case PointToPoint(spec=transfer):
            pair = (transfer.source_rank, transfer.destination_rank)
            kind, move = "move", Move("permute", (pair,), pairs=(pair,))
        case Reshard(kind=reshard, regions=given):
            kind = "halo" if reshard is ReshardKind.HALO else "reshard"
            regions = tuple(
                Region(
                    tuple((span.start, span.stop) for span in item.box),
                    tuple((span.start, span.stop) for span in (item.source if item.source is not None else item.box)),
                )
                for item in given
            )
        case Control():
            kind = "control"
        case Call() | Loop() | Branch():
            kind = "opaque"
        case _:
            assert_never(task.body)
    return CaseTask(
        id=str(task.id),
        name=task.name or str(task.id),
        index=index,
        kind=kind,
        operator=operator,
        operation=str(task.operation),
        attributes=op_attributes(task),
        ranks=ranks,
        operands=task.operand_values,
        outputs=task.outputs,
        move=move,
        regions=regions,
    )


def _collective(spec: CollectiveSpecVariant, task: DistributedTask, grid: Grid, ranks: tuple[int, ...]) -> Move:
    if isinstance(spec, CollectivePermute):
        zero = task.operation.dialect != "core"
        return Move("permute", (), pairs=spec.pairs, fills_zero=zero)
    if spec.groups:
        groups = tuple(tuple(group) for group in spec.groups)
    elif spec.axes:
        groups = grid.fibres(spec.axes, ranks)
    else:
        groups = (tuple(spec.participants),)
    match spec:
        case AllReduce():
            return Move("all_reduce", groups, spec.axes, spec.reduction)
        case ReduceScatter():
            return Move("reduce_scatter", groups, spec.axes, spec.reduction, dim=spec.dim)
        case AllGather():
            return Move("all_gather", groups, spec.axes, dim=spec.dim)
        case AllToAll():
            name = task.operation.name
            kind = name if name in ("moe_dispatch", "moe_combine") else "all_to_all"
            return Move(kind, groups, spec.axes, split=spec.split_dim, concat=spec.concat_dim)
        case Broadcast():
            return Move("broadcast", groups, spec.axes, roots=_roots(spec, task, groups))
        case _:
            assert_never(spec)


def _roots(spec: Broadcast, task: DistributedTask, groups: tuple[tuple[int, ...], ...]) -> tuple[int | None, ...]:
    """The root of every group; None where the group has none."""
    missing = object()
    declared = op_attributes(task).get("root", missing)
    if declared is not missing:
        if not isinstance(declared, int):
            return (None,) * len(groups)
        if op_attributes(task).get("root_space") == "global":
            return tuple(declared if declared in group else None for group in groups)
        return tuple(group[declared] if declared < len(group) else None for group in groups)
    roots = set(spec.roots) or {spec.root}
    return tuple(next((rank for rank in group if rank in roots), None) for group in groups)
