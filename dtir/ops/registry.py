"""The open registry of operators, by dialect and name.

The operators of this package load at the first look-up. A user adds one with `register_op`; no name found in a file is
ever imported.

>>> find_op(OperationName("core", "einsum")) is require_op("einsum")
True
>>> find_op(OperationName("mine", "warp")) is None
True
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from dtir.ir.tasks import DistributedTask
from dtir.ir.types import OperationName
from dtir.ops.opdef import OpDef, OpError

CORE = "core"
PREFIX = "op."
"""Attributes of a task under this prefix are the parameters of its operator."""

_MODULES = tuple(f"dtir.ops.{name}" for name in ("contract", "elementwise", "reductions", "shapes", "placed", "atoms"))
"""Modules of this package with a tuple ``OPS`` of (dialect, OpDef)."""

_added: dict[OperationName, OpDef] = {}


@cache
def _built_in() -> Mapping[OperationName, OpDef]:
    found: dict[OperationName, OpDef] = {}
    for module in _MODULES:
        operators: tuple[tuple[str, OpDef], ...] = import_module(module).OPS
        for dialect, operator in operators:
            name = OperationName(dialect, operator.name)
            if name in found:
                raise ValueError(f"{name} has two definitions, the second in {module}")
            found[name] = operator
    return MappingProxyType(found)


def register_op(operator: OpDef, *, dialect: str) -> None:
    """Make an operator known to every judge, cost model and executor of this process.

    Raises:
        ValueError: the dialect already has an operator of that name.
    """
    name = OperationName(dialect, operator.name)
    if name in _added or name in _built_in():
        raise ValueError(f"operator {name} is already defined")
    _added[name] = operator


def added_count() -> int:
    """How many operators `register_op` has added and nobody has taken back."""
    return len(_added)


def unregister_op(name: OperationName) -> None:
    """Take back an operator that `register_op` added.

    Raises:
        KeyError: it was not added.
    """
    del _added[name]


def find_op(name: OperationName) -> OpDef | None:
    """The operator of that name, or None: an unknown operator, of which nothing may be assumed."""
    return _added.get(name) or _built_in().get(name)


def require_op(name: str, dialect: str = CORE) -> OpDef:
    """The operator of that name.

    Raises:
        OpError: there is none; similar names are given.
    """
    found = find_op(OperationName(dialect, name))
    if found is None:
        close = similar_ops(name, dialect)
        raise OpError(f"no operator {dialect}.{name}" + (f": did you mean {close[0]}?" if close else ""))
    return found


def similar_ops(name: str, dialect: str = CORE) -> list[str]:
    """Names of operators of a dialect that read like a mistyped one, best first."""
    known = [item.name for item in (*_built_in(), *_added) if item.dialect == dialect]
    return get_close_matches(name, known, n=3)


def op_attributes(task: DistributedTask) -> Mapping[str, Any]:
    """The parameters of a task's operator by their plain names: ``op.spec`` is ``spec``, and of a dialect its own
    facts too, so that ``hlo.dimensions`` of an HLO task is ``dimensions``.
    """
    dialect = f"{task.operation.dialect}."
    prefixes = (PREFIX,) if dialect == f"{CORE}." else (PREFIX, dialect)
    return {
        key.removeprefix(prefix): value
        for prefix in prefixes
        for key, value in task.attributes.items()
        if key.startswith(prefix)
    }
