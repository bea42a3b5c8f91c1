"""The tagged form: every encoding written and read, order, depth, and what is refused."""

from __future__ import annotations

import hashlib
import json
import sys
from enum import Enum
from typing import Any

import pytest
from hypothesis import given

from dtir.schema import (
    FrozenDict,
    SerializationError,
    canonical_json,
    content_digest,
    enum,
    extension,
    from_canonical_json,
    record,
)
from dtir.schema.frozen import exact_equal
from dtir.schema.jsontext import MAX_JSON_DEPTH
from tests.helpers.strategies import frozen_values


@enum("test.codec.colour", extensions=("BLUE",))
class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@record("test.codec.item")
class Item:
    zeta: Any
    alpha: int = 3
    own: int = extension(default=0)

    def __post_init__(self) -> None:
        if self.alpha == 13:
            raise ValueError("13 is not lucky")


@record("dtir.test.codec")
class Own:
    x: int = 0


ENCODINGS: list[tuple[Any, str]] = [
    (None, "null"),
    ("é", '"é"'),
    (True, "true"),
    (1, "1"),
    (1.0, "1.0"),
    (b"\x00\x01", '{"$bytes":"AAE="}'),
    (b"", '{"$bytes":""}'),
    ((), '{"$tuple":[]}'),
    ((1, (2,)), '{"$tuple":[1,{"$tuple":[2]}]}'),
    (frozenset(), '{"$frozenset":[]}'),
    (frozenset({1, 2, 10}), '{"$frozenset":[1,10,2]}'),
    (frozenset({"v", "é", "Z", "~"}), '{"$frozenset":["Z","é","v","~"]}'),
    (frozenset({(1, 2), "a"}), '{"$frozenset":["a",{"$tuple":[1,2]}]}'),
    (frozenset({frozenset({2, 1})}), '{"$frozenset":[{"$frozenset":[1,2]}]}'),
    (FrozenDict(), '{"$map":[]}'),
    (FrozenDict({"b": 1, "a": (2,)}), '{"$map":[["a",{"$tuple":[2]}],["b",1]]}'),
    (FrozenDict({"é": 1, "z": 2}), '{"$map":[["z",2],["é",1]]}'),
    (Colour.RED, '{"$enum":"test.codec.colour","value":"red"}'),
    (Item((1,)), '{"$type":"test.codec.item","fields":{"alpha":3,"zeta":{"$tuple":[1]}}}'),
]


@pytest.mark.parametrize(("value", "text"), ENCODINGS, ids=lambda item: str(item)[:40])
def test_encodings(value: Any, text: str) -> None:
    assert canonical_json(value) == text
    assert exact_equal(from_canonical_json(text), value)
    assert json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True, separators=(",", ":")) == text


@given(frozen_values())
def test_reading_undoes_writing(value: Any) -> None:
    text = canonical_json(value)
    again = from_canonical_json(text)
    assert exact_equal(again, value)
    assert canonical_json(again) == text


def test_a_new_field_of_ours_is_not_written() -> None:
    assert canonical_json(Item(1, own=5)) == '{"$type":"test.codec.item","fields":{"alpha":3,"zeta":1}}'


def test_digest() -> None:
    expected = hashlib.blake2b(b'ir:test\0{"$tuple":[1]}', digest_size=20).hexdigest()
    assert content_digest((1,), "ir:test") == expected
    assert content_digest((1,)) != content_digest((1.0,)) != content_digest((True,))
    assert content_digest((1,)) == hashlib.blake2b(b'blueprinting\0{"$tuple":[1]}', digest_size=20).hexdigest()


class Stranger(Enum):
    """An enum that nobody registered."""

    ONE = 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "builtins.object"),
        ([1], "builtins.list"),
        ({"a": 1}, "builtins.dict"),
        ({1}, "builtins.set"),
        (1j, "builtins.complex"),
        (Stranger.ONE, f"{__name__}.Stranger"),
        (FrozenDict({"a": (frozenset({Stranger.ONE}),)}), f"{__name__}.Stranger"),
    ],
    ids=str,
)
def test_what_has_no_form(value: Any, name: str) -> None:
    with pytest.raises(SerializationError) as caught:
        canonical_json((value,))
    assert str(caught.value) == f"unsupported canonical value: {name}"


