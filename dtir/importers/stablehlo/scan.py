"""The structure of MLIR text: where operations, their regions and blocks begin and end.

No dialect is known here. An operation ends where a line ends outside of all brackets and the next one begins an operation,
closes a region or labels a block: pretty forms of any dialect are read so, as far as they keep to MLIR's own brackets,
strings and names. A brace outside of other brackets opens a region unless an attribute dictionary or a set begins there.
The scan is a loop with its own stack, in time proportional to the text.
"""

from __future__ import annotations

import re

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import shorten
from dtir.importers.hlo.problems import Problems
from dtir.importers.stablehlo.syntax import Block, Operation, Part, Region, walk

MAX_REGIONS = 100
"""Deepest nesting of regions that is read."""

MAX_BRACKETS = 250
"""Deepest nesting of brackets in one operation that is read."""

_NAME = r"%[\w.$\-]+"
_RESULT = re.compile(rf"({_NAME})(?:\s*:\s*(\d{{1,9}}))?", re.ASCII)
_HEAD = re.compile(
    rf'((?:{_NAME}(?:\s*:\s*\d{{1,9}})?(?:\s*,\s*{_NAME}(?:\s*:\s*\d{{1,9}})?)*+)\s*=\s*)?(?:"([^"\\\n]*)"|([A-Za-z_][\w.$]*+))',
    re.ASCII,
)
_STARTS = re.compile(
    rf'{_NAME}(?:\s*:\s*\d{{1,9}})?\s*(?:=(?!=)|,)|"[A-Za-z_][\w.$\-]*"\s*\(|[a-z_]\w*\.[A-Za-z_][\w.$]*(?!\s*=)|'
    r"(?:return|call|module|func|constant)\b|\^|\}|[#!][\w.\-$]+\s*=(?!=)|\{-#",
    re.ASCII,
)
"""What the first characters of a line say: an operation, a label, an alias or the end of a region begins."""
_OPERATION = re.compile(r"[A-Za-z][\w\-]*(?:\.[A-Za-z][\w.\-]*)?", re.ASCII)
_SPACE = re.compile(r"\s*")
_SPECIAL = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[{}()\[\]\n"]')
_DICTIONARY = re.compile(
    r"\{(?!\s*\n\s*[A-Za-z]\w*\.\w+[ \t]*\n\s*\})\s*"
    r'(?:\}|(?!(?:\w+\.)?(?:return|yield)\b)[A-Za-z_][\w.$\-]*\s*[=,}]|"(?:[^"\\\n]|\\.)*"\s*[=,:}])',
    re.ASCII,
)
"""A brace that begins attributes or a set, not a region: not one operation without operands on a line of its own."""
_ALIAS = re.compile(r"([#!][\w.\-$]+)\s*=\s*(?!=)", re.ASCII)
_LABEL = re.compile(r"\^[\w.$\-]+\s*(\(|:)", re.ASCII)
_SECOND = re.compile(r"(?<=[>\w)])[ \t]+(?=%[\w.$\-]+(?::\d+)?[ \t]*=(?!=)|(?:[a-z_]\w*\.)?return\b)", re.ASCII)
"""Where another operation begins on the same line, behind the types of the first."""
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_RESYNC = re.compile(r"\n[ \t]*(?=(?:func\.func|module|sdy\.mesh|builtin\.module)\b)")


def _skip(text: str, pos: int, end: int) -> int:
    """The offset of the next character that is no white space."""
    match = _SPACE.match(text, pos, end)
    assert match is not None  # the pattern matches the empty string
    return match.end()


class _Frame:
    """An open region: the operation that has it, and the brackets that were open around it."""

    __slots__ = ("brackets", "operation", "region", "started")

    def __init__(self, operation: Operation | None, region: Region, brackets: list[int], started: int) -> None:
        self.operation = operation
        self.region = region
        self.brackets = brackets
        self.started = started


class Scanner:
    """Scans one part of a text."""

    def __init__(self, text: str, start: int, end: int, problems: Problems) -> None:
        self._text = text
        self._end = end
        self._problems = problems
        self.part = Part(start, end, Region(start))
        self._frames = [_Frame(None, self.part.region, [], start)]

    def run(self) -> Part:
        """Scan to the end; what is wrong goes to the problems."""
        pos = self.part.start
        broken = False
        while True:
            try:
                self._scan(pos)
            except HloSyntaxError as error:
                self._problems.error(error.code, error.message, error.offset, "check the text around this place")
                # What stands outside of the broken top-level operation can still be wrong in its own right.
                found = _RESYNC.search(self._text, max(error.offset, error.scanned, pos), self._end)
                if found is None or self._problems.omitted:
                    _close_all(self.part.region)
                    return self.part
                pos = found.end()
                self._frames = self._frames[:1]
                broken = True
                continue
            if broken:
                _close_all(self.part.region)
            return self.part

    def _scan(self, pos: int) -> None:
        text, end = self._text, self._end
        while True:
            pos = _skip(text, pos, end)
            if pos >= end:
                break
            char = text[pos]
            if char == "}":
                pos = self._close(pos)
            elif char == "^":
                pos = self._label(pos)
            elif char in "#!":
                pos = self._alias(pos)
            elif char == "{" and text.startswith("{-#", pos):
                close = text.find("#-}", pos, end)
                if close < 0:
                    raise HloSyntaxError("'{-#' is never closed by '#-}'", pos, "mlir.syntax", end)
                self.part.resources = True
                pos = close + 3
            else:
                pos = self._operation(pos)
        if len(self._frames) > 1:
            raise HloSyntaxError("'{' is never closed", self._frames[-1].region.offset, "mlir.syntax", end)

    # -- operations --------------------------------------------------------------------------------------------

    def _operation(self, pos: int) -> int:
        text, end = self._text, self._end
        head = _HEAD.match(text, pos, end)
        if head is None:
            raise HloSyntaxError(
                f"expected an operation, found '{shorten(text[pos : min(pos + 60, end)])}'", pos, "mlir.syntax"
            )
        named, quoted, plain = head.group(1, 2, 3)
        results: tuple[tuple[str, int], ...] = ()
        if named:
            if ":" not in named and "," not in named:
                results = ((named[: named.index("=")].rstrip(), 1),)
            else:
                results = tuple((name, int(count or 1)) for name, count in _RESULT.findall(named))
        if results and any(not 0 < count <= 100_000 for _, count in results):
            raise HloSyntaxError("an operation cannot have that many results", pos, "mlir.syntax")
        name: str = head.group(3) if quoted is None else quoted
        if _OPERATION.fullmatch(name) is None or ("." not in name and name not in _SHORT):
            raise HloSyntaxError(
                f"'{shorten(name)}' is not an operation", head.start(2 if plain is None else 3), "mlir.syntax"
            )
        operation = Operation(name, pos, head.start(2 if plain is None else 3), results, plain is None)
        frame = self._frames[-1]
        if not frame.region.blocks:
            frame.region.blocks.append(Block("", frame.region.offset))
        frame.region.blocks[-1].operations.append(operation)
        at = head.end()
        # Most operations are one line without a brace.
        line = text.find("\n", at, end)
        if line < 0:
            line = end
        rest = text[at:line]
        if (
            "{" not in rest
            and "}" not in rest
            and rest.count("(") == rest.count(")")
            and rest.count("[") == rest.count("]")
            and rest.count('"') % 2 == 0
        ):
            second = _SECOND.search(rest) if " : " in rest else None
            if second is not None:
                line, rest = at + second.end(), rest[: second.start()]
            after = _skip(text, line, end)
            if second is not None or after >= end or _STARTS.match(text, after, end) is not None:
                operation.segments.append(rest)
                operation.starts.append(at)
                return after
        return self._rest(operation, at, at, [])

    def _rest(self, operation: Operation, start: int, pos: int, brackets: list[int]) -> int:
        """Scan an operation on from `pos`; its current segment began at `start`. Gives the offset after it."""
        text, end = self._text, self._end
        for match in _SPECIAL.finditer(text, pos, end):
            token = match.group()
            at = match.start()
            if token == "\n":
                if brackets:
                    continue
                after = _skip(text, at, end)
                if after >= end or _STARTS.match(text, after, end) is not None:
                    return self._finish(operation, start, at)
            elif token[0] == '"':
                if len(token) == 1:
                    raise HloSyntaxError("string is not closed", at, "mlir.syntax", at)
            elif token == "{":
                if self._opens_region(at, brackets):
                    operation.segments.append(text[start:at])
                    operation.starts.append(start)
                    region = Region(at)
                    operation.regions.append(region)
                    if len(self._frames) >= MAX_REGIONS:
                        message = f"regions are nested deeper than {MAX_REGIONS} levels"
                        raise HloSyntaxError(message, at, "mlir.too_deep", end)
                    self._frames.append(_Frame(operation, region, brackets, at))
                    return at + 1
                brackets.append(at)
            elif token in "([":
                brackets.append(at)
                if len(brackets) > MAX_BRACKETS:
                    message = f"brackets are nested deeper than {MAX_BRACKETS} levels"
                    raise HloSyntaxError(message, at, "mlir.too_deep", end)
            elif not brackets:
                if token == "}":
                    return self._finish(operation, start, at)
                raise HloSyntaxError(f"'{token}' closes nothing", at, "mlir.syntax", at)
            else:
                opened = brackets.pop()
                if token != _CLOSER[text[opened]]:
                    raise HloSyntaxError(f"'{text[opened]}' is not closed before '{token}'", opened, "mlir.syntax", at)
        if brackets:
            raise HloSyntaxError(f"'{text[brackets[-1]]}' is never closed", brackets[-1], "mlir.syntax", end)
        return self._finish(operation, start, end)

    def _opens_region(self, at: int, brackets: list[int]) -> bool:
        text = self._text
        if len(brackets) > 1 or (brackets and text[brackets[0]] != "("):
            return False
        before = at - 1
        while before > 0 and text[before] in " \t\r\n":
            before -= 1
        previous = text[before]
        if brackets:
            # In parentheses a list of regions; behind an argument's type its attributes.
            return previous in "(,"
        return previous not in "<=" and _DICTIONARY.match(text, at, self._end) is None

    def _finish(self, operation: Operation, start: int, end: int) -> int:
        operation.segments.append(self._text[start:end])
        operation.starts.append(start)
        return end

    # -- regions, blocks, aliases ------------------------------------------------------------------------------

    def _close(self, pos: int) -> int:
        frame = self._frames[-1]
        if frame.operation is None:
            raise HloSyntaxError("'}' closes nothing", pos, "mlir.syntax", pos + 1)
        self._frames.pop()
        return self._rest(frame.operation, pos + 1, pos + 1, frame.brackets)

    def _label(self, pos: int) -> int:
        text, end = self._text, self._end
        match = _LABEL.match(text, pos, end)
        if match is None:
            raise HloSyntaxError("expected a label such as '^bb0(%arg0: tensor<f32>):'", pos, "mlir.syntax")
        arguments, at = "", match.end()
        if match.group(1) == "(":
            at = self._balanced(match.start(1))
            arguments = text[match.end() : at - 1]
            after = _skip(text, at, end)
            if not text.startswith(":", after):
                raise HloSyntaxError("expected ':' after the arguments of a block", at, "mlir.syntax")
            at = after + 1
        self._frames[-1].region.blocks.append(Block(arguments, pos))
        return at

    def _alias(self, pos: int) -> int:
        text, end = self._text, self._end
        match = _ALIAS.match(text, pos, end)
        if match is None:
            raise HloSyntaxError("expected an alias such as '#loc = ...'", pos, "mlir.syntax")
        at = match.end()
        brackets: list[int] = []
        for token in _SPECIAL.finditer(text, at, end):
            mark = token.group()
            if mark == "\n":
                if not brackets:
                    at = token.start()
                    break
            elif mark in "([{":
                brackets.append(token.start())
                if len(brackets) > MAX_BRACKETS:
                    message = f"brackets are nested deeper than {MAX_BRACKETS} levels"
                    raise HloSyntaxError(message, token.start(), "mlir.too_deep", end)
            elif mark in ")]}":
                if not brackets or mark != _CLOSER[text[brackets.pop()]]:
                    raise HloSyntaxError(f"'{mark}' closes nothing", token.start(), "mlir.syntax")
            elif mark == '"':
                raise HloSyntaxError("string is not closed", token.start(), "mlir.syntax")
        else:
            at = end
        if brackets:
            raise HloSyntaxError(f"'{text[brackets[-1]]}' is never closed", brackets[-1], "mlir.syntax", end)
        self.part.aliases[match.group(1)] = text[match.end() : at].strip()
        return at

    def _balanced(self, pos: int) -> int:
        """The offset after the bracket that closes the one at `pos`."""
        text, end = self._text, self._end
        brackets: list[int] = []
        for token in _SPECIAL.finditer(text, pos, end):
            mark = token.group()
            if mark in "([{":
                brackets.append(token.start())
                if len(brackets) > MAX_BRACKETS:
                    message = f"brackets are nested deeper than {MAX_BRACKETS} levels"
                    raise HloSyntaxError(message, token.start(), "mlir.too_deep", end)
            elif mark in ")]}":
                opened = brackets.pop()
                if mark != _CLOSER[text[opened]]:
                    raise HloSyntaxError(f"'{text[opened]}' is not closed before '{mark}'", opened, "mlir.syntax")
                if not brackets:
                    return token.end()
        raise HloSyntaxError(f"'{text[pos]}' is never closed", pos, "mlir.syntax", end)


def _close_all(region: Region) -> None:
    """Give operations that a fault has cut off the segments that they lack."""
    for operation in walk(region):
        while len(operation.segments) <= len(operation.regions):
            operation.segments.append("")
            operation.starts.append(operation.offset)


_SHORT = frozenset({"return", "call", "module", "func", "constant"})
"""Operations that may stand without their dialect."""
