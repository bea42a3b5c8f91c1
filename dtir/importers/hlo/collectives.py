"""Collective instructions as collectives of the IR: groups of ranks, bytes, reduction, dims.

`message_bytes` is the nccl-tests size S: what one rank contributes or obtains in total, whichever is larger. HLO shapes
are per device, so that is the operands' size, for an all-gather the result's.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dtir.importers.hlo.attributes import IdLists, Pairs
from dtir.importers.hlo.axes import RankSpace, rank_tuple
from dtir.importers.hlo.devices import base_opcode, mode_of
from dtir.importers.hlo.groups import (
    Devices,
    ExplicitGroups,
    Group,
    GroupMode,
    IotaGroups,
    MeshGroups,
    RankGroups,
    expand,
    rank_groups,
    rank_pairs,
)
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import MAX_RANKS
from dtir.importers.hlo.shapes import DTYPE_BITS, ArrayShape, Shape
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)
from dtir.ir.ranks import RankRange
from dtir.ir.reductions import ReductionKind

MAX_LISTED_RANKS = 8 * MAX_RANKS
"""Most ranks in all different group lists of one module that the text does not spell out."""

_KINDS = {
    "add": ReductionKind.SUM,
    "maximum": ReductionKind.MAX,
    "minimum": ReductionKind.MIN,
    "multiply": ReductionKind.PRODUCT,
    "and": ReductionKind.AND,
    "or": ReductionKind.OR,
    "xor": ReductionKind.XOR,
}
_TRANSPARENT = frozenset({"convert", "copy", "bitcast", "reshape", "reduce-precision"})


def reduction_kind(computation: Computation) -> ReductionKind:
    """The reduction that a reducer computes; `CUSTOM` where it is not one operation on its two parameters.

    Conversions around the operation are passed over: a sum of bf16 values computed in f32 is a sum.
    """
    scope = {instruction.name: instruction for instruction in computation.instructions}
    root = _source(scope, computation.root.name)
    if root is None or len(root.operands) != 2:
        return ReductionKind.CUSTOM
    sources = [_source(scope, name) for name in root.operands]
    numbers = {source.number for source in sources if source is not None and source.opcode == "parameter"}
    return _KINDS.get(root.opcode, ReductionKind.CUSTOM) if numbers == {0, 1} else ReductionKind.CUSTOM


def _source(scope: Mapping[str, Instruction], name: str) -> Instruction | None:
    instruction = scope.get(name)
    for _ in scope:
        if instruction is None or instruction.opcode not in _TRANSPARENT or len(instruction.operands) != 1:
            break
        instruction = scope.get(instruction.operands[0])
    return instruction


@contextmanager
def placed(instruction: Instruction) -> Generator[None]:
    """Errors about the groups or pairs of an instruction point at it."""
    try:
        yield
    except HloSyntaxError as error:
        message = f"'{instruction.name}': {error.message}"
        raise HloSyntaxError(message, instruction.offset, error.code) from None


class GroupTable:
    """Groups of ranks of collective instructions; equal texts are resolved once and give one object."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self.resolved: dict[tuple[int, GroupMode], tuple[Group, ...]] = {}
        self._listed = 0

    def _spend(self, ranks: int) -> None:
        """A few characters of text may stand for many ranks; all of them together are bounded too."""
        self._listed += ranks
        if self._listed > MAX_LISTED_RANKS:
            message = f"the groups of the module list more than {MAX_LISTED_RANKS} ranks altogether"
            raise HloSyntaxError(message, 0, "hlo.too_many_ranks")

    def of(self, instruction: Instruction) -> tuple[Group, ...]:
        """The groups of a collective; raises `HloSyntaxError` where they are too many ranks to list."""
        groups = instruction.attributes.get("replica_groups")
        mode = mode_of(instruction)
        listed = isinstance(groups, (ExplicitGroups, IotaGroups, MeshGroups))
        key = (id(groups) if listed else 0, mode)
        found = self.resolved.get(key)
        if found is None:
            if listed and not isinstance(groups, ExplicitGroups):
                self._spend(groups.size())
            ids: RankGroups = expand(groups) if listed else ()
            found = rank_groups(ids, mode, self.devices)
            if found != ids:
                self._spend(sum(len(group) for group in found if isinstance(group, tuple)))
            self.resolved[key] = found
        return found


@dataclass(frozen=True, slots=True)
class _Members:
    """Groups as a collective holds them: by axes, or listed; and the union of them."""

    participants: tuple[int, ...] | RankRange
    axes: tuple[str, ...]
    groups: tuple[tuple[int, ...] | RankRange, ...]
    roots: tuple[int, ...]


