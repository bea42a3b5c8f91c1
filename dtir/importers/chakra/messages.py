"""Chakra's messages: nodes with their attributes, whatever member of the value an attribute uses.

The schema is MLCommons' ``et_def.proto``: GlobalMetadata {version 1, attr 2}, then Node {id 1, name 2, type 3, ctrl_deps 4,
data_deps 5, start_time_micros 6, duration_micros 7, inputs 8, outputs 9, attr 10}; AttributeProto {name 1, doc_string 2, one
value of 3 (double) to 32 (bytes list)}. The upstream feeder reads one member of the value each (int64_val of comm_size, say)
and zero for any other; real files differ, so that every whole number is taken here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from dtir.importers.chakra.wire import FIXED32, FIXED64, LENGTH, VARINT, WireError, fields, packed, signed, zigzag

Attribute: TypeAlias = int | float | str | tuple[int, ...]

_PLAIN = {7, 9, 11, 13, 27}
_ZIGZAG = {15, 17}
_UNSIGNED_FIXED = {19, 21}
_SIGNED_FIXED = {23, 25}
_TEXT = {29, 31}
_LISTS = {8, 10, 12, 14, 28}


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its number in the file, name, type, what it waits for, when it ran, and its attributes by name."""

    id: int
    name: str
    type: int
    needs: tuple[int, ...]
    data_deps: int
    start_us: int
    duration_us: int
    attributes: Mapping[str, Attribute] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The first message: a version, and attributes."""

    version: str
    attributes: Mapping[str, Attribute] = field(repr=False)


def read_metadata(data: bytes) -> Metadata:
    """The first message of a stream.

    Raises:
        WireError: it is no such message.
    """
    version = ""
    attributes: dict[str, Attribute] = {}
    for number, kind, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            version = value.decode("utf-8", "replace")
        elif number == 1:
            raise WireError(0)  # a node: its id
        elif number == 2 and isinstance(value, bytes):
            pair = _attribute(value)
            if pair is not None:
                attributes[pair[0]] = pair[1]
        elif kind == VARINT:
            raise WireError(0)
    return Metadata(version, attributes)


def read_node(data: bytes) -> Node:
    """A node.

    Raises:
        WireError: it is no such message.
    """
    identifier = type_ = start_us = duration_us = data_deps = 0
    name = ""
    needs: list[int] = []
    attributes: dict[str, Attribute] = {}
    for number, kind, value in fields(data):
        if isinstance(value, bytes):
            if number == 10:
                pair = _known_attribute(value)
                if pair is not None:
                    attributes[pair[0]] = pair[1]
            elif number in (4, 5):
                found = packed(value)
                needs += found
                data_deps += len(found) if number == 5 else 0
            elif number == 2:
                name = value.decode("utf-8", "replace")
        elif kind == VARINT:
            match number:
                case 1:
                    identifier = value
                case 3:
                    type_ = value
                case 4 | 5:
                    needs.append(value)
                    data_deps += number == 5
                case 6:
                    start_us = value
                case 7:
                    duration_us = value
                case _:
                    pass
    return Node(identifier, name, type_, tuple(needs), data_deps, start_us, duration_us, attributes)


@lru_cache(maxsize=1 << 14)
def _known_attribute(data: bytes) -> tuple[str, Attribute] | None:
    """An attribute; the same few stand on most nodes."""
    return _attribute(data)


def _attribute(data: bytes) -> tuple[str, Attribute] | None:
    name = ""
    held: Attribute | None = None
    for number, kind, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif number > 2:
            held = _value(number, kind, value)
    return (name, held) if name and held is not None else None


def _value(number: int, kind: int, value: int | bytes) -> Attribute | None:
    if isinstance(value, bytes):
        if number in _TEXT:
            return value.decode("utf-8", "replace")
        return _list(value) if number in _LISTS else None
    if kind == VARINT:
        return zigzag(value) if number in _ZIGZAG else signed(value) if number in _PLAIN else None
    if kind in (FIXED64, FIXED32):
        if number in _UNSIGNED_FIXED:
            return value
        if number in _SIGNED_FIXED:
            return signed(value) if kind == FIXED64 else value - (1 << 32) * (value >= 1 << 31)
        if number == 3 and kind == FIXED64:
            return float(struct.unpack("<d", value.to_bytes(8, "little"))[0])
        if number == 5 and kind == FIXED32:
            return float(struct.unpack("<f", value.to_bytes(4, "little"))[0])
    return None


def _list(data: bytes) -> tuple[int, ...]:
    """A list message: its values are field 1, packed or one by one."""
    found: list[int] = []
    for number, kind, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            found += map(signed, packed(value))
        elif number == 1 and kind != LENGTH and not isinstance(value, bytes):
            found.append(signed(value))
    return tuple(found)
