"""Who owns which rows of a field, and who borrows which: the arrays that storage policies work on.

A field is one array ``(rows, *features)``; a row is an atom, a cell, a node. Every row has one owner. A rank holds the rows it owns
in ascending order, behind them the rows it borrows (ghosts), in the order that the layout lists them.

>>> import numpy as np
>>> layout = RowLayout.contiguous((2, 1))
>>> layout.rows, [owned.tolist() for owned in layout.owned]
(3, [[0, 1], [2]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dtir.spec.errors import SpecError

Array = Any
"""An array of an array module `xp` (numpy, cupy)."""
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowLayout:
    """Rows by rank.

    Args:
        owned: ids of the rows that each rank owns, ascending; every row has one owner.
        ghosts: ids of the rows that each rank borrows; none of its own, none twice.

    Raises:
        SpecError: a row has no owner or two (``owners``), or a ghost is owned, repeated or no row at all (``ghosts``).
    """

    owned: tuple[Ids, ...]
    ghosts: tuple[Ids, ...] = ()
    owner_of: Ids = field(init=False, repr=False)
    place_of: Ids = field(init=False, repr=False)

    def __post_init__(self) -> None:
        owned = tuple(np.asarray(ids, dtype=np.int64) for ids in self.owned)
        ghosts = tuple(np.asarray(ids, dtype=np.int64) for ids in self.ghosts) or tuple(
            np.empty(0, np.int64) for _ in owned
        )
        object.__setattr__(self, "owned", owned)
        object.__setattr__(self, "ghosts", ghosts)
        everything = np.concatenate(owned) if owned else np.empty(0, np.int64)
        rows = len(everything)
        counts = np.bincount(everything[(everything >= 0) & (everything < rows)], minlength=rows)
        if rows and (counts != 1).any():
            row = int(np.flatnonzero(counts != 1)[0])
            raise SpecError(
                "owners", f"row {row} of {rows} has {int(counts[row])} owners; every row has one", "spec.owners"
            )
        if len(ghosts) != len(owned):
            raise SpecError("ghosts", f"{len(ghosts)} ranks have ghosts, {len(owned)} own rows", "spec.owners")
        owner_of, place_of = np.empty(rows, np.int64), np.empty(rows, np.int64)
        for rank, ids in enumerate(owned):
            owner_of[ids] = rank
            place_of[ids] = np.arange(len(ids))
        for rank, ids in enumerate(ghosts):
            inside = (ids >= 0) & (ids < rows)
            if not inside.all():
                raise SpecError("ghosts", f"rank {rank} borrows row {int(ids[~inside][0])} of {rows}", "spec.owners")
            if len(np.unique(ids)) != len(ids):
                raise SpecError("ghosts", f"rank {rank} borrows a row twice", "spec.owners")
            if (owner_of[ids] == rank).any():
                row = int(ids[owner_of[ids] == rank][0])
                raise SpecError("ghosts", f"rank {rank} borrows row {row}, which it owns", "spec.owners")
        object.__setattr__(self, "owner_of", owner_of)
        object.__setattr__(self, "place_of", place_of)

    @classmethod
    def contiguous(cls, sizes: Sequence[int]) -> RowLayout:
        """Blocks of consecutive rows, `sizes[rank]` each.

        Raises:
            SpecError: a size is negative.
        """
        if any(size < 0 for size in sizes):
            raise SpecError("sizes", f"sizes {list(sizes)} must not be negative", "spec.owners")
        stops = np.cumsum(np.asarray(sizes, np.int64)) if len(sizes) else np.empty(0, np.int64)
        return cls(tuple(np.arange(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)))

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.owned)

    @property
    def rows(self) -> int:
        """Number of rows, all ranks together."""
        return len(self.owner_of)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows that each rank owns."""
        return tuple(len(ids) for ids in self.owned)

    def held(self, rank: int) -> Ids:
        """Ids of what a rank holds: its own rows, then its ghosts."""
        return np.concatenate([self.owned[rank], self.ghosts[rank]])

    def without_ghosts(self) -> RowLayout:
        """The same owners, nothing borrowed."""
        return RowLayout(self.owned)

    def routes(self) -> dict[tuple[int, int], Ids]:
        """Rows that go from owner to borrower, ``(source, destination)`` to ids in the borrower's order; empty routes are left out.

        The number of rows of a route is what one exchange sends, in either direction.
        """
        found: dict[tuple[int, int], Ids] = {}
        for rank, ids in enumerate(self.ghosts):
            owners = self.owner_of[ids]
            for source in np.unique(owners):
                found[int(source), rank] = ids[owners == source]
        return dict(sorted(found.items()))


@dataclass(frozen=True, eq=False)
class Stored:
    """A field as ranks hold it.

    Args:
        layout: who holds which rows.
        parts: one array a rank, ``(rows held, *features)``.
    """

    layout: RowLayout
    parts: tuple[Array, ...]


def own_part(full: Array, layout: RowLayout, rank: int) -> Array:
    """The rows of a full array that a rank owns."""
    return full[layout.owned[rank]]


def held_part(full: Array, layout: RowLayout, rank: int) -> Array:
    """The rows of a full array that a rank holds, ghosts included."""
    return full[layout.held(rank)]


def owned_of(stored: Stored, rank: int) -> Array:
    """The rows of its part that a rank owns."""
    return stored.parts[rank][: len(stored.layout.owned[rank])]


def gathered(stored: Stored, xp: Any) -> Array:
    """All owned rows as one array, in the order of the rows."""
    layout = stored.layout
    own = [owned_of(stored, rank) for rank in range(layout.ranks)]
    whole = xp.concatenate(own)
    order = np.concatenate(layout.owned) if layout.ranks else np.empty(0, np.int64)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return whole[back]


def refreshed(stored: Stored, xp: Any) -> Stored:
    """Every ghost as its owner has it now: the forward exchange of a halo."""
    layout = stored.layout
    parts: list[Array] = []
    for rank in range(layout.ranks):
        ids = layout.ghosts[rank]
        own = owned_of(stored, rank)
        if not len(ids):
            parts.append(own)
            continue
        borrowed = xp.empty((len(ids), *own.shape[1:]), dtype=own.dtype)
        owners = layout.owner_of[ids]
        for source in np.unique(owners):
            mine = owners == source
            borrowed[np.flatnonzero(mine)] = owned_of(stored, int(source))[layout.place_of[ids[mine]]]
        parts.append(xp.concatenate([own, borrowed]))
    return Stored(layout, tuple(parts))


def returned(stored: Stored, xp: Any) -> Stored:
    """What ranks added to their ghosts, added to the owners' rows, ranks in ascending order; ghosts are zero afterwards."""
    layout = stored.layout
    own = [xp.array(owned_of(stored, rank)) for rank in range(layout.ranks)]
    for rank in range(layout.ranks):
        ids = layout.ghosts[rank]
        borrowed = stored.parts[rank][len(layout.owned[rank]) :]
        owners = layout.owner_of[ids]
        for source in np.unique(owners):
            mine = owners == source
            add_rows(xp, own[int(source)], layout.place_of[ids[mine]], borrowed[np.flatnonzero(mine)])
    parts = [
        xp.concatenate([mine, xp.zeros((len(layout.ghosts[rank]), *mine.shape[1:]), dtype=mine.dtype)])
        for rank, mine in enumerate(own)
    ]
    return Stored(layout, tuple(parts))


def add_rows(xp: Any, target: Array, index: Array, rows: Array) -> None:
    """Add rows to rows of `target`, in place; a row that is named twice is added to twice."""
    xp.add.at(target, index, rows)
