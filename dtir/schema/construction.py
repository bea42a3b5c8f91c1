"""How a record class is made and how its objects check themselves when they are built.

`derive` turns a plain annotated class into a frozen, slotted pydantic dataclass. Building an object matches every field
against its annotation, in order and without coercion, then runs the ``__post_init__`` of each class, base first.
Equality is exact: `True`, `1` and `1.0` differ, as they do in a snapshot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs, SchemaValidator, core_schema

from dtir.schema.frozen import exact_equal
from dtir.schema.matching import schema_for
from dtir.schema.registry import FieldSpec, record_spec

# The schema that is used is `_dataclass_schema`, built at the first construction; pydantic's own is never built.
_CONFIG = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

Hook = Callable[[Any], None]


def derive(cls: type, *, order: bool) -> type:
    """The frozen, slotted pydantic dataclass of a plain annotated class.

    Raises:
        TypeError: the class already is a dataclass.
    """
    if "__dataclass_fields__" in cls.__dict__:
        raise TypeError("@record derives its own frozen dataclass; do not combine it with @dataclass")
    hooks = _post_inits(cls)
    if "__post_init__" in cls.__dict__:
        # The hooks run from __init__, base first and once each; pydantic must not run the last one again.
        delattr(cls, "__post_init__")
    decorate = cast("Any", pydantic_dataclass)
    keeps_eq = "__eq__" in cls.__dict__
    made = decorate(cls, frozen=True, slots=True, order=order, eq=not keeps_eq, config=_CONFIG)
    made.__init__ = _make_init(made, hooks)
    made.__record_hooks__ = hooks
    if not keeps_eq:
        made.__eq__ = _exact_eq
        made.__exact_fields__ = tuple(item.name for item in dataclasses.fields(made))
    return made


def _post_inits(cls: type) -> tuple[Hook, ...]:
    found: list[Hook] = []
    for klass in reversed(cls.__mro__):
        inherited = klass.__dict__.get("__record_hooks__", ())
        own = klass.__dict__.get("__post_init__")
        found += [hook for hook in (*inherited, *((own,) if own is not None else ())) if hook not in found]
    return tuple(found)


def _make_init(cls: type, hooks: tuple[Hook, ...]) -> Callable[..., None]:
    validator: list[SchemaValidator] = []

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not validator:
            # Built at the first construction: importing the package compiles no schema.
            validator.append(SchemaValidator(_dataclass_schema(cls)))
        try:
            validator[0].validate_python(ArgsKwargs(args, kwargs), self_instance=self)
        except ValidationError as error:
            _raise_mismatch(cls, error, args, kwargs)
        for hook in hooks:
            hook(self)

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


def _dataclass_schema(cls: type) -> core_schema.CoreSchema:
    fields = record_spec(cls).fields
    arguments = [
        core_schema.dataclass_field(name=item.name, schema=_field_schema(cls, item), kw_only=False, frozen=True)
        for item in fields
    ]
    return core_schema.dataclass_schema(
        cls,
        core_schema.dataclass_args_schema(cls.__name__, arguments),
        [item.name for item in fields],
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


# -- what a constructor refuses ----------------------------------------------------------------------------------


def _raise_mismatch(cls: type, error: ValidationError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    """Turn pydantic's report into the one-line `TypeError` that names class and field."""
    fields = record_spec(cls).fields
    refused = _call_mistake(cls, fields, args, kwargs)
    if refused is None:
        names = [item.name for item in fields]
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"][0]
        field = fields[first] if isinstance(first, int) else fields[names.index(first)]
        position = names.index(field.name)
        value = args[position] if position < len(args) else kwargs[field.name]
        refused = f"{cls.__name__}.{field.name} must match {field.annotation!r}, got {type(value).__name__}"
    raise TypeError(refused) from None


def _call_mistake(cls: type, fields: Sequence[FieldSpec], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What Python itself would say about the arguments of the call, or None when they fit the fields."""
    call = f"{cls.__name__}.__init__()"
    names = [item.name for item in fields]
    positional = names[: len(args)]
    for name in kwargs:
        if name not in names:
            return f"{call} got an unexpected keyword argument {name!r}"
        if name in positional:
            return f"{call} got multiple values for argument {name!r}"
    required = sum(item.required for item in fields)
    if len(args) > len(names):
        takes = f"from {required + 1} to {len(names) + 1}" if required < len(names) else f"{len(names) + 1}"
        return f"{call} takes {takes} positional arguments but {len(args) + 1} were given"
    missing = [
        item.name for item in fields if item.required and item.name not in positional and item.name not in kwargs
    ]
    if not missing:
        return None
    noun = "argument" if len(missing) == 1 else "arguments"
    return f"{call} missing {len(missing)} required positional {noun}: {_listed(missing)}"


def _listed(names: list[str]) -> str:
    quoted = [repr(name) for name in names]
    if len(quoted) <= 2:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


# -- equality ----------------------------------------------------------------------------------------------------


def _exact_eq(self: Any, other: object) -> Any:
    if self is other:
        return True
    if type(other) is not type(self):
        return NotImplemented
    return exact_equal(self, other)
