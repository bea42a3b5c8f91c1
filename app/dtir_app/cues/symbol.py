"""Facts on symbolic sizes: what is assumed, what a split needs, what is missing (``symbol.*``)."""

from __future__ import annotations

from dtir.analysis.scalars import scalar_text
from dtir_app.cues.case import Case
from dtir_app.cues.marks import CHAR_PX, Picture

ROW = 34.0


def draw(case: Case) -> Picture:
    """Formulas as chips: needed and known, needed and missing, assumed."""
    picture = Picture("symbol")
    context = case.known.context
    if context is None:
        return picture
    value = case.values[0] if case.values else next(iter(case.operands(case.task)), -1) if case.task >= 0 else -1
    if value < 0:
        return picture
    record = case.value(value)
    dims = set(case.deviation.dims) if case.deviation is not None else set[int]()
    y = 8.0
    picture.text(
        0,
        y,
        f"{case.value_name(value)} {case.store.values.shape[value]} {case.store.values.layout[value]}",
        bold=True,
        mono=True,
    )
    y += 26
    state = case.declared(value)
    for dim, extent in enumerate(record.type.shape):
        text = scalar_text(extent).replace("workload.", "")
        marked = dim in dims
        axes = state.dims[dim] if state is not None and dim < len(state.dims) else ()
        picture.text(0, y + 12, f"dim {dim}", tone="muted")
        right = _chip(picture, 50, y, f"{text}", "bad" if marked and case.code == "symbol.ambiguous" else "muted")
        if axes:
            count = context.around.space.count(axes)
            known = context.around.facts.known_multiple(extent) % count == 0
            tone = "good" if known else "bad"
            words = f"{text} % {count} = 0 {'✓' if known else '?'}"
            right = _chip(picture, right + 14, y, words, tone)
            picture.text(right + 10, y + 12, f"needed: {'·'.join(axes)} cuts it into {count}", tone="muted", size=11)
            picture.fact(
                f"dim {dim}",
                f"{text} must divide by {count} ({', '.join(axes)}): {'known' if known else 'nothing says so'}",
                tone="" if known else "bad",
            )
        else:
            picture.fact(f"dim {dim}", f"{text}, not cut", tone="bad" if marked else "")
        y += ROW
    picture.text(0, y + 12, "assumed", tone="muted")
    x = 64.0
    for item in case.store.program.assume[:12]:
        x = _chip(picture, x, y, item, "good") + 8
    if not case.store.program.assume:
        picture.text(x, y + 12, "nothing", tone="muted")
    picture.fact("assumed", "; ".join(case.store.program.assume[:12]) or "nothing")
    bindings = ", ".join(
        f"{name.replace('workload.', '')} = {number}" for name, number in list(case.store.program.bindings.items())[:12]
    )
    if bindings:
        picture.fact("bound to", bindings)
    picture.explain("box", "good", "known")
    picture.explain("box", "bad", "missing")
    if case.code == "symbol.ambiguous":
        picture.says = f"Two dims of {case.value_name(value)} may have one extent: which of them is meant is not said."
    elif case.finding is None:
        picture.says = "Everything that the splits need is assumed or known."
    else:
        picture.says = "The red formula is needed for the split, and nothing says that it holds."
    return picture


def _chip(picture: Picture, x: float, y: float, text: str, tone: str) -> float:
    wide = len(text) * CHAR_PX * 1.1 + 18
    picture.rect(x, y, wide, 24, fill="raised", stroke=tone, thick=2 if tone != "muted" else 1, round=12, says=text)
    picture.text(x + wide / 2, y + 12, text, anchor="middle", mono=True, tone="text" if tone == "muted" else tone)
    return x + wide
