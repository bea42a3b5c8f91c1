"""Where two forms of one program part: the first value that has no equal on the other side.

Instructions belong together when they have one origin: the operation's name and the source line that a compiler notes with
each of them. A pass may make several instructions of one; a value is right when one of its counterparts holds the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dtir.analysis.executions import entered
from dtir.check.agreement import Agreement, blocks_of, parts_alike, parts_of_whole, possible_blocks
from dtir.check.runs import Kept, Ran
from dtir.execute.dtypes import Array
from dtir.execute.steps import ExecPlan, StepKind
from dtir.execute.values import Held, rows
from dtir.ir.ids import RegionId
from dtir.ir.tasks import DistributedTask

MOST_READINGS = 200
"""Ways to read rank numbers as blocks that are tried for a value whose layout is not stated."""

Origin = tuple[str, str]
Value = tuple[RegionId | None, int]
"""A value: its region (None for the program itself) and its slot there."""


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction, as people find it.

    Args:
        id: display id of the task.
        name: its name in the source program.
        operation: ``hlo.dynamic-slice``, ...
        op_name: the framework's name of the operation; empty when the program does not say.
        source: ``file:line`` it comes from; empty when the program does not say.
    """

    id: str
    name: str
    operation: str
    op_name: str
    source: str


@dataclass(frozen=True, slots=True)
class Parting:
    """The first value that differs.

    Args:
        before: the instruction of the first program.
        after: the instruction of the second that comes nearest.
        agreement: how far the two are apart.
        compared: values of the first program that have a counterpart and were compared, up to this one.
        outputs_only: no value before the outputs is known to differ, so that the outputs themselves are named.
    """

    before: Place
    after: Place
    agreement: Agreement
    compared: int
    outputs_only: bool = False


def place_of(task: DistributedTask) -> Place:
    """Name, operation and origin of a task."""
    return Place(str(task.id), task.name or str(task.id), str(task.operation), *origin_of(task))


def origin_of(task: DistributedTask) -> Origin:
    """Operation name and source line, empty where the program does not say."""
    name, source = task.attributes.get("op_name"), task.attributes.get("source")
    return name if isinstance(name, str) else "", source if isinstance(source, str) else ""


def find_parting(before: Ran, after: Ran, wrong: Collection[int]) -> Parting | None:
    """The first value of the first program, in the order of execution, that no counterpart holds and that a wrong output comes from.

    A pass may do without a value, or hold it in another form, without being wrong: then what is computed from it agrees again.
    So only values count from which a way leads to a wrong output without passing one that agrees.

    Args:
        wrong: slots of the first program's own list that are outputs and differ.

    Returns:
        None when no such value can be compared.
    """
    counterparts: dict[Origin, list[Kept]] = defaultdict(list)
    for kept in after.kept:
        counterparts[origin_of(kept.step.task)].append(kept)
    verdicts: dict[Value, tuple[Kept, Kept, Agreement]] = {}
    for kept in before.kept:
        origin = origin_of(kept.step.task)
        found = _verdict(before, kept, after, counterparts.get(origin, ())) if any(origin) else None
        if found is not None:
            verdicts[kept.scope.region, kept.number] = (kept, *found)
    main = before.plan.main
    suspects = _behind(before.plan, [(main.region, slot) for slot in wrong], verdicts)
    for number, (value, (kept, other, agreement)) in enumerate(verdicts.items(), 1):
        if value in suspects and not agreement.equal:
            # What holds another value of the first program is not what became of this one.
            claimed = {id(one) for _, one, agreed in verdicts.values() if agreed.equal}
            free = [one for one in counterparts[origin_of(kept.step.task)] if id(one) not in claimed]
            nearest = _verdict(before, kept, after, free)
            if nearest is not None:
                other, agreement = nearest
            return Parting(place_of(kept.step.task), place_of(other.step.task), agreement, number)
    return None


