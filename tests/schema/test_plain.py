"""The native codec of records: every annotation, both ways, and where a fault is said to be."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

from dtir.schema import FrozenDict, ValueConstraint, adt, enum, extension, record, seal_adt, variant
from dtir.schema.opendata import PlainError, path_text
from dtir.schema.plain import PlainCodecs, local_kind
from dtir.schema.plain_codecs import Codec, TextCodec, UnionCodec


@enum("test.plain.colour")
class Colour(Enum):
    RED = "red"
    TWO = 2


class Base:
    """An open base: any registered record below it may stand in its place."""

    __slots__ = ()


@record("test.plain.meaning")
class Meaning(Base):
    kind: str
    note: str = ""


@record("test.plain.leaf")
class Leaf:
    size: int
    label: str = "none"


@record("test.plain.other-leaf")
class OtherLeaf:
    size: int


@adt(wire="test.plain.shape")
class Shape:
    """A family."""


@variant("round-one")
class Round(Shape):
    kind: int = 3
    leaf: Leaf = Leaf(1)


@variant("nothing")
class Nothing(Shape):
    pass


seal_adt(Shape, Round | Nothing)


class Money:
    """A class with a text form of its own."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    def __hash__(self) -> int:
        return self.cents


@record("test.plain.everything")
class Everything:
    count: int = 0
    real: float = 0.0
    number: int | float = 0
    flag: bool = False
    text: str = ""
    nothing: None = None
    maybe: int | None = None
    literal: Literal["a", 3] = "a"
    colour: Colour = Colour.RED
    leaf: Leaf = Leaf(0)
    maybe_leaf: Leaf | None = None
    either: Leaf | OtherLeaf | None = None
    shape: Shape = Nothing()
    union: Round | Nothing | int = 0
    meaning: Base | None = None
    many: tuple[Leaf, ...] = ()
    fixed: tuple[int, str] = (0, "")
    names: frozenset[str] = frozenset()
    numbers: FrozenDict[int | float] = FrozenDict()
    open: FrozenDict[Any] = FrozenDict()
    anything: Any = None
    constrained: Annotated[tuple[int, ...], ValueConstraint.UNIQUE_ITEMS] = ()
    money: Money | None = None
    own: int = extension(default=0)


def special(annotation: Any, codecs: PlainCodecs) -> Codec | None:
    if annotation is Money:
        return TextCodec(Money, lambda money: f"{money.cents}c", lambda text: Money(int(text.removesuffix("c"))))
    return None


CODECS = PlainCodecs(special, lambda annotation, codec: codec)
CODEC = CODECS.record(Everything, None)

CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"count": 0, "text": "", "leaf": Leaf(0)}, {}),
    ({"count": -5}, {"count": -5}),
    ({"real": -0.0}, {"real": -0.0}),
    ({"number": 0.0}, {"number": 0.0}),
    ({"number": 7}, {"number": 7}),
    ({"flag": True}, {"flag": True}),
    ({"text": 'a"é'}, {"text": 'a"é'}),
    ({"maybe": 3}, {"maybe": 3}),
    ({"literal": 3}, {"literal": 3}),
    ({"colour": Colour.TWO}, {"colour": 2}),
    ({"leaf": Leaf(2, "x")}, {"leaf": {"size": 2, "label": "x"}}),
    ({"maybe_leaf": Leaf(2)}, {"maybe_leaf": {"size": 2}}),
    ({"either": Leaf(2)}, {"either": {"kind": "leaf", "size": 2}}),
    ({"either": OtherLeaf(2)}, {"either": {"kind": "other-leaf", "size": 2}}),
    ({"shape": Round()}, {"shape": {"kind": "round-one"}}),
    ({"shape": Round(4, Leaf(2))}, {"shape": {"kind": "round-one", "round_one_kind": 4, "leaf": {"size": 2}}}),
    ({"union": Nothing()}, {"union": {"kind": "nothing"}}),
    ({"union": 4}, {"union": 4}),
    ({"meaning": Meaning("x")}, {"meaning": {"kind": "test.plain.meaning", "meaning_kind": "x"}}),
    ({"many": (Leaf(1), Leaf(2))}, {"many": [{"size": 1}, {"size": 2}]}),
    ({"fixed": (3, "a")}, {"fixed": [3, "a"]}),
    ({"names": frozenset({"b", "a"})}, {"names": ["a", "b"]}),
    ({"numbers": FrozenDict({"b": 1.0, "a": 2})}, {"numbers": {"a": 2, "b": 1.0}}),
    ({"open": FrozenDict({"a": (b"x",)})}, {"open": {"a": [{"$bytes": "eA=="}]}}),
    ({"anything": (1, Leaf(1))}, {"anything": [1, {"$record": "test.plain.leaf", "label": "none", "size": 1}]}),
    ({"constrained": (2, 1)}, {"constrained": [2, 1]}),
    ({"money": Money(5)}, {"money": "5c"}),
    ({"own": 5}, {"own": 5}),
]


@pytest.mark.parametrize(("fields", "tree"), CASES, ids=lambda item: str(item)[:50])
def test_both_ways(fields: dict[str, Any], tree: dict[str, Any]) -> None:
    value = Everything(**fields)
    text = CODEC.write(value, None)
    assert text == json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert CODEC.read(json.loads(text), None, None) == value


def test_a_default_may_be_written_out() -> None:
    assert CODEC.read({"count": 0, "leaf": {"size": 0, "label": "none"}, "own": 0}, None, None) == Everything()


