"""Bytes of live values, rank by rank: from the definition of a value to its last use on that rank (SEMANTICS 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from dtir.analysis.schedules import rank_orders
from dtir.ir.ids import ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import rank_set
from dtir.ir.values import DistributedValue


def peak_bytes(
    program: DistributedTaskIR, size_of: Callable[[DistributedValue], int | float | None]
) -> Iterator[tuple[int, int | float, int]]:
    """Rank, peak and the task at which it is reached; ranks that run the same tasks with the same values are given once.

    Inputs are live from the start; outputs to the end; a value without a known size counts nothing. Values that a rank
    does not own do not count on it.
    """
    values = {value.id: value for value in program.values}
    owners: dict[int, Container[int]] = {}
    for value in program.values:
        owners.setdefault(id(value.owners), rank_set(value.owners))
    outputs = set(program.outputs)
    for rank, order in rank_orders(program, list(range(len(program.tasks)))):
        if not order:
            continue

        def held(identifier: ValueId, rank: int = rank) -> int | float:
            value = values[identifier]
            return (size_of(value) or 0) if rank in owners[id(value.owners)] else 0

        last: dict[ValueId, int] = {}
        for place, index in enumerate(order):
            task = program.tasks[index]
            for item in (*task.inputs, *task.outputs):
                last[item] = place
        ends: dict[int, list[ValueId]] = {}
        for item, place in last.items():
            if item not in outputs:
                ends.setdefault(place, []).append(item)
        live = {item for item in program.inputs if held(item)}
        total = sum(held(item) for item in live)
        most, at = total, order[0]
        for place, index in enumerate(order):
            for item in program.tasks[index].outputs:
                if item not in live:
                    live.add(item)
                    total += held(item)
            if total > most:
                most, at = total, index
            for item in ends.get(place, ()):
                if item in live:
                    live.discard(item)
                    total -= held(item)
        yield rank, most, at
