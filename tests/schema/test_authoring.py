"""Declaring records, enums and closed families."""

from __future__ import annotations

import copy
import dataclasses
import pickle  # noqa: TID251 - only objects of this test
from enum import Enum
from typing import Any, ClassVar

import pytest

from dtir.schema import (
    FrozenDict,
    ValueConstraint,
    adt,
    adt_closure,
    adt_family_manifest,
    adt_manifest,
    enum,
    extension,
    is_adt_variant,
    is_record,
    record,
    record_spec,
    require_adt_variant,
    seal_adt,
    variant,
)
from dtir.schema.authoring import enum_spec, enum_spec_of, record_class


@record("test.authoring.point", order=True)
class Point:
    """Two numbers."""

    KIND: ClassVar[str] = "point"

    x: int
    y: int = 0


@adt(wire="test.authoring.shape")
class Shape:
    """A family."""


@variant("circle")
class Circle(Shape):
    radius: int


@variant("unit-square", extension=True)
class UnitSquare(Shape):
    pass


ShapeVariant = Circle | UnitSquare
seal_adt(Shape, ShapeVariant)


# -- tags --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["Upper", "", "a..b", ".a", "a.", "1a", "a b", "a.B", "a__b", 3])
def test_wire_tags_are_dotted_lower_case(tag: Any) -> None:
    with pytest.raises(TypeError, match="must match"):
        record(tag)
    with pytest.raises(TypeError, match="must match"):
        enum(tag)
    with pytest.raises(TypeError, match="must match"):
        adt(wire=tag)


@pytest.mark.parametrize("tag", ["a", "a1", "a.b", "a-b", "a_b", "a.b-c_d.9"])
def test_these_are_wire_tags(tag: str) -> None:
    assert callable(record(tag))


@pytest.mark.parametrize("tag", ["Upper", "", "a.b", "a_b", "-a", "a-", "1a", None])
def test_local_tags_have_no_dot_or_underscore(tag: Any) -> None:
    with pytest.raises(TypeError, match="must match"):
        variant(tag)


def test_one_tag_belongs_to_one_record() -> None:
    with pytest.raises(RuntimeError, match=r"test\.authoring\.point.*already used by Point"):

        @record("test.authoring.point")
        class Other:  # pyright: ignore[reportUnusedClass]
            x: int

    assert record_class("test.authoring.point") is Point
    assert record_class("test.authoring.none") is None


# -- records -----------------------------------------------------------------------------------------------------


def test_a_record_is_frozen_slotted_and_keeps_its_place() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    assert not hasattr(point, "__dict__")
    assert (point.x, point.y, Point.KIND) == (1, 0, "point")
    assert repr(point) == "Point(x=1, y=0)"
    assert Point.__module__ == __name__
    assert Point.__qualname__ == "Point"


def test_a_record_is_copied_pickled_and_replaced() -> None:
    point = Point(1, 2)
    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point
    assert dataclasses.replace(point, y=5) == Point(1, 5)
    with pytest.raises(TypeError, match=r"Point\.y must match"):
        dataclasses.replace(point, y="5")


def test_order_is_asked_for() -> None:
    assert Point(1, 2) < Point(1, 3) <= Point(1, 3)
    with pytest.raises(TypeError, match="not supported"):
        _ = Circle(1) < Circle(2)  # type: ignore[operator]


def test_equality_is_exact_and_by_class() -> None:
    @record("test.authoring.box")
    class Box:
        content: Any

    assert Box(1) == Box(1)
    assert hash(Box(1)) == hash(Box(1))
    assert Box(1) != Box(True)
    assert Box(1) != Box(1.0)
    assert Box(0.0) != Box(-0.0)
    assert Box((1, (2,))) != Box((1, (2.0,)))
    assert Box(frozenset({1})) != Box(frozenset({True}))
    assert Box(Point(1)) == Box(Point(1))
    assert Box(FrozenDict({"a": 1})) != Box(FrozenDict({"a": True}))
    assert Point(1) != Box(1)
    assert Point(1) != (1, 0)


def test_equality_does_not_recurse() -> None:
    @record("test.authoring.chain")
    class Chain:
        rest: Any

    one: Any = None
    two: Any = None
    for _ in range(20_000):
        one, two = Chain((one,)), Chain((two,))
    assert one == two
    assert one != Chain(one)


