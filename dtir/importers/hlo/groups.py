"""Replica groups and source-target pairs: reading them, and turning them into groups of flattened ranks.

Three forms occur: explicit `{{0,1},{2,3}}` (sizes may differ), iota `[2,4]<=[4,2]T(1,0)` and mesh
`mesh['x'=2,'y'=4] {'y':(2)2}`. Ids mean what XLA's group mode says (`group_mode`); a rank here is the flattened id
`replica * num_partitions + partition`.
Source: `xla/hlo/ir/replica_group.h`, `xla/service/collective_ops_utils.h` (openxla/xla).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TypeAlias

from dtir.importers.hlo.lexing import HloSyntaxError, balanced_end, skip_space, strip_comments
from dtir.importers.hlo.meshes import (
    MAX_RANKS,
    AxisRef,
    Iota,
    Mesh,
    parse_ints,
    refine,
    scan_axis_refs,
    scan_iota,
    scan_mesh,
    strided,
)

RankGroups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ExplicitGroups:
    """Groups as listed; no group at all means one group of everybody."""

    groups: RankGroups
    text: str

    def size(self) -> int:
        """Number of ids listed."""
        return sum(map(len, self.groups))

    def expand(self) -> RankGroups:
        """The groups."""
        return self.groups


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """`[groups,size]<=iota`."""

    dims: tuple[int, int]
    iota: Iota
    text: str

    def size(self) -> int:
        """Number of ids in all groups."""
        return self.iota.count

    def expand(self) -> RankGroups:
        """The groups; callers check `size` against `MAX_RANKS` first."""
        ids = self.iota.expand()
        width = self.dims[1]
        return tuple(ids[start : start + width] for start in range(0, len(ids), width))


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """Groups along the listed (sub-)axes of a mesh, members in listed order, major to minor."""

    mesh: Mesh
    axes: tuple[AxisRef, ...]
    text: str

    def size(self) -> int:
        """Number of ids in all groups."""
        return self.mesh.count

    def expand(self) -> RankGroups:
        """The groups, over the other axes in mesh order; callers check `size` against `MAX_RANKS` first."""
        refined = refine(self.mesh, self.axes)
        strides = [1] * len(refined.dims)
        for axis in range(len(refined.dims) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * refined.dims[axis + 1]
        inner = [piece for pieces in refined.pieces for piece in pieces]
        outer = [axis for axis in range(len(refined.dims)) if axis not in set(inner)]
        members = strided(tuple(refined.dims[a] for a in inner), [strides[a] for a in inner])
        bases = strided(tuple(refined.dims[a] for a in outer), [strides[a] for a in outer])
        devices = self.mesh.devices()
        return tuple(tuple(devices[base + member] for member in members) for base in bases)


ReplicaGroups: TypeAlias = ExplicitGroups | IotaGroups | MeshGroups


def expand(groups: ReplicaGroups) -> RankGroups:
    """The listed groups of ids; raises `HloSyntaxError` where they hold more than `MAX_RANKS`."""
    if groups.size() > MAX_RANKS:
        message = f"replica groups of {groups.size()} ids are more than the {MAX_RANKS} that are expanded"
        raise HloSyntaxError(message, 0, "hlo.too_many_ranks")
    return groups.expand()


def parse_groups(text: str) -> ReplicaGroups:
    """Any of the three forms; raises `HloSyntaxError`.

    >>> parse_groups("mesh['a'=8] {'a':(2)2}").expand()
    ((0, 2), (1, 3), (4, 6), (5, 7))
    """
    body = strip_comments(text).strip()
    if body.startswith("mesh["):
        return _parse_mesh_groups(body)
    if body.startswith("["):
        return _parse_iota_groups(body)
    groups = parse_id_lists(body)
    seen: set[int] = set()
    for group in groups:
        for member in group:
            if member < 0:
                raise HloSyntaxError(f"replica group has the negative id {member}", 0, "hlo.replica_groups")
            if member in seen:
                raise HloSyntaxError(f"id {member} is in the replica groups twice", 0, "hlo.replica_groups")
            seen.add(member)
    return ExplicitGroups(tuple(group for group in groups if group), text)


def _parse_mesh_groups(text: str) -> MeshGroups:
    mesh, pos = scan_mesh(text, 0)
    pos = skip_space(text, pos)
    axes, is_open, end = scan_axis_refs(text, pos)
    if is_open:
        raise HloSyntaxError("'?' has no meaning in replica groups", pos)
    if end != len(text):
        raise HloSyntaxError("unexpected text after the replica group axes", end)
    refine(mesh, axes, pos)
    return MeshGroups(mesh, axes, text)


def _parse_iota_groups(text: str) -> IotaGroups:
    close = text.find("]")
    dims = parse_ints(text[1:close] if close > 0 else text, 1)
    at = skip_space(text, close + 1)
    if close < 0 or not text.startswith("<=", at):
        raise HloSyntaxError("expected '<=' after the group dims", max(at, 0))
    iota, end = scan_iota(text, skip_space(text, at + 2))
    if end != len(text):
        raise HloSyntaxError("unexpected text after the replica groups", end)
    if len(dims) != 2:
        raise HloSyntaxError(f"replica groups need 2 dims [groups,size], found {len(dims)}", 0, "hlo.replica_groups")
    if prod(dims) != iota.count:
        message = f"replica groups [{dims[0]},{dims[1]}] need {prod(dims)} ids, the iota has {iota.count}"
        raise HloSyntaxError(message, 0, "hlo.replica_groups")
    return IotaGroups((dims[0], dims[1]), iota, text)


def parse_id_lists(text: str) -> RankGroups:
    """`{{0,1},{2}}`, `{0,1}` (one group) or `{}`; raises `HloSyntaxError`."""
    if not text.startswith("{") or balanced_end(text, 0) != len(text):
        raise HloSyntaxError("expected {{ids},{ids},...}", 0)
    if "{" not in text[1:]:
        ids = parse_ints(text[1:-1], 1)
        return (ids,) if ids else ()
    groups: list[tuple[int, ...]] = []
    pos = skip_space(text, 1)
    while True:
        if not text.startswith("{", pos):
            raise HloSyntaxError("expected '{'", pos)
        close = text.find("}", pos)
        groups.append(parse_ints(text[pos + 1 : close], pos + 1))
        pos = skip_space(text, close + 1)
        if text.startswith("}", pos):
            return tuple(groups)
        if not text.startswith(",", pos):
            raise HloSyntaxError("expected ',' or '}' after a group", pos)
        pos = skip_space(text, pos + 1)


def parse_pairs(text: str) -> tuple[tuple[int, int], ...]:
    """`{{0,1},{1,2}}`: source-target pairs; raises `HloSyntaxError`."""
    pairs: list[tuple[int, int]] = []
    for group in parse_id_lists(strip_comments(text).strip()):
        if len(group) != 2 or min(group) < 0:
            raise HloSyntaxError(f"expected pairs {{source,target}} of ids, found {list(group)[:4]}", 0, "hlo.pairs")
        pairs.append((group[0], group[1]))
    return tuple(pairs)


class GroupMode(Enum):
    """What the ids of a collective count."""

    REPLICAS = "cross_replica"
    PARTITIONS = "cross_partition"
    REPLICAS_ALL_PARTITIONS = "cross_replica_and_partition"
    FLATTENED = "flattened_id"


_WITH_GLOBAL_FLAG = frozenset({"all-reduce", "all-gather", "reduce-scatter"})


def group_mode(opcode: str, has_channel: bool, use_global_device_ids: bool) -> GroupMode:
    """XLA's rule. `opcode` is the collective without `-start`.

    Without a channel ids are replicas; with channel and `use_global_device_ids` they are flattened; with a channel
    alone, all-reduce, all-gather and reduce-scatter count replicas and take all partitions in, others partitions.
    """
    if not has_channel:
        return GroupMode.REPLICAS
    if use_global_device_ids:
        return GroupMode.FLATTENED
    return GroupMode.REPLICAS_ALL_PARTITIONS if opcode in _WITH_GLOBAL_FLAG else GroupMode.PARTITIONS


@dataclass(frozen=True, slots=True)
class Devices:
    """How many replicas and partitions there are; rank = replica * partitions + partition.

    `outer` names the axis of the replicas where there are several of both.
    """

    replicas: int
    partitions: int
    outer: str = "replica"

    @property
    def ranks(self) -> int:
        return self.replicas * self.partitions


Group: TypeAlias = tuple[int, ...] | range


def rank_groups(groups: RankGroups, mode: GroupMode, devices: Devices) -> tuple[Group, ...]:
    """Groups of ids as groups of ranks; no group means one of all replicas, partitions or ranks.

    "All ranks" is a `range`, whatever their number. Raises `HloSyntaxError` where more than `MAX_RANKS` would be listed.

    >>> rank_groups(((0, 1),), GroupMode.REPLICAS, Devices(2, 2))
    ((0, 2), (1, 3))
    """
    replicas, parts = devices.replicas, devices.partitions
    if not groups and (mode in (GroupMode.FLATTENED, GroupMode.REPLICAS_ALL_PARTITIONS) or min(replicas, parts) == 1):
        single = replicas if mode is GroupMode.REPLICAS else parts if mode is GroupMode.PARTITIONS else devices.ranks
        if single == devices.ranks:
            return (range(single),)
    if devices.ranks > MAX_RANKS:
        message = f"groups over {devices.ranks} ranks are more than the {MAX_RANKS} that are expanded"
        raise HloSyntaxError(message, 0, "hlo.too_many_ranks")
    match mode:
        case GroupMode.FLATTENED:
            return groups
        case GroupMode.REPLICAS_ALL_PARTITIONS:
            return tuple(tuple(r * parts + p for r in group for p in range(parts)) for group in groups)
        case GroupMode.REPLICAS:
            groups = groups or (tuple(range(replicas)),)
            if parts == 1:
                return groups
            return tuple(tuple(r * parts + p for r in group) for group in groups for p in range(parts))
        case GroupMode.PARTITIONS:
            groups = groups or (tuple(range(parts)),)
            if replicas == 1:
                return groups
            return tuple(tuple(r * parts + p for p in group) for group in groups for r in range(replicas))


def rank_pairs(pairs: tuple[tuple[int, int], ...], mode: GroupMode, devices: Devices) -> tuple[tuple[int, int], ...]:
    """Source-target pairs of ids as pairs of ranks: once per partition (replica ids) or per replica (partition ids)."""
    replicas, parts = devices.replicas, devices.partitions
    copies = parts if mode is GroupMode.REPLICAS else replicas if mode is GroupMode.PARTITIONS else 1
    if len(pairs) * copies > MAX_RANKS:
        message = f"{len(pairs)} pairs for {copies} copies are more than the {MAX_RANKS} that are expanded"
        raise HloSyntaxError(message, 0, "hlo.too_many_ranks")
    match mode:
        case GroupMode.REPLICAS if parts > 1:
            return tuple((s * parts + p, t * parts + p) for s, t in pairs for p in range(parts))
        case GroupMode.PARTITIONS if replicas > 1:
            return tuple((r * parts + s, r * parts + t) for s, t in pairs for r in range(replicas))
        case _:
            return pairs
