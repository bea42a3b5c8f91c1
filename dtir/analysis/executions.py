"""How often a region runs: calls and loop trips multiplied along the way from the program's own task list.

A region may be entered from many places, and those again from many: the weights are one pass over the regions in the
order in which they enter each other, never a walk along every path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from dtir.ir.ids import RegionId
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    LocalCompute,
    Loop,
    PointToPoint,
    Region,
    Reshard,
    TaskBodyVariant,
)

MAX_EXECUTIONS = 10**100
"""Counts beyond this are None: nothing runs so often, and a file could name numbers of any length."""


def entered(body: TaskBodyVariant) -> Iterator[tuple[RegionId, int | None]]:
    """The regions that one execution of a task enters, each with how often; None when the data decide."""
    match body:
        case Call(region=region):
            yield region, 1
        case Loop(body=inner, condition=condition, trip_count=trips):
            yield inner, trips
            if condition is not None:
                # The condition is asked once more than the body runs.
                yield condition, None if trips is None else trips + 1
        case Branch(regions=regions):
            for region in regions:
                yield region, 1 if len(regions) == 1 else None
        case LocalCompute() | Collective() | PointToPoint() | Reshard() | Control():
            return
        case _:
            assert_never(body)


def region_executions(
    tasks: Iterable[DistributedTask], regions: Mapping[RegionId, Region]
) -> dict[RegionId, int | None]:
    """How often each region runs in one run of the program.

    Args:
        tasks: the program's own task list.
        regions: all regions by id.

    Returns:
        A count for every region: 0 when nothing enters it, None when the data decide, when regions enter each other in
        a circle, or beyond `MAX_EXECUTIONS`.
    """
    entries = {name: [pair for task in region.tasks for pair in entered(task.body)] for name, region in regions.items()}
    waiting = dict.fromkeys(regions, 0)
    for pairs in entries.values():
        for name, _ in pairs:
            if name in waiting:
                waiting[name] += 1
    counts: dict[RegionId, int | None] = dict.fromkeys(regions, 0)

    def enter(pairs: Iterable[tuple[RegionId, int | None]], weight: int | None) -> None:
        for name, times in pairs:
            if name in counts and weight != 0:
                counts[name] = _plus(counts[name], _times(weight, times))

    enter((pair for task in tasks for pair in entered(task.body)), 1)
    ready = [name for name, count in waiting.items() if not count]
    done = 0
    while ready:
        current = ready.pop()
        done += 1
        enter(entries[current], counts[current])
        for name, _ in entries[current]:
            if name in waiting:
                waiting[name] -= 1
                if not waiting[name]:
                    ready.append(name)
    if done < len(regions):  # a circle: nobody can say how often those run
        counts.update((name, None) for name, count in waiting.items() if count)
    return counts


def _times(weight: int | None, times: int | None) -> int | None:
    if weight is None or times is None:
        return 0 if times == 0 else None
    return weight * times


def _plus(left: int | None, right: int | None) -> int | None:
    if left is None or right is None or left + right > MAX_EXECUTIONS:
        return None
    return left + right
