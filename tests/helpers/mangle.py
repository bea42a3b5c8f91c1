"""Cutting and mixing up text, for readers that must refuse what they cannot read."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutate(text: str, rng: random.Random, pieces: Sequence[str]) -> str:
    """One to five changes: something put in, left out, said twice, or overwritten; a line lost, the end cut off."""
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + rng.choice(pieces) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randrange(1, 90) :]
            case 2:
                start = rng.randrange(len(text) + 1)
                text = text[:at] + text[start : start + rng.randrange(200)] + text[at:]
            case 3:
                lines = text.split("\n")
                lines.pop(rng.randrange(len(lines)))
                text = "\n".join(lines)
            case _:
                text = text[:at] if rng.random() < 0.3 else text[:at] + rng.choice(pieces) + text[at + 1 :]
    return text
