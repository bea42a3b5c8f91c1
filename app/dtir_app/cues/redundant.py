"""Tasks that could be one, or none, with what that saves (``redundant.*``)."""

from __future__ import annotations

from dtir.analysis.volume import counted
from dtir.cost.formulas import ring_all_reduce
from dtir.ir.collectives import AllReduce, ReduceScatter
from dtir.ir.tasks import Collective
from dtir_app.cues.case import Case
from dtir_app.cues.chain import NODE_H, NODE_W, draw_arrows, draw_tasks, draw_tiles, lay_out
from dtir_app.cues.marks import Picture
from dtir_app.text import exact_bytes_text


def draw(case: Case) -> Picture:
    """The tasks that could go, faded, and what would stand in their place."""
    picture = Picture("redundant")
    tasks = list(case.tasks[:6])
    if not tasks:
        return picture
    related = [task for task in tasks if len(case.operands(task)) <= 8]
    chain = lay_out(case, related or tasks[:1])
    gone = _gone(case, tasks)
    draw_arrows(case, picture, chain, faded=gone)
    draw_tiles(case, picture, chain)
    draw_tasks(case, picture, chain, faded=gone)
    saved = _saved(case, tasks)
    new = _replacement(case, tasks)
    if new is not None and gone:
        places = [chain.tasks[task] for task in gone if task in chain.tasks]
        if places:
            x = sum(place[0] for place in places) / len(places)
            y = max(place[1] for place in places) + 76
            code, text = new
            if places[0][1] == places[-1][1]:
                picture.line(
                    [(places[0][0], places[0][1] + NODE_H / 2), (x, y - NODE_H / 2)], tone="accent", dashed=True
                )
            if len(places) > 1:
                picture.line(
                    [(places[-1][0], places[-1][1] + NODE_H / 2), (x, y - NODE_H / 2)], tone="accent", dashed=True
                )
            picture.node(
                x - NODE_W * 0.7,
                y - NODE_H / 2,
                NODE_W * 1.4,
                NODE_H,
                family=1,
                code=code,
                text=text,
                ghost=True,
                note="in their place",
            )
            if saved:
                picture.text(x + NODE_W * 0.7 + 8, y, f"saves {saved}", tone="good", bold=True)
    elif saved and gone:
        picture.text(
            0,
            picture.height + 14,
            f"without the faded task{'s' if len(gone) > 1 else ''}: saves {saved}",
            tone="good",
            bold=True,
        )
    for task in gone:
        picture.fact(
            case.task_name(task), "could go" if new is None else f"could be part of {new[0]}", case.task_key(task)
        )
    if saved:
        picture.fact("saves", saved, tone="good")
    picture.says = _says(case, gone, new)
    return picture


def _gone(case: Case, tasks: list[int]) -> list[int]:
    match case.code:
        case "redundant.collective" | "redundant.repeated":
            return tasks[:1]
        case "redundant.hoistable":
            return tasks[1:]
        case "redundant.fusible" | "redundant.roundtrip":
            return tasks[:2]
        case _:
            return []


def _replacement(case: Case, tasks: list[int]) -> tuple[str, str] | None:
    spec = getattr(case.record(tasks[0]).body, "spec", None)
    axes = "+".join(case.axes)
    match case.code:
        case "redundant.fusible" if isinstance(spec, AllReduce):
            return f"RS({spec.reduction.value})", axes
        case "redundant.fusible" if isinstance(spec, ReduceScatter):
            return f"AR({spec.reduction.value})", axes
        case "redundant.hoistable":
            first = next((getattr(case.record(task).body, "spec", None) for task in tasks[1:]), None)
            reduction = getattr(first, "reduction", None)
            return (
                f"add, then {'RS' if isinstance(first, ReduceScatter) else 'AR'}({reduction.value if reduction else 'sum'})",
                axes,
            )
        case _:
            return None


def _bytes(case: Case, task: int) -> float | None:
    body = case.record(task).body
    size = counted(body.spec.message_bytes, case.store.program.bindings) if isinstance(body, Collective) else None
    return float(size) if size is not None else None


def _saved(case: Case, tasks: list[int]) -> str:
    """Bytes that a rank need not send, at least."""
    context = case.known.context
    if context is None:
        return ""
    count = context.around.space.count([axis for axis in case.axes if axis in context.around.space.sizes]) or 1
    size = _bytes(case, tasks[0])
    match case.code:
        case "redundant.fusible" if size is not None and isinstance(
            getattr(case.record(tasks[0]).body, "spec", None), AllReduce
        ):
            saved = size * (count - 1) / count
        case "redundant.hoistable":
            sizes = [_bytes(case, task) for task in tasks[1:]]
            known = [item for item in sizes if item is not None]
            saved = sum(float(ring_all_reduce(max(count, 2), item).wire_bytes) for item in known[1:]) if known else 0.0
        case "redundant.roundtrip":
            both = [_bytes(case, task) for task in tasks[:2]]
            saved = sum((item or 0.0) * (count - 1) / count for item in both)
        case "redundant.collective" | "redundant.repeated" if size is not None:
            double = 2 if isinstance(getattr(case.record(tasks[0]).body, "spec", None), AllReduce) else 1
            saved = double * size * (count - 1) / count
        case _:
            saved = 0.0
    return f"{exact_bytes_text(saved)} sent by a rank" if saved > 0 else ""


def _says(case: Case, gone: list[int], new: tuple[str, str] | None) -> str:
    names = " and ".join(case.task_name(task) for task in gone[:3])
    match case.code:
        case "redundant.collective":
            return f"{names} changes nothing: every rank has the result before it."
        case "redundant.repeated":
            return f"{names} does once more what another task did with the same operand."
        case "redundant.roundtrip":
            return f"{names} undo each other."
        case "redundant.hoistable":
            return f"{names} reduce one by one what is only added afterwards."
        case "redundant.fusible" if new is not None:
            return f"{names} together are one {new[0]}."
        case _:
            return "Nothing here could go."
