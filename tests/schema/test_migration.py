"""Migrations: one way, deterministic, digests checked at every step."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from dtir.schema import (
    DEFAULT_SCHEMA_MIGRATIONS,
    SchemaMigration,
    SchemaMigrationRegistry,
    SchemaVersion,
    SerializationError,
)
from dtir.schema.envelope import digest_of_text
from dtir.schema.jsontext import raw_json

NAME = "test.migration"
V0, V1, V2, V3 = (SchemaVersion(0, minor) for minor in range(4))


def version_tree(version: SchemaVersion) -> dict[str, Any]:
    fields = {"major": version.major, "minor": version.minor, "patch": version.patch}
    return {"$type": "blueprinting.ir.schema-version", "fields": fields}


def upstream_tree(version: SchemaVersion, payload: Any, name: str = NAME) -> dict[str, Any]:
    return {
        "$type": "blueprinting.ir.snapshot",
        "fields": {
            "schema_name": name,
            "schema_version": version_tree(version),
            "content_digest": digest_of_text(name, raw_json(payload)),
            "payload": payload,
        },
    }


def native_tree(version: SchemaVersion, payload: Any, name: str) -> dict[str, Any]:
    digest = digest_of_text(name, raw_json(payload))
    return {"schema": name, "version": str(version), "digest": digest, "payload": payload}


def raise_by_one(target: SchemaVersion) -> Callable[[Any], Any]:
    def transform(tree: Any) -> Any:
        payload = tree["fields"]["payload"]
        payload["revision"] += 1  # a step may change what it is given
        return upstream_tree(target, payload)

    return transform


def step(source: SchemaVersion, target: SchemaVersion, **fields: Any) -> SchemaMigration:
    given: dict[str, Any] = {"migration_id": f"{source}-to-{target}", "transform": raise_by_one(target)}
    return SchemaMigration(NAME, source, target, **{**given, **fields})


def registry(*steps: SchemaMigration) -> SchemaMigrationRegistry:
    return SchemaMigrationRegistry(steps)


def text_of(version: SchemaVersion, revision: int = 1) -> str:
    return raw_json(upstream_tree(version, {"revision": revision}))


# -- registering -------------------------------------------------------------------------------------------------


def test_nothing_is_registered_at_first() -> None:
    assert DEFAULT_SCHEMA_MIGRATIONS.steps == ()
    for name in ("blueprinting.distributed-task", "dtir.distributed-task"):
        with pytest.raises(SerializationError, match=rf"no migration path for {name}@0\.0\.0 -> 0\.1\.0"):
            DEFAULT_SCHEMA_MIGRATIONS.path(name, V0, V1)


def test_versions_advance_within_a_schema() -> None:
    for target in (V1, V0):
        with pytest.raises(ValueError, match="schema migrations must advance the version"):
            step(V1, target)
    assert step(V1, V0, to_schema="test.other").target_schema == "test.other"


def test_an_edge_and_an_id_are_registered_once() -> None:
    known = registry(step(V0, V1))
    with pytest.raises(ValueError, match="duplicate schema migration edge"):
        known.register(step(V0, V1, migration_id="again"))
    with pytest.raises(ValueError, match=r"duplicate schema migration id: '0\.0\.0-to-0\.1\.0'"):
        known.register(step(V1, V2, migration_id="0.0.0-to-0.1.0"))
    known.register(
        SchemaMigration("test.other", V0, V1, "0.0.0-to-0.1.0", lambda tree: tree)
    )  # another schema, another name space
    assert known.starts_from("test.other")
    assert not known.starts_from("test.third")


def test_a_cycle_through_another_schema_is_refused() -> None:
    known = registry(step(V0, V1), step(V1, V0, to_schema="test.other", migration_id="out"))
    with pytest.raises(ValueError, match=r"schema migration cycle: test\.other@0\.0\.0 -> test\.migration@0\.0\.0"):
        known.register(SchemaMigration("test.other", V0, V0, "back", lambda tree: tree, to_schema=NAME))


# -- paths -------------------------------------------------------------------------------------------------------


def test_the_one_way_is_found() -> None:
    known = registry(step(V1, V2), step(V0, V1), step(V2, V3))
    assert [item.migration_id for item in known.path(NAME, V0, V2)] == ["0.0.0-to-0.1.0", "0.1.0-to-0.2.0"]
    assert known.path(NAME, V2, V2) == ()
    assert known.path("test.unknown", V0, V0) == ()


def test_no_way_and_two_ways_are_errors() -> None:
    known = registry(step(V0, V1), step(V1, V2))
    with pytest.raises(SerializationError, match=r"no migration path for test\.migration@0\.1\.0 -> 0\.0\.0") as caught:
        known.path(NAME, V1, V0)
    assert caught.value.hint is not None
    assert "test.migration@0.0.0 -> test.migration@0.1.0" in caught.value.hint
    known.register(step(V0, V2, migration_id="direct"))
    with pytest.raises(SerializationError, match=r"ambiguous migration path for test\.migration@0\.0\.0 -> 0\.2\.0"):
        known.path(NAME, V0, V2)
    assert len(known.path(NAME, V0, V1)) == 1


def test_ways_are_counted_not_listed() -> None:
    # Forty diamonds in a row have 2**40 ways; listing them would not end.
    known = SchemaMigrationRegistry()
    for index in range(40):
        first, left, right, last = (SchemaVersion(index, minor) for minor in (0, 1, 2, 3))
        for source, target in ((first, left), (first, right), (left, last), (right, last)):
            known.register(step(source, target))
        known.register(step(last, SchemaVersion(index + 1)))
    with pytest.raises(SerializationError, match="ambiguous") as caught:
        known.path(NAME, SchemaVersion(0), SchemaVersion(40))
    assert caught.value.hint == f"there are {2**40} ways"


def test_a_long_way() -> None:
    known = registry(*(step(SchemaVersion(number), SchemaVersion(number + 1)) for number in range(3000)))
    assert len(known.path(NAME, SchemaVersion(0), SchemaVersion(3000))) == 3000


def test_a_way_to_another_schema() -> None:
    known = registry(step(V0, V1), step(V1, V0, to_schema="test.other", migration_id="out"))
    assert len(known.path(NAME, V0, V0, target_schema="test.other")) == 2
    with pytest.raises(SerializationError, match=r"no migration path for .*@0\.0\.0 -> test\.other@0\.1\.0"):
        known.path(NAME, V0, V1, target_schema="test.other")


# -- running -----------------------------------------------------------------------------------------------------


def test_every_step_is_taken_and_named() -> None:
    known = registry(step(V0, V1), step(V1, V2))
    result = known.migrate_json(text_of(V0), schema_name=NAME, target_version=V2)
    assert json.loads(result.payload) == upstream_tree(V2, {"revision": 3})
    assert result.payload == raw_json(json.loads(result.payload))
    assert (result.schema_name, result.source_version, result.target_version) == (NAME, V0, V2)
    assert result.migration_ids == ("0.0.0-to-0.1.0", "0.1.0-to-0.2.0")
    assert result.source_digest == digest_of_text(NAME, '{"revision":1}')
    assert result.target_digest == digest_of_text(NAME, '{"revision":3}')


def test_nothing_to_do_changes_nothing() -> None:
    text = text_of(V1)
    result = registry(step(V0, V1)).migrate_json(text, schema_name=NAME, target_version=V1)
    assert (result.payload, result.migration_ids) == (text, ())
    assert result.source_digest == result.target_digest


def test_to_another_schema_and_form() -> None:
    def transform(tree: Any) -> Any:
        return native_tree(V3, tree["fields"]["payload"], "test.other")

    known = registry(step(V0, V1), step(V1, V3, to_schema="test.other", transform=transform, migration_id="out"))
    result = known.migrate_json(text_of(V0), schema_name=NAME, target_version=V3, target_schema="test.other")
    assert (result.schema_name, result.target_version) == ("test.other", V3)
    assert json.loads(result.payload)["payload"] == {"revision": 2}


def test_the_source_digest_is_checked_on_the_raw_payload() -> None:
    tree = upstream_tree(V0, {"revision": 1})
    tree["fields"]["payload"]["revision"] = 2
    for target in (V0, V1):
        with pytest.raises(SerializationError, match="digest mismatch during migration"):
            registry(step(V0, V1)).migrate_json(raw_json(tree), schema_name=NAME, target_version=target)


def test_white_space_and_key_order_do_not_matter() -> None:
    pretty = json.dumps(upstream_tree(V0, {"revision": 1, "a": 2}), indent=2)
    result = registry(step(V0, V1)).migrate_json(pretty, schema_name=NAME, target_version=V1)
    assert json.loads(result.payload)["fields"]["payload"] == {"revision": 2, "a": 2}


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (lambda tree: tree, "yields test.migration@0.0.0 instead of test.migration@0.1.0"),
        (lambda tree: upstream_tree(V1, {}, "test.other"), "yields test.other@0.1.0 instead of test.migration@0.1.0"),
        (lambda tree: {"fields": {}}, "must contain an IR snapshot envelope"),
        (
            lambda tree: {
                **upstream_tree(V1, {"revision": 1}),
                "fields": {**upstream_tree(V1, 1)["fields"], "payload": 2},
            },
            "digest mismatch during migration",
        ),
    ],
    ids=["version kept", "other schema", "no envelope", "digest kept"],
)
def test_what_a_step_yields_is_checked(transform: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        registry(step(V0, V1, transform=transform)).migrate_json(text_of(V0), schema_name=NAME, target_version=V1)


def test_a_step_that_depends_on_anything_else_is_found_out() -> None:
    counter = itertools.count()
    moody = step(V0, V1, transform=lambda tree: upstream_tree(V1, {"revision": next(counter)}))
    with pytest.raises(SerializationError, match=r"'0\.0\.0-to-0\.1\.0' is nondeterministic"):
        registry(moody).migrate_json(text_of(V0), schema_name=NAME, target_version=V1)


def test_true_and_one_are_not_the_same_outcome() -> None:
    values = itertools.cycle([1, True])
    moody = step(V0, V1, transform=lambda tree: upstream_tree(V1, {"revision": next(values)}))
    with pytest.raises(SerializationError, match="is nondeterministic"):
        registry(moody).migrate_json(text_of(V0), schema_name=NAME, target_version=V1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "invalid canonical JSON"),
        ("[]", "must contain an IR snapshot envelope"),
        (raw_json(upstream_tree(V0, {}, "test.other")), "snapshot schema test.other is not test.migration"),
    ],
)
def test_what_is_no_snapshot_of_the_schema(text: str, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        registry().migrate_json(text, schema_name=NAME, target_version=V0)
