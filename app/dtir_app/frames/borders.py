"""Borders around what repeats: one a row of the picture, with the name and number of the instance that is shown."""

from __future__ import annotations

import numpy as np

from dtir_app.frames.placing import Placed
from dtir_app.items import Instances, Scene
from dtir_app.text import count_text

BORDER_COLUMNS = ("left", "right", "top", "bottom", "label", "key")
PAD = 0.06
STRANGERS = 0.2
"""Share of other items inside a border beyond which it would mislead, and is left out; the cards behind the items stay."""


def borders_of(at: Scene, placed: Placed) -> dict[str, list[object]]:
    """The borders of the folded families of a scene."""
    made: dict[str, list[object]] = {name: [] for name in BORDER_COLUMNS}
    family = at.family[placed.items] if len(placed.items) else at.family
    for number, instances in enumerate(at.families):
        if not instances.folded:
            continue
        member = family == number
        labelled = False
        for row in np.unique(placed.row[member]).tolist():
            here = member & (placed.row == row)
            left, right = float(placed.x[here].min()) - 0.5 + PAD, float(placed.x[here].max()) + 0.5 - PAD
            within = (placed.row == row) & (placed.x > left) & (placed.x < right)
            if np.count_nonzero(within & ~here) > STRANGERS * np.count_nonzero(within):
                continue
            made["left"].append(left)
            made["right"].append(right)
            made["top"].append(float(placed.y[within].min()) - 0.5)
            made["bottom"].append(float(placed.y[within].max()) + 0.5 - PAD)
            made["label"].append("" if labelled else border_label(instances))
            made["key"].append(instances.family.key)
            labelled = True
    return made


def border_label(instances: Instances) -> str:
    """``×80 layers: layer 3 shown``"""
    family = instances.family
    return f"×{count_text(len(family.numbers))} {family.nouns}: {family.noun} {instances.number} shown"