def test_nan_has_no_form() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(SerializationError, match="does not permit NaN or infinity"):
            canonical_json(FrozenDict({"a": value}))


# -- reading -----------------------------------------------------------------------------------------------------


def test_bytes_need_not_be_canonical() -> None:
    assert from_canonical_json(' {"$map": [["b", 1], ["a", 2]]} ') == FrozenDict({"a": 2, "b": 1})
    assert from_canonical_json('{"$frozenset":[2,1,2]}') == frozenset({1, 2})
    assert from_canonical_json('{"fields":{"zeta":1},"$type":"test.codec.item"}') == Item(1)
    assert from_canonical_json('"\\u00e9"') == "é"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "canonical arrays must use an explicit tuple or set tag"),
        ('{"$tuple":[[1]]}', "canonical arrays must use an explicit tuple or set tag"),
        ("{}", "invalid or ambiguous canonical tagged object"),
        ('{"a":1}', "invalid or ambiguous canonical tagged object"),
        ('{"$tuple":[],"x":1}', "invalid or ambiguous canonical tagged object"),
        ('{"$type":"test.codec.item"}', "invalid or ambiguous canonical tagged object"),
        ('{"$type":"test.codec.item","fields":[]}', "invalid or ambiguous canonical tagged object"),
        ('{"$type":3,"fields":{}}', "invalid or ambiguous canonical tagged object"),
        ('{"$tuple":3}', "canonical $tuple must hold an array"),
        ('{"$frozenset":{}}', "canonical $frozenset must hold an array"),
        ('{"$map":{}}', "canonical $map must hold an array"),
        ('{"$map":[["a"]]}', "canonical $map entries must be [key, value] pairs"),
        ('{"$map":[{"a":1}]}', "canonical $map entries must be [key, value] pairs"),
        ('{"$map":[[1,2]]}', "canonical mapping keys must be strings"),
        ('{"$map":[["a",1],["a",1]]}', "duplicate canonical mapping key: 'a'"),
        ('{"$bytes":"*"}', "canonical $bytes is not valid base64"),
        ('{"$bytes":"é"}', "canonical $bytes is not valid base64"),
        ('{"$bytes":"AAE"}', "canonical $bytes is not valid base64"),
        ('{"$bytes":3}', "canonical $bytes must hold base64 text"),
        ('{"$type":"test.codec.nothing","fields":{}}', "unknown canonical record tag: 'test.codec.nothing'"),
        ('{"$type":"dtir.test.codec","fields":{}}', "unknown canonical record tag: 'dtir.test.codec'"),
        ('{"$enum":"test.codec.nothing","value":1}', "unknown canonical enum tag: 'test.codec.nothing'"),
        ('{"$enum":["x"],"value":1}', "unknown canonical enum tag: ['x']"),
        ('{"$enum":"dtir.ir.reshard-kind","value":"halo"}', "unknown canonical enum tag: 'dtir.ir.reshard-kind'"),
        ('{"$enum":"test.codec.colour","value":"green"}', "invalid value for canonical enum 'test.codec.colour'"),
        ('{"$enum":"test.codec.colour","value":"blue"}', "invalid value for canonical enum 'test.codec.colour'"),
        ('{"$enum":"test.codec.colour","value":["red"]}', "invalid value for canonical enum 'test.codec.colour'"),
        (
            '{"$type":"test.codec.item","fields":{}}',
            "invalid canonical record 'test.codec.item': Item.__init__() missing 1 required positional argument: 'zeta'",
        ),
        (
            '{"$type":"test.codec.item","fields":{"zeta":1,"beta":2}}',
            "invalid canonical record 'test.codec.item': Item.__init__() got an unexpected keyword argument 'beta'",
        ),
        (
            '{"$type":"test.codec.item","fields":{"zeta":1,"own":2}}',
            "invalid canonical record 'test.codec.item': Item.__init__() got an unexpected keyword argument 'own'",
        ),
        (
            '{"$type":"test.codec.item","fields":{"zeta":1,"alpha":true}}',
            "invalid canonical record 'test.codec.item': Item.alpha must match <class 'int'>, got bool",
        ),
        (
            '{"$type":"test.codec.item","fields":{"zeta":1,"alpha":13}}',
            "invalid canonical record 'test.codec.item': 13 is not lucky",
        ),
        ("1e999", "canonical JSON does not permit Infinity"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SerializationError) as caught:
        from_canonical_json(text)
    assert str(caught.value) == message


