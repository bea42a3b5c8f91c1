"""What every reader of a format is: a function from a source to one rank's trace, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dtir.importers.base import Source
from dtir.importers.rank_set.events import RankTrace
from dtir.importers.rank_set.naming import rank_in_name
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag
from dtir.schema.result import Result

RankReader: TypeAlias = Callable[[Source], Result[RankTrace, Diagnostic]]


def settle_rank(source: Source, stated: int | None, bag: DiagnosticBag) -> int | None:
    """Whose file it is: as the content states, else as the name does."""
    named = rank_in_name(source.name)
    if stated is None or stated < 0:
        return named
    if named is not None and named != stated:
        bag.warning(
            "trace.rank_conflict",
            f"{source.label} is named after rank {named} and says that it is of rank {stated}",
            hint="rename the file",
            subject=(f"rank {stated}",),
        )
    return stated
