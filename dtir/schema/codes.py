"""The codes of reading and writing snapshots."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "serialization.snapshot",
        "The text is no snapshot that can be trusted: it is no JSON, repeats a key, holds NaN, names a record, field "
        "or enumeration value that does not exist, or its content does not have the digest that the envelope states. "
        "The first thing found ends the reading, since nothing behind it can be relied upon.",
        '{"content_digest": "05b2...", ...}   with one number of the payload changed by hand',
        "the snapshot as its writer wrote it, or one written anew from the changed program",
        "write the snapshot again with the tool that made it; edit programs, not snapshots",
    ),
    CodeEntry(
        "serialization.migration",
        "The snapshot has a schema or version from which no migration is registered, or its payload does not have "
        "the digest that its envelope states, so that it is not migrated.",
        "a snapshot of schema version 0.0.1 where migrations exist from 0.0.0 only",
        "a snapshot of a version that a registered migration starts from",
        "convert it with the version that wrote it, or register a migration",
    ),
    CodeEntry(
        "serialization.upstream",
        "The program uses something that the upstream format has no place for: a field, task body, collective, "
        "enumeration value or record of dtir's own, or nesting beyond what its reader opens. Leaving it out would make "
        "another program of it.",
        'to_upstream_json() of a value with ShardingSpec(..., partial=Partial(("tp",), SUM))',
        "the same program in the native form, or lowered to what the upstream format holds",
        "write the native form, or lower the program first",
    ),
    CodeEntry(
        "serialization.unsupported",
        "The program holds something that no snapshot can: an object of a foreign class, NaN or infinity, text that is "
        "no Unicode, or nesting without end. It works in memory and has no digest, so it cannot be compared or saved.",
        'attributes={"callback": object()}   or   attributes={"limit": float("nan")}',
        'attributes={"callback": "scheduler.step"}   attributes={"limit": 0.5}',
        "use text, whole numbers, finite floats, booleans, tuples, sets and maps of these",
    ),
    CodeEntry(
        "schema.name",
        "The header names another schema than the one of this record, so a reader would take it for something else.",
        'header=make_header("blueprinting.model", ...) on a distributed program',
        'header=make_header("blueprinting.distributed-task", ...)',
        "build the header with make_header and the schema name of the record",
    ),
    CodeEntry(
        "schema.version",
        "The header states a version that this code does not write. Fields may mean something else there.",
        "schema_version=SchemaVersion(9, 9, 9)",
        "schema_version=SchemaVersion(0, 0, 0)",
        "use the current version, or load through a migration",
    ),
    CodeEntry(
        "schema.feature_epoch",
        "The header lacks a feature that every reader of this version requires.",
        "feature_set=frozenset()",
        'feature_set=frozenset({"typed-semantics"})',
        "build the header with make_header, which adds the required features",
    ),
)
