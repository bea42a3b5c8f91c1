"""Which values a field annotation takes: no coercion, exact classes for variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import pytest

from dtir.schema import FrozenDict, ValueConstraint, adt, record, seal_adt, variant
from dtir.schema.matching import schema_for


@adt(wire="test.matching.animal")
class Animal:
    """A family."""


@variant("cat")
class Cat(Animal):
    """One variant."""


@variant("dog")
class Dog(Animal):
    """Another."""


AnimalVariant = Cat | Dog
seal_adt(Animal, AnimalVariant)


class Pair(NamedTuple):
    left: int
    right: int


class Persian(Cat):  # type: ignore[misc,valid-type]
    """No variant, though a subclass of one."""


@record("test.matching.everything")
class Everything:
    shared: ClassVar[Any] = "ignored"

    anything: Any = None
    number: int = 0
    real: float = 0.0
    text: str = ""
    flag: bool = False
    positive: Annotated[int, ValueConstraint.POSITIVE] = 1
    small: Annotated[int, ValueConstraint.NON_NEGATIVE, ValueConstraint.AT_MOST_ONE] = 0
    name: Annotated[str, ValueConstraint.NON_EMPTY] = "x"
    choice: Literal["a", 1] = "a"
    many: tuple[int, ...] = ()
    fixed: tuple[int, str] = (1, "a")
    unique: Annotated[tuple[int, ...], ValueConstraint.UNIQUE_ITEMS] = ()
    members: frozenset[int] = frozenset()
    table: FrozenDict[int] = FrozenDict()
    open_table: FrozenDict = FrozenDict()  # type: ignore[type-arg]
    mapping: Mapping[str, int] = FrozenDict()
    sequence: Sequence[int] = ()
    maybe: int | None = None
    animal: Animal = Cat()
    cat: Cat = Cat()
    either: Cat | Dog | int = 1
    blob: bytes = b""


ACCEPTED = [
    ("anything", object()),
    ("number", -(10**40)),
    ("real", 1.5),
    ("real", float("nan")),
    ("text", "\ud800"),
    ("flag", True),
    ("positive", 10**40),
    ("small", 1),
    ("choice", 1),
    ("many", (1, 2)),
    ("many", Pair(1, 2)),
    ("fixed", (2, "b")),
    ("unique", (2, 1)),
    ("members", frozenset({1, 2})),
    ("table", FrozenDict({"a": 1})),
    ("open_table", FrozenDict({"a": object()})),
    ("mapping", {"a": 1}),
    ("sequence", [1, 2]),
    ("maybe", None),
    ("maybe", 3),
    ("animal", Dog()),
    ("cat", Cat()),
    ("either", Dog()),
    ("either", 4),
    ("blob", b"x"),
]

REFUSED = [
    ("number", True),
    ("number", 1.0),
    ("number", "1"),
    ("number", None),
    ("real", 1),
    ("real", True),
    ("text", b"x"),
    ("flag", 1),
    ("positive", 0),
    ("positive", True),
    ("small", 2),
    ("small", -1),
    ("name", ""),
    ("name", 3),
    ("choice", True),
    ("choice", 1.0),
    ("choice", "b"),
    ("many", [1]),
    ("many", (1, True)),
    ("fixed", (1,)),
    ("fixed", (1, "a", 2)),
    ("fixed", ("a", 1)),
    ("unique", (1, 1)),
    ("members", {1}),
    ("members", frozenset({"a"})),
    ("table", {"a": 1}),
    ("table", FrozenDict({"a": "b"})),
    ("open_table", {}),
    ("mapping", (("a", 1),)),
    ("sequence", "12"),
    ("sequence", b"12"),
    ("sequence", ["a"]),
    ("sequence", 3),
    ("maybe", "3"),
    ("animal", Persian.__new__(Persian)),
    ("animal", Animal.__new__(Animal)),
    ("animal", 3),
    ("cat", Dog()),
    ("cat", Persian.__new__(Persian)),
    ("either", "x"),
    ("either", True),
    ("blob", "x"),
]


@pytest.mark.parametrize(("field", "value"), ACCEPTED, ids=lambda item: repr(item)[:30])
def test_taken_as_it_is(field: str, value: Any) -> None:
    assert getattr(Everything(**{field: value}), field) is value


@pytest.mark.parametrize(("field", "value"), REFUSED, ids=lambda item: repr(item)[:30])
def test_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^Everything\.{field} must match .*, got {type(value).__name__}$"):
        Everything(**{field: value})


def test_the_first_field_that_does_not_match_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Everything\.number "):
        Everything(flag=3, number="x", text=4)  # type: ignore[arg-type]


def test_every_field_has_a_case_each_way() -> None:
    names = set(Everything.__dataclass_fields__) - {"shared"}
    assert {name for name, _ in ACCEPTED} | {"name"} == names
    assert {name for name, _ in REFUSED} | {"anything"} == names


def test_an_annotation_without_a_rule_is_a_mistake_of_the_record() -> None:
    with pytest.raises(TypeError, match="has no matching rule"):
        schema_for("text")


def test_a_constraint_that_cannot_be_asked_does_not_hold() -> None:
    class Odd:
        def __ge__(self, other: object) -> bool:
            raise ValueError

        def __len__(self) -> int:
            raise TypeError

    assert not ValueConstraint.NON_NEGATIVE.holds(Odd())
    assert not ValueConstraint.NON_EMPTY.holds(Odd())
