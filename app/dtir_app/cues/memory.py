"""What is alive on a rank along its tasks: buffers by their lives, or bytes of values against a budget (``memory.*``)."""

from __future__ import annotations

from dtir.analysis.schedules import rank_orders
from dtir.ir.ids import ValueId
from dtir.ir.types import EffectKind
from dtir.verify.memory import BYTES, COUNTS
from dtir.verify.sizes import LocalBytes
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.text import bytes_text

LEFT, TOP, WIDE, HIGH = 110.0, 30.0, 500.0, 200.0
BAR, ROW = 22.0, 34.0
MOST_BUFFERS, MOST_TASKS, MOST_LAYERS = 16, 400, 8


def draw(case: Case) -> Picture:
    """Lives of buffers for findings on buffers; stacked bytes for the peak, and where nothing is wrong."""
    picture = Picture("memory")
    if case.known.context is None:
        return picture
    program = case.store.program
    touching = [index for index, task in enumerate(program.tasks) if task.effects]
    rank = _rank(case)
    if case.code == "memory.peak" or not touching:
        return _stack(case, picture, rank)
    orders = dict(rank_orders(program, list(range(len(program.tasks)))))
    order = orders.get(rank) or next(iter(orders.values()), list[int]())
    return _lives(case, picture, rank, order)


def _rank(case: Case) -> int:
    if case.ranks:
        return case.ranks[0]
    ranks = case.record(case.task).ranks if case.task >= 0 else ()
    return ranks[0] if ranks else 0


def _lives(case: Case, picture: Picture, rank: int, order: list[int]) -> Picture:
    """One bar a buffer, from its allocation to its free; one without a right edge is never freed."""
    program = case.store.program
    place = {task: number for number, task in enumerate(order)}
    lives: dict[str, list[tuple[int, EffectKind, int]]] = {}
    for task in order:
        for effect in program.tasks[task].effects:
            lives.setdefault(effect.resource, []).append((place[task], effect.kind, task))
    named = [name for name in case.names if name in lives]
    shown = list(dict.fromkeys([*named, *lives]))[:MOST_BUFFERS]
    last = max((number for name in shown for number, _, _ in lives[name]), default=0) + 1
    step = WIDE / max(1, last)
    alive = [0] * (last + 1)
    leaks: list[str] = []
    for number, name in enumerate(shown):
        y = TOP + number * ROW
        picture.text(LEFT - 8, y + BAR / 2, name, anchor="end", mono=True, most=LEFT - 12, bold=name in named)
        start: int | None = None
        spans: list[tuple[int, int | None]] = []
        for at, kind, _ in lives[name]:
            if kind is EffectKind.ALLOC and start is None:
                start = at
            elif kind is EffectKind.FREE:
                spans.append((start if start is not None else 0, at))
                start = None
        if start is not None:
            spans.append((start, None))
            leaks.append(name)
        for first, stop in spans:
            end = stop if stop is not None else last
            for moment in range(first, min(end, last) + 1):
                alive[moment] += 1
            bad = stop is None or name in named
            x, wide = LEFT + first * step, max(4.0, (end - first + (0 if stop is not None else 0.6)) * step)
            picture.rect(
                x,
                y,
                wide,
                BAR,
                fill="axis-1",
                stroke="bad" if bad else "muted",
                thick=2 if bad else 1,
                says=f"{name}: {'never freed' if stop is None else 'freed'}",
            )
            if stop is None:
                picture.rect(x + wide - 10, y - 2, 14, BAR + 4, fill="plain", stroke="none")
                picture.line(
                    [(x + wide - 10, y + BAR / 2), (x + wide + 14, y + BAR / 2)],
                    tone="bad",
                    dashed=True,
                    arrow=True,
                    thick=2,
                )
                picture.text(x + wide + 18, y + BAR / 2, "never freed", tone="bad", size=11, bold=True)
        for at, kind, task in lives[name]:
            x = LEFT + at * step
            letter = {EffectKind.ALLOC: "A", EffectKind.FREE: "F", EffectKind.READ: "r", EffectKind.WRITE: "w"}.get(
                kind, "s"
            )
            wrong = task in case.tasks[:2] and name in named
            picture.badge(
                x + 6,
                y + BAR / 2,
                letter,
                tone="bad" if wrong else "raised",
                says=f"{case.task_name(task)} {kind.value}s {name}",
            )
        words = " → ".join(f"{kind.value} in {case.task_name(task)}" for _, kind, task in lives[name][:8])
        picture.fact(name, words, tone="bad" if name in named or name in leaks else "")
    limits = [item for item in case.store.program.limits if item.name in COUNTS and item.rank in (None, rank)]
    bottom = TOP + len(shown) * ROW + 6
    if limits:
        bound, most = min(item.value for item in limits), max(alive)
        picture.text(
            LEFT,
            bottom + 6,
            f"{most} alive at once, the limit is {bound}",
            tone="bad" if most > bound else "muted",
            bold=most > bound,
        )
        picture.fact("alive at once", f"{most}, the limit is {bound}", tone="bad" if most > bound else "")
    picture.text(LEFT, 8, f"rank {rank}, time →  (A allocates, F frees, r reads, w writes)", tone="muted", size=11)
    picture.says = {
        "memory.leak": "A bar without a right edge is a buffer that is never freed.",
        "memory.double_free": "A buffer is freed twice, and not allocated in between.",
        "memory.use_after_free": "A buffer is used outside the bar of its life, or at no fixed time before its end.",
        "memory.inflight": "More buffers are alive at once than the program allows.",
    }.get(case.code, "Every buffer's life has two ends, and all of its uses lie between them.")
    return picture