class CollectiveMaker:
    """Makes the collectives of one program."""

    def __init__(self, space: RankSpace, table: GroupTable, computations: Mapping[str, Computation]) -> None:
        self._space = space
        self._table = table
        self._computations = computations
        self._members: dict[int, _Members] = {}
        self._reductions: dict[str, ReductionKind] = {}

    def make(self, instruction: Instruction, operands: Sequence[Shape], result: Shape) -> CollectiveSpecVariant:
        """The collective of an instruction with operands and result of these (per-device) shapes.

        Raises `HloSyntaxError` at the instruction where it names more ranks than are listed.
        """
        with placed(instruction):
            return self._make(instruction, operands, result)

    def _make(self, instruction: Instruction, operands: Sequence[Shape], result: Shape) -> CollectiveSpecVariant:
        opcode = base_opcode(instruction.opcode)
        sent = sum(shape.size_bytes() for shape in operands)
        if opcode == "collective-permute":
            pairs = instruction.attributes.get("source_target_pairs")
            assert isinstance(pairs, Pairs)  # validated
            listed = rank_pairs(pairs.pairs, mode_of(instruction), self._space.devices)
            # Two permutes are matched by being one instruction, whatever their channel id: most share one.
            size = _permuted_bytes(instruction, operands, sent)
            return CollectivePermute(self._space.ranks, size, listed, instruction.name)
        members = self._of(self._table.of(instruction))
        participants, axes, groups = members.participants, members.axes, members.groups
        dims = instruction.ints("dimensions")
        dim = dims[0] if dims else None
        match opcode:
            case "all-reduce":
                return AllReduce(participants, sent, self._reduction(instruction), axes, groups)
            case "reduce-scatter":
                return ReduceScatter(participants, sent, self._reduction(instruction), axes, groups, dim)
            case "all-gather":
                return AllGather(participants, result.size_bytes(), axes, groups, dim)
            case "collective-broadcast":
                sent = operands[0].size_bytes()
                root, *others = members.roots
                return Broadcast(participants, sent, root, axes, groups, members.roots if others else ())
            case "ragged-all-to-all":
                size = max(operands[0].size_bytes(), result.size_bytes())
                return AllToAll(participants, size, axes, groups)
            case _:
                # HLO concatenates along the dim that it splits; StableHLO may name another one.
                concat = instruction.integer("concat_dimension")
                return AllToAll(participants, sent, axes, groups, dim, dim if concat is None else concat)

    def _reduction(self, instruction: Instruction) -> ReductionKind:
        name = instruction.names("to_apply")[0]
        kind = self._reductions.get(name)
        if kind is None:
            kind = self._reductions[name] = reduction_kind(self._computations[name])
        return kind

    def _of(self, groups: tuple[Group, ...]) -> _Members:
        found = self._members.get(id(groups))
        if found is None:
            found = self._members[id(groups)] = self._resolve(groups)
        return found

    def _resolve(self, groups: tuple[Group, ...]) -> _Members:
        members = sum(len(group) for group in groups)
        if members == self._space.count:
            participants = self._space.ranks
        else:
            participants = tuple(sorted(rank for group in groups for rank in group))
        axes = self._space.group_axes(groups)
        listed = () if axes else tuple(rank_tuple(group) for group in groups)
        return _Members(participants, axes, listed, tuple(group[0] for group in groups))


def _permuted_bytes(instruction: Instruction, operands: Sequence[Shape], sent: int) -> int:
    """Bytes that a rank sends in a permute; the in-place form (input, output, offsets) moves slices of its input."""
    slices = instruction.attributes.get("slice_sizes")
    if not isinstance(slices, IdLists) or len(operands) != 4:
        return sent
    leaves = operands[0].leaves()
    total = 0
    for number, sizes in enumerate(slices.lists):
        elements = 1
        for size in sizes:
            elements *= max(size, 0)
        dtype = leaves[min(number, len(leaves) - 1)].dtype if leaves else "token"
        total += (elements * DTYPE_BITS.get(dtype, 0) + 7) // 8
    return total


def result_shape(instruction: Instruction, operand_leaves: int) -> Shape:
    """What a native start yields in the end: the result part of its shape.

    `all-reduce-start` has the plain result; the others (operands, results, contexts...), a copy (result, operand,
    context). A permute may also be printed with the bare result.
    """
    shape = instruction.shape
    if instruction.opcode == "all-reduce-start" or isinstance(shape, ArrayShape) or len(shape.elements) < 2:
        return shape
    if instruction.opcode == "copy-start":
        return shape.elements[0]
    first = shape.elements[0]
    same = operand_leaves == len(first.leaves()) or instruction.opcode == "all-gather-start"
    in_place = len(instruction.operands) == 4 and "slice_sizes" in instruction.attributes
    return shape.elements[1] if same or in_place else shape
