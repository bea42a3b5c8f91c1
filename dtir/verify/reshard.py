"""Reshards: every element of the destination is written once, from the right place (``reshard.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtir.analysis.blocks import Box, box_of, intersect, volume
from dtir.analysis.boxes import first_gap, first_overlap
from dtir.analysis.deviations import Kind
from dtir.analysis.flow import Flow
from dtir.analysis.states import declared_state
from dtir.ir.tasks import DistributedTask, Reshard, ReshardKind
from dtir.ir.types import dtype_bits
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic
from dtir.verify.context import Context, finding, task_name, task_path, value_name
from dtir.verify.layout_words import operand_value, reduction_call, related_values, result_value, subjects

MOST_RANKS = 65_536
"""Destination ranks that are looked at one by one."""


def reduces_before(context: Context) -> Iterator[Diagnostic]:
    """Pending reductions.

    - what is pending before a reshard is pending after it: a reshard copies, it does not reduce.
    """
    for flow, index, item in context.deviations(Kind.RESHARD_PARTIAL):
        task, value, result = flow.scope.tasks[index], operand_value(flow, index, item), result_value(flow, index, item)
        name, op = value_name(value) if value is not None else "the operand", item.found.removeprefix("pending ")
        yield finding(
            "reshard.partial",
            f"{task_name(task)} copies {name}, {item.found} over {context.axes_text(item.axes)}, into a "
            "layout that is not",
            task_path(flow, index),
            hint=f"insert {reduction_call(op, item.axes)} on {name} before {task_name(task)}, or keep the "
            "result pending",
            subject=subjects(task, [value, result], item.axes),
            related=related_values(flow, ("pending:", value), ("declared layout of", result)),
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The regions of one reshard, as boxes."""

    index: int
    task: DistributedTask
    source: DistributedValue
    target: DistributedValue
    boxes: tuple[Box, ...]
    froms: tuple[Box, ...]
    shape: tuple[int, ...]


def _plans(context: Context, flow: Flow) -> Iterator[_Plan]:
    """Reshards with regions between values of known extents."""
    for index, task in enumerate(flow.scope.tasks):
        if not isinstance(task.body, Reshard) or not task.body.regions or task.body.kind is not ReshardKind.LAYOUT:
            continue
        if len(task.inputs) != 1 or len(task.outputs) != 1:
            continue
        source = flow.scope.values[flow.position[task.inputs[0]]]
        target = flow.scope.values[flow.position[task.outputs[0]]]
        extents = [context.around.number(extent) for extent in target.type.shape]
        rank = len(extents)
        if any(extent is None for extent in extents) or len(source.type.shape) != rank:
            continue
        regions = task.body.regions
        if any(
            len(region.box) != rank or (region.source is not None and len(region.source) != rank) for region in regions
        ):
            continue
        boxes = tuple(tuple((span.start, span.stop) for span in region.box) for region in regions)
        froms = tuple(
            tuple((span.start, span.stop) for span in (region.source if region.source is not None else region.box))
            for region in regions
        )
        yield _Plan(
            index, task, source, target, boxes, froms, tuple(extent for extent in extents if extent is not None)
        )


def covers_destination(context: Context) -> Iterator[Diagnostic]:
    """Coverage.

    - the regions cover every shard of the destination, and read inside the source;
    - of a tensor that keeps its shape every element is copied to its own place.
    """
    for flow in context.flows:
        for plan in _plans(context, flow):
            gap = _gap(context, plan)
            name = value_name(plan.target)
            if gap is not None:
                message = f"{task_name(plan.task)} never writes {_box_text(gap)} of {name} ({volume(gap)} elements)"
                hint = (
                    f"add the region {_box_text(gap)}; the regions are the intersections of source and "
                    "destination blocks"
                )
            elif moved := _moved(plan):
                message = (
                    f"{task_name(plan.task)} fills {_box_text(moved[0])} of {name} from {_box_text(moved[1])} "
                    f"of {value_name(plan.source)}, so that elements are read elsewhere than they belong"
                )
                hint = (
                    "read every block from its own indices; the regions are the intersections of source and "
                    "destination blocks"
                )
            else:
                continue
            yield finding(
                "reshard.coverage", message, task_path(flow, plan.index, "body", "regions"), hint=hint,
                subject=subjects(plan.task, [plan.source, plan.target], []),
                related=related_values(flow, ("destination", plan.target)),
            )  # fmt: skip


def _gap(context: Context, plan: _Plan) -> Box | None:
    """An unwritten part of some destination shard."""
    whole: Box = tuple((0, extent) for extent in plan.shape)
    gap = first_gap(whole, plan.boxes)
    if gap is None:
        return None
    state = declared_state(plan.target.sharding, context.around.space)
    seen: set[Box] = set()
    for rank in plan.target.owners[:MOST_RANKS]:
        try:
            box = box_of(plan.shape, state, context.around.space, rank)
        except ValueError:
            return None  # shards without sizes are reported as such
        if box not in seen:
            seen.add(box)
            missing = first_gap(box, plan.boxes)
            if missing is not None:
                return missing
    return None


