"""`FrozenDict`, `freeze`, `thaw` and exact equality."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251 - only objects of this test
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.schema import EMPTY_MAP, FrozenDict, freeze, record, thaw
from dtir.schema.frozen import exact_equal, exact_key
from dtir.schema.opendata import open_text
from tests.helpers.strategies import frozen_values, json_like


@record("test.frozen.cell")
class Cell:
    content: Any


# -- building ----------------------------------------------------------------------------------------------------


def test_keys_are_kept_in_order_and_values_frozen() -> None:
    made = FrozenDict({"b": [1, {"x": {2}}], "a": None})
    assert list(made) == ["a", "b"]
    assert made["b"] == (1, FrozenDict({"x": frozenset({2})}))
    assert repr(made) == "FrozenDict({'a': None, 'b': (1, FrozenDict({'x': frozenset({2})}))})"
    assert FrozenDict(items=[("b", 1), ("a", 2)]) == FrozenDict({"a": 2, "b": 1})
    assert len(FrozenDict()) == 0
    assert FrozenDict() == EMPTY_MAP


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="not both"):
        FrozenDict({}, items=[])
    with pytest.raises(TypeError, match="FrozenDict keys must be strings"):
        FrozenDict({1: 2})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="FrozenDict keys must be strings"):
        FrozenDict({"a": {1: 2}})
    with pytest.raises(ValueError, match="duplicate FrozenDict key: 'k'"):
        FrozenDict(items=[("k", 1), ("k", 1)])


def test_it_cannot_be_changed() -> None:
    made: Any = FrozenDict({"a": 1})
    with pytest.raises(TypeError):
        made["a"] = 2
    with pytest.raises(AttributeError, match="immutable"):
        made.other = 1
    with pytest.raises(AttributeError, match="immutable"):
        del made._mapping
    with pytest.raises(KeyError):
        made["b"]


def test_evolve_thaw_copy_and_pickle() -> None:
    made = FrozenDict({"a": (1,), "b": frozenset({3, 1})})
    assert made.evolve(a=2, c=[4]) == FrozenDict({"a": 2, "b": frozenset({1, 3}), "c": (4,)})
    assert made == FrozenDict({"a": (1,), "b": frozenset({3, 1})})
    assert made.to_dict() == {"a": [1], "b": [1, 3]}
    assert type(made.to_dict()) is dict
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made


def test_a_foreign_object_may_stand_in_it() -> None:
    thing = object()
    made = FrozenDict({"a": thing})
    assert made["a"] is thing
    assert FrozenDict({"a": thing}) == made
    assert FrozenDict({"a": object()}) != made


def test_what_cannot_be_hashed_fails_only_when_hashed() -> None:
    made = FrozenDict({"a": bytearray(b"x")})
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)
    assert hash(FrozenDict({"a": 1})) == hash(FrozenDict({"a": 1}))


# -- equality ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [1.0, True, "1", b"1", (1,), None, frozenset({1}), FrozenDict({"x": 1})])
def test_kinds_are_kept_apart(other: Any) -> None:
    assert FrozenDict({"x": 1}) != FrozenDict({"x": other})
    assert exact_key(1) != exact_key(other)
    assert not exact_equal((1,), (other,))


def test_zero_and_negative_zero_differ() -> None:
    assert FrozenDict({"x": 0.0}) != FrozenDict({"x": -0.0})
    assert exact_key((0.0,)) != exact_key((-0.0,))


def test_it_equals_any_mapping_with_the_same_content() -> None:
    made = FrozenDict({"a": [1, {"b": 2}]})
    assert made == {"a": [1, {"b": 2}]}
    assert made != {"a": [1, {"b": 2}], "c": 1}
    assert made != {1: 2}
    assert made != {"a": [True, {"b": 2}]}
    assert (made == 3) is False


@given(frozen_values(), frozen_values())
def test_equality_is_that_of_the_text(left: Any, right: Any) -> None:
    same = open_text(left) == open_text(right)
    assert exact_equal(left, right) == same
    assert (exact_key(left) == exact_key(right)) == same
    assert (FrozenDict({"k": left}) == FrozenDict({"k": right})) == same
    if same:
        assert hash(FrozenDict({"k": left})) == hash(FrozenDict({"k": right}))


@given(frozen_values())
def test_equality_is_reflexive_through_a_copy(value: Any) -> None:
    assert exact_equal(value, copy.deepcopy(value))


def test_equality_of_records_looks_inside() -> None:
    assert exact_equal((Cell((1,)),), (Cell((1,)),))
    assert not exact_equal((Cell((1,)),), (Cell((1.0,)),))


# -- freeze and thaw ---------------------------------------------------------------------------------------------


@given(json_like())
def test_thaw_undoes_freeze(value: Any) -> None:
    assert thaw(freeze(value)) == value


@given(json_like())
def test_freezing_again_changes_nothing(value: Any) -> None:
    assert exact_equal(freeze(freeze(value)), freeze(value))


def test_freeze_by_kind() -> None:
    kept = FrozenDict({"a": 1})
    assert freeze(kept) is kept
    assert freeze([{1}, ({"a": []},)]) == (frozenset({1}), (FrozenDict({"a": ()}),))
    assert freeze("text") == "text"
    assert freeze({(1, 2)}) == frozenset({(1, 2)})
    assert thaw(frozenset({"b", "a"})) == ["a", "b"]


def test_depth_is_no_obstacle() -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    other = FrozenDict({"a": deep})
    assert FrozenDict({"a": deep}) == other
    assert FrozenDict({"a": [deep]}) != other


@given(st.dictionaries(st.text(), st.integers()))
def test_it_is_a_mapping(content: dict[str, int]) -> None:
    made = FrozenDict(content)
    assert dict(made) == content
    assert list(made) == sorted(content)
    assert list(made.values()) == [content[key] for key in sorted(content)]
    assert all(key in made for key in content)
    assert FrozenDict(items=reversed(list(content.items()))) == made
