"""Snapshots in the upstream format (``blueprinting.distributed-task`` 0.0.0): reading, writing, digests.

A program read from upstream carries a header of our own schema with producer, features and parent digests kept, and is
written back byte for byte. What the upstream format cannot hold is found by walking the program, one finding a thing.

Source of the format: the public documentation and code of DeepLink-org/Blueprinting (level 9f4ea74f), as facts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dtir.ir.header import REQUIRED_FEATURE, IRHeader
from dtir.ir.model import IRSnapshot
from dtir.ir.obstacles import upstream_obstacles
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, UPSTREAM_SCHEMA, UPSTREAM_VERSION, DistributedTaskIR
from dtir.ir.upstream_pieces import read_pieces
from dtir.ir.upstream_text import envelope_text, payload_text
from dtir.schema.codec import canonical_json
from dtir.schema.decoding import decode_tree
from dtir.schema.diagnostics import IRVerificationError
from dtir.schema.envelope import NO_ENVELOPE, digest_of_text
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import raw_json

# -- writing -----------------------------------------------------------------------------------------------------


def write_upstream(program: DistributedTaskIR) -> str:
    """The canonical upstream snapshot of a program.

    Raises:
        IRVerificationError: it uses something that the format cannot hold (code ``serialization.upstream``).
        SerializationError: something has no canonical form at all.
    """
    found = upstream_obstacles(program)
    if found:
        raise IRVerificationError(type(program).__name__, found)
    header = _upstream_header(program)
    payload = payload_text(program, header)
    digest = program.remember("upstream_digest", lambda: digest_of_text(UPSTREAM_SCHEMA, payload))
    return envelope_text(payload, digest, header)


def upstream_digest(program: DistributedTaskIR) -> str:
    """The content digest of a program's upstream form.

    Raises:
        SerializationError: the program uses something that the format cannot hold.
    """
    found = upstream_obstacles(program)
    if found:
        raise SerializationError("; ".join(item.render() for item in found))
    return digest_of_text(UPSTREAM_SCHEMA, payload_text(program, _upstream_header(program)))


def _upstream_header(program: DistributedTaskIR) -> IRHeader:
    return program.header.under(UPSTREAM_SCHEMA, UPSTREAM_VERSION)


# -- reading -----------------------------------------------------------------------------------------------------


def program_from_text(text: str) -> DistributedTaskIR | None:
    """The program of a canonical snapshot, read fast; None when the general reader must decide.

    Raises:
        SerializationError: nothing is wrong with it but the digest.
    """
    found = read_pieces(text)
    return None if found is None else _checked(found.program, found.stated_digest, found.digest)


def _checked(program: DistributedTaskIR, stated: str, digest: str) -> DistributedTaskIR:
    if stated != digest:
        raise SerializationError(
            "canonical IR snapshot digest mismatch", hint=f"the envelope states {stated}, the payload has {digest}"
        )
    program.remember("upstream_digest", lambda: digest)
    return program


def program_from_tree(tree: Any) -> DistributedTaskIR:
    """The program of a parsed snapshot, canonical or not.

    The checks come in this order, and the first that fails is the one reported: the tree decodes; it is an envelope;
    schema name and version; required features; kind of payload; metadata equal to the payload's header; digest.

    Raises:
        SerializationError: one of them fails.
    """
    try:
        # White space and the order of keys are gone from a parsed tree, so most texts are canonical by now.
        text = raw_json(tree)
    except SerializationError:
        text = ""  # the decoder says what is wrong, and where it is first
    found = program_from_text(text)
    return found if found is not None else _program_of(decode_tree(tree))


def _program_of(snapshot: Any) -> DistributedTaskIR:
    if not isinstance(snapshot, IRSnapshot):
        raise SerializationError(NO_ENVELOPE)
    if (snapshot.schema_name, snapshot.schema_version) != (UPSTREAM_SCHEMA, UPSTREAM_VERSION):
        found, wanted = f"{snapshot.schema_name}@{snapshot.schema_version}", f"{UPSTREAM_SCHEMA}@{UPSTREAM_VERSION}"
        raise SerializationError(f"snapshot schema {found} is not {wanted}")
    if REQUIRED_FEATURE not in snapshot.feature_set:
        raise SerializationError(f"snapshot is missing required feature epoch(s): {REQUIRED_FEATURE}")
    payload = snapshot.payload
    if not isinstance(payload, DistributedTaskIR):
        raise SerializationError(f"snapshot payload is {type(payload).__name__}, expected DistributedTaskIR")
    if not snapshot.matches_header(payload.header):
        raise SerializationError("snapshot envelope metadata does not match its payload header")
    digest = digest_of_text(UPSTREAM_SCHEMA, canonical_json(payload, depth=2))
    program = replace(payload, header=payload.header.under(NATIVE_SCHEMA, NATIVE_VERSION))
    return _checked(program, snapshot.content_digest, digest)
