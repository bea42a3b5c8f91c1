"""The structural checks that stand on their own, as builders and passes call them."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.ir import (
    RESERVED_ATTRIBUTES,
    BindingAxis,
    NodeId,
    Symbol,
    ValueId,
    reject_reserved_attributes,
    verify_known_references,
    verify_nonnegative_scalar,
    verify_ordered_dag,
    verify_unique_ids,
)
from dtir.schema import DiagnosticBag, FrozenDict

A, B, C = (NodeId.derive(name) for name in "abc")


def codes(bag: DiagnosticBag) -> list[str]:
    return [item.code for item in bag.report()]


def test_the_reserved_names() -> None:
    assert len(RESERVED_ATTRIBUTES) == 26
    assert {"queue", "stream", "device_id", "duration", "model_spec", "batch_size"} <= RESERVED_ATTRIBUTES
    assert all(name == name.lower() for name in RESERVED_ATTRIBUTES)


def test_reserved_names_nested_in_everything() -> None:
    bag = DiagnosticBag()
    reject_reserved_attributes(bag, FrozenDict(), RESERVED_ATTRIBUTES, "x")
    nested = FrozenDict({"a": ({"b": frozenset({FrozenDict({"QUEUE": 1})})}, {"": {"Kernel": 2}}), "start": {"end": 1}})
    reject_reserved_attributes(bag, nested, RESERVED_ATTRIBUTES, "x")
    assert [item.path for item in bag.report()] == [
        ("x", "a", "0", "b", "0", "QUEUE"),
        ("x", "a", "1", "''", "Kernel"),
        ("x", "start"),
        ("x", "start", "end"),
    ]


def test_the_order_inside_sets_does_not_depend_on_hashing() -> None:
    members = frozenset(FrozenDict({"queue": number}) for number in range(20))
    runs: list[list[tuple[str, ...]]] = []
    for content in (members, frozenset(sorted(members, key=hash))):
        bag = DiagnosticBag()
        reject_reserved_attributes(bag, FrozenDict({"a": content, "b": frozenset({object()})}), RESERVED_ATTRIBUTES)
        runs.append([item.path for item in bag.report()])
    assert runs[0] == runs[1]
    assert len(runs[0]) == 20


def test_another_set_of_names() -> None:
    bag = DiagnosticBag()
    reject_reserved_attributes(bag, FrozenDict({"queue": 1, "own": 1}), frozenset({"own"}), "x")
    assert [item.path for item in bag.report()] == [("x", "own")]


def test_unique_ids_and_references() -> None:
    bag = DiagnosticBag()
    verify_unique_ids(bag, [A, B, A, A], lambda item: item, "nodes")
    assert [item.path for item in bag.report()] == [("nodes", "2", "id"), ("nodes", "3", "id")]
    bag = DiagnosticBag()
    for known in ([A, B], {A, B}, (item for item in (A, B))):
        verify_known_references(bag, [A, C], known, "inputs")
    assert codes(bag) == ["reference.unknown"] * 3


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({A: (), B: (A,), C: (A, B)}, []),
        ({A: (B,), B: (A,)}, ["dag.not_topological"]),
        ({A: (A,)}, ["dag.self_dependency", "dag.not_topological"]),
        ({A: (C, C)}, ["dag.duplicate_dependency", "reference.unknown", "reference.unknown"]),
        ({A: (), B: (A, A)}, ["dag.duplicate_dependency"]),
    ],
    ids=str,
)
def test_ordered_dags(edges: dict[NodeId, tuple[NodeId, ...]], expected: list[str]) -> None:
    bag = DiagnosticBag()
    verify_ordered_dag(bag, list(edges), lambda item: item, lambda item: edges[item], "nodes")
    assert codes(bag) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, []),
        (2.5, []),
        (Symbol("b", BindingAxis.WORKLOAD), []),
        (Symbol("b", BindingAxis.WORKLOAD) * -1, []),
        (-1, ["scalar.negative"]),
        (-0.5, ["scalar.negative"]),
        (float("inf"), ["scalar.nonfinite"]),
        (float("nan"), ["scalar.nonfinite"]),
        (True, ["scalar.invalid"]),
        ("1", ["scalar.invalid"]),
        (ValueId.derive("a"), ["scalar.invalid"]),
    ],
    ids=str,
)
def test_quantities(value: Any, expected: list[str]) -> None:
    bag = DiagnosticBag()
    verify_nonnegative_scalar(bag, value, "size", subject=("node:1",))
    assert codes(bag) == expected
    assert all((item.path, item.subject) == (("size",), ("node:1",)) for item in bag.report())
