"""Reading snapshots of any form: findings and never an exception, whatever the text; migrated loading."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.ir import DistributedTaskIR, SchemaVersion
from dtir.ir.snapshot import FROM_UPSTREAM, decode_snapshot
from dtir.schema import (
    DEFAULT_SCHEMA_MIGRATIONS,
    Err,
    Ok,
    SchemaMigration,
    SchemaMigrationRegistry,
    SerializationError,
)
from dtir.schema.envelope import digest_of_text
from dtir.schema.jsontext import raw_json
from tests.helpers.expected import expected_params, upstream_text
from tests.helpers.programs import program

FIXTURES = Path(__file__).parent / "fixtures"
EX1 = (FIXTURES / "worked-ex1.json").read_text(encoding="utf-8")
EX2 = (FIXTURES / "worked-ex2.json").read_text(encoding="utf-8")
NATIVE = program(name="demo").to_json()
TEXTS = {
    "upstream": EX1,
    "upstream, rich": EX2,
    "native": NATIVE,
    "native, rich": DistributedTaskIR.require_from_json(EX2).to_json(),
}
UPSTREAM, OURS = "blueprinting.distributed-task", "dtir.distributed-task"


def codes(result: Any) -> list[str]:
    match result:
        case Ok():
            return []
        case Err(error):
            assert all(item.message and item.render() and item.hint for item in error)
            return [item.code for item in error]
        case _:
            pytest.fail("neither Ok nor Err")


# -- whatever the text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_the_texts_themselves_load(name: str) -> None:
    assert codes(DistributedTaskIR.from_json(TEXTS[name])) == []
    assert codes(DistributedTaskIR.load_migrated(TEXTS[name])) == []


@pytest.mark.parametrize("name", TEXTS)
def test_any_cut_is_a_finding(name: str) -> None:
    text = TEXTS[name]
    for cut in range(0, len(text), 61):
        assert codes(DistributedTaskIR.from_json(text[:cut])) == ["serialization.snapshot"]
    for cut in range(1, len(text), 211):
        assert codes(DistributedTaskIR.from_json(text[cut:])) == ["serialization.snapshot"]


PIECES = [
    '"', "{", "}", "[", "]", ",", ":", "null", "true", "-1", "0", "1.5", "1e999", "NaN", "\\", "\x00", "é", "\ud800",
    '"\\ud800"', '"$type"', '"$tuple"', '{"$bytes":"@"}', '{"$set":[1,1]}', '{"$map":[]}', "[[0,99999999999]]", "[[5,5]]",
    '"kind"', '{"kind":"call"}', '"blueprinting.ir.id.node"', "99999999999999999999", '{"$tuple":[0]}', "[0]", '""',
]  # fmt: skip


@settings(max_examples=400)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_any_edit_is_a_finding_or_loads(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + data.draw(st.integers(0, 12)) :]
    codes(DistributedTaskIR.from_json(text))
    codes(DistributedTaskIR.load_migrated(text))


def nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a parsed tree."""
    found: list[tuple[Any, Any]] = []
    stack = [tree]
    while stack:
        item = stack.pop()
        keys: Any = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        found += [(item, key) for key in keys]
        stack += [item[key] for key in keys]
    return found


REPLACEMENTS: list[Any] = [
    None, True, -1, 0, 1.5, "x", "", [], {}, [[0, 9]], [[0, 10**12]], 10**30, {"kind": "call"}, {"$type": "x", "fields": {}},
    "\ud800", [0, 0], {"$tuple": []}, "0" * 32, {"$map": [["queue", 1]]}, {"queue": 1},
]  # fmt: skip


@settings(max_examples=300)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_any_change_of_the_tree_is_a_finding_or_loads(name: str, data: st.DataObject) -> None:
    """Changes behind a right digest: they reach the decoder, the constructors and the verifier."""
    tree = json.loads(TEXTS[name])
    payload = tree["payload"] if "payload" in tree else tree["fields"]["payload"]
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(nodes(payload)))
        if data.draw(st.booleans()):
            # A copy: a later change may go into what is put here, and the list is shared by all examples.
            container[key] = deepcopy(data.draw(st.sampled_from(REPLACEMENTS)))
        elif isinstance(container, dict):
            container[data.draw(st.sampled_from(["kind", "x", "$type", "axes", "partial", "name"]))] = container[key]
        else:
            del container[key]
    with_right_digest(tree)
    match DistributedTaskIR.from_json(raw_json(tree)):
        case Ok(loaded):
            assert DistributedTaskIR.require_from_json(loaded.to_json()) == loaded
        case Err(error):
            assert all(item.render() for item in error)


