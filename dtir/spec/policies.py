"""Storage policies: how what a rank stores of a field relates to the whole field, and how data moves between the two.

| kind | a rank stores | reading another row | adding to another row |
|---|---|---|---|
| `local` | everything | reads it | adds to its own copy |
| `shard` | the rows it owns | not possible | not possible |
| `graph_parallel` | the rows it owns | after an all_gather (`replicate`) | by a reduce_scatter (`fold`) |
| `halo` | its rows and ghosts | ghosts refreshed first (`halo_read`) | sent back to owners, ghosts refreshed (`halo_correction`) |
| `refresh_halo` | its rows and ghosts | ghosts refreshed first | never sent back: each rank computes its own rows whole |

The kinds and their JSON form are those of the public nvalchemi toolkit (`MLIPSpec`, version 2). No framework is needed: fields are
arrays of an array module `xp`, and all ranks are in this process.

>>> HaloPolicy(scatter_mode="local").to_dict()
{'kind': 'halo', 'scatter_mode': 'local', 'gather_mode': 'halo_read'}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dtir.spec.errors import SpecError
from dtir.spec.policy import CONTIGUOUS, SPATIAL, added_rows, checked_parts, one_each
from dtir.spec.rows import (
    Array,
    RowLayout,
    Stored,
    add_rows,
    gathered,
    held_part,
    own_part,
    owned_of,
    refreshed,
    returned,
)

SCATTER_MODES = ("local", "halo_correction")
GATHER_MODES = ("local", "halo_read")
"""The weaker first: merging two policies takes the stronger."""


@dataclass(frozen=True)
class LocalPolicy:
    """Everything on every rank; nothing is exchanged."""

    kind: ClassVar[str] = "local"
    placement: ClassVar[str] = "Replicate()"
    partition_mode: ClassVar[str] = CONTIGUOUS

    def place_from_full(self, full: Array, layout: RowLayout, *, xp: Any = np) -> Stored:
        del xp
        return Stored(layout, tuple(full for _ in range(layout.ranks)))

    def place_from_local(self, parts: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        checked_parts(parts, layout)
        return self.place_from_full(gathered(Stored(layout.without_ghosts(), tuple(parts)), xp), layout, xp=xp)

    def to_local(self, stored: Stored, rank: int) -> Array:
        return stored.parts[rank]

    def full_tensor(self, stored: Stored, *, xp: Any = np) -> Array:
        del xp
        return stored.parts[0]

    def scatter(self, stored: Stored, index: Sequence[Array], source: Sequence[Array], *, xp: Any = np) -> Stored:
        return added_rows(stored, index, source, xp)

    def gather(self, stored: Stored, index: Sequence[Array], *, xp: Any = np) -> tuple[Array, ...]:
        del xp
        one_each(stored.layout, index, "index")
        return tuple(part[places] for part, places in zip(stored.parts, index, strict=True))

    def replicate(self, stored: Stored, *, xp: Any = np) -> tuple[Array, ...]:
        del xp
        return stored.parts

    def fold(self, contributions: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        del xp
        one_each(layout, contributions, "contributions")
        return Stored(layout, tuple(contributions))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


class _Owned:
    """What policies share that store the rows a rank owns, and nothing else."""

    placement: ClassVar[str] = "Shard(0)"
    partition_mode: ClassVar[str] = CONTIGUOUS

    def place_from_full(self, full: Array, layout: RowLayout, *, xp: Any = np) -> Stored:
        del xp
        plain = layout.without_ghosts()
        return Stored(plain, tuple(own_part(full, plain, rank) for rank in range(plain.ranks)))

    def place_from_local(self, parts: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        del xp
        checked_parts(parts, layout)
        return Stored(layout.without_ghosts(), tuple(parts))

    def to_local(self, stored: Stored, rank: int) -> Array:
        return stored.parts[rank]

    def full_tensor(self, stored: Stored, *, xp: Any = np) -> Array:
        return gathered(stored, xp)


@dataclass(frozen=True)
class ShardPolicy(_Owned):
    """Rows it owns on every rank: storage alone, without a way to other rows."""

    kind: ClassVar[str] = "shard"

    def scatter(self, stored: Stored, index: Sequence[Array], source: Sequence[Array], *, xp: Any = np) -> Stored:
        """Rows added to owned rows.

        Raises:
            SpecError: a rank names a row that it does not own.
        """
        self._own_only(stored, index)
        return added_rows(stored, index, source, xp)

    def gather(self, stored: Stored, index: Sequence[Array], *, xp: Any = np) -> tuple[Array, ...]:
        """Owned rows read.

        Raises:
            SpecError: a rank names a row that it does not own.
        """
        del xp
        self._own_only(stored, index)
        return tuple(part[places] for part, places in zip(stored.parts, index, strict=True))

    def _own_only(self, stored: Stored, index: Sequence[Array]) -> None:
        one_each(stored.layout, index, "index")
        for rank, (places, size) in enumerate(zip(index, stored.layout.sizes, strict=True)):
            if len(places) and (int(places.max()) >= size or int(places.min()) < 0):
                raise SpecError(
                    "policy",
                    f"rank {rank} asks for row {int(places.max())} and owns {size}: a plain shard has no way to other rows; "
                    "use halo or graph_parallel",
                    "spec.policy",
                )

    def replicate(self, stored: Stored, *, xp: Any = np) -> tuple[Array, ...]:
        del xp
        return stored.parts

    def fold(self, contributions: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        return self.place_from_local(contributions, layout, xp=xp)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True)
class GraphParallelPolicy(_Owned):
    """Rows it owns on every rank; a layer sees all rows after an all_gather, and its result is summed back to the owners.

    `index` of `scatter` and `gather` are ids of rows.
    """

    kind: ClassVar[str] = "graph_parallel"

    def replicate(self, stored: Stored, *, xp: Any = np) -> tuple[Array, ...]:
        whole = gathered(stored, xp)
        return tuple(whole for _ in range(stored.layout.ranks))

    def fold(self, contributions: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        """A reduce_scatter: contributions to all rows, summed over ranks in ascending order, kept by the owners."""
        one_each(layout, contributions, "contributions")
        total = xp.array(contributions[0])
        for more in contributions[1:]:
            total = total + more
        return self.place_from_full(total, layout, xp=xp)

    def scatter(self, stored: Stored, index: Sequence[Array], source: Sequence[Array], *, xp: Any = np) -> Stored:
        whole = gathered(stored, xp)
        one_each(stored.layout, index, "index")
        one_each(stored.layout, source, "source")
        made: list[Array] = []
        for places, rows in zip(index, source, strict=True):
            own = xp.zeros(whole.shape, dtype=whole.dtype)
            add_rows(xp, own, places, rows)
            made.append(own)
        added = self.fold(made, stored.layout, xp=xp)
        parts = tuple(part + more for part, more in zip(stored.parts, added.parts, strict=True))
        return Stored(stored.layout, parts)

    def gather(self, stored: Stored, index: Sequence[Array], *, xp: Any = np) -> tuple[Array, ...]:
        one_each(stored.layout, index, "index")
        return tuple(whole[places] for whole, places in zip(self.replicate(stored, xp=xp), index, strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True)
class HaloPolicy:
    """Rows it owns and ghosts on every rank.

    Args:
        scatter_mode: ``halo_correction``: what is added to ghosts reaches the owners, and ghosts are refreshed; ``local``: it
            stays where it was added.
        gather_mode: ``halo_read``: ghosts are refreshed before they are read; ``local``: read as they are.

    Raises:
        SpecError: a mode that is neither.
    """

    scatter_mode: str = "halo_correction"
    gather_mode: str = "halo_read"
    kind: ClassVar[str] = "halo"
    placement: ClassVar[str] = "Shard(0)"
    partition_mode: ClassVar[str] = SPATIAL

    def __post_init__(self) -> None:
        for name, allowed in (("scatter_mode", SCATTER_MODES), ("gather_mode", GATHER_MODES)):
            value = getattr(self, name)
            if value not in allowed:
                raise SpecError(
                    f"policy.{name}", f"{name} is {value!r}; it is one of {', '.join(allowed)}", "spec.policy"
                )

    def place_from_full(self, full: Array, layout: RowLayout, *, xp: Any = np) -> Stored:
        del xp
        return Stored(layout, tuple(held_part(full, layout, rank) for rank in range(layout.ranks)))

    def place_from_local(self, parts: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        checked_parts(parts, layout)
        return refreshed(Stored(layout, tuple(parts)), xp)

    def to_local(self, stored: Stored, rank: int) -> Array:
        return stored.parts[rank]

    def full_tensor(self, stored: Stored, *, xp: Any = np) -> Array:
        """The owned rows; ghosts are an overlay and no part of the field."""
        return gathered(stored, xp)

    def scatter(self, stored: Stored, index: Sequence[Array], source: Sequence[Array], *, xp: Any = np) -> Stored:
        layout = stored.layout
        if self.scatter_mode == "local":
            return added_rows(stored, index, source, xp)
        # Ghosts hold copies of what owners have: only what is added now goes back.
        nothing = Stored(layout, tuple(xp.zeros(part.shape, dtype=part.dtype) for part in stored.parts))
        added = returned(added_rows(nothing, index, source, xp), xp)
        own = tuple(owned_of(stored, rank) + owned_of(added, rank) for rank in range(layout.ranks))
        return refreshed(Stored(layout, own), xp)

    def gather(self, stored: Stored, index: Sequence[Array], *, xp: Any = np) -> tuple[Array, ...]:
        one_each(stored.layout, index, "index")
        return tuple(part[places] for part, places in zip(self.replicate(stored, xp=xp), index, strict=True))

    def replicate(self, stored: Stored, *, xp: Any = np) -> tuple[Array, ...]:
        return refreshed(stored, xp).parts if self.gather_mode == "halo_read" else stored.parts

    def fold(self, contributions: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        one_each(layout, contributions, "contributions")
        stored = Stored(layout, tuple(contributions))
        return refreshed(returned(stored, xp), xp) if self.scatter_mode == "halo_correction" else stored

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "scatter_mode": self.scatter_mode, "gather_mode": self.gather_mode}


@dataclass(frozen=True)
class RefreshHaloPolicy(HaloPolicy):
    """A halo that is only read: every rank computes the rows it owns whole, so that nothing goes back to owners."""

    kind: ClassVar[str] = "refresh_halo"

    def scatter(self, stored: Stored, index: Sequence[Array], source: Sequence[Array], *, xp: Any = np) -> Stored:
        made = added_rows(stored, index, source, xp)
        return refreshed(made, xp) if self.scatter_mode == "halo_correction" else made

    def fold(self, contributions: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        one_each(layout, contributions, "contributions")
        stored = Stored(layout, tuple(contributions))
        return refreshed(stored, xp) if self.scatter_mode == "halo_correction" else stored
