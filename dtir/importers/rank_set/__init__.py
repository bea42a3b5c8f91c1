"""Traces of single ranks joined to one program with each rank's issue order.

Every format has a reader that gives a `RankTrace`; `join` finds which calls and transfers of the ranks meet.
"""

from dtir.importers.rank_set.events import RankTrace
from dtir.importers.rank_set.joining import join

__all__ = ["RankTrace", "join"]
