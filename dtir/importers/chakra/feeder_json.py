"""The JSON form that Chakra's feeder takes: ``{"workload_graph": [{"Id", "Name", "NodeType", "data_deps", ...}]}``.

Keys differ from the protobuf form and between writers (``ctrlDeps``, ``ctrl_deps``); attributes stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtir.importers.base import Source
from dtir.importers.chakra.messages import Attribute, Node
from dtir.importers.chakra.reader import trace_of
from dtir.importers.rank_set.events import RankTrace
from dtir.importers.rank_set.plain import count_of, mapping, parse_listed, sequence, text_of, whole_number
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag
from dtir.schema.result import Err, Ok, Result

JSON_FORMAT = "chakra-json"

_OWN = {"id", "name", "nodetype", "type", "datadeps", "ctrldeps", "runtime", "durationmicros", "starttimemicros"}


def read_chakra_json(source: Source) -> Result[RankTrace, Diagnostic]:
    """What one rank did."""
    match parse_listed(source.text or "", "the Chakra trace", "workload_graph"):
        case Err(error):
            return Err(error)
        case Ok((whole, damage)):
            pass
    bag = DiagnosticBag()
    bag.extend(damage)
    listed = sequence(whole.get("workload_graph"))
    nodes = [node for item in listed if (node := _node(mapping(item))) is not None]
    if len(nodes) < len(listed):
        bag.warning(
            "trace.malformed",
            f"{len(listed) - len(nodes)} of {len(listed)} nodes have no id or type and are left out",
            "workload_graph",
        )
    version = text_of(whole.get("version")) or text_of(whole.get("schema"))
    return Ok(trace_of(source, JSON_FORMAT, version, nodes, bag))


def _node(item: Mapping[str, Any]) -> Node | None:
    fields = {key.lower().replace("_", ""): value for key, value in item.items()}
    identifier = count_of(fields.get("id"))
    kind = count_of(fields.get("nodetype", fields.get("type")))
    if identifier is None or kind is None:
        return None
    data = [number for each in sequence(fields.get("datadeps")) if (number := count_of(each)) is not None]
    control = [number for each in sequence(fields.get("ctrldeps")) if (number := count_of(each)) is not None]
    attributes: dict[str, Attribute] = {}
    for key, value in item.items():
        if key.lower().replace("_", "") in _OWN:
            continue
        number = int(value) if isinstance(value, bool) else whole_number(value)
        if isinstance(value, str):
            attributes[key] = value
        elif number is not None:
            attributes[key] = number
        elif items := sequence(value):
            attributes[key] = tuple(int(each) for each in items if isinstance(each, (bool, int)))
    return Node(
        identifier,
        text_of(fields.get("name")),
        kind,
        (*control, *data),
        len(data),
        count_of(fields.get("starttimemicros")) or 0,
        count_of(fields.get("durationmicros", fields.get("runtime"))) or 0,
        attributes,
    )
