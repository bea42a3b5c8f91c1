"""Transfers and permutes (``p2p.*``; that a transfer's ends are the task's ranks is checked with the structure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dtir.analysis.blocks import box_of
from dtir.analysis.flow import Flow
from dtir.analysis.states import State, declared_state
from dtir.analysis.volume import counted
from dtir.ir.collectives import CollectivePermute
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from dtir.verify.context import Context, finding, listed, task_name, task_path, value_name
from dtir.verify.layout_words import related_values, subjects
from dtir.verify.sizes import transfer_bytes

Pairs = Sequence[tuple[int, int]]


def pairs_of(task: DistributedTask) -> Pairs | None:
    """(source, destination) of every transfer of a task; None when it is none."""
    match task.body:
        case PointToPoint(spec=spec):
            return ((spec.source_rank, spec.destination_rank),)
        case Collective(spec=CollectivePermute(pairs=pairs)):
            return pairs
        case _:
            return None


def _transfers(context: Context) -> Sequence[tuple[Flow, int, DistributedTask, Pairs]]:
    return context.remember("transfers", lambda: list(_find_transfers(context)))


def _find_transfers(context: Context) -> Iterator[tuple[Flow, int, DistributedTask, Pairs]]:
    for flow in context.flows:
        for index, task in enumerate(flow.scope.tasks):
            pairs = pairs_of(task)
            if pairs is not None:
                yield flow, index, task, pairs


def one_to_one(context: Context) -> Iterator[Diagnostic]:
    """Pairs of a permute.

    - no rank sends twice, none receives twice.
    """
    for flow, index, task, pairs in _transfers(context):
        repeated = _repeated(pairs)
        if repeated is not None:
            what, rank, count = repeated
            yield finding(
                "p2p.pairs",
                f"{task_name(task)}: rank {rank} {what} {count} times",
                task_path(flow, index, "body", "pairs"),
                hint="give every destination one pair and every source one; split several into several tasks",
                subject=subjects(task, [], [f"rank {rank}"]),
            )


def _repeated(pairs: Pairs) -> tuple[str, int, int] | None:
    for what, place in (("receives", 1), ("sends", 0)):
        if len({pair[place] for pair in pairs}) != len(pairs):
            rank, count = Counter(pair[place] for pair in pairs).most_common(1)[0]
            return what, rank, count
    return None


def peers_own(context: Context) -> Iterator[Diagnostic]:
    """Ends of a transfer.

    - the source owns the operand, the destination the result;
    - the block that the source sends is the one that the destination owns, where the result is not per rank.
    """
    for flow, index, task, pairs in _transfers(context):
        fault = _wrong_peer(context, flow, task, pairs)
        if fault is not None:
            message, hint, value = fault
            yield finding(
                "p2p.wrong_peer", f"{task_name(task)}: {message}", task_path(flow, index, "body"), hint=hint,
                subject=subjects(task, [value], []), related=related_values(flow, ("owners of", value)),
            )  # fmt: skip


def _ends(flow: Flow, task: DistributedTask) -> tuple[DistributedValue, DistributedValue] | None:
    if len(task.inputs) != 1 or len(task.outputs) != 1:
        return None
    return flow.scope.values[flow.position[task.inputs[0]]], flow.scope.values[flow.position[task.outputs[0]]]


def _wrong_peer(
    context: Context, flow: Flow, task: DistributedTask, pairs: Pairs
) -> tuple[str, str, DistributedValue] | None:
    ends = _ends(flow, task)
    if ends is None:
        return None
    source, target = ends
    senders, receivers = rank_set(source.owners), rank_set(target.owners)
    for sender, receiver in pairs:
        if sender not in senders:
            owners = listed(source.owners[:9])
            return (
                f"rank {sender} sends {value_name(source)}, which ranks {owners} own",
                f"send from one of {owners}",
                source,
            )
        if receiver not in receivers:
            owners = listed(target.owners[:9])
            return (
                f"rank {receiver} receives {value_name(target)}, which ranks {owners} own",
                f"send to {owners}, or add rank {receiver} to its owners",
                target,
            )
    return _wrong_block(context, flow, task, pairs, source, target)


def _wrong_block(
    context: Context,
    flow: Flow,
    task: DistributedTask,
    pairs: Pairs,
    source: DistributedValue,
    target: DistributedValue,
) -> tuple[str, str, DistributedValue] | None:
    space = context.around.space
    before, after = declared_state(source.sharding, space), declared_state(target.sharding, space)
    if before.varying or after.varying or source.type.shape != target.type.shape or _broken(flow, task):
        return None
    extents = [context.around.number(extent) for extent in source.type.shape]
    shape = tuple(extent for extent in extents if extent is not None)
    if len(shape) != len(extents) or (not before.split and not after.split):
        return None
    for sender, receiver in pairs:
        try:
            sent, owned = box_of(shape, before, space, sender), box_of(shape, after, space, receiver)
        except ValueError:
            return None
        if sent != owned:
            message = (
                f"rank {sender} sends block {_block(sent)} of {value_name(source)}, but rank {receiver} owns "
                f"block {_block(owned)} of {value_name(target)}"
            )
            better = _owner_of(sent, shape, after, target, context)
            hint = (
                f"send it to rank {better}"
                if better is not None
                else f"pair ranks that own the same block, or declare {value_name(target)} per rank (varying)"
            )
            return message, hint, target
    return None


def _broken(flow: Flow, task: DistributedTask) -> bool:
    values = (flow.values.get(item) for item in (*task.inputs, *task.outputs))
    return any(value is None or not value.sized for value in values)


def _owner_of(
    box: tuple[tuple[int, int], ...], shape: tuple[int, ...], state: State, value: DistributedValue, context: Context
) -> int | None:
    for rank in value.owners[:1024]:
        if box_of(shape, state, context.around.space, rank) == box:
            return rank
    return None


def _block(box: tuple[tuple[int, int], ...]) -> str:
    return "[" + ", ".join(f"{start}:{stop}" for start, stop in box) + "]"


def owners_filled(context: Context) -> Iterator[Diagnostic]:
    """Owners of what arrives.

    - every owner of the result is a destination, or keeps the copy that it has of the operand. Not judged in infer mode,
      where a permute of a dump gives zeros to ranks that are no destination.
    """
    if context.mode == "infer":
        return
    for flow, index, task, pairs in _transfers(context):
        ends = _ends(flow, task)
        if ends is None or _wrong_peer(context, flow, task, pairs) is not None or _repeated(pairs) is not None:
            continue
        source, target = ends
        filled = {receiver for _, receiver in pairs}
        empty = [rank for rank in target.owners if rank not in filled] if len(target.owners) > len(filled) else []
        if empty and _keeps(context, source, target):
            empty = [rank for rank in empty if rank not in rank_set(source.owners)]
        if empty:
            yield finding(
                "p2p.unfilled",
                f"{task_name(task)}: ranks {listed(empty)} own {value_name(target)} and receive nothing",
                task_path(flow, index, "body"),
                hint=f"add a pair for rank {empty[0]} (close the permutation), or take it from the owners of "
                f"{value_name(target)}",
                subject=subjects(task, [target], []),
                related=related_values(flow, ("owners of", target)),
            )


def _keeps(context: Context, source: DistributedValue, target: DistributedValue) -> bool:
    """True when what a rank has of the operand is what it owns of the result: one tensor, in one layout."""
    space = context.around.space
    before, after = declared_state(source.sharding, space), declared_state(target.sharding, space)
    # What is per rank moves on: a rank that gets nothing has nothing, not what it had.
    return source.type.shape == target.type.shape and before.dims == after.dims and not after.varying


def sizes_agree(context: Context) -> Iterator[Diagnostic]:
    """Sizes of a transfer.

    - operand and result have one type;
    - the stated bytes are those of what the source holds (in infer mode a warning, unless each end is one rank's value).
    """
    for flow, index, task, _ in _transfers(context):
        ends = _ends(flow, task)
        if ends is None:
            continue
        source, target = ends
        if source.type.dtype != target.type.dtype:
            message = f"sends {source.type.dtype}, receives {target.type.dtype}"
            hint = "derive both sides from one value; cast in a local task"
        elif not _same_shape(context, source, target):
            message = f"sends {list(source.type.shape)}, receives {list(target.type.shape)}"
            hint = "derive both sides from one value"
        else:
            size, formula = transfer_bytes(context, flow, task)
            body = task.body
            assert isinstance(body, (PointToPoint, Collective))
            stated = counted(body.spec.message_bytes, context.program.bindings)
            if size is None or stated is None or stated == size:
                continue
            message = f"states {stated} bytes, {value_name(source)} has {size} on its source: {formula}"
            hint = f"write bytes: {size}"
        yield finding(
            "p2p.bytes", f"{task_name(task)} {message}", task_path(flow, index, "body"), hint=hint,
            subject=subjects(task, [source, target], []), related=related_values(flow, ("sent", source), ("received", target)),
            severity=Severity.WARNING if context.mode == "infer" and not _confined(source, target) else None,
        )  # fmt: skip


def _confined(source: DistributedValue, target: DistributedValue) -> bool:
    """True when both ends are declared to be values of one rank each: then their types are all there is to know."""
    return bool(source.sharding.at and target.sharding.at)


def _same_shape(context: Context, source: DistributedValue, target: DistributedValue) -> bool:
    """One global shape; where one side is per rank, its own shapes say what it holds and only sizes could be compared."""
    space = context.around.space
    if declared_state(source.sharding, space).varying or declared_state(target.sharding, space).varying:
        return True
    return source.type.shape == target.type.shape


def channels(context: Context) -> Iterator[Diagnostic]:
    """Channels.

    - transfers with one source, destination and channel are ordered among each other.
    """
    flow = context.flows[0]
    last: dict[tuple[int, int, str], int] = {}
    pairs: list[tuple[int, int]] = []
    keys: list[tuple[int, int, str]] = []
    for index, task in enumerate(flow.scope.tasks):
        match task.body:
            case PointToPoint(spec=spec):
                triples = [(spec.source_rank, spec.destination_rank, spec.channel)]
            case Collective(spec=CollectivePermute() as spec):
                triples = [(source, destination, spec.channel) for source, destination in spec.pairs]
            case _:
                continue
        for key in triples:
            if key in last and last[key] != index:
                pairs.append((last[key], index))
                keys.append(key)
            last[key] = index
    if not pairs:
        return
    seen: set[tuple[int, int]] = set()
    for (early, late), key, known in zip(pairs, keys, context.order.comparable(pairs), strict=True):
        if known or (early, late) in seen:
            continue
        seen.add((early, late))
        one, other = flow.scope.tasks[early], flow.scope.tasks[late]
        yield finding(
            "p2p.channel_ambiguous",
            f"{task_name(one)} and {task_name(other)} both go from rank {key[0]} to rank {key[1]} on "
            f"channel {key[2]!r}, and nothing orders them",
            task_path(flow, late, "body"),
            hint=f"use different channels, or make {task_name(other)} depend on {task_name(one)}",
            subject=(str(one.id), str(other.id)),
            related=(Related(f"the other transfer {task_name(one)}", task_path(flow, early, "body")),),
        )


RULES = (one_to_one, peers_own, owners_filled, sizes_agree, channels)
