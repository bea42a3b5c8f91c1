"""Programs to YAML text, one value and one task a line.

What is written reads as the same program, or nothing is written: the text is read again and compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml

from dtir.importers.yaml.load import read_programs
from dtir.importers.yaml.outgoing import TaskWriter, ValueWriter
from dtir.importers.yaml.sealed import Unwritable, canonical, plain
from dtir.importers.yaml.vocabulary import PROGRAM_SCHEMA
from dtir.ir import (
    EMPTY_SEMANTIC,
    BindingAxis,
    DistributedTaskIR,
    NodeId,
    Region,
    RegionId,
    Symbol,
    ValueId,
    free_symbols,
    make_header,
)
from dtir.ir.program import Scope
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet, IRVerificationError


def to_yaml(program: DistributedTaskIR) -> str:
    """The program as a document of the authoring form.

    Raises:
        IRVerificationError: it holds something that the form cannot say (code ``yaml.unwritable``, one finding a thing), or is not
            structurally valid.
    """
    program.require_valid()
    try:
        text = _text(_document(program))
    except Unwritable as error:
        raise IRVerificationError("YAML", DiagnosticSet.of(_finding(str(error), error.path))) from error
    read = read_programs(text)[0]
    if read.program != program:
        reason = next((item.message for item in read.diagnostics.errors), "")
        lost = _difference(program, read.program, reason)
        raise IRVerificationError(
            "YAML", DiagnosticSet.of(_finding(f"{lost} does not survive being written and read", ()))
        )
    return text


def _finding(message: str, path: Sequence[str]) -> Diagnostic:
    return Diagnostic("yaml.unwritable", message, tuple(path), hint="write a native snapshot: it holds every program")


def _difference(program: DistributedTaskIR, read: DistributedTaskIR | None, reason: str) -> str:
    """Which part of the program came back different."""
    if read is None:
        return f"the program ({reason})"
    for name in (
        "header",
        "mesh",
        "values",
        "tasks",
        "inputs",
        "outputs",
        "attributes",
        "issue",
        "limits",
        "assume",
        "bindings",
        "oracle",
    ):
        mine, theirs = getattr(program, name), getattr(read, name)
        if mine == theirs:
            continue
        if name in ("values", "tasks"):
            pairs = zip(cast("Sequence[Any]", mine), cast("Sequence[Any]", theirs), strict=False)
            first = next((one for one, other in pairs if one != other), None)
            if first is not None:
                return f"{name[:-1]} {first.name or first.id}"
        return name
    return "the program"


# -- the document --------------------------------------------------------------------------------------------------------


def _names(items: Sequence[Any], kind: str) -> dict[Any, str]:
    """A name for every id: its own where it has one that nobody else has."""
    count: dict[str, int] = {}
    for item in items:
        count[item.name] = count.get(item.name, 0) + 1
    found: dict[Any, str] = {}
    taken = {item.name for item in items}
    for index, item in enumerate(items):
        name = item.name if item.name and count[item.name] == 1 else f"{kind}{index}"
        while name != item.name and name in taken:
            name += "_"
        taken.add(name)
        found[item.id] = name
    return found


def _document(program: DistributedTaskIR) -> dict[str, Any]:
    regions = cast("dict[RegionId, str]", _names(program.regions, "r"))
    oracle_only = [] if program.oracle is None else _not_in(program.oracle, program)
    names = cast("dict[ValueId, str]", _names((*program.values, *oracle_only), "v"))
    document: dict[str, Any] = {"schema": PROGRAM_SCHEMA, "name": program.name, "mesh": _mesh(program)}
    if symbols := _symbols(program):
        document["symbols"] = symbols
    tasks = cast("dict[NodeId, str]", _names(program.tasks, "t"))
    document.update(_scope(program, program, names, tasks, regions, ()))
    if program.regions:
        document["regions"] = [_region(program, item, regions) for item in program.regions]
    if program.oracle is not None:
        document["oracle"] = _oracle(program, program.oracle, names, regions, oracle_only)
    document.update(_order(program, {**_inner_tasks(program), **tasks}))
    if program.assume:
        document["assume"] = list(program.assume)
    if program.bindings:
        document["bind"] = dict(program.bindings)
    if program.strict_order:
        document["strict_order"] = True
    if program.semantic != EMPTY_SEMANTIC:
        document["semantic"] = canonical(program.semantic, ("semantic",))
    if program.attributes:
        document["attributes"] = plain(program.attributes, ("attributes",))
    digest = program.source_model_digest
    document["source_digest"] = digest
    if program.header != make_header(program.SCHEMA_NAME, program.SCHEMA_VERSION, parent_digests=(digest,)):
        document["header"] = canonical(program.header, ("header",))
    return document


def _scope(
    program: DistributedTaskIR,
    scope: Scope,
    names: Mapping[ValueId, str],
    tasks: Mapping[NodeId, str],
    regions: Mapping[RegionId, str],
    prefix: tuple[str, ...],
) -> dict[str, Any]:
    values = ValueWriter(program, scope, names, prefix)
    writer = TaskWriter(program, {value.id: value for value in scope.values}, names, tasks, regions, prefix)
    return {
        "values": [values.write(value, index) for index, value in enumerate(scope.values)],
        "tasks": [writer.write(task, (*prefix, "tasks", str(index))) for index, task in enumerate(scope.tasks)],
        "inputs": [names[item] for item in scope.inputs],
        "outputs": [names[item] for item in scope.outputs],
    }


def _region(program: DistributedTaskIR, region: Region, regions: Mapping[RegionId, str]) -> dict[str, Any]:
    name = regions[region.id]
    found: dict[str, Any] = {"id": name}
    if region.id != RegionId.derive("yaml", program.name, name):
        found["uid"] = region.id.value
    if region.name != name:
        found["name"] = region.name
    if region.attributes:
        found["attributes"] = plain(region.attributes, ("regions", name, "attributes"))
    values, tasks = _names(region.values, "v"), _names(region.tasks, "t")
    return {**found, **_scope(program, region, values, tasks, regions, ("region", name))}


def _inner_tasks(program: DistributedTaskIR) -> dict[NodeId, str]:
    """Names of the tasks of regions, for issue lists."""
    return {key: name for region in program.regions for key, name in _names(region.tasks, "t").items()}


def _mesh(program: DistributedTaskIR) -> dict[str, Any]:
    axes = [[axis.name, axis.size] for axis in program.mesh.axes]
    return {"axes": axes} if program.mesh.name == "mesh" else {"name": program.mesh.name, "axes": axes}


def _symbols(program: DistributedTaskIR) -> list[dict[str, Any]]:
    """Symbols with more than a workload name."""
    found: dict[Symbol, None] = {}
    for value in program.values:
        for extent in value.type.shape:
            found.update(dict.fromkeys(free_symbols(extent)))
    for task in program.tasks:
        size = getattr(getattr(task.body, "spec", None), "message_bytes", 0)
        found.update(dict.fromkeys(free_symbols(size)))
    return [
        {"name": item.name, "axis": item.axis.value, "integer": item.integer, "positive": item.positive}
        for item in found
        if not item.integer or item.positive or item.axis is not BindingAxis.WORKLOAD
    ]


def _not_in(oracle: Region, program: Scope) -> list[Any]:
    known = {value.id for value in program.values}
    return [value for value in oracle.values if value.id not in known]


def _oracle(
    program: DistributedTaskIR,
    oracle: Region,
    names: Mapping[ValueId, str],
    regions: Mapping[RegionId, str],
    only: Sequence[Any],
) -> dict[str, Any]:
    tasks = _names(oracle.tasks, "o")
    known = {value.id: value for value in (*oracle.values, *program.values)}
    writer = TaskWriter(program, known, names, tasks, regions, ("oracle",))
    values = ValueWriter(program, oracle, names, ())
    own = [values.write(value, index) for index, value in enumerate(only)]
    return {
        **({"values": own} if own else {}),
        "tasks": [writer.write(task, ("oracle", "tasks", str(index))) for index, task in enumerate(oracle.tasks)],
        "inputs": [names[item] for item in oracle.inputs],
        "outputs": [names[item] for item in oracle.outputs],
    }


def _order(program: DistributedTaskIR, tasks: Mapping[NodeId, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if program.issue:
        found["issue"] = {
            item.rank: [tasks[step[0]] if len(step) == 1 else [tasks[name] for name in step] for step in item.steps]
            for item in program.issue
        }
    limits: dict[str, Any] = {}
    for item in program.limits:
        if item.rank is None:
            limits[item.name] = item.value
        else:
            place = limits.setdefault(item.name, {})
            if isinstance(place, dict):
                place[item.rank] = item.value
    if limits:
        found["limits"] = limits
    return found


# -- the text --------------------------------------------------------------------------------------------------------------


def _text(document: Mapping[str, Any]) -> str:
    """Block style above, one line for every value and task."""
    lines: list[str] = []
    for key, item in document.items():
        if key == "regions":
            lines.append("regions:")
            for region in item:
                inner = _entries(region, "  ")
                lines += [f"- {inner[0].lstrip()}", *inner[1:]]
        elif key == "oracle":
            lines += ["oracle:", *_entries(item, "  ")]
        else:
            lines += _entries({key: item}, "")
    return "\n".join(lines) + "\n"


def _entries(mapping: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, item in mapping.items():
        if key in ("values", "tasks", "symbols") and item:
            lines.append(f"{indent}{key}:")
            lines += [f"{indent}- {_flow(entry)}" for entry in item]
        else:
            lines.append(f"{indent}{_flow(key)}: {_flow(item)}")
    return lines


def _flow(item: object) -> str:
    text = yaml.safe_dump(item, default_flow_style=True, width=float("inf"), sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
