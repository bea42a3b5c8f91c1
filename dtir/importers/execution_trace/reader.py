"""One rank's execution trace: its communications in order, and what lies between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dtir.importers.base import Source
from dtir.importers.execution_trace.nodes import Node, read_nodes
from dtir.importers.execution_trace.params import NAME, Params, collective_name
from dtir.importers.rank_set.events import Call, Event, RankTrace, Transfer
from dtir.importers.rank_set.naming import program_name
from dtir.importers.rank_set.plain import mapping, parse_listed, ranks_of, sequence, text_of
from dtir.importers.rank_set.sources import settle_rank
from dtir.importers.rank_set.words import call_kind, reduction_kind
from dtir.importers.torch_calls import Gaps, annotation_call, operator_call
from dtir.ir.ranks import Ranks
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet
from dtir.schema.result import Err, Ok, Result

FORMAT = "pytorch-et"

_BACKENDS = ("nccl:", "gloo:", "mpi:", "ucc:", "rccl:", "xccl:")
_FUNCTIONAL = "_c10d_functional::"
_INIT = "process_group:init"
_FRAMES = ("[pytorch|", "## process_group")


def read_execution_trace(source: Source) -> Result[RankTrace, Diagnostic]:
    """The communications of one rank."""
    match parse_listed(source.text or "", "the execution trace", "nodes"):
        case Err(error):
            return Err(error)
        case Ok((whole, damage)):
            pass
    bag = DiagnosticBag()
    bag.extend(damage)
    listed = sequence(whole.get("nodes"))
    nodes = read_nodes(listed)
    if len(nodes) < len(listed):
        bag.warning("trace.malformed", f"{len(listed) - len(nodes)} of {len(listed)} nodes are left out", "nodes")
    groups, world = _process_groups(nodes)
    calls, stated = _calls(nodes)
    gaps = Gaps()
    for node in nodes:
        call = calls.get(node.id)
        if call is not None:
            name = collective_name(node) if node.name == NAME else node.name
            gaps.communication(Event(call, name, f"node {node.id}"))
        elif _is_operation(node):
            gaps.operation(node.name, f"node {node.id}")
    return Ok(
        RankTrace(
            FORMAT,
            source.label,
            program_name(source.name),
            source.digest(),
            settle_rank(source, None, bag),
            text_of(whole.get("schema")),
            gaps.finish(bag),
            world=world,
            groups={**stated, **groups},
            facts={"nodes": len(nodes)},
            diagnostics=DiagnosticSet(tuple(bag.report())),
        )
    )


def _is_operation(node: Node) -> bool:
    """Whether a node is work of the host: no frame of the observer, and no further view of a communication."""
    return not (
        node.name == NAME
        or node.name.startswith((*_FRAMES, *_BACKENDS, _FUNCTIONAL))
        or (node.name.startswith("c10d::") and call_kind(node.name) is not None)
    )


def _calls(nodes: Sequence[Node]) -> tuple[dict[int, Call | Transfer], dict[str, Ranks]]:
    """The communications by node, from the level that says most, and the groups that they name."""
    params = Params()
    named = {node.id: call for node in nodes if node.name == NAME and (call := params.call(node)) is not None}
    if named:
        return named, params.groups
    wrappers = {node.id: node for node in nodes if node.name.startswith(_FUNCTIONAL)}
    operators: dict[int, Call | Transfer] = {}
    for node in nodes:
        if not node.name.startswith("c10d::"):
            continue
        wrapper = wrappers.get(node.parent) if node.parent is not None else None
        call = operator_call(node.name, node.inputs, _wrapped_group(wrapper))
        if call is not None:
            operators[node.id] = _with_reduction(call, wrapper)
    if operators:
        return operators, {}
    backends: dict[int, Call | Transfer] = {}
    for node in nodes:
        if node.name.startswith(_BACKENDS) and (call := annotation_call(node.name, node.inputs)) is not None:
            backends[node.id] = call
    return backends, {}


def _wrapped_group(wrapper: Node | None) -> str | None:
    """The group's name that a functional collective has as its last argument."""
    if wrapper is None or not wrapper.inputs:
        return None
    name = wrapper.inputs[-1].value
    return ("" if name == "0" else name) if isinstance(name, str) and not name.startswith("<") else None


def _with_reduction(call: Call | Transfer, wrapper: Node | None) -> Call | Transfer:
    if wrapper is None or not isinstance(call, Call):
        return call
    words = [reduction_kind(argument.value) for argument in wrapper.inputs if isinstance(argument.value, str)]
    found = next((word for word in words if word is not None), None)
    return replace(call, reduction=found) if found is not None else call


def _process_groups(nodes: Sequence[Node]) -> tuple[dict[str, Ranks], int | None]:
    """Groups of the node that newer observers write at the beginning, as JSON text."""
    found: dict[str, Ranks] = {}
    for node in nodes:
        if _INIT not in node.name or not node.inputs or not isinstance(node.inputs[0].value, str):
            continue
        try:
            value: Any = json.loads(node.inputs[0].value)
        except (ValueError, RecursionError):
            continue
        for item in sequence(value):
            entry: Mapping[str, Any] = mapping(item)
            members = ranks_of(entry.get("ranks"))
            if members:
                found["" if entry.get("pg_desc") == "default_pg" else text_of(entry.get("pg_name"))] = members
    return found, len(found[""]) if found.get("") else None
