"""Layouts of outputs that a partitioned HLO module does not state, inferred from those of its parameters.

Every dim carries the mesh axes that split it, or nothing that is known. Elementwise operations align their operands,
collectives move axes between dims and copies, everything that picks or joins elements forgets the dims it works on. What
comes out is an inference: it is checked against the shapes and against equal copies before it is used, and marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dtir.analysis.groups import groups_of
from dtir.execute.hlo import elementwise
from dtir.execute.hlo.attributes import Padding, Window, decode
from dtir.execute.placement import Placement
from dtir.execute.steps import ExecPlan, ScopePlan, Slot, Step
from dtir.ir.collectives import AllGather, AllReduce, CollectivePermute, CollectiveSpecVariant, ReduceScatter
from dtir.ir.ids import RegionId
from dtir.ir.sharding import ShardingSpec
from dtir.ir.tasks import Branch, Call, Collective, Control, Loop
from dtir.ops import OpError
from dtir.ops.rules import dim_groups

Axes: TypeAlias = tuple[str, ...] | None
"""Axes that split a dim, major to minor; () when it is whole; None when nothing is known."""

Layout: TypeAlias = tuple[Axes, ...]

MOST_DEPTH = 64
"""Regions inside each other that are followed; deeper ones are not known."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """Inferred layouts of outputs.

    Args:
        layouts: by output number.
        by_hand: whether parts of the program were written per rank (`shard_map`): how its outputs belong together was then
            up to its author, so that an inference needs the undivided shape beside it.
    """

    layouts: Mapping[int, Placement]
    by_hand: bool = False


NOTHING_INFERRED = Inferred({})


def infer_layouts(plan: ExecPlan, outputs: Sequence[int]) -> Inferred:
    """Layouts of outputs of which something is known.

    Args:
        outputs: slots of the program's own list, in the order of the outputs.
    """
    walk = _Walk(plan)
    start = [_stated(plan.main.slots[slot]) for slot in plan.main.inputs]
    values = walk.scope(plan.main, start, 0)
    by_hand = any(
        "shard_map" in str(step.task.attributes.get("op_name")) for scope in plan.scopes for step in scope.steps
    )
    found: dict[int, Placement] = {}
    for number, slot in enumerate(outputs):
        layout = values[slot]
        axes = tuple(item or () for item in layout)
        used = [axis for part in axes for axis in part]
        local = plan.main.slots[slot].shape
        if local is None or len(set(used)) != len(used) or not any(item is not None for item in layout):
            continue
        mesh = plan.program.mesh
        if by_hand and any(not _in_mesh_order(part, mesh.axis_names) for part in axes):
            continue
        rest = tuple(axis for axis in mesh.axis_names if axis not in used)
        spec = ShardingSpec(axes, rest)
        sizes = [1] * len(axes)
        for dim, part in enumerate(axes):
            for axis in part:
                sizes[dim] *= mesh.axis_size(axis)
        found[number] = Placement(mesh, tuple(n * k for n, k in zip(local, sizes, strict=True)), spec)
    return Inferred(found, by_hand)


def _in_mesh_order(axes: Sequence[str], names: Sequence[str]) -> bool:
    """Where parts were written per rank by hand, only the usual order of axes is taken as likely."""
    places = [names.index(axis) for axis in axes]
    return places == sorted(places)


def _stated(slot: Slot) -> Layout:
    if slot.placement.sharding.varying and not any(slot.placement.sharding.dimension_axes):
        return (None,) * len(slot.placement.shape)
    return tuple(slot.placement.sharding.dimension_axes)


def merge(left: Axes, right: Axes) -> Axes:
    """What two aligned dims say together: the one that is split, else the one that is known; nothing where they disagree."""
    if left is None or right is None:
        return left if right is None else right
    if not left or not right:
        return left or right
    return left if left == right else None


def _merged(layouts: Sequence[Layout], rank: int) -> Layout:
    found: list[Axes] = [None] * rank
    for layout in layouts:
        if len(layout) == rank:
            found = [merge(mine, theirs) for mine, theirs in zip(found, layout, strict=True)]
    return tuple(found)


@dataclass(slots=True)
class _Walk:
    """Follows layouts through a plan."""

    plan: ExecPlan

    def scope(self, scope: ScopePlan, inputs: Sequence[Layout], depth: int) -> dict[int, Layout]:
        """The layout of every slot of a scope."""
        values: dict[int, Layout] = dict(zip(scope.inputs, inputs, strict=True))
        for step in scope.steps:
            operands = [values[number] for number in step.inputs]
            results = self.step(scope, step, operands, depth)
            for number, layout in zip(step.outputs, results, strict=True):
                rank = len(scope.slots[number].placement.shape)
                values[number] = layout if len(layout) == rank else (None,) * rank
        return values

    def _region(self, name: RegionId, inputs: Sequence[Layout], depth: int) -> list[Layout]:
        scope = self.plan.regions[name]
        values = self.scope(scope, inputs, depth + 1)
        return [values[number] for number in scope.outputs]

    def _exchanged(self, spec: CollectiveSpecVariant, layout: Layout) -> Layout:
        match spec:
            case CollectivePermute():
                return layout
            case AllReduce():
                return _without(layout, self._spanned(spec))
            case AllGather(axes=axes, dim=dim) if dim is not None and axes:
                split = layout[dim]
                kept = split[: len(split) - len(axes)] if split and split[len(split) - len(axes) :] == axes else None
                return (*_without(layout[:dim], axes), kept, *_without(layout[dim + 1 :], axes))
            case ReduceScatter(axes=axes, dim=dim) if dim is not None and axes:
                rest = _without(layout, axes)
                return (*rest[:dim], (*(rest[dim] or ()), *axes), *rest[dim + 1 :])
            case AllGather(dim=dim) | ReduceScatter(dim=dim) if dim is not None:
                # Listed groups: members that differ along some axes, in an order that no list of axes has.
                rest = _without(layout, self._spanned(spec))
                return (*rest[:dim], None, *rest[dim + 1 :])
            case _:
                return (None,) * len(layout)

    def _spanned(self, spec: CollectiveSpecVariant) -> tuple[str, ...]:
        """The axes along which members of the groups differ."""
        mesh = self.plan.program.mesh
        groups = groups_of(spec, mesh) or ()
        found: dict[str, None] = {}
        for group in groups:
            first = mesh.coordinates(group[0])
            for rank in group[1:]:
                for axis, one, other in zip(mesh.axis_names, first, mesh.coordinates(rank), strict=True):
                    if one != other:
                        found[axis] = None
        return tuple(found)

    def step(self, scope: ScopePlan, step: Step, operands: Sequence[Layout], depth: int) -> Sequence[Layout]:
        """Layouts of the results of a step."""
        unknown: list[Layout] = [(None,) * len(scope.slots[number].placement.shape) for number in step.outputs]
        body = step.task.body
        match body:
            case Call(region=region) if depth < MOST_DEPTH:
                return self._region(region, operands, depth)
            case Loop(body=region) if depth < MOST_DEPTH:
                state = list(operands)
                # Twice: what the first turn learns of one part of the state may tell something of another.
                for _ in range(2):
                    after = self._region(region, state, depth)
                    state = [_merged([old, new], len(old)) for old, new in zip(state, after, strict=True)]
                return state
            case Branch(regions=regions, operand_counts=counts) if depth < MOST_DEPTH:
                first, found = 1, unknown
                for region, count in zip(regions, counts, strict=True):
                    results = self._region(region, operands[first : first + count], depth)
                    found = [_merged([old, new], len(old)) for old, new in zip(found, results, strict=True)]
                    first += count
                return found
            case Collective(spec=spec):
                return (
                    [self._exchanged(spec, layout) for layout in operands] if len(operands) == len(unknown) else unknown
                )
            case Control():
                return list(operands) if len(operands) == len(unknown) else unknown
            case _:
                if step.task.operation.dialect != "hlo" or len(unknown) != 1:
                    return unknown
                return [_local(scope, step, operands, len(unknown[0]))]


def _without(layout: Layout, axes: Sequence[str]) -> Layout:
    """The result is the same along these axes, so that none of them splits a dim any more."""
    return tuple(part and tuple(axis for axis in part if axis not in axes) for part in layout)


_ALIGNED = frozenset(elementwise.OPCODES)
"""Operations whose operands and result have the same dims (or are scalars)."""


def _local(scope: ScopePlan, step: Step, operands: Sequence[Layout], rank: int) -> Layout:
    opcode = step.task.operation.name
    shapes = [scope.slots[number].shape or () for number in step.inputs]
    result = scope.slots[step.outputs[0]].shape or ()
    attributes = decode(step.task.attributes)
    if opcode in _ALIGNED:
        return _merged([layout for layout, shape in zip(operands, shapes, strict=True) if shape == result], rank)
    rule = _RULES.get(opcode)
    return rule(operands, shapes, result, attributes) if rule is not None else (None,) * rank


def _dims(attributes: Mapping[str, Any], key: str) -> tuple[int, ...]:
    found = attributes.get(key, ())
    return found if isinstance(found, tuple) else ()  # pyright: ignore[reportUnknownVariableType] - frozen data


Shapes: TypeAlias = Sequence[tuple[int, ...]]


def _broadcast(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    found: list[Axes] = [None] * len(result)
    for place, dim in enumerate(_dims(attributes, "dimensions")):
        if shapes[0][place] == result[dim]:
            found[dim] = operands[0][place]
    return tuple(found)


def _transpose(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    return tuple(operands[0][dim] for dim in _dims(attributes, "dimensions"))


def _reshape(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    """The blocks of a dim stay blocks of the leading dim of the group that it is reshaped to."""
    found: list[Axes] = [() if extent == 1 else None for extent in result]
    try:
        groups = dim_groups(shapes[0], result)
    except OpError:
        return (None,) * len(result)
    for group in groups:
        first = operands[0][group.operand_dims[0]]
        rest = [operands[0][dim] for dim in group.operand_dims[1:]]
        if not any(rest):
            found[group.result_dims[0]] = first
            for dim in group.result_dims[1:]:
                found[dim] = () if first is not None else None
    # A dim of one local element may be split: it keeps its axes where the shapes pair it off.
    if len(shapes[0]) == len(result) and shapes[0] == result:
        return operands[0]
    ones = [dim for dim, extent in enumerate(shapes[0]) if extent == 1 and operands[0][dim]]
    free = [dim for dim, extent in enumerate(result) if extent == 1]
    if len(ones) == len(free):
        for old, new in zip(ones, free, strict=True):
            found[new] = operands[0][old]
    return tuple(found)


def _dot(operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]) -> Layout:
    left, right = operands
    left_batch, right_batch = _dims(attributes, "lhs_batch_dims"), _dims(attributes, "rhs_batch_dims")
    left_gone = {*left_batch, *_dims(attributes, "lhs_contracting_dims")}
    right_gone = {*right_batch, *_dims(attributes, "rhs_contracting_dims")}
    batch = [merge(left[a], right[b]) for a, b in zip(left_batch, right_batch, strict=True)]
    free = [axes for dim, axes in enumerate(left) if dim not in left_gone]
    free += [axes for dim, axes in enumerate(right) if dim not in right_gone]
    return (*batch, *free)


def _reduce(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    gone = _dims(attributes, "dimensions")
    return tuple(axes for dim, axes in enumerate(operands[0]) if dim not in gone)


def _same_extent(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    """Slices: a dim that is taken whole keeps its axes."""
    return tuple(axes if old == new else None for axes, old, new in zip(operands[0], shapes[0], result, strict=True))


def _concatenate(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    joined = _dims(attributes, "dimensions")
    merged = _merged(operands, len(result))
    return tuple(None if dim in joined else axes for dim, axes in enumerate(merged))


def _pad(operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]) -> Layout:
    found = attributes.get("padding")
    if not isinstance(found, Padding):
        return (None,) * len(result)
    return tuple(
        None if any(parts) else axes
        for axes, *parts in zip(operands[0], found.low, found.high, found.interior, strict=True)
    )


def _first(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    return operands[0]


def _update(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    return tuple(
        merge(mine, theirs) if whole == part else mine
        for mine, theirs, whole, part in zip(operands[0], operands[1], shapes[0], shapes[1], strict=True)
    )


def _window(
    operands: Sequence[Layout], shapes: Shapes, result: tuple[int, ...], attributes: Mapping[str, Any]
) -> Layout:
    found = attributes.get("window")
    if not isinstance(found, Window):
        return (None,) * len(result)
    return tuple(
        axes if size == 1 and stride == 1 and pad == (0, 0) else None
        for axes, size, stride, pad in zip(operands[0], found.size, found.stride, found.pad, strict=True)
    )


_RULES = {
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "dot": _dot,
    "dynamic-slice": _same_extent,
    "dynamic-update-slice": _update,
    "pad": _pad,
    "reduce": _reduce,
    "reduce-window": _window,
    "reshape": _reshape,
    "scatter": _first,
    "slice": _same_extent,
    "transpose": _transpose,
}
