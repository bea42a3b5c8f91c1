"""What a communication does, in words and numbers: one sentence, its groups, its message with the formula spelled out."""

from __future__ import annotations

import math

from dtir.analysis.groups import Groups, groups_of
from dtir.analysis.scalars import scalar_text
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, Broadcast, CollectivePermute, ReduceScatter
from dtir.ir.tasks import Branch, Call, Collective, Control, LocalCompute, Loop, PointToPoint, Reshard
from dtir.ir.types import dtype_bits
from dtir_app.frames import cells
from dtir_app.groups import group_label
from dtir_app.kinds import KINDS
from dtir_app.store import Store
from dtir_app.text import bytes_text, count_text, exact_bytes_text, plural, ranks_text, runs_text

GROUPS_SHOWN = 16


def sentence(store: Store, index: int) -> str:
    """One sentence about a task, for the head of the inspector and for screen readers."""
    record = store.task_records[index]
    body = record.body
    match body:
        case LocalCompute():
            return f"{store.tasks.operation[index]} on {plural(len(record.ranks), 'rank')}, each on its own."
        case Collective(spec=spec):
            return _collective_sentence(store, index, spec)
        case PointToPoint(spec=spec):
            size = cells.message_cell(store, index)
            return f"Rank {spec.source_rank} sends {size} to rank {spec.destination_rank} on channel {spec.channel}."
        case Reshard():
            return f"A change of layout ({body.kind.value}) between explicit tensors on {plural(len(record.ranks), 'rank')}."
        case Control():
            return f"Order and resources only, on {plural(len(record.ranks), 'rank')}."
        case Call():
            return "Runs a region once."
        case Loop(trip_count=trips):
            return (
                f"Runs its region {plural(trips, 'time')}."
                if trips is not None
                else "Runs its region as often as the data decide."
            )
        case Branch(regions=regions):
            return f"Runs one of {plural(len(regions), 'region')}, chosen by its first operand."


def _collective_sentence(store: Store, index: int, spec: object) -> str:
    kind = KINDS[store.tasks.kind[index]].label.capitalize()
    reduction = cells.reduction_cell(store, index)
    how = store.tasks.group_axes.get(index)
    over = f" over {'×'.join(how.axes)}" if how and how.axes else ""
    runs = runs_text(store.scopes[int(store.tasks.scope[index])].executions)
    times = f", {runs}" if runs else ""
    size = cells.message_cell(store, index)
    if isinstance(spec, CollectivePermute):
        return f"{kind}{over}: {plural(len(spec.pairs), 'pair')}, {size} each{times}."
    reduced = f" ({reduction})" if reduction else ""
    return f"{kind}{reduced}{over}: {cells.groups_cell(store, index)} ranks, {size} a group{times}."


def communication_section(store: Store, index: int) -> list[dict[str, object]]:
    """The section of a communication task; none for other tasks."""
    body = store.task_records[index].body
    match body:
        case Collective():
            how = store.tasks.group_axes.get(index)
            pairs = isinstance(body.spec, CollectivePermute)
            groups = group_rows(store, groups_of(body.spec, store.mesh), how.axes if how else (), pairs)
            return [
                {"title": "Communication", "rows": _collective_rows(store, index, body)},
                {"title": "Pairs" if pairs else "Groups", "rows": groups},
            ]
        case PointToPoint(spec=spec):
            rows = [
                _row("transfer", f"{spec.source_rank} → {spec.destination_rank}", mono=True),
                _row("channel", spec.channel, mono=True),
                _row("message", _declared(store, index)),
            ]
            return [{"title": "Communication", "rows": rows}]
        case Reshard(kind=kind, regions=regions):
            rows = [_row("kind", kind.value), _row("regions", count_text(len(regions)) if regions else "whole tensor")]
            return [{"title": "Reshard", "rows": rows}]
        case _:
            return []


def _row(label: str, text: str, *, mono: bool = False, note: str = "", tone: str = "") -> dict[str, object]:
    return {"label": label, "text": text, "mono": mono, "links": [], "note": note, "tone": tone}


