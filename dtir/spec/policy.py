"""The protocol of storage policies, and what their implementations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from dtir.spec.errors import SpecError
from dtir.spec.rows import Array, RowLayout, Stored, add_rows

SPATIAL, CONTIGUOUS = "spatial", "contiguous_block"
"""How rows are assigned to ranks: by place, so that neighbours are near; by number, so that ranks are even."""


@runtime_checkable
class StoragePolicy(Protocol):
    """How a field is stored across ranks. `index` holds positions among the rows that a rank holds, unless said otherwise."""

    kind: ClassVar[str]
    """Its name in JSON."""
    placement: ClassVar[str]
    """Of the whole field: ``Shard(0)`` or ``Replicate()``."""
    partition_mode: ClassVar[str]
    """``spatial`` or ``contiguous_block``."""

    def place_from_full(self, full: Array, layout: RowLayout, *, xp: Any = np) -> Stored:
        """What ranks store of a whole array ``(rows, *features)``."""
        ...

    def place_from_local(self, parts: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        """The same from the rows that each rank owns."""
        ...

    def to_local(self, stored: Stored, rank: int) -> Array:
        """What one rank stores; no communication."""
        ...

    def full_tensor(self, stored: Stored, *, xp: Any = np) -> Array:
        """The whole array again."""
        ...

    def scatter(self, stored: Stored, index: Sequence[Array], source: Sequence[Array], *, xp: Any = np) -> Stored:
        """Rows added by every rank to rows it holds."""
        ...

    def gather(self, stored: Stored, index: Sequence[Array], *, xp: Any = np) -> tuple[Array, ...]:
        """Rows read by every rank."""
        ...

    def replicate(self, stored: Stored, *, xp: Any = np) -> tuple[Array, ...]:
        """What every rank sees before a layer that reads neighbours."""
        ...

    def fold(self, contributions: Sequence[Array], layout: RowLayout, *, xp: Any = np) -> Stored:
        """Contributions of every rank to the rows that `replicate` showed it, brought to the owners."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        ...


def one_each(layout: RowLayout, given: Sequence[Array], name: str) -> None:
    """Raise unless there is one array a rank.

    Raises:
        SpecError: there are more or fewer.
    """
    if len(given) != layout.ranks:
        raise SpecError(name, f"{len(given)} arrays for {layout.ranks} ranks", "spec.shape")


def added_rows(stored: Stored, index: Sequence[Array], source: Sequence[Array], xp: Any) -> Stored:
    """Rows added in place of every rank, copies left as they are elsewhere."""
    one_each(stored.layout, index, "index")
    one_each(stored.layout, source, "source")
    parts: list[Array] = []
    for part, places, rows in zip(stored.parts, index, source, strict=True):
        made = xp.array(part)
        add_rows(xp, made, places, rows)
        parts.append(made)
    return Stored(stored.layout, tuple(parts))


def checked_parts(parts: Sequence[Array], layout: RowLayout) -> None:
    """Raise unless every rank gives the rows that it owns.

    Raises:
        SpecError: a rank gives more or fewer.
    """
    one_each(layout, parts, "parts")
    for rank, (part, size) in enumerate(zip(parts, layout.sizes, strict=True)):
        if part.shape[0] != size:
            raise SpecError("parts", f"rank {rank} gives {part.shape[0]} rows and owns {size}", "spec.shape")
