"""Builds one computation of HLO records from the operations of one MLIR region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dtir.importers.hlo.attributes import AttributeValue, Raw
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import Shape, TupleShape
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.importers.stablehlo.locations import Place
from dtir.importers.stablehlo.mpmd import ON

if TYPE_CHECKING:
    from dtir.importers.stablehlo.translate import Translator


class Skip(Exception):
    """An operation that cannot be translated since something it needs was reported before."""


class Builder:
    """Instructions of one computation, and which SSA value each of them is.

    `manual` are the axes of the manual computations around it, `mesh` the number of the mesh that it runs on (of an MPMD
    fragment; None for all ranks).
    """

    def __init__(
        self, translator: Translator, name: str, offset: int, manual: tuple[str, ...] = (), mesh: int | None = None
    ) -> None:
        self.translator = translator
        self.name = name
        self.offset = offset
        self.manual = manual
        self.mesh = mesh
        self.instructions: list[Instruction] = []
        self.by_name: dict[str, Instruction] = {}
        self._values: dict[str, tuple[str, int | None]] = {}
        self._broken: set[str] = set()
        self._parameters = 0

    # -- values ------------------------------------------------------------------------------------------------

    def bind(self, ssa: str, instruction: str, element: int | None = None) -> None:
        """Say which instruction (or which element of its tuple) an SSA value is."""
        if ssa in self._values:
            raise HloSyntaxError(f"value {ssa} is defined twice", 0, "mlir.duplicate_value")
        self._values[ssa] = (instruction, element)

    def broken(self, names: Sequence[str]) -> None:
        """Values of an operation that could not be read: uses of them are not reported again."""
        self._broken.update(names)

    def has(self, ssa: str) -> bool:
        """Whether a value is defined here."""
        return ssa in self._values or ssa in self._broken

    def value(self, ssa: str) -> str:
        """The instruction of an SSA value; raises `Skip` for one whose fault is known, `HloSyntaxError` for an unknown one."""
        found = self._values.get(ssa)
        if found is None:
            base = ssa.partition("#")[0]
            if ssa in self._broken or base in self._broken:
                raise Skip
            raise HloSyntaxError(f"value {ssa} is not defined before its use", 0, "mlir.unknown_value")
        name, element = found
        if element is None:
            return name
        label = ssa if ssa not in self.by_name else f"{ssa}.element"
        source = self.by_name[name].shape
        assert isinstance(source, TupleShape)
        self.add(
            Instruction(
                label,
                "get-tuple-element",
                source.elements[element],
                (name,),
                {"index": element},
                self.by_name[name].offset,
            )
        )
        self._values[ssa] = (label, None)
        return label

    def shape(self, ssa: str) -> Shape:
        """The shape of an SSA value."""
        return self.by_name[self.value(ssa)].shape

    # -- instructions ------------------------------------------------------------------------------------------

    def fresh(self, wanted: str) -> str:
        """A name that no instruction has yet."""
        name, number = wanted, 0
        while name in self.by_name:
            number += 1
            name = f"{wanted}.{number}"
        return name

    def add(self, instruction: Instruction) -> str:
        """Append an instruction; gives its name."""
        if self.mesh is not None and ON not in instruction.attributes:
            instruction = replace(instruction, attributes={**instruction.attributes, ON: (self.mesh,)})
        self.instructions.append(instruction)
        self.by_name[instruction.name] = instruction
        return instruction.name

    def emit(
        self,
        name: str,
        opcode: str,
        shape: Shape,
        operands: Sequence[str],
        attributes: Mapping[str, AttributeValue],
        offset: int,
        literal: str | None = None,
    ) -> str:
        """Append an instruction under a free name like the wanted one."""
        return self.add(
            Instruction(self.fresh(name), opcode, shape, tuple(operands), attributes, offset, literal=literal)
        )

    def parameter(
        self, name: str, shape: Shape, attributes: Mapping[str, AttributeValue], offset: int, bound: bool = True
    ) -> str:
        """Append the next parameter, and bind its name."""
        label = self.fresh(name)
        self.add(Instruction(label, "parameter", shape, (), attributes, offset, self._parameters))
        self._parameters += 1
        if bound:
            self.bind(name, label)
        return label

    def finish(
        self,
        results: Sequence[str],
        offset: int,
        always_tuple: bool = False,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> Computation:
        """The computation that yields these instructions."""
        if len(results) == 1 and not always_tuple:
            root = self.by_name[results[0]]
        else:
            shape = TupleShape(tuple(self.by_name[name].shape for name in results))
            root = self.by_name[self.emit("return", "tuple", shape, results, attributes or {}, offset)]
        return Computation(self.name, tuple(self.instructions), root, self.offset)


def metadata(place: Place) -> Raw | None:
    """The metadata attribute that says where an operation came from; None for one of unknown origin."""
    name, file, line = place
    if not name and not file:
        return None
    parts: list[str] = []
    if name:
        parts.append(f'op_name="{_escape(name)}"')
    if file:
        parts.append(f'source_file="{_escape(file)}"')
    if line:
        parts.append(f"source_line={line}")
    return Raw("{" + " ".join(parts) + "}")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
