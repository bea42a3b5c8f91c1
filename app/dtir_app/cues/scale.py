"""The factor by which a value exceeds its specification, as a badge that travels with it (``scale.*`` and its kin)."""

from __future__ import annotations

from fractions import Fraction

from dtir.analysis.abstract import ONE
from dtir.analysis.deviations import Kind
from dtir.analysis.scale import factor_axes
from dtir_app.cues.case import Case
from dtir_app.cues.chain import TILE_H, TILE_W, draw_arrows, draw_tasks, draw_tiles, lay_out
from dtir_app.cues.marks import Picture
from dtir_app.text import plural

MOST_UP, MOST_DOWN = 4, 3


def draw(case: Case) -> Picture:
    """The chain from where the factor comes in to where it shows."""
    picture = Picture("scale")
    item = case.deviation
    if item is not None and item.kind is Kind.UNEVEN_MEAN:
        return _parts(case, picture)
    main = case.task
    if main < 0:
        return picture
    factors = _factors(case, main)
    origin = _origin(case, main)
    tasks = _chain(case, main, origin, factors)
    chain = lay_out(case, tasks)
    culprit = origin if origin >= 0 else main
    wrong = [
        value for value in chain.values if factors.get(value, ONE) != ONE and not case.store.values.readers_of(value)
    ]
    draw_arrows(case, picture, chain)
    draw_tiles(case, picture, chain, wrong=wrong if case.finding is not None else ())
    draw_tasks(case, picture, chain, wrong=[culprit] if case.finding is not None else ())
    for value, (x, y) in chain.values.items():
        factor = factors.get(value, ONE)
        if factor is None:
            picture.badge(
                x - TILE_W / 2 + 18, y - TILE_H / 2, "×?", tone="bad", says="factors that do not fit met here"
            )
        elif factor != ONE:
            words = f"×{factor}{_axes(case, factor)}"
            picture.badge(
                x - TILE_W / 2 + 34, y - TILE_H / 2, words, tone="bad" if value in wrong else "warn", strong=True
            )
        picture.fact(
            case.value_name(value), _words(case, factor), case.value_key(value), "bad" if value in wrong else ""
        )
    name = case.task_name(culprit)
    if case.finding is None:
        picture.says = "No badge: every value is once its specification."
    elif item is not None and item.kind is Kind.SCALE_MIXED:
        picture.says = f"The factor of an operand meets {case.task_name(main)}, through which it does not pass."
    elif item is not None and item.kind is Kind.TOKEN_WEIGHT:
        picture.says = f"{name} weighs every rank alike, though each divided by a number of its own."
    else:
        picture.says = f"The factor comes in at {name} and travels with the value; at an output it is wrong."
    picture.explain("box", "warn", "k times the specification")
    return picture


def _factors(case: Case, main: int) -> dict[int, Fraction | None]:
    """Factors of values as they follow; the result of a reduction of equal copies by its group."""
    found: dict[int, Fraction | None] = {}
    item, context = case.deviation, case.known.context
    scope = int(case.store.tasks.scope[main])
    if scope < len(case.known.flows):
        first = case.store.scopes[scope].first_value
        flow = case.known.flows[scope]
        for identifier, place in flow.position.items():
            known = flow.values.get(identifier)
            if known is not None and known.known:
                found[first + place] = known.scale
    if item is not None and context is not None and item.kind is Kind.REDUCE_REPLICATED:
        for value in case.outputs(main):
            if found.get(value, ONE) == ONE:
                found[value] = Fraction(context.around.space.count(item.axes))
    return found


def _origin(case: Case, main: int) -> int:
    """The task that brought the factor in."""
    scope = int(case.store.tasks.scope[main])
    if scope >= len(case.known.flows):
        return -1
    flow = case.known.flows[scope]
    for value in (*case.values, *case.outputs(main), *case.operands(main)):
        index = flow.origin.get(case.value(value).id)
        if index is not None:
            return case.store.scopes[scope].first_task + index
    return -1


