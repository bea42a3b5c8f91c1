"""Whether a program has a canonical form: what constructors leave free (text, open data, depth of expressions)."""

from __future__ import annotations

from enum import Enum
from typing import Any, cast

from dtir.ir.expr import ScalarExpr
from dtir.ir.ids import StableId
from dtir.ir.ranks import RankRange
from dtir.schema.authoring import is_record, record_spec
from dtir.schema.codec import canonical_json, literal_text, utf8
from dtir.schema.errors import SerializationError

_CLOSED = (bool, Enum, StableId, RankRange)
"""Kinds whose constructors leave nothing free."""


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
            if part is None or isinstance(part, _CLOSED) or id(part) in seen:
                continue
            if isinstance(part, str):
                if not part.isascii():
                    utf8(part)
                continue
            seen.add(id(part))
            if type(part) is tuple:
                stack.extend(reversed(cast("tuple[Any, ...]", part)))
            elif is_record(part) and not isinstance(part, ScalarExpr):
                spec = record_spec(cast("type[Any]", type(part)))
                stack.extend(getattr(part, item.name) for item in reversed(spec.fields))
            elif literal_text(part) is None:
                utf8(canonical_json(part))
    except SerializationError as error:
        return str(error)
    return None
