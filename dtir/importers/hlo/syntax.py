"""What HLO text says, as records: modules, computations, instructions.

Nothing is interpreted here beyond names: shapes, attribute values and operand names are parsed, the rest is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dtir.importers.hlo.attributes import COMPUTATION_ATTRIBUTES, AttributeValue, Frontend, Names, Raw
from dtir.importers.hlo.shapes import Shape


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `name = shape opcode(operands), attributes`.

    `operands` are names in the same computation; `literal` is the text in a constant's parentheses, `number` a
    parameter's. `offset` is where the instruction starts in the file's text.
    """

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...]
    attributes: Mapping[str, AttributeValue]
    offset: int
    number: int | None = None
    literal: str | None = None

    def ints(self, key: str) -> tuple[int, ...] | None:
        """An attribute that is a list of integers, None when it is absent."""
        value = self.attributes.get(key)
        return value if isinstance(value, tuple) else None

    def integer(self, key: str) -> int | None:
        """An attribute that is one integer, None when it is absent."""
        value = self.attributes.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, key: str) -> bool:
        """An attribute that is true or false; absent is false."""
        return self.attributes.get(key) is True

    def text(self, key: str) -> str | None:
        """An attribute that is a word or string, or the text of one that is kept as text."""
        value = self.attributes.get(key)
        return value.text if isinstance(value, Raw) else value if isinstance(value, str) else None

    def names(self, key: str) -> tuple[str, ...]:
        """An attribute that lists names, empty when it is absent."""
        value = self.attributes.get(key)
        return value.names if isinstance(value, Names) else ()

    def frontend(self, key: str) -> str | None:
        """Text of one frontend attribute."""
        value = self.attributes.get("frontend_attributes")
        return value.get(key) if isinstance(value, Frontend) else None

    def called(self) -> Iterator[tuple[str, str]]:
        """(attribute, computation) for every computation it names, in a fixed order."""
        for key in COMPUTATION_ATTRIBUTES:
            if key in self.attributes:
                for name in self.names(key):
                    yield key, name


@dataclass(frozen=True, slots=True)
class Computation:
    """A named list of instructions; `root` gives its result."""

    name: str
    instructions: tuple[Instruction, ...]
    root: Instruction
    offset: int
    execution_thread: str | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict[str, AttributeValue])

    def parameters(self) -> tuple[Instruction, ...]:
        """Its parameters by number."""
        found = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
        return tuple(sorted(found, key=lambda instruction: instruction.number or 0))


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The stack frame tables of a module: frame id to (file, line)."""

    frames: Mapping[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])


@dataclass(frozen=True, slots=True)
class HloModule:
    """One module. `name` is None where the text has no `HloModule` line; `attributes` are the header's."""

    name: str | None
    attributes: Mapping[str, AttributeValue]
    computations: tuple[Computation, ...]
    entry: Computation
    tables: SourceTables
    offset: int

    @property
    def is_scheduled(self) -> bool:
        """Whether the order of lines is the order of execution."""
        return self.attributes.get("is_scheduled") is True

    @property
    def replica_count(self) -> int | None:
        """As stated, None when the header does not."""
        value = self.attributes.get("replica_count")
        return value if isinstance(value, int) else None

    @property
    def num_partitions(self) -> int | None:
        """As stated, None when the header does not."""
        value = self.attributes.get("num_partitions")
        return value if isinstance(value, int) else None

    def by_name(self) -> dict[str, Computation]:
        """Computations by name."""
        return {computation.name: computation for computation in self.computations}
