"""What is stated beside what follows from types and layouts, as bars with the formula spelled out (``*.message_bytes`` and its kin)."""

from __future__ import annotations

import math

from dtir.analysis.divisibility import bound
from dtir.analysis.scalars import scalar_text
from dtir.ir.tasks import Collective, PointToPoint, Reshard
from dtir.verify.reshard import least_bytes
from dtir.verify.sizes import message_sizes, transfer_bytes
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.text import exact_bytes_text

WIDE, HIGH, LEFT = 420.0, 30.0, 92.0


def draw(case: Case) -> Picture:
    """Two bars; for shapes and types that do not fit, the two types."""
    task = case.task
    sizes = _sizes(case, task) if task >= 0 else None
    if sizes is None or case.code in ("collective.shape_mismatch", "collective.dtype"):
        return _types(case, task)
    declared, derived, formula = sizes
    picture = Picture("bytes")
    most = max(declared, derived, 1.0)
    wrong = not math.isclose(declared, derived)
    rows = (("declared", declared, "bad" if wrong else "good"), ("derived", derived, "good"))
    for number, (label, size, tone) in enumerate(rows):
        y = 6 + number * (HIGH + 16)
        picture.text(LEFT - 10, y + HIGH / 2, label, anchor="end", bold=True)
        picture.rect(
            LEFT,
            y,
            max(2.0, WIDE * size / most),
            HIGH,
            fill="raised",
            stroke=tone,
            thick=2.5,
            hatch=tone,
            round=3,
            says=f"{label}: {size:g} B",
        )
        picture.badge(
            LEFT + max(70.0, min(WIDE * size / most, WIDE) / 2), y + HIGH / 2, exact_bytes_text(size), tone=tone
        )
        picture.fact(label, exact_bytes_text(size), tone="bad" if wrong and label == "declared" else "")
    picture.text(LEFT, 6 + 2 * (HIGH + 16), f"{formula} = {derived:g} B", mono=True, size=11)
    picture.fact("formula", f"{formula} = {derived:g} B")
    if wrong and min(declared, derived) > 0:
        ratio = declared / derived
        picture.fact("ratio", f"the declared size is {ratio:.4g} times the derived one", tone="bad")
    name = case.task_name(task)
    picture.says = (
        f"{name} declares {exact_bytes_text(declared)}; the larger of what a rank gives and gets is {exact_bytes_text(derived)}."
        if wrong
        else f"{name} declares what follows from its tensors: the larger of what a rank gives and gets."
    )
    return picture


def _sizes(case: Case, task: int) -> tuple[float, float, str] | None:
    """Declared and derived bytes, and the formula."""
    context = case.known.context
    if context is None:
        return None
    scope = int(case.store.tasks.scope[task])
    flow = case.known.flows[scope]
    index = task - case.store.scopes[scope].first_task
    record = case.record(task)
    match record.body:
        case Collective():
            for size in message_sizes(context, flow):
                if size.index == index:
                    declared = bound(size.declared, context.program.bindings)
                    if isinstance(declared, (int, float)):
                        return float(declared), float(size.derived), f"{size.what} = {size.formula}"
        case PointToPoint(spec=spec):
            derived, formula = transfer_bytes(context, flow, record)
            declared = bound(spec.message_bytes, context.program.bindings)
            if derived is not None and isinstance(declared, (int, float)):
                return float(declared), float(derived), f"what the sender holds = {formula}"
        case Reshard():
            stated = record.attributes.get("op.bytes")
            operands, outputs = case.operands(task), case.outputs(task)
            if isinstance(stated, (int, float)) and operands and outputs:
                needed = least_bytes(context, case.value(operands[0]), case.value(outputs[0]))
                if needed is not None:
                    return float(stated), float(needed), "what destinations need and do not have"
        case _:
            return None
    return None


def _types(case: Case, task: int) -> Picture:
    """Types of operands and results, side by side."""
    picture = place.draw(case)
    picture.cue = "bytes"
    if task < 0:
        return picture
    top = picture.height + 20
    values = [("reads", value) for value in case.operands(task)[:4]] + [
        ("makes", value) for value in case.outputs(task)[:4]
    ]
    for number, (verb, value) in enumerate(values):
        y = top + number * 26
        record = case.value(value)
        whole = " × ".join(scalar_text(extent).replace("workload.", "") for extent in record.type.shape) or "1"
        picture.text(0, y, f"{verb} {case.value_name(value)}", mono=True, bold=True)
        picture.text(190, y, f"{record.type.dtype}  {whole}", mono=True, tone="bad" if value in case.values else "text")
        picture.text(430, y, case.store.values.layout[value], tone="muted", size=11)
        picture.fact(
            f"{verb} {case.value_name(value)}",
            f"{record.type.dtype} {whole}, {case.store.values.layout[value]}",
            case.value_key(value),
        )
    for value in (*case.operands(task)[:2], *case.outputs(task)[:2]):
        shapes = {
            local.rank: "×".join(scalar_text(extent) for extent in local.shape)
            for local in case.value(value).local_shapes
        }
        if len(set(shapes.values())) > 1:
            words = ", ".join(f"{shape} on rank {rank}" for rank, shape in list(shapes.items())[:8])
            picture.fact(f"{case.value_name(value)} by rank", words, tone="bad")
            for number, (rank, shape) in enumerate(list(shapes.items())[:8]):
                picture.badge(
                    60 + number * 104, picture.height + (18 if not number else -9), f"rank {rank}: {shape}", tone="bad"
                )
    item = case.deviation
    if item is not None and (item.found or item.wanted):
        picture.fact("found / wanted", f"{item.found or '–'} / {item.wanted or '–'}", tone="bad")
    picture.says = f"What {case.task_name(task)} reads and makes does not fit together in type or size."
    return picture
