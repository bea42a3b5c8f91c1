"""Program-level facts about order and resources: per-rank issue lists and limits."""

from __future__ import annotations

from dtir.ir.ids import NodeId
from dtir.schema.authoring import record
from dtir.schema.refinements import NonEmptyText, NonNegativeInt


@record("dtir.ir.issue-list")
class IssueList:
    """In which order one rank issues its tasks; a step with several tasks issues them together (a grouped call)."""

    rank: NonNegativeInt
    steps: tuple[tuple[NodeId, ...], ...]


@record("dtir.ir.limit")
class Limit:
    """An upper bound that the program claims for itself, for example ``inflight`` microbatches or ``peak_bytes``.

    `rank` None means every rank.
    """

    name: NonEmptyText
    value: NonNegativeInt
    rank: NonNegativeInt | None = None
