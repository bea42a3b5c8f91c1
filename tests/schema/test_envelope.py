"""Envelopes of both forms, read from the raw tree."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.schema import SchemaVersion, SerializationError
from dtir.schema.envelope import digest_of_text, is_native, read_envelope

VERSION = {"$type": "blueprinting.ir.schema-version", "fields": {"major": 0, "minor": 1}}
UPSTREAM: dict[str, Any] = {
    "$type": "blueprinting.ir.snapshot",
    "fields": {
        "schema_name": "a.b",
        "schema_version": VERSION,
        "content_digest": "d" * 40,
        "payload": {"b": 1, "a": 2},
    },
}
NATIVE: dict[str, Any] = {"schema": "a.b", "version": "1.2.3", "digest": "d" * 40, "payload": [1]}


def test_both_forms() -> None:
    found = read_envelope(UPSTREAM)
    assert (found.schema_name, found.version, found.digest) == ("a.b", SchemaVersion(0, 1), "d" * 40)
    assert found.raw_digest() == digest_of_text("a.b", '{"a":2,"b":1}')
    found = read_envelope(NATIVE)
    assert (found.schema_name, found.version, found.payload) == ("a.b", SchemaVersion(1, 2, 3), [1])
    assert is_native(NATIVE)
    assert not is_native(UPSTREAM)
    assert not is_native([])


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        {},
        {"$type": "other", "fields": {}},
        {"$type": "blueprinting.ir.snapshot", "fields": []},
        {**UPSTREAM, "fields": {**UPSTREAM["fields"], "schema_name": 3}},
        {**UPSTREAM, "fields": {**UPSTREAM["fields"], "schema_version": "0.1.0"}},
        {**UPSTREAM, "fields": {**UPSTREAM["fields"], "content_digest": None}},
        {**UPSTREAM, "fields": {key: item for key, item in UPSTREAM["fields"].items() if key != "payload"}},
        {**NATIVE, "schema": None},
        {**NATIVE, "version": "1"},
        {**NATIVE, "version": 1},
        {**NATIVE, "digest": 3},
        {key: item for key, item in NATIVE.items() if key != "payload"},
    ],
    ids=str,
)
def test_what_is_no_envelope(tree: Any) -> None:
    with pytest.raises(SerializationError, match="must contain an IR snapshot envelope"):
        read_envelope(tree)
