"""Open data as plain JSON: what each kind looks like, and that nothing is lost."""

from __future__ import annotations

import json
import sys
from enum import Enum
from typing import Any

import pytest
from hypothesis import given

from dtir.ir import NodeId, RankRange, ReductionKind, TensorType
from dtir.schema import FrozenDict, SerializationError
from dtir.schema.frozen import exact_equal
from dtir.schema.jsontext import parse_json
from dtir.schema.opendata import (
    MAX_PART_DEPTH,
    PlainError,
    from_open_tree,
    member_order,
    open_text,
    path_text,
    plain_error,
)
from tests.helpers.strategies import frozen_values

NODE = NodeId("0" * 32)

FORMS: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (1, "1"),
    (1.0, "1.0"),
    ("é", '"é"'),
    ((), "[]"),
    ((1, (True,)), "[1,[true]]"),
    (FrozenDict(), "{}"),
    (FrozenDict({"b": 1, "a": ()}), '{"a":[],"b":1}'),
    (FrozenDict({"$a": 1, "b": 2}), '{"$map":[["$a",1],["b",2]]}'),
    (FrozenDict({"a$": 1}), '{"a$":1}'),
    (b"x", '{"$bytes":"eA=="}'),
    (frozenset(), '{"$set":[]}'),
    (frozenset({10, 9, "a"}), '{"$set":["a",10,9]}'),
    (frozenset({frozenset({1})}), '{"$set":[{"$set":[1]}]}'),
    (ReductionKind.AVERAGE, '{"$enum":"blueprinting.ir.distributed-task.reduction-kind","value":"avg"}'),
    (NODE, '{"$record":"blueprinting.ir.id.node","value":"00000000000000000000000000000000"}'),
    (
        TensorType((2,), "f32"),
        '{"$record":"blueprinting.ir.tensor-type","attributes":{},"dtype":"f32","layout":null,"shape":[2]}',
    ),
    (RankRange(0, 3), "[0,1,2]"),
    (RankRange(0, 10**6, 2), '{"$record":"dtir.ir.rank-range","start":0,"step":2,"stop":1000000}'),
]


@pytest.mark.parametrize(("value", "text"), FORMS, ids=lambda item: str(item)[:40])
def test_forms(value: Any, text: str) -> None:
    assert open_text(value) == text
    assert exact_equal(from_open_tree(json.loads(text)), value)


@given(frozen_values())
def test_reading_undoes_writing(value: Any) -> None:
    text = open_text(value)
    assert json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True, separators=(",", ":")) == text
    again = from_open_tree(json.loads(text))
    assert exact_equal(again, value)
    assert open_text(again) == text


@pytest.mark.parametrize(
    ("tree", "where", "message"),
    [
        ({"a": [1, {"$bytes": 3}]}, ".a[1]", "$bytes must hold base64 text"),
        ({"$bytes": "*"}, "", "$bytes must hold base64 text"),
        ({"$set": 1}, "", "expected an array"),
        ({"$set": [1, 1]}, "", "$set holds an item twice"),
        ({"$set": [1, True]}, "", "$set holds an item twice"),
        ({"$map": [["a", 1], ["a", 2]]}, "", "$map holds a key twice"),
        ({"$map": [["a"]]}, "", "$map must hold [key, value] pairs"),
        ({"$map": [[1, 2]]}, "", "$map must hold [key, value] pairs"),
        ({"$map": {"a": 1}}, "", "expected an array"),
        ({"$enum": "no.such", "value": 1}, "", "unknown enumeration 'no.such'"),
        ({"$enum": 3, "value": 1}, "", "unknown enumeration 3"),
        (
            {"$enum": "blueprinting.ir.effect-kind", "value": "x"},
            "",
            "blueprinting.ir.effect-kind has no member 'x'",
        ),
        ({"$record": "no.such"}, "", "unknown record 'no.such'"),
        ({"$record": 3}, "", "unknown record 3"),
        ({"x": {"$record": "blueprinting.ir.id.node", "value": "X"}}, ".x", "invalid NodeId value: 'X'"),
        (
            {"$record": "blueprinting.ir.id.node"},
            "",
            "NodeId.__init__() missing 1 required positional argument: 'value'",
        ),
        ({"$other": 1}, "", "unknown tagged object with the key '$other'"),
        ({"$bytes": "eA==", "x": 1}, "", "unknown tagged object with the key '$bytes'"),
        ([[1e999]], "[0][0]", "numbers must be finite"),
    ],
    ids=str,
)
def test_what_is_refused(tree: Any, where: str, message: str) -> None:
    with pytest.raises(PlainError) as caught:
        from_open_tree(tree, (None, "root"))
    assert path_text(caught.value.path) == f"root{where}"
    assert caught.value.message == message
    assert str(plain_error(caught.value)) == f"root{where}: {message}"


class Stranger(Enum):
    ONE = 1


@pytest.mark.parametrize("value", [object(), [1], Stranger.ONE, (frozenset({Stranger.ONE}),)], ids=str)
def test_what_has_no_form(value: Any) -> None:
    with pytest.raises(SerializationError, match="unsupported canonical value"):
        open_text(value)
    assert member_order(value)


def test_depth_is_bounded_and_independent_of_the_caller() -> None:
    value: Any = 1
    for _ in range(MAX_PART_DEPTH - 2):
        value = (value,)
    text = open_text(value)
    tree = parse_json(text)

    def below(levels: int) -> Any:
        return (open_text(value), from_open_tree(tree)) if levels == 0 else below(levels - 1)

    written, read = below(sys.getrecursionlimit() - 200)
    assert written == text
    assert exact_equal(read, value)
    for _ in range(3):
        value = (value,)
    with pytest.raises(SerializationError, match=f"nests deeper than {MAX_PART_DEPTH} levels"):
        open_text(value)


def test_a_set_of_what_nests_too_deep_to_compare() -> None:
    tree: Any = {"a": 1}
    for _ in range(3000):
        tree = {"a": tree}
    with pytest.raises(PlainError, match="nests too deep to be compared"):
        from_open_tree({"$set": [tree]})
