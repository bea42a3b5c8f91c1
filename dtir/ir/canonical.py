"""Whether a program has a canonical form: what constructors leave free (text, open data, depth of expressions)."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any, Literal, TypeAlias, cast, get_args

from dtir.ir.expr import ScalarExpr
from dtir.ir.ids import StableId
from dtir.ir.native import scalar_text
from dtir.schema.authoring import enum_spec_of, is_record_class, record_spec
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import literal_text, utf8
from dtir.schema.opendata import open_text

_Plan: TypeAlias = tuple[str, ...] | Literal["scalar", "open"]


def canonical_obstacle(program: Any) -> str | None:
    """The first thing that no snapshot can hold, as a message; None when everything has a canonical form.

    Every shared part is looked at once, so the cost follows the number of different things. The walk goes by the
    declared fields of the records: a new field is covered without a change here.
    """
    # Identity is enough to know a part again: the program keeps its parts alive while they are walked.
    seen: set[int] = set()
    stack: list[Any] = [program]
    try:
        while stack:
            part = stack.pop()
            kind = cast("type[Any]", type(part))
            if kind is str:
                if not part.isascii():
                    utf8(part)
            elif kind is int or kind is float:
                literal_text(part)
            elif part is not None and kind is not bool and id(part) not in seen:
                seen.add(id(part))
                if kind is tuple:
                    stack.extend(reversed(part))
                    continue
                plan = _plan(kind)
                if plan == "scalar":
                    scalar_text(part)
                elif plan == "open":
                    utf8(open_text(part))
                else:
                    stack.extend([getattr(part, name) for name in plan])
    except SerializationError as error:
        return str(error)
    return None


@cache
def _plan(kind: type[Any]) -> _Plan:
    """What to look at in the values of a class: some fields of a record, last first, or the whole as one part."""
    if issubclass(kind, ScalarExpr):
        return "scalar"
    if issubclass(kind, StableId) or (issubclass(kind, Enum) and enum_spec_of(kind) is not None):
        return ()
    if not is_record_class(kind):
        return "open"
    return tuple(item.name for item in reversed(record_spec(kind).fields) if not _is_closed(item.annotation))


def _is_closed(annotation: Any) -> bool:
    """True when every value of an annotation has a canonical form: flags, registered enum members, identifiers."""
    if annotation is None or annotation is type(None) or annotation is Ellipsis:
        return True
    if isinstance(annotation, type):
        closed = issubclass(annotation, (bool, StableId))
        return closed or (issubclass(annotation, Enum) and enum_spec_of(annotation) is not None)
    arguments = get_args(annotation)
    return bool(arguments) and all(_is_closed(item) for item in arguments)
