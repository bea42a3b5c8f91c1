"""Reading a scope: the values, tasks and interface of a program, or of one of its regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtir.importers.yaml.actions import TaskReader
from dtir.importers.yaml.document import Entries, Items, Node, Scalar
from dtir.importers.yaml.fields import Fields
from dtir.importers.yaml.layout import ValueReader
from dtir.importers.yaml.origin import read_uid
from dtir.importers.yaml.problems import suggestion
from dtir.importers.yaml.sealed import read_data
from dtir.ir import (
    DistributedTask,
    DistributedValue,
    LogicalMesh,
    NodeId,
    Region,
    RegionId,
    Symbol,
    ValueId,
    ValueRole,
)
from dtir.schema.frozen import FrozenDict


@dataclass(frozen=True, slots=True)
class ReadScope:
    """What stands in a scope, as far as it can be read.

    Args:
        values: by the id that the document gives them, in order.
        listed: all values in order (an id that occurs twice stands here twice).
        declared: ids of values that the document declares, those that cannot be read among them.
        tasks: in order.
        ids: ids of tasks by the id that the document gives them.
        inputs, outputs: the interface.
    """

    values: Mapping[str, DistributedValue]
    listed: tuple[DistributedValue, ...]
    declared: frozenset[str]
    tasks: tuple[DistributedTask, ...]
    ids: Mapping[str, NodeId]
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]


def declared_names(fields: Fields) -> frozenset[str]:
    """Ids of the values that the document declares, whether or not they can be read."""
    nodes = fields.get("values")
    return frozenset(id_text(item) for item in (nodes.items if isinstance(nodes, Items) else []))


def id_text(node: Node) -> str:
    """The id that a document gives a value, task or region; empty without one."""
    own = node.entries.get("id") if isinstance(node, Entries) else None
    return own.text if isinstance(own, Scalar) else ""


def _required(fields: Fields, key: str, hint: str) -> list[Node]:
    if not fields.has(key):
        fields.missing(key, hint)
    return fields.items(key) or []


def read_scope(
    fields: Fields,
    program: str,
    prefix: tuple[str, ...],
    mesh: LogicalMesh,
    symbols: Mapping[str, Symbol],
    regions: Mapping[str, RegionId],
) -> ReadScope:
    """The scope that stands in a mapping.

    Args:
        prefix: what stands between the program's name and an item's name in the derivation of ids.
        regions: ids of the program's regions by the id that the document gives them.
    """
    inputs, outputs = fields.words("inputs") or [], fields.words("outputs") or []
    reader = ValueReader(program, mesh, symbols, fields.problems, prefix)
    values: dict[str, DistributedValue] = {}
    listed: list[DistributedValue] = []
    for index, node in enumerate(_required(fields, "values", "a program has at least one value")):
        name = id_text(node)
        role = ValueRole.INPUT if name in inputs else ValueRole.OUTPUT if name in outputs else ValueRole.ACTIVATION
        value = reader.read(node, (*fields.path, "values", str(index)), role)
        if value is not None:
            values[name] = value
            listed.append(value)
    declared = declared_names(fields)
    tasks, ids = _tasks(fields, TaskReader(program, mesh, values, symbols, fields.problems, declared, regions), prefix)
    interface = [
        _interface(fields, key, names, values, declared) for key, names in (("inputs", inputs), ("outputs", outputs))
    ]
    return ReadScope(values, tuple(listed), declared, tasks, ids, interface[0], interface[1])


def _tasks(
    fields: Fields, reader: TaskReader, prefix: tuple[str, ...]
) -> tuple[tuple[DistributedTask, ...], Mapping[str, NodeId]]:
    drafts = [
        reader.draft(node, (*fields.path, "tasks", str(index)), *prefix)
        for index, node in enumerate(_required(fields, "tasks", "a program has at least one task"))
    ]
    found = [reader.read(draft) for draft in drafts if draft is not None]
    return tuple(task for task in found if task is not None), reader.ids


def _interface(
    fields: Fields, key: str, names: list[str], values: Mapping[str, DistributedValue], declared: frozenset[str]
) -> tuple[ValueId, ...]:
    for name in names:
        if name not in declared:
            fields.value(key, f"{key} names value {name!r}, which the document does not declare",
                         suggestion(name, declared), "reference.unknown")  # fmt: skip
    return tuple(values[name].id for name in names if name in values)


REGION_KEYS = frozenset({"id", "name", "uid", "values", "tasks", "inputs", "outputs", "attributes"})


def region_ids(fields: Fields, program: str) -> dict[str, RegionId]:
    """Ids of the regions of a document."""
    found: dict[str, RegionId] = {}
    for index, node in enumerate(fields.items("regions") or []):
        if isinstance(node, Entries):
            own = Fields(node, (*fields.path, "regions", str(index)), fields.problems)
            name = own.text("id", "give the region an id")
            if name is not None:
                found[name] = read_uid(own, RegionId) or RegionId.derive("yaml", program, name)
        else:
            fields.wrong("regions", "a list of mappings {id, values, tasks, inputs, outputs}")
    return found


def read_regions(
    fields: Fields,
    program: str,
    mesh: LogicalMesh,
    symbols: Mapping[str, Symbol],
    ids: Mapping[str, RegionId],
) -> tuple[tuple[Region, ...], dict[str, NodeId]]:
    """The regions of a document (bodies of calls, loops and branches), and the ids of their tasks."""
    found: list[Region] = []
    tasks: dict[str, NodeId] = {}
    for index, node in enumerate(fields.items("regions") or []):
        if not isinstance(node, Entries):
            continue
        own = Fields(node, (*fields.path, "regions", str(index)), fields.problems)
        own.refuse(REGION_KEYS)
        name = id_text(node)
        scope = read_scope(own, program, ("region", name), mesh, symbols, ids)
        tasks.update(scope.ids)
        if name in ids:
            attributes = FrozenDict(read_data(own, "attributes"))
            label = own.text("name") or name
            found.append(Region(ids[name], label, scope.listed, scope.tasks, scope.inputs, scope.outputs, attributes))
    return tuple(found), tasks
