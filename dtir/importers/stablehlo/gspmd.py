r"""GSPMD's shardings: the string attribute ``mhlo.sharding``, as text or as a serialised ``xla.OpSharding``.

>>> decode("\\08\\03\\1A\\02\\02\\01\\22\\02\\00\\01")
'{devices=[2,1]0,1}'

Source: the public message ``OpSharding`` (openxla/xla, xla/xla_data.proto).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shardings import Sharding, parse_sharding

MAX_DEPTH = 4
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2})|\\([nt\"\\])")
_PLAIN = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
_STATES = {0: "replicated", 1: "maximal", 2: "tuple", 3: "tiled", 4: "manual", 5: "unknown", 6: "unreduced"}


def parse(text: str) -> Sharding:
    """The sharding in the quotes of ``mhlo.sharding``, escapes and all; raises `HloSyntaxError`."""
    if text.lstrip().startswith("{"):
        return parse_sharding(text.replace('\\"', '"'))
    return parse_sharding(decode(text))


def decode(text: str) -> str:
    """The text form of a serialised sharding in MLIR's escapes; raises `HloSyntaxError`."""
    data = _ESCAPE.sub(
        lambda match: bytes([int(match.group(1), 16)]) if match.group(1) else _PLAIN[match.group(2)],
        text.encode("utf-8", "replace"),
    )
    return _message(data, 0)


def _message(data: bytes, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise HloSyntaxError("the serialised sharding nests too deep", 0, "mlir.sharding")
    kind, dims, devices, last, reshape, perm = 0, list[int](), list[int](), list[int](), list[int](), list[int]()
    replicated_last = False
    elements: list[str] = []
    for number, value in _fields(data):
        match number, value:
            case 1, int():
                kind = value
            case 3, _:
                dims += _packed(value)
            case 4, _:
                devices += _packed(value)
            case 5, bytes():
                elements.append(_message(value, depth + 1))
            case 6, int():
                replicated_last = bool(value)
            case 8, _:
                last += _packed(value)
            case 9, _:
                reshape += _packed(value)
            case 10, _:
                perm += _packed(value)
            case _:
                pass  # tile shape, metadata, shard groups: nothing that a layout follows from
    state = _STATES.get(kind, "unknown")
    if state == "tuple":
        return "{" + ", ".join(elements) + "}"
    if state == "maximal":
        return f"{{maximal device={devices[0] if devices else 0}}}"
    if state != "tiled":
        return f"{{{state}}}"
    order = ",".join(map(str, devices))
    if reshape:
        turned = f"T({','.join(map(str, perm))})" if perm != sorted(perm) else ""
        order = f"<=[{','.join(map(str, reshape))}]{turned}"
    tail = " last_tile_dim_replicate" if replicated_last else ""
    if last:
        tail = f" last_tile_dims={{{', '.join(_STATES.get(item, 'unknown') for item in last)}}}"
    return f"{{devices=[{','.join(map(str, dims))}]{order}{tail}}}"


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    pos = 0
    while pos < len(data):
        key, pos = _varint(data, pos)
        if key & 7 == 0:
            value, pos = _varint(data, pos)
            yield key >> 3, value
        elif key & 7 == 2:
            size, pos = _varint(data, pos)
            if pos + size > len(data):
                raise HloSyntaxError("the serialised sharding is cut off", 0, "mlir.sharding")
            yield key >> 3, data[pos : pos + size]
            pos += size
        else:
            raise HloSyntaxError("the sharding is neither text in braces nor a serialised one", 0, "mlir.sharding")


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while pos < len(data) and shift < 70:
        value |= (data[pos] & 0x7F) << shift
        pos += 1
        if not data[pos - 1] & 0x80:
            return value, pos
        shift += 7
    raise HloSyntaxError("the serialised sharding is cut off", 0, "mlir.sharding")


def _packed(value: int | bytes) -> list[int]:
    if isinstance(value, int):
        return [value]
    found: list[int] = []
    pos = 0
    while pos < len(value):
        number, pos = _varint(value, pos)
        found.append(number)
    return found
