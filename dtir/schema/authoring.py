"""Declaring records, enums and closed sum types (ADTs): the decorators that every IR class uses.

* ``@record(tag)`` makes a frozen, slotted pydantic dataclass and registers it under its wire tag.
* ``@enum(tag)`` registers an `Enum`.
* ``@adt(wire=...)`` declares an abstract family, ``@variant(local)`` one of its constructors, `seal_adt` closes it; a variant's wire tag is
  ``<wire>.<local>``.

A record checks itself when it is built: first every field against its annotation, in order, without coercion (`TypeError` names class and
field), then the ``__post_init__`` of each class, base first. Fields made with `extension` are dtir's own: the upstream format does not have them.

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
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import (
    Any,
    ClassVar,
    NoReturn,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs, SchemaValidator, core_schema

from dtir.schema.frozen import exact_key
from dtir.schema.matching import schema_for

C = TypeVar("C", bound=type)

_WIRE_TAG = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
_LOCAL_TAG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_CONFIG = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """One constructor of a family."""

    family: type
    local_tag: str
    wire_tag: str
    constructor: type


@dataclass(slots=True)
class ADTSpec:
    """A family: its wire prefix, root class and, once sealed, its closure."""

    wire: str
    root: type
    specs: dict[str, VariantSpec] = dataclasses.field(default_factory=dict[str, VariantSpec])
    sealed: frozenset[type] | None = None

    @property
    def prefix(self) -> str:
        return self.wire

    def tag(self, local: str) -> str:
        return f"{self.wire}.{local}"

    @property
    def variants(self) -> frozenset[type]:
        if self.sealed is not None:
            return self.sealed
        return frozenset(spec.constructor for spec in self.specs.values())


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a record, as codecs and matching need it."""

    name: str
    annotation: Any
    required: bool
    extension: bool


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """A registered record class with its tag and fields in declaration order."""

    tag: str
    constructor: type
    fields: tuple[FieldSpec, ...]


@dataclass(frozen=True, slots=True)
class EnumSpec:
    """A registered enum; `extensions` are members that the upstream format does not know."""

    tag: str
    enum: type[Enum]
    extensions: frozenset[str]


_RECORDS_BY_TAG: dict[str, type] = {}
_TAG_BY_RECORD: dict[type, str] = {}
_RECORD_SPECS: dict[type, RecordSpec] = {}
_ENUMS_BY_TAG: dict[str, EnumSpec] = {}
_ENUM_SPECS: dict[type, EnumSpec] = {}
_FAMILIES: dict[str, type] = {}


def extension(*, default: Any = dataclasses.MISSING, default_factory: Any = dataclasses.MISSING) -> Any:
    """A defaulted field that is dtir's own and absent from the upstream format."""
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata={"extension": True})
    return dataclasses.field(default=default, metadata={"extension": True})


def _check_tag(pattern: re.Pattern[str], tag: object, what: str) -> None:
    if not isinstance(tag, str) or not pattern.fullmatch(tag):
        raise TypeError(f"{what} must match {pattern.pattern}, got {tag!r}")


def _annotations(cls: type) -> dict[str, Any]:
    """Resolved annotations of every dataclass field, base classes first."""
    hints: dict[str, Any] = {}
    for klass in reversed(cls.__mro__):
        own = klass.__dict__.get("__annotations__", {})
        if not own:
            continue
        resolved = get_type_hints(klass, vars(sys.modules[klass.__module__]), {cls.__name__: cls}, include_extras=True)
        hints.update({name: resolved[name] for name in own})
    return {name: hint for name, hint in hints.items() if hint is not ClassVar and get_origin(hint) is not ClassVar}


def record_spec(cls: type) -> RecordSpec:
    """Tag and fields of a registered record class.

    Raises:
        TypeError: `cls` is not a registered record.
    """
    spec = _RECORD_SPECS.get(cls)
    if spec is not None:
        return spec
    tag = _TAG_BY_RECORD.get(cls)
    if tag is None:
        raise TypeError(f"{cls!r} is not a registered record")
    hints = _annotations(cls)
    fields = tuple(
        FieldSpec(
            item.name,
            hints[item.name],
            item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING,
            bool(item.metadata.get("extension")),
        )
        for item in dataclasses.fields(cls)
    )
    spec = RecordSpec(tag, cls, fields)
    _RECORD_SPECS[cls] = spec
    return spec


