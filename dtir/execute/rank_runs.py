"""Sets of ranks as a run record writes them: first and last of consecutive ones."""

from __future__ import annotations

from collections.abc import Sequence


def runs_of(ranks: Sequence[int]) -> list[list[int]]:
    """Ascending ranks as first and last of consecutive ones.

    >>> runs_of((0, 1, 2, 7))
    [[0, 2], [7, 7]]
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return runs


MOST_MEMBERS = 1_000_000
"""Members of all sets of ranks of a record together: a short file cannot ask for more memory than that."""


def expanded(sets: Sequence[Sequence[Sequence[int]]]) -> tuple[tuple[int, ...], ...]:
    """Sets of ranks from their runs.

    Raises:
        ValueError: they have more than `MOST_MEMBERS` members together, or a run ends before it begins.
    """
    found: list[tuple[int, ...]] = []
    members = 0
    for runs in sets:
        for first, last in runs:
            if not 0 <= first <= last:
                raise ValueError(f"[{first}, {last}] is no run of ranks")
            members += last - first + 1
            if members > MOST_MEMBERS:
                raise ValueError(f"the sets of ranks have more than {MOST_MEMBERS} members")
        found.append(tuple(rank for first, last in runs for rank in range(first, last + 1)))
    return tuple(found)
