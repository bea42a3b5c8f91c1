"""YAML text to plain nodes that know their line: safe, bounded, and without surprises of the format.

Only the event stream of the parser is used, so that nothing is ever constructed from a tag, and the cost is known before
it is paid: depth is bounded while events come in, and an alias counts as much as what it stands for.

Plain scalars are whole numbers, decimal numbers, ``true``, ``false``, ``null`` or text. Nothing else is guessed: ``no``,
``on`` and ``1:30`` are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from dtir.importers.yaml.problems import Problems

MOST_DEPTH = 64
MOST_NODES = 2_000_000
MOST_DIGITS = 18

Plain: TypeAlias = bool | int | float | str | None


@dataclass(slots=True)
class Scalar:
    """A scalar: its text as written, and what it means."""

    text: str
    value: Plain
    line: int


@dataclass(slots=True)
class Items:
    """A list."""

    items: list[Node]
    line: int


@dataclass(slots=True)
class Entries:
    """A mapping: key text to value; `lines` holds where each key stands."""

    entries: dict[str, Node]
    line: int
    lines: dict[str, int] = field(default_factory=dict[str, int])


Node: TypeAlias = Scalar | Items | Entries

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")
_WORDS: dict[str, Plain] = {"": None, "~": None, "null": None, "true": True, "false": False}
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "seq", "map")}


def plain_value(text: str) -> Plain:
    """What an unquoted scalar means.

    >>> plain_value("12"), plain_value("1/4"), plain_value("no"), plain_value("true")
    (12, '1/4', 'no', True)
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        # Longer ones stay text: what wants a number then says that it is too large.
        return int(text) if len(text) <= MOST_DIGITS else text
    if _DECIMAL.fullmatch(text) and len(text) <= 2 * MOST_DIGITS and math.isfinite(float(text)):
        return float(text)
    return text


@dataclass(slots=True)
class _Open:
    """A list or mapping that is not complete yet."""

    node: Items | Entries
    size: int = 1
    key: Scalar | None = None
    expects_key: bool = True
    anchor: str | None = None


class _Stop(Exception):
    """Reading cannot go on; why is among the problems."""


def read_documents(text: str, problems: Problems) -> list[Node]:
    """The documents of a text, in order; what cannot be read is among the problems."""
    documents: list[Node] = []
    builder = _Builder(problems)
    try:
        for event, line in _events(text, problems):
            if isinstance(event, yaml.DocumentStartEvent):
                problems.document = len(documents)
                builder = _Builder(problems)
            elif isinstance(event, yaml.DocumentEndEvent):
                documents.append(builder.root or Scalar("", None, line))
            elif isinstance(event, yaml.NodeEvent):
                builder.take(event, line)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                builder.close()
    except _Stop:
        pass
    return documents


def _events(text: str, problems: Problems) -> Iterator[tuple[yaml.Event, int]]:
    parse: Callable[..., Iterator[Any]] = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the stubs leave it open
    try:
        # libyaml's scanner where the build has it: 10 times faster, same events.
        for event in parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            mark = event.start_mark
            yield event, (mark.line + 1 if mark is not None else 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 0
        what = ", ".join(part for part in (error.context, error.problem) if part)
        problems.error("yaml.syntax", f"this is no YAML: {what}", (), line, "check indentation, brackets and quotes")
    except yaml.YAMLError as error:
        first = str(error).split("\n", 1)[0]
        problems.error("yaml.syntax", f"this is no YAML: {first}", (), 0, "save the file as plain UTF-8 text")


class _Builder:
    """Builds the nodes of one document from events, with its own stack."""

    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._pending: set[str] = set()
        self._size = 0

    def take(self, event: yaml.NodeEvent, line: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
        elif isinstance(event, yaml.ScalarEvent):
            self._check_tag(event.tag, line)
            quoted = event.style in ("'", '"', "|", ">") or (event.tag or "").endswith(":str")
            text = str(event.value)
            node = Scalar(text, text if quoted else plain_value(text), line)
            self._add(node, 1, event.anchor)
        else:
            self._check_tag(getattr(event, "tag", None), line)
            if len(self._open) >= MOST_DEPTH:
                self._stop(f"the document nests deeper than {MOST_DEPTH} levels, the most that is read", line)
            new: Items | Entries = Items([], line) if isinstance(event, yaml.SequenceStartEvent) else Entries({}, line)
            if event.anchor:
                self._pending.add(event.anchor)
            self._open.append(_Open(new, anchor=event.anchor))

    def close(self) -> None:
        done = self._open.pop()
        if done.anchor:
            self._pending.discard(done.anchor)
        self._add(done.node, done.size, done.anchor)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor in self._pending:
            self._stop(f"alias *{anchor} stands inside what it refers to", line)
        node, size = self._anchors.get(anchor, (None, 0))
        if node is None:
            self._stop(f"alias *{anchor} refers to no anchor above it", line, "yaml.syntax")
            return
        self._add(node, size, None)

    def _add(self, node: Node, size: int, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = (node, size)
        self._size = size if not self._open else self._open[-1].size + size
        if self._size > MOST_NODES:
            self._stop(
                f"the document has more than {MOST_NODES} nodes, aliases counted as what they stand for", node.line
            )
        if not self._open:
            self.root = node
            return
        place = self._open[-1]
        place.size += size
        if isinstance(place.node, Items):
            place.node.items.append(node)
        elif place.key is None:
            place.key = self._key(node)
        else:
            self._entry(place.node, place.key, node)
            place.key = None

    def _key(self, node: Node) -> Scalar:
        if isinstance(node, Scalar):
            return node
        self._problems.error("yaml.type", "a key must be a word or a number, found a list or mapping", (), node.line,
                             "write the key as text")  # fmt: skip
        return Scalar("?", "?", node.line)

    def _entry(self, place: Entries, key: Scalar, node: Node) -> None:
        if key.text in place.entries:
            first = place.lines[key.text]
            self._problems.error("yaml.duplicate_key", f"key {key.text!r} stands here again, first in line {first}", (),
                                 key.line, "keep one of the two")  # fmt: skip
            return
        place.entries[key.text] = node
        place.lines[key.text] = key.line

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag is not None and tag not in ("!", *_TAGS):
            shown = tag.replace("tag:yaml.org,2002:", "!!")[:60]
            self._problems.error("yaml.tag", f"tag {shown} is not read: a program holds text, numbers, lists and mappings",
                                 (), line, "remove the tag")  # fmt: skip

    def _stop(self, message: str, line: int, code: str = "yaml.limit") -> None:
        self._problems.error(code, message, (), line, "write the document out, or in several files")
        raise _Stop


def to_plain(node: Node) -> object:
    """A node as plain Python data: numbers, text, lists and dicts with text keys."""
    match node:
        case Scalar(value=value):
            return value
        case Items(items=items):
            return [to_plain(item) for item in items]
        case Entries(entries=entries):
            return {key: to_plain(item) for key, item in entries.items()}
