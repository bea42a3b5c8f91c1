"""The little of the protobuf wire format that Chakra files use: varints, fields, packed lists.

The format of a message is public (protobuf.dev, "Encoding"): a varint key ``number << 3 | wire type``, then a varint (type
0), 8 bytes (1), a length and as many bytes (2), or 4 bytes (5). A reader of our own needs no code generated from a schema
and no package; what it cannot make sense of ends the message, never the program.

>>> list(fields(b"\\x08\\x96\\x01\\x12\\x02hi"))
[(1, 0, 150), (2, 2, b'hi')]
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

MOST_VARINT_BYTES = 10


class WireError(Exception):
    """The bytes are no message, from `offset` on."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends.

    Raises:
        WireError: it is cut off, or longer than 64 bits need.
    """
    number = shift = 0
    start = at
    try:
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFF_FFFF_FFFF_FFFF, at
            shift += 7
            if shift >= 7 * MOST_VARINT_BYTES:
                raise WireError(start)
    except IndexError:
        raise WireError(start) from None


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire type, value) of every field; a length-delimited value as bytes, any other as a number.

    Raises:
        WireError: the bytes are no message.
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        key = data[at]
        at += 1
        if key >= 0x80:
            key, at = varint(data, start)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError(start)
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, kind, value
        elif kind == LENGTH:
            size, at = varint(data, at)
            if size > end - at:
                raise WireError(start)
            yield number, kind, data[at : at + size]
            at += size
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if size > end - at:
                raise WireError(start)
            yield number, kind, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise WireError(start)


def packed(data: bytes) -> list[int]:
    """The varints of a packed list.

    Raises:
        WireError: the last one is cut off.
    """
    found: list[int] = []
    at, end = 0, len(data)
    while at < end:
        number, at = varint(data, at)
        found.append(number)
    return found


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of every length-delimited message of a stream.

    Raises:
        WireError: the stream ends inside a message.
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        size, at = varint(data, at)
        if size > end - at:
            raise WireError(start)
        yield start, data[at : at + size]
        at += size


def signed(number: int) -> int:
    """A 64-bit two's complement number as Python has it."""
    return number - (1 << 64) if number >= 1 << 63 else number


def zigzag(number: int) -> int:
    """The number that a zigzag varint (``sint32``, ``sint64``) stands for."""
    return (number >> 1) ^ -(number & 1)
