"""One operation as the translation sees it: operands, attributes, types, place, whatever form it is printed in.

Generic form: ``"dialect.op"(operands) <{properties}> ({regions}) {attributes} : (types) -> types``. Pretty forms differ by
operation; what stands between the operands and the types is `View.pretty`, for whoever knows the operation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dtir.importers.hlo.shapes import Shape
from dtir.importers.stablehlo.lists import STRING, closing, entries, split
from dtir.importers.stablehlo.locations import NOWHERE, Locations, Place
from dtir.importers.stablehlo.syntax import Operation, Part
from dtir.importers.stablehlo.types import Types, signature

NAME = r"%[\w.$\-]+(?:#\d+)?"
_OPERAND = re.compile(NAME, re.ASCII)
_LOCATION = re.compile(r"\s*\bloc\(")
_STRINGS = re.compile(STRING)
_DICTIONARY = re.compile(r'\{\s*(?:\}|[A-Za-z_][\w.$\-]*\s*[=,}]|"(?:[^"\\\n]|\\.)*"\s*=)', re.ASCII)
_SCAN = re.compile(rf"{STRING}|->|::|[(){{}}\[\]<>:]")
_ARGUMENT = re.compile(rf"\s*({NAME})\s*:\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function or block: its name, type as text, attributes and place."""

    name: str
    type: str
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    place: Place = NOWHERE


@dataclass(slots=True)
class Dialects:
    """What interpreting the operations of one part shares."""

    part: Part
    types: Types
    locations: Locations
    _signatures: dict[str, tuple[str | None, str]] = field(default_factory=dict[str, tuple[str | None, str]])

    @classmethod
    def of(cls, part: Part) -> Dialects:
        return cls(part, Types(part.aliases), Locations(part.aliases))

    def signature(self, text: str) -> tuple[str | None, str]:
        """Operand and result types of the text behind a colon; equal texts are cut once."""
        found = self._signatures.get(text)
        if found is None:
            found = self._signatures[text] = signature(text)
        return found


class View:
    """An operation taken apart; what is not asked for is not looked for."""

    __slots__ = (
        "_attributes", "_operands", "_results", "after", "head", "location", "name", "operation", "shared", "type_text",
    )  # fmt: skip

    def __init__(self, operation: Operation, shared: Dialects) -> None:
        self.operation = operation
        self.shared = shared
        self.name = operation.name
        segments = operation.segments
        tail = segments[-1]
        self.location = ""
        at = tail.rfind(" loc(")
        if at >= 0 and closing(tail, at + 4) >= len(tail.rstrip()):
            self.location = tail[at + 1 :].strip()
            tail = tail[:at]
        several = len(segments) > 1
        if several and operation.generic:
            # The list of regions in the generic form ends with a parenthesis.
            tail = tail.lstrip().removeprefix(")")
        before, self.type_text = _at_types(tail)
        self.head = segments[0] if several else before
        """The first segment without types: operands and what the pretty form says."""
        self.after = before if several else ""
        """The last segment without types, empty where there is but one."""
        self._operands: tuple[str, ...] | None = None
        self._results: tuple[Shape, ...] | None = None
        self._attributes: dict[str, str] | None = None

    @property
    def place(self) -> Place:
        """Where it came from."""
        return self.shared.locations.of(self.location) if self.location else NOWHERE

    @property
    def operands(self) -> tuple[str, ...]:
        """SSA names in order, as the text lists them; of the generic form those in its parentheses."""
        found = self._operands
        if found is None:
            head = self.head
            if self.operation.generic:
                start = head.find("(")
                head = head[start : closing(head, start)] if start >= 0 else ""
            if '"' in head:
                head = _STRINGS.sub('""', head)
            found = self._operands = tuple(_OPERAND.findall(head)) if "%" in head else ()
        return found

    @property
    def signature(self) -> tuple[str | None, str]:
        """Operand and result types as text; None where the form states one list for both."""
        return self.shared.signature(self.type_text)

    @property
    def result_shapes(self) -> tuple[Shape, ...]:
        """Types of the results; fewer than results where the text does not state them."""
        found = self._results
        if found is None:
            operands, results = self.shared.signature(self.type_text)
            found = self.shared.types.of(results)
            stated = self.operation.results
            count = stated[0][1] if len(stated) == 1 else sum(number for _, number in stated)
            if operands is None and len(found) != count:
                # One list for operands and results: the last one (of a select, say), or the one that all share.
                found = (found[-1],) * count if found else ()
            self._results = found
        return found

    @property
    def operand_shapes(self) -> tuple[Shape, ...] | None:
        """Types of the operands where the text states them."""
        operands, _ = self.signature
        return None if operands is None else self.shared.types.of(operands)

    @property
    def attributes(self) -> dict[str, str]:
        """Properties and attributes by name, as text."""
        found = self._attributes
        if found is None:
            found = self._attributes = {}
            for segment in (self.head, self.after):
                if "{" in segment:
                    for body in _dictionaries(segment):
                        found.update(entries(body))
        return found

    def attribute(self, name: str) -> str | None:
        """The text of an attribute, aliases looked up; None when it is absent."""
        text = self.attributes.get(name)
        return self.shared.part.aliases.get(text, text) if text is not None else None

    @property
    def pretty(self) -> str:
        """Head and tail without types: where a pretty form says what it says."""
        return self.head if len(self.operation.segments) == 1 else f"{self.head} {self.after}"

    def clause(self, name: str) -> str | None:
        """The bracketed list in ``name = [...]`` of a pretty form, brackets left out."""
        match = re.search(rf"\b{name}\s*=\s*\[", self.pretty)
        if match is None:
            return None
        return self.pretty[match.end() : closing(self.pretty, match.end() - 1) - 1]

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """The integers in ``name = [1, 2]`` of a pretty form; None where it is absent or holds something else."""
        text = self.clause(name)
        if text is None:
            return None
        parts = split(text)
        return tuple(map(int, parts)) if all(re.fullmatch(r"-?\d{1,18}", part) for part in parts) else None

    def symbol(self) -> str:
        """The first ``@name``, without the sign; empty without one."""
        match = re.search(r"@([\w.$\-]+|\"(?:[^\"\\\n]|\\.)*\")", self.head)
        return match.group(1).strip('"') if match is not None else ""


