"""Reading the oracle: the explicit undivided program of a document."""

from __future__ import annotations

from collections.abc import Mapping

from dtir.importers.yaml.actions import TaskReader
from dtir.importers.yaml.document import Entries, Items, Node
from dtir.importers.yaml.fields import Fields
from dtir.importers.yaml.layout import ValueReader, value_id
from dtir.importers.yaml.scopes import id_text
from dtir.ir import DistributedTask, DistributedValue, LogicalMesh, Region, RegionId, Symbol, ValueId, ValueRole


def read_oracle(
    fields: Fields,
    program: str,
    mesh: LogicalMesh,
    values: Mapping[str, DistributedValue],
    symbols: Mapping[str, Symbol],
    declared: frozenset[str],
) -> Region | None:
    """The undivided program as a region: a list of tasks, or ``{values, tasks, inputs, outputs}`` with values of its own.

    Values are shared with the program by name; one that only the oracle has is declared under the oracle's ``values``.
    """
    node = fields.get("oracle")
    if node is None:
        return None
    problems = fields.problems
    own: Fields
    if isinstance(node, Items):
        own = Fields(Entries({"tasks": node}, node.line), (*fields.path, "oracle"), problems)
    elif isinstance(node, Entries):
        own = Fields(node, (*fields.path, "oracle"), problems)
        own.refuse({"values", "tasks", "inputs", "outputs"})
    else:
        fields.wrong("oracle", "a list of tasks")
        return None
    reader = ValueReader(program, mesh, symbols, problems)
    local: dict[str, DistributedValue] = {}
    for index, item in enumerate(own.items("values") or []):
        value = reader.read(item, (*own.path, "values", str(index)), ValueRole.ACTIVATION)
        if value is not None:
            local[id_text(item)] = value
    known = {**values, **local}
    tasks = _tasks(own, program, mesh, known, symbols, declared | set(known))
    produced = [identifier for task in tasks for identifier in task.outputs]
    used = list(dict.fromkeys(identifier for task in tasks for identifier in (*task.inputs, *task.outputs)))
    by_id = {value.id: value for value in known.values()}
    made: set[ValueId] = set(produced)
    shared = {value.id for value in values.values()}
    inputs = _interface(own, "inputs", program, known, [item for item in used if item not in made])
    outputs = _interface(own, "outputs", program, known, [item for item in produced if item in shared])
    return Region(
        RegionId.derive("yaml", program, "oracle"),
        "oracle",
        tuple(by_id[item] for item in dict.fromkeys((*used, *inputs, *outputs)) if item in by_id),
        tuple(tasks),
        inputs,
        outputs,
    )


def _tasks(
    own: Fields,
    program: str,
    mesh: LogicalMesh,
    known: Mapping[str, DistributedValue],
    symbols: Mapping[str, Symbol],
    declared: frozenset[str],
) -> list[DistributedTask]:
    reader = TaskReader(program, mesh, known, symbols, own.problems, declared)
    nodes: list[Node] = own.items("tasks") or []
    drafts = [reader.draft(item, (*own.path, "tasks", str(index)), "oracle") for index, item in enumerate(nodes)]
    found = [reader.read(draft) for draft in drafts if draft is not None]
    return [task for task in found if task is not None]


def _interface(
    own: Fields, key: str, program: str, known: Mapping[str, DistributedValue], default: list[ValueId]
) -> tuple[ValueId, ...]:
    names = own.words(key)
    if names is None:
        return tuple(dict.fromkeys(default))
    for name in names:
        if name not in known:
            own.value(key, f"{key} names value {name!r}, which is not declared", None, "reference.unknown")
    return tuple(known[name].id if name in known else value_id(program, name) for name in names)