def test_the_first_fault_in_reading_order_is_reported() -> None:
    with pytest.raises(SerializationError, match="'first'"):
        from_canonical_json('{"$tuple":[{"$type":"first","fields":{"x":[1]}},{"$type":"second","fields":{}}]}')
    with pytest.raises(SerializationError, match="arrays"):
        from_canonical_json('{"$tuple":[{"$type":"test.codec.item","fields":{"nope":[1]}}]}')


# -- depth -------------------------------------------------------------------------------------------------------


def tuples(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = (value,)
    return value


@pytest.mark.parametrize(
    ("wrap", "brackets"),
    [
        (lambda inner: (inner,), 2),
        (lambda inner: frozenset({inner}), 2),
        (lambda inner: FrozenDict({"a": inner}), 3),
        (lambda inner: Item(inner), 2),
    ],
    ids=["tuple", "frozenset", "map", "record"],
)
def test_depth_counts_brackets(wrap: Any, brackets: int) -> None:
    deepest = MAX_JSON_DEPTH // brackets
    value: Any = 1
    for _ in range(deepest):
        value = wrap(value)
    text = canonical_json(value)
    assert canonical_json(from_canonical_json(text)) == text
    with pytest.raises(SerializationError, match="nests deeper than 984 levels"):
        canonical_json(wrap(value))
    with pytest.raises(SerializationError, match="nests deeper than 984 levels"):
        canonical_json(value, depth=MAX_JSON_DEPTH - deepest * brackets + 1)


def test_the_reader_counts_as_the_writer_does() -> None:
    for extra, fits in ((0, True), (1, False)):
        text = '{"$tuple":[' * (492 + extra) + "1" + "]}" * (492 + extra)
        if fits:
            assert exact_equal(from_canonical_json(text), tuples(492))
        else:
            with pytest.raises(SerializationError, match="nests deeper"):
                from_canonical_json(text)


def test_depth_does_not_depend_on_the_caller() -> None:
    value = tuples(490)
    text = canonical_json(value)

    def below(levels: int) -> Any:
        return (canonical_json(value), from_canonical_json(text)) if levels == 0 else below(levels - 1)

    written, read = below(sys.getrecursionlimit() - 200)
    assert written == text
    assert exact_equal(read, value)


def test_a_set_whose_member_cannot_be_hashed_is_a_finding() -> None:
    text = '{"$map":[["a",' * 300 + "1" + "]]}" * 300

    def below(levels: int) -> Any:
        return from_canonical_json(f'{{"$frozenset":[{text}]}}') if levels == 0 else below(levels - 1)

    assert len(below(0)) == 1
    with pytest.raises(SerializationError, match="nests deeper"):
        below(sys.getrecursionlimit() - 250)


def test_enums_and_bytes_count_too() -> None:
    for value in (Colour.RED, b"x"):
        canonical_json(value, depth=MAX_JSON_DEPTH - 1)
        with pytest.raises(SerializationError, match="nests deeper"):
            canonical_json(value, depth=MAX_JSON_DEPTH)


def test_writing_endless_depth_is_an_error() -> None:
    with pytest.raises(SerializationError, match="nests deeper"):
        canonical_json(tuples(100_000))