def _behind(
    plan: ExecPlan, wrong: Sequence[Value], verdicts: Mapping[Value, tuple[Kept, Kept, Agreement]]
) -> set[Value]:
    """Values that wrong outputs come from, back to those that agree."""
    sources = _sources(plan)
    found: set[Value] = set()
    pending = list(wrong)
    while pending:
        value = pending.pop()
        if value in found or (value in verdicts and verdicts[value][2].equal and value not in wrong):
            continue
        found.add(value)
        pending.extend(sources.get(value, ()))
    return found


def _sources(plan: ExecPlan) -> dict[Value, list[Value]]:
    """What every value is made of, into and out of regions; around a loop too."""
    sources: dict[Value, list[Value]] = defaultdict(list)
    for scope in plan.scopes:
        for step in scope.steps:
            operands: list[Value] = [(scope.region, number) for number in step.inputs]
            results: list[Value] = [(scope.region, number) for number in step.outputs]
            inner = [plan.regions[region] for region, _ in entered(step.task.body) if region in plan.regions]
            if not inner:
                for result in results:
                    sources[result] += operands
            for region in inner:
                for place, number in enumerate(region.inputs):
                    if step.kind is StepKind.BRANCH:
                        sources[region.region, number] += operands[1:]
                    elif place < len(operands):
                        sources[region.region, number].append(operands[place])
                for result, number in zip(results, region.outputs, strict=False):
                    sources[result].append((region.region, number))
                if step.kind is StepKind.LOOP:
                    # What one trip makes the next one takes; what no trip changes comes from outside.
                    for number, made in zip(region.inputs, region.outputs, strict=False):
                        sources[region.region, number].append((region.region, made))
                    for result, operand in zip(results, operands, strict=False):
                        sources[result].append(operand)
    return sources


def _verdict(before: Ran, kept: Kept, after: Ran, candidates: Sequence[Kept]) -> tuple[Kept, Agreement] | None:
    """The counterpart that agrees, else the nearest; None when no counterpart can be compared."""
    found: list[tuple[Kept, Agreement]] = []
    for other in candidates:
        agreement = values_agree(before, kept, after, other)
        if agreement is None:
            continue
        if agreement.equal:
            return other, agreement
        found.append((other, agreement))
    if not found:
        return None
    same = [item for item in found if item[0].step.task.operation == kept.step.task.operation]
    return (same or found)[-1]


def values_agree(before: Ran, mine: Kept, after: Ran, other: Kept) -> Agreement | None:
    """Two values compared, whole or in parts; None when they cannot be."""
    if before.whole == after.whole:
        return parts_alike(other.held, mine.held)
    whole, parts = (mine, other) if before.whole else (other, mine)
    ranks = (after if before.whole else before).plan.ranks
    if len(parts.held.ranks) != ranks:
        return None  # made on some ranks only: the others took another branch
    return whole_and_parts(rows(whole.held)[0], parts.held, blocks_of(whole.slot.placement, ranks))


def whole_and_parts(
    whole: Array, parts: Held, stated: list[tuple[slice, ...]] | None, *, only_stated: bool = False
) -> Agreement | None:
    """An undivided array against what ranks hold: under a stated layout, else under any that fits.

    Returns:
        The agreement of the layout under which they agree best; None when no layout fits the shapes.
    """
    best: Agreement | None = None
    for blocks in _layouts(whole, parts, stated, only_stated=only_stated):
        agreement = parts_of_whole(parts, whole, blocks)
        if agreement is None:
            continue
        if agreement.equal:
            return agreement
        if best is None or agreement.wrong < best.wrong:
            best = agreement
    return best


def _layouts(
    whole: Array, parts: Held, stated: list[tuple[slice, ...]] | None, *, only_stated: bool
) -> Iterator[list[tuple[slice, ...]]]:
    first = rows(parts)[0]
    if stated is not None:
        yield stated
        if only_stated:
            return
    for number, blocks in enumerate(possible_blocks(first.shape, whole.shape, len(parts.ranks))):
        if number >= MOST_READINGS:
            return
        yield blocks
