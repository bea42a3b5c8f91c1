"""Where a program that is not partitioned yet enters and leaves a part written per rank (`shard_map`).

Outside, every rank sees whole values; inside, its own part. ``SPMDFullToShardShape`` cuts by the sharding of its operand,
``SPMDShardToFullShape`` joins by the sharding of its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtir.execute.dtypes import Array
from dtir.execute.placement import Placement, PlacementError
from dtir.execute.steps import ExecPlan, Form, Slot, Step
from dtir.execute.values import Held, at, shared, stack

if TYPE_CHECKING:
    from dtir.execute.local import LocalOp, RunContext

ENTER, LEAVE = "SPMDFullToShardShape", "SPMDShardToFullShape"


def manual_boundary(plan: ExecPlan, step: Step, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> LocalOp | None:
    """The function of a boundary, None for every other operation.

    Raises:
        PlacementError: the sharding that says how to cut or join is missing or irregular.
    """
    target = step.task.attributes.get("hlo.custom_call_target")
    if target not in (ENTER, LEAVE):
        return None
    if plan.form is not Form.UNDIVIDED:
        raise PlacementError(f"{target} stands in a program that is partitioned already")
    whole, part = (inputs[0], outputs[0]) if target == ENTER else (outputs[0], inputs[0])
    bounds = {rank: _block(whole.placement, part.placement.shape, rank) for rank in range(plan.ranks)}

    def enter(context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
        xp = context.xp
        rows: list[Array] = []
        for rank in ranks:
            cut = at(operands[0], rank)[bounds[rank]]
            missing = [(0, size - have) for size, have in zip(part.placement.shape, cut.shape, strict=True)]
            rows.append(xp.pad(cut, missing) if any(after for _, after in missing) else cut)
        return (stack(ranks, rows, xp),)

    def leave(context: RunContext, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
        xp = context.xp
        if len(ranks) != plan.ranks:
            raise PlacementError("not all ranks come out of the part that is written per rank")
        first = at(operands[0], ranks[0])
        joined = xp.zeros(whole.placement.shape, first.dtype)
        for rank in reversed(ranks):
            index = bounds[rank]
            sizes = joined[index].shape
            joined[index] = at(operands[0], rank)[tuple(slice(0, size) for size in sizes)]
        return (shared(ranks, joined, xp),)

    return enter if target == ENTER else leave


def _block(whole: Placement, part: Sequence[int], rank: int) -> tuple[slice, ...]:
    """The index range of a rank's part, cut at the end of the value."""
    index: list[slice] = []
    for dim, (extent, size) in enumerate(zip(whole.shape, part, strict=True)):
        if extent == size:
            index.append(slice(0, extent))
            continue
        axes = whole.sharding.dimension_axes[dim]
        if not axes or -(-extent // whole.shards(dim)) != size:
            raise PlacementError(f"dim {dim} of {extent} becomes {size} per rank, but its sharding does not say how")
        start = whole.position(rank, axes) * size
        index.append(slice(min(start, extent), min(start + size, extent)))
    return tuple(index)
