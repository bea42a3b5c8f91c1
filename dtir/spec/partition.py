"""Who owns which atoms: a grid of domains over the periodic box, or blocks of consecutive atoms; and who borrows which.

A domain is a block of bins (`dtir.spec.system`), so that a rank's ghosts are the bins around its block, edges and corners included.

>>> from dtir.spec.system import System
>>> system = System((9.0, 9.0, 9.0), [[0.5, 0.5, 0.5], [8.9, 0.5, 0.5]], [1, 1], cutoff=2.0)
>>> cut = spatial_partition(system, (2, 1, 1))
>>> [ids.tolist() for ids in cut.layout.owned], cut.counts()
([[0], [1]], {(0, 1): 1, (1, 0): 1})
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dtir.spec.errors import SpecError
from dtir.spec.policy import CONTIGUOUS, SPATIAL
from dtir.spec.rows import Ids, RowLayout
from dtir.spec.system import AXES, System

DIMS = 3


@dataclass(frozen=True, eq=False)
class Partition:
    """Atoms by rank.

    Args:
        system: the atoms.
        mode: ``spatial`` or ``contiguous_block``.
        grid: domains along x, y and z; ranks are numbered with z fastest. ``(ranks, 1, 1)`` for blocks of atoms.
        sizes: bins of each domain along x, y and z; empty for blocks of atoms.
        ghost_bins: layers of bins around a domain that its rank borrows, along x, y and z.
        ghost_width: the same as a length, as asked for.
        layout: owners and ghosts of the atoms.
        neighbours: per rank, the ranks whose atoms it borrows, each with its offset in the grid (``(1, 0, -1)``, ...).
    """

    system: System = field(repr=False)
    mode: str
    grid: tuple[int, int, int]
    sizes: tuple[tuple[int, ...], ...]
    ghost_bins: tuple[int, int, int]
    ghost_width: float
    layout: RowLayout = field(repr=False)
    neighbours: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = field(repr=False, default=())

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return math.prod(self.grid)

    def routes(self) -> dict[tuple[int, int], Ids]:
        """Atoms that go from owner to borrower in one exchange, by (source, destination)."""
        return self.layout.routes()

    def counts(self) -> dict[tuple[int, int], int]:
        """How many atoms each route carries."""
        return {pair: len(ids) for pair, ids in self.routes().items()}

    def exchange_bytes(self, row_bytes: int) -> int:
        """Bytes of one exchange of a field with so many bytes an atom, all ranks together, atoms alone."""
        return row_bytes * sum(self.counts().values())


def even_sizes(extent: int, parts: int) -> tuple[int, ...]:
    """An extent cut into parts that differ by one at most, the larger first.

    >>> even_sizes(7, 3)
    (3, 2, 2)
    """
    return tuple(extent // parts + (part < extent % parts) for part in range(parts))


def grid_for(ranks: int, bins: Sequence[int]) -> tuple[int, int, int]:
    """The grid of domains with the least surface between them that the bins allow.

    Raises:
        SpecError: there are not enough bins along any choice of axes.
    """
    if ranks < 1:
        raise SpecError("ranks", f"{ranks} ranks; at least 1", "spec.partition")
    found: list[tuple[float, int, tuple[int, int, int]]] = []
    for first in range(1, ranks + 1):
        if ranks % first:
            continue
        for second in range(1, ranks // first + 1):
            if (ranks // first) % second:
                continue
            grid = (first, second, ranks // first // second)
            if all(parts <= extent for parts, extent in zip(grid, bins, strict=True)):
                edges = [extent / parts for parts, extent in zip(grid, bins, strict=True)]
                surface = sum(edges[a] * edges[b] for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 2, 0)) if grid[c] > 1)
                found.append((surface, max(grid), grid))
    if not found:
        raise SpecError(
            "ranks",
            f"{ranks} ranks do not fit into {' x '.join(map(str, bins))} bins: fewer ranks, or a larger box",
            "spec.partition",
        )
    return min(found)[2]


def spatial_partition(
    system: System, grid: Sequence[int], ghost_width: float | None = None, sizes: Sequence[Sequence[int]] | None = None
) -> Partition:
    """Domains over the box.

    Args:
        grid: domains along x, y and z.
        ghost_width: how far ranks see beyond their domain; None: the cutoff.
        sizes: bins of each domain along x, y and z; None: as even as can be.

    Raises:
        SpecError: naming ``grid``, ``sizes`` or ``ghost_width``: more domains than bins, sizes that do not add up, a ghost width
            that is not positive or larger than a domain.
    """
    cut = tuple(int(parts) for parts in grid)
    if len(cut) != DIMS or any(parts < 1 for parts in cut):
        raise SpecError("grid", f"grid is {list(grid)}; wanted are three numbers from 1 on", "spec.partition")
    for parts, extent, axis in zip(cut, system.bins, AXES, strict=True):
        if parts > extent:
            raise SpecError("grid", f"{parts} domains along {axis}, where the box has {extent} bins", "spec.partition")
    spans = _spans(system, cut, sizes)
    width = system.cutoff if ghost_width is None else float(ghost_width)
    if not width > 0 or not math.isfinite(width):
        raise SpecError("ghost_width", f"ghost_width is {width}, not a positive length", "spec.ghost_width")
    layers: list[int] = []
    for parts, extent, length, part_sizes, axis in zip(cut, system.bins, system.cell, spans, AXES, strict=True):
        bins = math.ceil(width / (length / extent) - 1e-9)
        if parts > 1 and bins > min(part_sizes):
            raise SpecError(
                "ghost_width",
                f"ghost_width {width:g} reaches over {bins} bins along {axis}, the smallest domain has {min(part_sizes)}",
                "spec.ghost_width",
            )
        layers.append(bins if parts > 1 else 0)
    ghost_bins = (layers[0], layers[1], layers[2])
    owners = _owner_of_bins(spans, cut)[tuple(system.places.T)] if system.atoms else np.empty(0, np.int64)
    ranks = math.prod(cut)
    owned = tuple(np.flatnonzero(owners == rank) for rank in range(ranks))
    ghosts = tuple(_ghosts(system, spans, cut, ghost_bins, owners, rank) for rank in range(ranks))
    layout = RowLayout(owned, ghosts)
    around = tuple(_neighbours(cut, ghost_bins, rank) for rank in range(ranks))
    return Partition(system, SPATIAL, (cut[0], cut[1], cut[2]), spans, ghost_bins, width, layout, around)


def block_partition(system: System, ranks: int) -> Partition:
    """Consecutive atoms, as even as can be; nothing is borrowed.

    Raises:
        SpecError: fewer than one rank.
    """
    if ranks < 1:
        raise SpecError("ranks", f"{ranks} ranks; at least 1", "spec.partition")
    layout = RowLayout.contiguous(even_sizes(system.atoms, ranks))
    return Partition(system, CONTIGUOUS, (ranks, 1, 1), (), (0, 0, 0), 0.0, layout)


def _spans(system: System, cut: tuple[int, ...], sizes: Sequence[Sequence[int]] | None) -> tuple[tuple[int, ...], ...]:
    if sizes is None:
        return tuple(even_sizes(extent, parts) for extent, parts in zip(system.bins, cut, strict=True))
    spans = tuple(tuple(int(size) for size in part) for part in sizes)
    for part_sizes, extent, parts, axis in zip(spans, system.bins, cut, AXES, strict=True):
        if len(part_sizes) != parts or sum(part_sizes) != extent or min(part_sizes, default=0) < 1:
            raise SpecError(
                "sizes",
                f"sizes along {axis} are {list(part_sizes)}; wanted are {parts} that add up to {extent}",
                "spec.partition",
            )
    return spans


def _owner_of_bins(spans: Sequence[Sequence[int]], cut: Sequence[int]) -> Ids:
    along = [np.repeat(np.arange(len(part_sizes)), part_sizes) for part_sizes in spans]
    x, y, z = np.meshgrid(*along, indexing="ij")
    return (x * cut[1] + y) * cut[2] + z


def _ghosts(
    system: System,
    spans: Sequence[Sequence[int]],
    cut: Sequence[int],
    layers: Sequence[int],
    owners: Ids,
    rank: int,
) -> Ids:
    """Atoms of others in the bins around a domain, across the ends of the box too."""
    place = np.unravel_index(rank, tuple(cut))
    near = np.ones(system.atoms, bool)
    for axis in range(DIMS):
        start = sum(spans[axis][: int(place[axis])])
        stop, extent = start + spans[axis][int(place[axis])], system.bins[axis]
        seen = np.zeros(extent, bool)
        seen[np.arange(start - layers[axis], stop + layers[axis]) % extent] = True
        near &= seen[system.places[:, axis]] if system.atoms else near
    return np.flatnonzero(near & (owners != rank))


def _neighbours(cut: Sequence[int], layers: Sequence[int], rank: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Ranks one step away in the grid along any axes that are cut, with their offset: faces, edges and corners."""
    place = np.unravel_index(rank, tuple(cut))
    steps = [(-1, 0, 1) if parts > 1 and layers[axis] else (0,) for axis, parts in enumerate(cut)]
    found: dict[int, tuple[int, ...]] = {}
    for offset in itertools.product(*steps):
        other = tuple((int(at) + step) % parts for at, step, parts in zip(place, offset, cut, strict=True))
        number = int(np.ravel_multi_index(other, tuple(cut)))
        if number != rank:
            found.setdefault(number, offset)
    return tuple(sorted(found.items()))
