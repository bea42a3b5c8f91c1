"""Types and layouts of values: what an HLO shape and sharding say about one leaf.

Two kinds of modules exist. In a *per-device* module (after the SPMD partitioner) a shape is what one rank holds, and
nothing says how the parts belong together: the value varies along every axis. Only entry parameters keep their sharding,
from which the global shape follows. In a *global* module (before the partitioner) shapes are global and shardings say
how they are meant to be split; a value without one varies, with the shape that the text states.
"""

from __future__ import annotations

import re
from enum import Enum

from dtir.importers.hlo.axes import RankSpace, TileAxes
from dtir.importers.hlo.control import Control
from dtir.importers.hlo.devices import sdy_meshes
from dtir.importers.hlo.facts import fact
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Subgroup, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.syntax import Computation, HloModule
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import Partial, ShardingSpec, ShardSizes
from dtir.ir.types import TensorType
from dtir.schema.frozen import EMPTY_MAP, FrozenDict

_MARKERS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
_MINOR_TO_MAJOR = re.compile(r"\{([\d,]*)(.*)\}", re.DOTALL)
_REDUCTIONS = {"max": ReductionKind.MAX, "min": ReductionKind.MIN, None: ReductionKind.SUM, "sum": ReductionKind.SUM}
MAX_LISTED_SHARDS = 65_536
"""Most shards of an uneven dim whose sizes are listed."""


class Form(Enum):
    """What the shapes of a module are."""

    PER_DEVICE = "per_device"
    GLOBAL = "global"


def module_form(module: HloModule, computations: tuple[Computation, ...], control: Control) -> Form:
    """Whether a module is before the partitioner or after it.

    Before it there are marker calls, Shardy meshes, or shardings on results; after it only entry parameters keep theirs
    (a few copies of them inherit one).
    """
    root = module.entry.root
    if sdy_meshes(module) or (root.opcode != "parameter" and "sharding" in root.attributes):
        return Form.GLOBAL
    marked = total = 0
    for computation in computations:
        if computation.name in control.applied:
            continue
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                continue
            total += 1
            if instruction.opcode == "custom-call":
                target = instruction.text("custom_call_target") or ""
                if target in _MARKERS or target.startswith("xla.sdy."):
                    return Form.GLOBAL
            marked += "sharding" in instruction.attributes
    return Form.GLOBAL if marked * 2 > total else Form.PER_DEVICE


def leaf_shardings(sharding: Sharding | None, count: int) -> tuple[Sharding | None, ...]:
    """The sharding of every leaf of a value with `count` leaves; one that is no tuple holds for all of them."""
    if isinstance(sharding, TupleSharding):
        elements = sharding.elements
        return elements if len(elements) == count else (None,) * count
    return (sharding,) * count


