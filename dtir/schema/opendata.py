"""Open data (attributes) as plain JSON that a person can read, without losing what kind a value is.

Null, booleans, numbers and text are themselves (``1`` and ``1.0`` differ); a tuple is an array; a map is an object. What
JSON has no word for is an object whose keys begin with ``$``: ``{"$bytes": base64}``, ``{"$set": [..]}`` sorted by text,
``{"$enum": tag, "value": ..}``, ``{"$record": tag, field: ..}`` with every field, and ``{"$map": [[key, value], ..]}`` for
a map with such a key of its own.

Both directions keep their own stack.

>>> open_text(FrozenDict({"a": (1, 1.0, True, b"x")}))
'{"a":[1,1.0,true,{"$bytes":"eA=="}]}'
>>> from_open_tree({"a": [1, {"$set": ["x"]}]})
FrozenDict({'a': (1, frozenset({'x'}))})
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, cast

from dtir.schema.authoring import enum_spec, enum_spec_of, is_record, record_class, record_spec
from dtir.schema.codec import unsupported
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import FrozenDict, frozen_map
from dtir.schema.jsontext import literal_text, string_text, too_deep

MAX_PART_DEPTH = 960
"""Most brackets of one open value; with those around it the text stays within `dtir.schema.jsontext.MAX_JSON_DEPTH`."""

Path: TypeAlias = "tuple[Path, str | int] | None"
"""Where a part is, as a link to the place above and the step from there; `path_text` spells it."""


class PlainError(Exception):
    """A part of a plain tree is not what it must be.

    Args:
        path: where.
        message: what is wrong there.
    """

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


def path_text(path: Path) -> str:
    """``payload.tasks[3].body`` of a linked path."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if path is not None else step)
    return "".join(reversed(steps))


# -- writing -----------------------------------------------------------------------------------------------------

# What a stack entry is when it is no value at a depth >= 0.
_RAW, _MEMBER_START, _MEMBER_END, _SET_END = -1, -2, -3, -4


def open_text(value: Any) -> str:
    """The plain JSON text of a frozen value.

    Raises:
        SerializationError: it has none, or nests deeper than `MAX_PART_DEPTH`.
    """
    out: list[str] = []
    starts: list[int] = []
    sets: list[list[str]] = []
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, level = stack.pop()
        if level == _RAW:
            out.append(item)
        elif level == _MEMBER_START:
            starts.append(len(out))
        elif level == _MEMBER_END:
            start = starts.pop()
            sets[-1].append("".join(out[start:]))
            del out[start:]
        elif level == _SET_END:
            out.append(f'{{"$set":[{",".join(sorted(sets.pop()))}]}}')
        elif (text := literal_text(item)) is not None:
            out.append(text)
        elif level + 2 > MAX_PART_DEPTH:
            raise too_deep(MAX_PART_DEPTH)
        elif isinstance(item, Enum):
            out.append(_enum_text(item))
        elif isinstance(item, bytes):
            out.append(f'{{"$bytes":"{base64.b64encode(item).decode("ascii")}"}}')
        elif isinstance(item, frozenset):
            sets.append([])
            stack.append((None, _SET_END))
            for member in cast("frozenset[Any]", item):
                stack += ((None, _MEMBER_END), (member, level + 2), (None, _MEMBER_START))
        else:
            stack.extend(reversed(_container_parts(item, level)))
    return "".join(out)


def member_order(member: Any) -> str:
    """A key that sorts the members of a set in the same way in every run, whatever they are and however deep."""
    try:
        return open_text(member)
    except SerializationError:
        return type(member).__qualname__


def _enum_text(member: Enum) -> str:
    spec = enum_spec_of(type(member))
    if spec is None:
        raise unsupported(member)
    return f'{{"$enum":"{spec.tag}","value":{literal_text(member.value)}}}'


def _container_parts(item: Any, level: int) -> list[tuple[Any, int]]:
    if isinstance(item, tuple):
        return _joined("[", [("", entry, level + 1) for entry in cast("tuple[Any, ...]", item)], "]")
    if isinstance(item, FrozenDict):
        entries = cast("FrozenDict[Any]", item).items()
        if any(key.startswith("$") for key, _ in entries):
            pairs = [(f"[{string_text(key)},", entry, level + 3) for key, entry in entries]
            return _joined('{"$map":[', pairs, "]}", after="]")
        return _joined("{", [(f"{string_text(key)}:", entry, level + 1) for key, entry in entries], "}")
    form = getattr(item, "plain_form", None)
    if form is not None and (plain := form()) is not item:
        return [(plain, level)]
    if is_record(item):
        spec = record_spec(cast("type[Any]", type(item)))
        names = sorted(entry.name for entry in spec.fields)
        fields = [(f'"{name}":', getattr(item, name), level + 1) for name in names]
        return _joined(f'{{"$record":"{spec.tag}"{"," if fields else ""}', fields, "}")
    raise unsupported(item)


def _joined(
    opening: str, entries: list[tuple[str, Any, int]], closing: str, *, after: str = ""
) -> list[tuple[Any, int]]:
    parts: list[tuple[Any, int]] = [(opening, _RAW)]
    for index, (before, entry, level) in enumerate(entries):
        parts.append((f"{after}," if index else "", _RAW))
        parts.append((before, _RAW))
        parts.append((entry, level))
    parts.append((f"{after if entries else ''}{closing}", _RAW))
    return parts


