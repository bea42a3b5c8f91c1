"""Reading the keys of one mapping: every getter checks the kind of what it finds and reports it with key path and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeVar

from dtir.importers.yaml.document import Entries, Items, Node, Scalar, to_plain
from dtir.importers.yaml.problems import Problems, did_you_mean, suggestion
from dtir.ops.opdef import OpError
from dtir.ops.parameters import rational
from dtir.schema.diagnostics import Severity

T = TypeVar("T")

Path = tuple[str, ...]

MISTYPED = 0.8
"""How alike (difflib's ratio) an unknown key must be to an absent known one to count as that key mistyped."""


def kind_of(node: Node) -> str:
    """What a node is, for a message."""
    match node:
        case Items(items=items):
            return f"a list of {len(items)}"
        case Entries():
            return "a mapping"
        case Scalar(value=None):
            return "nothing"
        case Scalar(text=text):
            return repr(text if len(text) <= 40 else text[:40] + "...")


class Fields:
    """The entries of a mapping node, read key by key."""

    def __init__(self, node: Entries, path: Path, problems: Problems) -> None:
        self.node = node
        self.path = path
        self.problems = problems

    def line(self, key: str) -> int:
        return self.node.lines.get(key, self.node.line)

    def has(self, key: str) -> bool:
        return key in self.node.entries

    def get(self, key: str) -> Node | None:
        return self.node.entries.get(key)

    def wrong(self, key: str, wanted: str, hint: str | None = None) -> None:
        """Report that a key holds something else than `wanted`."""
        node = self.node.entries[key]
        message = f"{key} must be {wanted}, found {kind_of(node)}"
        self.problems.error("yaml.type", message, (*self.path, key), self.line(key), hint)

    def missing(self, key: str, hint: str) -> None:
        self.problems.error("yaml.missing_key", f"key {key!r} is missing", self.path, self.node.line, hint)

    def value(self, key: str, message: str, hint: str | None = None, code: str = "yaml.value") -> None:
        """Report that what a key holds has the right kind and is not allowed."""
        self.problems.error(code, message, (*self.path, key), self.line(key), hint)

    def other_keys(self, known: Iterable[str]) -> list[str]:
        """Keys beyond the known ones, in order of the document; one that is a known key mistyped is reported instead."""
        words = set(known)
        absent = [word for word in sorted(words) if word not in self.node.entries]
        left: list[str] = []
        for key in self.node.entries:
            if key in words:
                continue
            close = did_you_mean(key, absent, MISTYPED)
            if close:
                self._unknown(Severity.ERROR, key, f"did you mean {close}?")
            else:
                left.append(key)
        return left

    def kept(self, key: str, where: str, known: Iterable[str]) -> object:
        """The plain value of a key that means nothing here; the document is told so and nothing is lost."""
        close = did_you_mean(key, known)
        hint = f"kept as attribute {where!r}, read by no rule" + (f"; did you mean {close}?" if close else "")
        self._unknown(Severity.WARNING, key, hint)
        return to_plain(self.node.entries[key])

    def refuse(self, known: Iterable[str]) -> None:
        """Report every key that is not known here."""
        words = set(known)
        for key in self.node.entries:
            if key not in words:
                self._unknown(Severity.ERROR, key, suggestion(key, sorted(words)))

    def _unknown(self, severity: Severity, key: str, hint: str) -> None:
        self.problems.add(severity, "yaml.unknown_key", f"unknown key {key!r}", (*self.path, key), self.line(key), hint)

    # -- scalars ------------------------------------------------------------------------------------------------------

    def text(self, key: str, hint: str | None = None) -> str | None:
        """A word; numbers and truth values count as the text they are written as. `hint` makes the key required."""
        node = self.node.entries.get(key)
        if node is None or (isinstance(node, Scalar) and node.value is None and hint is not None):
            if hint is not None:
                self.missing(key, hint)
            return None
        word = as_word(node)
        if word is None:
            self.wrong(key, "a word")
        return word

    def integer(self, key: str, least: int = 0) -> int | None:
        node = self.node.entries.get(key)
        if node is None:
            return None
        found = as_integer(node)
        if found is None or found < least:
            self.wrong(key, f"a whole number of at least {least}")
            return None
        return found

    def truth(self, key: str) -> bool | None:
        node = self.node.entries.get(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.value, bool):
            self.wrong(key, "true or false")
            return None
        return node.value

    def fraction(self, key: str) -> Fraction | None:
        """A rational number: ``2``, ``1/8``, ``0.5``."""
        node = self.node.entries.get(key)
        if node is None:
            return None
        try:
            return rational(node.text if isinstance(node, Scalar) else None, key)
        except OpError as error:
            self.value(key, str(error))
            return None

    def one_of(self, key: str, known: Iterable[str], hint: str | None = None) -> str | None:
        """A word of a closed set."""
        word = self.text(key, hint)
        words = list(known)
        if word is not None and word not in words:
            self.value(key, f"{key} {word!r} is not known", suggestion(word, words))
            return None
        return word

    # -- lists and mappings -----------------------------------------------------------------------------------------

    def items(self, key: str) -> list[Node] | None:
        node = self.node.entries.get(key)
        if node is None:
            return None
        if not isinstance(node, Items):
            self.wrong(key, "a list")
            return None
        return node.items

    def entries(self, key: str) -> dict[str, Node] | None:
        node = self.node.entries.get(key)
        if node is None:
            return None
        if not isinstance(node, Entries):
            self.wrong(key, "a mapping")
            return None
        return node.entries

    def each(self, key: str, read: Callable[[Node], T | None], wanted: str) -> list[T] | None:
        """A list whose items all read as `wanted`; the first that does not is reported and the list is None."""
        items = self.items(key)
        if items is None:
            return None
        found: list[T] = []
        for index, item in enumerate(items):
            value = read(item)
            if value is None:
                self.problems.error("yaml.type", f"{key}[{index}] must be {wanted}, found {kind_of(item)}",
                                    (*self.path, key, str(index)), item.line or self.line(key))  # fmt: skip
                return None
            found.append(value)
        return found

    def words(self, key: str) -> list[str] | None:
        """A list of words; one word alone counts as a list of it."""
        node = self.node.entries.get(key)
        one = as_word(node) if node is not None else None
        if one is not None:
            return [one]
        return self.each(key, as_word, "a word")

    def integers(self, key: str) -> list[int] | None:
        """A list of whole numbers of at least 0."""
        return self.each(key, as_natural, "a whole number of at least 0")

    def keyed(self, key: str, read: Callable[[Node], T | None], wanted: str) -> dict[int, T] | None:
        """A mapping from whole numbers of at least 0."""
        entries = self.entries(key)
        if entries is None:
            return None
        found: dict[int, T] = {}
        for word, node in entries.items():
            value = read(node)
            number = int(word) if word.isascii() and word.isdigit() and len(word) <= 18 else None
            if number is None or value is None:
                what = (
                    f"key {word!r} must be a whole number"
                    if number is None
                    else f"must be {wanted}, found {kind_of(node)}"
                )
                self.problems.error("yaml.type", f"{key}.{word}: {what}" if number is not None else f"{key}: {what}",
                                    (*self.path, key, word), node.line)  # fmt: skip
                return None
            found[number] = value
        return found


def as_word(node: Node) -> str | None:
    """The text of a scalar that is neither empty nor null."""
    return node.text if isinstance(node, Scalar) and node.value is not None and node.text else None


def as_integer(node: Node) -> int | None:
    """A whole number."""
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    return None


def as_natural(node: Node) -> int | None:
    """A whole number of at least 0."""
    found = as_integer(node)
    return found if found is not None and found >= 0 else None


def as_naturals(node: Node) -> list[int] | None:
    """A list of whole numbers of at least 0."""
    if not isinstance(node, Items):
        return None
    found = [as_natural(item) for item in node.items]
    return None if any(item is None for item in found) else [item for item in found if item is not None]


def as_words(node: Node) -> list[str] | None:
    """A list of words, or one word."""
    one = as_word(node)
    if one is not None:
        return [one]
    if not isinstance(node, Items):
        return None
    found = [as_word(item) for item in node.items]
    return None if any(item is None for item in found) else [item for item in found if item is not None]
