"""Pipeline schedules (``pipeline.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtir.analysis.schedules import Slot, most_inflight, rank_orders, slots_of, warmup
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, listed, task_name

INTERLEAVED = "interleaved"


def _slots(context: Context) -> list[Slot]:
    return context.remember("slots", lambda: slots_of(context.program.tasks))


def _name(slot: Slot) -> str:
    chunk = f", chunk {slot.chunk}" if slot.chunk else ""
    return f"{'F' if slot.forward else 'B'}(stage {slot.stage}, microbatch {slot.microbatch}{chunk})"


def _ids(context: Context, *slots: Slot) -> tuple[str, ...]:
    return tuple(str(context.program.tasks[slot.task].id) for slot in slots)


def _path(slot: Slot) -> tuple[str, ...]:
    return ("tasks", str(slot.task), "pipeline")


def phases_in_order(context: Context) -> Iterator[Diagnostic]:
    """Order of phases.

    - no rank runs B(s, m) before F(s, m), F(s+1, m) before F(s, m), or B(s, m) before B(s+1, m);
    - dependencies do not say so either.
    """
    slots = _slots(context)
    if not slots:
        return
    by_task = {slot.task: slot for slot in slots}
    wrong: dict[tuple[int, int], tuple[Slot, Slot]] = {}
    for _, order in rank_orders(context.program, sorted(by_task)):
        for early, late in _reversed([by_task[index] for index in order]):
            wrong.setdefault((early.task, late.task), (early, late))
    pairs = [pair for pair in _wanted_pairs(slots) if (pair[1].task, pair[0].task) not in wrong]
    # Across ranks only an order that the program itself makes is wrong.
    for (first, second), known in zip(pairs, _ordered(context, pairs), strict=True):
        if known:
            wrong.setdefault((second.task, first.task), (second, first))
    for early, late in wrong.values():
        yield finding(
            "pipeline.order",
            f"{_name(early)} runs before {_name(late)}",
            _path(early),
            hint="follow F(s, m), F(s+1, m), B(s+1, m), B(s, m)",
            subject=_ids(context, early, late),
            related=(Related(f"runs later: {task_name(context.program.tasks[late.task])}", _path(late)),),
        )


def _reversed(order: Sequence[Slot]) -> Iterator[tuple[Slot, Slot]]:
    """Slots of one rank that stand before what must come first: (early, late)."""
    forward: dict[tuple[int, int, int], int] = {}
    backward: dict[tuple[int, int, int], int] = {}
    for place, slot in enumerate(order):
        known = forward if slot.forward else backward
        known.setdefault(slot.key, place)
    for stage, chunk, microbatch in forward:
        place = forward[stage, chunk, microbatch]
        own = backward.get((stage, chunk, microbatch))
        if own is not None and own < place:
            yield order[own], order[place]
        following = forward.get((stage + 1, chunk, microbatch))
        if following is not None and following < place:
            yield order[following], order[place]
    for stage, chunk, microbatch in backward:
        later = backward.get((stage + 1, chunk, microbatch))
        if later is not None and backward[stage, chunk, microbatch] < later:
            yield order[backward[stage, chunk, microbatch]], order[later]


def _wanted_pairs(slots: Sequence[Slot]) -> list[tuple[Slot, Slot]]:
    """(first, second) as the rule wants them."""
    forward = {slot.key: slot for slot in reversed(slots) if slot.forward}
    backward = {slot.key: slot for slot in slots if not slot.forward}
    pairs: list[tuple[Slot, Slot]] = []
    for (stage, chunk, microbatch), slot in forward.items():
        for other in (backward.get((stage, chunk, microbatch)), forward.get((stage + 1, chunk, microbatch))):
            if other is not None:
                pairs.append((slot, other))
    for (stage, chunk, microbatch), slot in backward.items():
        other = backward.get((stage + 1, chunk, microbatch))
        if other is not None:
            pairs.append((other, slot))
    return pairs


def _ordered(context: Context, pairs: Sequence[tuple[Slot, Slot]]) -> list[bool]:
    """Whether the second is made to happen before the first."""
    return context.order.ordered([(second.task, first.task) for first, second in pairs]) if pairs else []


def live_microbatches(context: Context) -> Iterator[Diagnostic]:
    """Live microbatches.

    - no rank has run more forwards than backwards by more than the program's limit ``inflight``, or than the schedule that
      it names allows.
    """
    slots = {slot.task: slot for slot in _slots(context)}
    if not slots or not any(not slot.forward for slot in slots.values()):
        return
    for rank, order in rank_orders(context.program, sorted(slots)):
        bound, why = _bound(context, rank, [slots[index] for index in order])
        if bound is None:
            continue
        live: set[tuple[int, int, int]] = set()
        most, at = 0, order[0]
        for index in order:
            slot = slots[index]
            if slot.forward:
                live.add(slot.key)
                if len(live) > most:
                    most, at = len(live), index
            else:
                live.discard(slot.key)
        if most > bound:
            yield finding(
                "pipeline.inflight",
                f"rank {rank} holds {most} microbatches after {task_name(context.program.tasks[at])}, {why} {bound}",
                _path(slots[at]),
                hint="start the backward of the oldest microbatch earlier",
                subject=(str(context.program.tasks[at].id), f"rank {rank}"),
            )


def _bound(context: Context, rank: int, slots: Sequence[Slot]) -> tuple[int | None, str]:
    for limit in context.program.limits:
        if limit.name == "inflight" and limit.rank in (None, rank):
            return limit.value, "the limit is"
    plan = _plan(context)
    if plan is None or not slots:
        return None, ""
    stages, microbatches, chunks = plan
    stage = _position(slots[0].stage, stages)
    bound = most_inflight(stages=stages, microbatches=microbatches, stage=stage, chunks=chunks)
    return bound, "the schedule allows"


def _plan(context: Context) -> tuple[int, int, int] | None:
    """Stages (ranks in the pipeline), microbatches and chunks a rank of the schedule that the program names; None when it names none."""
    schedule = context.program.attributes.get("schedule")
    slots = _slots(context)
    if not slots or not isinstance(schedule, str) or schedule.lower() not in ("1f1b", INTERLEAVED):
        return None
    stages = len({slot.stage for slot in slots})
    microbatches = len({slot.microbatch for slot in slots})
    chunks = 1 + max(slot.chunk for slot in slots)
    if schedule.lower() == INTERLEAVED and chunks == 1:
        positions = _pipeline_positions(context)
        if positions and stages % positions == 0:
            return positions, microbatches, stages // positions
    return stages, microbatches, chunks


def _position(stage: int, stages: int) -> int:
    return stage % stages


def _pipeline_positions(context: Context) -> int:
    """How many different rank sets run the stages."""
    return len({frozenset(context.program.tasks[slot.task].ranks) for slot in _slots(context)})


def every_backward(context: Context) -> Iterator[Diagnostic]:
    """Microbatches.

    - where there are backwards at all, every forward has one, and every backward a forward.
    """
    slots = _slots(context)
    forward = {slot.key: slot for slot in slots if slot.forward}
    backward = {slot.key: slot for slot in slots if not slot.forward}
    if not backward or not forward:
        return
    for key, slot in forward.items():
        if key not in backward:
            yield _lost(context, slot, "backward")
    for key, slot in backward.items():
        if key not in forward:
            yield _lost(context, slot, "forward")


def _lost(context: Context, slot: Slot, other: str) -> Diagnostic:
    return finding(
        "pipeline.microbatch_lost",
        f"{_name(slot)} has no {other}",
        _path(slot),
        hint=f"add the {other} of microbatch {slot.microbatch} on stage {slot.stage}",
        subject=_ids(context, slot),
    )


def stages_placed(context: Context) -> Iterator[Diagnostic]:
    """Stages.

    - a stage (and chunk) runs on the same ranks for every microbatch; stages are numbered without gaps;
    - a layer that tasks name belongs to one stage;
    - of more stages than ranks of the pipeline, stage k runs on rank k mod p.
    """
    slots = _slots(context)
    places: dict[tuple[int, int], tuple[Slot, frozenset[int]]] = {}
    moved: set[tuple[int, int]] = set()
    for slot in slots:
        ranks = frozenset(context.program.tasks[slot.task].ranks)
        first, known = places.setdefault((slot.stage, slot.chunk), (slot, ranks))
        if ranks != known and (slot.stage, slot.chunk) not in moved:
            moved.add((slot.stage, slot.chunk))
            yield _misplaced(
                context, slot, first,
                f"stage {slot.stage} runs on ranks {listed(sorted(ranks))} for microbatch "
                f"{slot.microbatch} and on ranks {listed(sorted(known))} for microbatch {first.microbatch}",
                "give every stage one set of ranks",
            )  # fmt: skip
    stages = sorted({slot.stage for slot in slots})
    if stages and stages != list(range(stages[-1] + 1)):
        absent = [stage for stage in range(min(stages[-1], 100_000)) if stage not in set(stages)]
        yield _misplaced(
            context, next(slot for slot in slots if slot.stage == stages[-1]), None,
            f"stages {listed(stages)} run, but nothing runs as stage {listed(absent, 4)}", "number the stages from 0 without gaps",
        )  # fmt: skip
    elif not moved:
        yield from _interleaved(context, slots, places)
    yield from _layers(context)


def _interleaved(
    context: Context, slots: Sequence[Slot], places: dict[tuple[int, int], tuple[Slot, frozenset[int]]]
) -> Iterator[Diagnostic]:
    """Chunk k on rank k mod p, where a rank runs several stages."""
    del slots
    order: list[frozenset[int]] = []
    for _, (slot, ranks) in sorted(places.items(), key=lambda item: (item[0][1], item[0][0])):
        if ranks not in order:
            order.append(ranks)
        del slot
    count = len(order)
    if len(places) <= count or count < 2:
        return
    for number, ((_, _), (slot, ranks)) in enumerate(sorted(places.items(), key=lambda item: (item[0][1], item[0][0]))):
        if ranks != order[number % count]:
            yield _misplaced(
                context, slot, None,
                f"chunk {number} runs on ranks {listed(sorted(ranks))}, with {count} ranks in the "
                f"pipeline it belongs to those of chunk {number % count}: "
                f"{listed(sorted(order[number % count]))}",
                "place chunk k on rank k mod p",
            )  # fmt: skip
            return


def _layers(context: Context) -> Iterator[Diagnostic]:
    seen: dict[object, Slot] = {}
    reported: set[object] = set()
    for slot in _slots(context):
        layer = context.program.tasks[slot.task].attributes.get("op.layer")
        if layer is None or isinstance(layer, bool) or not isinstance(layer, (int, str)):
            continue
        first = seen.setdefault(layer, slot)
        if first.stage != slot.stage and layer not in reported:
            reported.add(layer)
            yield _misplaced(
                context, slot, first, f"layer {layer} belongs to stage {first.stage} and to stage {slot.stage}",
                "check the list of cuts: one stage a layer",
            )  # fmt: skip


def _misplaced(context: Context, slot: Slot, other: Slot | None, message: str, hint: str) -> Diagnostic:
    related = (Related(f"first seen in {task_name(context.program.tasks[other.task])}", _path(other)),) if other else ()
    return finding(
        "pipeline.stage_map", message, _path(slot), hint=hint,
        subject=_ids(context, *([slot, other] if other else [slot])), related=related,
    )  # fmt: skip


def warmup_length(context: Context) -> Iterator[Diagnostic]:
    """Warm-up.

    - a rank of a program that names its schedule (attribute ``schedule: 1f1b`` or ``interleaved``), or states ``warmup`` as
      a limit, runs as many forwards before its steady state as that wants.
    """
    slots = {slot.task: slot for slot in _slots(context)}
    plan = _plan(context)
    if not slots or not any(not slot.forward for slot in slots.values()):
        return
    for rank, order in rank_orders(context.program, sorted(slots)):
        own = [slots[index] for index in order]
        total = sum(slot.forward for slot in own)
        wanted = _wanted_warmup(context, rank, own, plan)
        before = next((place for place, slot in enumerate(own) if not slot.forward), len(own))
        if wanted is None or before == len(own):
            continue
        # The steady state begins with a forward, unless the warm-up has used all of them up.
        expected = min(wanted + 1, total)
        if before != expected:
            first = own[before]
            yield finding(
                "pipeline.warmup",
                f"rank {rank} runs {before} forwards before {_name(first)}, its schedule wants {expected} "
                f"({wanted} of warm-up)",
                _path(first),
                hint=f"warm up with min(m, p - r - 1) = {wanted} forwards"
                if plan is None or plan[2] == 1
                else f"warm up with {wanted} forwards, and let p divide m",
                subject=(str(context.program.tasks[first.task].id), f"rank {rank}"),
            )


def _wanted_warmup(context: Context, rank: int, own: Sequence[Slot], plan: tuple[int, int, int] | None) -> int | None:
    for limit in context.program.limits:
        if limit.name == "warmup" and limit.rank in (None, rank):
            return limit.value
    if plan is None:
        return None
    stages, microbatches, chunks = plan
    return warmup(stages=stages, microbatches=microbatches, stage=_position(own[0].stage, stages), chunks=chunks)


RULES = (phases_in_order, live_microbatches, every_backward, stages_placed, warmup_length)
