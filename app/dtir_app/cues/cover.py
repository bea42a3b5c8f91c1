"""The destination of a reshard: how often each of its elements is written (``reshard.coverage``, ``reshard.overlap``)."""

from __future__ import annotations

from itertools import pairwise

from dtir.analysis.blocks import Box
from dtir.ir.tasks import Reshard
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.text import plural

WIDE, HIGH = 440.0, 250.0
MOST_REGIONS = 2_000
MOST_CUTS = 64


def draw(case: Case) -> Picture:
    """Two dims of the destination, cut where regions begin and end."""
    task = case.task
    body = case.record(task).body if task >= 0 else None
    outputs = case.outputs(task) if task >= 0 else []
    context = case.known.context
    if not isinstance(body, Reshard) or not body.regions or not outputs or context is None:
        picture = place.draw(case)
        picture.cue = "cover"
        return picture
    picture = Picture("cover")
    target = case.value(outputs[0])
    shape = [context.around.number(extent) or 0 for extent in target.type.shape]
    regions = body.regions[:MOST_REGIONS]
    boxes: list[Box] = [tuple((span.start, span.stop) for span in region.box) for region in regions]
    boxes = [box for box in boxes if len(box) == len(shape)]
    froms = [
        tuple((span.start, span.stop) for span in (region.source if region.source is not None else region.box))
        for region in regions
    ]
    down, across = _dims(shape, boxes)
    rows, columns = _cuts(shape, boxes, down), _cuts(shape, boxes, across)
    counts = [0, 0, 0]
    left, top = 30.0, 26.0
    high = HIGH if down >= 0 else 56.0
    total_rows, total_columns = rows[-1] or 1, columns[-1] or 1
    others = 1
    for dim, extent in enumerate(shape):
        if dim not in (down, across):
            others *= extent
    for r0, r1 in pairwise(rows):
        for c0, c1 in pairwise(columns):
            times = sum(_inside(box, down, r0, r1) and _inside(box, across, c0, c1) for box in boxes)
            elements = (r1 - r0) * (c1 - c0) * others
            counts[min(times, 2)] += elements
            fill = "plain" if times == 0 else "axis-0" if times == 1 else "bad"
            picture.rect(
                left + WIDE * c0 / total_columns, top + high * r0 / total_rows,
                WIDE * (c1 - c0) / total_columns, high * (r1 - r0) / total_rows,
                fill=fill, stroke="bad" if times != 1 else "muted", hatch="bad" if times == 0 else "", thick=2 if times != 1 else 1,
                says=f"{r0}:{r1}, {c0}:{c1}: written {times} times ({elements} elements)",
            )  # fmt: skip
            words = {0: "never", 1: "once"}.get(times, f"{times} times")
            if WIDE * (c1 - c0) / total_columns > 40 and high * (r1 - r0) / total_rows > 18:
                x, y = left + WIDE * (c0 + c1) / 2 / total_columns, top + high * (r0 + r1) / 2 / total_rows
                picture.badge(x, y, f"{words}: {elements}", tone="raised" if times == 1 else "bad")
    name = case.value_name(outputs[0])
    picture.text(left, 10, f"{name} {case.store.values.shape[outputs[0]]}", bold=True, mono=True)
    if across >= 0:
        picture.text(left + WIDE / 2, top + high + 12, f"dim {across}", anchor="middle", tone="muted", size=10)
    if down >= 0:
        picture.text(left - 6, top + high / 2, f"dim {down}", anchor="end", tone="muted", size=10)
    moved = [number for number, (box, source) in enumerate(zip(boxes, froms, strict=False)) if box != source]
    for number, (box, source) in enumerate(zip(boxes[:12], froms, strict=False)):
        origin = "" if box == source else f" from {_text(source)}"
        picture.fact(f"region {number}", f"writes {_text(box)}{origin}", tone="bad" if number in moved else "")
    picture.fact("never written", plural(counts[0], "element"), tone="bad" if counts[0] else "")
    picture.fact("written more than once", plural(counts[2], "element"), tone="bad" if counts[2] else "")
    picture.explain("hatch", "bad", "never written")
    picture.explain("box", "axis-0", "written once")
    picture.explain("box", "bad", "written more than once")
    if counts[0] or counts[2]:
        picture.says = f"Of {name}, {plural(counts[0], 'element')} never written, {counts[2]} more than once."
    elif moved and case.finding is not None:
        picture.says = f"Every element of {name} is written once, some from another place than their own."
    else:
        picture.says = f"Every element of {name} is written once."
    return picture


def _dims(shape: list[int], boxes: list[Box]) -> tuple[int, int]:
    """The two dims along which the regions differ; -1 for none."""
    if not shape:
        return -1, -1
    if len(shape) == 1:
        return -1, 0
    cut = [dim for dim, extent in enumerate(shape) if any(box[dim] != (0, extent) for box in boxes)]
    rest = [dim for dim in range(len(shape)) if dim not in cut]
    chosen = sorted((cut + rest)[:2])
    return chosen[0], chosen[1]


def _cuts(shape: list[int], boxes: list[Box], dim: int) -> list[int]:
    if dim < 0:
        return [0, 1]
    points = {0, shape[dim]} | {point for box in boxes for point in box[dim] if 0 <= point <= shape[dim]}
    found = sorted(points)
    return found if len(found) <= MOST_CUTS else [*found[:MOST_CUTS], shape[dim]]


def _inside(box: Box, dim: int, start: int, stop: int) -> bool:
    return dim < 0 or (box[dim][0] <= start and stop <= box[dim][1])


def _text(box: Box) -> str:
    return "[" + ", ".join(f"{start}:{stop}" for start, stop in box) + "]"