def record_class(tag: str) -> type | None:
    """The record registered under `tag`, or None."""
    return _RECORDS_BY_TAG.get(tag)


def is_record(value: object) -> bool:
    return type(value) in _TAG_BY_RECORD


def enum_spec(tag: str) -> EnumSpec | None:
    """The enum registered under `tag`, or None."""
    return _ENUMS_BY_TAG.get(tag)


def enum_spec_of(cls: type) -> EnumSpec | None:
    return _ENUM_SPECS.get(cls)


def _post_inits(cls: type) -> tuple[Callable[[Any], None], ...]:
    found: list[Callable[[Any], None]] = []
    for klass in reversed(cls.__mro__):
        hook = klass.__dict__.get("__post_init__")
        if hook is not None and hook not in found:
            found.append(hook)
    return tuple(found)


def _dataclass_schema(cls: type) -> core_schema.CoreSchema:
    arguments = [
        core_schema.dataclass_field(name=item.name, schema=_field_schema(cls, item), kw_only=False, frozen=True)
        for item in record_spec(cls).fields
    ]
    return core_schema.dataclass_schema(
        cls,
        core_schema.dataclass_args_schema(cls.__name__, arguments),
        [item.name for item in record_spec(cls).fields],
        slots=True,
        frozen=True,
        config=core_schema.CoreConfig(extra_fields_behavior="forbid", strict=True),
    )


def _field_schema(cls: type, item: FieldSpec) -> core_schema.CoreSchema:
    schema = schema_for(item.annotation)
    if item.required:
        return schema
    field = next(entry for entry in dataclasses.fields(cls) if entry.name == item.name)
    if field.default is not dataclasses.MISSING:
        return core_schema.with_default_schema(schema, default=field.default)
    return core_schema.with_default_schema(schema, default_factory=cast("Callable[[], Any]", field.default_factory))


def _argument_name(loc: tuple[int | str, ...], names: tuple[str, ...]) -> str:
    first = loc[0] if loc else names[0]
    return names[first] if isinstance(first, int) and first < len(names) else str(first)


def _raise_mismatch(cls: type, error: ValidationError, arguments: ArgsKwargs) -> NoReturn:
    """Turn pydantic's report into the one-line `TypeError` that names class and field."""
    detail = error.errors(include_url=False, include_context=False)[0]
    spec = record_spec(cls)
    names = tuple(item.name for item in spec.fields)
    kind = detail["type"]
    if kind == "missing" or kind.startswith("missing_"):
        given = set(names[: len(arguments.args)]) | set(arguments.kwargs or {})
        missing = [item.name for item in spec.fields if item.required and item.name not in given]
        noun = "argument" if len(missing) == 1 else "arguments"
        listed = ", ".join(repr(name) for name in missing)
        raise TypeError(
            f"{cls.__name__}.__init__() missing {len(missing)} required positional {noun}: {listed}"
        ) from None
    if kind == "unexpected_keyword_argument":
        name = _argument_name(detail["loc"], names)
        raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}") from None
    if kind == "unexpected_positional_argument":
        raise TypeError(
            f"{cls.__name__}.__init__() takes {len(names)} positional arguments but more were given"
        ) from None
    if kind == "multiple_argument_values":
        name = _argument_name(detail["loc"], names)
        raise TypeError(f"{cls.__name__}.__init__() got multiple values for argument {name!r}") from None
    name = _argument_name(detail["loc"], names)
    field = next(item for item in spec.fields if item.name == name)
    position = names.index(name)
    value = arguments.args[position] if position < len(arguments.args) else (arguments.kwargs or {})[name]
    raise TypeError(f"{cls.__name__}.{name} must match {field.annotation!r}, got {type(value).__name__}") from None


def _make_init(cls: type, hooks: tuple[Callable[[Any], None], ...]) -> Callable[..., None]:
    validator: list[SchemaValidator] = []

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not validator:
            # Built at the first construction: importing the package compiles no schema.
            validator.append(SchemaValidator(_dataclass_schema(cls)))
        try:
            validator[0].validate_python(ArgsKwargs(args, kwargs), self_instance=self)
        except ValidationError as error:
            _raise_mismatch(cls, error, ArgsKwargs(args, kwargs))
        for hook in hooks:
            hook(self)

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


