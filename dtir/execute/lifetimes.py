"""How long the values of a plan live, and how much a rank holds at a time because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtir.analysis.executions import entered
from dtir.execute.communication import held_bytes
from dtir.execute.dtypes import is_token
from dtir.execute.steps import ScopePlan, Slot, Step
from dtir.ir.ids import RegionId, ValueId
from dtir.ir.tasks import DistributedTask


def last_uses(
    tasks: Sequence[DistributedTask], numbers: Mapping[ValueId, int], kept: set[int]
) -> dict[object, tuple[ValueId, ...]]:
    """For every task the values that nothing reads after it: those it reads last, and those it makes for nobody."""
    last: dict[ValueId, object] = {}
    for task in tasks:
        for value in (*task.inputs, *task.outputs):
            last[value] = task.id
    frees: dict[object, list[ValueId]] = {task.id: [] for task in tasks}
    for value, task_id in last.items():
        if numbers[value] not in kept:
            frees[task_id].append(value)
    return {task_id: tuple(values) for task_id, values in frees.items()}


def _slot_bytes(slot: Slot) -> int:
    if is_token(slot.value.type.dtype):
        return 0
    owners = slot.value.owners
    return held_bytes(slot, owners[0] if len(owners) else 0)


def scope_peak(steps: Sequence[Step], slots: Sequence[Slot], inputs: Sequence[int]) -> int:
    """Most bytes that one rank holds at a time: inputs, results and what is still to be read."""
    sizes = [_slot_bytes(slot) for slot in slots]
    live = set(inputs)
    held = sum(sizes[number] for number in live)
    peak = held
    for step in steps:
        for number in step.outputs:
            if number not in live:
                live.add(number)
                held += sizes[number]
        peak = max(peak, held)
        for number in step.frees:
            if number in live:
                live.discard(number)
                held -= sizes[number]
    return peak


def peak_bytes(main: ScopePlan, regions: Mapping[RegionId, ScopePlan]) -> int:
    """The program's own peak and that of the deepest chain of regions on top of it (own stack: chains may be long)."""
    below: dict[RegionId | None, list[RegionId]] = {
        scope.region: [name for step in scope.steps for name, _ in entered(step.task.body) if name in regions]
        for scope in (main, *regions.values())
    }
    total: dict[RegionId | None, int] = {}
    stack: list[tuple[ScopePlan, bool]] = [(main, False)]
    while stack:
        scope, visited = stack.pop()
        if scope.region in total:
            continue
        inner = below[scope.region]
        if visited:
            total[scope.region] = scope.peak_bytes + max((total[name] for name in inner), default=0)
            continue
        stack.append((scope, True))
        stack.extend((regions[name], False) for name in inner if name not in total)
    return total[None]
