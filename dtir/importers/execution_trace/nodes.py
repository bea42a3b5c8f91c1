"""Nodes of an execution trace, whichever schema wrote them.

| schema | arguments | attributes | parent |
|---|---|---|---|
| 1.0.1 | lists `inputs`, `input_shapes`, `input_types` | keys of the node | `parent` |
| from 1.0.2 on | `inputs` {values, shapes, types} | list `attrs` of {name, type, value} | `ctrl_deps` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.importers.rank_set.plain import count_of, mapping, sequence, text_of
from dtir.importers.torch_calls import Argument, tensors_of


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its number, name, parent, arguments, results and attributes."""

    id: int
    name: str
    parent: int | None
    inputs: Sequence[Argument] = field(repr=False)
    outputs: Sequence[Argument] = field(repr=False)
    attributes: Mapping[str, Any] = field(repr=False)


def read_nodes(values: Sequence[Any]) -> list[Node]:
    """The nodes of a file in the order in which they began: numbers are given when an operation begins."""
    found = [node for value in values if (node := _node(mapping(value))) is not None]
    return sorted(found, key=lambda node: node.id)


def _node(item: Mapping[str, Any]) -> Node | None:
    identifier = count_of(item.get("id"))
    name = item.get("name")
    if identifier is None or not isinstance(name, str):
        return None
    parent = item.get("ctrl_deps", item.get("parent"))
    attributes: dict[str, Any] = {}
    for value in sequence(item.get("attrs")):
        entry = mapping(value)
        attributes[text_of(entry.get("name"))] = entry.get("value")
    return Node(identifier, name, count_of(parent), _arguments(item, "input"), _arguments(item, "output"), attributes)


def _arguments(item: Mapping[str, Any], side: str) -> list[Argument]:
    held: object = item.get(f"{side}s")
    if isinstance(held, dict):
        whole = mapping(item.get(f"{side}s"))
        values, shapes, types = (sequence(whole.get(key)) for key in ("values", "shapes", "types"))
    else:
        values = sequence(held)
        shapes, types = sequence(item.get(f"{side}_shapes")), sequence(item.get(f"{side}_types"))
    found: list[Argument] = []
    for place, value in enumerate(values):
        type_text = text_of(types[place]) if place < len(types) else ""
        shape: object = shapes[place] if place < len(shapes) else None
        # Lists of numbers have a shape for each number; only tensors have one that says something.
        found.append(Argument(tensors_of(shape, type_text) if "Tensor" in type_text else (), value))
    return found
