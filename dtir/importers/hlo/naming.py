"""Stable ids of tasks, values and regions: the same text gives the same ids at every import.

A task is `NodeId.derive("hlo", module, computation, instruction)`, a value has the number of its leaf after that, a
region ends with the computation. The digests are computed here from their common beginning, which is several times
faster than deriving each id on its own.
"""

from __future__ import annotations

import hashlib

from dtir.ir.ids import NodeId, RegionId, ValueId
from dtir.schema.codec import canonical_json, utf8


class Names:
    """Ids of everything in one computation of one module."""

    def __init__(self, module: str, computation: str) -> None:
        self.computation = computation
        self.region = RegionId.derive("hlo", module, computation)
        parts = canonical_json(("hlo", module, computation, ""))
        beginning, _, self._end = parts.rpartition('""')
        self._node = _start(NodeId, beginning)
        self._value = _start(ValueId, beginning)

    def task(self, instruction: str) -> NodeId:
        """Id of an instruction's task. Instruction names are plain ASCII, which JSON writes as they are."""
        digest = self._node.copy()
        digest.update(f'"{instruction}"{self._end}'.encode("ascii"))
        return NodeId(digest.hexdigest())

    def value(self, instruction: str, leaf: int) -> ValueId:
        """Id of one leaf of an instruction's result."""
        digest = self._value.copy()
        digest.update(f'"{instruction}",{leaf}{self._end}'.encode("ascii"))
        return ValueId(digest.hexdigest())


def _start(kind: type[NodeId] | type[ValueId], beginning: str) -> hashlib.blake2b:
    return hashlib.blake2b(kind.PREFIX.encode("ascii") + b"\0" + utf8(beginning), digest_size=16)
