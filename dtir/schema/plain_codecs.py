"""Codecs of the native form for what is no record: literals, enum members, texts, containers, unions, open data."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol, cast

from dtir.schema.codec import unsupported
from dtir.schema.frozen import FrozenDict, frozen_map
from dtir.schema.jsontext import literal_text, string_text
from dtir.schema.opendata import Path, PlainError, from_open_tree, open_text


class Codec(Protocol):
    """How the values of one annotation are written and read.

    `kinds` are the JSON kinds (Python classes of parsed nodes) that its values may have; a union tells its members apart
    by them. `session` is whatever the layer that started the writing or reading keeps for it (tables, say).
    """

    kinds: frozenset[type]

    def accepts(self, value: Any) -> bool:
        """True when a value is written by this codec (asked of the members of a union)."""
        ...

    def write(self, value: Any, session: Any) -> str:
        """The JSON text of a value that matches the annotation."""
        ...

    def read(self, node: Any, session: Any, path: Path) -> Any:
        """The value of a parsed node.

        Raises:
            PlainError: the node has another form.
        """
        ...


_WORDS: dict[type, str] = {
    type(None): "null",
    bool: "true or false",
    int: "an integer",
    float: "a number with a point or exponent",
    str: "text",
    list: "an array",
    dict: "an object",
}


def expected(kinds: frozenset[type], node: Any, path: Path) -> PlainError:
    """The error about a node of another kind."""
    wanted = " or ".join(word for kind, word in _WORDS.items() if kind in kinds)
    return PlainError(path, f"expected {wanted}, got {_WORDS.get(cast('type[Any]', type(node)), type(node).__name__)}")


# -- leaves ------------------------------------------------------------------------------------------------------


class LiteralCodec:
    """Null, a boolean, an integer, a float or text; constraints are the record's to check."""

    def __init__(self, kind: type) -> None:
        self.kinds = frozenset({kind})
        self._kind = kind

    def accepts(self, value: Any) -> bool:
        return type(value) is self._kind

    def write(self, value: Any, session: Any) -> str:
        text = literal_text(value)
        if text is None:
            raise unsupported(value)
        return text

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if type(node) is not self._kind:
            raise expected(self.kinds, node, path)
        return node


class EnumCodec:
    """A member of an enum as its value."""

    def __init__(self, cls: type[Enum]) -> None:
        self._cls = cls
        self._members: dict[Any, Enum] = {member.value: member for member in cls}
        self.kinds = frozenset(cast("type[Any]", type(value)) for value in self._members)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self._cls)

    def write(self, value: Any, session: Any) -> str:
        return cast("str", literal_text(value.value))

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if type(node) not in self.kinds or node not in self._members:
            known = ", ".join(repr(item) for item in self._members)
            raise PlainError(path, f"expected one of {known}, got {shown(node)}")
        return self._members[node]


class TextCodec:
    """Objects of one class by a text form of their own."""

    kinds = frozenset({str})

    def __init__(self, cls: type, to_text: Callable[[Any], str], from_text: Callable[[str], Any]) -> None:
        self._cls = cls
        self._to_text = to_text
        self._from_text = from_text

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self._cls)

    def write(self, value: Any, session: Any) -> str:
        return string_text(self._to_text(value))

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, str):
            raise expected(self.kinds, node, path)
        try:
            return self._from_text(node)
        except (TypeError, ValueError) as error:
            raise PlainError(path, str(error)) from error


class OpenCodec:
    """Open data; `maps` admits maps only."""

    def __init__(self, *, maps: bool) -> None:
        self.kinds = frozenset({dict}) if maps else frozenset(_WORDS)
        self._maps = maps

    def accepts(self, value: Any) -> bool:
        return isinstance(value, FrozenDict) or not self._maps

    def write(self, value: Any, session: Any) -> str:
        return open_text(value)

    def read(self, node: Any, session: Any, path: Path) -> Any:
        value = from_open_tree(node, path)
        if self._maps and type(value) is not FrozenDict:
            raise PlainError(path, f"expected a map, got {shown(node)}")
        return value


