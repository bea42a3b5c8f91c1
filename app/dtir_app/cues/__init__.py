"""Pictures of findings: which function draws which cue, and what every picture says besides (SEMANTICS 5).

```python
picture = picture_of(store, row, options={})
picture.payload()
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dtir.verify.catalogue.cues import Cue, cue_of
from dtir_app.cues import lane, pending, place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.store import Finding, Store

__all__ = ["DRAWERS", "Case", "Picture", "case_of", "draw_cue", "picture_of"]

DRAWERS: Mapping[Cue, Callable[[Case], Picture]] = {
    Cue.PENDING: pending.draw,
    Cue.LANE: lane.draw,
    Cue.PLACE: place.draw,
}
"""Who draws what."""


def case_of(store: Store, finding: Finding, options: Mapping[str, object]) -> Case:
    """A finding as the subject of a picture."""
    return Case(store, finding, finding.tasks, finding.values, options)


def picture_of(store: Store, row: int, options: Mapping[str, object]) -> Picture:
    """The picture of a finding of a store, by its row."""
    finding = store.findings[row]
    return draw_cue(cue_of(finding.code), case_of(store, finding, options))


def draw_cue(cue: Cue, case: Case) -> Picture:
    """One picture; where a cue has nothing to draw, the place of the finding."""
    picture = DRAWERS.get(cue, place.draw)(case)
    if not picture.marks and not picture.busy:
        other = place.draw(case)
        picture.marks, picture.width, picture.height = other.marks, other.width, other.height
        picture.says = picture.says or other.says
    finding = case.finding
    if finding is not None:
        picture.fix = sentence(finding.hint or "see the message; no repair is known to a rule")
        for label, path in finding.related[:8]:
            picture.fact("see also", f"{label} ({path})")
    elif not picture.fix:
        picture.fix = "Nothing was found here: the same marks show what is right."
    return picture


def sentence(text: str) -> str:
    """A hint as a sentence."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
