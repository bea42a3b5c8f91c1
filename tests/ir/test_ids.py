"""Identifiers and lineage."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from dtir.ir import (
    BufferId,
    CommandId,
    DeviceId,
    InstructionId,
    InvalidIdError,
    Lineage,
    LineageKind,
    MemoryRegionId,
    NodeId,
    QueueId,
    RegionId,
    StableId,
    TensorType,
    TokenId,
    ValueId,
)
from dtir.schema import canonical_json, record_spec
from dtir.schema.authoring import record_classes

PREFIXES = {
    BufferId: "buffer",
    CommandId: "command",
    DeviceId: "device",
    InstructionId: "instruction",
    MemoryRegionId: "memory-region",
    NodeId: "node",
    QueueId: "queue",
    TokenId: "token",
    ValueId: "value",
}
HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(("cls", "prefix"), PREFIXES.items(), ids=PREFIXES.values())
def test_kinds_of_the_format(cls: Any, prefix: str) -> None:
    made = cls(HEX)
    assert str(made) == f"{prefix}:{HEX}"
    assert cls.parse(str(made)) == made
    assert record_spec(cls).tag == f"blueprinting.ir.id.{prefix}"
    assert canonical_json(made) == f'{{"$type":"blueprinting.ir.id.{prefix}","fields":{{"value":"{HEX}"}}}}'
    assert [item.name for item in record_spec(cls).fields] == ["value"]


def test_the_region_id_is_our_own() -> None:
    assert record_spec(RegionId).extension
    assert set(record_classes(StableId)) == {*PREFIXES, RegionId}


@pytest.mark.parametrize("value", ["", HEX[:-1], HEX + "0", HEX.upper(), "g" * 32, f"node:{HEX}", HEX + "\n"])
def test_other_text_is_no_id(value: str) -> None:
    with pytest.raises(InvalidIdError) as caught:
        NodeId(value)
    assert str(caught.value) == f"invalid NodeId value: {value!r}"
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("text", ["", HEX, f"value:{HEX}", f"Node:{HEX}", "node:", "node:xyz", f"node:{HEX} "])
def test_parse_wants_its_prefix(text: str) -> None:
    with pytest.raises(InvalidIdError):
        NodeId.parse(text)


def test_derived_ids_are_facts_of_the_format() -> None:
    assert ValueId.derive("ex2", "x").value == "389fbba05f0279fcbafae6bd67ae444d"
    assert NodeId.derive("ex2", 0).value == "32b74bedb61ec09bf7522922474a0c09"
    expected = hashlib.blake2b(b'value\0{"$tuple":["ex2","x"]}', digest_size=16).hexdigest()
    assert ValueId.derive("ex2", "x").value == expected


def test_derivation_depends_on_every_part_and_its_kind() -> None:
    parts: list[tuple[Any, ...]] = [(), (1,), (1.0,), (True,), ("1",), ((1,),), (1, 1), (TensorType((1,), "f32"),)]
    made = {NodeId.derive(*item) for item in parts}
    assert len(made) == len(parts)
    assert NodeId.derive(1).value != ValueId.derive(1).value
    assert NodeId.derive(ValueId.derive("a")) == NodeId.derive(ValueId.derive("a"))


def test_new_ids_differ() -> None:
    assert NodeId.new() != NodeId.new()
    assert len(NodeId.new().value) == 32


def test_ids_are_ordered_within_their_class() -> None:
    low, high = NodeId("0" * 32), NodeId("f" * 32)
    assert low < high
    assert sorted([high, low]) == [low, high]
    assert NodeId(HEX) != ValueId(HEX)
    with pytest.raises(TypeError):
        _ = NodeId(HEX) < ValueId(HEX)  # type: ignore[operator]


def test_lineage() -> None:
    assert Lineage.root() == Lineage(LineageKind.ROOT, "import")
    assert Lineage.root("build").transform == "build"
    source = NodeId(HEX)
    assert Lineage.lowered("pass", (source,)) == Lineage(LineageKind.LOWERED, "pass", (source,))
    assert [kind.value for kind in LineageKind] == [
        "root",
        "preserved",
        "cloned",
        "decomposed",
        "fused",
        "lowered",
        "generated",
    ]
    mixed = (NodeId(HEX), ValueId(HEX), TokenId(HEX))
    assert Lineage.lowered("pass", mixed).sources == mixed


def test_what_lineage_refuses() -> None:
    source = NodeId(HEX)
    with pytest.raises(ValueError, match="root lineage cannot have source IDs"):
        Lineage(LineageKind.ROOT, "x", (source,))
    with pytest.raises(TypeError, match=r"Lineage\.sources must match"):
        Lineage.lowered("x", (source, source))
    with pytest.raises(TypeError, match=r"Lineage\.transform must match"):
        Lineage.root("")
