"""Constants: ``dense<...>`` as the text that HLO has for the same values.

>>> literal("dense<[[1.0, 0x7F800000], [-2.0, 3.0]]>", ArrayShape("f32", (2, 2)))
'{{1.0, inf}, {-2.0, 3.0}}'
"""

from __future__ import annotations

import math
import re
import struct

from dtir.importers.hlo.shapes import DTYPE_BITS, ArrayShape
from dtir.importers.stablehlo.lists import closing

_HEX = re.compile(r"0x([0-9A-Fa-f]{1,32})\b")
_BRACKETS = str.maketrans("[]", "{}")


def literal(text: str, shape: ArrayShape) -> str | None:
    """HLO's text of the values of an element list; None where they cannot be read, ``{...}`` where they are left out."""
    text = text.strip()
    if text.startswith(("dense_resource<", "#stablehlo.elided", "sparse<")) or "dense<__elided__>" in text:
        return "{...}"
    if not text.startswith("dense<"):
        return text.partition(":")[0].strip() or None
    body = text[6 : closing(text, 5) - 1].strip()
    if body.startswith('"'):
        values = _memory(body, shape)
        if values is None:
            return None
        return values[0] if len(values) == 1 else "{" + ", ".join(values) + "}"
    if "0x" in body:
        body = _HEX.sub(lambda match: _number(match.group(1), shape.dtype), body)
    if not body:
        return "{}"
    return body.translate(_BRACKETS)


def _number(digits: str, dtype: str) -> str:
    """The value whose bits are written in hexadecimal: how MLIR prints infinities and NaN."""
    bits = DTYPE_BITS.get(dtype, 0) // (2 if dtype in ("c64", "c128") else 1)
    value = int(digits, 16)
    if dtype[0] in "sup" or bits not in (16, 32, 64):
        return str(value)
    return _float(value.to_bytes(16, "little")[: bits // 8], dtype, bits)


def _float(data: bytes, dtype: str, bits: int) -> str:
    if dtype == "bf16":
        (number,) = struct.unpack("<f", b"\0\0" + data)
    else:
        (number,) = struct.unpack({16: "<e", 32: "<f", 64: "<d"}[bits], data)
    if math.isnan(number):
        return "nan"
    return ("inf" if number > 0 else "-inf") if math.isinf(number) else repr(number)


def _memory(body: str, shape: ArrayShape) -> list[str] | None:
    """The values of ``"0x..."``: little endian memory of all elements, or of the one that all of them are."""
    digits = body.strip('"').removeprefix("0x")
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        return None
    dtype, bits = shape.dtype, DTYPE_BITS.get(shape.dtype, 0)
    if dtype == "pred":
        # One bit per element, or one byte for all of them.
        if len(data) == 1 and shape.elements > 1 and data in (b"\xff", b"\x00"):
            return ["true" if data[0] else "false"]
        if len(data) == shape.elements:
            return ["true" if byte else "false" for byte in data]
        if len(data) * 8 < shape.elements:
            return None
        return ["true" if data[at // 8] >> (at % 8) & 1 else "false" for at in range(shape.elements)]
    width = bits // 8
    if width == 0 or not data or len(data) % width:
        return None
    pieces = [data[at : at + width] for at in range(0, len(data), width)]
    if len(pieces) not in (1, shape.elements):
        return None
    if dtype[0] in "su":
        return [str(int.from_bytes(piece, "little", signed=dtype[0] == "s")) for piece in pieces]
    if dtype in ("c64", "c128"):
        half = width // 2
        return [f"({_float(p[:half], '', half * 8)}, {_float(p[half:], '', half * 8)})" for p in pieces]
    if bits not in (16, 32, 64):
        return None
    return [_float(piece, dtype, bits) for piece in pieces]
