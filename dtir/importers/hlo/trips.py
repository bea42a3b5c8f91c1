"""Trip counts of while loops.

After optimisation XLA writes `known_trip_count` into `backend_config`. Before, the count follows where the loop state has
a counter: the condition compares it with a bound, the body adds a constant to it, and it starts from a constant. Anything
else depends on data and gives None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dtir.importers.hlo.attributes import Raw
from dtir.importers.hlo.shapes import ArrayShape, leaf_count
from dtir.importers.hlo.syntax import Computation, Instruction

_KNOWN = re.compile(r'known_trip_count\\?"?\s*:\s*\{\s*\\?"?n\\?"?\s*:\s*\\?"?(\d{1,18})')
_MAX_STEPS = 200
_TRANSPARENT = frozenset({"copy", "bitcast", "reshape", "convert", "opt-barrier", "optimization-barrier", "broadcast"})
_NEGATED = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ"}


@dataclass(frozen=True, slots=True)
class Affine:
    """`state[leaf] + offset`, or the constant `offset` when `leaf` is None."""

    leaf: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """A computation with the place its parameters come from (None: they are the loop state itself)."""

    computation: Computation
    by_name: Mapping[str, Instruction]
    call: tuple[_Frame, Instruction] | None = None


class TripCounter:
    """Trip counts of the loops of one module. Tables of names are made once per computation."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._solver = _Solver(computations)
        self._computations = computations

    def count(self, loop: Instruction, caller: Computation) -> int | None:
        """How often the body of a while runs, None when it depends on data."""
        config = loop.attributes.get("backend_config")
        if isinstance(config, Raw) and (match := _KNOWN.search(config.text)) is not None:
            return int(match.group(1))
        known, solver = self._computations, self._solver
        bodies, conditions = loop.names("body"), loop.names("condition")
        if not bodies or not conditions or bodies[0] not in known or conditions[0] not in known:
            return None
        condition, body = solver.frame(known[conditions[0]]), solver.frame(known[bodies[0]])
        test = solver.comparison(condition)
        if test is None or not loop.operands:
            return None
        direction, left, right = test
        if left.leaf is None:
            direction, left, right = _MIRRORED[direction], right, left
        if left.leaf is None:
            return None
        start = solver.frame(caller)
        counter = solver.resolve_initial(start, loop, left.leaf)
        step = solver.resolve_leaf(body, body.computation.root.name, left.leaf)
        bound = self._bound(right, body, start, loop)
        if counter is None or counter.leaf is not None or step is None or step.leaf != left.leaf or bound is None:
            return None
        return _count(counter.offset + left.offset, step.offset, direction, bound)

    def _bound(self, right: Affine, body: _Frame, start: _Frame, loop: Instruction) -> int | None:
        """The bound as a number: a constant, or a part of the state that the body passes on unchanged."""
        if right.leaf is None:
            return right.offset
        if self._solver.resolve_leaf(body, body.computation.root.name, right.leaf) != Affine(right.leaf, 0):
            return None
        initial = self._solver.resolve_initial(start, loop, right.leaf)
        return initial.offset + right.offset if initial is not None and initial.leaf is None else None


