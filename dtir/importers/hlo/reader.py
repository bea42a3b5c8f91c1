"""Reads HLO text into modules; never raises for bad text.

`read_text` gives every module of a file in order: a second `HloModule` line or a lit separator (`// -----`) starts the
next one. Whatever cannot be read is a problem with line and column; reading goes on with the next instruction, so one
run reports everything. Time and memory grow with the text alone, never with a number written in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from dtir.importers.hlo.attributes import AttributeValue
from dtir.importers.hlo.instructions import InstructionReader
from dtir.importers.hlo.lexing import IDENTIFIER, HloSyntaxError, balanced_end, skip_space, split_top_level, unescape
from dtir.importers.hlo.meshes import shorten
from dtir.importers.hlo.problems import Problem, Problems
from dtir.importers.hlo.shapes import scan_shape
from dtir.importers.hlo.syntax import Computation, HloModule, Instruction, SourceTables

MAX_INLINE_DEPTH = 32
"""Deepest nesting of computations that are written inside an attribute."""

_SEPARATOR = re.compile(r"^[ \t]*//[ \t]*-----.*$", re.MULTILINE)
_MODULE = re.compile(r"HloModule\b\s*+", re.ASCII)
_MODULE_NAME = re.compile(r"[\w.\-]+", re.ASCII)
_HEADER = re.compile(rf"(ENTRY\s++)?%?({IDENTIFIER})\s*+(?=[({{])", re.ASCII)
_TABLE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b(?!\s*[({=])", re.ASCII)
_ROW = re.compile(r"\s*(\d{1,9})\s+(\"(?:[^\"\\]|\\.)*+\"|\{([^{}]*)\})", re.DOTALL)
_FIELD = re.compile(r"(\w+)=(\d{1,9})")
_RESUME_BODY = re.compile(
    rf"^[ \t]*(?:(?:ROOT[ \t]+)?%?{IDENTIFIER}[ \t]*=[ \t]|(\}})|((?:ENTRY|HloModule)\b|%?{IDENTIFIER}[ \t]+[({{]))",
    re.MULTILINE | re.ASCII,
)
_RESUME_TOP = re.compile(rf"^[ \t]*(?:(?:ENTRY|HloModule)\b|%?{IDENTIFIER}[ \t]+[({{])", re.MULTILINE | re.ASCII)


@dataclass(frozen=True, slots=True)
class HloText:
    """The modules of a file and what was wrong with them, in text order."""

    modules: tuple[HloModule, ...]
    problems: tuple[Problem, ...]
    omitted: int

    @property
    def ok(self) -> bool:
        """True when nothing is an error."""
        return not self.omitted and all(problem.level.value != "error" for problem in self.problems)


class _GiveUpError(Exception):
    """Internal: too much text was scanned again and again."""


def read_text(text: str) -> HloText:
    """Every module of `text`, and the problems found in it.

    >>> module = read_text("e { a = f32[2] parameter(0)  ROOT b = f32[2] negate(a) }").modules[0]
    >>> module.entry.root.opcode, module.entry.root.operands
    ('negate', ('a',))
    """
    problems = Problems(text)
    reader = _Reader(text, problems)
    modules: list[HloModule] = []
    bounds = [match.end() for match in _SEPARATOR.finditer(text)] + [len(text)]
    pos = skip_space(text, 0)
    try:
        while pos < len(text):
            module, pos = reader.module(pos, bounds[bisect_right(bounds, pos)])
            if module is not None:
                modules.append(module)
            pos = skip_space(text, pos)
    except _GiveUpError as stopped:
        problems.error("hlo.gave_up", str(stopped), reader.resumed_at, "repair the problems above and read it again")
    if not modules and not problems.items:
        problems.error("hlo.empty", "the text holds no computation", 0)
    problems.items.sort(key=lambda problem: (problem.line, problem.column))
    return HloText(tuple(modules), tuple(problems.items), problems.omitted)


class _Reader:
    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.problems = problems
        self.instructions = InstructionReader(text, problems, self._inline)
        self.budget = 8 * len(text) + 1_000_000
        self.resumed_at = 0
        self.computations: dict[str, Computation] = {}
        self.broken: set[str] = set()
        self.depth = 0

    def module(self, pos: int, stop: int) -> tuple[HloModule | None, int]:
        """The module that starts at `pos`, which ends at `stop`, at the next `HloModule` or at the end of the text."""
        text = self.text
        start = pos
        name: str | None = None
        attributes: dict[str, AttributeValue] = {}
        self.computations, self.broken = {}, set()
        entries: list[str] = []
        tables = _Tables()
        match = _MODULE.match(text, pos)
        if match is not None:
            name, pos = self._header(match.end(), attributes)
        while True:
            pos = skip_space(text, pos)
            if pos >= len(text) or pos >= stop or _MODULE.match(text, pos):
                break
            if (table := _TABLE.match(text, pos)) is not None:
                pos = tables.read(text, table.group(1), table.end())
                continue
            pos = self._computation(pos, entries)
        return self._assemble(start, name, attributes, entries, tables), pos

    def _header(self, pos: int, attributes: dict[str, AttributeValue]) -> tuple[str | None, int]:
        text = self.text
        match = _MODULE_NAME.match(text, pos)
        if match is None:
            self.problems.error("hlo.syntax", "expected a module name", pos)
        name = match.group() if match is not None else None
        pos = match.end() if match is not None else pos
        try:
            return name, self._attributes(pos, attributes)
        except HloSyntaxError as error:
            return name, self._resume_top(error, pos)

    def _attributes(self, pos: int, attributes: dict[str, AttributeValue]) -> int:
        """`, key=value` pairs at `pos` into `attributes`; gives the offset after them."""
        text = self.text
        while text.startswith(",", after := skip_space(text, pos)):
            key_at = skip_space(text, after + 1)
            match = re.compile(rf"({IDENTIFIER})\s*=\s*").match(text, key_at)
            if match is None:
                raise HloSyntaxError("expected an attribute name and '=' after ','", key_at)
            pos = self.instructions.attribute(match.group(1), key_at, match.end(), attributes, "module")
        return pos

    def _computation(self, pos: int, entries: list[str]) -> int:
        text = self.text
        match = _HEADER.match(text, pos)
        if match is None:
            found = shorten(text[pos : pos + 60])
            return self._resume_top(HloSyntaxError(f"expected a computation, found '{found}'", pos), pos)
        name = match.group(2)
        at = match.end()
        try:
            if text.startswith("(", at):
                at = self._signature(at)
            if not text.startswith("{", at):
                raise HloSyntaxError("expected '{' after the computation's name", at)
        except HloSyntaxError as error:
            self.broken.add(name)
            return self._resume_top(error, pos)
        computation, at = self._body(at + 1, name, pos)
        attributes: dict[str, AttributeValue] = {}
        try:
            at = self._attributes(at, attributes)
        except HloSyntaxError as error:
            at = self._resume_top(error, at)
        if name in self.computations:
            self.problems.error("hlo.duplicate_computation", f"computation '{name}' is defined twice", pos)
            return at
        if computation is None:
            self.broken.add(name)
            return at
        thread = attributes.get("execution_thread")
        self.computations[name] = Computation(
            name,
            computation.instructions,
            computation.root,
            pos,
            thread if isinstance(thread, str) else None,
            attributes,
        )
        if match.group(1) is not None:
            entries.append(name)
        return at

    def _signature(self, at: int) -> int:
        """`(p: f32[2], ...) -> f32[2]`: checked for syntax; the instructions say the same again."""
        text = self.text
        end = balanced_end(text, at)
        for part, offset in split_top_level(text[at + 1 : end - 1]):
            name, colon, shape = part.partition(":")
            if not part.strip():
                continue
            if not colon or not name.strip():
                raise HloSyntaxError("expected 'name: shape' in the parameter list", at + 1 + offset)
            try:
                scan_shape(shape, skip_space(shape, 0))
            except HloSyntaxError as error:
                raise HloSyntaxError(error.message, at + 1 + offset, error.code) from None
        arrow = skip_space(text, end)
        if not text.startswith("->", arrow):
            raise HloSyntaxError("expected '->' after the parameter list", arrow)
        _, end = scan_shape(text, skip_space(text, arrow + 2))
        return skip_space(text, end)

    def _inline(self, pos: int, wanted: str) -> tuple[str, int]:
        if self.depth >= MAX_INLINE_DEPTH:
            raise HloSyntaxError(f"computations are nested deeper than {MAX_INLINE_DEPTH} levels", pos)
        name = wanted
        suffix = 0
        while name in self.computations:
            suffix += 1
            name = f"{wanted}.{suffix}"
        self.depth += 1
        try:
            computation, end = self._body(pos + 1, name, pos)
        finally:
            self.depth -= 1
        if computation is None:
            self.broken.add(name)
        else:
            self.computations[name] = computation
        return name, end

    def _body(self, pos: int, name: str, start: int) -> tuple[Computation | None, int]:
        """Instructions up to the closing brace; the computation (None when it has none) and the offset after it."""
        text = self.text
        scope: dict[str, Instruction] = {}
        broken: set[str] = set()
        roots: list[Instruction] = []
        while True:
            pos = skip_space(text, pos)
            if text.startswith("}", pos):
                pos += 1
                break
            try:
                instruction, is_root, pos = self.instructions.read(pos, scope, broken)
            except HloSyntaxError as error:
                if pos >= len(text) or (error.offset == pos and _starts_computation(text, pos)):
                    self.problems.error("hlo.syntax", f"computation '{name}' is not closed with '}}'", start)
                    break
                pos = self._resume(error, pos, _RESUME_BODY)
                continue
            if instruction.name in scope:
                message = f"instruction '{instruction.name}' is defined twice in '{name}'"
                self.problems.error("hlo.duplicate_instruction", message, instruction.offset)
                continue
            scope[instruction.name] = instruction
            if is_root:
                roots.append(instruction)
        if len(roots) > 1:
            self.problems.error(
                "hlo.roots", f"computation '{name}' has {len(roots)} ROOT instructions", roots[1].offset
            )
        instructions = tuple(scope.values())
        if not instructions:
            if not broken:
                self.problems.error("hlo.empty_computation", f"computation '{name}' has no instruction", start)
            return None, pos
        if not broken:
            self._check_parameters(name, instructions)
        return Computation(name, instructions, roots[0] if roots else instructions[-1], start), pos

    def _check_parameters(self, name: str, instructions: tuple[Instruction, ...]) -> None:
        numbers = sorted(i.number for i in instructions if i.number is not None)
        if numbers != list(range(len(numbers))):
            at = next(i.offset for i in instructions if i.number is not None)
            message = f"parameters of '{name}' are numbered {numbers[:8]}, wanted 0..{len(numbers) - 1}"
            self.problems.error("hlo.parameters", message, at)

    def _resume_top(self, error: HloSyntaxError, start: int) -> int:
        return self._resume(error, start, _RESUME_TOP)

    def _resume(self, error: HloSyntaxError, start: int, pattern: re.Pattern[str]) -> int:
        """Report `error` and give the start of the next line where reading can go on."""
        text = self.text
        self.problems.error(error.code, error.message, error.offset)
        line_end = text.find("\n", min(max(error.offset, start), len(text)))
        match = pattern.search(text, line_end + 1) if line_end >= 0 else None
        resume = match.start() if match is not None else len(text)
        self.budget -= max(error.scanned - resume, 0) + 64
        self.resumed_at = resume
        if self.budget < 0:
            raise _GiveUpError("reading stopped here: brackets or strings that never close make the rest unreadable")
        return resume

    def _assemble(
        self, start: int, name: str | None, attributes: dict[str, AttributeValue], entries: list[str], tables: _Tables
    ) -> HloModule | None:
        computations = self.computations
        for computation in computations.values():
            for instruction in computation.instructions:
                if instruction.attributes:
                    self._check_called(instruction)
        if len(entries) > 1:
            self.problems.error(
                "hlo.entry", f"{len(entries)} computations are marked ENTRY", computations[entries[1]].offset
            )
        if not computations:
            if not self.broken:
                self.problems.error("hlo.empty", "the module holds no computation", start)
            return None
        entry = computations[entries[0]] if entries else next(reversed(computations.values()))
        return HloModule(name, attributes, tuple(computations.values()), entry, tables.source(), start)

    def _check_called(self, instruction: Instruction) -> None:
        for key, called in instruction.called():
            if called not in self.computations and called not in self.broken:
                message = f"'{instruction.name}' names computation '{called}' ({key}), which is not defined"
                self.problems.error("hlo.unknown_computation", message, instruction.offset)


class _Tables:
    """The file and stack frame tables as read."""

    def __init__(self) -> None:
        self.files: dict[int, str] = {}
        self.locations: dict[int, dict[str, int]] = {}
        self.frames: dict[int, dict[str, int]] = {}

    def read(self, text: str, kind: str, pos: int) -> int:
        """Rows of one table; gives the offset after them."""
        while (match := _ROW.match(text, pos)) is not None:
            number = int(match.group(1))
            if match.group(3) is None:
                if kind == "FileNames":
                    self.files[number] = unescape(match.group(2))
            else:
                fields = {key: int(value) for key, value in _FIELD.findall(match.group(3))}
                if kind == "FileLocations":
                    self.locations[number] = fields
                elif kind == "StackFrames":
                    self.frames[number] = fields
            pos = match.end()
        return pos

    def source(self) -> SourceTables:
        """Frame id to file and line, innermost frame."""
        frames: dict[int, tuple[str, int]] = {}
        for number, frame in self.frames.items():
            location = self.locations.get(frame.get("file_location_id", 0))
            file = self.files.get(location.get("file_name_id", 0)) if location is not None else None
            if location is not None and file is not None:
                frames[number] = (file, location.get("line", 0))
        return SourceTables(frames)


def _starts_computation(text: str, pos: int) -> bool:
    match = _RESUME_BODY.match(text, text.rfind("\n", 0, pos) + 1)
    return match is not None and match.group(2) is not None