def test_a_class_that_is_a_dataclass_already_is_refused() -> None:
    @dataclasses.dataclass
    class Plain:
        x: int

    with pytest.raises(TypeError, match="derives its own frozen dataclass"):
        record("test.authoring.plain")(Plain)


def test_record_spec_lists_fields_in_order() -> None:
    @record("test.authoring.spec")
    class Spec:
        a: int
        b: str = "x"
        c: tuple[int, ...] = extension(default=())
        d: tuple[int, ...] = extension(default_factory=tuple)

    spec = record_spec(Spec)
    assert spec.tag == "test.authoring.spec"
    assert [(item.name, item.required, item.extension) for item in spec.fields] == [
        ("a", True, False),
        ("b", False, False),
        ("c", False, True),
        ("d", False, True),
    ]
    assert not spec.extension
    assert record_spec(UnitSquare).extension
    assert Spec(1).d == ()
    with pytest.raises(TypeError, match="not a registered record"):
        record_spec(int)
    assert is_record(Spec(1))
    assert not is_record(Spec)


def test_records_under_the_own_prefix_are_extensions() -> None:
    @record("dtir.test.authoring")
    class Own:
        x: int = 0

    assert record_spec(Own).extension


def test_hooks_run_after_matching_base_first_and_once() -> None:
    calls: list[str] = []

    class Base:
        __slots__ = ()

        def __post_init__(self) -> None:
            calls.append(f"base {self.x}")  # type: ignore[attr-defined]

    @record("test.authoring.parent")
    class Parent(Base):
        x: int

        def __post_init__(self) -> None:
            calls.append("parent")

    @record("test.authoring.child")
    class Child(Parent):
        y: int = 0

        def __post_init__(self) -> None:
            calls.append("child")

    with pytest.raises(TypeError, match=r"Parent\.x must match"):
        Parent("1")  # type: ignore[arg-type]
    assert calls == []
    Child(1, 2)
    assert calls == ["base 1", "parent", "child"]