def _collective_rows(store: Store, index: int, body: Collective) -> list[dict[str, object]]:
    spec = body.spec
    rows: list[dict[str, object]] = []
    how = store.tasks.group_axes.get(index)
    if how and how.axes:
        rows.append(
            _row("axes", "×".join(how.axes), mono=True, note="inferred from the members" if how.inferred else "")
        )
    elif not isinstance(spec, CollectivePermute):
        rows.append(_row("axes", "none", note="the groups are no fibre of mesh axes"))
    match spec:
        case AllReduce(reduction=reduction) | ReduceScatter(reduction=reduction):
            rows.append(_row("reduction", reduction.value))
        case Broadcast(root=root, roots=roots):
            rows.append(_row("root", ranks_text(roots) if roots else str(root), mono=True))
        case AllGather() | AllToAll() | CollectivePermute():
            pass
    rows.extend(_row(name, str(dim)) for name, dim in _dims(spec) if dim is not None)
    rows.append(_row("message", _declared(store, index)))
    derived = message_formula(store, index)
    if derived:
        formula, size = derived
        declared = float(store.tasks.message_bytes[index])
        agrees = math.isnan(declared) or math.isclose(declared, size)
        rows.append(
            _row(
                "derived",
                formula,
                mono=True,
                note="" if agrees else f"the program says {bytes_text(declared)}",
                tone="" if agrees else "warning",
            )
        )
    total = cells.total_cell(store, index)
    runs = cells.runs_cell(store, index)
    rows.append(_row("runs", runs, note=f"{total} a group in one run of the program" if runs != "1" else ""))
    return rows


def _dims(spec: object) -> list[tuple[str, int | None]]:
    match spec:
        case ReduceScatter(dim=dim) | AllGather(dim=dim):
            return [("dim", dim)]
        case AllToAll(split_dim=split, concat_dim=concat):
            return [("split dim", split), ("concat dim", concat)]
        case _:
            return []


def _declared(store: Store, index: int) -> str:
    number = float(store.tasks.message_bytes[index])
    if not math.isnan(number):
        return exact_bytes_text(number)
    body = store.task_records[index].body
    return f"{scalar_text(body.spec.message_bytes)} B" if isinstance(body, (Collective, PointToPoint)) else "–"


def message_formula(store: Store, index: int) -> tuple[str, float] | None:
    """How the message size follows from the tensors: the text and the number; None where shapes are not numbers.

    The larger of what a rank gives and gets: the full output of an all-gather, the full input of all others.
    """
    record, scope = store.task_records[index], int(store.tasks.scope[index])
    if not isinstance(record.body, Collective):
        return None
    names = record.outputs if isinstance(record.body.spec, AllGather) else record.operand_values
    parts: list[str] = []
    total = 0.0
    for name in names:
        value = store.value_at(scope, name.value)
        local = store.values.local_bytes[value] if value >= 0 else math.nan
        bits = dtype_bits(store.values.dtype[value]) if value >= 0 else None
        if math.isnan(local) or not bits:
            return None
        total += float(local)
        parts.append(
            f"{store.values.shape[value]} × {bits / 8:g} B"
            if _whole(store, value)
            else f"{store.values.shape[value]} on a rank"
        )
    if not parts or len(parts) > 4:
        return (f"{plural(len(parts), 'tensor')} = {bytes_text(total)}", total) if parts else None
    return f"{' + '.join(parts)} = {bytes_text(total)}", total


def _whole(store: Store, value: int) -> bool:
    return not any(store.value_records[value].sharding.dimension_axes)


def group_rows(store: Store, groups: Groups | None, axes: tuple[str, ...], pairs: bool) -> list[dict[str, object]]:
    """One row a group with its name and members, the first ones; the number of the others is said."""
    if groups is None:
        return [_row("groups", "unknown axis", tone="error")]
    if pairs:
        shown = ", ".join(f"{source}→{destination}" for source, destination in list(groups[:64]))
        rest = f", … {count_text(len(groups) - 64)} more" if len(groups) > 64 else ""
        return [_row("pairs", shown + rest, mono=True)]
    rows = [
        _row(group_label(group, axes, store.mesh) or f"group {number}", ranks_text(group), mono=True)
        for number, group in enumerate(groups[:GROUPS_SHOWN])
    ]
    if len(groups) > GROUPS_SHOWN:
        rows.append(_row("", f"… {plural(len(groups) - GROUPS_SHOWN, 'more group')}; all of them in the mesh view"))
    return rows