def _count(first: int, step: int, direction: str, bound: int) -> int | None:
    """Iterations while `first + k * step <direction> bound`; None where it never ends or the step does not fit."""
    if direction == "NE":
        distance = bound - first
        if step == 0 or distance % step or distance // step < 0:
            return 0 if distance == 0 else None
        return distance // step
    if direction == "EQ":
        return (1 if step else None) if first == bound else 0
    if direction in ("GT", "GE"):
        first, step, bound, direction = -first, -step, -bound, _MIRRORED[direction]
    if direction == "LE":
        bound += 1
    if first >= bound:
        return 0
    return -(-(bound - first) // step) if step > 0 else None


class _Solver:
    """Follows scalars through tuples, copies, calls and fusions; a bounded number of steps per question."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self.computations = computations
        self.steps = 0
        self._names: dict[str, dict[str, Instruction]] = {}

    def frame(self, computation: Computation, call: tuple[_Frame, Instruction] | None = None) -> _Frame:
        """A computation as the place where a question starts, or as entered by an instruction."""
        names = self._names.get(computation.name)
        if names is None:
            names = self._names[computation.name] = {i.name: i for i in computation.instructions}
        return _Frame(computation, names, call)

    def comparison(self, frame: _Frame) -> tuple[str, Affine, Affine] | None:
        """(direction, left, right) of a condition whose root is one comparison of integers."""
        self.steps = 0
        negated = False
        name = frame.computation.root.name
        while self.steps < _MAX_STEPS:
            self.steps += 1
            instruction = frame.by_name.get(name)
            if instruction is None:
                return None
            if instruction.opcode == "compare" and len(instruction.operands) == 2:
                direction = instruction.text("direction")
                if direction not in _MIRRORED or (negated and direction not in _NEGATED):
                    return None
                left = self._leaf(frame, instruction.operands[0], 0)
                right = self._leaf(frame, instruction.operands[1], 0)
                if left is None or right is None:
                    return None
                return _NEGATED[direction] if negated else direction, left, right
            if instruction.opcode == "not" and instruction.operands:
                negated = not negated
                name = instruction.operands[0]
            elif instruction.opcode in ("copy", "bitcast", "reshape") and instruction.operands:
                name = instruction.operands[0]
            elif (inner := self._entered(frame, instruction)) is not None:
                frame, name = inner, inner.computation.root.name
            else:
                return None
        return None

    def resolve_leaf(self, frame: _Frame, name: str, leaf: int) -> Affine | None:
        """Leaf number `leaf` of an instruction's result, as a function of the loop state."""
        self.steps = 0
        return self._leaf(frame, name, leaf)

    def resolve_initial(self, frame: _Frame, loop: Instruction, leaf: int) -> Affine | None:
        """What a part of a loop's state is before the first iteration."""
        self.steps = 0
        return self._initial(frame, loop, leaf)

    def _initial(self, frame: _Frame, loop: Instruction, leaf: int) -> Affine | None:
        """The state is one tuple in HLO; StableHLO carries its parts as operands of their own."""
        for operand in loop.operands:
            source = frame.by_name.get(operand)
            width = leaf_count(source.shape) if source is not None else 1
            if leaf < width:
                return self._leaf(frame, operand, leaf)
            leaf -= width
        return None

    def _leaf(self, frame: _Frame, name: str, leaf: int) -> Affine | None:
        offset = 0
        while self.steps < _MAX_STEPS:
            self.steps += 1
            instruction = frame.by_name.get(name)
            if instruction is None:
                return None
            operands = instruction.operands
            match instruction.opcode:
                case "parameter":
                    if frame.call is None:
                        before = self._leaves_before(frame, instruction)
                        return Affine(before + leaf, offset)
                    frame, call = frame.call
                    if instruction.number is None or instruction.number >= len(call.operands):
                        return None
                    name = call.operands[instruction.number]
                case "constant":
                    value = _constant(instruction)
                    return Affine(None, value + offset) if value is not None else None
                case "tuple":
                    for operand in operands:
                        width = leaf_count(frame.by_name[operand].shape) if operand in frame.by_name else 1
                        if leaf < width:
                            name = operand
                            break
                        leaf -= width
                    else:
                        return None
                case "get-tuple-element":
                    source = frame.by_name.get(operands[0]) if operands else None
                    index = instruction.integer("index")
                    if source is None or index is None or isinstance(source.shape, ArrayShape):
                        return None
                    leaf += sum(leaf_count(element) for element in source.shape.elements[:index])
                    name = operands[0]
                case "add" | "subtract" if len(operands) == 2:
                    left = self._leaf(frame, operands[0], 0)
                    right = self._leaf(frame, operands[1], 0)
                    total = _combine(left, right, instruction.opcode)
                    return Affine(total.leaf, total.offset + offset) if total is not None else None
                case "while" if operands:
                    return self._through_while(frame, instruction, leaf, offset)
                case opcode if opcode in _TRANSPARENT and len(operands) == 1:
                    name = operands[0]
                case _:
                    inner = self._entered(frame, instruction)
                    if inner is None:
                        return None
                    frame, name = inner, inner.computation.root.name
        return None

    def _through_while(self, frame: _Frame, loop: Instruction, leaf: int, offset: int) -> Affine | None:
        """A part of an inner loop's state that its body passes on unchanged keeps the value it came in with."""
        names = loop.names("body")
        if not names or names[0] not in self.computations:
            return None
        body = self.frame(self.computations[names[0]])
        if self._leaf(body, body.computation.root.name, leaf) != Affine(leaf, 0):
            return None
        value = self._initial(frame, loop, leaf)
        return Affine(value.leaf, value.offset + offset) if value is not None else None

    def _leaves_before(self, frame: _Frame, parameter: Instruction) -> int:
        if parameter.number == 0:
            return 0
        parameters = frame.computation.parameters()
        return sum(leaf_count(other.shape) for other in parameters[: parameter.number])

    def _entered(self, frame: _Frame, instruction: Instruction) -> _Frame | None:
        key = {"call": "to_apply", "fusion": "calls"}.get(instruction.opcode)
        names = instruction.names(key) if key is not None else ()
        if len(names) != 1 or names[0] not in self.computations:
            return None
        return self.frame(self.computations[names[0]], (frame, instruction))


def _combine(left: Affine | None, right: Affine | None, opcode: str) -> Affine | None:
    if left is None or right is None:
        return None
    if opcode == "subtract":
        return Affine(left.leaf, left.offset - right.offset) if right.leaf is None else None
    if left.leaf is not None and right.leaf is not None:
        return None
    return Affine(left.leaf if left.leaf is not None else right.leaf, left.offset + right.offset)


def _constant(instruction: Instruction) -> int | None:
    """The value of an integer constant of one element."""
    text = (instruction.literal or "").strip().strip("{} ")
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) and instruction.shape.text()[:1] in "su" else None
