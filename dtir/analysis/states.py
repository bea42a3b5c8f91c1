"""The state of a value: per mesh axis split, replicated, pending, per-rank or confined (SEMANTICS 2.1).

| letter | meaning |
|---|---|
| `Split(dim, place)` | the axis splits a dim; `place` counts from the major end of the dim's axes |
| `Equal()` | every coordinate holds an equal copy |
| `Pending(op)` | the true value is the op-fold of the local arrays along the axis |
| `PerRank()` | data without one logical value |
| `Confined(c)` | the value lives at coordinate c only |

>>> from dtir.ir.mesh import LogicalMesh, MeshAxis
>>> from dtir.analysis.fibres import factor_mesh
>>> space, _ = factor_mesh(LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4))), [])
>>> state = declared_state(ShardingSpec(((), ("tp",)), ("dp",)), space)
>>> state.letter("tp"), state.letter("dp")
(Split(dim=1, place=0), Equal())
>>> state_text(state)
'[-, tp]'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dtir.analysis.fibres import Space
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import ShardingSpec


@dataclass(frozen=True, slots=True)
class Split:
    """The axis splits `dim`, as number `place` of its axes from the major end."""

    dim: int
    place: int


@dataclass(frozen=True, slots=True)
class Equal:
    """Replicated."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Partial: an `op`-fold along the axis is due."""

    op: ReductionKind


@dataclass(frozen=True, slots=True)
class PerRank:
    """Varying."""


@dataclass(frozen=True, slots=True)
class Confined:
    """The value lives at one coordinate only."""

    coordinate: int


Letter: TypeAlias = Split | Equal | Pending | PerRank | Confined

EQUAL = Equal()
PER_RANK = PerRank()


@dataclass(frozen=True, slots=True)
class State:
    """The letters of a value over the axes of a `Space`; an axis that no field names is replicated.

    Args:
        dims: per dim the axes that split it, major to minor.
        partial: axes along which `op` is pending, in mesh order.
        op: the one pending operator; None exactly when `partial` is empty.
        varying: axes along which the data are per rank.
        at: coordinates at which the value lives.
        sizes: per dim explicit shard sizes in block order, None where the split is even.
    """

    dims: tuple[tuple[str, ...], ...]
    partial: tuple[str, ...] = ()
    op: ReductionKind | None = None
    varying: tuple[str, ...] = ()
    at: tuple[tuple[str, int], ...] = ()
    sizes: tuple[tuple[int, ...] | None, ...] = ()

    @property
    def split(self) -> tuple[str, ...]:
        """Axes that split some dim."""
        return tuple(axis for axes in self.dims for axis in axes)

    def letter(self, axis: str) -> Letter:
        for dim, axes in enumerate(self.dims):
            if axis in axes:
                return Split(dim, axes.index(axis))
        if axis in self.partial and self.op is not None:
            return Pending(self.op)
        if axis in self.varying:
            return PER_RANK
        for name, coordinate in self.at:
            if name == axis:
                return Confined(coordinate)
        return EQUAL

    def is_equal(self, axis: str) -> bool:
        return isinstance(self.letter(axis), Equal)

    def size_of(self, dim: int) -> tuple[int, ...] | None:
        """Explicit shard sizes of a dim, None where the split is even."""
        return self.sizes[dim] if dim < len(self.sizes) else None

    def without_pending(self, axes: Iterable[str]) -> State:
        """The state with nothing pending along some axes."""
        gone = set(axes)
        left = tuple(axis for axis in self.partial if axis not in gone)
        return replace(self, partial=left, op=self.op if left else None)

    def with_dim(self, dim: int, axes: tuple[str, ...], sizes: tuple[int, ...] | None = None) -> State:
        """The state with another axis list, and other shard sizes, on one dim."""
        dims = tuple(axes if index == dim else old for index, old in enumerate(self.dims))
        known = self.sizes or (None,) * len(self.dims)
        return replace(self, dims=dims, sizes=_sizes(sizes if i == dim else old for i, old in enumerate(known)))


def _sizes(sizes: Iterable[tuple[int, ...] | None]) -> tuple[tuple[int, ...] | None, ...]:
    """Sizes in their normal form: empty when no dim has any."""
    found = tuple(sizes)
    return found if any(item is not None for item in found) else ()


def whole_state(rank: int) -> State:
    """Replicated along every axis."""
    return State(((),) * rank)


def declared_state(sharding: ShardingSpec, space: Space) -> State:
    """What a layout declares, over the axes of a space; explicit sizes that only repeat an even split are dropped."""
    partial = sharding.partial
    confined: list[tuple[str, int]] = []
    for item in sharding.at:
        rest = item.coordinate
        parts = space.parts.get(item.axis, ())
        for part in reversed(parts):
            rest, coordinate = divmod(rest, space.sizes[part])
            confined.append((part, coordinate))
    pending = space.ordered(space.expand(partial.axes)) if partial is not None else ()
    sizes: list[tuple[int, ...] | None] = [None] * len(sharding.dimension_axes)
    for item in sharding.sizes:
        if item.dim < len(sizes):
            sizes[item.dim] = item.sizes
    return State(
        tuple(space.expand(axes) for axes in sharding.dimension_axes),
        pending,
        partial.op if partial is not None and pending else None,
        space.ordered(space.expand(sharding.varying)),
        tuple(sorted(confined)),
        _sizes(sizes),
    )


def unnamed_axes(sharding: ShardingSpec, space: Space) -> tuple[str, ...]:
    """Declared mesh axes of more than one coordinate of which a layout says nothing."""
    named = set(sharding.named_axes)
    return tuple(axis.name for axis in space.mesh.axes if axis.size > 1 and axis.name not in named)


def moved(axes: Sequence[str], suffix: Sequence[str]) -> tuple[str, ...] | None:
    """`axes` without `suffix` at its minor end; None when it does not end so."""
    if not suffix:
        return tuple(axes)
    return tuple(axes[: -len(suffix)]) if tuple(axes[-len(suffix) :]) == tuple(suffix) else None


def state_text(state: State) -> str:
    """A state as messages show it: ``[dp, -] pending sum over tp``."""
    text = "[" + ", ".join("·".join(axes) if axes else "-" for axes in state.dims) + "]"
    if state.op is not None:
        text += f" pending {state.op.value} over {', '.join(state.partial)}"
    if state.varying:
        text += f" per rank over {', '.join(state.varying)}"
    if state.at:
        text += " at " + ", ".join(f"{axis}={coordinate}" for axis, coordinate in state.at)
    return text


def letter_text(letter: Letter) -> str:
    """One letter in words."""
    match letter:
        case Split(dim=dim):
            return f"split on dim {dim}"
        case Equal():
            return "replicated"
        case Pending(op=op):
            return f"pending {op.value}"
        case PerRank():
            return "per rank"
        case Confined(coordinate=coordinate):
            return f"only at {coordinate}"