def _stack(case: Case, picture: Picture, rank: int) -> Picture:
    """Bytes of live values along the tasks of a rank, the largest ones apart, with the budget as a line."""
    context, program = case.known.context, case.store.program
    assert context is not None
    orders = dict(rank_orders(program, list(range(len(program.tasks)))))
    order = (orders.get(rank) or next(iter(orders.values()), list[int]()))[:MOST_TASKS]
    if not order:
        return picture
    local = LocalBytes(context)
    size = {value.id: float(local.of(value)[0] or 0) for value in program.values}
    last: dict[ValueId, int] = {}
    first: dict[ValueId, int] = dict.fromkeys(program.inputs, 0)
    for number, index in enumerate(order):
        for item in program.tasks[index].outputs:
            first.setdefault(item, number)
        for item in (*program.tasks[index].inputs, *program.tasks[index].outputs):
            last[item] = number
    for item in program.outputs:
        last[item] = len(order) - 1
    lives = {item: (start, last[item]) for item, start in first.items() if item in last and size.get(item)}
    total = [0.0] * len(order)
    for item, (start, stop) in lives.items():
        for number in range(start, stop + 1):
            total[number] += size[item]
    budget = min(
        (item.value for item in program.limits if item.name in BYTES and item.rank in (None, rank)), default=None
    )
    peak = max(total)
    top = max(peak, float(budget or 0)) or 1.0
    step = WIDE / len(order)
    largest = sorted(lives, key=lambda item: -size[item])[:MOST_LAYERS]
    base = [0.0] * len(order)
    names = {value.id: value.name or value.id.value[:8] for value in program.values}
    for layer, item in enumerate(largest):
        start, stop = lives[item]
        for number in range(start, stop + 1):
            high = HIGH * size[item] / top
            y = TOP + HIGH - HIGH * base[number] / top - high
            picture.rect(
                LEFT + number * step,
                y,
                step + 0.3,
                high,
                fill=f"axis-{layer % 6}",
                stroke="none",
                says=f"{names[item]}: {bytes_text(size[item])}",
            )
            base[number] += size[item]
        picture.explain("box", f"axis-{layer % 6}", f"{names[item]} {bytes_text(size[item])}")
    for number, amount in enumerate(total):
        rest = amount - base[number]
        if rest > 0:
            high = HIGH * rest / top
            picture.rect(
                LEFT + number * step,
                TOP + HIGH - HIGH * amount / top,
                step + 0.3,
                high,
                fill="raised",
                stroke="none",
                says=f"others: {bytes_text(rest)}",
            )
    picture.line([(LEFT, TOP + HIGH), (LEFT + WIDE, TOP + HIGH)], tone="muted")
    at = total.index(peak)
    picture.line(
        [(LEFT + (at + 0.5) * step, TOP + HIGH + 12), (LEFT + (at + 0.5) * step, TOP + HIGH - HIGH * peak / top)],
        tone="text",
        thick=1,
    )
    picture.text(
        LEFT + (at + 0.5) * step,
        TOP + HIGH + 20,
        f"peak {bytes_text(peak)} at {case.task_name(order[at])}",
        anchor="middle",
        size=11,
        bold=True,
    )
    if budget is not None:
        y = TOP + HIGH - HIGH * budget / top
        picture.line([(LEFT, y), (LEFT + WIDE, y)], tone="bad", thick=2, dashed=True, says="the budget")
        picture.text(LEFT - 8, y, f"budget {bytes_text(budget)}", anchor="end", tone="bad", size=11)
        picture.fact("budget", bytes_text(budget))
    picture.fact(
        "peak",
        f"{bytes_text(peak)} at {case.task_name(order[at])}",
        case.task_key(order[at]),
        "bad" if budget is not None and peak > budget else "",
    )
    picture.text(LEFT, 10, f"rank {rank}: bytes of live values along its {len(order)} tasks", tone="muted", size=11)
    over = budget is not None and peak > budget
    picture.says = (
        "The live values exceed the budget (dashed)."
        if over
        else "Bytes of live values on one rank, the largest apart."
    )
    return picture
