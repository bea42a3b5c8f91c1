"""How long values of a scope take memory: which share one, which take the place of another, and where the last use is.

The peak of `dtir.cost.memory` and the curve of the explorer follow the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtir.cost.hlo_work import ALIASES, IN_PLACE
from dtir.cost.index import ScopeIndex, communicates
from dtir.cost.task_work import HLO, is_fusion
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Call, Control, Loop


def lives(index: ScopeIndex, order: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """For every value the one whose memory it is; for every such one the position of its last use (outputs have none)."""
    roots: dict[int, int] = {value: value for value in range(len(index.scope.values))}
    last: dict[int, int] = {}
    started = {index.tasks[place].id: place for place in order if communicates(index.tasks[place])}
    for position, place in enumerate(order):
        task = index.tasks[place]
        source = _alias(index, place)
        if source is not None and len(index.writes[place]) == 1:
            roots[index.writes[place][0]] = roots[source]
        elif isinstance(task.body, Control) and len(index.writes[place]) == len(index.reads[place]):
            for result, operand in zip(index.writes[place], index.reads[place], strict=True):
                roots[result] = roots[operand]
        for value in (*index.reads[place], *index.writes[place]):
            last[roots[value]] = position
        for item in task.completes:
            if item in started:
                for value in index.reads[started[item]]:
                    last[roots[value]] = position
    for value in index.outputs:
        last.pop(roots[value], None)
    for value in index.inputs:
        if roots[value] not in last and value not in index.outputs:
            last.setdefault(roots[value], len(order))
    return roots, last


def _alias(index: ScopeIndex, place: int) -> int | None:
    task = index.tasks[place]
    if task.operation.dialect == HLO and task.operation.name in ALIASES and index.reads[place]:
        return index.reads[place][task.operands[0] if task.operands else 0]
    return None


def reused(
    program: DistributedTaskIR,
    index: ScopeIndex,
    place: int,
    dying: Sequence[int],
    roots: Mapping[int, int],
    sizes: Mapping[int, float],
) -> float:
    """Bytes of operands whose place results take: what a loop carries, an update of what nobody reads any more."""
    task = index.tasks[place]
    if isinstance(task.body, Loop):
        return min(sum(sizes[value] for value in dying), sum(sizes[roots[value]] for value in index.writes[place]))
    if task.operation.dialect != HLO or not index.writes[place] or not index.reads[place]:
        return 0
    if task.operation.name not in IN_PLACE and not (is_fusion(task) and _updates(program, task.body)):
        return 0
    gone = set(dying)
    for result in index.writes[place]:
        for operand in index.reads[place]:
            if roots[operand] in gone and sizes[roots[operand]] == sizes[roots[result]] > 0:
                return sizes[roots[result]]
    return 0


def _updates(program: DistributedTaskIR, body: object) -> bool:
    """Whether the last operation of a fusion updates in place."""
    if not isinstance(body, Call):
        return False
    for region in program.regions:
        if region.id == body.region:
            return any(task.operation.name in IN_PLACE for task in region.tasks[-2:])
    return False
