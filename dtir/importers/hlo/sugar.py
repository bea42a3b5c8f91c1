"""Spells out the short form of asynchronous ops.

`x = ((f32[8]), f32[1]) reduce-scatter-start(p), ...` stands for an `async-start` that runs a hidden computation with the
`reduce-scatter` in it, `-update` and `-done` likewise. `all-reduce-start` and the other native pairs stay as they are.
Names follow XLA: `async_wrapped`, `async_wrapped.1`, ... with `reduce-scatter`, `reduce-scatter.1`, ... inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dtir.importers.hlo.attributes import AttributeValue, Names
from dtir.importers.hlo.opcodes import wrapped_opcode
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.shapes import Shape, TupleShape
from dtir.importers.hlo.syntax import Computation, HloModule, Instruction

_OWN_ATTRIBUTES = frozenset(
    {"async_execution_thread", "metadata", "control-predecessors", "output_to_operand_aliasing"}
)
"""Attributes that stay with the start; everything else describes the wrapped op."""


def desugar(module: HloModule, problems: Problems) -> HloModule:
    """The module with every short form spelled out; the same object where there is none."""
    used = [c for c in module.computations if any(wrapped_opcode(i.opcode) for i in c.instructions)]
    if not used:
        return module
    names = _Names(module)
    computations: list[Computation] = []
    for computation in module.computations:
        wrapped, rewritten = _desugar_computation(computation, names, problems)
        computations += [*wrapped, rewritten]
    entry = next(computation for computation in computations if computation.name == module.entry.name)
    return replace(module, computations=tuple(computations), entry=entry)


class _Names:
    """Hands out names that no other computation or instruction of the module has."""

    def __init__(self, module: HloModule) -> None:
        self._computations = {computation.name for computation in module.computations}
        self._instructions = {i.name for computation in module.computations for i in computation.instructions}
        self._next: dict[str, int] = {}

    def computation(self, wanted: str) -> str:
        return self._fresh(wanted, self._computations)

    def instruction(self, wanted: str) -> str:
        return self._fresh(wanted, self._instructions)

    def _fresh(self, wanted: str, taken: set[str]) -> str:
        name = wanted
        number = self._next.get(wanted, 0)
        while name in taken:
            number += 1
            name = f"{wanted}.{number}"
        self._next[wanted] = number
        taken.add(name)
        return name


def _desugar_computation(
    computation: Computation, names: _Names, problems: Problems
) -> tuple[list[Computation], Computation]:
    forms = {i.name: form for i in computation.instructions if (form := wrapped_opcode(i.opcode)) is not None}
    if not forms:
        return [], computation
    wrapped: list[Computation] = []
    rewritten: dict[str, Instruction] = {}
    chains = _chains(computation, forms, problems)
    for instruction in computation.instructions:
        form = forms.get(instruction.name)
        if form is None:
            rewritten[instruction.name] = instruction
            continue
        opcode, part = form
        attributes = instruction.attributes
        if part == "start":
            body = _wrap(instruction, opcode, chains.get(instruction.name, []), names)
            wrapped.append(body)
            attributes = {key: value for key, value in attributes.items() if key in _OWN_ATTRIBUTES}
            attributes["calls"] = Names((body.name,))
        rewritten[instruction.name] = replace(instruction, opcode=f"async-{part}", attributes=attributes)
    root = rewritten[computation.root.name]
    return wrapped, replace(computation, instructions=tuple(rewritten.values()), root=root)


def _chains(
    computation: Computation, forms: Mapping[str, tuple[str, str]], problems: Problems
) -> dict[str, list[Instruction]]:
    """Updates and done of every start, in order."""
    start_of: dict[str, str] = {}
    chains: dict[str, list[Instruction]] = {}
    for instruction in computation.instructions:
        form = forms.get(instruction.name)
        if form is not None and form[1] == "start":
            start_of[instruction.name] = instruction.name
        elif instruction.operands and instruction.operands[0] in start_of:
            start = start_of[instruction.operands[0]]
            if form is not None and form[0] != forms[start][0]:
                message = f"'{instruction.name}' ({instruction.opcode}) does not belong to the {forms[start][0]}-start '{start}'"
                problems.error("hlo.async_pair", message, instruction.offset)
            chains.setdefault(start, []).append(instruction)
            if instruction.opcode.endswith("-update"):
                start_of[instruction.name] = start
    return chains


def _wrap(start: Instruction, opcode: str, chain: list[Instruction], names: _Names) -> Computation:
    """The hidden computation of a start: one parameter per operand bound by it or by an update, and the op."""
    shapes: list[Shape] = []
    result: Shape = start.shape
    for instruction in (start, *chain):
        # A start or update has the shape ((operands), result[, state]); a late operand shows in the update's.
        if isinstance(instruction.shape, TupleShape) and len(instruction.shape.elements) >= 2:
            bound, outcome = instruction.shape.elements[:2]
            if not instruction.opcode.endswith("-done"):
                if isinstance(bound, TupleShape) and len(bound.elements) > len(shapes):
                    shapes = list(bound.elements)
                result = outcome
    done = next((i for i in chain if i.opcode.endswith("-done")), None)
    if done is not None:
        result = done.shape
    parameters: list[Instruction] = []
    for number, shape in enumerate(shapes):
        name = names.instruction("async_param")
        parameters.append(Instruction(name, "parameter", shape, (), {}, start.offset, number))
    attributes: dict[str, AttributeValue] = {
        key: value for key, value in start.attributes.items() if key not in _OWN_ATTRIBUTES or key == "metadata"
    }
    name = names.instruction(opcode)
    operation = Instruction(name, opcode, result, tuple(p.name for p in parameters), attributes, start.offset)
    thread = start.text("async_execution_thread")
    return Computation(names.computation("async_wrapped"), (*parameters, operation), operation, start.offset, thread)
