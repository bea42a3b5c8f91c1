"""Where a value is wrong, rank by rank; back to the task that makes it of right operands; and changes that would mend it.

The value-level judge runs the program on small data. A change that it proposes is a button: the judge runs again with the
change made, and says whether everything is right then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from dtir.verify.value import BadValue, ValueVerdict
from dtir.verify.value.differences import RankDifference
from dtir_app.cues.case import Case
from dtir_app.cues.chain import draw_arrows, draw_tasks, draw_tiles, lay_out
from dtir_app.cues.marks import Button, Choice, Picture
from dtir_app.cues.ranks import Cell, draw_ranks
from dtir_app.cues.verdicts import Made
from dtir_app.text import plural, ranks_text

MOST_BUTTONS = 8
MOST_UP = 2


def draw(case: Case) -> Picture:
    """The first wrong value, or that of the finding."""
    picture = Picture("value")
    verdicts = case.known.verdicts
    if case.known.context is None:
        picture.says = "The program is structurally broken, so that its values cannot be judged."
        return picture
    if verdicts.too_large:
        picture.says = (
            "The program is too large to be judged by its values from here; `dtir verify --judge value` does it."
        )
        return picture
    made = _texts(case.options.get("made"))
    verdict = verdicts.known(made)
    if verdict is None:
        picture.busy = "The judge runs the program on small data and compares every value …"
        picture.says = "Every value is compared with what the undivided program computes."
        picture.wants.append(made)
        return picture
    if made:
        picture.buttons.append(Button("over", "Start over without repairs"))
        picture.fact("made so far", "; ".join(made))
    _notes(picture, verdict)
    if not verdict.bad:
        _all_right(case, picture, verdict, made)
        return picture
    bad = _chosen(case, picture, verdict)
    _trail(case, picture, bad)
    _map(case, picture, bad)
    _repairs(case, picture, bad, made)
    return picture


def _texts(item: object) -> Made:
    return tuple(str(text) for text in cast("Sequence[object]", item)) if isinstance(item, (tuple, list)) else ()


def _notes(picture: Picture, verdict: ValueVerdict) -> None:
    if verdict.reduced:
        picture.fact("judged on", f"a smaller run: {verdict.reduced}")
    for item in verdict.diagnostics:
        if item.code in ("value.skipped", "value.unknown"):
            picture.fact(item.code, item.message)
    if verdict.judged:
        picture.fact("compared", plural(len(verdict.judged), "value"))


def _all_right(case: Case, picture: Picture, verdict: ValueVerdict, made: Made) -> None:
    judged = len(verdict.judged)
    picture.says = (
        f"All {plural(judged, 'compared value')} are right{' with the repair made' if made else ''}."
        if judged
        else "No value could be compared."
    )
    tasks = list(case.tasks[:1]) if case.tasks else [case.task] if case.task >= 0 else []
    chain = lay_out(case, tasks, extra=case.values[:4])
    draw_arrows(case, picture, chain)
    draw_tiles(case, picture, chain)
    draw_tasks(case, picture, chain, good=tasks if judged else ())


def _chosen(case: Case, picture: Picture, verdict: ValueVerdict) -> BadValue:
    """The bad value to show: as chosen, else the one that the finding speaks of, else the first."""
    store = case.store
    numbers = [store.value_at(0, bad.value.value) for bad in verdict.bad]
    spoken = [*case.values, *(case.outputs(case.task) if case.task >= 0 else ())]
    first = next((at for at, number in enumerate(numbers) if number in spoken), 0)
    names = [str(at) for at in range(len(verdict.bad))]
    chosen = str(case.options.get("bad", first))
    at = names.index(chosen) if chosen in names else first
    if len(verdict.bad) > 1:
        options = tuple((str(number), bad.name) for number, bad in enumerate(verdict.bad[:12]))
        picture.choices.append(Choice("bad", "wrong value", options, str(at)))
    return verdict.bad[at]


def _trail(case: Case, picture: Picture, bad: BadValue) -> None:
    """Right operands, the task, the wrong result."""
    store = case.store
    value = store.value_at(0, bad.value.value)
    task = int(store.values.producer[value]) if value >= 0 else -1
    tasks = [task] if task >= 0 else []
    front = tasks
    for _ in range(MOST_UP):
        makers = {int(store.values.producer[operand]) for item in front for operand in case.operands(item)}
        front = sorted(maker for maker in makers if maker >= 0 and maker not in tasks)[:2]
        tasks += front
    tasks = [item for item in tasks if len(case.operands(item)) <= 6 or item == task]
    chain = lay_out(case, tasks, extra=[value] if value >= 0 else ())
    draw_arrows(case, picture, chain, wrong=[(value, task, False)])
    draw_tiles(case, picture, chain, wrong=[value])
    draw_tasks(case, picture, chain, wrong=[task], good=[item for item in tasks if item != task])
    for number, (x, y) in chain.values.items():
        sign = "✗" if number == value else "✓"
        picture.badge(x + 40, y + 25, sign, tone="bad" if number == value else "good")
    words = "; ".join(item.text for item in bad.findings)
    made_by = (
        f"{bad.task} makes {bad.name} of operands that are right: it is the first wrong value on its way."
        if bad.task
        else f"The input {bad.name} is wrong."
    )
    picture.says = made_by
    picture.fact(bad.name, words, case.value_key(value) if value >= 0 else "", "bad")
    if bad.likeness is not None:
        picture.fact("it looks like", bad.likeness.text)
    picture.explain("box", "good", "right")
    picture.explain("box", "bad", "wrong")


def _map(case: Case, picture: Picture, bad: BadValue) -> None:
    """The difference on every rank."""
    top = picture.height + 22
    by_rank = {item.rank: item for item in bad.differences}
    bad_ranks = {rank for finding in bad.findings for rank in finding.ranks}
    value = case.store.value_at(0, bad.value.value)
    owners = set(case.value(value).owners[:4096]) if value >= 0 else set[int]()

    def look(rank: int) -> Cell:
        item = by_rank.get(rank)
        if item is None:
            wrong = rank in bad_ranks
            held = rank in owners
            words = "wrong" if wrong else "" if held else "–"
            return Cell(
                "plain",
                "bad" if wrong else "muted",
                words,
                2.5 if wrong else 1.2,
                not held,
                "bad" if wrong else "",
                f"rank {rank}",
            )
        return _cell(item)

    draw_ranks(case, picture, 0, top, look, title=f"{bad.name} by rank", width=88, height=44)
    for item in bad.differences[:16]:
        picture.fact(f"rank {item.rank}", _difference_words(item), tone="bad" if item.wrong else "good")
    if len(bad.differences) > 16:
        rest = [item.rank for item in bad.differences[16:] if item.wrong]
        picture.fact("also wrong", f"ranks {ranks_text(rest)}" if rest else "nowhere else")


def _cell(item: RankDifference) -> Cell:
    if not item.wrong:
        return Cell("plain", "good", "right", 2, says=f"rank {item.rank}: right")
    ratio = item.ratio
    shown = f"×{ratio:.3g}" if ratio is not None and item.wrong == item.elements else f"{item.wrong} of {item.elements}"
    return Cell("plain", "bad", shown, 2.5, hatch="bad", says=f"rank {item.rank}: {_difference_words(item)}")


def _difference_words(item: RankDifference) -> str:
    if not item.wrong:
        return f"all {item.elements} elements are right"
    at = f" at {list(item.at)}" if item.at else ""
    return (
        f"{item.wrong} of {item.elements} elements differ, most{at}: {item.found:.4g} found, {item.wanted:.4g} wanted"
    )


def _repairs(case: Case, picture: Picture, bad: BadValue, made: Made) -> None:
    tried = _texts(case.options.get("tried"))
    for repair in bad.repairs[:MOST_BUTTONS]:
        button = Button(f"try:{repair.text}", repair.text)
        if repair.text in tried:
            later = (*made, repair.text)
            verdict = case.known.verdicts.known(later)
            if verdict is None:
                button = Button(button.name, button.label, "busy", "the judge runs …")
                picture.wants.append(later)
            else:
                button = _tried(button, bad, verdict)
        picture.buttons.append(button)
        if button.state == "next":
            picture.buttons[-1] = Button(button.name, button.label, "good", button.note)
            picture.buttons.append(Button(f"keep:{repair.text}", "Make it, and look at what is wrong next"))
    if not bad.repairs:
        picture.fact("repairs", "no single change of this task makes it right")


def _tried(button: Button, bad: BadValue, verdict: ValueVerdict) -> Button:
    """What came of a repair."""
    if any(item.value == bad.value for item in verdict.bad):
        return Button(button.name, button.label, "bad", f"{bad.name} is still wrong")
    if not verdict.bad:
        count = len(verdict.judged)
        return Button(
            button.name, button.label, "good", f"{bad.name} is right, and so are all {plural(count, 'compared value')}"
        )
    first = verdict.bad[0]
    words = first.likeness.text if first.likeness is not None else first.findings[0].text
    return Button(button.name, button.label, "next", f"{bad.name} is right; next {first.name} is wrong: {words}")