def with_right_digest(tree: dict[str, Any]) -> None:
    """Set the digest to what the text of the raw payload has, as far as it can be said."""
    try:
        if "payload" in tree:
            tree["digest"] = digest_of_text(OURS, raw_json(tree["payload"]))
        else:
            tree["fields"]["content_digest"] = digest_of_text(UPSTREAM, raw_json(tree["fields"]["payload"]))
    except SerializationError:
        pass


@given(st.text() | st.text(st.characters(categories=["Cs"])))
def test_any_other_text_is_a_finding(text: str) -> None:
    assert codes(DistributedTaskIR.from_json(text)) == ["serialization.snapshot"]
    assert codes(DistributedTaskIR.load_migrated(text)) == ["serialization.snapshot"]


@pytest.mark.parametrize(
    "text", ["null", "3", '"x"', "[]", "{}", '{"schema":null}', '{"$type":"blueprinting.ir.snapshot"}']
)
def test_json_that_is_no_snapshot(text: str) -> None:
    assert codes(DistributedTaskIR.from_json(text)) == ["serialization.snapshot"]
    assert codes(DistributedTaskIR.load_migrated(text)) == ["serialization.snapshot"]


@pytest.mark.parametrize("wrong", [b"{}", None, 3])
def test_only_text_is_read(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^text=.* must be a string$"):
        DistributedTaskIR.from_json(wrong)


# -- the ways to load --------------------------------------------------------------------------------------------


def test_require_from_json_raises_with_everything() -> None:
    faulty = replace(program(), name="", inputs=())
    text = raw_json({**json.loads(NATIVE), "payload": json.loads(NATIVE)["payload"] | {"name": ""}})
    with pytest.raises(SerializationError, match=r"^\[serialization\.snapshot\] snapshot: "):
        DistributedTaskIR.require_from_json(text)
    from dtir.ir.native import write_native

    with pytest.raises(SerializationError) as caught:
        DistributedTaskIR.require_from_json(write_native(faulty))
    assert str(caught.value) == "; ".join(item.render() for item in faulty.diagnostics())
    assert "; " in str(caught.value)


def test_a_program_that_breaks_a_rule_can_still_be_had() -> None:
    from dtir.ir.native import write_native

    faulty = replace(program(), name="")
    text = write_native(faulty)
    assert codes(DistributedTaskIR.from_json(text)) == ["distributed.name"]
    match decode_snapshot(text):
        case Ok(found):
            assert found == faulty
        case Err():
            pytest.fail("it can be read")


def test_digests_are_remembered_from_reading() -> None:
    for text in (EX1, NATIVE):
        loaded = DistributedTaskIR.require_from_json(text)
        assert loaded.digest == DistributedTaskIR.require_from_json(loaded.to_json()).digest
    assert DistributedTaskIR.require_from_json(EX1).upstream_digest == "05b247d921f66497eccf1a0da123a7e74ae12a01"


# -- migrated ----------------------------------------------------------------------------------------------------


def test_both_forms_give_the_same_program() -> None:
    plain, migrated = DistributedTaskIR.from_json(EX2), DistributedTaskIR.load_migrated(EX2)
    assert plain.or_raise() == migrated.or_raise()
    assert migrated.or_raise().to_upstream_json() == EX2
    assert DistributedTaskIR.load_migrated(NATIVE).or_raise().to_json() == NATIVE


def test_the_registered_step_does_what_the_readers_do() -> None:
    registry = SchemaMigrationRegistry([FROM_UPSTREAM])
    result = registry.migrate_json(EX2, schema_name=UPSTREAM, target_version=SchemaVersion(1), target_schema=OURS)
    assert result.migration_ids == ("dtir.from-blueprinting-0.0.0",)
    assert result.payload == DistributedTaskIR.require_from_json(EX2).to_json()
    assert result.source_digest == "a0949c25e283a1aef02e254a6966d1db0dff07a8"
    assert FROM_UPSTREAM not in DEFAULT_SCHEMA_MIGRATIONS.steps


STRICTER = {
    "odd-04-defaults-omitted.json": (
        "serialization.migration",
        "canonical IR snapshot digest mismatch during migration",
    ),
    "odd-05-defaults-omitted-rawdigest.json": ("serialization.snapshot", "canonical IR snapshot digest mismatch"),
    "odd-06-unsorted-map.json": ("serialization.migration", "canonical IR snapshot digest mismatch during migration"),
    "odd-07-frozenset-duplicate.json": (
        "serialization.migration",
        "canonical IR snapshot digest mismatch during migration",
    ),
    "bad-03-schema-version.json": (
        "serialization.migration",
        "no migration path for blueprinting.distributed-task@0.0.1 -> 0.0.0",
    ),
}


@pytest.mark.parametrize(("name", "facts"), [*expected_params("valid_noncanonical"), *expected_params("invalid")])
def test_migrated_loading_is_stricter(name: str, facts: dict[str, Any], shared_data: Path) -> None:
    del facts
    text = upstream_text(shared_data, name)
    plain, migrated = DistributedTaskIR.from_json(text), DistributedTaskIR.load_migrated(text)
    if name in STRICTER:
        assert isinstance(migrated, Err)
        (found,) = migrated.error
        assert (found.code, found.message) == STRICTER[name]
    elif name in ("bad-01-digest.json", "bad-02-payload-tampered.json"):
        assert codes(migrated) == ["serialization.migration"]
    else:
        assert codes(migrated) == codes(plain)


def old_native() -> str:
    tree = json.loads(NATIVE)
    tree["version"] = tree["payload"]["header"]["schema_version"] = "0.9.0"
    tree["payload"]["title"] = tree["payload"].pop("name")
    tree["digest"] = digest_of_text(OURS, raw_json(tree["payload"]))
    return raw_json(tree)


def rename(tree: Any) -> Any:
    tree["version"] = tree["payload"]["header"]["schema_version"] = "1.0.0"
    tree["payload"]["name"] = tree["payload"].pop("title")
    tree["digest"] = digest_of_text(OURS, raw_json(tree["payload"]))
    return tree


OLD = SchemaMigration(OURS, SchemaVersion(0, 9), SchemaVersion(1), "test.rename", rename)


def test_an_older_native_snapshot_needs_a_step() -> None:
    text = old_native()
    assert codes(DistributedTaskIR.from_json(text)) == ["serialization.snapshot"]
    assert codes(DistributedTaskIR.load_migrated(text)) == ["serialization.migration"]
    loaded = DistributedTaskIR.load_migrated(text, SchemaMigrationRegistry([OLD]))
    assert loaded.or_raise().to_json() == NATIVE


def test_steps_are_chained_through_the_upstream_format() -> None:
    def modernise(tree: Any) -> Any:
        fields = tree["fields"]
        for versioned in (fields, fields["payload"]["fields"]["header"]["fields"]):
            versioned["schema_name"] = UPSTREAM
        fields["content_digest"] = digest_of_text(UPSTREAM, raw_json(fields["payload"]))
        return tree

    older = SchemaMigration(
        "test.ancestor", SchemaVersion(0), SchemaVersion(0), "test.modernise", modernise, to_schema=UPSTREAM
    )
    tree = json.loads(EX1.replace('"schema_name":"blueprinting.distributed-task"', '"schema_name":"test.ancestor"'))
    tree["fields"]["content_digest"] = digest_of_text("test.ancestor", raw_json(tree["fields"]["payload"]))
    loaded = DistributedTaskIR.load_migrated(raw_json(tree), SchemaMigrationRegistry([older]))
    assert loaded.or_raise().to_upstream_json() == EX1
    assert codes(DistributedTaskIR.load_migrated(raw_json(tree))) == ["serialization.snapshot"]


def test_a_caller_may_bring_another_way_from_upstream() -> None:
    marked: list[int] = []

    def transform(tree: Any) -> Any:
        marked.append(1)
        return FROM_UPSTREAM.transform(tree)

    own = replace(FROM_UPSTREAM, migration_id="test.own", transform=transform)
    loaded = DistributedTaskIR.load_migrated(EX1, SchemaMigrationRegistry([own]))
    assert loaded.or_raise().to_upstream_json() == EX1
    assert len(marked) == 2  # every step runs twice
