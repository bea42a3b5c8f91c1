"""The canonical tagged JSON form of the upstream format, and content digests.

Encodings (an object has exactly these keys): the JSON literals null, string, bool, int and finite float as they are;
``{"$bytes": base64}``; ``{"$tuple": [..]}``; ``{"$frozenset": [..]}`` sorted by the ASCII text of the encoded items;
``{"$map": [[key, value], ..]}`` sorted by key; ``{"$enum": tag, "value": literal}``; ``{"$type": tag, "fields": {..}}``
with every field, defaults included. Text is
``json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))``.

Source of the format: the public documentation and code of DeepLink-org/Blueprinting (level 9f4ea74f), as facts.

>>> canonical_json((1, 2.5, None))
'{"$tuple":[1,2.5,null]}'
>>> from_canonical_json('{"$tuple":[1,2.5,null]}')
(1, 2.5, None)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import threading
from collections.abc import Mapping
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, NoReturn, cast

from dtir.schema.authoring import enum_spec, enum_spec_of, is_record, record_class, record_spec
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import FrozenDict

MAX_JSON_DEPTH = 984
"""Deepest nesting of brackets that is written: what a reader with Python's default recursion limit can still read."""


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def literal_text(value: Any) -> str | None:
    """The canonical JSON of a literal, or None when `value` is not one.

    Raises:
        SerializationError: NaN or infinity.
    """
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = cast("type[Any]", type(value))
    if kind is str:
        return encode_basestring(value)
    if kind is int:
        return int.__repr__(value)
    if kind is float:
        if not math.isfinite(value):
            raise SerializationError("canonical IR does not permit NaN or infinity")
        return float.__repr__(value)
    return None


