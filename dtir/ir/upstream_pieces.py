"""Reading canonical upstream text by its pieces, each distinct piece once.

Tasks and values of real programs repeat most of their fields word for word. So the text is cut where the canonical form
puts its field names, and what lies between is decoded once per different text. The cuts are guesses; what makes the
result right is a proof: a piece counts only when the canonical text of its decoded value is the piece itself. When that
holds for every piece, then the whole text is the canonical text of the assembled program, because JSON can be read in
one way only. Any doubt ends in None, and the general reader takes over with its diagnostics.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

from dtir.ir.header import REQUIRED_FEATURE, IRHeader
from dtir.ir.ids import NodeId, ValueId
from dtir.ir.model import IRSnapshot
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, UPSTREAM_SCHEMA, UPSTREAM_VERSION, DistributedTaskIR
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.schema.codec import canonical_json, record_frame
from dtir.schema.decoding import decode_tree
from dtir.schema.envelope import digest_of_text
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import MAX_JSON_DEPTH, parse_json

_DIGEST_OPEN = '{"$type":"blueprinting.ir.snapshot","fields":{"content_digest":"'
_DIGEST_CLOSE = '","feature_set":'
_PAYLOAD_MARK = ',"payload":'
_METADATA_MARKS = (',"producer_version":', ',"schema_name":', ',"schema_version":')
_TUPLE_OPEN, _TUPLE_CLOSE = '{"$tuple":[', "]}"
_RECORD_CLOSE = "}}"
_LISTS: dict[str, type[Any]] = {"tasks": DistributedTask, "values": DistributedValue}
_DECODER = json.JSONDecoder()
_DEEP = MAX_JSON_DEPTH - 50


class CanonicalSnapshot(NamedTuple):
    """What a canonical snapshot holds; the digest is the one that the payload really has."""

    program: DistributedTaskIR
    stated_digest: str
    digest: str


class _DoubtError(Exception):
    """The text may not be canonical, or not what it seems; the general reader decides."""


def read_pieces(text: str) -> CanonicalSnapshot | None:
    """The program of a canonical snapshot whose envelope and header are right; None at any doubt."""
    if not text.startswith(_DIGEST_OPEN):
        return None
    try:
        return _Reader().snapshot(text)
    except (_DoubtError, SerializationError, TypeError, ValueError):
        return None


class _Reader:
    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def snapshot(self, text: str) -> CanonicalSnapshot:
        start = len(_DIGEST_OPEN)
        digest = text[start : start + 40]
        start += 40
        payload_at = text.find(_PAYLOAD_MARK, start)
        metadata_at = text.rfind(_METADATA_MARKS[0])
        if not text.startswith(_DIGEST_CLOSE, start) or not start < payload_at < metadata_at:
            raise _DoubtError
        features = self._piece(text[start + len(_DIGEST_CLOSE) : payload_at], 2)
        metadata = _cut(text[metadata_at:], _METADATA_MARKS, _RECORD_CLOSE)
        payload = text[payload_at + len(_PAYLOAD_MARK) : metadata_at]
        producer, name, version = (self._piece(piece, 2) for piece in metadata)
        envelope = IRSnapshot(name, version, producer, features, digest, None)
        if (name, version) != (UPSTREAM_SCHEMA, UPSTREAM_VERSION) or REQUIRED_FEATURE not in envelope.feature_set:
            raise _DoubtError
        parts = self._program_parts(payload)
        header = parts["header"]
        if not isinstance(header, IRHeader) or not envelope.matches_header(header):
            raise _DoubtError
        parts["header"] = header.under(NATIVE_SCHEMA, NATIVE_VERSION)
        return CanonicalSnapshot(DistributedTaskIR(**parts), digest, digest_of_text(UPSTREAM_SCHEMA, payload))

    def _program_parts(self, payload: str) -> dict[str, Any]:
        opening, fields = record_frame(DistributedTaskIR)
        parts: dict[str, Any] = {}
        at = len(opening)
        if not payload.startswith(opening):
            raise _DoubtError
        for (before, name), (following, _) in pairwise((*fields, (_RECORD_CLOSE, ""))):
            if not payload.startswith(before, at):
                raise _DoubtError
            at += len(before)
            if name in _LISTS:
                end = (
                    payload.rfind(following) if following == _RECORD_CLOSE else payload.find(f"]}}{following}", at) + 2
                )
                parts[name] = self._records(payload[at:end], _LISTS[name])
            else:
                end = _value_end(payload, at)
                parts[name] = self._piece(payload[at:end], 4)
            at = end
        if payload[at:] != _RECORD_CLOSE:
            raise _DoubtError
        return parts

    def _records(self, piece: str, cls: type[Any]) -> tuple[Any, ...]:
        """The records of a tuple whose members are all of one class."""
        if piece == _TUPLE_OPEN + _TUPLE_CLOSE:
            return ()
        opening, fields = record_frame(cls)
        first = opening + fields[0][0]
        if not piece.startswith(_TUPLE_OPEN + first) or not piece.endswith(_RECORD_CLOSE + _TUPLE_CLOSE):
            raise _DoubtError
        inner = piece[len(_TUPLE_OPEN) + len(first) : -len(_RECORD_CLOSE + _TUPLE_CLOSE)]
        marks = [before for before, _ in fields[1:]]
        names = [name for _, name in fields]
        return tuple(
            [
                cls(**dict(zip(names, self._field_values(chunk, marks), strict=True)))
                for chunk in inner.split(f"{_RECORD_CLOSE},{first}")
            ]
        )

    def _field_values(self, chunk: str, marks: list[str]) -> list[Any]:
        known, decode = self._known, self._piece
        try:
            return [known[part] if part in known else decode(part, 8) for part in _split(chunk, marks)]
        except (_DoubtError, SerializationError):
            # A mark that stands inside a value too: find the ends by reading the values.
            return [decode(part, 8) for part in _scan(chunk, marks)]

    def _piece(self, piece: str, depth: int) -> Any:
        """The value of a piece that is canonical text; `depth` brackets are open around it."""
        if piece in self._known:
            return self._known[piece]
        for cls, opening in _IDS:
            if piece.startswith(opening):
                value: Any = cls(piece[len(opening) : -3])
                if len(piece) != len(opening) + 35 or not piece.endswith('"}}'):
                    raise _DoubtError
                break
            if piece.startswith(_TUPLE_OPEN + opening):
                value = self._id_tuple(piece, depth)
                break
        else:
            if piece.count("{") + piece.count("[") > _DEEP:
                # How deep a known piece may nest depends on where it stands: leave the counting to the general reader.
                raise _DoubtError
            value = decode_tree(parse_json(piece))
            if canonical_json(value, depth=depth) != piece:
                raise _DoubtError
        self._known[piece] = value
        return value

    def _id_tuple(self, piece: str, depth: int) -> tuple[Any, ...]:
        if not piece.endswith(_TUPLE_CLOSE):
            raise _DoubtError
        items = piece[len(_TUPLE_OPEN) : -len(_TUPLE_CLOSE)].split(f"{_RECORD_CLOSE},")
        last = len(items) - 1
        return tuple(
            self._piece(item if index == last else item + _RECORD_CLOSE, depth + 2) for index, item in enumerate(items)
        )


_IDS = tuple((cls, record_frame(cls)[0] + '"value":"') for cls in (NodeId, ValueId))


def _split(text: str, marks: list[str]) -> list[str]:
    """What lies before, between and after the marks, each looked for behind the one before it."""
    parts: list[str] = []
    at = 0
    for mark in marks:
        found = text.find(mark, at)
        if found < 0:
            raise _DoubtError
        parts.append(text[at:found])
        at = found + len(mark)
    parts.append(text[at:])
    return parts


def _scan(text: str, marks: list[str]) -> list[str]:
    """As `_split`, but the marks are expected where the values before them end."""
    parts: list[str] = []
    at = 0
    for mark in marks:
        end = _value_end(text, at)
        if not text.startswith(mark, end):
            raise _DoubtError
        parts.append(text[at:end])
        at = end + len(mark)
    parts.append(text[at:])
    return parts


def _value_end(text: str, at: int) -> int:
    """Where the JSON value that begins at a position ends."""
    try:
        return _DECODER.raw_decode(text, at)[1]
    except (ValueError, RecursionError) as error:
        raise _DoubtError from error


def _cut(text: str, marks: list[str] | tuple[str, ...], closing: str) -> list[str]:
    """What follows each mark; the text begins with the first and ends with `closing`."""
    if not text.startswith(marks[0]) or not text.endswith(closing):
        raise _DoubtError
    return _split(text[len(marks[0]) : -len(closing)], list(marks[1:]))
