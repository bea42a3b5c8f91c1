"""Where a program that is not partitioned yet enters and leaves a part written per rank (`shard_map`).

Outside, every rank sees whole values; inside, its own part. How whole values are cut and joined is said in one of two ways:

| enters | leaves | what says how |
|---|---|---|
| ``SPMDFullToShardShape`` | ``SPMDShardToFullShape`` | the sharding of the whole value: operand or result |
| ``xla.sdy.GlobalToLocalShape`` | ``xla.sdy.LocalToGlobalShape`` | `xla.sdy.in_shardings`, `xla.sdy.out_shardings` |

The second form has a sharding for every value, of which the axes in `xla.sdy.manual_axes` count.
Source of the second form: Shardy's ``sdy.sharding_per_value`` and ``sdy.manual_axes`` attributes as XLA prints them.

>>> parse_shardings('#sdy.sharding_per_value<[<@mesh, [{"a", "b"}, {}]>, <@mesh, []>]>')
((('a', 'b'), ()), ())
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from dtir.execute.dtypes import Array
from dtir.execute.placement import Placement, PlacementError
from dtir.execute.steps import ExecPlan, Form, Slot, Step
from dtir.execute.values import Held, at, shared, stack

if TYPE_CHECKING:
    from dtir.execute.local import LocalOp, RunContext

ENTER = frozenset({"SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"})
LEAVE = frozenset({"SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"})

Bounds: TypeAlias = Mapping[int, tuple[slice, ...]]
"""The index range of a rank's part in the whole value, cut at its end."""

_DIMS: TypeAlias = tuple[tuple[str, ...], ...]


