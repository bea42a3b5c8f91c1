"""A task with what it reads and makes: for codes without a picture of their own, and where nothing more is known."""

from __future__ import annotations

from dtir_app.cues.case import Case
from dtir_app.cues.chain import draw_arrows, draw_tasks, draw_tiles, lay_out
from dtir_app.cues.marks import Picture
from dtir_app.text import plural

MOST_NEIGHBOURS = 6


def draw(case: Case) -> Picture:
    """The subjects of a finding between their neighbours; the program's mesh where it has none."""
    picture = Picture("place")
    tasks = [task for task in case.tasks if len(case.operands(task)) + len(case.outputs(task)) <= 12][:3]
    values = list(case.values[:6])
    if not tasks and values:
        made = [int(case.store.values.producer[value]) for value in values]
        tasks = [task for task in dict.fromkeys(made) if task >= 0][:2]
    if not tasks and not values:
        return whole(case, picture)
    chain = lay_out(case, tasks, extra=values)
    subject = set(case.tasks)
    draw_arrows(case, picture, chain)
    draw_tiles(case, picture, chain, wrong=case.values if case.finding is not None else ())
    draw_tasks(case, picture, chain, wrong=subject if case.finding is not None else ())
    picture.says = "Where it is: the task with what it reads and makes."
    return picture


def whole(case: Case, picture: Picture) -> Picture:
    """The program itself, as one box."""
    store = case.store
    tasks, values = plural(len(store.tasks), "task"), plural(len(store.values), "tensor")
    picture.rect(0, 0, 300, 64, fill="raised", stroke="bad" if case.finding is not None else "muted", round=6)
    picture.text(150, 22, store.name, anchor="middle", bold=True, mono=True, most=280)
    picture.text(150, 44, f"{tasks}, {values}, {plural(store.mesh.size, 'rank')}", anchor="middle", tone="muted")
    picture.says = "It concerns the program as a whole."
    return picture
