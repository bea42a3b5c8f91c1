"""Which mesh an MPMD value is on: the topology of a function, and the confined layouts that follow.

The meshes of a topology lie side by side on one axis in front of their own axes: ranks 0..n-1 are the first mesh, the next n the
second. That is possible where all meshes have the same axes; elsewhere the mesh of a fragment stands as an attribute only.

>>> Topology.parse('#mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>').names
('m1', 'm2')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dtir.importers.hlo.axes import RankSpace, rank_tuple
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.syntax import Instruction
from dtir.importers.stablehlo.lists import split
from dtir.importers.stablehlo.sdy import SdyMesh, parse_mesh
from dtir.importers.stablehlo.types import MAX_DEPTH
from dtir.ir.ranks import RankRange
from dtir.ir.sharding import AxisCoordinate
from dtir.ir.values import DistributedValue

AXIS = "mpmd_mesh"
"""The axis along which the meshes of a topology lie."""

ON = "mpmd.on"
"""Attribute of an instruction: the number of the mesh of every leaf of its result, -1 for none."""

_MESH = re.compile(r'"((?:[^"\\\n]|\\.)*)"\s*:\s*<\s*(\[[^\]]*\])')
_TENSOR = "!mpmd.mesh_tensor<"


@dataclass(frozen=True, slots=True)
class Topology:
    """The meshes of an MPMD program, all with the same axes."""

    names: tuple[str, ...]
    mesh: SdyMesh

    @classmethod
    def parse(cls, text: str) -> Topology | None:
        """The topology in an attribute; None for fewer than two meshes, or meshes with different axes."""
        found = _MESH.findall(text)
        try:
            meshes = [parse_mesh(f"<{axes}>") for _, axes in found]
        except HloSyntaxError:
            return None
        names = tuple(name for name, _ in found)
        same = len(set(meshes)) == 1 and len(set(names)) == len(names) > 1
        return cls(names, meshes[0]) if same and meshes[0].mesh.count > 1 else None

    def number(self, name: str | None) -> int:
        """The number of a mesh, -1 for what is none of them."""
        return self.names.index(name) if name in self.names else -1


@dataclass(frozen=True, slots=True)
class MeshTensor:
    """What a type says beyond its tensor: the mesh, and the sharding on it."""

    mesh: str
    sharding: str | None

    @classmethod
    def of(cls, text: str, aliases: Mapping[str, str]) -> MeshTensor | None:
        """Of a type as text; None for one that is no mesh tensor."""
        for _ in range(MAX_DEPTH):
            text = text.strip()
            if text.startswith(_TENSOR):
                parts = split(text[len(_TENSOR) : -1])
                stated = [part for part in parts if part.startswith("sharding=")]
                name = parts[0].strip().strip('"') if parts else ""
                return cls(name, stated[0].removeprefix("sharding=") if stated else None)
            if text not in aliases:
                return None
            text = aliases[text]
        return None


def ranks_of(space: RankSpace, meshes: set[int]) -> tuple[int, ...] | RankRange:
    """The ranks of some meshes of the topology."""
    size = space.devices.partitions
    if len(meshes) == 1:
        (mesh,) = meshes
        return rank_tuple(range(mesh * size, (mesh + 1) * size))
    return tuple(rank for mesh in sorted(meshes) for rank in range(mesh * size, (mesh + 1) * size))


def confined(value: DistributedValue, instruction: Instruction, leaf: int, space: RankSpace) -> DistributedValue:
    """A value on the mesh that its instruction says, as it stands where it says none."""
    on = instruction.ints(ON)
    mesh = -1 if not on else on[leaf] if leaf < len(on) else on[0]
    if mesh < 0 or mesh >= space.devices.replicas or AXIS not in space.axis_names:
        return value
    layout = value.sharding
    layout = replace(
        layout,
        replicated_axes=tuple(axis for axis in layout.replicated_axes if axis != AXIS),
        varying=tuple(axis for axis in layout.varying if axis != AXIS),
        at=(AxisCoordinate(AXIS, mesh),),
    )
    return replace(value, sharding=layout, owners=ranks_of(space, {mesh}))


def mesh_of(value: DistributedValue) -> int | None:
    """The mesh that a value is on."""
    return next((place.coordinate for place in value.sharding.at if place.axis == AXIS), None)