def _set_sort_key(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def _children(value: Any) -> tuple[str, list[Any], str] | None:
    """Opening text, parts (strings are emitted as they are when wrapped in `_Raw`) and closing text of a container."""
    if isinstance(value, tuple):
        return '{"$tuple":[', _comma(list(cast("tuple[Any, ...]", value))), "]}"
    if isinstance(value, FrozenDict):
        parts: list[Any] = []
        for index, (key, item) in enumerate(cast("FrozenDict[Any]", value).items()):
            parts += [_Raw(f"{',' if index else ''}[{encode_basestring(key)},"), item, _Raw("]")]
        return '{"$map":[', parts, "]}"
    if is_record(value):
        spec = record_spec(cast("type[Any]", type(value)))
        parts = []
        names = sorted(item.name for item in spec.fields if not item.extension)
        for index, name in enumerate(names):
            parts += [_Raw(f'{"," if index else ""}"{name}":'), getattr(value, name)]
        return f'{{"$type":"{spec.tag}","fields":{{', parts, "}}"
    return None


class _Raw(str):
    """Text that is already canonical JSON."""

    __slots__ = ()


def _comma(items: list[Any]) -> list[Any]:
    parts: list[Any] = []
    for index, item in enumerate(items):
        if index:
            parts.append(_Raw(","))
        parts.append(item)
    return parts


def canonical_json(value: Any) -> str:
    """The canonical text of a frozen value (upstream form, without extension fields).

    The walk keeps its own stack, so that a deep expression is an error with a message and never exhausts Python's.

    Raises:
        SerializationError: a value has no canonical form, NaN or infinity, or nesting beyond `MAX_JSON_DEPTH`.
    """
    out: list[str] = []
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if type(item) is _Raw:
            out.append(item)
            continue
        text = literal_text(item)
        if text is not None:
            out.append(text)
            continue
        if depth > MAX_JSON_DEPTH:
            raise SerializationError(f"canonical IR nests deeper than {MAX_JSON_DEPTH} levels")
        if isinstance(item, Enum):
            spec = enum_spec_of(type(item))
            if spec is None:
                raise SerializationError(f"unsupported canonical value: {_type_name(item)}")
            out.append(f'{{"$enum":"{spec.tag}","value":{literal_text(item.value)}}}')
            continue
        if isinstance(item, bytes):
            out.append(f'{{"$bytes":"{base64.b64encode(item).decode("ascii")}"}}')
            continue
        if isinstance(item, frozenset):
            encoded = sorted((canonical_json(entry) for entry in cast("frozenset[Any]", item)), key=_set_sort_key)
            out.append(f'{{"$frozenset":[{",".join(encoded)}]}}')
            continue
        found = _children(item)
        if found is None:
            raise SerializationError(f"unsupported canonical value: {_type_name(item)}")
        opening, parts, closing = found
        out.append(opening)
        stack.append((_Raw(closing), 0))
        stack.extend((part, depth + 2) for part in reversed(parts))
    return "".join(out)


def utf8(text: str) -> bytes:
    """UTF-8 bytes of canonical text.

    Raises:
        SerializationError: the text holds a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SerializationError(
            f"text with a lone surrogate U+{ord(text[error.start]):04X} cannot be encoded"
        ) from error


def text_digest(domain: str, canonical_text: str) -> str:
    """BLAKE2b-160 (40 hex digits) over ``domain``, a zero byte and the canonical text in UTF-8."""
    return hashlib.blake2b(domain.encode("ascii") + b"\0" + utf8(canonical_text), digest_size=20).hexdigest()


def content_digest(value: Any, domain: str = "blueprinting") -> str:
    """The content digest of a value in a domain; an IR's domain is ``"ir:" + schema name``."""
    return text_digest(domain, canonical_json(value))


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise SerializationError(f"duplicate canonical JSON key: {key!r}")
        made[key] = value
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise SerializationError(f"canonical JSON does not permit {name}")


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise SerializationError(f"invalid canonical JSON: {error.msg} at line {error.lineno}:{error.colno}") from error
    except ValueError as error:
        if isinstance(error, SerializationError):
            raise
        # int() refuses digit strings beyond sys.get_int_max_str_digits().
        raise SerializationError(f"invalid canonical JSON: {error}") from error


def parse_json(text: str) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN or infinity, bounded nesting.

    Raises:
        SerializationError: with one message for whatever is wrong.
    """
    try:
        return _loads(text)
    except RecursionError:
        return _parse_on_fresh_stack(text)


def _parse_on_fresh_stack(text: str) -> Any:
    # Nesting that is legal (MAX_JSON_DEPTH) may not fit above a deep caller: a new thread starts at depth zero.
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append(_loads(text))
        except (SerializationError, RecursionError) as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name="dtir-json")
    thread.start()
    thread.join()
    result = outcome[0]
    if isinstance(result, RecursionError):
        raise SerializationError(f"invalid canonical JSON: nesting is deeper than {MAX_JSON_DEPTH} levels")
    if isinstance(result, SerializationError):
        raise result
    return result


def decode_tree(tree: Any) -> Any:
    """The value of a parsed tagged tree.

    Raises:
        SerializationError: unknown tag, wrong keys, or a record that its constructor refuses.
    """
    if tree is None or isinstance(tree, (str, bool, int, float)):
        return cast("Any", tree)
    if isinstance(tree, list):
        raise SerializationError("canonical arrays must use an explicit tuple or set tag")
    node = cast("dict[str, Any]", tree)
    keys = node.keys()
    if keys == {"$type", "fields"}:
        return _decode_record(node)
    if keys == {"$tuple"}:
        return tuple(decode_tree(item) for item in _array(node["$tuple"], "$tuple"))
    if keys == {"$enum", "value"}:
        return _decode_enum(node)
    if keys == {"$map"}:
        return _decode_map(node["$map"])
    if keys == {"$frozenset"}:
        return _decode_frozenset(node["$frozenset"])
    if keys == {"$bytes"}:
        return _decode_bytes(node["$bytes"])
    raise SerializationError("invalid or ambiguous canonical tagged object")


def _array(node: Any, tag: str) -> list[Any]:
    if not isinstance(node, list):
        raise SerializationError(f"canonical {tag} must hold an array")
    return cast("list[Any]", node)


def _decode_record(node: dict[str, Any]) -> Any:
    tag, fields = node["$type"], node["fields"]
    if not isinstance(tag, str) or not isinstance(fields, dict):
        raise SerializationError("invalid or ambiguous canonical tagged object")
    cls = record_class(tag)
    if cls is None:
        raise SerializationError(f"unknown canonical record tag: {tag!r}")
    arguments = {name: decode_tree(item) for name, item in cast("dict[str, Any]", fields).items()}
    extensions = {item.name for item in record_spec(cls).fields if item.extension}
    for name in arguments:
        if name in extensions:
            # In the upstream format such a field does not exist.
            refused = f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}"
            raise SerializationError(f"invalid canonical record {tag!r}: {refused}")
    made = build_record(cls, tag, arguments)
    obstacle = made.upstream_obstacle() if hasattr(made, "upstream_obstacle") else None
    if obstacle is not None:
        raise SerializationError(f"invalid canonical record {tag!r}: {obstacle}")
    return made


def build_record(cls: type, tag: str, arguments: Mapping[str, Any]) -> Any:
    """Construct a record; what its constructor refuses becomes a `SerializationError` that names the tag."""
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise SerializationError(f"invalid canonical record {tag!r}: {error}") from error


def _decode_enum(node: dict[str, Any]) -> Any:
    tag, literal = node["$enum"], node["value"]
    spec = enum_spec(tag) if isinstance(tag, str) else None
    if spec is None:
        raise SerializationError(f"unknown canonical enum tag: {tag!r}")
    for member in spec.enum:
        if type(member.value) is type(literal) and member.value == literal and member.name not in spec.extensions:
            return member
    raise SerializationError(f"invalid value for canonical enum {tag!r}")


def _decode_map(node: Any) -> FrozenDict[Any]:
    items: dict[str, Any] = {}
    for entry in _array(node, "$map"):
        if not isinstance(entry, list) or len(cast("list[Any]", entry)) != 2:
            raise SerializationError("canonical $map entries must be [key, value] pairs")
        key, value = cast("list[Any]", entry)
        if not isinstance(key, str):
            raise SerializationError("canonical mapping keys must be strings")
        if key in items:
            raise SerializationError(f"duplicate canonical mapping key: {key!r}")
        items[key] = decode_tree(value)
    return FrozenDict(items)


def _decode_frozenset(node: Any) -> frozenset[Any]:
    try:
        return frozenset(decode_tree(item) for item in _array(node, "$frozenset"))
    except TypeError as error:
        raise SerializationError(f"canonical set member is not hashable: {error}") from error


def _decode_bytes(node: Any) -> bytes:
    if not isinstance(node, str):
        raise SerializationError("canonical $bytes must hold base64 text")
    try:
        return base64.b64decode(node.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise SerializationError(f"canonical $bytes is not valid base64: {error}") from error


def from_canonical_json(text: str) -> Any:
    """The value of a canonical text (canonical bytes are not required).

    Raises:
        SerializationError: see `parse_json` and `decode_tree`.
    """
    tree = parse_json(text)
    try:
        return decode_tree(tree)
    except RecursionError as error:
        raise SerializationError(f"invalid canonical JSON: nesting is deeper than {MAX_JSON_DEPTH} levels") from error