class Layouts:
    """Types and layouts of the values of one program; equal ones are one object."""

    def __init__(self, space: RankSpace, form: Form) -> None:
        self.space = space
        self.form = form
        self._types: dict[tuple[ArrayShape, tuple[int, ...]], TensorType] = {}
        self._specs: dict[tuple[str, ArrayShape], tuple[ShardingSpec, TensorType]] = {}
        self._free: dict[int, ShardingSpec] = {}

    def free(self, shape: ArrayShape) -> tuple[ShardingSpec, TensorType]:
        """A value of which nothing is said: it varies along every axis (on one rank: it is just there)."""
        rank = len(shape.dims)
        spec = self._free.get(rank)
        if spec is None:
            dims = ((),) * rank
            names = self.space.axis_names
            alone = self.space.count == 1
            spec = ShardingSpec(dims, names) if alone else ShardingSpec(dims, varying=names)
            self._free[rank] = spec
        return spec, self.type_of(shape, shape.dims)

    def stated(self, shape: ArrayShape, sharding: Sharding | None, local: bool) -> tuple[ShardingSpec, TensorType]:
        """The layout that a sharding states; `local` says that the shape is what one rank holds."""
        if sharding is None or isinstance(sharding, TupleSharding) or self.space.count == 1:
            return self.free(shape)
        key = (f"{'local ' if local else ''}{sharding.text}", shape)
        found = self._specs.get(key)
        if found is None:
            found = self._specs[key] = self._state(shape, sharding, local) or self.free(shape)
        return found

    def type_of(self, shape: ArrayShape, dims: tuple[int, ...]) -> TensorType:
        """The tensor type of a shape, with other dim sizes where they are global ones."""
        found = self._types.get((shape, dims))
        if found is None:
            layout, attributes = _layout(shape)
            found = self._types[shape, dims] = TensorType(dims, shape.dtype, layout, attributes)
        return found

    def _state(
        self, shape: ArrayShape, sharding: Uniform | Maximal | Tiled | Named, local: bool
    ) -> tuple[ShardingSpec, TensorType] | None:
        empty = ((),) * len(shape.dims)
        inside, outside = self.space.partition_axes, self.space.replica_axes
        match sharding:
            case Uniform(state=Subgroup.REPLICATED):
                return ShardingSpec(empty, inside, varying=outside), self.type_of(shape, shape.dims)
            case Uniform(state=Subgroup.UNREDUCED) if inside:
                pending = Partial(inside, ReductionKind.SUM)
                return ShardingSpec(empty, partial=pending, varying=outside), self.type_of(shape, shape.dims)
            case Uniform() | Maximal():
                return None
            case Tiled() | Named():
                return self._state_tiles(shape, sharding, local)

    def _state_tiles(
        self, shape: ArrayShape, sharding: Tiled | Named, local: bool
    ) -> tuple[ShardingSpec, TensorType] | None:
        tiles = self.space.tile_axes(sharding)
        if tiles is None:
            return None
        axes = self._dim_axes(tiles, len(shape.dims))
        states = self._state_axes(tiles)
        if axes is None or states is None:
            return None
        used = {name for names in axes for name in names} | {name for names in states.values() for name in names}
        replicated = tuple(name for name in self.space.partition_axes if name not in used)
        replicated += states.get(Subgroup.REPLICATED, ())
        pending = states.get(Subgroup.UNREDUCED, ())
        operator = _REDUCTIONS.get(sharding.reduction) if isinstance(sharding, Named) else ReductionKind.SUM
        if pending and operator is None:
            return None
        varying = states.get(Subgroup.MANUAL, ()) + states.get(Subgroup.UNKNOWN, ()) + self.space.replica_axes
        counts = [self._size(names) for names in axes]
        dims = tuple(dim * n if local else dim for dim, n in zip(shape.dims, counts, strict=True))
        sizes = tuple(
            ShardSizes(dim, _shard_sizes(size, n))
            for dim, (size, n) in enumerate(zip(dims, counts, strict=True))
            if n > 1 and size % n and n <= MAX_LISTED_SHARDS
        )
        order = {name: position for position, name in enumerate(self.space.axis_names)}
        spec = ShardingSpec(
            axes,
            tuple(sorted(replicated, key=order.__getitem__)),
            partial=Partial(pending, operator) if pending and operator is not None else None,
            varying=varying,
            sizes=sizes,
        )
        return spec, self.type_of(shape, dims)

    def _dim_axes(self, tiles: TileAxes, rank: int) -> tuple[tuple[str, ...], ...] | None:
        if len(tiles.dims) > rank:
            return None
        axes: list[tuple[str, ...]] = []
        for digits in tiles.dims:
            names = self.space.axes_of(digits)
            if names is None:
                return None
            axes.append(names)
        return (*axes, *((),) * (rank - len(axes)))

    def _state_axes(self, tiles: TileAxes) -> dict[Subgroup, tuple[str, ...]] | None:
        states: dict[Subgroup, tuple[str, ...]] = {}
        for state, digits in tiles.states:
            names = self.space.axes_of(digits)
            if names is None:
                return None
            states[state] = states.get(state, ()) + names
        return states

    def _size(self, names: tuple[str, ...]) -> int:
        size = 1
        for name in names:
            size *= self.space.mesh.axis_size(name)
        return size


def _shard_sizes(size: int, count: int) -> tuple[int, ...]:
    """Shards as the partitioner makes them: ceil(size / count) elements each, the tail short or empty."""
    width = -(-size // count)
    return tuple(max(0, min(width, size - shard * width)) for shard in range(count))


def _layout(shape: ArrayShape) -> tuple[tuple[int, ...] | None, FrozenDict[object]]:
    """Minor-to-major order where it is not row-major, and what else the layout text and dynamic dims say."""
    attributes: dict[str, object] = {}
    layout: tuple[int, ...] | None = None
    if shape.dynamic:
        attributes[fact("dynamic")] = shape.dynamic
    if shape.layout:
        match = _MINOR_TO_MAJOR.fullmatch(shape.layout)
        order = tuple(int(part) for part in match.group(1).split(",") if part) if match is not None else ()
        rank = len(shape.dims)
        if sorted(order) == list(range(rank)):
            layout = order if order != tuple(range(rank - 1, -1, -1)) else None
            if match is not None and match.group(2):
                attributes[fact("layout")] = match.group(2).lstrip(":")
        else:
            attributes[fact("layout")] = shape.layout
    return layout, FrozenDict(attributes) if attributes else EMPTY_MAP
