"""What an exchange of ghosts sends: from whom to whom, and how much.

>>> from dtir.spec.partition import spatial_partition
>>> from dtir.spec.system import System
>>> system = System((9.0, 9.0, 9.0), [[0.5, 0.5, 0.5]], [1], cutoff=2.0)
>>> exchange_routes(spatial_partition(system, (2, 1, 1)))
{(0, 1): 32, (1, 0): 32}
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from dtir.spec.partition import DIMS, Partition


def exchange_routes(partition: Partition) -> Mapping[tuple[int, int], int]:
    """Elements of a field of bins that each route of an exchange carries, by (source, destination): what one transfer sends.

    Empty slots travel too, since a field has room for as many atoms in every bin.
    """
    if not partition.sizes:
        return {}
    cut, layers, bins = partition.grid, partition.ghost_bins, partition.system.bins
    starts = [[sum(parts[:at]) for at in range(len(parts))] for parts in partition.sizes]
    found: dict[tuple[int, int], int] = {}
    for place in product(*(range(parts) for parts in cut)):
        rank = (place[0] * cut[1] + place[1]) * cut[2] + place[2]
        along: list[dict[int, int]] = []
        for axis in range(DIMS):
            start = starts[axis][place[axis]]
            stop = start + partition.sizes[axis][place[axis]]
            owners: dict[int, int] = {}
            for bin_number in range(start - layers[axis], stop + layers[axis]):
                inside = bin_number % bins[axis]
                owner = max(at for at, first in enumerate(starts[axis]) if first <= inside)
                owners[owner] = owners.get(owner, 0) + 1
            along.append(owners)
        for other in product(*(owners.items() for owners in along)):
            source = (other[0][0] * cut[1] + other[1][0]) * cut[2] + other[2][0]
            if source != rank:
                elements = other[0][1] * other[1][1] * other[2][1] * partition.system.slots
                found[source, rank] = found.get((source, rank), 0) + elements
    return dict(sorted(found.items()))