def test_every_field_has_a_case() -> None:
    assert {name for fields, _ in CASES for name in fields} | {"nothing"} == set(Everything.__dataclass_fields__)


@pytest.mark.parametrize(
    ("tree", "where", "message"),
    [
        ([], "root", "expected an object, got an array"),
        ({"nope": 1}, "root", "unknown field 'nope' of Everything"),
        ({"count": 1.0}, "root.count", "expected an integer, got a number with a point or exponent"),
        ({"count": True}, "root.count", "expected an integer, got true or false"),
        ({"real": 1}, "root.real", "expected a number with a point or exponent, got an integer"),
        ({"number": "1"}, "root.number", "expected an integer or a number with a point or exponent, got text"),
        ({"text": None}, "root.text", "expected text, got null"),
        ({"colour": "green"}, "root.colour", "expected one of 'red', 2, got 'green'"),
        ({"colour": 2.0}, "root.colour", "expected one of 'red', 2, got 2.0"),
        ({"colour": []}, "root.colour", "expected one of 'red', 2, got []"),
        ({"leaf": {}}, "root.leaf", "field 'size' of Leaf is missing"),
        ({"leaf": {"size": 1, "kind": "leaf"}}, "root.leaf", "unknown field 'kind' of Leaf"),
        (
            {"either": {"size": 1}},
            "root.either.kind",
            "None is no kind that may stand here; known are leaf, other-leaf",
        ),
        (
            {"either": {"kind": [1]}},
            "root.either.kind",
            "[1] is no kind that may stand here; known are leaf, other-leaf",
        ),
        (
            {"shape": {"kind": "square"}},
            "root.shape.kind",
            "'square' is no kind that may stand here; known are nothing, round-one",
        ),
        (
            {"shape": {"kind": "round-one", "leaf": {"size": "x"}}},
            "root.shape.leaf.size",
            "expected an integer, got text",
        ),
        ({"shape": 3}, "root.shape", "expected an object, got an integer"),
        ({"meaning": {"kind": "test.plain.leaf", "size": 1}}, "root.meaning.kind", "'test.plain.leaf' is no Base"),
        ({"meaning": {"kind": "no.such"}}, "root.meaning.kind", "'no.such' is no Base"),
        ({"many": [{"size": 1}, {"size": None}]}, "root.many[1].size", "expected an integer, got null"),
        ({"many": {}}, "root.many", "expected an array, got an object"),
        ({"fixed": [1]}, "root.fixed", "expected an array of 2"),
        ({"fixed": [1, 2]}, "root.fixed[1]", "expected text, got an integer"),
        ({"names": ["a", "a"]}, "root.names", "an item occurs twice"),
        ({"names": "a"}, "root.names", "expected an array, got text"),
        (
            {"numbers": {"a": "x"}},
            "root.numbers.a",
            "expected an integer or a number with a point or exponent, got text",
        ),
        ({"numbers": []}, "root.numbers", "expected an object, got an array"),
        ({"open": [1]}, "root.open", "expected a map, got [1]"),
        ({"open": {"$set": [1]}}, "root.open", "expected a map, got {'$set': [1]}"),
        ({"open": {"a": {"$x": 1}}}, "root.open.a", "unknown tagged object with the key '$x'"),
        ({"constrained": [1, 1]}, "root", "Everything.constrained must match"),
        ({"money": "abc"}, "root.money", "invalid literal for int()"),
        ({"money": 3}, "root.money", "expected null or text, got an integer"),
        ({"literal": "b"}, "root", "Everything.literal must match"),
    ],
    ids=str,
)
def test_where_a_fault_is(tree: Any, where: str, message: str) -> None:
    with pytest.raises(PlainError) as caught:
        CODEC.read(tree, None, (None, "root"))
    assert path_text(caught.value.path) == where
    assert caught.value.message.startswith(message)


def test_long_nodes_are_cut_in_messages() -> None:
    with pytest.raises(PlainError) as caught:
        CODEC.read({"colour": "x" * 500}, None, None)
    assert len(caught.value.message) < 120


def test_kinds() -> None:
    assert local_kind(Round) == "round-one"
    assert local_kind(Leaf) == "leaf"


def test_a_union_that_cannot_be_told_apart_is_a_mistake_of_the_record() -> None:
    with pytest.raises(TypeError, match="two members of a union are written as text"):
        CODECS.codec(Money | str)
    with pytest.raises(TypeError, match="has no plain form"):
        CODECS.codec(list[int])
    assert isinstance(CODECS.codec(int | None), UnionCodec)
    assert CODECS.codec(int | None) is CODECS.codec(int | None)


def test_a_value_of_another_class_is_refused() -> None:
    @record("test.plain.stranger")
    class Stranger:
        x: Any

    codec = CODECS.record(Stranger, None)
    with pytest.raises(ValueError, match="unsupported canonical value"):
        codec.write(Stranger(object()), None)
    with pytest.raises(ValueError, match="unsupported canonical value"):
        CODECS.codec(Base).write(Leaf(1), None)


def test_two_fields_under_one_key_are_a_mistake_of_the_record() -> None:
    @record("test.plain.clash")
    class Clash:
        kind: int = 0
        clash_kind: int = 0

    with pytest.raises(TypeError, match="two fields that are written under one key"):
        CODECS.record(Clash, "clash").write(Clash(), None)
