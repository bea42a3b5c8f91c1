"""Expert routing (``moe.*``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dtir.analysis.exchanges import is_routed
from dtir.analysis.flow import Flow
from dtir.analysis.groups import groups_of
from dtir.analysis.routing import Matrix, Routing, counts_of_route, read_routing, transposed
from dtir.analysis.states import declared_state
from dtir.ir.ids import ValueId
from dtir.ir.tasks import Collective, DistributedTask, LocalCompute
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, task_name, task_path


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One routed exchange.

    Args:
        index, task: the task.
        routing: what it states.
        members: ranks of a group.
        rows: rows that each member brings (dispatch) or gets back (combine).
        source: the dispatch that a combine undoes; None for a dispatch.
    """

    index: int
    task: DistributedTask
    routing: Routing
    members: int
    rows: tuple[int, ...] | None
    source: int | None


def _exchanges(context: Context, flow: Flow) -> list[_Exchange]:
    return context.remember(f"routed {flow.path}", lambda: list(_find(context, flow)))


def _find(context: Context, flow: Flow) -> Iterator[_Exchange]:
    origin: dict[ValueId, int] = {}
    for index, task in enumerate(flow.scope.tasks):
        if isinstance(task.body, LocalCompute):
            before = [origin[item] for item in task.inputs if item in origin]
            if before:
                origin.update(dict.fromkeys(task.outputs, before[0]))
            continue
        if (
            not isinstance(task.body, Collective)
            or not is_routed(task)
            or len(task.inputs) != 1
            or len(task.outputs) != 1
        ):
            continue
        groups = groups_of(task.body.spec, context.program.mesh) or ()
        members = len(groups[0]) if groups else 0
        source = origin.get(task.inputs[0])
        rows = _rows(context, flow, task.outputs[0] if source is not None else task.inputs[0], members)
        yield _Exchange(index, task, read_routing(task.attributes), members, rows, source)
        if source is None:
            origin[task.outputs[0]] = index


