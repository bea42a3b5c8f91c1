"""Reading snapshots of every form: what is wrong comes back as diagnostics, never as an exception."""

from __future__ import annotations

from typing import Any

from dtir.ir.native import program_from_native_tree, write_native
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, UPSTREAM_SCHEMA, UPSTREAM_VERSION, DistributedTaskIR
from dtir.ir.upstream import program_from_text, program_from_tree
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.envelope import Envelope, is_native, read_envelope
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import parse_json
from dtir.schema.migration import (
    DEFAULT_SCHEMA_MIGRATIONS,
    SchemaMigration,
    SchemaMigrationRegistry,
    check_raw_digest,
)
from dtir.schema.result import Checked, Err, Ok

_UNREADABLE = "serialization.snapshot"
_UNMIGRATED = "serialization.migration"
_DEFAULT_HINT = "write the snapshot again with the tool that made it"


def read_snapshot(text: str) -> Checked[DistributedTaskIR]:
    """Read and verify a snapshot, native or upstream.

    Returns:
        The program, or `Err`: one ``serialization.snapshot`` finding when the text cannot be trusted, else everything
        that the structural verifier found.

    Raises:
        TypeError: `text` is no string.
    """
    return decode_snapshot(text).and_then(DistributedTaskIR.verify)


def decode_snapshot(text: str) -> Checked[DistributedTaskIR]:
    """Read a snapshot without judging the program, so that one that breaks a rule can still be shown.

    Returns:
        The program, or `Err` with one ``serialization.snapshot`` finding when the text cannot be trusted.

    Raises:
        TypeError: `text` is no string.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise TypeError(f"text={text!r:.40} ({type(text).__name__}) must be a string")
    try:
        program = program_from_text(text)
        if program is None:
            tree = parse_json(text)
            program = program_from_native_tree(tree, len(text)) if is_native(tree) else program_from_tree(tree)
    except SerializationError as error:
        return _refused(_UNREADABLE, error)
    return Ok(program)


def _refused(code: str, error: SerializationError) -> Err[DiagnosticSet]:
    return Err(DiagnosticSet.of(Diagnostic(code, str(error), ("snapshot",), hint=error.hint or _DEFAULT_HINT)))


# -- migrations --------------------------------------------------------------------------------------------------


def _from_upstream(tree: Any) -> Any:
    return parse_json(write_native(program_from_tree(tree)))


FROM_UPSTREAM = SchemaMigration(
    UPSTREAM_SCHEMA,
    UPSTREAM_VERSION,
    NATIVE_VERSION,
    "dtir.from-blueprinting-0.0.0",
    _from_upstream,
    to_schema=NATIVE_SCHEMA,
)
"""The step from the upstream format to ours; every `load_migrated` knows it."""


def load_migrated(text: str, registry: SchemaMigrationRegistry | None = None) -> Checked[DistributedTaskIR]:
    """Read a snapshot of any schema and version from which registered steps lead to the native form.

    Stricter than `read_snapshot`: the digest is checked over the raw payload, so that a snapshot that is not canonical
    (unsorted maps, omitted defaults) is refused.

    Args:
        text: the snapshot.
        registry: further steps; None means `DEFAULT_SCHEMA_MIGRATIONS`. The step from upstream is always known.

    Returns:
        The program, or `Err` with ``serialization.migration`` when it cannot be migrated, else what `read_snapshot` says.
    """
    known = _with_upstream(DEFAULT_SCHEMA_MIGRATIONS if registry is None else registry)
    try:
        envelope = read_envelope(parse_json(text))
    except SerializationError as error:
        return _refused(_UNREADABLE, error)
    if envelope.schema_name != NATIVE_SCHEMA and not known.starts_from(envelope.schema_name):
        return read_snapshot(text)  # which says that it is of another schema
    try:
        steps = _steps(known, envelope)
        if steps in ((), (FROM_UPSTREAM,)):
            # The readers do what the step does, without going through the native text.
            check_raw_digest(envelope)
        else:
            text = known.migrate_json(
                text, schema_name=envelope.schema_name, target_version=NATIVE_VERSION, target_schema=NATIVE_SCHEMA
            ).payload
    except SerializationError as error:
        return _refused(_UNMIGRATED, error)
    return read_snapshot(text)


def _with_upstream(registry: SchemaMigrationRegistry) -> SchemaMigrationRegistry:
    if any(step.schema_name == UPSTREAM_SCHEMA and step.target_schema == NATIVE_SCHEMA for step in registry.steps):
        return registry  # the caller has a way of its own
    return SchemaMigrationRegistry((*registry.steps, FROM_UPSTREAM))


def _steps(known: SchemaMigrationRegistry, envelope: Envelope) -> tuple[SchemaMigration, ...]:
    if envelope.schema_name == UPSTREAM_SCHEMA and envelope.version != UPSTREAM_VERSION:
        # Said in terms of the format that the snapshot is in: its newest version is where our step begins.
        known.path(UPSTREAM_SCHEMA, envelope.version, UPSTREAM_VERSION)
    return known.path(envelope.schema_name, envelope.version, NATIVE_VERSION, target_schema=NATIVE_SCHEMA)