def arguments(text: str, shared: Dialects) -> tuple[Argument, ...]:
    """``%a: tensor<f32> {attributes} loc(...), ...`` as arguments."""
    found: list[Argument] = []
    for part in split(text):
        match = _ARGUMENT.match(part)
        if match is None:
            continue
        kind, attributes, place = argument_rest(part[match.end() :], shared)
        found.append(Argument(match.group(1), kind, attributes, place))
    return tuple(found)


def argument_rest(text: str, shared: Dialects) -> tuple[str, dict[str, str], Place]:
    """What follows an argument's colon: type, attributes, place."""
    place = NOWHERE
    location = _LOCATION.search(text)
    if location is not None:
        place = shared.locations.of(text[location.start() :].strip())
        text = text[: location.start()]
    dictionary = _DICTIONARY.search(text)
    attributes: dict[str, str] = {}
    if dictionary is not None and _outside(text, dictionary.start()):
        start = dictionary.start()
        attributes = entries(text[start + 1 : closing(text, start) - 1])
        text = text[:start]
    return text.strip(), attributes, place


def _at_types(tail: str) -> tuple[str, str]:
    """The last segment cut at the colon before the types: (what is before, the types)."""
    head, mark, types = tail.rpartition(" : ")
    # Attributes hold colons too; types stand outside of brackets.
    if mark and ("{" not in tail or (_balanced(types) and _balanced(head))):
        return head, types.strip()
    if ":" not in tail:
        return tail, ""
    at = _last_colon(tail)
    return (tail, "") if at < 0 else (tail[:at], tail[at + 1 :].strip())


def _outside(text: str, at: int) -> bool:
    return text.count("<", 0, at) - text.count("->", 0, at) <= text.count(">", 0, at)


def _dictionaries(text: str) -> list[str]:
    """The insides of ``<{...}>`` and of attribute dictionaries outside of other brackets."""
    found: list[str] = []
    pos = 0
    depth = 0
    while (match := _SCAN.search(text, pos)) is not None:
        token, at = match.group(), match.start()
        pos = match.end()
        if token == "{" and depth == 0 and _before(text, at) != "=":
            end = closing(text, at)
            if _DICTIONARY.match(text, at) is not None:
                found.append(text[at + 1 : end - 1])
            pos = end
        elif token == "<" and text.startswith("{", pos) and depth == 0:
            end = closing(text, pos)
            found.append(text[pos + 1 : end - 1])
            pos = closing(text, at)
        elif token in ("(", "[", "{", "<"):
            depth += 1
        elif token in (")", "]", "}", ">"):
            depth -= 1
    return found


def _before(text: str, at: int) -> str:
    """The last character before an offset that is no space."""
    while at > 0 and text[at - 1] == " ":
        at -= 1
    return text[at - 1 : at]


def _balanced(text: str) -> bool:
    return (
        text.count("(") == text.count(")")
        and text.count("{") == text.count("}")
        and text.count("[") == text.count("]")
        and text.count("<") == text.count(">") - text.count("->")
    )


def _last_colon(text: str) -> int:
    """The last colon outside of brackets and strings, -1 without one."""
    depth, last = 0, -1
    for match in _SCAN.finditer(text):
        token = match.group()
        if token in ("(", "[", "{", "<"):
            depth += 1
        elif token in (")", "]", "}", ">"):
            depth -= 1
        elif token == ":" and depth == 0:
            last = match.start()
    return last