def _moved(plan: _Plan) -> tuple[Box, Box] | None:
    if plan.source.type.shape != plan.target.type.shape or _overlap(plan) is not None:
        return None
    for box, source in zip(plan.boxes, plan.froms, strict=True):
        if box != source and volume(box) == volume(source):
            return box, source
    return None


def _overlap(plan: _Plan) -> tuple[int, int] | None:
    shifts = [
        tuple(low - other for (low, _), (other, _) in zip(box, source, strict=True))
        for box, source in zip(plan.boxes, plan.froms, strict=True)
    ]
    return first_overlap(plan.boxes, shifts)


def writes_once(context: Context) -> Iterator[Diagnostic]:
    """Overlap.

    - regions that write the same element read it from the same place of the source.
    """
    for flow in context.flows:
        for plan in _plans(context, flow):
            found = _overlap(plan)
            if found is None:
                continue
            one, other = found
            common = intersect(plan.boxes[one], plan.boxes[other])
            assert common is not None
            yield finding(
                "reshard.overlap",
                f"{task_name(plan.task)}: regions {one} and {other} both write {_box_text(common)} of "
                f"{value_name(plan.target)}, from different places",
                task_path(flow, plan.index, "body", "regions", str(other)),
                hint=f"end region {one} where region {other} begins, or read both from the same indices",
                subject=subjects(plan.task, [plan.source, plan.target], []),
                related=related_values(flow, ("destination", plan.target)),
            )


def conserves_volume(context: Context) -> Iterator[Diagnostic]:
    """Volume.

    - every region receives as many elements as it sends, and reads inside the source;
    - a stated number of bytes is at least what destination ranks need and do not have.
    """
    for flow in context.flows:
        for plan in _plans(context, flow):
            extents = [context.around.number(extent) for extent in plan.source.type.shape]
            for number, (box, source) in enumerate(zip(plan.boxes, plan.froms, strict=True)):
                sent, received = volume(source), volume(box)
                outside = any(
                    extent is not None and stop > extent for extent, (_, stop) in zip(extents, source, strict=True)
                )
                if sent != received or outside:
                    what = (
                        f"sends {sent} elements and receives {received}"
                        if sent != received
                        else f"reads {_box_text(source)}, beyond the source"
                    )
                    yield finding(
                        "reshard.bytes",
                        f"{task_name(plan.task)}: region {number} {what}",
                        task_path(flow, plan.index, "body", "regions", str(number)),
                        hint="give box and source the same extents, inside the tensor",
                        subject=subjects(plan.task, [plan.source, plan.target], []),
                    )
                    break
        yield from _stated_bytes(context, flow)


def _stated_bytes(context: Context, flow: Flow) -> Iterator[Diagnostic]:
    for index, task in enumerate(flow.scope.tasks):
        stated = task.attributes.get("op.bytes") if task.attributes and isinstance(task.body, Reshard) else None
        if (
            not isinstance(stated, (int, float))
            or isinstance(stated, bool)
            or len(task.inputs) != 1
            or len(task.outputs) != 1
        ):
            continue
        source = flow.scope.values[flow.position[task.inputs[0]]]
        target = flow.scope.values[flow.position[task.outputs[0]]]
        needed = least_bytes(context, source, target)
        if needed is not None and stated < needed:
            yield finding(
                "reshard.bytes",
                f"{task_name(task)} states {stated} bytes, but its destinations need {needed} bytes of "
                f"{value_name(source)} that they do not have",
                task_path(flow, index, "attributes"),
                hint=f"count the intersections of source and destination blocks: {needed} bytes",
                subject=subjects(task, [source, target], []),
                related=related_values(flow, ("source", source), ("destination", target)),
            )


def least_bytes(context: Context, source: DistributedValue, target: DistributedValue) -> int | None:
    """Bytes that destination ranks need and do not hold: the sum over ranks of need minus have."""
    space = context.around.space
    shape = [context.around.number(extent) for extent in target.type.shape]
    bits = dtype_bits(target.type.dtype)
    if bits is None or any(extent is None for extent in shape) or source.type.shape != target.type.shape:
        return None
    extents = tuple(extent for extent in shape if extent is not None)
    before, after = declared_state(source.sharding, space), declared_state(target.sharding, space)
    if before.varying or after.varying or len(target.owners) > MOST_RANKS:
        return None
    holders = set(source.owners)
    total = 0
    for rank in target.owners:
        try:
            need = box_of(extents, after, space, rank)
            have = box_of(extents, before, space, rank) if rank in holders else None
        except ValueError:
            return None
        common = intersect(need, have) if have is not None else None
        total += volume(need) - (volume(common) if common is not None else 0)
    return -(-total * bits // 8)


def _box_text(box: Sequence[tuple[int, int]]) -> str:
    return "[" + ", ".join(f"{start}:{stop}" for start, stop in box) + "]"


RULES = (reduces_before, covers_destination, writes_once, conserves_volume)