def manual_boundary(plan: ExecPlan, step: Step, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> LocalOp | None:
    """The function of a boundary, None for every other operation.

    Raises:
        PlacementError: the sharding that says how to cut or join is missing or irregular.
    """
    target = step.task.attributes.get("hlo.custom_call_target")
    if not isinstance(target, str) or target not in ENTER | LEAVE:
        return None
    if plan.form is not Form.UNDIVIDED:
        raise PlacementError(f"{target} stands in a program that is partitioned already")
    if len(inputs) != len(outputs):
        raise PlacementError(f"{target} has {len(inputs)} operands and {len(outputs)} results")
    entering = target in ENTER
    wholes, parts = (inputs, outputs) if entering else (outputs, inputs)
    axes = _axes(step, target, wholes, entering)
    bounds = [
        {rank: _block(whole.placement, dims, part.placement.shape, rank) for rank in range(plan.ranks)}
        for whole, part, dims in zip(wholes, parts, axes, strict=True)
    ]
    one: Callable[[RunContext, Held, Sequence[int], Slot, Bounds], Held] = _enter if entering else _leave

    def run(context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
        if not entering and len(ranks) != plan.ranks:
            raise PlacementError("not all ranks come out of the part that is written per rank")
        return tuple(
            one(context, operand, ranks, slot, cut)
            for operand, slot, cut in zip(operands, outputs, bounds, strict=True)
        )

    return run


def _enter(context: RunContext, operand: Held, ranks: Sequence[int], part: Slot, bounds: Bounds) -> Held:
    xp = context.xp
    rows: list[Array] = []
    for rank in ranks:
        cut = at(operand, rank)[bounds[rank]]
        missing = [(0, size - have) for size, have in zip(part.placement.shape, cut.shape, strict=True)]
        rows.append(xp.pad(cut, missing) if any(after for _, after in missing) else cut)
    return stack(ranks, rows, xp)


def _leave(context: RunContext, operand: Held, ranks: Sequence[int], whole: Slot, bounds: Bounds) -> Held:
    xp = context.xp
    first = at(operand, ranks[0])
    joined = xp.zeros(whole.placement.shape, first.dtype)
    for rank in reversed(ranks):
        index = bounds[rank]
        sizes = joined[index].shape
        joined[index] = at(operand, rank)[tuple(slice(0, size) for size in sizes)]
    return shared(ranks, joined, xp)


# -- which axes cut which dim ---------------------------------------------------------------------------------------------


def _axes(step: Step, target: str, wholes: Sequence[Slot], entering: bool) -> list[_DIMS]:
    """The axes that cut every dim of every whole value."""
    if not target.startswith("xla.sdy."):
        return [tuple(tuple(axes) for axes in whole.placement.sharding.dimension_axes) for whole in wholes]
    names = wholes[0].placement.mesh.axis_names if wholes else ()
    key = "xla.sdy.in_shardings" if entering else "xla.sdy.out_shardings"
    shardings = parse_shardings(_frontend(step, key, target))
    manual = set(re.findall(r'"([^"]+)"', _frontend(step, "xla.sdy.manual_axes", target)))
    if len(shardings) != len(wholes):
        raise PlacementError(f"{target} has {len(wholes)} values and {len(shardings)} shardings")
    found: list[_DIMS] = []
    for whole, dims in zip(wholes, shardings, strict=True):
        if len(dims) != len(whole.placement.shape):
            raise PlacementError(f"{target}: a sharding of {len(dims)} dims for {list(whole.placement.shape)}")
        found.append(
            tuple(
                tuple(part for axis in axes if axis.partition(":")[0] in manual for part in _parts(axis, names, target))
                for axes in dims
            )
        )
    return found


def _parts(axis: str, names: Sequence[str], target: str) -> tuple[str, ...]:
    """The axes of the program's mesh that make up an axis: itself, or its parts ``axis:(before)size``, major to minor.

    >>> _parts("x", ("x:(1)4", "y", "x:(4)2"), "")
    ('x:(1)4', 'x:(4)2')
    """
    if axis in names:
        return (axis,)
    parts = sorted(
        (int(found[1]), name) for name in names if (found := re.fullmatch(re.escape(axis) + r":\((\d+)\)\d+", name))
    )
    if not parts:
        raise PlacementError(f"{target} cuts along axis {axis}, which the mesh of the program does not have")
    return tuple(name for _, name in parts)


def _frontend(step: Step, key: str, target: str) -> str:
    entries = step.task.attributes.get("hlo.frontend_attributes", ())
    for name, text in cast("tuple[tuple[str, str], ...]", entries):
        if name == key:
            return text
    raise PlacementError(f"{target} has no attribute {key}, which says how values are cut")


_LIST = re.compile(r"\s*#sdy\.sharding_per_value<\[(.*)\]>\s*", re.DOTALL)
_VALUE = re.compile(r"\s*<@[\w.$\-]+,\s*\[((?:\{[^{}]*\}(?:p\d+)?|[\s,])*)\](?:,\s*\w+=\{[^{}]*\})*>\s*(?:,|$)")
_DIM = re.compile(r"\{([^{}]*)\}(?:p\d+)?")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?$')


def parse_shardings(text: str) -> tuple[_DIMS, ...]:
    """The axes of every dim of every value in a ``sharding_per_value``; an open dim (``?``) is what it says it is now.

    Raises:
        PlacementError: the text has another form.
    """
    whole = _LIST.fullmatch(text)
    if whole is None:
        raise PlacementError(f"a list of shardings was wanted, found {text[:80]!r}")
    found: list[_DIMS] = []
    rest, place = whole[1], 0
    while rest[place:].strip():
        value = _VALUE.match(rest, place)
        if value is None:
            raise PlacementError(
                f"a sharding of the form <@mesh, [...]> was wanted, found {rest[place : place + 80]!r}"
            )
        found.append(tuple(_dim(dim) for dim in _DIM.findall(value[1])))
        place = value.end()
    return tuple(found)


def _dim(text: str) -> tuple[str, ...]:
    axes: list[str] = []
    for item in (part.strip() for part in text.split(",")):
        if item in ("", "?"):
            continue
        axis = _AXIS.match(item)
        if axis is None:
            raise PlacementError(f"an axis was wanted, found {item!r}")
        axes.append(axis[1] + (axis[2] or ""))
    return tuple(axes)


def _block(whole: Placement, axes: _DIMS, part: Sequence[int], rank: int) -> tuple[slice, ...]:
    """The index range of a rank's part, cut at the end of the value."""
    index: list[slice] = []
    for dim, (extent, size) in enumerate(zip(whole.shape, part, strict=True)):
        if extent == size:
            index.append(slice(0, extent))
            continue
        shards = 1
        for axis in axes[dim]:
            shards *= whole.mesh.axis_size(axis)
        if not axes[dim] or -(-extent // shards) != size:
            raise PlacementError(f"dim {dim} of {extent} becomes {size} per rank, but its sharding does not say how")
        start = whole.position(rank, axes[dim]) * size
        index.append(slice(min(start, extent), min(start + size, extent)))
    return tuple(index)
