"""Which picture shows a finding: one kind of picture for each code (SEMANTICS 5).

>>> cue_of("deadlock.cycle"), cue_of("hlo.syntax")
(<Cue.LANE: 'lane'>, <Cue.PLACE: 'place'>)
"""

from __future__ import annotations

from enum import Enum
from functools import cache

from dtir.verify.catalogue import TABLE


class Cue(Enum):
    """Kinds of pictures.

    | cue | picture |
    |---|---|
    | pending | the chain of values from where a reduction becomes due to where it should have happened |
    | scale | the factor that travels with a value |
    | slice | blocks of a tensor, as declared beside as they follow |
    | owner | ranks of the mesh that hold a value, beside those that work on it |
    | group | groups on the mesh, declared and expected, with their roots |
    | cover | the destination of a reshard with how often every element is written |
    | bytes | what is declared beside what is derived, with the formula |
    | lane | ranks by time, with who waits for whom |
    | race | accesses of a resource without an order |
    | redundant | tasks that could be one, or none |
    | memory | live bytes by time and rank |
    | pipeline | stages by time, with the bubble |
    | flow | who sends how many rows to whom |
    | halo | a block with its frame of ghosts, beside what the stencil reads |
    | symbol | facts on symbolic sizes that are assumed, and that are missing |
    | value | where a value is wrong, rank by rank, and what would mend it |
    | place | the task with what it reads and makes, for codes without a picture of their own |
    """

    PENDING = "pending"
    SCALE = "scale"
    SLICE = "slice"
    OWNER = "owner"
    GROUP = "group"
    COVER = "cover"
    BYTES = "bytes"
    LANE = "lane"
    RACE = "race"
    REDUNDANT = "redundant"
    MEMORY = "memory"
    PIPELINE = "pipeline"
    FLOW = "flow"
    HALO = "halo"
    SYMBOL = "symbol"
    VALUE = "value"
    PLACE = "place"


@cache
def _cues() -> dict[str, Cue]:
    return {entry.code: Cue(entry.cue) for entry in TABLE}


def cue_of(code: str) -> Cue:
    """The picture of a code; `Cue.PLACE` for a code that has none of its own."""
    return _cues().get(code, Cue.PLACE)
