"""Nodes to events: which nodes are collectives, which are the host's side of one, what waits for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dtir.importers.chakra.messages import Attribute, Node
from dtir.importers.rank_set.events import Call, CallKind, Event, Local, Span, Tensor, Transfer, What, fact
from dtir.importers.rank_set.plain import LARGEST
from dtir.importers.rank_set.words import call_kind, kernel_kind
from dtir.schema.diagnostics import DiagnosticBag

NODE_TYPES = {
    0: "invalid",
    1: "metadata",
    2: "memory_load",
    3: "memory_store",
    4: "compute",
    5: "send",
    6: "receive",
    7: "collective",
}
SEND, RECEIVE, COLLECTIVE = 5, 6, 7

COMM_TYPES = (
    CallKind.ALL_REDUCE,
    CallKind.REDUCE,
    CallKind.ALL_GATHER,
    CallKind.GATHER,
    CallKind.SCATTER,
    CallKind.BROADCAST,
    CallKind.ALL_TO_ALL,
    CallKind.REDUCE_SCATTER,
    CallKind.REDUCE_SCATTER,  # REDUCE_SCATTER_BLOCK
    CallKind.BARRIER,
)
"""Chakra's CollectiveCommType by number."""

_FACTS = ("num_ops", "tensor_size", "is_cpu_op", "comm_priority")


def number_of(value: Attribute | None) -> int | None:
    """A whole number, whatever member it was written in."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LARGEST else None
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 19 else None
    return value if isinstance(value, int) and abs(value) <= LARGEST else None


def own_rank(nodes: Sequence[Node]) -> int | None:
    """The rank that the sends and receives of a file name as their own end; None when they name none or several."""
    found: set[int] = set()
    for node in nodes:
        if node.type in (SEND, RECEIVE):
            number = number_of(node.attributes.get("comm_src" if node.type == SEND else "comm_dst"))
            if number is not None:
                found.add(number)
    return found.pop() if len(found) == 1 else None


class Events:
    """The events of one rank's nodes.

    Args:
        nodes: in the order of the file.
        bag: takes what is found.
    """

    def __init__(self, nodes: Sequence[Node], bag: DiagnosticBag) -> None:
        self._nodes = nodes
        self._bag = bag
        self._unknown: Counter[str] = Counter()
        self._host = 0
        # Where a file has collectives that say what they are, those that do not are the host's side of them.
        self._described = any(node.type == COLLECTIVE and self._told(node) is not None for node in nodes)

    def read(self) -> tuple[Event, ...]:
        """One event for each node."""
        place, dangling, repeated = self._places()
        events = tuple(self._event(node, place) for node in self._nodes)
        bag = self._bag
        if repeated:
            bag.warning("trace.duplicate_node", f"{repeated} nodes have the id of another node", "nodes")
        if dangling:
            bag.warning(
                "trace.dangling",
                f"{dangling} dependencies name nodes that the file does not have; they are left out",
                "nodes",
            )
        if self._host:
            bag.info(
                "trace.cpu_side",
                f"{self._host} collective nodes say neither kind nor size: the host's side of others, shown as local work",
                "nodes",
            )
        if self._unknown:
            shown = ", ".join(sorted(self._unknown)[:5])
            bag.warning(
                "trace.kind_unknown",
                f"{sum(self._unknown.values())} collective nodes are of no known kind and are shown as local work: {shown}",
                "nodes",
            )
        if any(node.duration_us and not node.start_us for node in self._nodes):
            bag.info(
                "trace.durations_only",
                "durations have no beginning: among the times they are laid end to end, rank by rank",
                "nodes",
            )
        return events

    def _places(self) -> tuple[dict[int, int], int, int]:
        place: dict[int, int] = {}
        repeated = 0
        for position, node in enumerate(self._nodes):
            repeated += place.setdefault(node.id, position) != position
        dangling = sum(needed not in place for node in self._nodes for needed in node.needs)
        return place, dangling, repeated

    def _event(self, node: Node, place: dict[int, int]) -> Event:
        own = place[node.id]
        needs = tuple(place[item] for item in node.needs if item in place and place[item] != own)
        span = None
        if 0 < node.start_us <= LARGEST // 2000 and node.duration_us <= LARGEST // 2000:
            span = Span(node.start_us * 1000, (node.start_us + node.duration_us) * 1000)
        name = node.name or NODE_TYPES.get(node.type, "node")
        alone = node.duration_us * 1000 if span is None and 0 < node.duration_us <= LARGEST // 2000 else None
        return Event(self._what(node), name, f"node {node.id}", needs, span, duration_ns=alone)

    def _what(self, node: Node) -> What:
        match NODE_TYPES.get(node.type):
            case "send":
                return self._transfer(node, True)
            case "receive":
                return self._transfer(node, False)
            case "collective":
                return self._collective(node)
            case _:
                return _local(node)

    def _transfer(self, node: Node, sends: bool) -> Transfer:
        get = node.attributes.get
        size = number_of(get("comm_size"))
        tag = number_of(get("comm_tag"))
        peer = number_of(get("comm_dst" if sends else "comm_src"))
        known = size if size is not None and size >= 0 else None
        tensor = Tensor((known,), "u8") if known is not None else None
        return Transfer(sends, peer if peer is None or peer >= 0 else None, str(tag or 0), tensor, known)

    def _told(self, node: Node) -> CallKind | None:
        """The kind that a node states, or that its kernel's name says."""
        number = number_of(node.attributes.get("comm_type"))
        if number is not None:
            return COMM_TYPES[number] if 0 <= number < len(COMM_TYPES) else None
        return kernel_kind(node.name)

    def _collective(self, node: Node) -> What:
        kind = self._told(node)
        if kind is None and "comm_type" not in node.attributes:
            if self._described:
                self._host += 1
                return _local(node)
            kind = call_kind(node.name.partition("(")[0])
        if kind is None:
            self._unknown[node.name] += 1
            return _local(node)
        size = number_of(node.attributes.get("comm_size"))
        size = size if size is not None and size >= 0 else None
        whole = Tensor((size,), "u8") if size is not None else None
        # The stated size is that of the full buffer: of a gather the result, of a scatter the operand.
        operand = None if kind in (CallKind.ALL_GATHER, CallKind.GATHER, CallKind.BARRIER) else whole
        result = None if kind in (CallKind.REDUCE_SCATTER, CallKind.SCATTER, CallKind.BARRIER) else whole
        root = number_of(node.attributes.get("root", node.attributes.get("comm_src")))
        return Call(kind, _group(node), None, operand, result, size, root=root, root_is_rank=True)


def _group(node: Node) -> str | None:
    """The process group; None: all ranks, which is what the format means when nothing is said."""
    name = node.attributes.get("pg_name")
    if isinstance(name, (str, int)) and str(name):
        return str(name)
    dims = node.attributes.get("involved_dim")
    if isinstance(dims, tuple) and dims and not all(dims):
        return "dims " + "".join("1" if item else "0" for item in dims)
    return None


def _local(node: Node) -> Local:
    facts: dict[str, Any] = {fact("node_type"): NODE_TYPES.get(node.type, f"type {node.type}")}
    for name in _FACTS:
        number = number_of(node.attributes.get(name))
        if number is not None:
            facts[fact(name)] = number
    return Local(facts=facts)
