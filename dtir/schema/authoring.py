"""Declaring records, enums and closed sum types (ADTs): the decorators that every IR class uses.

* ``@record(tag)`` makes a frozen, slotted pydantic dataclass and registers it under its wire tag.
* ``@enum(tag)`` registers an `Enum`.
* ``@adt(wire=...)`` declares an abstract family, ``@variant(local)`` one of its constructors, `seal_adt` closes it; a
  variant's wire tag is ``<wire>.<local>``.

A record checks itself when it is built: first every field against its annotation, in order, without coercion
(`TypeError` names class and field), then the ``__post_init__`` of each class, base first. Fields made with `extension`,
variants declared with ``extension=True`` and records under ``dtir.`` are dtir's own: the upstream format has none.

>>> @record("doc.point")
... class Point:
...     x: int
>>> Point(True)
Traceback (most recent call last):
    ...
TypeError: Point.x must match <class 'int'>, got bool
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn, TypeVar, Union, cast, dataclass_transform, get_args, get_origin

from dtir.schema.construction import derive
from dtir.schema.refinements import ValueConstraint
from dtir.schema.registry import (
    ADTSpec,
    EnumSpec,
    FieldSpec,
    RecordSpec,
    VariantSpec,
    adt_closure,
    adt_family_manifest,
    adt_manifest,
    check_local_tag,
    check_wire_tag,
    enum_spec,
    enum_spec_of,
    family_spec,
    has_family,
    is_adt_variant,
    is_record,
    is_record_class,
    record_class,
    record_classes,
    record_spec,
    register_enum,
    register_family,
    register_record,
    require_adt_variant,
)

__all__ = [
    "ADTSpec",
    "EnumSpec",
    "FieldSpec",
    "RecordSpec",
    "VariantSpec",
    "adt",
    "adt_closure",
    "adt_family_manifest",
    "adt_manifest",
    "enum",
    "enum_spec",
    "enum_spec_of",
    "extension",
    "is_adt_variant",
    "is_record",
    "is_record_class",
    "record",
    "record_class",
    "record_classes",
    "record_spec",
    "require_adt_variant",
    "seal_adt",
    "variant",
]

C = TypeVar("C", bound=type)


def extension(*, default: Any = dataclasses.MISSING, default_factory: Any = dataclasses.MISSING) -> Any:
    """A defaulted field that is dtir's own and absent from the upstream format."""
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata={"extension": True})
    return dataclasses.field(default=default, metadata={"extension": True})


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, extension))
def record(tag: str, order: bool = False) -> Callable[[C], C]:
    """A frozen, slotted record registered under a wire tag.

    Args:
        tag: lower-case dotted wire tag, unique in the process.
        order: also compare by field order (`<`, `<=`, ...).

    Raises:
        TypeError: bad tag, or the class already is a dataclass.
        RuntimeError: the tag is taken.
    """
    check_wire_tag(tag, "record tag")

    def decorate(cls: C) -> C:
        made = derive(cls, order=order)
        register_record(made, tag)
        return cast("C", made)

    return decorate


def enum(tag: str, *, extensions: tuple[str, ...] = ()) -> Callable[[C], C]:
    """Register an `Enum` under a wire tag; `extensions` names members that upstream does not have.

    Raises:
        TypeError: bad tag, or not an `Enum` class.
        RuntimeError: the tag is taken.
    """
    check_wire_tag(tag, "enum tag")

    def decorate(cls: C) -> C:
        if not issubclass(cls, Enum):
            raise TypeError(f"@enum needs an Enum class, got {cls!r}")
        register_enum(EnumSpec(tag, cls, frozenset(extensions)))
        return cls

    return decorate


# Declared below the decorators (matching needs it), so it is entered here.
enum("blueprinting.schema.value-constraint")(ValueConstraint)


def _abstract_init(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(f"ADT family {type(self).__name__} is abstract; instantiate one of its sealed variants")


def adt(*, wire: str) -> Callable[[C], C]:
    """An abstract family root; its variants are declared with `variant` and closed with `seal_adt`.

    Raises:
        TypeError: bad wire prefix.
        RuntimeError: class or wire prefix already registered.
    """
    check_wire_tag(wire, "ADT wire prefix")

    def decorate(cls: C) -> C:
        if has_family(wire) or "__adt_spec__" in cls.__dict__:
            raise RuntimeError(f"ADT family {wire!r} is already registered")
        namespace = {key: value for key, value in vars(cls).items() if key not in {"__dict__", "__weakref__"}}
        namespace.setdefault("__slots__", ())
        made = cast("Any", type(cls.__name__, cls.__bases__, namespace))
        made.__qualname__ = cls.__qualname__
        made.__init__ = _abstract_init
        made.__adt_spec__ = ADTSpec(wire, made)
        register_family(wire, made)
        return cast("C", made)

    return decorate


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, extension))
def variant(local: str, *, extension: bool = False) -> Callable[[C], C]:
    """One constructor of the family that the class directly inherits.

    Args:
        local: lower-case tag, unique in the family.
        extension: the variant is dtir's own and absent from the upstream format.

    Raises:
        TypeError: bad local tag, or the class inherits no family or several.
        RuntimeError: the family is sealed or the local tag is taken.
    """
    check_local_tag(local, "variant tag")

    def decorate(cls: C) -> C:
        families = [base for base in cls.__bases__ if "__adt_spec__" in base.__dict__]
        if len(families) != 1:
            raise TypeError(
                f"variant {cls.__name__} must directly inherit exactly one ADT family, found {len(families)}"
            )
        family = families[0]
        spec = family_spec(family)
        if spec.sealed is not None:
            raise RuntimeError(f"ADT family {family.__name__} is sealed")
        if local in spec.specs:
            raise RuntimeError(f"variant tag {local!r} of {family.__name__} is already used")
        made = cast("Any", derive(cls, order=False))
        made.__variant_spec__ = VariantSpec(family, local, spec.tag(local), made, extension)
        register_record(made, spec.tag(local))
        spec.specs[local] = made.__variant_spec__
        return cast("C", made)

    return decorate


def seal_adt(family: type, closure: Any) -> Any:
    """Close a family: `closure` (a union of classes) must be exactly its registered variants.

    Raises:
        ValueError: members missing, unknown or repeated.
        RuntimeError: already sealed with another closure.
    """
    spec = family_spec(family)
    members = get_args(closure) if get_origin(closure) in (Union, types.UnionType) else (closure,)
    registered = {item.constructor for item in spec.specs.values()}
    if spec.sealed is not None and frozenset[Any](members) != spec.sealed:
        raise RuntimeError(f"ADT family {family.__name__} is already sealed with another closure")
    unknown = sorted(getattr(item, "__name__", repr(item)) for item in members if item not in registered)
    missing = sorted(item.__name__ for item in registered - set(members))
    faults = [f"{what} {', '.join(names)}" for what, names in (("unknown", unknown), ("missing", missing)) if names]
    if len(set(members)) != len(members):
        faults.append("repeated members")
    if faults:
        raise ValueError(f"ADT closure of {family.__name__}: {'; '.join(faults)}")
    spec.sealed = frozenset(members)
    return closure
