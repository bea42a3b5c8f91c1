"""How many replicas and partitions a module runs on: stated in the header, or inferred from ids in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dtir.importers.hlo.attributes import Frontend, Pairs
from dtir.importers.hlo.groups import Devices, ExplicitGroups, GroupMode, IotaGroups, MeshGroups, group_mode
from dtir.importers.hlo.meshes import Iota, Mesh
from dtir.importers.hlo.opcodes import COLLECTIVES
from dtir.importers.hlo.shapes import TupleShape
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.syntax import Computation, HloModule, Instruction

_SDY_MESH = re.compile(r"([\w.$\-]+)\s*=\s*#sdy\.mesh<\s*\[([^\]]*)\](?:\s*,\s*device_ids\s*=\s*\[([\d,\s]*)\])?\s*>")
_SDY_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"\s*=\s*(\d{1,18})')
_PEER_PAIRS = "_xla_send_recv_source_target_pairs"


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """Replicas and partitions; `inferred` says that the header states fewer (or none) than the ids in the text need."""

    devices: Devices
    inferred: bool
    offset: int


def base_opcode(opcode: str) -> str:
    """The collective's name without `-start`."""
    return opcode.removesuffix("-start")


def mode_of(instruction: Instruction) -> GroupMode:
    """Group mode of a collective instruction."""
    has_channel = instruction.integer("channel_id") is not None
    return group_mode(base_opcode(instruction.opcode), has_channel, instruction.flag("use_global_device_ids"))


def count_devices(module: HloModule, computations: Iterable[Computation]) -> DeviceCount:
    """The device count of a module, from its header and from every id in the given computations."""
    stated_replicas, stated_partitions = module.replica_count, module.num_partitions
    replicas = max(stated_replicas or 1, 1)
    partitions = max(stated_partitions or 1, 1)
    need_replicas, need_partitions, need_ranks = replicas, partitions, replicas * partitions
    offset = module.offset
    for mesh in sdy_meshes(module).values():
        need_partitions = max(need_partitions, mesh.count)
    for computation in computations:
        for instruction in computation.instructions:
            if not instruction.attributes:
                continue
            before = (need_replicas, need_partitions, need_ranks)
            if base_opcode(instruction.opcode) in COLLECTIVES:
                highest = max(_highest_id(instruction), _implied_count(instruction, computation) - 1)
                match mode_of(instruction):
                    case GroupMode.REPLICAS | GroupMode.REPLICAS_ALL_PARTITIONS:
                        need_replicas = max(need_replicas, highest + 1)
                    case GroupMode.PARTITIONS:
                        need_partitions = max(need_partitions, highest + 1)
                    case GroupMode.FLATTENED:
                        need_ranks = max(need_ranks, highest + 1)
            sharding = instruction.attributes.get("sharding")
            if isinstance(sharding, (Uniform, Maximal, Tiled, Named, TupleSharding)):
                need_partitions = max(need_partitions, sharding_devices(sharding))
            if before != (need_replicas, need_partitions, need_ranks):
                offset = instruction.offset
    # What the header states holds: ids beyond it are a fault, which validation reports.
    if stated_replicas is None:
        replicas = need_replicas
    if stated_partitions is None:
        partitions = max(need_partitions, -(-need_ranks // replicas))
    stated = max(stated_partitions or 1, 1, *(mesh.count for mesh in sdy_meshes(module).values()))
    inferred = (replicas, partitions) != (max(stated_replicas or 1, 1), stated)
    return DeviceCount(Devices(replicas, partitions), inferred, offset)


def _highest_id(instruction: Instruction) -> int:
    groups = instruction.attributes.get("replica_groups")
    pairs = instruction.attributes.get("source_target_pairs")
    highest = -1
    if isinstance(pairs, Pairs):
        highest = max((max(pair) for pair in pairs.pairs), default=-1)
    if isinstance(groups, ExplicitGroups):
        highest = max(highest, max((max(group) for group in groups.groups), default=-1))
    elif isinstance(groups, IotaGroups):
        highest = max(highest, groups.iota.count - 1)
    elif isinstance(groups, MeshGroups):
        highest = max(highest, groups.mesh.count - 1)
        ids = groups.mesh.device_ids
        if ids is not None and not isinstance(ids, Iota):
            highest = max(highest, max(ids, default=-1))
    return highest


def _implied_count(instruction: Instruction, computation: Computation) -> int:
    """How many take part in a gather or scatter of everybody, from how much its dim grows or shrinks; 0 if unknown."""
    groups = instruction.attributes.get("replica_groups")
    opcode = base_opcode(instruction.opcode)
    if (isinstance(groups, ExplicitGroups) and groups.groups) or isinstance(groups, (IotaGroups, MeshGroups)):
        return 0
    if opcode not in ("all-gather", "reduce-scatter") or not instruction.operands:
        return 0
    source = next((i for i in computation.instructions if i.name == instruction.operands[0]), None)
    dims = instruction.ints("dimensions")
    if source is None or not dims or dims[0] < 0:
        return 0
    result = instruction.shape
    if opcode != instruction.opcode and isinstance(result, TupleShape) and len(result.elements) > 1:
        result = result.elements[1]
    before, after = source.shape.leaves()[:1], result.leaves()[:1]
    if not before or not after or max(len(before[0].dims), len(after[0].dims)) <= dims[0]:
        return 0
    small, large = before[0].dims[dims[0]], after[0].dims[dims[0]]
    if opcode == "reduce-scatter":
        small, large = large, small
    return large // small if small > 0 and large % small == 0 else 0


def sharding_devices(sharding: Sharding) -> int:
    """How many devices a sharding speaks of; 1 where it names none."""
    match sharding:
        case Uniform():
            return 1
        case Maximal(device=device):
            return max(device, 0) + 1
        case Tiled(assignment=assignment):
            return assignment.count if isinstance(assignment, Iota) else max(assignment) + 1
        case Named(mesh=mesh):
            ids = mesh.device_ids
            return mesh.count if ids is None or isinstance(ids, Iota) else max(mesh.count, max(ids, default=0) + 1)
        case TupleSharding(elements=elements):
            return max((sharding_devices(element) for element in elements), default=1)


def sdy_meshes(module: HloModule) -> dict[str, Mesh]:
    """The Shardy meshes in the header's frontend attributes, by name.

    `xla.sdy.meshes={mesh = #sdy.mesh<["dp"=2, "tp"=4]>}`; older files keep the same text in a string.
    """
    frontend = module.attributes.get("frontend_attributes")
    text = frontend.get("xla.sdy.meshes") if isinstance(frontend, Frontend) else None
    meshes: dict[str, Mesh] = {}
    for name, axes, ids in _SDY_MESH.findall((text or "").replace('\\"', '"')):
        found = tuple((axis, int(size)) for axis, size in _SDY_AXIS.findall(axes))
        device_ids = tuple(int(part) for part in ids.split(",") if part.strip()) if ids else None
        if found and all(size > 0 for _, size in found) and len({axis for axis, _ in found}) == len(found):
            mesh = Mesh(found, device_ids)
            if device_ids is None or sorted(device_ids) == list(range(mesh.count)):
                meshes[name] = mesh
    return meshes


def peer_pairs(instruction: Instruction) -> str | None:
    """Text of the device pairs of a send or recv, None for one without."""
    return instruction.frontend(_PEER_PAIRS)
