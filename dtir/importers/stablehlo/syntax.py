"""What MLIR text says, as records: operations with regions of blocks. Nothing is interpreted here but structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Operation:
    """One operation, in generic or pretty form.

    `results` are SSA names with the number of values behind each. `segments` are the pieces of text after the name, between
    its regions: one more than there are regions. `offset` is where the operation starts (its result names included), `at`
    where its name does.
    """

    name: str
    offset: int
    at: int
    results: tuple[tuple[str, int], ...]
    generic: bool
    segments: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    regions: list[Region] = field(default_factory=list["Region"])

    @property
    def dialect(self) -> str:
        """The part of the name before its first dot; empty for short names such as ``return``."""
        return self.name.partition(".")[0] if "." in self.name else ""

    def result_names(self) -> tuple[str, ...]:
        """The name of every result: ``%0``, or ``%0#0``, ``%0#1`` of several behind one name."""
        names: list[str] = []
        for name, count in self.results:
            names += [name] if count == 1 else [f"{name}#{number}" for number in range(count)]
        return tuple(names)


@dataclass(slots=True)
class Block:
    """Operations in a row; `arguments` is the text in the parentheses of its label, empty without one."""

    arguments: str
    offset: int
    operations: list[Operation] = field(default_factory=list[Operation])


@dataclass(slots=True)
class Region:
    """The blocks in one pair of braces."""

    offset: int
    blocks: list[Block] = field(default_factory=list[Block])

    def operations(self) -> Iterator[Operation]:
        """Operations of all blocks, not of nested regions."""
        for block in self.blocks:
            yield from block.operations

    @property
    def arguments(self) -> str:
        """Text of the arguments of the first block's label."""
        return self.blocks[0].arguments if self.blocks else ""


@dataclass(slots=True)
class Part:
    """One program text: what stands between two ``// -----`` lines.

    `aliases` maps ``#name`` and ``!name`` to the text behind them; `resources` says that a block of binary data follows.
    """

    start: int
    end: int
    region: Region
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    resources: bool = False


def walk(region: Region) -> Iterator[Operation]:
    """Every operation of a region in text order, nested ones after the one that holds them."""
    stack = [iter([*region.operations()])]
    while stack:
        operation = next(stack[-1], None)
        if operation is None:
            stack.pop()
            continue
        yield operation
        if operation.regions:
            stack.append(iter([inner for nested in operation.regions for inner in nested.operations()]))
