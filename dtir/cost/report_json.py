"""A report as plain data: what `dtir cost --format json` prints.

| key | what it is |
|---|---|
| `planned` | always true: no number here was measured on this program |
| `program`, `profile` | names; the machine with its standing, source and date |
| `makespan_s` | from the first start to the last end; a lower bound when `complete` is false |
| `complete` | false when some task has no known time: it then counts nothing, and `notes` says how many there are |
| `bounds` | `longest_path_s` (dependencies alone), `busiest_compute_s`, `busiest_communication_s` |
| `exposed_communication_s` | makespan minus busy compute of the critical rank (SEMANTICS 3.5); `ranks` splits it |
| `bubble_fraction` | part of the ranks' time in which they neither compute nor send, 0 to 1 |
| `ranks` | one entry for ranks that do the same, see `rank_tree` |
| `tasks` | every task that runs: `seconds` of one execution (null: not known, see `reason`), `executions` (null: the data decide), ... |
| `collectives` | every communication task, see `collective_tree` |
| `critical_path` | `task`, `name`, `kind`, `rank`, `start_s`, `seconds`, `times` (executions it stands for), `because` |
| `memory` | peak of the fullest rank: `peak_bytes`, `rank`, `task`, `region`, `limit_bytes`, `largest`, `stated` |
| `bytes_by_axis`, `bytes_by_level` | bytes of all ranks by mesh axis; bytes of one rank by level of the machine |
| `pipeline` | of programs with pipeline slots: `stages`, `microbatches`, `chunks`, `bubble_over_ideal`, `in_flight` |
| `notes` | what the numbers leave open, each with how often |
"""

from __future__ import annotations

from typing import Any

from dtir.analysis.schedules import slots_of
from dtir.cost.bounds import bus_factor
from dtir.cost.critical import Exposure, Step, longest_path_s
from dtir.cost.exchange import Exchange
from dtir.cost.report import Report
from dtir.cost.spans import Stream
from dtir.ir.collectives import CollectiveKind
from dtir.ir.tasks import DistributedTask
from dtir.ir.transformer import TransformerInferenceProgramSemantic, TransformerTrainingProgramSemantic

MOST_RANKS_LISTED = 1024
"""Ranks of a class that are written out; larger classes are counted, and their first rank is named."""


def tree(report: Report) -> dict[str, Any]:
    """A report as plain data; see the module for the keys."""
    made = report.made
    profile = made.profile
    return {
        "planned": True,
        "program": {"name": made.program.name, "ranks": made.program.mesh.size},
        "profile": {
            "id": profile.id,
            "summary": profile.summary,
            "standing": profile.source.standing.value,
            "source": profile.source.text,
            "date": profile.source.date,
        },
        "makespan_s": made.makespan_s,
        "complete": report.unknown == 0,
        "bounds": {
            "longest_path_s": longest_path_s(made),
            "busiest_compute_s": max((mine.compute_s for mine in report.times), default=0.0),
            "busiest_communication_s": max((mine.communication_s for mine in report.times), default=0.0),
        },
        "exposed_communication_s": report.exposed_communication_s,
        "bubble_fraction": report.bubble_fraction,
        "ranks": [rank_tree(report, one) for one in range(made.classes.count)],
        "tasks": _task_trees(report),
        "collectives": [collective_tree(report, number) for number in made.exchanges],
        "critical_path": [step_tree(report, step) for step in report.path],
        "memory": memory_tree(report),
        "bytes_by_axis": {
            name: {"total_bytes": item.total_bytes, "executions": item.messages, "seconds": item.seconds}
            for name, item in report.traffic.items()
        },
        "bytes_by_level": dict(report.levels),
        **({"pipeline": found} if (found := pipeline_tree(report)) is not None else {}),
        "notes": list(report.notes),
    }


