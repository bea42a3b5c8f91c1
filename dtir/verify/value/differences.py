"""By how much a wrong value is wrong, rank by rank: for pictures.

>>> # RankDifference(rank=1, replica=0, wrong=4, elements=8, at=(3,), found=0.5, wanted=1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dtir.verify.value.case import CaseValue
from dtir.verify.value.compare import RELATIVE, Meaning
from dtir.verify.value.grid import Grid

MOST_RANKS = 256
"""Ranks that are looked at."""


@dataclass(frozen=True, slots=True)
class RankDifference:
    """What one rank's block of a value means, beside the specification.

    Args:
        rank: who holds the block.
        replica: number of the copy that it belongs to.
        wrong: elements that differ.
        elements: elements of the block.
        at: index in the undivided value where they differ most; empty for a scalar.
        found, wanted: the two numbers there.
    """

    rank: int
    replica: int
    wrong: int
    elements: int
    at: tuple[int, ...]
    found: float
    wanted: float

    @property
    def ratio(self) -> float | None:
        """How many times the wanted number the found one is; None for a wanted zero."""
        return self.found / self.wanted if self.wanted else None


def differences(value: CaseValue, meanings: Sequence[Meaning], grid: Grid) -> tuple[RankDifference, ...]:
    """The differences of all replicas' ranks, in rank order; of a pending value each share counts with its block."""
    found: dict[int, RankDifference] = {}
    for number, meaning in enumerate(meanings):
        if meaning.found.shape != meaning.wanted.shape:
            continue
        for rank in meaning.ranks:
            if len(found) >= MOST_RANKS:
                break
            spans = value.block(grid, rank)
            block = tuple(slice(span.start, span.stop) for span in spans)
            found.setdefault(rank, _one(rank, number, meaning, block))
    return tuple(found[rank] for rank in sorted(found))


def _one(rank: int, replica: int, meaning: Meaning, block: tuple[slice, ...]) -> RankDifference:
    held, wanted = np.asarray(meaning.found[block], dtype=float), np.asarray(meaning.wanted[block], dtype=float)
    if not held.size:
        return RankDifference(rank, replica, 0, 0, (), 0.0, 0.0)
    with np.errstate(all="ignore"):
        apart = np.where(np.isfinite(wanted), np.abs(held - wanted), 0.0)
        apart = np.where(np.isnan(apart), np.inf, apart)
        wrong = apart > RELATIVE * np.where(np.isfinite(wanted), np.abs(wanted), 0.0) + 1e-12
    place = np.unravel_index(int(np.argmax(apart)), apart.shape)
    at = tuple(int(step) + (span.start or 0) for step, span in zip(place, block, strict=True))
    return RankDifference(
        rank, replica, int(wrong.sum()), int(held.size), at, float(held[place]), float(wanted[place])
    )  # fmt: skip
