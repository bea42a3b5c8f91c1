"""What a program holds that the upstream format cannot: one finding a thing, with its path.

The walk goes by what the records declare (extension fields, variants, records and enum members), so that a new
extension is found without a change here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from dtir.ir.ids import StableId
from dtir.ir.ranks import EXPANDED_RANKS_LIMIT, RankRange
from dtir.schema.authoring import enum_spec_of, is_record, record_classes, record_spec
from dtir.schema.diagnostics import Diagnostic
from dtir.schema.frozen import FrozenDict, exact_equal
from dtir.schema.jsontext import MAX_JSON_DEPTH
from dtir.schema.opendata import member_order
from dtir.schema.refinements import ValueConstraint

if TYPE_CHECKING:
    from dtir.ir.program import DistributedTaskIR

CODE = "serialization.upstream"

_PAYLOAD_DEPTH = 2
_NAMED_STEPS = 8
"""Of a path into something that nests too deep, so many steps say where it begins."""
_IDS = tuple(cls for cls in record_classes(StableId) if not record_spec(cls).extension)
_SCALARS: tuple[type, ...] = (type(None), bool, int, float, str, *_IDS)


class _Place(NamedTuple):
    """Where a part is: the step from the place above, and the ids of what holds it."""

    above: _Place | None
    step: str
    subject: tuple[str, ...]

    def path(self) -> tuple[str, ...]:
        steps: list[str] = []
        place = self
        while place.above is not None:
            steps.append(place.step)
            place = place.above
        return tuple(reversed(steps))


def upstream_obstacles(program: DistributedTaskIR) -> tuple[Diagnostic, ...]:
    """Every reason why a program cannot be written in the upstream format; empty when it can."""
    # Nearly always there is none: then one look at each distinct part is enough, and no path is needed.
    if next(_obstacles(program, distinct_only=True), None) is None:
        return ()
    return tuple(_obstacles(program, distinct_only=False))


def _obstacles(program: DistributedTaskIR, *, distinct_only: bool) -> Iterator[Diagnostic]:
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Any, _Place, int]] = [(program, _Place(None, "", ()), _PAYLOAD_DEPTH)]
    while stack:
        part, place, depth = stack.pop()
        if distinct_only:
            if (id(part), depth) in seen:
                continue
            seen.add((id(part), depth))
        if depth + _brackets(part) > MAX_JSON_DEPTH:
            yield _finding(place, f"the upstream format nests at most {MAX_JSON_DEPTH} levels", steps=_NAMED_STEPS)
            continue
        message = _refusal(part)
        if message is not None:
            yield _finding(place, message)
            continue
        identifier = getattr(part, "id", None)
        if isinstance(identifier, StableId):
            place = place._replace(subject=(str(identifier),))
        if is_record(part) and not isinstance(part, RankRange):
            for name, message in _extension_fields(part):
                yield _finding(_Place(place, name, place.subject), message)
        for step, item, deeper in reversed(_parts(part)):
            if not isinstance(item, _SCALARS):
                stack.append((item, _Place(place, step, place.subject), depth + deeper))


def _finding(place: _Place, message: str, *, steps: int | None = None) -> Diagnostic:
    return Diagnostic(
        CODE,
        message,
        place.path()[:steps],
        hint="write the native form, which holds it, or lower the program first",
        subject=place.subject,
    )


def _refusal(part: Any) -> str | None:
    """Why a part cannot be written as a whole, or None."""
    if isinstance(part, Enum):
        spec = enum_spec_of(type(part))
        if spec is not None and (part.name in spec.extensions or spec.tag.startswith("dtir.")):
            return f"the upstream format has no {type(part).__name__} {part.value!r}"
        return None
    if isinstance(part, RankRange):
        if len(part) <= EXPANDED_RANKS_LIMIT:
            return None
        return f"{len(part)} ranks would be written one by one; at most {EXPANDED_RANKS_LIMIT} are"
    if is_record(part):
        if record_spec(cast("type[Any]", type(part))).extension:
            return f"the upstream format has no {type(part).__name__}"
        obstacle = getattr(part, "upstream_obstacle", None)
        return None if obstacle is None else obstacle()
    return None


def _brackets(part: Any) -> int:
    if isinstance(part, (bytes, Enum)):
        return 1
    return 3 if isinstance(part, FrozenDict) and len(cast("FrozenDict[Any]", part)) else 2


class _Plan(NamedTuple):
    """What to look at in the records of a class: fields of dtir's own with their defaults, and the others to walk."""

    extensions: tuple[tuple[str, Any], ...]
    walked: tuple[str, ...]


@cache
def _plan(cls: type[Any]) -> _Plan:
    defaults = {item.name: item for item in dataclasses.fields(cls)}
    fields = record_spec(cls).fields
    return _Plan(
        tuple((item.name, _default(defaults[item.name])) for item in fields if item.extension),
        tuple(item.name for item in fields if not item.extension and not _is_leaf(item.annotation)),
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _is_leaf(annotation: Any) -> bool:
    """True when the upstream format holds every value of an annotation: text, numbers, identifiers, tuples of these."""
    if annotation is None or annotation is Ellipsis or isinstance(annotation, ValueConstraint):
        return True
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation is not object and issubclass(annotation, _SCALARS)
    arguments = get_args(annotation)
    return bool(arguments) and all(_is_leaf(item) for item in arguments)


def _extension_fields(record: Any) -> Iterator[tuple[str, str]]:
    for name, default in _plan(cast("type[Any]", type(record))).extensions:
        value = getattr(record, name)
        if value is not default and not exact_equal(value, default):
            yield name, f"the upstream format has no field {type(record).__name__}.{name}"


def _parts(part: Any) -> list[tuple[str, Any, int]]:
    """What a part holds: the step to each, the item, and how many more brackets are open around it."""
    if type(part) is tuple:
        return [(str(index), item, 2) for index, item in enumerate(cast("tuple[Any, ...]", part))]
    if isinstance(part, FrozenDict):
        return [(key or "''", item, 3) for key, item in cast("FrozenDict[Any]", part).items()]
    if isinstance(part, frozenset):
        members = sorted(cast("frozenset[Any]", part), key=member_order)
        return [(str(index), item, 2) for index, item in enumerate(members)]
    if is_record(part) and not isinstance(part, (Enum, RankRange)):
        return [(name, getattr(part, name), 2) for name in _plan(cast("type[Any]", type(part))).walked]
    return []
