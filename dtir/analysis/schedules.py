"""In which order a rank runs its tasks, and what of it is a pipeline schedule.

A rank runs its issue list; without one, its tasks in list order.

>>> warmup(stages=4, microbatches=8, stage=0), warmup(stages=4, microbatches=2, stage=0)
(3, 2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask, PipelineSlot

FORWARD = frozenset({"f", "fwd", "forward"})
BACKWARD = frozenset({"b", "bwd", "backward", "bi", "bw", "w"})


@dataclass(frozen=True, slots=True)
class Slot:
    """A pipeline slot where it stands.

    Args:
        task: position of the task.
        stage, microbatch, chunk: as in the program.
        forward: True for a forward, False for a backward.
    """

    task: int
    stage: int
    microbatch: int
    chunk: int
    forward: bool

    @property
    def key(self) -> tuple[int, int, int]:
        return self.stage, self.chunk, self.microbatch


def direction(slot: PipelineSlot) -> bool | None:
    """True for a forward phase, False for a backward one, None for another."""
    phase = slot.phase.lower()
    return True if phase in FORWARD else False if phase in BACKWARD else None


def slots_of(tasks: Sequence[DistributedTask]) -> list[Slot]:
    """The forward and backward slots of a task list, in order."""
    found: list[Slot] = []
    for index, task in enumerate(tasks):
        if task.pipeline is None:
            continue
        forward = direction(task.pipeline)
        if forward is not None:
            item = task.pipeline
            found.append(Slot(index, item.stage, item.microbatch, item.chunk, forward))
    return found


def rank_orders(program: DistributedTaskIR, wanted: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Some tasks in the order in which each rank runs them; ranks that run none of them are left out.

    Ranks with equal orders of list-order programs are given once, by their first rank.
    """
    if not program.issue:
        yield from _list_orders(program, wanted)
        return
    position = {task.id: index for index, task in enumerate(program.tasks)}
    chosen = set(wanted)
    listed: set[int] = set()
    for issue in program.issue:
        if issue.rank in listed:
            continue
        listed.add(issue.rank)
        order = [position[item] for step in issue.steps for item in step if position.get(item, -1) in chosen]
        if order:
            yield issue.rank, order
    for rank, order in _list_orders(program, wanted):
        if rank not in listed:
            yield rank, order


def _list_orders(program: DistributedTaskIR, wanted: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    classes: dict[object, tuple[Sequence[int], list[int]]] = {}
    for index in wanted:
        ranks = program.tasks[index].ranks
        key = ranks if len(ranks) <= 64 else id(ranks)
        classes.setdefault(key, (ranks, []))[1].append(index)
    if len(classes) == 1:
        ranks, order = next(iter(classes.values()))
        if ranks:
            yield ranks[0], order
        return
    orders: dict[int, list[int]] = {}
    for index in wanted:
        for rank in program.tasks[index].ranks[:65_536]:
            orders.setdefault(rank, []).append(index)
    seen: set[tuple[int, ...]] = set()
    for rank in sorted(orders):
        order = tuple(orders[rank])
        if order not in seen:
            seen.add(order)
            yield rank, orders[rank]


def warmup(*, stages: int, microbatches: int, stage: int, chunks: int = 1) -> int:
    """Forwards that a stage runs before its steady state (SEMANTICS 3.6): 1F1B, or interleaved with several chunks a rank."""
    if chunks <= 1:
        return min(microbatches, stages - stage - 1)
    return min(microbatches * chunks, (stages - stage - 1) * 2 + (chunks - 1) * stages)


def most_inflight(*, stages: int, microbatches: int, stage: int, chunks: int = 1) -> int:
    """Microbatches (chunks of them) that a stage holds at most (SEMANTICS 3.6)."""
    if chunks <= 1:
        return min(microbatches, stages - stage)
    return min(chunks * microbatches, 2 * (stages - stage - 1) + (chunks - 1) * stages + 1)