def _exact_eq(self: Any, other: object) -> Any:
    if self is other:
        return True
    if type(other) is not type(self):
        return NotImplemented
    for name in self.__dataclass_fields__:
        mine, theirs = getattr(self, name), getattr(other, name)
        if mine is theirs:
            continue
        if type(mine) is str:
            if mine != theirs:
                return False
        elif exact_key(mine) != exact_key(theirs):
            return False
    return True


def _derive(cls: type, *, order: bool) -> type:
    """The frozen, slotted pydantic dataclass of a plain annotated class."""
    if dataclasses.is_dataclass(cls) and "__dataclass_fields__" in cls.__dict__:
        raise TypeError("@record derives its own frozen dataclass; do not combine it with @dataclass")
    hooks = _post_inits(cls)
    if "__post_init__" in cls.__dict__:
        # The hooks run from __init__, base first and once each; pydantic must not run the last one again.
        del cls.__post_init__  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    decorate = cast("Any", pydantic_dataclass)
    keeps_eq = "__eq__" in cls.__dict__
    made = cast("type", decorate(cls, frozen=True, slots=True, order=order, eq=not keeps_eq, config=_DEFERRED))
    for hook_name, hook in (("__init__", _make_init(made, hooks)),):
        setattr(made, hook_name, hook)
    made.__record_hooks__ = hooks  # type: ignore[attr-defined]
    if not keeps_eq:
        made.__eq__ = _exact_eq  # type: ignore[method-assign,assignment]
    return made


_DEFERRED = ConfigDict(**_CONFIG, defer_build=True)


def _register_record(cls: type, tag: str) -> None:
    known = _RECORDS_BY_TAG.get(tag)
    if known is not None:
        raise RuntimeError(f"record tag {tag!r} is already used by {known.__qualname__}")
    _RECORDS_BY_TAG[tag] = cls
    _TAG_BY_RECORD[cls] = tag


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
    _check_tag(_WIRE_TAG, tag, "record tag")

    def decorate(cls: C) -> C:
        made = _derive(cls, order=order)
        _register_record(made, tag)
        return cast("C", made)

    return decorate


def enum(tag: str, *, extensions: tuple[str, ...] = ()) -> Callable[[C], C]:
    """Register an `Enum` under a wire tag; `extensions` names members that upstream does not have.

    Raises:
        TypeError: bad tag, or not an `Enum` class.
        RuntimeError: the tag is taken.
    """
    _check_tag(_WIRE_TAG, tag, "enum tag")

    def decorate(cls: C) -> C:
        if not issubclass(cls, Enum):
            raise TypeError(f"@enum needs an Enum class, got {cls!r}")
        if tag in _ENUMS_BY_TAG:
            raise RuntimeError(f"enum tag {tag!r} is already used by {_ENUMS_BY_TAG[tag].enum.__qualname__}")
        spec = EnumSpec(tag, cls, frozenset(extensions))
        _ENUMS_BY_TAG[tag] = spec
        _ENUM_SPECS[cls] = spec
        return cls

    return decorate


def _abstract_init(self: Any, *args: Any, **kwargs: Any) -> None:
    raise TypeError(f"ADT family {type(self).__name__} is abstract; instantiate one of its sealed variants")


def adt(*, wire: str) -> Callable[[C], C]:
    """An abstract family root; its variants are declared with `variant` and closed with `seal_adt`.

    Raises:
        TypeError: bad wire prefix.
        RuntimeError: class or wire prefix already registered.
    """
    _check_tag(_WIRE_TAG, wire, "ADT wire prefix")

    def decorate(cls: C) -> C:
        if wire in _FAMILIES or "__adt_spec__" in cls.__dict__:
            raise RuntimeError(f"ADT family {wire!r} is already registered")
        namespace = {key: value for key, value in vars(cls).items() if key not in {"__dict__", "__weakref__"}}
        namespace.setdefault("__slots__", ())
        made = type(cls.__name__, cls.__bases__, namespace)
        made.__qualname__ = cls.__qualname__
        made.__init__ = _abstract_init  # type: ignore[misc]
        made.__adt_spec__ = ADTSpec(wire, made)  # type: ignore[attr-defined]
        _FAMILIES[wire] = made
        return cast("C", made)

    return decorate


