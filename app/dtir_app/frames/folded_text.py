"""What folding leaves out of a picture, in words."""

from __future__ import annotations

import numpy as np

from dtir_app.items import Instances, Scene
from dtir_app.text import count_text, plural, shorten

_NAMED = 3
SAID_APART = 2
"""Families up to this number have a phrase each."""


def folded_lines(at: Scene) -> list[str]:
    """What is folded at a place, a phrase each."""
    families = [item for item in at.families if item.folded]
    made = [family_line(item) for item in families] if len(families) <= SAID_APART else [_together(families)]
    missing = int(np.count_nonzero(at.absent))
    if missing:
        made.append(f"{plural(missing, 'item')} that only other instances have not drawn")
    if at.is_folded:
        folded = (at.folded.size > 1) & ~at.absent
        blocks, inside = int(np.count_nonzero(folded)), int(at.folded.size[folded].sum())
        if blocks:
            made.append(f"{plural(inside, 'local task')} folded into {plural(blocks, 'block')}")
    return made


def _together(folded: list[Instances]) -> str:
    """Several families in one phrase."""
    hidden = sum(len(item.family.numbers) - 1 for item in folded)
    total = sum(len(item.family.numbers) for item in folded)
    different = sum(len(item.family.differences) for item in folded)
    differ = f", {count_text(different)} differ" if different else ""
    return f"{count_text(hidden)} of {count_text(total)} instances of {plural(len(folded), 'family', 'families')} folded{differ}"


def family_line(item: Instances, *, full: bool = False) -> str:
    """``79 of 80 identical layers folded``; what differs is said too, shortened unless it is wanted in full."""
    family = item.family
    words = f"{count_text(len(family.numbers) - 1)} of {count_text(len(family.numbers))}"
    if not family.differences:
        return f"{words} identical {family.nouns} folded"
    few = sorted(family.differences)[: _NAMED if full else 1]
    more = len(family.differences) - len(few)
    said = "; ".join(
        f"{family.noun} {number} differs: {family.differences[number] if full else shorten(family.differences[number], 40)}"
        for number in few
    )
    return f"{words} {family.nouns} folded ({said}{f'; {count_text(more)} more differ' if more else ''})"
