"""What the lowering of all computations of a program shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtir.importers.hlo.axes import RankSpace
from dtir.importers.hlo.collectives import CollectiveMaker
from dtir.importers.hlo.control import Control
from dtir.importers.hlo.devices import peer_pairs
from dtir.importers.hlo.facts import Facts, fact
from dtir.importers.hlo.groups import GroupMode, parse_pairs, rank_pairs
from dtir.importers.hlo.layouts import Layouts
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape, Shape, leaf_count
from dtir.importers.hlo.shardings import Sharding
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.ir.collectives import CollectivePermute
from dtir.ir.ids import Lineage, RegionId
from dtir.ir.types import OperationName
from dtir.schema.frozen import EMPTY_MAP, FrozenDict


class Lowering:
    """Facts and caches of one program; equal records are one object."""

    def __init__(
        self,
        module_name: str,
        entry_name: str,
        computations: Mapping[str, Computation],
        wrapped: Mapping[str, Instruction],
        control: Control,
        space: RankSpace,
        layouts: Layouts,
        collectives: CollectiveMaker,
        facts: Facts,
    ) -> None:
        self.module_name = module_name
        self.entry_name = entry_name
        self.computations = computations
        self.wrapped = wrapped
        self.space = space
        self.layouts = layouts
        self.collectives = collectives
        self.facts = facts
        self.lineage = Lineage.root(fact("import"))
        self._control = control
        self._operations: dict[str, OperationName] = {}
        self._regions: dict[str, RegionId] = {}
        self._offsets: dict[int, list[int]] = {}
        self._shardings: dict[str, FrozenDict[Any]] = {}

    def operation(self, opcode: str) -> OperationName:
        """`hlo.<opcode>`."""
        found = self._operations.get(opcode)
        if found is None:
            found = self._operations[opcode] = OperationName("hlo", opcode)
        return found

    def region_id(self, computation: str) -> RegionId:
        """Id of the region of a computation."""
        found = self._regions.get(computation)
        if found is None:
            found = self._regions[computation] = RegionId.derive("hlo", self.module_name, computation)
        return found

    def arity(self, computation: str) -> int:
        """Number of parameters of a computation."""
        return sum(i.opcode == "parameter" for i in self.computations[computation].instructions)

    def trips(self, computation: str, loop: str) -> int | None:
        """Trip count of a loop."""
        return self._control.trips(computation, loop)

    def offsets(self, shape: Shape) -> list[int]:
        """Where the elements of a tuple begin among its leaves, and the end. The module keeps the shape alive."""
        found = self._offsets.get(id(shape))
        if found is None:
            found = [0]
            for element in () if isinstance(shape, ArrayShape) else shape.elements:
                found.append(found[-1] + leaf_count(element))
            self._offsets[id(shape)] = found
        return found

    def sharding_attributes(self, sharding: Sharding | None) -> FrozenDict[Any]:
        """The text of a sharding, as attributes of the value that has it."""
        if sharding is None:
            return EMPTY_MAP
        found = self._shardings.get(sharding.text)
        if found is None:
            found = self._shardings[sharding.text] = FrozenDict({fact("sharding"): sharding.text})
        return found

    def peer_pairs(self, instruction: Instruction) -> tuple[tuple[int, int], ...] | None:
        """Pairs of ranks of a send or receive between devices; None for one to or from the host."""
        text = peer_pairs(instruction)
        if text is None or instruction.flag("is_host_transfer"):
            return None
        try:
            pairs = parse_pairs(text)
        except HloSyntaxError:
            return None
        has_channel = (instruction.integer("channel_id") or 0) > 0
        mode = GroupMode.PARTITIONS if has_channel else GroupMode.REPLICAS
        devices = self.space.devices
        limit = devices.partitions if has_channel else devices.replicas
        if any(max(pair) >= limit for pair in pairs):
            # Channels are numbered from 1, but text without any other hint uses 0 for partitions as well.
            limit, mode = devices.ranks, GroupMode.FLATTENED
        return rank_pairs(pairs, mode, devices) if all(max(pair) < limit for pair in pairs) else None

    def permute(self, send: Instruction, data: Shape, pairs: tuple[tuple[int, int], ...]) -> CollectivePermute:
        """A send as the permute it is together with its receive."""
        channel = send.integer("channel_id")
        label = "default" if channel is None else str(channel)
        return CollectivePermute(self.space.ranks, data.size_bytes(), pairs, label)
