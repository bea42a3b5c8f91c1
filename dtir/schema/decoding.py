"""From a parsed tagged tree to frozen values: the reading half of `dtir.schema.codec`.

The world is closed: only registered tags are known, and of those only what the upstream format has. The walk keeps its
own stack and goes depth first in the order of the text, so that the first thing wrong is the first thing reported.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from dtir.schema.authoring import enum_spec, record_class, record_spec
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import frozen_map
from dtir.schema.jsontext import MAX_JSON_DEPTH, too_deep

_NO_MORE = object()
_AMBIGUOUS = "invalid or ambiguous canonical tagged object"


class _Frame(NamedTuple):
    """A container whose parts are being decoded."""

    waiting: Iterator[Any]
    done: list[Any]
    finish: Callable[[list[Any]], Any]
    depth: int


def decode_tree(tree: Any) -> Any:
    """The value of a parsed tagged tree.

    Raises:
        SerializationError: unknown tag, wrong keys, a record that its constructor refuses, or nesting beyond
            `MAX_JSON_DEPTH`.
    """
    frames: list[_Frame] = []
    node = tree
    while True:
        value = _open(node, frames[-1].depth if frames else 0)
        if isinstance(value, _Frame):
            frames.append(value)
        elif frames:
            frames[-1].done.append(value)
        else:
            return value
        # Close every container that has all its parts; stop at the first that waits for another one.
        while (node := next(frames[-1].waiting, _NO_MORE)) is _NO_MORE:
            closed = frames.pop()
            value = closed.finish(closed.done)
            if not frames:
                return value
            frames[-1].done.append(value)


def _open(node: Any, depth: int) -> Any:
    """The value of a node without parts, or the frame of one with parts."""
    if node is None or isinstance(node, (str, bool, int)):
        return node
    if isinstance(node, float):
        if not math.isfinite(node):  # a literal such as 1e999
            raise SerializationError(
                "canonical JSON does not permit Infinity", hint="only finite numbers can be written"
            )
        return node
    if isinstance(node, list):
        raise SerializationError(
            "canonical arrays must use an explicit tuple or set tag", hint='write {"$tuple": [...]}'
        )
    tagged = cast("dict[str, Any]", node)
    if depth + 1 > MAX_JSON_DEPTH:
        raise too_deep()
    match len(tagged), tagged:
        case 2, {"$type": tag, "fields": fields}:
            return _open_record(tag, fields, depth)
        case 1, {"$tuple": items}:
            return _frame(_array(items, "$tuple"), tuple, depth + 2)
        case 2, {"$enum": tag, "value": literal}:
            return _decode_enum(tag, literal)
        case 1, {"$map": entries}:
            return _open_map(entries, depth)
        case 1, {"$frozenset": items}:
            return _frame(_array(items, "$frozenset"), _finish_frozenset, depth + 2)
        case 1, {"$bytes": text}:
            return _decode_bytes(text)
        case _:
            raise SerializationError(_AMBIGUOUS, hint=f"its keys are {', '.join(map(repr, list(tagged)[:6]))}")


def _frame(parts: Iterable[Any], finish: Callable[[list[Any]], Any], depth: int) -> _Frame:
    if depth > MAX_JSON_DEPTH:
        raise too_deep()
    return _Frame(iter(parts), [], finish, depth)


def _array(node: Any, tag: str) -> list[Any]:
    if not isinstance(node, list):
        raise SerializationError(f"canonical {tag} must hold an array")
    return cast("list[Any]", node)


# -- records -----------------------------------------------------------------------------------------------------


def _open_record(tag: Any, fields: Any, depth: int) -> _Frame:
    if not isinstance(tag, str) or not isinstance(fields, dict):
        raise SerializationError(_AMBIGUOUS)
    cls = record_class(tag)
    if cls is None or record_spec(cls).extension:
        raise SerializationError(f"unknown canonical record tag: {tag!r}")
    named = cast("dict[str, Any]", fields)

    def finish(parts: list[Any]) -> Any:
        return _build(cls, tag, dict(zip(named, parts, strict=True)))

    return _frame(named.values(), finish, depth + 2)


def _build(cls: type[Any], tag: str, arguments: dict[str, Any]) -> Any:
    for item in record_spec(cls).fields:
        if item.extension and item.name in arguments:
            # In the upstream format such a field does not exist.
            refused = f"{cls.__name__}.__init__() got an unexpected keyword argument {item.name!r}"
            raise SerializationError(f"invalid canonical record {tag!r}: {refused}")
    defaults: Mapping[str, Any] = cls.upstream_defaults() if hasattr(cls, "upstream_defaults") else {}
    made = build_record(cls, tag, {**defaults, **arguments})
    obstacle = made.upstream_obstacle() if hasattr(made, "upstream_obstacle") else None
    if obstacle is not None:
        raise SerializationError(f"invalid canonical record {tag!r}: {obstacle}")
    return made


def build_record(cls: type[Any], tag: str, arguments: Mapping[str, Any]) -> Any:
    """Construct a record.

    Raises:
        SerializationError: its constructor refuses the arguments; the message names the tag.
    """
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise SerializationError(f"invalid canonical record {tag!r}: {error}") from error


# -- everything else ---------------------------------------------------------------------------------------------


def _decode_enum(tag: Any, literal: Any) -> Any:
    spec = enum_spec(tag) if isinstance(tag, str) else None
    if spec is None or tag.startswith("dtir."):
        raise SerializationError(f"unknown canonical enum tag: {tag!r}")
    for member in spec.enum:
        if type(member.value) is type(literal) and member.value == literal and member.name not in spec.extensions:
            return member
    known = ", ".join(repr(item.value) for item in spec.enum if item.name not in spec.extensions)
    raise SerializationError(f"invalid value for canonical enum {tag!r}", hint=f"got {literal!r}; known are {known}")


def _open_map(entries: Any, depth: int) -> _Frame:
    keys: list[str] = []
    seen: set[str] = set()

    def values() -> Iterator[Any]:
        for entry in _array(entries, "$map"):
            if not isinstance(entry, list) or len(cast("list[Any]", entry)) != 2:
                raise SerializationError("canonical $map entries must be [key, value] pairs")
            key, value = cast("list[Any]", entry)
            if not isinstance(key, str):
                raise SerializationError("canonical mapping keys must be strings")
            if key in seen:
                raise SerializationError(f"duplicate canonical mapping key: {key!r}", hint="give every key once")
            seen.add(key)
            keys.append(key)
            yield value

    def finish(parts: list[Any]) -> Any:
        return frozen_map(dict(zip(keys, parts, strict=True)))

    return _frame(values(), finish, depth + 2 + bool(_array(entries, "$map")))


def _finish_frozenset(members: list[Any]) -> frozenset[Any]:
    try:
        return frozenset(members)
    except RecursionError as error:  # members are hashed by recursion
        raise too_deep() from error


def _decode_bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise SerializationError("canonical $bytes must hold base64 text")
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise SerializationError("canonical $bytes is not valid base64", hint=str(error)) from error
