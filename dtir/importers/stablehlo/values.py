"""Attribute values: integers, lists, element lists and strings as MLIR prints them."""

from __future__ import annotations

import re
import struct
from math import prod

from dtir.importers.stablehlo.lists import STRING, closing, entries, inside

MAX_SPLAT = 100_000
"""Most elements that one repeated value is written out for."""

_INT = re.compile(r"-?\d{1,19}")
_DENSE = re.compile(r"dense<")
_SHAPE = re.compile(r"(?:tensor|vector)<((?:\d+x)*)(\w+)>")
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_QUOTED = re.compile(STRING, re.DOTALL)


def integer(text: str | None) -> int | None:
    """``4 : i64`` as 4; None for what is no integer."""
    if text is None:
        return None
    match = _INT.match(text.strip())
    return int(match.group()) if match is not None else None


def boolean(text: str | None) -> bool:
    """True for ``true`` and for a unit attribute."""
    return text is not None and text.strip().partition(" ")[0] in ("true", "", "1")


def string(text: str | None) -> str | None:
    """What is in the quotes of ``"text"``; None without quotes."""
    if text is None:
        return None
    match = _QUOTED.match(text.strip())
    return _ESCAPE.sub(_unescape, match.group()[1:-1]) if match is not None else None


def _unescape(match: re.Match[str]) -> str:
    digits, plain = match.groups()
    return chr(int(digits, 16)) if digits is not None else {"n": "\n", "t": "\t"}.get(plain, plain)


def frontend(text: str | None) -> tuple[tuple[str, str], ...]:
    """The entries of ``{a = "x", b = {...}}``, strings without their quotes: what XLA calls frontend attributes.

    >>> frontend('{xla.sdy.sharding = "<@m, [{\\22x\\22}]>"}')
    (('xla.sdy.sharding', '<@m, [{"x"}]>'),)
    """
    if text is None:
        return ()
    found: list[tuple[str, str]] = []
    for key, value in entries(inside(text)).items():
        plain = string(value)
        found.append((key, value if plain is None else plain))
    return tuple(found)


def ints(text: str | None) -> tuple[int, ...] | None:
    """The integers of ``[1, 2]``, ``array<i64: 1, 2>``, ``dense<[1, 2]> : tensor<2xi64>``, in order; None without any list.

    >>> ints("dense<2> : tensor<3xi64>"), ints("array<i64>"), ints("[1 : i32, 4 : i32]")
    ((2, 2, 2), (), (1, 4))
    """
    if text is None:
        return None
    text = text.strip()
    if text.startswith("dense"):
        return dense_ints(text)
    if text.startswith("array<"):
        body = text[6 : closing(text, 5) - 1].partition(":")[2]
    elif text.startswith("["):
        body = re.sub(r":\s*\w+", "", text[1 : closing(text, 0) - 1])
    else:
        return None
    return tuple(int(number) for number in _INT.findall(body))


def booleans(text: str | None) -> tuple[bool, ...] | None:
    """The truth values of ``[true, false]``, ``array<i1: true>`` or ``dense<true> : tensor<2xi1>``."""
    if text is None:
        return None
    found = tuple(word == "true" for word in re.findall(r"\b(true|false)\b", text))
    shape = _SHAPE.search(text) if text.strip().startswith("dense") else None
    if shape is not None and len(found) == 1:
        count = prod(int(dim) for dim in shape.group(1).split("x") if dim)
        return found * count if count <= MAX_SPLAT else found
    return found


def dense_shape(text: str) -> tuple[int, ...] | None:
    """The dims of an element list: ``dense<0> : tensor<2x3xi64>`` gives (2, 3)."""
    match = _SHAPE.search(text, closing(text, text.find("<")))
    if match is None:
        return None
    return tuple(int(dim) for dim in match.group(1).split("x") if dim)


def dense_ints(text: str) -> tuple[int, ...] | None:
    """The integers of an element list, row-major; None where they cannot be read or are too many to write out."""
    start = text.find("<")
    if start < 0:
        return None
    end = closing(text, start)
    body, dims = text[start + 1 : end - 1].strip(), dense_shape(text)
    count = prod(dims) if dims is not None else None
    if body.startswith('"'):
        kind = _SHAPE.search(text, end)
        return hexadecimal(body, kind.group(2)) if kind is not None else None
    numbers = tuple(int(number) for number in _INT.findall(body))
    if count is not None and len(numbers) == 1 and not body.startswith("["):
        return numbers * count if count <= MAX_SPLAT else None
    return numbers


_FORMATS = {"i64": "q", "i32": "i", "i16": "h", "i8": "b", "ui64": "Q", "ui32": "I", "ui16": "H", "ui8": "B"}


def hexadecimal(text: str, kind: str) -> tuple[int, ...] | None:
    """The integers of ``"0x0100..."``: little endian memory of the elements."""
    letter = _FORMATS.get(kind)
    digits = text.strip().strip('"').removeprefix("0x")
    if letter is None or len(digits) % 2:
        return None
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        return None
    if len(data) % struct.calcsize(letter):
        return None
    return tuple(value for (value,) in struct.iter_unpack(f"<{letter}", data))


def matrix(text: str | None) -> tuple[tuple[int, ...], ...] | None:
    """The rows of ``dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>``, cut at -1 (padding); None where they cannot be read.

    >>> matrix("dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>")
    ((0, 1, 2), (3,))
    """
    if text is None or not text.strip().startswith("dense"):
        return None
    text = text.strip()
    numbers, dims = dense_ints(text), dense_shape(text)
    if numbers is None or dims is None or len(dims) != 2 or prod(dims) != len(numbers):
        return None
    rows, width = dims
    lists = [numbers[row * width : (row + 1) * width] for row in range(rows)]
    # StableHLO pads the rows of groups that are shorter than the longest with -1.
    return tuple(tuple(number for number in row if number != -1) for row in lists if row)
