"""What the attributes of values and programs say beyond those of HLO."""

from __future__ import annotations

from typing import Any

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.stablehlo.sdy import parse_list, parse_sharding
from dtir.schema.frozen import FrozenDict


def said(name: str) -> str:
    """The key of what MLIR text says among the attributes of a program: ``mlir.<name>``."""
    return f"mlir.{name}"


def sharding_facts(found: FrozenDict[Any], text: str) -> FrozenDict[Any]:
    """Attributes of a value with the open dims and priorities of its sharding, where it has any.

    `sdy.open_dims` are the dims that a compiler may shard further, `sdy.priorities` a priority per dim (-1: none stated).
    """
    if "?" not in text and "}p" not in text:
        return found
    try:
        stated = parse_list(text) if "per_value" in text else (parse_sharding(text.partition(" manual=")[0]),)
    except HloSyntaxError:
        return found
    if len(stated) != 1:
        return found
    more: dict[str, Any] = dict(found)
    dims = stated[0].dims
    if any(dim.is_open for dim in dims):
        more["sdy.open_dims"] = tuple(number for number, dim in enumerate(dims) if dim.is_open)
    if any(dim.priority is not None for dim in dims):
        more["sdy.priorities"] = tuple(-1 if dim.priority is None else dim.priority for dim in dims)
    return FrozenDict(more)