def _rows(context: Context, flow: Flow, identifier: ValueId, members: int) -> tuple[int, ...] | None:
    """Rows of the first dim that each member of a group holds."""
    value = flow.scope.values[flow.position[identifier]]
    state = declared_state(value.sharding, context.around.space)
    if not value.type.shape or not state.dims[0]:
        return None
    extent, count = context.around.number(value.type.shape[0]), context.around.space.count(state.dims[0])
    sizes = state.size_of(0)
    if sizes is not None:
        return sizes if len(sizes) == members else None
    if extent is None or count != members or extent % count:
        return None
    return (extent // count,) * members


def _routed(context: Context) -> Iterator[tuple[Flow, _Exchange]]:
    for flow in context.flows:
        for item in _exchanges(context, flow):
            yield flow, item


def all_tokens_sent(context: Context) -> Iterator[Diagnostic]:
    """Tokens.

    - every member sends each of its rows to as many experts as the route says (or one), except what it declares to drop;
    - what it sends to whom is what the route says;
    - what comes back is what was sent.
    """
    for flow, item in _routed(context):
        fault = _lost(context, flow, item)
        if fault is not None:
            yield finding(
                "moe.token_loss", f"{task_name(item.task)}: {fault}", task_path(flow, item.index, "attributes", "op.send_splits"),
                hint="take the splits from the route; declare drops where a capacity cuts them",
                subject=(str(item.task.id),),
            )  # fmt: skip


def _lost(context: Context, flow: Flow, item: _Exchange) -> str | None:
    routing = item.routing
    splits = routing.recv if item.source is not None else routing.send
    if splits is None or item.rows is None or len(splits) != len(item.rows):
        return None
    if item.source is not None:
        dispatch = next(other for other in _exchanges(context, flow) if other.index == item.source)
        if _lost(context, flow, dispatch) is not None:
            return None
        wanted: Matrix | None = dispatch.routing.send
        if wanted is None or _splits_disagree(item) or _splits_disagree(dispatch):
            return None
        for member, (row, sent) in enumerate(zip(splits, wanted, strict=False)):
            if sum(row) != sum(sent):
                return f"member {member} gets {sum(row)} rows back and sent {sum(sent)}"
        return None
    counts = counts_of_route(routing, item.members, item.rows)
    for member, row in enumerate(splits):
        rows = sum(counts[member]) if counts is not None else item.rows[member] * routing.topk
        drops = routing.drops or (0,)
        allowed = drops[member] if member < len(drops) else drops[-1]
        sent = sum(row)
        if sent > rows or rows - sent > allowed:
            note = f", of which it declares {allowed} dropped" if allowed else ""
            return f"member {member} sends {sent} of its {rows} rows{note}"
        if counts is not None and not allowed and tuple(row) != counts[member]:
            other = next(place for place, (one, two) in enumerate(zip(row, counts[member], strict=False)) if one != two)
            return f"member {member} sends {row[other]} rows to member {other}, the route has {counts[member][other]}"
    return None


def _splits_disagree(item: _Exchange) -> bool:
    send, recv = item.routing.send, item.routing.recv
    return send is not None and recv is not None and transposed(send) != recv


def splits_transpose(context: Context) -> Iterator[Diagnostic]:
    """Splits.

    - what member i expects from member j is what j sends to i;
    - a combine sends back what its dispatch received.
    """
    for flow, item in _routed(context):
        send, recv = item.routing.send, item.routing.recv
        other: DistributedTask | None = None
        fault = _first_difference(send, recv) if send is not None and recv is not None else None
        if fault is None and item.source is not None and send is not None:
            dispatch = next(known for known in _exchanges(context, flow) if known.index == item.source)
            back = dispatch.routing.recv or (
                transposed(dispatch.routing.send) if dispatch.routing.send is not None else None
            )
            if (
                back is not None
                and back != send
                and not _splits_disagree(dispatch)
                and _lost(context, flow, dispatch) is None
            ):
                other = dispatch.task
                fault = f"the combine sends {_text(send)}, its dispatch {task_name(other)} received {_text(back)}"
        if fault is not None:
            yield finding(
                "moe.split_mismatch", f"{task_name(item.task)}: {fault}", task_path(flow, item.index, "attributes", "op.recv_splits"),
                hint="exchange the counts, or derive both splits from one route",
                subject=(str(item.task.id), *((str(other.id),) if other is not None else ())),
                related=(Related(f"dispatch {task_name(other)}", task_path(flow, item.source or 0)),) if other is not None else (),
            )  # fmt: skip


def _first_difference(send: Matrix, recv: Matrix) -> str | None:
    if len({len(row) for row in (*send, *recv)} | {len(send), len(recv)}) != 1:
        return f"the splits are no square tables of one size: {_text(send)} and {_text(recv)}"
    for sender, row in enumerate(send):
        for receiver, count in enumerate(row):
            if recv[receiver][sender] != count:
                return (
                    f"member {sender} sends {count} rows to member {receiver}, which expects {recv[receiver][sender]}"
                )
    return None


def _text(matrix: Matrix) -> str:
    return str([list(row) for row in matrix[:8]]) + (" ..." if len(matrix) > 8 else "")


def combined_in_order(context: Context) -> Iterator[Diagnostic]:
    """Order of rows.

    - a combine puts rows back where its dispatch took them from.
    """
    for flow, item in _routed(context):
        attributes: Mapping[str, object] = item.task.attributes
        if attributes.get("op.unpermute") is False:
            yield finding(
                "moe.combine_order",
                f"{task_name(item.task)} returns rows in the order of experts, not in that of tokens",
                task_path(flow, item.index, "attributes", "op.unpermute"),
                hint="apply the inverse of the dispatch's permutation after the exchange (unpermute: true)",
                subject=(str(item.task.id),),
            )


RULES = (all_tokens_sent, splits_transpose, combined_in_order)
