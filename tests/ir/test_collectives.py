"""Collectives and transfers."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectiveKind,
    CollectivePermute,
    CollectiveSpec,
    PeerTransfer,
    RankRange,
    ReduceScatter,
    ReductionKind,
    collective_kind,
    make_collective_spec,
)
from dtir.schema import adt_closure, adt_manifest, record_spec
from dtir.schema.authoring import enum_spec_of

SUM = ReductionKind.SUM
MADE: list[tuple[CollectiveKind, Any, dict[str, Any]]] = [
    (CollectiveKind.ALL_REDUCE, AllReduce((0, 1), 8, SUM), {"reduction": SUM}),
    (CollectiveKind.REDUCE_SCATTER, ReduceScatter((0, 1), 8, SUM), {"reduction": SUM}),
    (CollectiveKind.ALL_GATHER, AllGather((0, 1), 8), {}),
    (CollectiveKind.ALL_TO_ALL, AllToAll((0, 1), 8), {}),
    (CollectiveKind.BROADCAST, Broadcast((0, 1), 8, 1), {"root": 1}),
    (CollectiveKind.COLLECTIVE_PERMUTE, CollectivePermute((0, 1), 8, ((0, 1),)), {"pairs": ((0, 1),)}),
]


@pytest.mark.parametrize(("kind", "spec", "fields"), MADE, ids=[kind.value for kind, _, _ in MADE])
def test_kinds_and_specs(kind: CollectiveKind, spec: Any, fields: dict[str, Any]) -> None:
    assert collective_kind(spec) is kind
    assert make_collective_spec(kind, (0, 1), 8, **fields) == spec


@pytest.mark.parametrize(("kind", "spec", "fields"), MADE, ids=[kind.value for kind, _, _ in MADE])
def test_fields_that_a_kind_does_not_have_are_refused(kind: CollectiveKind, spec: Any, fields: dict[str, Any]) -> None:
    label = kind.value.replace("_", "-")
    for name, value in (("reduction", SUM), ("root", 0), ("pairs", ((0, 1),))):
        if name not in fields:
            with pytest.raises(ValueError, match=rf"{label} does not accept {name}"):
                make_collective_spec(kind, (0, 1), 8, **fields, **{name: value})
    for name in fields:
        with pytest.raises(ValueError, match=rf"{label} requires {name}"):
            make_collective_spec(kind, (0, 1), 8)


def test_the_family_and_its_tags() -> None:
    assert adt_closure(CollectiveSpec) == {type(spec) for _, spec, _ in MADE}
    assert [item.local_tag for item in adt_manifest(CollectiveSpec)] == [
        "all-gather",
        "all-reduce",
        "all-to-all",
        "broadcast",
        "collective-permute",
        "reduce-scatter",
    ]
    assert record_spec(AllReduce).tag == "blueprinting.ir.distributed-task.collective.all-reduce"
    assert [cls.__name__ for cls in adt_closure(CollectiveSpec) if record_spec(cls).extension] == ["CollectivePermute"]
    spec = enum_spec_of(CollectiveKind)
    assert spec is not None
    assert spec.extensions == {"COLLECTIVE_PERMUTE"}


@pytest.mark.parametrize("participants", [(), (0, 0), (-1, 0), [0], (True,), ("0",)], ids=str)
def test_participants_are_distinct_ranks(participants: Any) -> None:
    with pytest.raises(TypeError, match=r"AllGather\.participants must match"):
        AllGather(participants, 8)


def test_a_run_of_participants() -> None:
    everyone = RankRange(0, 2_000_000_000)
    assert AllGather(everyone, 8).participants is everyone
    assert Broadcast(everyone, 8, 1_999_999_999).root == 1_999_999_999


@pytest.mark.parametrize("size", [True, "8", None, float("nan"), (8,)], ids=str)
def test_sizes_are_scalars(size: Any) -> None:
    with pytest.raises(TypeError, match=r"AllGather\.message_bytes must match"):
        AllGather((0,), size)


def test_broadcast_root() -> None:
    with pytest.raises(ValueError, match="broadcast root must be one of its participants"):
        Broadcast((0, 1), 8, 2)


def test_transfers() -> None:
    assert PeerTransfer(0, 1, 8).channel == "default"
    with pytest.raises(ValueError, match="peer transfer endpoints must differ"):
        PeerTransfer(1, 1, 8)
    with pytest.raises(TypeError, match=r"PeerTransfer\.channel must match"):
        PeerTransfer(0, 1, 8, "")


def test_reductions() -> None:
    spec = enum_spec_of(ReductionKind)
    assert spec is not None
    assert {item.value for item in ReductionKind if item.name not in spec.extensions} == {
        "sum",
        "max",
        "min",
        "product",
    }
