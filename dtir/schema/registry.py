"""What is registered: records by wire tag, enums, and closed sum types (ADT families) with their variants.

The registry is filled by the decorators of `dtir.schema.authoring` and read by matching, codecs and migrations.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, get_origin, get_type_hints

_WIRE_TAG = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
_LOCAL_TAG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """One constructor of a family; `extension` variants are dtir's own."""

    family: type
    local_tag: str
    wire_tag: str
    constructor: type
    extension: bool = False


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
    """A registered record class with its tag and fields in declaration order; an `extension` is dtir's own."""

    tag: str
    constructor: type
    fields: tuple[FieldSpec, ...]
    extension: bool = False


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

_OWN_PREFIX = "dtir."
"""Records under this prefix are dtir's own; the upstream format does not have them."""


def check_wire_tag(tag: object, what: str) -> None:
    """Refuse what is no dotted lower-case tag.

    Raises:
        TypeError: it is not.
    """
    _check_tag(_WIRE_TAG, tag, what)


def check_local_tag(tag: object, what: str) -> None:
    """Refuse what is no lower-case tag of a variant.

    Raises:
        TypeError: it is not.
    """
    _check_tag(_LOCAL_TAG, tag, what)


def _check_tag(pattern: re.Pattern[str], tag: object, what: str) -> None:
    if not isinstance(tag, str) or not pattern.fullmatch(tag):
        raise TypeError(f"{what} must match {pattern.pattern}, got {tag!r}")


# -- records -----------------------------------------------------------------------------------------------------


def register_record(cls: type, tag: str) -> None:
    """Enter a record class under its tag.

    Raises:
        RuntimeError: the tag is taken.
    """
    known = _RECORDS_BY_TAG.get(tag)
    if known is not None:
        raise RuntimeError(f"record tag {tag!r} is already used by {known.__qualname__}")
    _RECORDS_BY_TAG[tag] = cls
    _TAG_BY_RECORD[cls] = tag


def _annotations(cls: type) -> dict[str, Any]:
    """Resolved annotations of every dataclass field, base classes first."""
    hints: dict[str, Any] = {}
    for klass in reversed(cls.__mro__):
        own = inspect.get_annotations(klass)
        if not own:
            continue
        resolved = get_type_hints(klass, vars(sys.modules[klass.__module__]), {cls.__name__: cls}, include_extras=True)
        hints.update({name: resolved[name] for name in own})
    return {name: hint for name, hint in hints.items() if hint is not ClassVar and get_origin(hint) is not ClassVar}


def record_spec(cls: type[Any]) -> RecordSpec:
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
    variant: VariantSpec | None = cls.__dict__.get("__variant_spec__")
    spec = RecordSpec(tag, cls, fields, tag.startswith(_OWN_PREFIX) or (variant is not None and variant.extension))
    _RECORD_SPECS[cls] = spec
    return spec


def record_class(tag: str) -> type | None:
    """The record registered under `tag`, or None."""
    return _RECORDS_BY_TAG.get(tag)


def record_classes(base: type) -> tuple[type, ...]:
    """The registered records that are classes below `base`, in the order in which they were declared."""
    return tuple(cls for cls in _TAG_BY_RECORD if issubclass(cls, base))


def is_record_class(cls: type[Any]) -> bool:
    """True when the class is a registered record."""
    return cls in _TAG_BY_RECORD


def is_record(value: object) -> bool:
    """True when the class of `value` is a registered record."""
    return type(value) in _TAG_BY_RECORD


# -- enums -------------------------------------------------------------------------------------------------------


def register_enum(spec: EnumSpec) -> None:
    """Enter an enum under its tag.

    Raises:
        RuntimeError: the tag is taken.
    """
    if spec.tag in _ENUMS_BY_TAG:
        raise RuntimeError(f"enum tag {spec.tag!r} is already used by {_ENUMS_BY_TAG[spec.tag].enum.__qualname__}")
    _ENUMS_BY_TAG[spec.tag] = spec
    _ENUM_SPECS[spec.enum] = spec


def enum_spec(tag: str) -> EnumSpec | None:
    """The enum registered under `tag`, or None."""
    return _ENUMS_BY_TAG.get(tag)


def enum_spec_of(cls: type[Any]) -> EnumSpec | None:
    """How an enum class is registered, or None when it is not."""
    return _ENUM_SPECS.get(cls)


# -- families ----------------------------------------------------------------------------------------------------


def register_family(wire: str, root: type) -> None:
    """Enter a family under its wire prefix; `has_family` says whether that is free."""
    _FAMILIES[wire] = root


def has_family(wire: str) -> bool:
    """True when the wire prefix is taken."""
    return wire in _FAMILIES


def family_spec(family: type) -> ADTSpec:
    """How a family is declared.

    Raises:
        TypeError: not an ADT family.
    """
    spec = family.__dict__.get("__adt_spec__")
    if not isinstance(spec, ADTSpec):
        raise TypeError(f"{family!r} is not an ADT family")
    return spec


def adt_manifest(family: type) -> tuple[VariantSpec, ...]:
    """The variants of a family, sorted by local tag."""
    spec = family_spec(family)
    return tuple(spec.specs[local] for local in sorted(spec.specs))


def adt_closure(family: type) -> frozenset[type]:
    """The exact classes of a sealed family.

    Raises:
        TypeError: not a family, or not sealed.
    """
    spec = family_spec(family)
    if spec.sealed is None:
        raise TypeError(f"ADT family {family.__name__} is not sealed")
    return spec.sealed


def adt_family_manifest() -> tuple[ADTSpec, ...]:
    """Every registered family, sorted by wire prefix."""
    return tuple(family_spec(_FAMILIES[wire]) for wire in sorted(_FAMILIES))


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
