"""The envelope around a snapshot's payload, read from the raw tree: what it is, in which version, with which digest.

There are two forms. Ours is plain: ``{"schema", "version", "digest", "producer_version", "features", "payload"}``. The
upstream form is the tagged record ``blueprinting.ir.snapshot``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from dtir.schema.decoding import decode_tree
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import raw_json, text_digest
from dtir.schema.version import SchemaVersion

UPSTREAM_ENVELOPE_TAG = "blueprinting.ir.snapshot"

NO_ENVELOPE = "canonical IR JSON must contain an IR snapshot envelope"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an envelope says of its payload; nothing of it is checked yet."""

    schema_name: str
    version: SchemaVersion
    digest: str
    payload: Any

    def raw_digest(self) -> str:
        """The digest that the payload really has, taken over the raw tree as it was written.

        Raises:
            SerializationError: the payload cannot be encoded (a lone surrogate, nesting without end).
        """
        return digest_of_text(self.schema_name, raw_json(self.payload))


def digest_of_text(schema_name: str, canonical_payload: str) -> str:
    """The content digest of a payload's canonical text in the domain of its schema."""
    return text_digest(f"ir:{schema_name}", canonical_payload)


def is_native(tree: Any) -> bool:
    """True when a parsed tree has our own envelope, whatever is wrong inside it."""
    return isinstance(tree, dict) and "schema" in tree and "$type" not in tree


def read_envelope(tree: Any) -> Envelope:
    """The envelope of a parsed snapshot of either form.

    Raises:
        SerializationError: it has none.
    """
    fields = cast("dict[str, Any]", tree) if is_native(tree) else _upstream_fields(tree)
    if is_native(tree):
        name, version, digest = fields.get("schema"), fields.get("version"), fields.get("digest")
        found = _parsed_version(version)
    else:
        name, digest = fields.get("schema_name"), fields.get("content_digest")
        found = decode_tree(fields.get("schema_version"))
    if not (isinstance(name, str) and isinstance(digest, str) and isinstance(found, SchemaVersion)):
        raise SerializationError(NO_ENVELOPE, hint="schema, version or digest is missing or of another kind")
    if "payload" not in fields:
        raise SerializationError(NO_ENVELOPE, hint="the payload is missing")
    return Envelope(name, found, digest, fields["payload"])


def _parsed_version(text: Any) -> SchemaVersion | None:
    try:
        return SchemaVersion.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _upstream_fields(tree: Any) -> dict[str, Any]:
    node = cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
    fields = node.get("fields")
    if node.get("$type") != UPSTREAM_ENVELOPE_TAG or not isinstance(fields, dict):
        raise SerializationError(NO_ENVELOPE)
    return cast("dict[str, Any]", fields)