def _family_spec(family: type) -> ADTSpec:
    spec = family.__dict__.get("__adt_spec__")
    if not isinstance(spec, ADTSpec):
        raise TypeError(f"{family!r} is not an ADT family")
    return spec


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, extension))
def variant(local: str) -> Callable[[C], C]:
    """One constructor of the family that the class directly inherits.

    Raises:
        TypeError: bad local tag, or the class inherits no family or several.
        RuntimeError: the family is sealed or the local tag is taken.
    """
    _check_tag(_LOCAL_TAG, local, "variant tag")

    def decorate(cls: C) -> C:
        families = [base for base in cls.__bases__ if "__adt_spec__" in base.__dict__]
        if len(families) != 1:
            raise TypeError(
                f"variant {cls.__name__} must directly inherit exactly one ADT family, found {len(families)}"
            )
        family = families[0]
        spec = _family_spec(family)
        if spec.sealed is not None:
            raise RuntimeError(f"ADT family {family.__name__} is sealed")
        if local in spec.specs:
            raise RuntimeError(f"variant tag {local!r} of {family.__name__} is already used")
        made = _derive(cls, order=False)
        made.__variant_spec__ = VariantSpec(family, local, spec.tag(local), made)  # type: ignore[attr-defined]
        _register_record(made, spec.tag(local))
        spec.specs[local] = cast("VariantSpec", made.__dict__["__variant_spec__"])
        return cast("C", made)

    return decorate


def seal_adt(family: type, closure: Any) -> Any:
    """Close a family: `closure` (a union of classes) must be exactly its registered variants.

    Raises:
        ValueError: members missing, unknown or repeated.
        RuntimeError: already sealed with another closure.
    """
    spec = _family_spec(family)
    members = get_args(closure) if get_origin(closure) in (Union, types.UnionType) else (closure,)
    registered = {item.constructor for item in spec.specs.values()}
    unknown = [item for item in members if item not in registered]
    missing = registered - set(members)
    if unknown or missing or len(set(members)) != len(members):
        parts = [
            f"unknown {', '.join(sorted(getattr(item, '__name__', repr(item)) for item in unknown))}"
            if unknown
            else "",
            f"missing {', '.join(sorted(item.__name__ for item in missing))}" if missing else "",
            "repeated members" if len(set(members)) != len(members) else "",
        ]
        raise ValueError(f"ADT closure of {family.__name__}: {'; '.join(part for part in parts if part)}")
    if spec.sealed is not None and spec.sealed != frozenset(members):
        raise RuntimeError(f"ADT family {family.__name__} is already sealed with another closure")
    spec.sealed = frozenset(members)
    return closure


def adt_manifest(family: type) -> tuple[VariantSpec, ...]:
    """The variants of a family, sorted by local tag."""
    spec = _family_spec(family)
    return tuple(spec.specs[local] for local in sorted(spec.specs))


def adt_closure(family: type) -> frozenset[type]:
    """The exact classes of a sealed family.

    Raises:
        TypeError: not a family, or not sealed.
    """
    spec = _family_spec(family)
    if spec.sealed is None:
        raise TypeError(f"ADT family {family.__name__} is not sealed")
    return spec.sealed


def adt_family_manifest() -> tuple[ADTSpec, ...]:
    """Every registered family, sorted by wire prefix."""
    return tuple(_family_spec(_FAMILIES[wire]) for wire in sorted(_FAMILIES))


def is_adt_variant(value: object, family: type) -> bool:
    """True when the class of `value` is exactly one of the family's variants.

    Raises:
        TypeError: unknown or unsealed family.
    """
    return type(value) in adt_closure(family)


def require_adt_variant(value: object, family: type, subject: str) -> None:
    """Raise unless `value` is a variant of `family`.

    Raises:
        TypeError: it is not (the message names `subject`).
    """
    if not is_adt_variant(value, family):
        raise TypeError(f"{subject} must be a variant of {family.__name__}, got {type(value).__name__}")
