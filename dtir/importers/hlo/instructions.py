"""Reads one instruction of HLO text: name, shape, opcode, operands, attributes.

The common print forms are matched by a few regular expressions; everything else goes through a slower scanner that
knows every form and says what it wanted. Both give the same records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from dtir.importers.hlo.attributes import COMPUTATION_ATTRIBUTES, PARSERS, AttributeValue, Names, Raw
from dtir.importers.hlo.lexing import (
    IDENTIFIER,
    NAME,
    STRING,
    HloSyntaxError,
    balanced_end,
    skip_space,
    split_top_level,
    strip_comments,
)
from dtir.importers.hlo.literals import is_elided, parse_literal
from dtir.importers.hlo.meshes import scan_axis_refs, scan_mesh, shorten
from dtir.importers.hlo.opcodes import infer_shape
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.shapes import ArrayShape, Shape, parse_shape, scan_shape, starts_shape
from dtir.importers.hlo.syntax import Instruction

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_HEAD = re.compile(rf"(ROOT\s++)?%?({IDENTIFIER})\s*+=\s*+", re.ASCII)
_PLAIN = re.compile(
    r"([a-z][a-z0-9]*+\[[\d,]*+\](?:\{[^{}()\"']*+(?:\([^{}()\"']*+\)[^{}()\"']*+)*+\})?)\s++([a-z][\w\-]*+)\(",
    re.ASCII,
)
_OPCODE = re.compile(r"([A-Za-z][\w\-.]*+)\s*+\(", re.ASCII)
_FLAT_ARGUMENTS = re.compile(r"([^()\"'{}\[\]/]*+)\)")
_ATTRIBUTE = re.compile(rf",\s*+({IDENTIFIER})\s*+=[ \t]*+", re.ASCII)
_ATTRIBUTE_NAME = re.compile(rf"({IDENTIFIER})\s*+=[ \t]*+", re.ASCII)
_VALUE = re.compile(rf"\{{[^{{}}\"'/]*+(?:{_STRING}[^{{}}\"'/]*+)*+\}}|{_STRING}|[^\s,{{}}()\[\]\"'/]++", re.DOTALL)
_PIECE = re.compile(r"[^\s,{}()\[\]\"'/]++|/(?![/*])")
_LITERAL = re.compile(r"[^\s,{}()\[\]]++")
_VALUE_ENDS = frozenset(", \n\r\t})/")
_BODY_START = re.compile(rf"\{{\s*+(?:ROOT\s++)?%?{IDENTIFIER}\s++=\s", re.ASCII)
_NEXT_INSTRUCTION = re.compile(
    rf"^[ \t]*+(?:ROOT[ \t]++)?%?{IDENTIFIER} = [^\s()]++ [a-z][\w\-]*+\(", re.MULTILINE | re.ASCII
)
"""A line that can only be an instruction: a value that reaches over one lacks its closing bracket."""
_CACHED_LIMIT = 10_000

BodyReader: TypeAlias = Callable[[int, str], tuple[str, int]]
"""Reads an inline computation whose `{` is at an offset; the text is a name to use. Gives its name and the end."""


class InstructionReader:
    """Reads instructions of one text. Equal shapes and attribute texts give the same objects."""

    def __init__(self, text: str, problems: Problems, read_body: BodyReader) -> None:
        self._text = text
        self._problems = problems
        self._read_body = read_body
        self._shapes: dict[str, Shape] = {}
        self._values: dict[tuple[str, str], AttributeValue] = {}

    def read(self, pos: int, scope: Mapping[str, Instruction], broken: set[str]) -> tuple[Instruction, bool, int]:
        """The instruction at `pos`, whether it is the root, and the offset after it.

        `scope` holds the instructions before it, `broken` names that could not be read. Raises `HloSyntaxError`.
        """
        text = self._text
        head = _HEAD.match(text, pos) or self._head_with_comments(pos)
        if head is None:
            raise HloSyntaxError(f"expected 'name = shape opcode(...)', found '{shorten(text[pos : pos + 60])}'", pos)
        name = head.group(2)
        try:
            return self._read_rest(pos, name, head.group(1) is not None, head.end(), scope, broken)
        except HloSyntaxError:
            broken.add(name)
            raise

    def _head_with_comments(self, pos: int) -> re.Match[str] | None:
        root = re.compile(r"ROOT\b").match(self._text, pos)
        return _HEAD.match(self._text, skip_space(self._text, root.end())) if root is not None else None

    def _read_rest(
        self, start: int, name: str, is_root: bool, pos: int, scope: Mapping[str, Instruction], broken: set[str]
    ) -> tuple[Instruction, bool, int]:
        text = self._text
        shape: Shape | None
        plain = _PLAIN.match(text, pos)
        if plain is not None:
            shape_text = plain.group(1)
            shape = self._shapes.get(shape_text)
            if shape is None:
                shape = self._shapes[shape_text] = self._shape_at(shape_text, pos)
            opcode, at = plain.group(2), plain.end()
        else:
            shape, opcode, at = self._shape_and_opcode(skip_space(text, pos))
        flat = _FLAT_ARGUMENTS.match(text, at)
        if flat is not None:
            arguments, end = flat.group(1), flat.end()
        else:
            end = balanced_end(text, at - 1)
            arguments = text[at : end - 1]
        operands: tuple[str, ...] = ()
        number: int | None = None
        literal: str | None = None
        if opcode == "parameter":
            number = self._parameter_number(arguments, at)
        elif opcode == "constant":
            literal = arguments
        elif arguments:
            operands = self._operands(arguments, at, flat is not None, scope, broken)
        attributes: dict[str, AttributeValue] = {}
        while True:
            match = _ATTRIBUTE.match(text, end)
            if match is None:
                after = skip_space(text, end)
                if not text.startswith(",", after):
                    break
                match = _ATTRIBUTE_NAME.match(text, skip_space(text, after + 1))
                if match is None:
                    raise HloSyntaxError("expected an attribute name and '=' after ','", after + 1)
            end = self.attribute(match.group(1), match.start(1), match.end(), attributes, name)
        if shape is None:
            shape = self._inferred(opcode, operands, attributes, scope, at)
        if literal is not None:
            self._check_literal(literal, shape, at)
        return Instruction(name, opcode, shape, operands, attributes, start, number, literal), is_root, end

    def _shape_at(self, shape_text: str, pos: int) -> Shape:
        try:
            return parse_shape(shape_text)
        except HloSyntaxError as error:
            raise HloSyntaxError(error.message, pos + error.offset, error.code) from None

    def _shape_and_opcode(self, pos: int) -> tuple[Shape | None, str, int]:
        text = self._text
        shape: Shape | None = None
        if starts_shape(text, pos):
            shape, pos = scan_shape(text, pos)
            pos = skip_space(text, pos)
        match = _OPCODE.match(text, pos)
        if match is None:
            raise HloSyntaxError(f"expected a shape and an opcode, found '{shorten(text[pos : pos + 60])}'", pos)
        return shape, match.group(1), match.end()

    def _parameter_number(self, arguments: str, at: int) -> int:
        digits = strip_comments(arguments).strip()
        if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
            raise HloSyntaxError(f"expected a parameter number, found '{shorten(digits)}'", at)
        return int(digits)

    def _operands(
        self, arguments: str, at: int, is_flat: bool, scope: Mapping[str, Instruction], broken: set[str]
    ) -> tuple[str, ...]:
        if is_flat:
            names = arguments.replace(", %", ", ").removeprefix("%").split(", ")  # as printed
            if all(map(scope.__contains__, names)):
                return tuple(names)
            if not arguments.strip():
                return ()
        body = strip_comments(arguments)
        if not body.strip():
            return ()
        names = [self._operand(part, at) for part, _ in split_top_level(body)]
        for name in names:
            if name not in scope and name not in broken:
                self._problems.error("hlo.unknown_operand", f"operand '{name}' is not defined before its use", at)
                broken.add(name)
        return tuple(names)

    def _operand(self, part: str, at: int) -> str:
        pos = skip_space(part, 0)
        if starts_shape(part, pos):
            try:
                _, pos = scan_shape(part, pos)
            except HloSyntaxError as error:
                raise HloSyntaxError(error.message, at, error.code) from None
            pos = skip_space(part, pos)
        match = NAME.match(part, pos)
        if match is None or skip_space(part, match.end()) != len(part):
            raise HloSyntaxError(f"expected an operand name, found '{shorten(part.strip())}'", at)
        return match.group(1)

    def attribute(
        self, key: str, key_at: int, pos: int, attributes: dict[str, AttributeValue], instruction: str
    ) -> int:
        """Read the value at `pos` into `attributes[key]`; gives the offset after it."""
        text = self._text
        if key in attributes:
            self._problems.error("hlo.duplicate_attribute", f"attribute '{key}' is stated twice", key_at)
        if text[pos : pos + 1] in "\r\n/" and key != "padding":  # the padding of a scalar is empty text
            pos = skip_space(text, pos)
        if key in COMPUTATION_ATTRIBUTES and _BODY_START.match(text, pos):
            inline, end = self._read_body(pos, f"{instruction}.{key}")
            attributes[key] = Names((inline,))
            return end
        match = _VALUE.match(text, pos)
        end = match.end() if match is not None else pos
        if match is None or (end < len(text) and text[end] not in _VALUE_ENDS) or text.startswith("mesh[", pos):
            end = self._value_end(pos)
            if key == "literal" and starts_shape(text, pos):
                end = self._literal_end(skip_space(text, end))
        raw = text[pos:end]
        if "\n" in raw and _NEXT_INSTRUCTION.search(raw) and _NEXT_INSTRUCTION.search(STRING.sub("", raw)):
            raise HloSyntaxError(f"the value of '{key}' is not closed", pos, scanned=end)
        parser = PARSERS.get(key)
        if parser is None:
            attributes[key] = Raw(raw)
            return end
        cached = self._values.get((key, raw))
        if cached is None:
            try:
                cached = parser(raw)
            except HloSyntaxError as error:
                code = "hlo.attribute" if error.code == "hlo.syntax" else error.code
                self._problems.error(code, f"attribute '{key}': {error.message}", pos + min(error.offset, len(raw)))
                return end
            if len(raw) <= _CACHED_LIMIT:
                self._values[key, raw] = cached
        attributes[key] = cached
        return end

    def _literal_end(self, pos: int) -> int:
        """The end of the constant that follows a shape in `literal=s32[] 1`."""
        if self._text.startswith(("{", "("), pos):
            return balanced_end(self._text, pos)
        match = _LITERAL.match(self._text, pos)
        return match.end() if match is not None else pos

    def _value_end(self, pos: int) -> int:
        """The end of a value made of words, strings and brackets up to a comma or white space outside of them."""
        text = self._text
        if text.startswith("mesh[", pos):
            _, end = scan_mesh(text, pos)
            at = skip_space(text, end)
            return scan_axis_refs(text, at)[2] if text.startswith("{", at) else end
        while pos < len(text):
            char = text[pos]
            if char in "([{":
                pos = balanced_end(text, pos)
            elif char in "\"'":
                match = STRING.match(text, pos)
                if match is None:
                    raise HloSyntaxError("string is not closed", pos, scanned=len(text))
                pos = match.end()
            else:
                match = _PIECE.match(text, pos)
                if match is None:
                    break
                pos = match.end()
        return pos

    def _inferred(
        self,
        opcode: str,
        operands: tuple[str, ...],
        attributes: Mapping[str, AttributeValue],
        scope: Mapping[str, Instruction],
        at: int,
    ) -> Shape:
        known = [scope[name].shape for name in operands if name in scope]
        shape = infer_shape(opcode, known, attributes) if len(known) == len(operands) else None
        if shape is None:
            raise HloSyntaxError(
                f"the shape of '{opcode}' is not stated and does not follow from operands", at, "hlo.shape_missing"
            )
        return shape

    def _check_literal(self, literal: str, shape: Shape, at: int) -> None:
        if not isinstance(shape, ArrayShape) or is_elided(literal) or shape.dtype in ("token", "opaque"):
            return
        try:
            parse_literal(literal, shape.elements)
        except HloSyntaxError as error:
            self._problems.error(error.code, error.message, at)
