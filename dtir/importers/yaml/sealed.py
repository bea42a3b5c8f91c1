"""Parts that have no words of their own in the form: open data as plain mappings, records as their canonical JSON text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from dtir.importers.yaml.document import MOST_DIGITS, to_plain
from dtir.importers.yaml.fields import Fields
from dtir.schema.codec import canonical_json, from_canonical_json
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import FrozenDict

T = TypeVar("T")

SEALED = "$canonical"
"""The one key of a mapping that stands for data that YAML has no words for: sets, bytes, records."""


class Unwritable(Exception):
    """Something that the form cannot say; `path` says where it stands."""

    def __init__(self, message: str, path: Sequence[str]) -> None:
        super().__init__(message)
        self.path = tuple(path)


def plain(value: object, path: Sequence[str]) -> Any:
    """Frozen data as lists and dicts; sets, bytes and records as canonical text.

    Raises:
        Unwritable: a number that is not finite, or something without a canonical form.
    """
    if isinstance(value, FrozenDict):
        return {key: plain(item, (*path, key)) for key, item in cast("FrozenDict[Any]", value).items()}
    if isinstance(value, tuple):
        return [plain(item, path) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise Unwritable(f"number {value} is not finite", path)
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        return {SEALED: canonical(value, path)}  # as a plain number it would read as text
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {SEALED: canonical(value, path)}


def canonical(value: object, path: Sequence[str]) -> str:
    """The canonical JSON text of a record, set or bytes.

    Raises:
        Unwritable: it has none.
    """
    try:
        return canonical_json(value)
    except SerializationError as error:
        raise Unwritable(str(error), path) from error


def read_data(fields: Fields, key: str) -> dict[str, Any]:
    """Open data under a key: a mapping, empty when there is none."""
    return {name: _unsealed(to_plain(node), fields, key) for name, node in (fields.entries(key) or {}).items()}


def _unsealed(value: object, fields: Fields, key: str) -> Any:
    if isinstance(value, list):
        return [_unsealed(item, fields, key) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, object]", value)
    text = entries.get(SEALED)
    if len(entries) == 1 and isinstance(text, str):
        return _decoded(text, fields, key)
    return {name: _unsealed(item, fields, key) for name, item in entries.items()}


def _decoded(text: str, fields: Fields, key: str) -> Any:
    try:
        return from_canonical_json(text)
    except (SerializationError, ValueError, TypeError, RecursionError) as error:
        fields.value(key, f"{key} holds no canonical text: {error}")
        return None


def read_record(fields: Fields, key: str, cls: type[T]) -> T | None:
    """The record whose canonical text stands under a key; None without one."""
    text = fields.text(key)
    if text is None:
        return None
    found = _decoded(text, fields, key)
    if found is not None and not isinstance(found, cls):
        fields.value(key, f"{key} holds a {type(found).__name__}, wanted a {cls.__name__}")
        return None
    return found
