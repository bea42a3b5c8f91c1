"""The mesh of a program: named axes where the text has them, else the coarsest axes that its groups and tiles need.

Ranks are numbered row-major over the axes, the first axis most significant. A part of a named axis gets Shardy's
sub-axis name: `tp:(2)2` is the part of size 2 that follows a part of size 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from dtir.importers.hlo.devices import sdy_meshes
from dtir.importers.hlo.digits import Cuts, Digit, Digits, digits_of, fibre_digits, in_order
from dtir.importers.hlo.groups import Devices, Group, MeshGroups
from dtir.importers.hlo.meshes import MAX_RANKS, Mesh
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Subgroup, Tiled, TupleSharding, Uniform, to_tiled
from dtir.importers.hlo.syntax import Computation, HloModule
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange

_SHORT_RANKS = 16
"""Rank sets up to this length are plain tuples; longer ones a range, which is checked and stored in constant time."""


@dataclass(frozen=True, slots=True)
class TileAxes:
    """A tiled sharding as digits: per dim of the tensor major to minor, and those of each subgroup state."""

    dims: tuple[Digits, ...]
    states: tuple[tuple[Subgroup, Digits], ...]


class RankSpace:
    """All ranks, the axes they are laid out on, and groups and tiles in terms of these axes."""

    def __init__(self, devices: Devices, cuts: Cuts, names: dict[Digit, str], empty_axes: tuple[str, ...], name: str):
        self.devices = devices
        self.count = devices.ranks
        self.ranks = rank_tuple(range(self.count))
        self._cuts = cuts
        pieces = cuts.pieces()
        self._names = {piece: names[piece] for piece in pieces}
        axes = [MeshAxis(self._names[piece], piece.size) for piece in pieces]
        axes += [MeshAxis(axis, 1) for axis in empty_axes]
        self.mesh = LogicalMesh(name, tuple(axes) or (MeshAxis("devices", 1),))
        self.axis_names = self.mesh.axis_names
        self.replica_axes = tuple(self._names[p] for p in pieces if p.stride >= devices.partitions)
        self.partition_axes = tuple(name for name in self.axis_names if name not in self.replica_axes)
        self._tiles: dict[str, TileAxes | None] = {}

    def axes_of(self, digits: Digits) -> tuple[str, ...] | None:
        """Names of the axes that the digits consist of, major to minor; None when the mesh does not have them."""
        if not self._cuts.fits(digits):
            return None
        return tuple(self._names[piece] for digit in digits for piece in self._cuts.split(digit))

    def group_axes(self, groups: Sequence[Group]) -> tuple[str, ...]:
        """Axes whose fibres are these groups, in this order; empty when there are none."""
        if len(groups) == self.count and self.count > 1:
            return ()
        digits = fibre_digits(groups, self.count)
        if digits is None or not in_order(groups, digits, self.count):
            return ()
        return self.axes_of(digits) or ()

    def tile_axes(self, sharding: Tiled | Named) -> TileAxes | None:
        """A sharding over all partitions as digits of the rank; None when it is irregular or over other devices."""
        key = sharding.text
        if key not in self._tiles:
            self._tiles[key] = tile_digits(sharding, self.devices)
        return self._tiles[key]


def rank_tuple(ranks: Group) -> tuple[int, ...] | RankRange:
    """A rank set in the form that is cheapest to hold."""
    if isinstance(ranks, range) and len(ranks) > _SHORT_RANKS:
        return RankRange(ranks.start, ranks.stop, ranks.step)
    return tuple(ranks)


def tile_digits(sharding: Tiled | Named, devices: Devices) -> TileAxes | None:
    """Digits of a tile assignment over all partitions of a replica; None when it is no regular one."""
    tiles = to_tiled(sharding) if isinstance(sharding, Named) and sharding.mesh.count <= MAX_RANKS else sharding
    if isinstance(tiles, Uniform):
        assert isinstance(sharding, Named)
        return TileAxes(((),) * len(sharding.dim_axes), ())
    if isinstance(tiles, Named) or prod(tiles.tile_dims) != devices.partitions or devices.partitions > MAX_RANKS:
        return None
    ids = tiles.devices()
    if ids[0] != 0:
        return None
    digits: list[Digits] = []
    step = len(ids)
    for size in tiles.tile_dims:
        step //= size
        along = digits_of(ids[0 : step * size : step])
        if along is None:
            return None
        digits.append(along)
    offsets = [0]
    for size, along in zip(tiles.tile_dims, digits, strict=True):
        steps = _offsets(along)
        assert len(steps) == size
        offsets = [base + step for base in offsets for step in steps]
    if tuple(offsets) != ids:
        return None
    rank = len(tiles.tile_dims) - len(tiles.subgroups)
    states = tuple(zip(tiles.subgroups, digits[rank:], strict=True))
    return TileAxes(tuple(digits[:rank]), states)


def _offsets(digits: Digits) -> list[int]:
    offsets = [0]
    for digit in digits:
        offsets = [base + step * digit.stride for base in offsets for step in range(digit.size)]
    return offsets


def make_rank_space(
    module: HloModule, computations: Iterable[Computation], devices: Devices, groups: Iterable[Sequence[Group]]
) -> RankSpace:
    """The rank space of a module: its own mesh, cut where its groups and shardings need it.

    What does not fit into one mixed-radix number with the rest adds no cuts; such groups are listed explicitly.
    """
    cuts = Cuts(devices.ranks)
    if 1 < devices.partitions < devices.ranks:
        cuts.add((Digit(devices.replicas, devices.partitions),))
    shardings = _shardings(computations)
    named_mesh, mesh_name = _choose_mesh(module, computations, shardings, devices)
    base = _base_axes(named_mesh, devices)
    for _, digits in base:
        cuts.add(digits)
    for members in groups:
        digits = fibre_digits(members, devices.ranks) if len(members) < devices.ranks else None
        if digits:
            cuts.add(digits)
    for sharding in shardings.values():
        tiles = tile_digits(sharding, devices)
        if tiles is not None:
            for digits in (*tiles.dims, *(digits for _, digits in tiles.states)):
                cuts.add(digits)
    names, empty = _name_pieces(cuts, base)
    return RankSpace(devices, cuts, names, empty, mesh_name)


def _name_pieces(cuts: Cuts, base: list[tuple[str, Digits]]) -> tuple[dict[Digit, str], tuple[str, ...]]:
    """A name for every piece of the cut rank number, and the axes of size 1."""
    names: dict[Digit, str] = {}
    empty: list[str] = []
    for name, digits in base:
        pieces = [piece for digit in digits for piece in cuts.split(digit)]
        if not pieces:
            empty.append(name)
        elif len(pieces) == 1:
            names[pieces[0]] = name
        else:
            before = 1
            for piece in pieces:
                names[piece] = f"{name}:({before}){piece.size}"
                before *= piece.size
    rest = [piece for piece in cuts.pieces() if piece not in names]
    taken = {*names.values(), *empty}
    for number, piece in enumerate(rest):
        wanted = "devices" if len(rest) == 1 else f"axis{number}"
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        names[piece] = wanted
    return names, tuple(empty)


def _base_axes(mesh: Mesh | None, devices: Devices) -> list[tuple[str, Digits]]:
    """Named axes as digits of the rank: those of the mesh, and replica and partition where both kinds exist."""
    axes: list[tuple[str, Digits]] = []
    partitioned = devices.partitions > 1
    if devices.replicas > 1 and partitioned:
        axes.append((devices.outer, (Digit(devices.replicas, devices.partitions),)))
    if mesh is None:
        if axes:
            axes.append(("partition", (Digit(devices.partitions, 1),)))
        return axes
    ids = tuple(mesh.devices())
    taken = {name for name, _ in axes}
    step = len(ids)
    for name, size in mesh.axes:
        step //= size
        digits = digits_of(ids[0 : step * size : step])
        assert digits is not None  # `_regular` has looked at it
        unique = name if name and name not in taken else f"{name}_"
        axes.append((unique, digits))
    return axes


def _regular(mesh: Mesh, devices: Devices) -> bool:
    """Whether the axes of a mesh over all partitions are digits of the partition number."""
    if mesh.count != devices.partitions or mesh.count > MAX_RANKS or not all(name for name, _ in mesh.axes):
        return False
    tiles = Tiled(tuple(size for _, size in mesh.axes), tuple(mesh.devices()), (), "")
    found = tile_digits(tiles, devices)
    if found is None:
        return False
    cuts = Cuts(devices.ranks)
    return all(cuts.add(digits) for digits in found.dims)


def _choose_mesh(
    module: HloModule,
    computations: Iterable[Computation],
    shardings: dict[str, Tiled | Named],
    devices: Devices,
) -> tuple[Mesh | None, str]:
    """The mesh whose axis names the program uses: Shardy's own, else the most frequent one of named shardings and groups."""
    for name, mesh in sdy_meshes(module).items():
        if _regular(mesh, devices):
            return mesh, name
    seen: Counter[Mesh] = Counter(s.mesh for s in shardings.values() if isinstance(s, Named))
    for computation in computations:
        for instruction in computation.instructions:
            groups = instruction.attributes.get("replica_groups") if instruction.attributes else None
            if isinstance(groups, MeshGroups) and not _generated_names(groups.mesh):
                seen[groups.mesh] += 1
    for mesh, _ in seen.most_common():
        if _regular(mesh, devices):
            return mesh, "mesh"
    return None, "mesh"


def _generated_names(mesh: Mesh) -> bool:
    """Whether a mesh has the names that XLA invents: axis_0, axis_1, ..."""
    return all(name == f"axis_{number}" for number, (name, _) in enumerate(mesh.axes))


def _shardings(computations: Iterable[Computation]) -> dict[str, Tiled | Named]:
    """Every different tiled or named sharding by its text."""
    found: dict[str, Tiled | Named] = {}

    def collect(sharding: Sharding) -> None:
        match sharding:
            case Tiled() | Named():
                found.setdefault(sharding.text, sharding)
            case TupleSharding(elements=elements):
                for element in elements:
                    collect(element)
            case Uniform() | Maximal():
                pass

    seen: set[int] = set()
    for computation in computations:
        for instruction in computation.instructions:
            sharding = instruction.attributes.get("sharding") if instruction.attributes else None
            if isinstance(sharding, (Uniform, Maximal, Tiled, Named, TupleSharding)) and id(sharding) not in seen:
                seen.add(id(sharding))
                collect(sharding)
    return found