def _chain(case: Case, main: int, origin: int, factors: dict[int, Fraction | None]) -> list[int]:
    found, front = [main], [main]
    for _ in range(MOST_UP):
        makers = [
            int(case.store.values.producer[value])
            for task in front
            for value in case.operands(task)
            if factors.get(value, ONE) != ONE
        ]
        front = [task for task in dict.fromkeys(makers) if task >= 0 and task not in found][:2]
        found += front
    if origin >= 0 and origin not in found:
        found.append(origin)
    front = [main]
    for _ in range(MOST_DOWN):
        readers = [
            reader
            for task in front
            for value in case.outputs(task)
            if factors.get(value, ONE) != ONE
            for reader in case.store.values.readers_of(value)
        ]
        front = [task for task in dict.fromkeys(readers) if task not in found][:2]
        found += front
    return [task for task in found if len(case.operands(task)) <= 6 or task == main]


def _axes(case: Case, factor: Fraction) -> str:
    context = case.known.context
    if context is None:
        return ""
    sizes = dict(context.around.space.sizes)
    named = case.axes
    found = factor_axes(factor, {axis: sizes[axis] for axis in (*named, *sizes) if axis in sizes})
    if found is None:
        return ""
    names, _ = found
    return f" {'·'.join(names)}"


def _words(case: Case, factor: Fraction | None) -> str:
    if factor is None:
        return "a factor that is not one number any more"
    if factor == ONE:
        return "once its specification"
    axes = _axes(case, factor)
    return f"{factor} times its specification{f' (the size of{axes})' if axes else ''}"


def _parts(case: Case, picture: Picture) -> Picture:
    """A mean of means: parts to scale, with the weight that each element gets."""
    item = case.deviation
    assert item is not None
    value = case.operand(item.operand if item.operand is not None else 0)
    sizes = _sizes(case, value, item.axes)
    total, x = sum(sizes) or 1, 0.0
    wide = 520.0
    for number, size in enumerate(sizes):
        part = wide * size / total
        tone = f"axis-{case.axis_number(item.axes[0]) if item.axes else 0}"
        picture.rect(
            x,
            24,
            max(part, 2),
            46,
            fill="plain",
            stroke="muted",
            hatch=tone,
            turn=number % 2,
            says=f"shard {number}: {plural(size, 'element')}",
        )
        picture.badge(x + part / 2, 47, f"{size}", tone="raised")
        weight = Fraction(1, len(sizes) * size) if size else Fraction(0)
        picture.text(
            x + part / 2,
            86,
            f"each counts 1/{weight.denominator}" if size else "counts nothing",
            anchor="middle",
            size=11,
            tone="bad",
        )
        picture.fact(
            f"shard {number}",
            f"{plural(size, 'element')}, each counts {weight} instead of {Fraction(1, total)}",
            tone="bad" if weight != Fraction(1, total) else "",
        )
        x += part
    name = case.value_name(value) if value >= 0 else "the operand"
    picture.text(0, 8, f"{name}, cut along {', '.join(item.axes)}", bold=True)
    picture.text(wide / 2, 108, f"right: each counts 1/{total}", anchor="middle", size=11, tone="good")
    picture.says = "The mean of the parts' means weighs elements of small parts more than those of large ones."
    return picture


def _sizes(case: Case, value: int, axes: tuple[str, ...]) -> list[int]:
    context, declared = case.known.context, case.declared(value) if value >= 0 else None
    if context is None or declared is None:
        return []
    for dim, own in enumerate(declared.dims):
        if set(axes) & set(own):
            explicit = declared.size_of(dim)
            if explicit is not None:
                return list(explicit)
            extent, count = context.around.number(case.value(value).type.shape[dim]), context.around.space.count(own)
            if extent is not None and count <= 64:
                step = -(-extent // count)
                return [max(0, min(extent, (at + 1) * step) - at * step) for at in range(count)]
    return []
