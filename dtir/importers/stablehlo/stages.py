"""The collectives of one Shardy operation on a whole value, one after the other, each with the layout after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from dtir.importers.hlo.context import Lowering
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import MAX_RANKS, Mesh
from dtir.importers.hlo.shapes import DTYPE_BITS
from dtir.importers.hlo.shardings import Named, Tiled, to_tiled
from dtir.importers.hlo.syntax import Instruction
from dtir.importers.stablehlo.lists import closing
from dtir.importers.stablehlo.sdy import parse_dims, parse_refs
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import Partial, ShardingSpec
from dtir.ir.types import TensorType
from dtir.ir.values import DistributedValue

_MOVES = re.compile(r"\{([^{}]*)\}\s*:\s*(\d{1,9})\s*->\s*(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Stage:
    """One collective of several: what it is, and the layout after it (None: the operation's own result)."""

    spec: CollectiveSpecVariant
    after: ShardingSpec | None


class StageMaker:
    """Makes the collectives of one operation on a value, one after the other."""

    def __init__(self, lowering: Lowering, mesh: Mesh, value: DistributedValue) -> None:
        self._space = lowering.space
        self._mesh = mesh
        self._type = value.type
        self._spec = value.sharding

    def _axes(self, text: str) -> tuple[str, ...]:
        """Axes of the program's mesh that references stand for; raises where they are none."""
        refs, _ = parse_refs(text)
        if not refs:
            return ()
        named = Named(self._mesh, (refs,), (False,), (), (), (), None, f"axes {{{text}}} of {self._mesh}")
        tiles = self._space.tile_axes(named)
        axes = self._space.axes_of(tiles.dims[0]) if tiles is not None else None
        if axes is None:
            raise HloSyntaxError("the axes are no axes of the program", 0)
        return axes

    def even(self, spec: ShardingSpec) -> bool:
        """Whether all shards of the value have one size."""
        size = self._space.mesh.axis_size
        return all(
            not isinstance(extent, int) or extent % prod(map(size, axes)) == 0
            for extent, axes in zip(self._type.shape, spec.dimension_axes, strict=False)
        )

    def _local_bytes(self, spec: ShardingSpec) -> int:
        return local_bytes(self._type, spec, self._space.mesh.axis_size)

    def along_dims(self, text: str, make: Callable[[int, tuple[str, ...]], Stage]) -> list[Stage] | None:
        """One collective per dim that has axes."""
        text = text.strip()
        start = text.find("[")
        if start < 0:
            return None
        dims = parse_dims(text[start + 1 : closing(text, start) - 1])
        found: list[Stage] = []
        for dim, stated in enumerate(dims):
            if stated.axes:
                axes = self._axes(", ".join(_ref_text(ref.name, ref.pre, ref.size) for ref in stated.axes))
                found.append(make(dim, axes))
        return found or None

    def gather(self, dim: int, axes: tuple[str, ...]) -> Stage:
        """Gather a dim."""
        self._spec = _moved(self._spec, dim, axes, None)
        return Stage(AllGather(self._space.ranks, self._local_bytes(self._spec), axes, (), dim), self._spec)

    def scatter(self, dim: int, axes: tuple[str, ...]) -> Stage:
        """Reduce, and keep a block of a dim."""
        size, reduction = self._local_bytes(self._spec), _reduction(self._spec)
        self._spec = _reduced(self._spec, axes, dim)
        return Stage(ReduceScatter(self._space.ranks, size, reduction, axes, (), dim), self._spec)

    def moves(self, text: str) -> list[Stage] | None:
        """One exchange per move of axes from dim to dim."""
        found: list[Stage] = []
        for refs, source, target in _MOVES.findall(text):
            axes = self._axes(refs)
            size = self._local_bytes(self._spec)
            self._spec = _moved(self._spec, int(source), axes, int(target))
            spec = AllToAll(self._space.ranks, size, axes, (), int(target), int(source))
            found.append(Stage(spec, self._spec))
        return found or None

    def all_reduce(self, text: str) -> list[Stage] | None:
        """A reduction of everything along axes."""
        start = text.find("{")
        axes = self._axes(text[start + 1 : closing(text, start) - 1]) if start >= 0 else ()
        if not axes:
            return None
        spec = AllReduce(self._space.ranks, self._local_bytes(self._spec), _reduction(self._spec), axes)
        return [Stage(spec, None)]

    def permute(
        self, value: DistributedValue, sharding: Named, instruction: Instruction, source: Named | None
    ) -> list[Stage] | None:
        """Ranks whose blocks change places."""
        if source is None or max(source.mesh.count, sharding.mesh.count) > MAX_RANKS:
            return None
        before, after = to_tiled(source), to_tiled(sharding)
        if not isinstance(before, Tiled) or not isinstance(after, Tiled) or before.tile_dims != after.tile_dims:
            return None
        pairs = tuple(zip(before.devices(), after.devices(), strict=True))
        size = self._local_bytes(value.sharding)
        return [Stage(CollectivePermute(self._space.ranks, size, pairs, instruction.name), None)]


def _ref_text(name: str, pre: int, size: int | None) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if size is None else f'"{escaped}":({pre}){size}'


def _reduction(spec: ShardingSpec) -> ReductionKind:
    return spec.partial.op if spec.partial is not None else ReductionKind.SUM


def _moved(spec: ShardingSpec, dim: int, axes: tuple[str, ...], target: int | None) -> ShardingSpec:
    """A layout after axes left a dim: for another one, or to hold copies."""
    dims = [list(names) for names in spec.dimension_axes]
    if dim >= len(dims) or (target is not None and target >= len(dims)):
        raise HloSyntaxError("a dim that the value does not have", 0)
    dims[dim] = [name for name in dims[dim] if name not in axes]
    replicated = spec.replicated_axes
    if target is None:
        replicated = (*replicated, *axes)
    else:
        dims[target] += axes
    return replace(spec, dimension_axes=tuple(map(tuple, dims)), replicated_axes=tuple(replicated), sizes=())


def _reduced(spec: ShardingSpec, axes: tuple[str, ...], dim: int) -> ShardingSpec:
    dims = [list(names) for names in spec.dimension_axes]
    if dim >= len(dims):
        raise HloSyntaxError("a dim that the value does not have", 0)
    dims[dim] += axes
    pending = tuple(name for name in (spec.partial.axes if spec.partial is not None else ()) if name not in axes)
    partial = Partial(pending, _reduction(spec)) if pending else None
    return replace(spec, dimension_axes=tuple(map(tuple, dims)), partial=partial, sizes=())


def local_bytes(kind: TensorType, spec: ShardingSpec, axis_size: Callable[[str], int]) -> int:
    """Bytes of the largest block of a value."""
    elements = 1
    for extent, axes in zip(kind.shape, spec.dimension_axes, strict=True):
        shards = 1
        for axis in axes:
            shards *= axis_size(axis)
        elements *= -(-extent // shards) if isinstance(extent, int) else 0
    return (elements * DTYPE_BITS.get(kind.dtype, 0) + 7) // 8