# -- what a call may look like -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "Point.__init__() missing 1 required positional argument: 'x'"),
        ((), {"y": "wrong"}, "Point.__init__() missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, "Point.__init__() takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"z": 1}, "Point.__init__() got an unexpected keyword argument 'z'"),
        ((1,), {"x": 1}, "Point.__init__() got multiple values for argument 'x'"),
        (("1",), {}, "Point.x must match <class 'int'>, got str"),
        (("1", "2"), {}, "Point.x must match <class 'int'>, got str"),
        ((1,), {"y": True}, "Point.y must match <class 'int'>, got bool"),
    ],
)
def test_a_wrong_call_says_what_python_would(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Point(*args, **kwargs)
    assert str(caught.value) == message


def test_missing_arguments_are_listed() -> None:
    @record("test.authoring.three")
    class Three:
        a: int
        b: int
        c: int

    for given, message in (
        ({"a": 1}, "missing 2 required positional arguments: 'b' and 'c'"),
        ({}, "missing 3 required positional arguments: 'a', 'b', and 'c'"),
    ):
        with pytest.raises(TypeError, match=message):
            Three(**given)
    with pytest.raises(TypeError, match="takes 4 positional arguments but 5 were given"):
        Three(1, 2, 3, 4)  # type: ignore[call-arg]


# -- enums -------------------------------------------------------------------------------------------------------


def test_enums_are_registered() -> None:
    @enum("test.authoring.colour", extensions=("BLUE",))
    class Colour(Enum):
        RED = "red"
        BLUE = "blue"

    spec = enum_spec("test.authoring.colour")
    assert spec is not None
    assert (spec.enum, spec.extensions) == (Colour, frozenset({"BLUE"}))
    assert enum_spec_of(Colour) is spec
    assert enum_spec("test.authoring.none") is None
    with pytest.raises(RuntimeError, match="already used by"):
        enum("test.authoring.colour")(Colour)
    with pytest.raises(TypeError, match="needs an Enum class"):
        enum("test.authoring.no-enum")(Point)


def test_the_constraints_are_an_enum_of_the_format() -> None:
    spec = enum_spec("blueprinting.schema.value-constraint")
    assert spec is not None
    assert spec.enum is ValueConstraint


# -- families ----------------------------------------------------------------------------------------------------


def test_a_family_is_abstract_and_knows_its_variants() -> None:
    with pytest.raises(TypeError, match="ADT family Shape is abstract; instantiate one of its sealed variants"):
        Shape()
    spec: Any = Shape.__dict__["__adt_spec__"]
    assert (spec.prefix, spec.tag("circle"), spec.root) == (
        "test.authoring.shape",
        "test.authoring.shape.circle",
        Shape,
    )
    assert adt_closure(Shape) == {Circle, UnitSquare}
    assert [item.local_tag for item in adt_manifest(Shape)] == ["circle", "unit-square"]
    mine: Any = Circle.__dict__["__variant_spec__"]
    assert (mine.family, mine.local_tag, mine.wire_tag, mine.constructor, mine.extension) == (
        Shape,
        "circle",
        "test.authoring.shape.circle",
        Circle,
        False,
    )
    assert UnitSquare.__dict__["__variant_spec__"].extension
    assert any(item.wire == "test.authoring.shape" for item in adt_family_manifest())
    assert [item.wire for item in adt_family_manifest()] == sorted(item.wire for item in adt_family_manifest())


def test_membership_is_of_the_exact_class() -> None:
    class Special(Circle):  # type: ignore[misc,valid-type]
        pass

    assert is_adt_variant(Circle(1), Shape)
    assert not is_adt_variant(object.__new__(Special), Shape)
    assert not is_adt_variant(3, Shape)
    require_adt_variant(Circle(1), Shape, "form")
    with pytest.raises(TypeError, match="form must be a variant of Shape, got int"):
        require_adt_variant(3, Shape, "form")
    with pytest.raises(TypeError, match="not an ADT family"):
        is_adt_variant(3, int)


def test_a_family_is_declared_once() -> None:
    with pytest.raises(RuntimeError, match="already registered"):
        adt(wire="test.authoring.shape")(type("Again", (), {}))
    with pytest.raises(RuntimeError, match="already registered"):
        adt(wire="test.authoring.shape-two")(Shape)


def test_a_variant_inherits_exactly_one_family() -> None:
    @adt(wire="test.authoring.left")
    class Left:
        pass

    @adt(wire="test.authoring.right")
    class Right:
        pass

    with pytest.raises(TypeError, match="exactly one ADT family, found 0"):

        @variant("none")
        class None_:  # pyright: ignore[reportUnusedClass]
            pass

    with pytest.raises(TypeError, match="exactly one ADT family, found 2"):

        @variant("both")
        class Both(Left, Right):  # pyright: ignore[reportUnusedClass]
            pass

    @variant("one")
    class One(Left):
        pass

    with pytest.raises(TypeError, match="exactly one ADT family, found 0"):

        @variant("indirect")
        class Indirect(One):  # pyright: ignore[reportUnusedClass]
            pass

    with pytest.raises(RuntimeError, match="'one' of Left is already used"):

        @variant("one")
        class Again(Left):  # pyright: ignore[reportUnusedClass]
            pass

    with pytest.raises(TypeError, match="not sealed"):
        adt_closure(Left)
    with pytest.raises(TypeError, match="not sealed"):
        is_adt_variant(One(), Left)


def test_a_sealed_family_takes_no_more_variants() -> None:
    with pytest.raises(RuntimeError, match="Shape is sealed"):

        @variant("late")
        class Late(Shape):  # pyright: ignore[reportUnusedClass]
            pass


def test_a_closure_is_exactly_the_registered_set() -> None:
    @adt(wire="test.authoring.open")
    class Open:
        pass

    @variant("first")
    class First(Open):
        pass

    @variant("second")
    class Second(Open):
        pass

    with pytest.raises(ValueError, match="missing Second"):
        seal_adt(Open, First)
    with pytest.raises(ValueError, match="unknown Circle"):
        seal_adt(Open, First | Second | Circle)
    union = First | Second
    assert seal_adt(Open, union) is union
    assert seal_adt(Open, Second | First) == union
    with pytest.raises(RuntimeError, match="already sealed with another closure"):
        seal_adt(Open, First)


def test_a_family_of_one() -> None:
    @adt(wire="test.authoring.single")
    class Single:
        pass

    @variant("only")
    class Only(Single):
        pass

    assert seal_adt(Single, Only) is Only
    assert adt_closure(Single) == {Only}
