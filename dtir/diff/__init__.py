"""Semantic difference of two programs: matched by lineage, then by structure; never by number or order of names.

>>> from dtir.diff import diff_programs
>>> diff_programs  # doctest: +ELLIPSIS
<function diff_programs at ...>
"""

from __future__ import annotations

from dtir.diff.entries import Change, Match, Present
from dtir.diff.programs import Diff, diff_programs

__all__ = ["Change", "Diff", "Match", "Present", "diff_programs"]
