"""StableHLO's collectives and transfers, and those of tt-mlir that say the same.

Groups come as ``dense<[[0,1],[2,3]]>`` (short rows end with -1) or along the axes of a mesh; what the ids count follows from
channel and flag, by the rule of the StableHLO specification, which is XLA's.
"""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Names, Pairs
from dtir.importers.hlo.groups import ExplicitGroups, MeshGroups, ReplicaGroups
from dtir.importers.hlo.lexing import HloSyntaxError, unescape
from dtir.importers.hlo.meshes import AxisRef, Mesh, refine, shorten
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.lists import closing, split
from dtir.importers.stablehlo.ops_tensor import number, take, word
from dtir.importers.stablehlo.ops_window import reducer
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import boolean, integer, matrix
from dtir.importers.stablehlo.views import View

_HANDLE = re.compile(r"\bhandle\s*=\s*(-?\d{1,18})")
_AXIS = re.compile(
    r'(?:name\s*=\s*)?("(?:[^"\\\n]|\\.)*")(?:\s*(?:,\s*sub_axis_info\s*=|:)\s*\((\d{1,18})\)\s*(\d{1,18}))?', re.DOTALL
)
_MESH = re.compile(r"mesh\s*=\s*@([\w.$\-]+)")


def groups_of(translator: Translator, view: View) -> ReplicaGroups:
    """The replica groups of a collective; raises `HloSyntaxError` where they cannot be read."""
    text = take(view, "replica_groups", "grouping")
    if text is None:
        raise HloSyntaxError("needs replica_groups", 0, "mlir.missing_attribute")
    if "replica_group_mesh_axes" in text:
        return _along_axes(translator, text)
    if re.match(r"dense<>\s*:", text) or re.search(r"tensor<0x\d+xi64>|tensor<\d+x0xi64>", text):
        return ExplicitGroups((), text)
    rows = matrix(text)
    if rows is None:
        raise HloSyntaxError(f"replica_groups '{shorten(text)}' are no list of lists", 0, "mlir.replica_groups")
    if any(number < 0 for row in rows for number in row):
        raise HloSyntaxError("replica_groups hold a negative id", 0, "mlir.replica_groups")
    ids = [number for row in rows for number in row]
    if len(set(ids)) < len(ids):
        raise HloSyntaxError("replica_groups hold an id twice", 0, "mlir.replica_groups")
    return ExplicitGroups(rows, text)


def _along_axes(translator: Translator, text: str) -> MeshGroups:
    name = _MESH.search(text)
    mesh = translator.mesh(name.group(1)) if name is not None else None
    if mesh is None:
        stated = f"@{name.group(1)}" if name is not None else "no mesh"
        raise HloSyntaxError(f"replica_groups speak of {stated}, which is not in the module", 0, "mlir.replica_groups")
    start = text.find("axes")
    start = text.find("[", start) if start >= 0 else -1
    refs: list[AxisRef] = []
    for part in split(text[start + 1 : closing(text, start) - 1]) if start >= 0 else []:
        match = _AXIS.search(part)
        if match is None:
            raise HloSyntaxError(f"'{shorten(part)}' is no axis", 0, "mlir.replica_groups")
        axis, pre, size = match.groups()
        refs.append(AxisRef(unescape(axis)) if pre is None else AxisRef(unescape(axis), int(pre), int(size)))
    try:
        refine(mesh.mesh, tuple(refs))
    except HloSyntaxError as error:
        raise HloSyntaxError(error.message, 0, "mlir.replica_groups") from None
    return MeshGroups(mesh.mesh, tuple(refs), text)


def _channel(view: View, attributes: dict[str, AttributeValue]) -> None:
    text = take(view, "channel_handle", "channel_id")
    if text is not None:
        match = _HANDLE.search(text)
        handle = int(match.group(1)) if match is not None else integer(text)
        if handle is not None and handle > 0:
            attributes["channel_id"] = handle
    if boolean(take(view, "use_global_device_ids")):
        attributes["use_global_device_ids"] = True
        if "channel_id" not in attributes:
            raise HloSyntaxError("use_global_device_ids needs a channel", 0, "mlir.group_mode")


def _reduction(translator: Translator, builder: Builder, view: View, attributes: dict[str, AttributeValue]) -> None:
    if not view.operation.regions:
        raise HloSyntaxError("needs a region that reduces", 0, "mlir.missing_attribute")
    name = translator.applied(builder, view, view.operation.regions[0], f"{translator.label(view)}.reducer")
    attributes["to_apply"] = Names((name,))


