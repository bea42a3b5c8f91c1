"""From a field annotation to the pydantic schema that matches it: strict, without coercion, variants by exact class.

Matching rules: `Any` takes anything; a sealed family or one of its variants takes exactly those classes;
`Annotated[base, *ValueConstraint]` takes what `base` takes and every constraint holds for; `Literal` needs the same
type; `tuple[X, ...]` and fixed tuples need a real tuple; `frozenset[X]`, `FrozenDict`, `Mapping`, `Sequence` (not
text) likewise; `int` refuses `bool`, `float` refuses `int`; everything else is an `isinstance` check. Text is matched
by class alone, so that a lone surrogate is a *finding* of the verifier and not a crash.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic_core import PydanticCustomError, core_schema

from dtir.schema.frozen import FrozenDict
from dtir.schema.refinements import ValueConstraint

Schema = core_schema.CoreSchema

_INT = core_schema.int_schema(strict=True)
_FLOAT = core_schema.is_instance_schema(float)


def variant_classes(annotation: Any) -> tuple[type, ...] | None:
    """The exact classes that a family or variant annotation admits; None for every other annotation."""
    if not isinstance(annotation, type):
        return None
    if "__variant_spec__" in annotation.__dict__:
        return (annotation,)
    spec = annotation.__dict__.get("__adt_spec__")
    return None if spec is None else cast("tuple[type, ...]", spec.variants)


def _exact_class_schema(classes: tuple[type, ...]) -> Schema:
    allowed = frozenset(classes)

    def check(value: Any) -> Any:
        if type(value) not in allowed:
            raise PydanticCustomError("exact_class", "not one of the admitted classes")
        return value

    return core_schema.no_info_plain_validator_function(check)


def _family_schema(family: type) -> Schema:
    # The family may be sealed after the annotation is read: look its variants up at each check.
    def check(value: Any) -> Any:
        if type(value) not in family.__dict__["__adt_spec__"].variants:
            raise PydanticCustomError("exact_class", "not a variant of the family")
        return value

    return core_schema.no_info_plain_validator_function(check)


def _constrained(schema: Schema, constraints: Sequence[ValueConstraint]) -> Schema:
    def check(value: Any) -> Any:
        for constraint in constraints:
            if not constraint.holds(value):
                raise PydanticCustomError("constraint", "constraint does not hold")
        return value

    if schema["type"] == "int" and all(item in _NATIVE_INT for item in constraints):
        bounds: dict[str, Any] = {}
        for constraint in constraints:
            bounds.update(_NATIVE_INT[constraint])
        return core_schema.int_schema(strict=True, **bounds)
    return core_schema.no_info_after_validator_function(check, schema)


_NATIVE_INT: dict[ValueConstraint, dict[str, int]] = {
    ValueConstraint.NON_NEGATIVE: {"ge": 0},
    ValueConstraint.POSITIVE: {"gt": 0},
    ValueConstraint.AT_LEAST_TWO: {"ge": 2},
    ValueConstraint.AT_MOST_ONE: {"le": 1},
}


def _sequence_schema(item: Any) -> Schema:
    item_schema = schema_for(item)
    validator: list[Any] = []

    def check(value: Any) -> Any:
        from pydantic_core import SchemaValidator  # built once, at the first use of such a field

        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise PydanticCustomError("sequence", "not a sequence")
        if not validator:
            validator.append(SchemaValidator(item_schema))
        for entry in cast("Sequence[Any]", value):
            validator[0].validate_python(entry)
        return cast("Any", value)

    return core_schema.no_info_plain_validator_function(check)


def _unchanged(schema: Schema) -> Schema:
    # pydantic rebuilds containers; the original keeps its identity, so that shared rank tuples stay shared.
    def check(value: Any, handler: core_schema.ValidatorFunctionWrapHandler) -> Any:
        handler(value)
        return value

    return core_schema.no_info_wrap_validator_function(check, schema)


def _frozen_dict_schema(value_annotation: Any) -> Schema:
    items = core_schema.dict_schema(core_schema.any_schema(), schema_for(value_annotation))

    def check(value: Any, handler: core_schema.ValidatorFunctionWrapHandler) -> Any:
        if not isinstance(value, FrozenDict):
            raise PydanticCustomError("frozen_dict", "not a FrozenDict")
        handler(dict(cast("FrozenDict[Any]", value)))
        return cast("Any", value)

    return core_schema.no_info_wrap_validator_function(check, items)


def _union_schema(members: tuple[Any, ...]) -> Schema:
    variants: list[type] = []
    others: list[Schema] = []
    for member in members:
        if isinstance(member, type) and "__variant_spec__" in member.__dict__:
            variants.append(member)
        else:
            others.append(schema_for(member))
    choices: list[Schema | tuple[Schema, str]] = [*others]
    if variants:
        choices.append(_exact_class_schema(tuple(variants)))
    if len(choices) == 1:
        return cast("Schema", choices[0])
    # "left_to_right" with strict members gives the same answer as upstream's "any member matches"
    # and is the cheaper mode; no member of a union here admits the values of another with a coercion.
    return core_schema.union_schema(choices, mode="left_to_right")


def schema_for(annotation: Any) -> Schema:
    """The core schema that accepts exactly the values that match `annotation`, unchanged."""
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if annotation is Any:
        return core_schema.any_schema()
    if annotation is None or annotation is type(None):
        return core_schema.none_schema()
    if origin is Annotated:
        base, *metadata = arguments
        constraints = [item for item in metadata if isinstance(item, ValueConstraint)]
        schema = schema_for(base)
        return _constrained(schema, constraints) if constraints else schema
    if origin in (Union, types.UnionType):
        return _union_schema(arguments)
    if origin is Literal:
        return _literal_schema(arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _unchanged(core_schema.tuple_variable_schema(schema_for(arguments[0]), strict=True))
        return _unchanged(core_schema.tuple_positional_schema([schema_for(item) for item in arguments], strict=True))
    if origin is frozenset:
        return _unchanged(core_schema.frozenset_schema(schema_for(arguments[0]), strict=True))
    if origin is FrozenDict:
        return _frozen_dict_schema(arguments[0])
    if origin in (list, Sequence):
        return _sequence_schema(arguments[0])
    if origin in (dict, Mapping):
        return core_schema.is_instance_schema(Mapping)
    if annotation is int:
        return _INT
    if annotation is float:
        return _FLOAT
    if isinstance(annotation, type) and "__adt_spec__" in annotation.__dict__:
        return _family_schema(annotation)
    classes = variant_classes(annotation)
    if classes is not None:
        return _exact_class_schema(classes)
    target = origin or annotation
    if isinstance(target, type):
        return core_schema.is_instance_schema(target)
    raise TypeError(f"annotation {annotation!r} has no matching rule")


def _literal_schema(expected: tuple[Any, ...]) -> Schema:
    # By type as well as by value: Literal[1] does not take True.
    keys: frozenset[tuple[type[Any], Any]] = frozenset((cast("type[Any]", type(item)), item) for item in expected)

    def check(value: Any) -> Any:
        if (type(value), value) not in keys:
            raise PydanticCustomError("literal", "not one of the literal values")
        return value

    return core_schema.no_info_plain_validator_function(check)
