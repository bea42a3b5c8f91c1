"""Structural checks that stand on their own: each reports into a bag, with the path it is given.

Builders, passes and importers use them before there is a whole program; `dtir.ir.structure` uses them on one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence, Set
from typing import Any, cast

from dtir.ir.expr import ScalarExpr, Symbol
from dtir.schema.diagnostics import DiagnosticBag
from dtir.schema.frozen import FrozenDict
from dtir.schema.opendata import member_order

RESERVED_ATTRIBUTES = frozenset(
    {
        # said by typed fields of programs, tasks and their semantics
        "model_spec", "workload_spec", "mapping_spec", "inference_mapping_spec", "inference_phase", "batch_size",
        "query_tokens", "context_tokens", "datatype", "invocation", "block_memory", "scope",
        # said by a binding
        "physical_device", "device_id", "route", "queue", "stream", "kernel", "implementation_id",
        # said by a run record or a machine profile
        "start", "start_time", "end", "end_time", "duration", "latency", "bandwidth",
    }
)  # fmt: skip
"""Attribute names that belong to typed fields, to a binding or to a run record, compared in lower case."""


def reject_reserved_attributes(
    bag: DiagnosticBag, attributes: FrozenDict[Any], reserved: frozenset[str], *path: str
) -> None:
    """Report every reserved key, nested through maps, tuples and sets, each before what its value holds."""
    if not attributes:
        return
    stack: list[tuple[str | None, Any, tuple[str, ...]]] = [(None, attributes, path)]
    while stack:
        key, value, location = stack.pop()
        if key is not None and key.lower() in reserved:
            bag.error(
                "attribute.reserved",
                f"{key!r} is a semantic field and is illegal in this IR layer",
                *location,
                hint="say it in the typed field, a binding or a run record; other attribute names are free",
            )
        stack.extend(reversed(_nested(value, location)))


def _nested(value: Any, location: tuple[str, ...]) -> list[tuple[str | None, Any, tuple[str, ...]]]:
    if isinstance(value, FrozenDict):
        entries = cast("FrozenDict[Any]", value).items()
        return [(key, item, (*location, key or "''")) for key, item in entries]
    items: Iterable[Any] = ()
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
    elif isinstance(value, frozenset):
        items = sorted(cast("frozenset[Any]", value), key=member_order)
    return [(None, item, (*location, str(index))) for index, item in enumerate(items)]


def verify_unique_ids(bag: DiagnosticBag, items: Iterable[Any], identify: Callable[[Any], Any], *path: str) -> None:
    """Report ids that occur again."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        identifier = identify(item)
        if identifier in seen:
            bag.error(
                "id.duplicate",
                f"duplicate identifier {identifier}",
                *path,
                str(index),
                "id",
                hint="give every value and every task an id of its own",
                subject=(str(identifier),),
            )
        seen.add(identifier)


def verify_known_references(bag: DiagnosticBag, references: Iterable[Any], known: Iterable[Any], *path: str) -> None:
    """Report references to ids that are not declared."""
    known_ids: Collection[Any] = known if isinstance(known, Set) else set(known)
    for reference in references:
        if reference not in known_ids:
            bag.error(
                "reference.unknown",
                f"unknown reference {reference}",
                *path,
                hint="declare it, or refer to one that is declared",
                subject=(str(reference),),
            )


def verify_ordered_dag(
    bag: DiagnosticBag,
    items: Sequence[Any],
    identify: Callable[[Any], Any],
    dependencies: Callable[[Any], Sequence[Any]],
    *path: str,
) -> None:
    """Report repeated, self, unknown and backward dependencies: nodes must stand in topological order."""
    known = {identify(item) for item in items}
    seen: set[Any] = set()
    for index, item in enumerate(items):
        identifier = identify(item)
        needed = dependencies(item)
        if needed:
            repeated = len(needed) > 1 and len(set(needed)) != len(needed)
            if repeated or identifier in needed or not seen.issuperset(needed):
                _report_dependencies(bag, identifier, needed, known, seen, (*path, str(index), "dependencies"))
        seen.add(identifier)


def _report_dependencies(
    bag: DiagnosticBag, identifier: Any, needed: Sequence[Any], known: set[Any], seen: set[Any], path: tuple[str, ...]
) -> None:
    if len(set(needed)) != len(needed):
        bag.error(
            "dag.duplicate_dependency",
            "dependencies must be unique",
            *path,
            hint="name each dependency once",
            subject=(str(identifier),),
        )
    for dependency in needed:
        ids = (str(identifier), str(dependency))
        if dependency == identifier:
            bag.error(
                "dag.self_dependency", f"{dependency} depends on itself", *path, hint="drop the dependency", subject=ids
            )
        if dependency not in known:
            bag.error(
                "reference.unknown",
                f"dependency {dependency} is not declared",
                *path,
                hint="declare the task, or depend on one that is declared",
                subject=ids,
            )
        elif dependency not in seen:
            bag.error(
                "dag.not_topological",
                f"dependency {dependency} must precede {identifier}",
                *path,
                hint="store canonical DAG nodes in topological order",
                subject=ids,
            )


def verify_nonnegative_scalar(bag: DiagnosticBag, value: Any, *path: str, subject: tuple[str, ...] = ()) -> None:
    """Report a quantity that is not a scalar, not finite or negative; symbolic quantities pass."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Symbol, ScalarExpr)):
        what = type(value).__name__
        bag.error("scalar.invalid", f"unsupported scalar quantity of type {what}", *path, subject=subject)
    elif isinstance(value, float) and not math.isfinite(value):
        bag.error("scalar.nonfinite", "quantity must be finite", *path, subject=subject)
    elif isinstance(value, (int, float)) and value < 0:
        bag.error(
            "scalar.negative", "quantity must not be negative", *path, hint="count bytes from zero", subject=subject
        )
