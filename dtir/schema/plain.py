"""The native codec: records as plain JSON objects, derived from their field annotations.

* A record is an object of its fields; a field that has its default value is left out.
* Where several classes may stand, a key ``kind`` says which: the local tag of a variant, the wire tag of another record.
  (A field of its own called ``kind`` is then written as ``<tag>_kind``.)
* An enum member is its value, a tuple an array, a frozenset an array sorted by text, a map an object.
* Fields of kind `Any` and maps of `Any` hold open data (`dtir.schema.opendata`).

A new field of a record needs no change here. What a layer writes in a way of its own (identifiers as text, runs of ranks,
things kept in tables) it adds by `Codec` objects for its annotations, see `PlainCodecs`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

from dtir.schema.authoring import (
    FieldSpec,
    adt_manifest,
    enum_spec_of,
    is_record,
    is_record_class,
    record_class,
    record_spec,
)
from dtir.schema.codec import unsupported
from dtir.schema.frozen import FrozenDict, exact_equal
from dtir.schema.jsontext import string_text
from dtir.schema.opendata import Path, PlainError, build_plain
from dtir.schema.plain_codecs import (
    Codec,
    EnumCodec,
    FixedTupleCodec,
    LiteralCodec,
    MapCodec,
    OpenCodec,
    SetCodec,
    TupleCodec,
    UnionCodec,
    expected,
    shown,
)

# -- records -----------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """Key, field name, default (or `MISSING`) and codec of one field; of the key ``kind`` the kind and no codec."""

    key: str
    name: str
    default: Any
    codec: Codec | None


class RecordCodec:
    """The objects of one record class; `kind` is what stands under the key ``kind``, None when nothing does."""

    kinds = frozenset({dict})

    def __init__(self, cls: type[Any], kind: str | None, codecs: PlainCodecs) -> None:
        self._cls = cls
        self._kind = kind
        self._codecs = codecs
        self._plan: tuple[_Field, ...] | None = None
        self._by_key: dict[str, _Field] = {}

    def accepts(self, value: Any) -> bool:
        return type(value) is self._cls

    def write(self, value: Any, session: Any) -> str:
        texts = self.field_texts(value, session)
        inner = ",".join([f'"{key}":{text}' for key, text in texts.items()])
        return f"{{{inner}}}"

    def field_texts(self, value: Any, session: Any) -> dict[str, str]:
        """The text of every field that is written, by key, in the order of the keys."""
        texts: dict[str, str] = {}
        for key, name, default, codec in self._fields():
            if codec is None:
                texts[key] = string_text(cast("str", default))
                continue
            item = getattr(value, name)
            if item is default or (default is not dataclasses.MISSING and exact_equal(item, default)):
                continue
            texts[key] = codec.write(item, session)
        return texts

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, dict):
            raise expected(self.kinds, node, path)
        self._fields()
        arguments: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", node).items():
            field = self._by_key.get(key)
            if field is None:
                raise PlainError(path, f"unknown field {key!r} of {self._cls.__name__}")
            if field.codec is not None:
                arguments[field.name] = field.codec.read(item, session, (path, key))
        for _, name, default, _ in self._fields():
            if default is dataclasses.MISSING and name not in arguments:
                raise PlainError(path, f"field {name!r} of {self._cls.__name__} is missing")
        return build_plain(self._cls, arguments, path)

    def _fields(self) -> tuple[_Field, ...]:
        # Compiled at the first use: a record may refer to itself, and importing the package compiles nothing.
        if self._plan is None:
            fields = [self._field(item) for item in record_spec(self._cls).fields]
            if self._kind is not None:
                fields.append(_Field("kind", "", self._kind, None))
            self._by_key = {field.key: field for field in fields}
            if len(self._by_key) != len(fields):
                raise TypeError(f"{self._cls.__name__} has two fields that are written under one key")
            self._plan = tuple(sorted(fields, key=lambda field: field.key))
        return self._plan

    def _field(self, item: FieldSpec) -> _Field:
        key = item.name
        if key == "kind" and self._kind is not None:
            key = f"{self._kind.rsplit('.', 1)[-1].replace('-', '_')}_kind"
        codec = self._codecs.field_codec(item.annotation)
        return _Field(key, item.name, _default_of(self._cls, item.name), codec)


def _default_of(cls: type[Any], name: str) -> Any:
    field = next(item for item in dataclasses.fields(cls) if item.name == name)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


class ChoiceCodec:
    """One of several record classes, named by the key ``kind``; `find` gives the codec of a kind that is not listed."""

    kinds = frozenset({dict})

    def __init__(
        self,
        choices: Mapping[str, RecordCodec],
        classes: Mapping[type, str],
        what: str,
        find: Callable[[str], RecordCodec | None] | None = None,
        name: Callable[[Any], str | None] | None = None,
    ) -> None:
        self._choices = dict(choices)
        self._classes = dict(classes)
        self._what = what
        self._find = find
        self._name = name

    def accepts(self, value: Any) -> bool:
        return self._kind_of(value) is not None

    def _kind_of(self, value: Any) -> str | None:
        kind = self._classes.get(cast("type[Any]", type(value)))
        return kind if kind is not None or self._name is None else self._name(value)

    def _codec(self, kind: str) -> RecordCodec | None:
        codec = self._choices.get(kind)
        if codec is None and self._find is not None:
            codec = self._find(kind)
        return codec

    def write(self, value: Any, session: Any) -> str:
        kind = self._kind_of(value)
        codec = None if kind is None else self._codec(kind)
        if codec is None:
            raise unsupported(value)
        return codec.write(value, session)

    def read(self, node: Any, session: Any, path: Path) -> Any:
        if not isinstance(node, dict):
            raise expected(self.kinds, node, path)
        kind = cast("dict[str, Any]", node).get("kind")
        codec = self._codec(kind) if isinstance(kind, str) else None
        if codec is None:
            known = f"; known are {', '.join(sorted(self._choices))}" if self._choices else ""
            raise PlainError((path, "kind"), f"{shown(kind)} is no {self._what}{known}")
        return codec.read(node, session, path)


# -- from annotations to codecs ----------------------------------------------------------------------------------


class PlainCodecs:
    """The codecs of every annotation, made once each.

    Args:
        special: gives the codec of an annotation that the layer above writes in a way of its own, else None. It is
            asked first, for every annotation.
        wrap: may put a codec around that of a field's annotation (to keep its values in a table, say).
    """

    def __init__(
        self,
        special: Callable[[Any, PlainCodecs], Codec | None],
        wrap: Callable[[Any, Codec], Codec],
    ) -> None:
        self._special = special
        self._wrap = wrap
        self._made: dict[Any, Codec] = {}
        self._records: dict[tuple[type, str | None], RecordCodec] = {}

    def field_codec(self, annotation: Any) -> Codec:
        """The codec of a field with this annotation."""
        return self._wrap(annotation, self.codec(annotation))

    def codec(self, annotation: Any) -> Codec:
        """The codec of an annotation.

        Raises:
            TypeError: it has no plain form.
        """
        made = self._made.get(annotation)
        if made is None:
            made = self._special(annotation, self)
            if made is None:
                made = self._derive(annotation)
            self._made[annotation] = made
        return made

    def record(self, cls: type[Any], kind: str | None) -> RecordCodec:
        """The codec of one record class under a kind."""
        key = (cls, kind)
        if key not in self._records:
            self._records[key] = RecordCodec(cls, kind, self)
        return self._records[key]

    def _derive(self, annotation: Any) -> Codec:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.codec(arguments[0])
        if annotation is Any:
            return OpenCodec(maps=False)
        if annotation is None or annotation in (type(None), bool, int, float, str):
            return LiteralCodec(type(None) if annotation is None else annotation)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is Literal:
            kinds = dict.fromkeys(cast("type[Any]", type(item)) for item in arguments)
            return UnionCodec(tuple(LiteralCodec(kind) for kind in kinds))
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return TupleCodec(self.field_codec(arguments[0]))
            return FixedTupleCodec(tuple(self.field_codec(item) for item in arguments))
        if origin is frozenset:
            return SetCodec(self.codec(arguments[0]))
        if origin is FrozenDict:
            return OpenCodec(maps=True) if arguments[0] is Any else MapCodec(self.codec(arguments[0]))
        if isinstance(annotation, type):
            return self._class(annotation)
        raise TypeError(f"annotation {annotation!r} has no plain form")

    def _class(self, cls: type[Any]) -> Codec:
        if issubclass(cls, FrozenDict):
            return OpenCodec(maps=True)
        if "__adt_spec__" in cls.__dict__:
            return self._variants([item.constructor for item in adt_manifest(cls)])
        if issubclass(cls, Enum) and enum_spec_of(cls) is not None:
            return EnumCodec(cls)
        if "__variant_spec__" in cls.__dict__:
            return self._variants([cls])
        if is_record_class(cls):
            return self.record(cls, None)
        return self._open_class(cls)

    def _union(self, members: tuple[Any, ...]) -> Codec:
        """The members of a union; its record classes and variants become one choice when there are several."""
        classes = [item for item in members if isinstance(item, type) and is_record_class(item)]
        if len(classes) < 2 and not any("__variant_spec__" in item.__dict__ for item in classes):
            classes = []
        others = tuple(self.codec(item) for item in members if item not in classes)
        if not classes:
            return UnionCodec(others)
        choice = self._variants(classes)
        return UnionCodec((*others, choice)) if others else choice

    def _variants(self, classes: list[type[Any]]) -> ChoiceCodec:
        kinds = {cls: local_kind(cls) for cls in classes}
        choices = {kind: self.record(cls, kind) for cls, kind in kinds.items()}
        if len(choices) != len(classes):
            raise TypeError("two classes of a union have one kind")
        return ChoiceCodec(choices, kinds, "kind that may stand here")

    def _open_class(self, base: type[Any]) -> ChoiceCodec:
        """Any registered record that is an instance of `base`, under its wire tag."""

        def find(tag: str) -> RecordCodec | None:
            cls = record_class(tag)
            return self.record(cls, tag) if cls is not None and issubclass(cls, base) else None

        def name(value: Any) -> str | None:
            known = isinstance(value, base) and is_record(value)
            return record_spec(cast("type[Any]", type(value))).tag if known else None

        return ChoiceCodec({}, {}, f"{base.__name__}", find, name)


def local_kind(cls: type[Any]) -> str:
    """What stands under ``kind`` for a class of a closed choice: a variant's local tag, else the end of the wire tag."""
    variant = cls.__dict__.get("__variant_spec__")
    return variant.local_tag if variant is not None else record_spec(cls).tag.rsplit(".", 1)[-1]