def rank_tree(report: Report, one: int) -> dict[str, Any]:
    """The entry of one class of ranks."""
    classes, mine = report.made.classes, report.times[one]
    count = classes.sizes()[one]
    ranks = list(classes.ranks_of(one)) if count <= MOST_RANKS_LISTED else None
    return {
        "rank": classes.first_ranks()[one],
        "ranks": ranks,
        "count": count,
        "compute_s": mine.compute_s,
        "communication_s": mine.communication_s,
        "exposed_s": mine.exposed_s,
        "waiting_s": mine.waiting_s,
        "idle_s": mine.idle_s,
        "end_s": mine.end_s,
        "peak_bytes": report.peaks[one].peak_bytes,
    }


def _task_trees(report: Report) -> list[dict[str, Any]]:
    made = report.made
    first: dict[int, tuple[float, float]] = {}
    totals: dict[int, float] = {}
    for place in range(len(made.spans)):
        number = made.spans.task[place]
        begin, end = made.spans.start[place], made.spans.end[place]
        first.setdefault(number, (begin, end))
        if made.spans.stream[place] == Stream.BOTH:
            first[number] = (first[number][0], max(first[number][1], end))
    for number, exchange in made.exchanges.items():
        totals[number] = (exchange.price.seconds or 0.0) * report.counted.get(number, 0)
    for number, plan in made.locals.items():
        seconds = max(plan.by_class) if plan.by_class else plan.timed.seconds or 0.0
        totals[number] = seconds * report.counted.get(number, 0)
    return [
        _task_tree(report, number, index.name, task, first.get(number), totals.get(number))
        for number, index, task in made.numbered()
    ]


def _task_tree(
    report: Report,
    number: int,
    region: str,
    task: DistributedTask,
    span: tuple[float, float] | None,
    total: float | None,
) -> dict[str, Any]:
    made = report.made
    plan, exchange = made.locals.get(number), made.exchanges.get(number)
    seconds: float | None = None
    fields: dict[str, Any] = {"bound": None, "flops": None, "moved_bytes": None, "model": None, "reason": None}
    if plan is not None:
        seconds = max(plan.by_class) if plan.by_class else plan.timed.seconds
        known = plan.timed.seconds is not None
        fields = {
            "bound": plan.timed.bound or None,
            "flops": plan.work.flops if known else None,
            "moved_bytes": plan.work.moved_bytes,
            "model": f"roofline: {plan.work.source}" if known and plan.work.source != "given" else plan.work.source,
            "reason": plan.timed.reason or None,
        }
    elif exchange is not None:
        price = exchange.price
        seconds = price.seconds
        fields |= {"model": price.model, "reason": "; ".join(price.notes) if price.seconds is None else None}
    return {
        "id": str(task.id),
        "name": task.name,
        "region": region or None,
        "kind": task.body_tag,
        "operation": str(task.operation),
        "seconds": seconds,
        "executions": report.executions[number],
        "counted": report.counted.get(number, 0),
        "total_s": total,
        "start_s": span[0] if span else None,
        "end_s": span[1] if span else None,
        **fields,
    }


def bandwidths(exchange: Exchange) -> tuple[float | None, float | None]:
    """algbw and busbw in bytes a second, as nccl-tests defines them; None where no time is known, or nothing is sent."""
    seconds, size = exchange.price.seconds, exchange.size_bytes
    if not seconds or not size:
        return None, None
    kinds = {kind.value: kind for kind in CollectiveKind}
    kind = kinds.get(exchange.kind, CollectiveKind.COLLECTIVE_PERMUTE)
    algorithm = float(size) / seconds
    return algorithm, algorithm * bus_factor(kind, exchange.group_size or 1) if exchange.group_size else None


