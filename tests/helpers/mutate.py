"""Mutants of YAML programs: one small change each, of the kinds that people and compilers get wrong.

A mutant is a document like the one it was made from; whether it is wrong is for the judges to say. Byte counts are left out of
documents that are mutated, so that they follow the change.

>>> program = {"name": "p", "mesh": {"axes": [["tp", 2]]}, "values": [{"id": "x", "shape": [4]}, {"id": "y", "shape": [4]}],
...            "tasks": [{"id": "t", "kind": "collective", "coll": "all_reduce", "axes": ["tp"], "reduction": "sum",
...                       "in": ["x"], "out": ["y"]}], "inputs": ["x"], "outputs": ["y"]}
>>> [mutant.kind for mutant in mutants(program)][:4]
['drop', 'duplicate', 'swap', 'swap']
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

_OTHER_KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "all_reduce": (
        {"coll": "reduce_scatter", "dim": 0},
        {"coll": "all_gather", "dim": 0},
        {"coll": "broadcast", "root": 0},
    ),
    "reduce_scatter": ({"coll": "all_reduce"}, {"coll": "all_gather"}),
    "all_gather": ({"coll": "all_reduce", "reduction": "sum"}, {"coll": "reduce_scatter", "reduction": "sum"}),
    "all_to_all": ({"coll": "all_gather", "dim": 0}, {"coll": "all_reduce", "reduction": "sum"}),
    "broadcast": ({"coll": "all_reduce", "reduction": "sum"},),
}
_KEYS = {
    "all_reduce": {"reduction"},
    "reduce_scatter": {"reduction", "dim"},
    "all_gather": {"dim", "vector", "trim"},
    "all_to_all": {"split", "concat"},
    "broadcast": {"root"},
}
_OF_COLLECTIVES = {key for keys in _KEYS.values() for key in keys}


@dataclass(frozen=True)
class Mutant:
    """A changed document.

    Args:
        kind: drop, duplicate, swap, axes, dim, reduction, scale, declaration or destination.
        what: what was changed, in words.
        document: the whole changed document.
    """

    kind: str
    what: str
    document: Document


def without_bytes(document: Document) -> Document:
    """The document with every byte count left out."""
    clean = copy.deepcopy(document)
    for task in clean["tasks"]:
        task.pop("bytes", None)
    return clean


def mutants(document: Document) -> Iterator[Mutant]:
    """Every mutant of a program, in a fixed order."""
    clean = without_bytes(document)
    for position, task in enumerate(clean["tasks"]):
        if task["kind"] in ("collective", "reshard", "p2p"):
            yield from _dropped(clean, position)
        if task["kind"] == "collective":
            yield from _duplicated(clean, position)
            yield from _swapped(clean, position)
            yield from _other_axes(clean, position)
            yield from _other_dims(clean, position)
            yield from _other_reductions(clean, position)
        yield from _other_scales(clean, position)
        yield from _other_destinations(clean, position)
    for position in range(len(clean["values"])):
        yield from _other_declarations(clean, position)


def _with_task(document: Document, position: int, task: Document) -> Document:
    return {**document, "tasks": [task if k == position else item for k, item in enumerate(document["tasks"])]}


def _dropped(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    if len(task["in"]) == len(task["out"]) == 1:
        identity = {"id": task["id"], "kind": "local", "op": "identity", "in": task["in"], "out": task["out"]}
        yield Mutant("drop", f"{task['id']} left out", _with_task(document, position, identity))


def _duplicated(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    if len(task["out"]) != 1:
        return
    changed = copy.deepcopy(document)
    name, again = task["out"][0], f"{task['out'][0]}_again"
    value = next(item for item in changed["values"] if item["id"] == name)
    changed["values"].append({**copy.deepcopy(value), "id": again})
    for later in changed["tasks"][position + 1 :]:
        later["in"] = [again if item == name else item for item in later["in"]]
    changed["outputs"] = [again if item == name else item for item in changed["outputs"]]
    changed["tasks"].insert(
        position + 1, {**copy.deepcopy(task), "id": f"{task['id']}_again", "in": [name], "out": [again]}
    )
    yield Mutant("duplicate", f"{task['id']} twice", changed)


def _swapped(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    for other in _OTHER_KINDS.get(task["coll"], ()):
        keys = _KEYS[other["coll"]]
        kept = {key: item for key, item in task.items() if key not in _OF_COLLECTIVES or key in keys}
        yield Mutant("swap", f"{task['id']} as {other['coll']}", _with_task(document, position, {**kept, **other}))


def _other_axes(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    axes, every = task.get("axes", []), [axis for axis, _ in document["mesh"]["axes"]]
    choices = [[axis if item == own else item for item in axes] for own in axes for axis in every if axis not in axes]
    choices += [[item for item in axes if item != own] for own in axes if len(axes) > 1]
    choices += [[*axes, axis] for axis in every if axes and axis not in axes]
    choices += [list(reversed(axes))] if len(axes) > 1 else []
    for chosen in choices:
        changed = _with_task(document, position, {**task, "axes": chosen})
        yield Mutant("axes", f"{task['id']} over {chosen} for {axes}", changed)


def _rank_of(document: Document, name: str) -> int:
    return len(next(item for item in document["values"] if item["id"] == name)["shape"])


def _other_dims(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    rank = _rank_of(document, task["in"][0])
    if "dim" in task:
        for dim in range(rank):
            if dim != task["dim"]:
                yield Mutant("dim", f"{task['id']} on dim {dim}", _with_task(document, position, {**task, "dim": dim}))
    if "split" in task and "concat" in task:
        turned = {**task, "split": task["concat"], "concat": task["split"]}
        yield Mutant("dim", f"{task['id']} with split and concat changed", _with_task(document, position, turned))
        for dim in range(rank):
            if dim not in (task["split"], task["concat"]):
                changed = _with_task(document, position, {**task, "split": dim})
                yield Mutant("dim", f"{task['id']} splits dim {dim}", changed)


def _other_reductions(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    for other in ("sum", "avg", "max", "min"):
        if "reduction" in task and other != task["reduction"]:
            changed = _with_task(document, position, {**task, "reduction": other})
            yield Mutant("reduction", f"{task['id']} reduces by {other}", changed)


def _other_scales(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    if task["kind"] == "local" and task["op"] == "scale":
        oracle = {} if task.get("intro") or "c_oracle" in task else {"c_oracle": task["c"]}
        changed = _with_task(document, position, {**task, **oracle, "c": f"2/{7}"})
        yield Mutant("scale", f"{task['id']} by 2/7", changed)
    if task["kind"] == "collective" and len(task["in"]) == 1:
        name, scaled = task["in"][0], f"{task['in'][0]}_half"
        value = next(item for item in document["values"] if item["id"] == name)
        changed = copy.deepcopy(document)
        changed["values"].append({**copy.deepcopy(value), "id": scaled})
        changed["tasks"][position]["in"] = [scaled]
        half = {"id": f"{task['id']}_half", "kind": "local", "op": "scale", "c": "1/2", "intro": True}
        changed["tasks"].insert(position, {**half, "in": [name], "out": [scaled]})
        yield Mutant("scale", f"the operand of {task['id']} halved", changed)


def _other_destinations(document: Document, position: int) -> Iterator[Mutant]:
    task = document["tasks"][position]
    if task["kind"] == "p2p" and "pairs" in task:
        targets = [pair[1] for pair in task["pairs"]]
        rotated = [[pair[0], target] for pair, target in zip(task["pairs"], targets[1:] + targets[:1], strict=True)]
        yield Mutant(
            "destination",
            f"{task['id']} to rotated targets",
            _with_task(document, position, {**task, "pairs": rotated}),
        )
        fewer = {**task, "pairs": task["pairs"][:-1]}
        if fewer["pairs"]:
            yield Mutant("destination", f"{task['id']} without its last pair", _with_task(document, position, fewer))
    if task.get("coll") == "broadcast":
        size = dict(map(tuple, document["mesh"]["axes"]))[task["axes"][0]]
        for root in range(size):
            if root != task["root"]:
                yield Mutant(
                    "destination",
                    f"{task['id']} from root {root}",
                    _with_task(document, position, {**task, "root": root}),
                )


def _other_declarations(document: Document, position: int) -> Iterator[Mutant]:
    value = document["values"][position]
    axes = [axis for axis, _ in document["mesh"]["axes"]]
    dims = value.get("dims", [[] for _ in value["shape"]])
    used = {axis for item in dims for axis in item} | set(value.get("varying", ())) | set(value.get("at", ()))
    partial = value.get("partial", {})

    def declared(what: str, **changed: Any) -> Mutant:
        other = {key: item for key, item in {**value, **changed}.items() if item is not None}
        values = [other if k == position else item for k, item in enumerate(document["values"])]
        return Mutant("declaration", f"{value['id']} declared {what}", {**document, "values": values})

    for axis in partial:
        left = {key: item for key, item in partial.items() if key != axis}
        yield declared(f"not pending over {axis}", partial=left or None)
    for axis in axes:
        if axis not in used and axis not in partial:
            yield declared(f"pending over {axis}", partial={**partial, axis: "sum"})
            if value["shape"]:
                yield declared(f"split over {axis} on dim 0", dims=[[*dims[0], axis], *dims[1:]])
    for dim, own in enumerate(dims):
        for axis in own:
            without = [item for item in own if item != axis]
            yield declared(f"not split over {axis}", dims=[*dims[:dim], without, *dims[dim + 1 :]], sizes=None)
        if len(own) > 1:
            yield declared(f"split over {own[::-1]}", dims=[*dims[:dim], own[::-1], *dims[dim + 1 :]])
