"""Reading collectives and transfers: groups, roots, and the bytes that a document may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtir.importers.yaml.document import Items, Node, Scalar
from dtir.importers.yaml.fields import Fields, as_integer, as_naturals
from dtir.importers.yaml.ranks import read_ranks
from dtir.importers.yaml.scalars import ScalarError, parse_scalar
from dtir.importers.yaml.vocabulary import COLLECTIVES, EXCHANGES
from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    DistributedValue,
    ExprOp,
    LogicalMesh,
    PeerTransfer,
    RankRange,
    ReduceScatter,
    ReductionKind,
    Symbol,
    ceil_div,
    elements_bytes,
    expression,
    maximum,
)
from dtir.ir.expr import Scalar as IRScalar

_SPEC_FIELDS: dict[str, frozenset[str]] = {
    "collective": frozenset(
        {
            "coll",
            "axes",
            "groups",
            "reduction",
            "dim",
            "split",
            "concat",
            "bytes",
            "pairs",
            "channel",
            "roots",
            "participants",
        }
    ),
    "p2p": frozenset({"src", "dst", "pairs", "channel", "bytes", "participants"}),
    "reshard": frozenset({"regions"}),
    "call": frozenset({"region"}),
    "loop": frozenset({"body", "condition", "trip_count"}),
    "branch": frozenset({"regions", "operand_counts"}),
}


class CollectiveReader:
    """Reads the bodies of collectives and transfers of one program."""

    def __init__(self, mesh: LogicalMesh, symbols: Mapping[str, Symbol]) -> None:
        self.mesh = mesh
        self.symbols = symbols

    def fields_of(self, kind: str) -> frozenset[str]:
        """Keys of a kind that have a field in the IR."""
        return _SPEC_FIELDS.get(kind, frozenset())

    def read(
        self,
        fields: Fields,
        kind: str,
        inputs: list[DistributedValue],
        outputs: list[DistributedValue],
        ranks: tuple[int, ...] | RankRange,
        attributes: dict[str, Any],
    ) -> CollectiveSpecVariant | None:
        """The collective, or None with the reason among the problems."""
        hint = f"which collective: {', '.join(COLLECTIVES)}"
        coll = "collective_permute" if kind == "p2p" else fields.one_of("coll", COLLECTIVES, hint)
        if coll is None:
            return None
        size = self._bytes(fields, coll, inputs, outputs, attributes)
        if coll == "collective_permute":
            return self._permute(fields, size)
        axes = tuple(fields.words("axes") or ())
        groups = fields.each("groups", as_naturals, "a list of ranks")
        if size is None or (groups is None and fields.has("groups")):
            return None
        members = tuple(tuple(group) for group in groups or ())
        participants = read_ranks(fields, "participants")
        if participants is None:
            participants = tuple(dict.fromkeys(rank for group in members for rank in group)) if members else ranks
        if not participants:
            fields.problems.error("yaml.value", "the collective has no participants", fields.path, fields.node.line,
                                  "name axes, groups or ranks")  # fmt: skip
            return None
        return self._spec(
            fields, coll, participants, size, axes, members, len(inputs[0].type.shape) if inputs else 0, attributes
        )

    def _spec(
        self,
        fields: Fields,
        coll: str,
        participants: tuple[int, ...] | RankRange,
        size: IRScalar,
        axes: tuple[str, ...],
        groups: tuple[tuple[int, ...], ...],
        rank: int,
        attributes: dict[str, Any],
    ) -> CollectiveSpecVariant | None:
        match coll:
            case "all_reduce" | "reduce_scatter":
                kinds = [item.value for item in ReductionKind]
                reduction = fields.one_of("reduction", kinds, f"which reduction: {', '.join(kinds)}")
                dim = _dim(fields, "dim", rank)
                if reduction is None:
                    return None
                if coll == "all_reduce":
                    if dim is not None:
                        fields.value("dim", "an all_reduce has no dim", "drop dim, or use reduce_scatter")
                        return None
                    return AllReduce(participants, size, ReductionKind(reduction), axes, groups)
                return ReduceScatter(participants, size, ReductionKind(reduction), axes, groups, dim)
            case "all_gather":
                return AllGather(participants, size, axes, groups, _dim(fields, "dim", rank))
            case "all_to_all":
                return AllToAll(
                    participants, size, axes, groups, _dim(fields, "split", rank), _dim(fields, "concat", rank)
                )
            case "broadcast":
                listed = fields.integers("roots")
                if listed:
                    if listed[0] not in participants:
                        fields.value("roots", f"root {listed[0]} does not take part", None, "collective.root")
                        return None
                    return Broadcast(
                        participants, size, listed[0], axes, groups, tuple(listed) if len(listed) > 1 else ()
                    )
                root, roots = self._roots(fields, participants, axes, groups)
                if not fields.has("root"):
                    attributes["op.root"] = None  # said, since the IR cannot leave it out
                return Broadcast(participants, size, root, axes, groups, roots)
            case _:
                assert coll in EXCHANGES
                return AllToAll(participants, size, axes, groups)

    def _roots(
        self,
        fields: Fields,
        participants: tuple[int, ...] | RankRange,
        axes: tuple[str, ...],
        groups: tuple[tuple[int, ...], ...],
    ) -> tuple[int, tuple[int, ...]]:
        """The global rank of the first group's root, and of every group's when there are several.

        A root is a position in its group, or with ``root_space: global`` a rank. One that no group has is kept in the
        attribute ``op.root`` alone: the verifier says what is wrong with it.
        """
        from dtir.analysis.groups import axis_fibres

        root = fields.integer("root")
        space = fields.one_of("root_space", ("local", "global"))
        if root is None:
            return participants[0], ()
        if space == "global":
            return (root if root in participants else participants[0]), ()
        if groups:
            members: Any = groups
        elif axes and not set(axes) - set(self.mesh.axis_names):
            fibres = axis_fibres(self.mesh, axes)
            known = set(participants) if not isinstance(participants, RankRange) else participants
            if len(fibres) > MOST_ROOTS:
                fields.value("root", f"{len(fibres)} groups have a root each, more than the {MOST_ROOTS} that are listed",
                             "name the root by its rank: root_space: global", "yaml.limit")  # fmt: skip
                return participants[0], ()
            members = [group for group in fibres if group[0] in known or any(rank in known for rank in group)]
        else:
            members = [participants]
        if not members or any(root >= len(group) for group in members):
            return participants[0], ()
        found = tuple(int(group[root]) for group in members)
        if any(rank not in participants for rank in found):
            return participants[0], ()
        return found[0], found if len(found) > 1 else ()

    def _permute(self, fields: Fields, size: IRScalar | None) -> CollectivePermute | None:
        pairs = fields.each("pairs", _pair, "a pair [source, destination]")
        if pairs is None or size is None:
            if not fields.has("pairs"):
                fields.missing("pairs", "a list of [source, destination]")
            return None
        if not pairs:
            fields.value("pairs", "a permute without pairs moves nothing", "list the pairs")
            return None
        participants = read_ranks(fields, "participants") or tuple(sorted({rank for pair in pairs for rank in pair}))
        return CollectivePermute(participants, size, tuple(pairs), fields.text("channel") or "default")

    def transfer(
        self, fields: Fields, inputs: list[DistributedValue], attributes: dict[str, Any]
    ) -> PeerTransfer | None:
        """One transfer between two ranks."""
        source, destination = fields.integer("src"), fields.integer("dst")
        for key, found in (("src", source), ("dst", destination)):
            if found is None and not fields.has(key):
                fields.missing(key, "the rank that sends (src) and the one that receives (dst), or pairs")
        size = self._bytes(fields, "p2p", inputs, [], attributes)
        if source is None or destination is None or size is None:
            return None
        if source == destination:
            fields.value("dst", f"rank {source} sends to itself", "two different existing ranks", "peer.endpoints")
            return None
        return PeerTransfer(source, destination, size, fields.text("channel") or "default")

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _bytes(
        self,
        fields: Fields,
        coll: str,
        inputs: list[DistributedValue],
        outputs: list[DistributedValue],
        attributes: dict[str, Any],
    ) -> IRScalar | None:
        """The declared size; without one that of the convention, marked ``op.bytes: derived``."""
        node = fields.get("bytes")
        if node is not None:
            found = self._size(node)
            if found is None:
                fields.wrong("bytes", "a number of bytes or an expression")
            return found
        attributes["op.bytes"] = "derived"
        counted = outputs if coll == "all_gather" else inputs
        total: IRScalar = 0
        for value in counted or outputs:
            size = local_bytes(value, self.mesh)
            if size is None:
                fields.missing("bytes", f"the size of dtype {value.type.dtype!r} is not known: give the bytes")
                return None
            total = expression(ExprOp.ADD, total, size)
        return total

    def _size(self, node: Node) -> IRScalar | None:
        number = as_integer(node)
        if number is not None:
            return number
        if not isinstance(node, Scalar) or isinstance(node.value, bool) or node.value is None:
            return None
        if isinstance(node.value, float):
            return node.value
        try:
            return parse_scalar(node.text, self.symbols)
        except (ScalarError, TypeError):
            return None


MOST_ROOTS = 65_536


def local_bytes(value: DistributedValue, mesh: LogicalMesh) -> IRScalar | None:
    """Bytes of the largest shard of a value, ghosts not counted; None when its dtype is not known."""
    sizes = {item.dim: item.sizes for item in value.sharding.sizes}
    count: IRScalar = 1
    for dim, extent in enumerate(value.type.shape):
        axes = value.sharding.dimension_axes[dim] if dim < len(value.sharding.dimension_axes) else ()
        if dim in sizes:
            local: IRScalar = max(sizes[dim])
        else:
            shards = 1
            for axis in axes:
                shards *= mesh.axis_size(axis) if axis in mesh.axis_names else 1
            local = ceil_div(extent, shards) if shards > 1 else extent
        count = expression(ExprOp.MUL, count, local)
    for item in value.local_shapes:
        own = 1
        for extent in item.shape:
            own *= extent
        count = maximum(count, own)
    return elements_bytes(count, value.type.dtype)


def _dim(fields: Fields, key: str, rank: int) -> int | None:
    node = fields.get(key)
    if node is None:
        return None
    found = as_integer(node)
    if found is None:
        fields.wrong(key, "a dim, counted from 0")
        return None
    if found < 0 and -rank <= found:
        return found + rank
    if found < 0:
        fields.value(key, f"dim {found} is outside a tensor of {rank} dims")
        return None
    return found


def _pair(node: Node) -> tuple[int, int] | None:
    if not isinstance(node, Items) or len(node.items) != 2:
        return None
    found = as_naturals(node)
    return (found[0], found[1]) if found is not None else None
