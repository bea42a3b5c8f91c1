"""One rank's Chakra file: a stream of messages, each behind its length, the first of them the metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dtir.importers.base import Source
from dtir.importers.chakra.messages import Attribute, Metadata, Node, read_metadata, read_node
from dtir.importers.chakra.nodes import NODE_TYPES, Events, own_rank
from dtir.importers.chakra.wire import WireError, messages
from dtir.importers.rank_set.events import Order, RankTrace
from dtir.importers.rank_set.naming import program_name
from dtir.importers.rank_set.sources import settle_rank
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet
from dtir.schema.frozen import FrozenDict
from dtir.schema.result import Err, Ok, Result

FORMAT = "chakra"
SCHEMA_ATTRIBUTE = "schema"


def read_chakra(source: Source) -> Result[RankTrace, Diagnostic]:
    """What one rank did; of a stream that is cut, what stands before the cut."""
    bag = DiagnosticBag()
    metadata = Metadata("", {})
    nodes: list[Node] = []
    first = True
    offset = 0
    try:
        for start, message in messages(source.data):
            offset = start
            found = _metadata(message) if first else None
            if found is not None:
                metadata = found
            else:
                nodes.append(read_node(message))
            first = False
    except WireError as error:
        if first:
            return Err(
                Diagnostic(
                    "trace.truncated",
                    f"the first message, at byte {offset}, is no Chakra metadata",
                    hint="copy or write the file again",
                )
            )
        at = error.offset if error.offset > offset else offset
        bag.error(
            "trace.truncated",
            f"the stream makes no sense from byte {at} of {len(source.data)} on; {len(nodes)} nodes stand before",
            hint="copy or write the file again",
        )
    version = metadata.version or _text(metadata.attributes.get(SCHEMA_ATTRIBUTE))
    if not version:
        bag.info("trace.no_version", "the file states neither a version nor a schema; it is read as version 0.0.4")
    return Ok(trace_of(source, FORMAT, version, nodes, bag))


def _metadata(message: bytes) -> Metadata | None:
    """The metadata; None where a file begins with a node instead."""
    try:
        return read_metadata(message)
    except WireError:
        return None


def trace_of(source: Source, format: str, version: str, nodes: Sequence[Node], bag: DiagnosticBag) -> RankTrace:
    """The trace of a file's nodes, in whichever form they were written."""
    rank = settle_rank(source, own_rank(nodes), bag)
    events = Events(nodes, bag).read()
    return RankTrace(
        format,
        source.label,
        program_name(source.name),
        source.digest(),
        rank,
        version,
        events,
        Order.DEPENDENCIES,
        default_group="",
        facts={"node_types": FrozenDict(node_types(nodes))},
        diagnostics=DiagnosticSet(tuple(bag.report())),
    )


def node_types(nodes: Sequence[Node]) -> Mapping[str, int]:
    """How many nodes there are of each type."""
    counted = Counter(NODE_TYPES.get(node.type, f"type {node.type}") for node in nodes)
    return dict(sorted(counted.items()))


def _text(value: Attribute | None) -> str:
    return value if isinstance(value, str) else ""