def shown(node: Any) -> str:
    """A parsed node for a message, cut when it is long."""
    text = repr(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- containers --------------------------------------------------------------------------------------------------


class TupleCodec:
    """A tuple of any length whose items are of one kind."""

    kinds = frozenset({list})

    def __init__(self, item: Codec) -> None:
        self._item = item

    def accepts(self, value: Any) -> bool:
        return isinstance(value, tuple)

    def write(self, value: Any, session: Any) -> str:
        write = self._item.write
        return f"[{','.join([write(item, session) for item in value])}]"

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, list):
            raise expected(self.kinds, node, path)
        read = self._item.read
        return tuple([read(item, session, (path, index)) for index, item in enumerate(cast("list[Any]", node))])


class FixedTupleCodec:
    """A tuple with a codec for each place."""

    kinds = frozenset({list})

    def __init__(self, items: tuple[Codec, ...]) -> None:
        self._items = items

    def accepts(self, value: Any) -> bool:
        return isinstance(value, tuple)

    def write(self, value: Any, session: Any) -> str:
        return f"[{','.join(codec.write(item, session) for codec, item in zip(self._items, value, strict=True))}]"

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, list) or len(cast("list[Any]", node)) != len(self._items):
            raise PlainError(path, f"expected an array of {len(self._items)}")
        items = zip(self._items, cast("list[Any]", node), strict=True)
        return tuple(codec.read(item, session, (path, index)) for index, (codec, item) in enumerate(items))


class SetCodec:
    """A frozenset as an array sorted by the text of its members."""

    kinds = frozenset({list})

    def __init__(self, item: Codec) -> None:
        self._item = item

    def accepts(self, value: Any) -> bool:
        return isinstance(value, frozenset)

    def write(self, value: Any, session: Any) -> str:
        return f"[{','.join(sorted(self._item.write(item, session) for item in value))}]"

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, list):
            raise expected(self.kinds, node, path)
        items = [self._item.read(item, session, (path, index)) for index, item in enumerate(cast("list[Any]", node))]
        made = frozenset(items)
        if len(made) != len(items):
            raise PlainError(path, "an item occurs twice")
        return made


class MapCodec:
    """A map whose values are of one kind."""

    kinds = frozenset({dict})

    def __init__(self, item: Codec) -> None:
        self._item = item

    def accepts(self, value: Any) -> bool:
        return isinstance(value, FrozenDict)

    def write(self, value: Any, session: Any) -> str:
        entries = cast("FrozenDict[Any]", value).items()
        return f"{{{','.join(f'{string_text(key)}:{self._item.write(item, session)}' for key, item in entries)}}}"

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, dict):
            raise expected(self.kinds, node, path)
        entries = cast("dict[str, Any]", node)
        return frozen_map({key: self._item.read(item, session, (path, key)) for key, item in entries.items()})


class UnionCodec:
    """One of several kinds, told apart by the class of a value and by the JSON kind of a node."""

    def __init__(self, members: tuple[Codec, ...]) -> None:
        self._members = members
        self.kinds = frozenset[type]().union(*(member.kinds for member in members))
        self._reader: dict[type, Codec] = {}
        for member in members:
            for kind in member.kinds:
                if kind in self._reader:
                    raise TypeError(f"two members of a union are written as {_WORDS[kind]}")
                self._reader[kind] = member

    def accepts(self, value: Any) -> bool:
        return any(member.accepts(value) for member in self._members)

    def write(self, value: Any, session: Any) -> str:
        for member in self._members:
            if member.accepts(value):
                return member.write(value, session)
        raise unsupported(value)

    def read(self, node: Any, session: Any, path: Path) -> Any:
        member = self._reader.get(cast("type[Any]", type(node)))
        if member is None:
            raise expected(self.kinds, node, path)
        return member.read(node, session, path)
