"""The canonical tagged JSON form of the upstream format, and content digests.

Encodings (an object has exactly these keys): the JSON literals null, string, bool, int and finite float as they are;
``{"$bytes": base64}``; ``{"$tuple": [..]}``; ``{"$frozenset": [..]}`` sorted by the ASCII text of the encoded items;
``{"$map": [[key, value], ..]}`` sorted by key; ``{"$enum": tag, "value": literal}``; ``{"$type": tag, "fields": {..}}``
with every field, defaults included. Text is
``json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))``.

Writing and reading keep their own stacks: how deep a value may nest depends on `MAX_JSON_DEPTH` alone, never on the
caller's stack. Fields, records and enum members that are dtir's own do not exist in this form.

Source of the format: the public documentation and code of DeepLink-org/Blueprinting (level 9f4ea74f), as facts.

>>> canonical_json((1, 2.5, None))
'{"$tuple":[1,2.5,null]}'
>>> from_canonical_json('{"$tuple":[1,2.5,null]}')
(1, 2.5, None)
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, cast

from dtir.schema.authoring import enum_spec_of, is_record, record_spec
from dtir.schema.decoding import build_record, decode_tree
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import FrozenDict
from dtir.schema.jsontext import (
    MAX_JSON_DEPTH,
    ascii_key,
    literal_text,
    parse_json,
    string_text,
    text_digest,
    too_deep,
    utf8,
)

__all__ = [
    "MAX_JSON_DEPTH",
    "build_record",
    "canonical_json",
    "content_digest",
    "decode_tree",
    "from_canonical_json",
    "literal_text",
    "parse_json",
    "text_digest",
    "unsupported",
    "utf8",
]

# What a stack entry is when it is no value at a depth >= 0.
_RAW, _MEMBER_START, _MEMBER_END, _SET_END = -1, -2, -3, -4


def unsupported(value: object) -> SerializationError:
    """The error about a value that has no canonical form."""
    return SerializationError(f"unsupported canonical value: {type(value).__module__}.{type(value).__qualname__}")


@cache
def record_frame(cls: type[Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Opening text of a record, and for each of its upstream fields in key order the text before it and its name."""
    spec = record_spec(cls)
    names = sorted(item.name for item in spec.fields if not item.extension)
    before = [f'{"," if index else ""}"{name}":' for index, name in enumerate(names)]
    return f'{{"$type":"{spec.tag}","fields":{{', tuple(zip(before, names, strict=True))


def enum_text(member: Enum) -> str:
    """The canonical text of an enum member.

    Raises:
        SerializationError: its class is not registered.
    """
    spec = enum_spec_of(type(member))
    if spec is None:
        raise unsupported(member)
    return f'{{"$enum":"{spec.tag}","value":{literal_text(member.value)}}}'


def canonical_json(value: Any, *, depth: int = 0) -> str:
    """The canonical text of a frozen value (upstream form, without extension fields).

    Args:
        value: what to write.
        depth: brackets that are open around the text.

    Raises:
        SerializationError: a value has no canonical form, NaN or infinity, or nesting beyond `MAX_JSON_DEPTH`.
    """
    out: list[str] = []
    member_starts: list[int] = []
    sets: list[list[str]] = []
    stack: list[tuple[Any, int]] = [(value, depth)]
    while stack:
        item, level = stack.pop()
        if level == _RAW:
            out.append(item)
            continue
        if level == _MEMBER_START:
            member_starts.append(len(out))
            continue
        if level == _MEMBER_END:
            start = member_starts.pop()
            sets[-1].append("".join(out[start:]))
            del out[start:]
            continue
        if level == _SET_END:
            out.append(f'{{"$frozenset":[{",".join(sorted(sets.pop(), key=ascii_key))}]}}')
            continue
        text = literal_text(item)
        if text is None and isinstance(item, (Enum, bytes)):
            level += 1
            text = enum_text(item) if isinstance(item, Enum) else _bytes_text(item)
        if text is not None:
            if level > MAX_JSON_DEPTH:
                raise too_deep()
            out.append(text)
        elif isinstance(item, frozenset):
            if level + 2 > MAX_JSON_DEPTH:
                raise too_deep()
            sets.append([])
            stack.append((None, _SET_END))
            for member in cast("frozenset[Any]", item):
                stack += ((None, _MEMBER_END), (member, level + 2), (None, _MEMBER_START))
        else:
            _push_parts(item, level, stack)
    return "".join(out)


def _bytes_text(value: bytes) -> str:
    return f'{{"$bytes":"{base64.b64encode(value).decode("ascii")}"}}'


def _push_parts(item: Any, level: int, stack: list[tuple[Any, int]]) -> None:
    """Push the text and the parts of a tuple, map or record, last first."""
    deeper = level + 2
    parts: list[tuple[Any, int]]
    if isinstance(item, tuple):
        parts = [('{"$tuple":[', _RAW)]
        for index, entry in enumerate(cast("tuple[Any, ...]", item)):
            if index:
                parts.append((",", _RAW))
            parts.append((entry, deeper))
        parts.append(("]}", _RAW))
    elif isinstance(item, FrozenDict):
        entries = cast("Mapping[str, Any]", item)
        parts = [('{"$map":[', _RAW)]
        for index, (key, entry) in enumerate(entries.items()):
            parts += ((f"{',' if index else ''}[{string_text(key)},", _RAW), (entry, level + 3), ("]", _RAW))
        parts.append(("]}", _RAW))
        deeper += bool(entries)
    elif (plain := _plain_form(item)) is not item:
        stack.append((plain, level))
        return
    elif is_record(item):
        opening, fields = record_frame(cast("type[Any]", type(item)))
        parts = [(opening, _RAW)]
        for before, name in fields:
            parts += ((before, _RAW), (getattr(item, name), deeper))
        parts.append(("}}", _RAW))
    else:
        raise unsupported(item)
    if deeper > MAX_JSON_DEPTH:
        raise too_deep()
    stack.extend(reversed(parts))


def _plain_form(item: Any) -> Any:
    """What a value with another form is written as (a run of ranks: as the tuple), or the value itself."""
    form = getattr(item, "plain_form", None)
    return item if form is None else form()


def content_digest(value: Any, domain: str = "blueprinting") -> str:
    """The content digest of a value in a domain; an IR's domain is ``"ir:" + schema name``.

    Raises:
        SerializationError: the value has no canonical form.
    """
    return text_digest(domain, canonical_json(value))


def from_canonical_json(text: str) -> Any:
    """The value of a canonical text (canonical bytes are not required).

    Raises:
        SerializationError: see `parse_json` and `decode_tree`.
    """
    return decode_tree(parse_json(text))