def collective_tree(report: Report, number: int) -> dict[str, Any]:
    """The entry of one communication task."""
    exchange, exposure = report.made.exchanges[number], report.exposures.get(number, Exposure())
    price = exchange.price
    algorithm, bus = bandwidths(exchange)
    return {
        "id": str(exchange.task.id),
        "name": exchange.task.name,
        "kind": exchange.kind,
        "groups": len(exchange.groups),
        "group_size": exchange.group_size,
        "message_bytes": exchange.size_bytes,
        "dtype": exchange.dtype,
        "axes": list(report.axes[number]),
        "algorithm": price.algorithm or None,
        "model": price.model,
        "level": price.level or None,
        "seconds": price.seconds,
        "executions": report.executions[number],
        "counted": report.counted.get(number, 0),
        "total_s": (price.seconds or 0.0) * report.counted.get(number, 0),
        "exposed_s": exposure.exposed_s,
        "waiting_s": exposure.waiting_s,
        "last_rank": exposure.last,
        "algbw_bytes_per_s": algorithm,
        "busbw_bytes_per_s": bus,
        "total_bytes": exchange.total_bytes,
        "noise": price.noise,
        "notes": list(price.notes),
    }


def step_tree(report: Report, step: Step) -> dict[str, Any]:
    """The entry of one step of the critical path."""
    task = task_of(report, step.task)
    return {
        "task": str(task.id),
        "name": task.name,
        "kind": task.body_tag,
        "rank": report.made.classes.first_ranks()[step.classes[0]],
        "start_s": step.start_s,
        "seconds": step.seconds,
        "times": step.times,
        "because": step.because,
    }


def task_of(report: Report, number: int) -> DistributedTask:
    """A task by number."""
    for index in report.made.indexes:
        if index.base <= number < index.base + len(index.tasks):
            return index.tasks[number - index.base]
    raise KeyError(number)


def memory_tree(report: Report) -> dict[str, Any]:
    """Where the most memory is used."""
    if not report.peaks:
        return {"peak_bytes": None}
    one = max(range(len(report.peaks)), key=lambda number: report.peaks[number].peak_bytes)
    peak = report.peaks[one]
    return {
        "peak_bytes": peak.peak_bytes,
        "rank": report.made.classes.first_ranks()[one],
        "task": peak.task or None,
        "region": peak.region or None,
        "input_bytes": peak.input_bytes,
        "limit_bytes": report.made.profile.rates.memory_bytes,
        "live_values": peak.live_values,
        "largest": [
            {"value": item.name, "bytes": item.size_bytes, "region": item.region or None} for item in peak.largest
        ],
        "stated": stated_memory(report),
    }


def stated_memory(report: Report) -> dict[str, int] | None:
    """Bytes that the program itself states for one block on one rank; None where it states none."""
    match report.made.program.semantic:
        case (
            TransformerTrainingProgramSemantic(block_memory=facts)
            | TransformerInferenceProgramSemantic(block_memory=facts)
        ):
            return {name: getattr(facts, name) for name in type(facts).__dataclass_fields__}
        case _:
            return None


def pipeline_tree(report: Report) -> dict[str, Any] | None:
    """What the slots of a pipeline come to; None for a program without any."""
    made = report.made
    slots = slots_of(made.program.tasks)
    if not slots:
        return None
    busiest = max((mine.compute_s for mine in report.times), default=0.0)
    live: dict[int, set[tuple[int, int, int]]] = {}
    most: dict[int, int] = {}
    by_task = {slot.task: slot for slot in slots}
    for place in made.indexes[0].order:
        slot = by_task.get(place)
        if slot is None:
            continue
        mine = live.setdefault(slot.stage, set())
        if slot.forward:
            mine.add(slot.key)
        else:
            mine.discard(slot.key)
        most[slot.stage] = max(most.get(slot.stage, 0), len(mine))
    return {
        "stages": len({slot.stage for slot in slots}),
        "microbatches": len({slot.microbatch for slot in slots}),
        "chunks": 1 + max(slot.chunk for slot in slots),
        "bubble_over_ideal": made.makespan_s / busiest - 1 if busiest else None,
        "in_flight": [most[stage] for stage in sorted(most)],
    }
