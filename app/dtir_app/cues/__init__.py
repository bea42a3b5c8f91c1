"""Pictures of findings: which function draws which cue, and what every picture says besides (SEMANTICS 5).

```python
picture = picture_of(store, row, options={})
picture.payload()
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dtir.ir.collectives import AllReduce, ReduceScatter
from dtir.ir.tasks import Collective, PointToPoint, Reshard
from dtir.verify.catalogue.cues import Cue, cue_of
from dtir_app.cues import (
    bytes,
    cover,
    flow,
    group,
    halo,
    lane,
    memory,
    owner,
    pending,
    pipeline,
    place,
    race,
    redundant,
    scale,
    slice,
    symbol,
    value,
)
from dtir_app.cues.case import Case, known_of
from dtir_app.cues.marks import Choice, Picture
from dtir_app.store import Finding, Store

__all__ = ["DRAWERS", "Case", "Picture", "case_of", "draw_cue", "picture_of", "picture_of_selection"]

DRAWERS: Mapping[Cue, Callable[[Case], Picture]] = {
    Cue.PENDING: pending.draw,
    Cue.SCALE: scale.draw,
    Cue.SLICE: slice.draw,
    Cue.OWNER: owner.draw,
    Cue.GROUP: group.draw,
    Cue.COVER: cover.draw,
    Cue.BYTES: bytes.draw,
    Cue.PIPELINE: pipeline.draw,
    Cue.HALO: halo.draw,
    Cue.LANE: lane.draw,
    Cue.RACE: race.draw,
    Cue.REDUNDANT: redundant.draw,
    Cue.MEMORY: memory.draw,
    Cue.FLOW: flow.draw,
    Cue.SYMBOL: symbol.draw,
    Cue.VALUE: value.draw,
    Cue.PLACE: place.draw,
}
"""Who draws what."""

LABELS: Mapping[Cue, str] = {
    Cue.PENDING: "pending reduction",
    Cue.SCALE: "factor",
    Cue.SLICE: "blocks",
    Cue.OWNER: "owners",
    Cue.GROUP: "groups",
    Cue.COVER: "coverage",
    Cue.BYTES: "bytes",
    Cue.LANE: "order of ranks",
    Cue.RACE: "accesses",
    Cue.REDUNDANT: "what could go",
    Cue.MEMORY: "memory",
    Cue.PIPELINE: "schedule",
    Cue.FLOW: "rows sent",
    Cue.HALO: "ghosts",
    Cue.SYMBOL: "sizes",
    Cue.VALUE: "first wrong value",
    Cue.PLACE: "place",
}
"""What a switch calls a picture."""


def case_of(store: Store, finding: Finding, options: Mapping[str, object]) -> Case:
    """A finding as the subject of a picture."""
    return Case(store, finding, finding.tasks, finding.values, options)


def picture_of(store: Store, row: int, options: Mapping[str, object]) -> Picture:
    """The picture of a finding of a store, by its row."""
    finding = store.findings[row]
    cue = cue_of(finding.code)
    shown = Cue.VALUE if options.get("picture") == "value" else cue
    picture = draw_cue(shown, case_of(store, finding, options))
    if cue is not Cue.VALUE and known_of(store).context is not None:
        labels = (("rule", LABELS[cue]), ("value", LABELS[Cue.VALUE]))
        picture.choices.insert(0, Choice("picture", "picture", labels, "value" if shown is Cue.VALUE else "rule"))
    return picture


def picture_of_selection(store: Store, task: int, value: int, options: Mapping[str, object]) -> Picture:
    """A picture of a task or value about which nothing was found, by the marks of the cues: what is right looks like this."""
    case = Case(store, None, (task,) if task >= 0 else (), (value,) if value >= 0 else (), options)
    offered = _offered(case)
    chosen = next((cue for cue in offered if cue.value == options.get("picture")), offered[0])
    picture = draw_cue(chosen, case)
    labels = tuple((cue.value, LABELS[cue]) for cue in offered)
    if len(labels) > 1:
        picture.choices.insert(0, Choice("picture", "picture", labels, chosen.value))
    return picture


def _offered(case: Case) -> list[Cue]:
    """The cues that have something to show of a selection, the most telling one first."""
    if case.known.context is None or case.task < 0:
        return [Cue.PLACE] if case.known.context is None else [Cue.SLICE, Cue.OWNER]
    record = case.record(case.task)
    found: list[Cue] = []
    match record.body:
        case Collective(spec=AllReduce() | ReduceScatter()):
            found = [Cue.PENDING, Cue.SLICE, Cue.GROUP, Cue.BYTES, Cue.LANE]
        case Collective():
            found = [Cue.SLICE, Cue.PENDING, Cue.GROUP, Cue.BYTES, Cue.LANE]
        case PointToPoint():
            found = [Cue.LANE, Cue.BYTES, Cue.OWNER]
        case Reshard(regions=regions):
            found = [Cue.COVER, Cue.SLICE] if regions else [Cue.SLICE, Cue.PENDING]
        case _:
            found = [Cue.PENDING, Cue.SLICE, Cue.OWNER]
    if any(
        case.value(value).sharding.halo is not None for value in (*case.operands(case.task), *case.outputs(case.task))
    ):
        found.insert(0, Cue.HALO)
    if record.pipeline is not None:
        found.insert(0, Cue.PIPELINE)
    if record.effects:
        found += [Cue.RACE, Cue.MEMORY]
    return [*found, Cue.VALUE]


def draw_cue(cue: Cue, case: Case) -> Picture:
    """One picture; where a cue has nothing to draw, the place of the finding."""
    picture = DRAWERS.get(cue, place.draw)(case)
    if not picture.marks and not picture.busy:
        other = place.draw(case)
        picture.marks, picture.width, picture.height = other.marks, other.width, other.height
        picture.says = picture.says or other.says
    finding = case.finding
    if finding is not None:
        remark = (
            "a remark: nothing is to be mended"
            if finding.severity == "info"
            else "no rule knows a repair; see the message"
        )
        picture.fix = sentence(finding.hint or remark)
        for label, path in finding.related[:8]:
            picture.fact("see also", f"{label} ({path})")
    elif not picture.fix:
        picture.fix = "Nothing was found here: the same marks show what is right."
    return picture


def sentence(text: str) -> str:
    """A hint as a sentence."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