def _all_reduce(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {"replica_groups": groups_of(translator, view)}
    _channel(view, attributes)
    _reduction(translator, builder, view, attributes)
    translator.emit(builder, view, "all-reduce", attributes)


def _all_gather(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {
        "replica_groups": groups_of(translator, view),
        "dimensions": (number(view, "all_gather_dim"),),
    }
    _channel(view, attributes)
    translator.emit(builder, view, "all-gather", attributes)


def _reduce_scatter(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {
        "replica_groups": groups_of(translator, view),
        "dimensions": (number(view, "scatter_dimension"),),
    }
    _channel(view, attributes)
    _reduction(translator, builder, view, attributes)
    translator.emit(builder, view, "reduce-scatter", attributes)


def _all_to_all(translator: Translator, builder: Builder, view: View) -> None:
    split_dim, concat_dim = number(view, "split_dimension"), number(view, "concat_dimension")
    attributes: dict[str, AttributeValue] = {"replica_groups": groups_of(translator, view), "dimensions": (split_dim,)}
    if split_dim != concat_dim:
        attributes["concat_dimension"] = concat_dim
    count = integer(take(view, "split_count"))
    if count is not None:
        attributes["split_count"] = count
    _channel(view, attributes)
    translator.emit(builder, view, "all-to-all", attributes)


def _broadcast(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {"replica_groups": groups_of(translator, view)}
    _channel(view, attributes)
    translator.emit(builder, view, "collective-broadcast", attributes)


def _permute(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {"source_target_pairs": _pairs(view)}
    _channel(view, attributes)
    translator.emit(builder, view, "collective-permute", attributes)


def _pairs(view: View) -> Pairs:
    text = take(view, "source_target_pairs") or ""
    if re.match(r"dense<>", text):
        return Pairs(())
    rows = matrix(text)
    if rows is None or any(len(row) != 2 or min(row) < 0 for row in rows):
        raise HloSyntaxError("needs source_target_pairs: pairs of ids", 0, "mlir.replica_groups")
    pairs = tuple((row[0], row[1]) for row in rows)
    if any(len({pair[side] for pair in pairs}) < len(pairs) for side in (0, 1)):
        raise HloSyntaxError("an id is twice a source or twice a target", 0, "mlir.replica_groups")
    return Pairs(pairs)


def _transfer(opcode: str) -> Handler:
    """``send`` and ``recv``: to and from the host, or between devices that other text names."""

    def translate(translator: Translator, builder: Builder, view: View) -> None:
        attributes: dict[str, AttributeValue] = {}
        _channel(view, attributes)
        if boolean(take(view, "is_host_transfer")):
            attributes["is_host_transfer"] = True
        translator.emit(builder, view, opcode, attributes)

    return translate


# -- tt-mlir -------------------------------------------------------------------------------------------------------------


def _cluster(translator: Translator, view: View, attributes: dict[str, AttributeValue]) -> None:
    """Groups along an axis of the device mesh: ``cluster_axis = 1`` of ``#ttcore.meshes<[<"mesh" = 2x4>]>``."""
    shape = translator.cluster()
    axis = number(view, "cluster_axis")
    if shape is None or not 0 <= axis < len(shape):
        raise HloSyntaxError(f"cluster_axis {axis} is not an axis of the device mesh", 0, "mlir.replica_groups")
    mesh = Mesh(tuple((f"cluster_{place}", size) for place, size in enumerate(shape)))
    attributes["replica_groups"] = MeshGroups(mesh, (AxisRef(f"cluster_{axis}"),), f"cluster_axis {axis}")
    attributes["channel_id"] = 1
    attributes["use_global_device_ids"] = True


_TT_REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def _tt_reduction(translator: Translator, builder: Builder, view: View, attributes: dict[str, AttributeValue]) -> None:
    kind = _TT_REDUCTIONS.get(word(view, "reduce_type") or "")
    shape = builder.shape(view.operands[0]) if view.operands else None
    if kind is None or not isinstance(shape, ArrayShape):
        raise HloSyntaxError("needs a reduce_type: sum, max, min or prod", 0, "mlir.missing_attribute")
    attributes["to_apply"] = Names((reducer(translator, kind, shape.dtype, view.operation.at),))


def _tt_all_reduce(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {}
    _cluster(translator, view, attributes)
    _tt_reduction(translator, builder, view, attributes)
    translator.emit(builder, view, "all-reduce", attributes)


def _tt_all_gather(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {"dimensions": (number(view, "all_gather_dim"),)}
    _cluster(translator, view, attributes)
    translator.emit(builder, view, "all-gather", attributes)


def _tt_reduce_scatter(translator: Translator, builder: Builder, view: View) -> None:
    attributes: dict[str, AttributeValue] = {"dimensions": (number(view, "scatter_dim"),)}
    _cluster(translator, view, attributes)
    _tt_reduction(translator, builder, view, attributes)
    translator.emit(builder, view, "reduce-scatter", attributes)


HANDLERS: dict[str, Handler] = {
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_gather": _all_gather,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _broadcast,
    "stablehlo.collective_permute": _permute,
    "stablehlo.send": _transfer("send"),
    "stablehlo.recv": _transfer("recv"),
    "ttir.all_reduce": _tt_all_reduce,
    "ttir.all_gather": _tt_all_gather,
    "ttir.reduce_scatter": _tt_reduce_scatter,
}
