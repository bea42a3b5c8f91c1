"""Started operations: what their handle consists of, and who besides their done reads it.

A handle is a tuple of operands, results and contexts (counters of the runtime). Usually only the done takes it; then the
contexts are nothing but its plumbing. Where a loop carries a handle, or a tuple is taken from it, they are values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtir.importers.hlo.shapes import ArrayShape, TupleShape
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.ir.ids import NodeId, ValueId

_PAIRS = ("all-reduce", "all-gather", "collective-permute", "copy", "async")
_STARTS = frozenset([*(f"{name}-start" for name in _PAIRS), "async-update", "send", "recv"])
_ENDS = frozenset([*(f"{name}-done" for name in _PAIRS), "async-update", "send-done", "recv-done"])


@dataclass(frozen=True, slots=True)
class Started:
    """A started operation: its task and the values it yields."""

    task: NodeId
    results: tuple[ValueId, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """An asynchronous computation that still lacks operands."""

    start: Instruction
    called: str
    operands: tuple[str, ...]


def escaping_starts(computation: Computation) -> frozenset[str]:
    """Names of started operations whose handle is read by something besides their done or update."""
    starts = {i.name for i in computation.instructions if i.opcode in _STARTS}
    if not starts:
        return frozenset()
    escaping = {computation.root.name} & starts
    for instruction in computation.instructions:
        if instruction.opcode not in _ENDS:
            escaping.update(name for name in instruction.operands if name in starts)
    return frozenset(escaping)


def context_leaves(
    start: Instruction, operands: Sequence[ValueId], results: Sequence[ValueId]
) -> list[tuple[ArrayShape, ValueId | None]]:
    """Every leaf of a handle with the value it is; None for one that is neither operand nor result.

    A copy's handle begins with the result, an all-reduce's is the result; the others have operands first.
    """
    shape = start.shape
    if start.opcode == "all-reduce-start" or isinstance(shape, ArrayShape) or len(shape.elements) < 2:
        return _zip(shape.leaves(), results)
    sources: list[Sequence[ValueId]] = [operands, results]
    if start.opcode == "copy-start":
        sources.reverse()
    if start.opcode == "collective-permute-start" and len(shape.leaves()) == len(results):
        return _zip(shape.leaves(), results)
    found: list[tuple[ArrayShape, ValueId | None]] = []
    for number, element in enumerate(shape.elements):
        leaves = element.leaves() if isinstance(element, TupleShape) else (element,)
        found += _zip(leaves, sources[number] if number < 2 else ())
    return found


def _zip(leaves: Sequence[ArrayShape], values: Sequence[ValueId]) -> list[tuple[ArrayShape, ValueId | None]]:
    known = values if len(values) == len(leaves) else [*values[: len(leaves)], *[None] * (len(leaves) - len(values))]
    return list(zip(leaves, known, strict=True))