# -- reading -----------------------------------------------------------------------------------------------------


class _Frame(NamedTuple):
    waiting: Iterator[tuple[str | int, Any]]
    done: list[Any]
    finish: Callable[[list[Any]], Any]
    path: Path


_NO_MORE: Any = object()


def from_open_tree(tree: Any, path: Path = None) -> Any:
    """The frozen value of a parsed tree.

    Raises:
        PlainError: a tagged object is not what it must be.
    """
    frames: list[_Frame] = []
    node, where = tree, path
    while True:
        value = _open(node, where)
        if isinstance(value, _Frame):
            frames.append(value)
        elif frames:
            frames[-1].done.append(value)
        else:
            return value
        # Close every container that has all its parts; stop at the first that waits for another one.
        while (following := next(frames[-1].waiting, _NO_MORE)) is _NO_MORE:
            closed = frames.pop()
            value = closed.finish(closed.done)
            if not frames:
                return value
            frames[-1].done.append(value)
        step, node = following
        where = (frames[-1].path, step)


def _open(node: Any, path: Path) -> Any:
    if isinstance(node, float) and not math.isfinite(node):  # a literal such as 1e999
        raise PlainError(path, "numbers must be finite")
    if isinstance(node, list):
        return _Frame(iter(enumerate(cast("list[Any]", node))), [], tuple, path)
    if not isinstance(node, dict):
        return node
    entries = cast("dict[str, Any]", node)
    match entries:
        case {"$bytes": text} if len(entries) == 1:
            return _bytes(text, path)
        case {"$set": members} if len(entries) == 1:
            return _set_frame(members, path)
        case {"$enum": tag, "value": literal} if len(entries) == 2:
            return _enum(tag, literal, path)
        case {"$map": pairs} if len(entries) == 1:
            return _pairs(pairs, path)
        case {"$record": tag}:
            return _record(tag, entries, path)
        case _:
            pass
    strange = next((key for key in entries if key.startswith("$")), None)
    if strange is not None:
        raise PlainError(path, f"unknown tagged object with the key {strange!r}")
    return _map_frame(entries, path)


def _map_frame(entries: dict[str, Any], path: Path) -> _Frame:
    def finish(done: list[Any]) -> Any:
        return frozen_map(dict(zip(entries, done, strict=True)))

    return _Frame(iter(entries.items()), [], finish, path)


def _items(node: Any, path: Path) -> Iterator[tuple[int, Any]]:
    if not isinstance(node, list):
        raise PlainError(path, "expected an array")
    return iter(enumerate(cast("list[Any]", node)))


def _bytes(text: Any, path: Path) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (AttributeError, binascii.Error, UnicodeEncodeError) as error:
        raise PlainError(path, "$bytes must hold base64 text") from error


def _set_frame(members: Any, path: Path) -> _Frame:
    def finish(done: list[Any]) -> Any:
        try:
            made = frozenset(done)
        except RecursionError as error:
            raise PlainError(path, "$set holds an item that nests too deep to be compared") from error
        if len(made) != len(done):
            raise PlainError(path, "$set holds an item twice")
        return made

    return _Frame(_items(members, path), [], finish, path)


def _enum(tag: Any, literal: Any, path: Path) -> Any:
    spec = enum_spec(tag) if isinstance(tag, str) else None
    if spec is None:
        raise PlainError(path, f"unknown enumeration {tag!r}")
    for member in spec.enum:
        if type(member.value) is type(literal) and member.value == literal:
            return member
    raise PlainError(path, f"{tag} has no member {literal!r}")


def _pairs(pairs: Any, path: Path) -> _Frame:
    keys: list[str] = []
    values: list[Any] = []
    for _, pair in _items(pairs, path):
        if not (isinstance(pair, list) and len(cast("list[Any]", pair)) == 2 and isinstance(pair[0], str)):
            raise PlainError(path, "$map must hold [key, value] pairs")
        keys.append(pair[0])
        values.append(pair[1])
    if len(set(keys)) != len(keys):
        raise PlainError(path, "$map holds a key twice")
    return _map_frame(dict(zip(keys, values, strict=True)), path)


def _record(tag: Any, entries: Mapping[str, Any], path: Path) -> _Frame:
    cls = record_class(tag) if isinstance(tag, str) else None
    if cls is None:
        raise PlainError(path, f"unknown record {tag!r}")
    fields = {name: node for name, node in entries.items() if name != "$record"}

    def finish(done: list[Any]) -> Any:
        return build_plain(cls, dict(zip(fields, done, strict=True)), path)

    return _Frame(iter(fields.items()), [], finish, path)


def build_plain(cls: type[Any], arguments: dict[str, Any], path: Path) -> Any:
    """Construct a record.

    Raises:
        PlainError: its constructor refuses the arguments.
    """
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise PlainError(path, str(error)) from error


def plain_error(error: PlainError) -> SerializationError:
    """The finding about a text: the path inside it, then what is wrong there."""
    return SerializationError(f"{path_text(error.path)}: {error.message}")
